// Prints what Cyclone DDS (its C library) makes of the values below: one line for each type and version,
// "type version order kind bytes". Kinds: the sample, the key hash, and the key alone.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dds/dds.h>
#include <dds/ddsi/ddsi_keyhash.h>
#include <dds/ddsi/ddsi_serdata.h>
#include "cyclone.h"

static dds_entity_t participant;

static void check(dds_return_t code, const char *what) {
  if (code < 0) {
    fprintf(stderr, "%s: %s\n", what, dds_strretcode(-code));
    exit(1);
  }
}

static void print(const char *type, int version, const char *kind, const unsigned char *bytes, size_t size) {
  printf("%s %d LE %s ", type, version, kind);
  for (size_t i = 0; i < size; i++) printf("%02x", bytes[i]);
  printf("\n");
}

static void print_taken(dds_entity_t reader, const char *type, int version, const char *kind, bool hash) {
  struct ddsi_serdata *taken = NULL;
  dds_sample_info_t info;
  dds_return_t n = dds_takecdr(reader, &taken, 1, &info, DDS_ANY_STATE);
  check(n, "takecdr");
  if (n != 1) {
    fprintf(stderr, "%s: nothing taken\n", type);
    exit(1);
  }
  uint32_t size = ddsi_serdata_size(taken);
  unsigned char *bytes = malloc(size);
  ddsi_serdata_to_ser(taken, 0, size, bytes);
  print(type, version, kind, bytes, size);
  free(bytes);
  if (hash) {
    struct ddsi_keyhash keyhash;
    ddsi_serdata_get_keyhash(taken, &keyhash, false);
    print(type, version, "hash", keyhash.value, 16);
  }
  ddsi_serdata_unref(taken);
}

static void one(const char *type, const dds_topic_descriptor_t *descriptor, const void *value, int version) {
  dds_data_representation_id_t id = version == 1 ? DDS_DATA_REPRESENTATION_XCDR1 : DDS_DATA_REPRESENTATION_XCDR2;
  char name[64];
  snprintf(name, sizeof name, "%s_%d", type, version);
  dds_qos_t *qos = dds_create_qos();
  dds_qset_data_representation(qos, 1, &id);
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
  dds_entity_t topic = dds_create_topic(participant, descriptor, name, qos, NULL);
  if (topic < 0) {
    fprintf(stderr, "%s version %d: not supported\n", type, version);
    dds_delete_qos(qos);
    return;
  }
  dds_entity_t reader = dds_create_reader(participant, topic, qos, NULL);
  dds_entity_t writer = dds_create_writer(participant, topic, qos, NULL);
  check(reader, "reader");
  check(writer, "writer");
  check(dds_write(writer, value), "write");
  print_taken(reader, type, version, "sample", descriptor->m_nkeys > 0);
  if (descriptor->m_nkeys > 0) {
    check(dds_dispose(writer, value), "dispose");
    print_taken(reader, type, version, "key", false);
  }
  dds_delete_qos(qos);
  dds_delete(writer);
  dds_delete(reader);
  dds_delete(topic);
}

#define BOTH(TYPE, ...) do { TYPE value = __VA_ARGS__; \
  one(#TYPE, &TYPE##_desc, &value, 1); one(#TYPE, &TYPE##_desc, &value, 2); } while (0)
// Static, because the library copies a sample of numbers as it is, and its padding with it.
#define FLAT(TYPE, ...) do { static TYPE value = __VA_ARGS__; \
  one(#TYPE, &TYPE##_desc, &value, 1); one(#TYPE, &TYPE##_desc, &value, 2); } while (0)
#define SEQUENCE(ELEMENT, ...) { ._maximum = sizeof((ELEMENT[])__VA_ARGS__) / sizeof(ELEMENT), \
  ._length = sizeof((ELEMENT[])__VA_ARGS__) / sizeof(ELEMENT), ._buffer = (ELEMENT[])__VA_ARGS__, ._release = false }
#define OPEN { 3, 4 }
#define KEY_SMALL { 1, "not key", 0x0203, 0x04050607 }

static int32_t six = 6, five = 5;

#define MUTABLE { .a = 1, .b = 2, .c = 3, .d = 4, .text = "txt", .bytes = SEQUENCE(uint8_t, {1, 2, 3}), \
  .shorts = SEQUENCE(int16_t, {1, 2}), .longs = SEQUENCE(int32_t, {1, 2, 3}), .doubles = SEQUENCE(double, {0.5}), \
  .list = SEQUENCE(char *, {"x"}), .within = {1, 2.5}, .opened = OPEN, .hue = GREEN, .numbers = {1, 2, 3}, .yes = &six, .no = NULL }

int main(void) {
  participant = dds_create_participant(DDS_DOMAIN_DEFAULT, NULL, NULL);
  check(participant, "participant");
  FLAT(Primitives, { true, 0xfe, -0x0102030405060708LL, 'Z', 1.5, -2, -300, 200, 60000, -70000, 7, 4000000000u,
    -0.25f, 0xfedcba9876543210ULL });
  BOTH(Strings, { 1, "Z\xc3\xbcrich", "12345678", SEQUENCE(char *, {"", "a", "bcd"}) });
  BOTH(Collections, { SEQUENCE(uint8_t, {1, 2, 3}), SEQUENCE(int16_t, {-1, 2, -3}), SEQUENCE(double, {0.5, -1.0}),
    {0}, SEQUENCE(bool, {true, false, true}), SEQUENCE(Inner, {{1, 2.5}, {2, 5.0}}), {1, -2, 3}, {{1, 2}, {3, 4}},
    {{3, 7.5}, {4, 10.0}}, SEQUENCE(int32_t, {9, 8}), 0xaa });
  BOTH(Enums, { 1, BLUE, SEQUENCE(Color, {RED, GREEN}), {GREEN, BLUE}, 0xaa });
  BOTH(Unions, { 1, { 1, { .number = 0.5 } }, { 2, { .text = "two" } }, { 3, { .within = {1, 2.5} } },
    { 9, { .other = 5 } } });
  BOTH(Nested, { 1, {1, 2.5}, OPEN, SEQUENCE(Open, {OPEN, OPEN}), 0xaa });
  BOTH(Top, { 1, -2, OPEN, "end" });
  BOTH(Derived, { { 7, 8 }, 0.5, "sub" });
  BOTH(KeySmall, KEY_SMALL);
  BOTH(KeyLarge, { 5, "sensor", 1.5 });
  FLAT(KeyDouble, { 1, 0.5, 3 });
  BOTH(KeyInner, { KEY_SMALL, {1, 2.5}, 0xaa });
  BOTH(KeyBounded, { "abc", 0xaa });
  FLAT(KeyOpen, { 0x01020304, 5, 0x0607 });
  BOTH(Narrow, { 1, TINY_B, 2, 0x809, SEQUENCE(Flags, {0x1, 0x8}), 0xaa });
  BOTH(Optionals, { 1, &five, NULL, "opt", 0xaa });
  BOTH(Mutable, MUTABLE);
  FLAT(KeyMutable, { 1, 2, 0x0304 });
  BOTH(MutableNested, { 1, MUTABLE, 0xaa });
  BOTH(OpenUnions, { 1, { 1, { .number = 77 } }, { 7, { .text = "seven" } } });
  dds_delete(participant);
  return 0;
}
