// Prints what Fast DDS makes of the values below: one line for each type and byte order,
// "type version order kind bytes". This version of Fast DDS has version 1 of the encoding only.
#include <cstdint>
#include <cstdio>
#include <vector>
#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>
#include "fastPubSubTypes.h"
#include "commonPubSubTypes.h"

using eprosima::fastcdr::Cdr;
using eprosima::fastcdr::FastBuffer;

static void print(const char *type, const char *order, const char *kind, const unsigned char *bytes, size_t size) {
  std::printf("%s 1 %s %s ", type, order, kind);
  for (size_t i = 0; i < size; i++) std::printf("%02x", bytes[i]);
  std::printf("\n");
}

template <typename Support, typename T>
static void both(const char *type, T value) {
  for (auto order : {Cdr::BIG_ENDIANNESS, Cdr::LITTLE_ENDIANNESS}) {
    std::vector<char> room(4096);
    FastBuffer buffer(room.data(), room.size());
    Cdr cdr(buffer, order, Cdr::DDS_CDR);
    cdr.serialize_encapsulation();
    value.serialize(cdr);
    print(type, order == Cdr::BIG_ENDIANNESS ? "BE" : "LE", "sample",
          reinterpret_cast<unsigned char *>(room.data()), cdr.getSerializedDataLength());
  }
  Support support;
  eprosima::fastrtps::rtps::InstanceHandle_t handle;
  if (support.m_isGetKeyDefined && support.getKey(&value, &handle, false)) {
    unsigned char bytes[16];
    for (int i = 0; i < 16; i++) bytes[i] = handle.value[i];
    print(type, "BE", "hash", bytes, 16);
  }
}

static Inner inner(int n) {
  Inner out;
  out.a(static_cast<uint8_t>(n));
  out.b(2.5 * n);
  return out;
}

static Open open() {
  Open out;
  out.a(3);
  out.b(4);
  return out;
}

static KeySmall key_small() {
  KeySmall out;
  out.a(1); out.other("not key"); out.b(0x0203); out.c(0x04050607);
  return out;
}

static void common() {
  Primitives p;
  p.flag(true); p.o(0xfe); p.i64(-0x0102030405060708LL); p.c('Z'); p.f64(1.5); p.i8(-2); p.i16(-300); p.u8(200);
  p.u16(60000); p.i32(-70000); p.gap(7); p.u32(4000000000u); p.f32(-0.25f); p.u64(0xfedcba9876543210ULL);
  both<PrimitivesPubSubType>("Primitives", p);
  Strings s;
  s.gap(1); s.plain("Z\xc3\xbcrich"); s.bounded("12345678"); s.list({"", "a", "bcd"});
  both<StringsPubSubType>("Strings", s);
  Collections c;
  c.bytes({1, 2, 3}); c.shorts({-1, 2, -3}); c.doubles({0.5, -1.0}); c.flags({true, false, true});
  c.inners({inner(1), inner(2)}); c.numbers({{1, -2, 3}}); c.grid()[0] = {{1, 2}}; c.grid()[1] = {{3, 4}};
  c.pair({{inner(3), inner(4)}}); c.bounded({9, 8}); c.last(0xaa);
  both<CollectionsPubSubType>("Collections", c);
  Enums e;
  e.gap(1); e.hue(BLUE); e.hues({RED, GREEN}); e.both({{GREEN, BLUE}}); e.last(0xaa);
  both<EnumsPubSubType>("Enums", e);
  Unions u;
  u.gap(1); u.number().number(0.5); u.text().text("two"); u.within().within(inner(1)); u.other().other(5);
  u.other()._d(9);
  both<UnionsPubSubType>("Unions", u);
  Nested n;
  n.gap(1); n.within(inner(1)); n.opened(open()); n.opens({open(), open()}); n.last(0xaa);
  both<NestedPubSubType>("Nested", n);
  Top t;
  t.a(1); t.b(-2); t.opened(open()); t.text("end");
  both<TopPubSubType>("Top", t);
  Derived d;
  d.id(7); d.x(8); d.y(0.5); d.text("sub");
  both<DerivedPubSubType>("Derived", d);
}

static void keys() {
  both<KeySmallPubSubType>("KeySmall", key_small());
  KeyLarge large;
  large.id(5); large.name("sensor"); large.value(1.5);
  both<KeyLargePubSubType>("KeyLarge", large);
  KeyDouble with_double;
  with_double.a(1); with_double.b(0.5); with_double.value(3);
  both<KeyDoublePubSubType>("KeyDouble", with_double);
  KeyInner nested;
  nested.small(key_small()); nested.whole(inner(1)); nested.last(0xaa);
  both<KeyInnerPubSubType>("KeyInner", nested);
  KeyBounded bounded;
  bounded.name("abc"); bounded.last(0xaa);
  both<KeyBoundedPubSubType>("KeyBounded", bounded);
  KeyOpen opened;
  opened.a(0x01020304); opened.gap(5); opened.b(0x0607);
  both<KeyOpenPubSubType>("KeyOpen", opened);
}

int main() {
  common();
  keys();
  Bits b;
  b.gap(1); b.bits(static_cast<Flags>(0x809)); b.parts().a(5); b.parts().b(1); b.parts().c(0x81); b.last(0xaa);
  both<BitsPubSubType>("Bits", b);
  Maps m;
  m.gap(1); m.names({{1, "one"}, {2, "two"}}); m.numbers({{-1, 0.5}}); m.last(0xaa);
  both<MapsPubSubType>("Maps", m);
  Wide w;
  w.gap(1); w.c(L'\u00e9'); w.text(L"Z\u00fcrich");
  both<WidePubSubType>("Wide", w);
  return 0;
}
