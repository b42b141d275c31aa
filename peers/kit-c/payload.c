/* What samples carry: lengths by type and size, filling, checking, and the packed
 * form that middlewares without IDL send. */
#include "kit_internal.h"

#include <string.h>

/* Bytes in front of `data`, and of one item of `complex`. */
enum { BYTES_HEADER = 28, PLAIN_HEADER = 24, PLAIN16 = 16, SIMPLE_HEADER = 8, COMPLEX_HEADER = 8, ITEM = 16 };

/* Seven characters, so that an item is 16 bytes. */
static const char info[8] = "payload";

size_t kit_data_length(void)
{
    const uint32_t size = kit_options.size;
    switch (kit_options.type) {
    case KIT_BYTES:
        return size - BYTES_HEADER;
    case KIT_PLAIN:
        return size > PLAIN_HEADER ? size - PLAIN_HEADER : 0;
    case KIT_SIMPLE:
        return size;
    default:
        return 0;
    }
}

uint32_t kit_item_count(void)
{
    return kit_options.size < ITEM ? 1 : kit_options.size / ITEM;
}

void kit_fill(uint8_t *data, size_t length, uint64_t seq)
{
    if (length == 0)
        return;
    data[0] = (uint8_t)seq;
    data[length - 1] = (uint8_t)seq;
}

bool kit_right(const uint8_t *data, size_t length, uint64_t seq)
{
    return length == kit_data_length() &&
           (length == 0 || (data[0] == (uint8_t)seq && data[length - 1] == (uint8_t)seq));
}

size_t kit_packed_length(void)
{
    switch (kit_options.type) {
    case KIT_SIMPLE:
        return SIMPLE_HEADER + kit_options.size;
    case KIT_COMPLEX:
        return COMPLEX_HEADER + ITEM * (size_t)kit_item_count();
    default:
        return kit_options.size;
    }
}

static void put32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
}

static void put64(uint8_t *at, uint64_t value)
{
    memcpy(at, &value, sizeof value);
}

static uint32_t get32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static int64_t get64(const uint8_t *at)
{
    int64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void pack_items(uint8_t *packed, uint64_t seq)
{
    const uint32_t count = kit_item_count();
    put32(packed, count);
    put32(packed + 4, count);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *item = packed + COMPLEX_HEADER + ITEM * (size_t)i;
        put32(item, sizeof info);
        memcpy(item + 4, info, sizeof info);
        put32(item + 12, (uint32_t)seq);
    }
}

int64_t kit_pack(uint8_t *packed, uint64_t seq)
{
    const size_t length = kit_data_length();
    uint8_t *const end = packed + kit_packed_length();

    if (kit_options.type == KIT_SIMPLE) {
        put32(packed, (uint32_t)seq);
        put32(packed + 4, (uint32_t)length);
    } else if (kit_options.type == KIT_COMPLEX) {
        pack_items(packed, seq);
    } else {
        put64(packed, seq);
        if (kit_options.size > PLAIN16)
            put64(packed + 16, 0);
        if (kit_options.type == KIT_BYTES)
            put32(packed + 24, (uint32_t)length);
    }
    kit_fill(end - length, length, seq);
    const int64_t now = kit_now();
    if (kit_options.type == KIT_BYTES || kit_options.type == KIT_PLAIN)
        put64(packed + 8, (uint64_t)now);
    return now;
}

static bool items_right(const uint8_t *packed, uint32_t seq)
{
    const uint32_t count = kit_item_count();
    const uint8_t *last = packed + COMPLEX_HEADER + ITEM * (size_t)(count - 1);
    return get32(packed) == count && get32(packed + 4) == count &&
           memcmp(packed + COMPLEX_HEADER + 4, info, sizeof info) == 0 &&
           memcmp(last + 4, info, sizeof info) == 0 && get32(last + 12) == seq;
}

void kit_unpack(const uint8_t *packed, size_t length, struct kit_taken *taken)
{
    const size_t data = kit_data_length();

    taken->seq = 0;
    taken->sent_ns = taken->seen_ns = 0;
    taken->right = false;
    if (length != kit_packed_length())
        return;
    switch (kit_options.type) {
    case KIT_SIMPLE:
        taken->seq = get32(packed);
        taken->right = get32(packed + 4) == data && kit_right(packed + SIMPLE_HEADER, data, taken->seq);
        return;
    case KIT_COMPLEX:
        taken->seq = get32(packed + COMPLEX_HEADER + 12);
        taken->right = items_right(packed, (uint32_t)taken->seq);
        return;
    default:
        taken->seq = (uint64_t)get64(packed);
        taken->sent_ns = get64(packed + 8);
        if (kit_options.size > PLAIN16)
            taken->seen_ns = get64(packed + 16);
        taken->right = (kit_options.type != KIT_BYTES || get32(packed + 24) == data) &&
                       kit_right(packed + length - data, data, taken->seq);
    }
}

size_t kit_pack_answer(uint8_t *packed, const struct kit_taken *taken)
{
    if (kit_options.type == KIT_SIMPLE || kit_options.type == KIT_COMPLEX) {
        put32(packed, (uint32_t)taken->seq);
        return KIT_ACK_LENGTH;
    }
    if (kit_options.size > PLAIN16)
        put64(packed + 16, (uint64_t)taken->taken_ns);
    return kit_packed_length();
}

void kit_unpack_answer(const uint8_t *packed, size_t length, struct kit_taken *taken)
{
    if (kit_options.type != KIT_SIMPLE && kit_options.type != KIT_COMPLEX) {
        kit_unpack(packed, length, taken);
        return;
    }
    taken->sent_ns = taken->seen_ns = 0;
    taken->right = length == KIT_ACK_LENGTH;
    taken->seq = taken->right ? get32(packed) : 0;
}
