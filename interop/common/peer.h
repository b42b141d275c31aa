/* What every C and C++ peer shares: the command line, the JSON lines it prints
 * and the tally of what arrived. Knows nothing of any vendor. The contract is
 * written down in ../README.md; a change here is a change of every peer. */
#ifndef INTEROP_PEER_H
#define INTEROP_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { EXIT_COMPLETE = 0, EXIT_BROKEN = 1, EXIT_USAGE = 2, EXIT_TIMED_OUT = 3 };

enum sample_type { TYPE_PLAIN, TYPE_KEYED, TYPE_SHAPE, TYPE_METRIC };
enum final_state { FINAL_NONE, FINAL_DISPOSE, FINAL_UNREGISTER };

/* The bounds of `color` and `name` in types.idl, with the terminating NUL. */
enum { COLOR_SIZE = 129, NAME_SIZE = 65 };

struct options {
    bool publisher;
    uint32_t domain;
    const char *topic;
    enum sample_type type;
    bool reliable;
    bool transient_local;
    uint32_t history_depth; /* 0: keep all */
    uint32_t size;          /* bytes of payload of Plain and Keyed */
    uint32_t count;
    uint32_t instances;
    double rate_hz; /* 0: as fast as it can */
    const char *partition; /* NULL: the default partition */
    enum final_state final_state; /* pub: what to do; sub: what to wait for */
    double timeout_s;
    uint32_t wait_matched;
    double linger_s;
    bool hold;
    bool late;
    bool quiet;
    const char *interface;
};

/* Reads the command line; prints one sentence to stderr and ends the process
 * with EXIT_USAGE when it is wrong. */
struct options options_parse(int argc, char **argv);

/* True for the types that have a key. */
bool type_keyed(enum sample_type type);
/* The instance of sample `seq`. */
uint32_t sample_id(const struct options *options, uint32_t seq);
/* The key of instance `id` of Metric and ShapeType, and its way back. */
void metric_name(uint32_t id, char name[NAME_SIZE]);
void shape_color(uint32_t id, char color[COLOR_SIZE]);
uint32_t id_of_string_key(const char *key);

void payload_fill(uint8_t *payload, uint32_t size, uint32_t seq);
bool payload_right(const uint8_t *payload, uint32_t size, uint32_t seq);

/* Seconds of the monotonic clock, and nanoseconds of the wall clock. */
double seconds_now(void);
int64_t unix_ns_now(void);
void sleep_until(double monotonic_s);

/* One JSON line each, flushed. */
void event_count(const char *event, uint64_t count);
void event_acknowledged(bool all);
/* Prints `matched` or `unmatched` if the count differs from `*last`. */
void event_matched(uint32_t count, uint32_t *last);

/* Waits for the line on stdin that `--hold` and `--late` ask for. */
void wait_for_stdin_line(void);

struct tally;

struct tally *tally_new(const struct options *options);
/* A sample with valid data. */
void tally_sample(struct tally *tally, uint32_t id, uint32_t seq, uint32_t size, bool right);
/* What a Metric says, for programs that show it: `taut demo` does. */
void event_metric(const struct options *options, const char *name, uint64_t seq, double value);
/* An instance that is no longer alive: FINAL_DISPOSE or FINAL_UNREGISTER. */
void tally_state(struct tally *tally, uint32_t id, enum final_state state);
bool tally_complete(const struct tally *tally);
/* Prints the summary and gives the exit code. */
int tally_finish(struct tally *tally);

#ifdef __cplusplus
}
#endif
#endif
