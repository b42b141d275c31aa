/* What the kit's files share with each other and adapters do not see. */
#ifndef PERF_KIT_INTERNAL_H
#define PERF_KIT_INTERNAL_H

#include "kit.h"

enum { SECOND_NS = 1000000000 };

/* The one set of options of this process. */
extern struct kit_options kit_options;

/* options.c: fills kit_options or ends the process. */
void kit_parse(int argc, char **argv);

/* control.c */
void kit_control_start(void);
/* One line to the driver, flushed. */
void kit_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void kit_say_ready(const char *wait);
/* Waits for the next `go`, or for `end`. */
void kit_await_go(void);
void kit_await_end(void);
/* Says `stop`, waits for `go`, writes the file of samples: what is in rows
 * [0, length). Then it is the caller's turn to say `done`. */
void kit_stop(size_t length);
/* Says {"event":"done"FIELDS} and starts the time that is left to exit. */
void kit_done(const char *fields, ...) __attribute__((format(printf, 1, 2)));

/* table.c: three times a sample. */
struct kit_row {
    uint64_t first, second, third;
};
struct kit_table {
    struct kit_row *rows;
    size_t capacity;
    size_t parts; /* as many threads have a part each, in which are the rows that are theirs in turn */
};
extern struct kit_table kit_table;
void kit_table_new(void);
void kit_table_save(size_t length);

/* tally.c: loss, order and duplicates of a stream that is numbered from `base`. */
struct kit_tally {
    uint64_t *bits;    /* ring of one bit a number: came already */
    uint64_t base;     /* the first number that counts */
    uint64_t limit;    /* numbers from here on are corrupt; 0: none */
    uint64_t next;     /* one above the highest number so far, at least `base` */
    uint64_t received; /* right, and for the first time */
    uint64_t out_of_order, duplicates, corrupt;
    int64_t first_ns, last_ns;
};
void kit_tally_new(struct kit_tally *tally, uint64_t base, uint64_t limit);
/* Returns whether it is one to note: right, measured and for the first time. */
bool kit_tally_add(struct kit_tally *tally, uint64_t seq, bool right, int64_t taken_ns);
uint64_t kit_tally_lost(const struct kit_tally *tally);

/* The roles that take, called by kit_took(). */
void kit_ping_took(const struct kit_taken *taken);
void kit_pong_took(const struct kit_taken *taken);
void kit_sub_took(const struct kit_taken *taken);
void kit_local_took(const struct kit_taken *taken);
void kit_sub_new(void);

/* schedule.c: the pace of a sender. */
struct kit_schedule {
    int64_t start_ns; /* when sample 0 is due; 0 in a closed loop */
    /* The first write after the sender's last wait, less the time that it ran since the
     * sample was due: before, it could not have sent what was due. */
    int64_t woke_ns;
    uint64_t late;     /* measured samples over a period behind */
    int64_t behind_ns; /* from due to write, of all measured samples together */
};
/* Sample 0 is due a period from now. */
void kit_schedule_begin(struct kit_schedule *schedule);
/* When a sample is due; in a closed loop at once, which is 0. */
int64_t kit_due(const struct kit_schedule *schedule, uint64_t seq);
/* Its sender did not wait for a sample: it was late, or an answer kept it until then. */
#define KIT_NO_WAIT ((int64_t)-1)
/* From when a sample counts that was written then. `ran_ns`: its sender had nothing to do
 * but to wait for it, and ran so long in that wait since it was due; or KIT_NO_WAIT. */
int64_t kit_counts_from(struct kit_schedule *schedule, uint64_t seq, int64_t sent_ns, int64_t ran_ns);

/* The last wait of a sender, or all of its looks if it spins. */
struct kit_waited {
    int64_t since_ns, cpu_ns;
    bool spins;
};
struct kit_waited kit_wait_begin(bool spin);
/* The CPU time of this thread since then: what is more than it can have had before the
 * sample was due, or than a look takes. */
int64_t kit_ran_since(const struct kit_waited *wait, int64_t due_ns);

/* ping.c: the `done` of ping and local. */
void kit_ping_done(uint64_t sent, uint64_t received, uint64_t corrupt, uint64_t duplicates,
                   const struct kit_schedule *schedule);

#endif
