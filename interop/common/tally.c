/* What arrived, in which order, and the JSON lines that say so. */
#include "peer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Sequence numbers from here on count as corrupt, so that a wild number from
 * the wire cannot ask for a wild amount of memory. */
enum { SEQ_LIMIT = 1 << 22 };

struct tally {
    const struct options *options;
    uint8_t *seen;      /* per sequence number: how it arrived */
    int64_t *last;      /* per instance: the sequence number that came last, -1 for none */
    uint8_t *ended;     /* per instance: bit 0 disposed, bit 1 no writers */
    uint64_t received, distinct, out_of_order, duplicates, corrupt, disposed, no_writers;
};

bool type_keyed(enum sample_type type)
{
    return type != TYPE_PLAIN;
}

uint32_t sample_id(const struct options *options, uint32_t seq)
{
    return seq % options->instances;
}

void metric_name(uint32_t id, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "metric-%" PRIu32, id);
}

void shape_color(uint32_t id, char color[COLOR_SIZE])
{
    snprintf(color, COLOR_SIZE, "COLOR-%" PRIu32, id);
}

uint32_t id_of_string_key(const char *key)
{
    const char *dash = strchr(key, '-');
    return dash == NULL ? UINT32_MAX : (uint32_t)strtoul(dash + 1, NULL, 10);
}

void payload_fill(uint8_t *payload, uint32_t size, uint32_t seq)
{
    for (uint32_t i = 0; i < size; i++)
        payload[i] = (uint8_t)(seq + i);
}

bool payload_right(const uint8_t *payload, uint32_t size, uint32_t seq)
{
    for (uint32_t i = 0; i < size; i++)
        if (payload[i] != (uint8_t)(seq + i))
            return false;
    return true;
}

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int64_t unix_ns_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void sleep_until(double monotonic_s)
{
    struct timespec until = {.tv_sec = (time_t)monotonic_s};
    until.tv_nsec = (long)((monotonic_s - (double)until.tv_sec) * 1e9);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
    }
}

void event_count(const char *event, uint64_t count)
{
    printf("{\"event\":\"%s\",\"count\":%" PRIu64 "}\n", event, count);
    fflush(stdout);
}

void event_acknowledged(bool all)
{
    printf("{\"event\":\"acknowledged\",\"all\":%s}\n", all ? "true" : "false");
    fflush(stdout);
}

void event_matched(uint32_t count, uint32_t *last)
{
    if (count != *last)
        event_count(count > *last ? "matched" : "unmatched", count);
    *last = count;
}

void wait_for_stdin_line(void)
{
    int c;
    do
        c = getchar();
    while (c != '\n' && c != EOF);
}

struct tally *tally_new(const struct options *options)
{
    struct tally *tally = calloc(1, sizeof *tally);
    tally->options = options;
    tally->seen = calloc(SEQ_LIMIT, 1);
    tally->last = malloc(options->instances * sizeof *tally->last);
    tally->ended = calloc(options->instances, 1);
    for (uint32_t i = 0; i < options->instances; i++)
        tally->last[i] = -1;
    return tally;
}

void tally_sample(struct tally *tally, uint32_t id, uint32_t seq, uint32_t size, bool right)
{
    const struct options *options = tally->options;
    const bool sized = options->type == TYPE_PLAIN || options->type == TYPE_KEYED;

    tally->received++;
    if ((sized && size != options->size) || seq >= SEQ_LIMIT || id != sample_id(options, seq))
        right = false;
    if (!options->quiet) {
        printf("{\"event\":\"sample\",\"seq\":%" PRIu32 ",\"id\":%" PRIu32 ",\"size\":%" PRIu32
               ",\"valid\":true,\"ok\":%s}\n",
               seq, id, size, right ? "true" : "false");
        fflush(stdout);
    }
    if (!right) {
        tally->corrupt++;
        return;
    }
    if (tally->seen[seq]) {
        tally->duplicates++;
    } else {
        tally->seen[seq] = 1;
        tally->distinct++;
        if (seq < tally->last[id])
            tally->out_of_order++;
        tally->last[id] = seq;
    }
}

void event_metric(const struct options *options, const char *name, uint64_t seq, double value)
{
    /* A name that JSON would have to escape is none of ours. */
    const bool plain = name[strcspn(name, "\"\\\b\f\n\r\t")] == '\0';

    if (options->quiet || !plain || !isfinite(value))
        return;
    printf("{\"event\":\"metric\",\"name\":\"%s\",\"seq\":%" PRIu64 ",\"value\":%.17g}\n", name, seq, value);
    fflush(stdout);
}

void tally_state(struct tally *tally, uint32_t id, enum final_state state)
{
    const bool disposed = state == FINAL_DISPOSE;
    const uint8_t bit = disposed ? 1 : 2;

    if (!tally->options->quiet) {
        printf("{\"event\":\"instance\",\"id\":%" PRIu32 ",\"state\":\"%s\"}\n", id,
               disposed ? "disposed" : "no_writers");
        fflush(stdout);
    }
    if (id >= tally->options->instances) {
        tally->corrupt++;
    } else if ((tally->ended[id] & bit) == 0) {
        tally->ended[id] |= bit;
        if (disposed)
            tally->disposed++;
        else
            tally->no_writers++;
    }
}

bool tally_complete(const struct tally *tally)
{
    const uint64_t instances = tally->options->instances;

    if (tally->distinct < tally->options->count)
        return false;
    switch (tally->options->final_state) {
    case FINAL_DISPOSE:
        return tally->disposed == instances;
    case FINAL_UNREGISTER:
        return tally->no_writers == instances;
    default:
        return true;
    }
}

int tally_finish(struct tally *tally)
{
    const int code = tally_complete(tally) ? EXIT_COMPLETE : EXIT_TIMED_OUT;

    printf("{\"event\":\"summary\",\"received\":%" PRIu64 ",\"distinct\":%" PRIu64
           ",\"out_of_order\":%" PRIu64 ",\"duplicates\":%" PRIu64 ",\"corrupt\":%" PRIu64
           ",\"disposed\":%" PRIu64 ",\"no_writers\":%" PRIu64 "}\n",
           tally->received, tally->distinct, tally->out_of_order, tally->duplicates, tally->corrupt,
           tally->disposed, tally->no_writers);
    fflush(stdout);
    free(tally->seen);
    free(tally->last);
    free(tally->ended);
    free(tally);
    return code;
}
