/* The samples by --type and --size: filled, read, answered. */
#include "adapter.h"

#include <stdlib.h>
#include <string.h>

#include "types.h"

/* The fields that every Plain type begins with; Plain16 ends before seen_ns. */
struct plain {
    uint64_t seq;
    int64_t sent_ns;
    int64_t seen_ns;
    uint8_t data[];
};

enum { PLAIN16 = 16 };

/* Of type bytes, what is in front of the data. */
enum { BYTES_HEADER = 28 };

const dds_topic_descriptor_t *bytes_descriptor(void)
{
    return &perf_Sample_desc;
}

const dds_topic_descriptor_t *sample_descriptor(void)
{
    switch (o->type) {
    case KIT_BYTES:
        return bytes_descriptor();
    case KIT_SIMPLE:
        return &perf_Simple_desc;
    case KIT_COMPLEX:
        return &perf_Complex_desc;
    default:
        break;
    }
    switch (o->size) {
    case 16:
        return &perf_Plain16_desc;
    case 64:
        return &perf_Plain64_desc;
    case 256:
        return &perf_Plain256_desc;
    case 512:
        return &perf_Plain512_desc;
    case 1024:
        return &perf_Plain1024_desc;
    case 4096:
        return &perf_Plain4096_desc;
    case 8192:
        return &perf_Plain8192_desc;
    case 16384:
        return &perf_Plain16384_desc;
    case 65536:
        return &perf_Plain65536_desc;
    case 1048576:
        return &perf_Plain1048576_desc;
    case 2097152:
        return &perf_Plain2097152_desc;
    case 4194304:
        return &perf_Plain4194304_desc;
    case 8388608:
        return &perf_Plain8388608_desc;
    default:
        kit_absent("type plain has no size %u", o->size);
    }
}

static bool acknowledged(void)
{
    return o->type == KIT_SIMPLE || o->type == KIT_COMPLEX;
}

const dds_topic_descriptor_t *answer_descriptor(void)
{
    return acknowledged() ? &perf_Ack_desc : sample_descriptor();
}

static void *zeroed(size_t size)
{
    void *memory = calloc(1, size);
    if (memory == NULL)
        kit_failed("no memory for a sample");
    return memory;
}

static dds_sequence_octet octets_new(uint32_t length)
{
    return (dds_sequence_octet){._maximum = length, ._length = length, ._buffer = zeroed(length + 1)};
}

static void *complex_new(void)
{
    static char info[] = "payload"; /* seven characters: an item of 16 bytes */
    const uint32_t count = kit_item_count();
    perf_Complex *complex = zeroed(sizeof *complex);
    complex->length = (int32_t)count;
    complex->items._maximum = complex->items._length = count;
    complex->items._buffer = zeroed(count * sizeof *complex->items._buffer);
    for (uint32_t i = 0; i < count; i++)
        complex->items._buffer[i].info = info;
    return complex;
}

void *bytes_new(uint32_t size)
{
    perf_Sample *bytes = zeroed(sizeof *bytes);
    bytes->data = octets_new(size - BYTES_HEADER);
    return bytes;
}

void *sample_new(void)
{
    if (o->type == KIT_PLAIN)
        return zeroed(o->size);
    if (o->type == KIT_COMPLEX)
        return complex_new();
    if (o->type == KIT_SIMPLE) {
        perf_Simple *simple = zeroed(sizeof *simple);
        simple->data = octets_new((uint32_t)kit_data_length());
        return simple;
    }
    return bytes_new(o->size);
}

void *answer_new(void)
{
    return acknowledged() ? zeroed(sizeof(perf_Ack)) : sample_new();
}

int64_t sample_fill(void *sample, uint64_t seq)
{
    if (o->type == KIT_PLAIN) {
        struct plain *plain = sample;
        plain->seq = seq;
        if (o->size > PLAIN16) {
            plain->seen_ns = 0;
            kit_fill(plain->data, kit_data_length(), seq);
        }
        return plain->sent_ns = kit_now();
    }
    if (o->type == KIT_COMPLEX) {
        perf_Complex *complex = sample;
        complex->items._buffer[complex->items._length - 1].index = (int32_t)seq;
        complex->items._buffer[0].index = (int32_t)seq;
        return kit_now();
    }
    if (o->type == KIT_SIMPLE) {
        perf_Simple *simple = sample;
        simple->index = (int32_t)seq;
        kit_fill(simple->data._buffer, simple->data._length, seq);
        return kit_now();
    }
    perf_Sample *bytes = sample;
    bytes->seq = seq;
    kit_fill(bytes->data._buffer, bytes->data._length, seq);
    return bytes->sent_ns = kit_now();
}

static void complex_read(const perf_Complex *complex, struct kit_taken *taken)
{
    const uint32_t count = kit_item_count();
    if (complex->items._length != count || complex->length != (int32_t)count)
        return;
    const perf_Item *first = &complex->items._buffer[0], *last = &complex->items._buffer[count - 1];
    taken->seq = (uint32_t)first->index;
    taken->right = last->index == first->index && strcmp(first->info, "payload") == 0 &&
                   strcmp(last->info, "payload") == 0;
}

void sample_read(const void *sample, struct kit_taken *taken)
{
    taken->seq = 0;
    taken->sent_ns = taken->seen_ns = 0;
    taken->right = false;
    if (o->type == KIT_PLAIN) {
        const struct plain *plain = sample;
        taken->seq = plain->seq;
        taken->sent_ns = plain->sent_ns;
        taken->seen_ns = o->size > PLAIN16 ? plain->seen_ns : 0;
        taken->right = o->size == PLAIN16 || kit_right(plain->data, kit_data_length(), plain->seq);
    } else if (o->type == KIT_COMPLEX) {
        complex_read(sample, taken);
    } else if (o->type == KIT_SIMPLE) {
        const perf_Simple *simple = sample;
        taken->seq = (uint32_t)simple->index;
        taken->right = kit_right(simple->data._buffer, simple->data._length, taken->seq);
    } else {
        const perf_Sample *bytes = sample;
        taken->seq = bytes->seq;
        taken->sent_ns = bytes->sent_ns;
        taken->seen_ns = bytes->seen_ns;
        taken->right = kit_right(bytes->data._buffer, bytes->data._length, bytes->seq);
    }
}

void answer_fill(void *answer, const void *sample, const struct kit_taken *taken)
{
    if (acknowledged()) {
        ((perf_Ack *)answer)->index = (int32_t)taken->seq;
    } else if (o->type == KIT_PLAIN) {
        struct plain *plain = answer;
        plain->seq = taken->seq;
        plain->sent_ns = taken->sent_ns;
        if (o->size > PLAIN16) {
            plain->seen_ns = taken->taken_ns;
            kit_fill(plain->data, kit_data_length(), taken->seq);
        }
    } else {
        perf_Sample *bytes = answer;
        *bytes = *(const perf_Sample *)sample;
        bytes->seen_ns = taken->taken_ns;
    }
}

void answer_read(const void *answer, struct kit_taken *taken)
{
    if (!acknowledged()) {
        sample_read(answer, taken);
        return;
    }
    taken->seq = (uint32_t)((const perf_Ack *)answer)->index;
    taken->sent_ns = taken->seen_ns = 0;
    taken->right = true;
}
