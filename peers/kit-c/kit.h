/* What every C and C++ adapter of `taut perf` shares: the command line, the lines
 * on stdin and stdout, the roles' loops, the table of times, the tally of a
 * subscriber and the payload. Knows nothing of any middleware; ../README.md is the
 * contract that it keeps.
 *
 * An adapter calls kit_begin() first, creates its entities, and hands a `kit_port`
 * to the function of its role (kit_ping, kit_sub ...), which plays the role from
 * `ready` to `done`. What arrives goes to kit_took(), in either style:
 *   callback  the middleware calls the adapter, which takes and calls kit_took();
 *             `poll` is NULL. A closed loop's next sample is sent from inside of
 *             kit_took(), thus from inside of the callback.
 *   polling   `poll` waits, takes and calls kit_took(); all of it, the sending
 *             too, happens in the thread that plays the role.
 * A process plays one role, so the kit keeps one state and no handles. */
#ifndef PERF_KIT_H
#define PERF_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
#define KIT_NORETURN [[noreturn]]
extern "C" {
#else
#define KIT_NORETURN _Noreturn
#endif

enum kit_role {
    KIT_PING, KIT_PONG, KIT_PUB, KIT_SUB, KIT_CROWD, KIT_LOCAL, KIT_CDR, KIT_ENTITIES, KIT_NODE, KIT_DAEMON
};
enum kit_transport {
    KIT_THREAD, KIT_INTRA, KIT_SHM, KIT_UDP, KIT_XDP, KIT_XDP_L2, KIT_DPDK
};
enum kit_wait { KIT_BLOCK, KIT_LISTENER, KIT_WAITSET, KIT_SPIN };
enum kit_type { KIT_BYTES, KIT_PLAIN, KIT_SIMPLE, KIT_COMPLEX };

struct kit_options {
    enum kit_role role;
    enum kit_transport transport;
    enum kit_wait wait;
    enum kit_type type;
    const char *variant; /* "" for none */
    const char *interface_name;
    const char *address;
    const char *remote;
    const char *samples; /* "" for none */
    uint32_t domain;
    uint32_t history_depth; /* 0: keep all */
    uint32_t size;
    uint32_t remotes;
    uint32_t index, nodes, endpoints;
    uint32_t threads; /* that write at once, 1 at least */
    uint32_t burst;
    bool reliable;
    bool multicast;
    bool loan;
    uint64_t warmup;
    uint64_t count;      /* 0: no limit but the duration */
    int64_t duration_ns; /* 0: no limit but the count */
    int64_t period_ns;
    int64_t interval_ns;
};

/* What an adapter knows of a sample that it took. */
struct kit_taken {
    uint64_t seq;     /* `index` of simple, complex and Ack */
    int64_t sent_ns;  /* 0 where the type has none */
    int64_t seen_ns;  /* 0 where the type has none */
    int64_t taken_ns; /* kit_now(), read right after the take */
    bool right;       /* length, first and last byte are as sent */
};

struct kit_port {
    void *context;
    /* Fills sample `seq`, reads kit_now(), writes. Returns that time, or 0 when
     * the middleware refused the sample. Called from one thread at a time. */
    int64_t (*send)(void *context, uint64_t seq);
    /* NULL in callback style. Waits for data until `timeout_ns` is over (0: only
     * looks), takes all there is and calls kit_took() for each. */
    void (*poll)(void *context, int64_t timeout_ns);
    /* May be NULL. pub, after its last sample: sends what is held back, and waits, if
     * reliable, until all is acknowledged, within the time. */
    void (*drain)(void *context, int64_t timeout_ns);
};

/* --- begin and end ------------------------------------------------------- */

/* Reads the command line, prints `info` and exits for the role `info`, and makes
 * the table of times ready. From here on the process ends by itself when stdin
 * closes, and what libraries print to stdout goes to stderr. Call it first. */
const struct kit_options *kit_begin(int argc, char **argv, const char *info);

/* The line that ends the process, and its exit. */
KIT_NORETURN void kit_absent(const char *format, ...) __attribute__((format(printf, 1, 2)));
KIT_NORETURN void kit_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Called, by whichever thread notices, when stdin closes or kit_failed() ends the
 * process: for what the system does not clean up, as named shared memory. Less than
 * a second; the process exits after it. */
void kit_on_abandon(void (*hook)(void));

/* --- the roles, each from `ready` to `done` ------------------------------- */

/* `wait` is how the adapter really waits: "listener", "waitset", "spin". After
 * these return the adapter deletes its entities and returns 0 from main(); the
 * process ends in any case 2 s after `done`. */
void kit_ping(const struct kit_port *port, const char *wait);
void kit_pong(const struct kit_port *port, const char *wait); /* `send` is not called */
void kit_pub(const struct kit_port *port, const char *wait);
void kit_sub(const struct kit_port *port, const char *wait); /* `send` is not called */
/* One port for each of `threads`: each is called from a thread of the kit's own, all at once. */
void kit_crowd(const struct kit_port *ports, const char *wait);
/* thread: one port that writes and polls, in this thread; `pong` is NULL. intra: ping
 * in this thread and pong in one of the kit's, which calls nothing but pong->poll, and
 * that answers what it takes; kit_took() is for ping's answers alone. Callback style
 * is right only if the middleware calls back from threads of its own. */
void kit_local(const struct kit_port *port, const struct kit_port *pong, const char *wait);

/* `encode` and `decode` do the sample of --type and --size once. */
void kit_cdr(void (*encode)(void *context), void (*decode)(void *context), void *context);

/* One step of `entities`: `make` is called `count` times. */
struct kit_step {
    const char *name;
    uint32_t count;
    void (*make)(void *context, uint32_t i);
};
void kit_entities(const struct kit_step *steps, size_t length, void *context);

/* `create` makes all entities; `matched` says whether all are matched, and is
 * asked every 100 us. */
void kit_node(void (*create)(void *context), bool (*matched)(void *context), void *context);

/* Runs `argv` as a child until `end`; `answers` says whether it is up, and is asked
 * every 10 ms; `sweep`, if not NULL, removes what it leaves behind when it has ended.
 * `argv` NULL: there is nothing to run. */
void kit_daemon(char *const argv[], bool (*answers)(void *context), void (*sweep)(void), void *context);

/* A sample was taken (ping: an answer). Thread-safe against the role's own thread,
 * not against itself. */
void kit_took(const struct kit_taken *taken);

/* --- helpers -------------------------------------------------------------- */

static inline int64_t kit_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Returns at `until_ns`, asleep or spinning until then; 0 is at once. True if there was
 * something to wait for. */
bool kit_sleep_until(int64_t until_ns, bool spin);

/* Asks `condition` every 200 us; kit_failed("... after 60 s") if it never holds. */
void kit_await(bool (*condition)(void *context), void *context, const char *what);

/* True after `end`. For loops of an adapter's own. */
bool kit_ended(void);

/* Octets of `data` of --type and --size. */
size_t kit_data_length(void);
/* Items of `complex` of --size. */
uint32_t kit_item_count(void);

/* Sets the two bytes that kit_right() looks at; what is between stays as it is. */
void kit_fill(uint8_t *data, size_t length, uint64_t seq);
bool kit_right(const uint8_t *data, size_t length, uint64_t seq);

/* --- packed samples, for middlewares without IDL -------------------------- */

/* The length of every packed sample of --type and --size, and of an Ack. */
size_t kit_packed_length(void);
enum { KIT_ACK_LENGTH = 4 };
/* Writes sample `seq` with the time that it returns, into memory that began as
 * zeros or held one before. */
int64_t kit_pack(uint8_t *packed, uint64_t seq);
/* Reads a sample; `taken_ns` is left as it is. */
void kit_unpack(const uint8_t *packed, size_t length, struct kit_taken *taken);
/* Turns a taken sample into its answer in place; returns the answer's length. */
size_t kit_pack_answer(uint8_t *packed, const struct kit_taken *taken);
/* Reads an answer, be it a sample or an Ack. */
void kit_unpack_answer(const uint8_t *packed, size_t length, struct kit_taken *taken);

#ifdef __cplusplus
}
#endif
#endif
