/* pub, crowd and sub: a stream of numbered samples, and the tally of what came. */
#include "kit_internal.h"

#include <pthread.h>
#include <stdlib.h>

/* When a pub whose writes are all refused gives up: after so many, for so long. Each
 * may have taken as long as the middleware blocks, or no time at all; fewer or
 * shorter would judge a reader's short pause as broken. */
enum { REFUSED_IN_A_ROW_MAX = 100 };
#define REFUSED_NS ((int64_t)SECOND_NS)

/* README.md's figures: how long a reliable pub waits for the acknowledgements, and
 * when a sub has taken all that is on its way. */
#define DRAIN_NS (5 * (int64_t)SECOND_NS)
#define SILENCE_NS ((int64_t)200000000)

/* A sub that does not fall silent after `end` stops in any case after this long. */
#define LINGER_MAX_NS (10 * (int64_t)SECOND_NS)

/* How often a sub looks whether `end` has come, or silence. */
enum { LOOK_NS = 20000000 };

/* What one thread writes: of several each has every so manieth number, and rows of its own. */
struct part {
    const struct kit_port *port;
    uint64_t first;   /* its first number */
    uint64_t written; /* warm-up included */
    uint64_t refused;
    struct kit_row *rows;
    size_t capacity;
    int64_t begin_ns, start_ns, stop_ns;
    pthread_t thread;
};

/* How many of the numbers of thread `first` are below `seq`. */
static uint64_t below(uint64_t seq, uint64_t first)
{
    const uint32_t threads = kit_options.threads;
    return seq > first ? (seq - first + threads - 1) / threads : 0;
}

static uint64_t number_of(const struct part *part, uint64_t written)
{
    return part->first + written * kit_options.threads;
}

/* Waits until its next sample may be sent. */
static void pace(const struct part *part, int64_t *burst_ns)
{
    const struct kit_options *o = &kit_options;
    const bool spin = o->wait == KIT_SPIN;

    if (o->period_ns != 0) {
        kit_sleep_until(part->begin_ns + (int64_t)part->written * o->period_ns, spin);
    } else if (o->burst != 0 && part->written % o->burst == 0) {
        if (part->written != 0)
            kit_sleep_until(*burst_ns + o->interval_ns, spin);
        *burst_ns = kit_now();
    }
}

static void write_all(struct part *part)
{
    const struct kit_options *o = &kit_options;
    const uint64_t limit = o->count != 0 ? o->warmup + o->count : UINT64_MAX;
    int64_t burst_ns = part->begin_ns, refused_since_ns = 0;
    unsigned long refused_in_a_row = 0;

    for (uint64_t seq = part->first; seq < limit; seq = number_of(part, part->written)) {
        if (refused_in_a_row == 0)
            pace(part, &burst_ns);
        const int64_t sent_ns = part->port->send(part->port->context, seq);
        /* The sample that was refused is written again: a number that never went
         * out would look like a loss. */
        if (sent_ns == 0) {
            part->refused += seq >= o->warmup;
            if (refused_in_a_row++ == 0)
                refused_since_ns = kit_now();
            if (refused_in_a_row >= REFUSED_IN_A_ROW_MAX && kit_now() - refused_since_ns >= REFUSED_NS)
                kit_failed("%lu writes in a row were refused after %llu samples", refused_in_a_row,
                           (unsigned long long)seq);
        } else {
            refused_in_a_row = 0;
            if (part->written < part->capacity)
                part->rows[part->written] = (struct kit_row){(uint64_t)sent_ns, 0, (uint64_t)kit_now()};
            if (seq >= o->warmup && seq - o->warmup < o->threads)
                part->start_ns = sent_ns;
            part->written++;
        }
        const int64_t now = sent_ns != 0 ? sent_ns : kit_now();
        if (o->duration_ns != 0 && part->start_ns != 0 && now - part->start_ns >= o->duration_ns)
            break;
    }
    part->stop_ns = kit_now();
}

static void finish(const struct part *part)
{
    if (part->port->drain != NULL)
        part->port->drain(part->port->context, DRAIN_NS);
}

static struct part *parts_new(const struct kit_port *ports)
{
    const uint32_t threads = kit_options.threads;
    struct part *parts = calloc(threads, sizeof *parts);
    if (parts == NULL)
        kit_failed("no memory for %u threads", threads);
    kit_table.parts = threads;
    for (uint32_t i = 0; i < threads; i++) {
        const size_t capacity = kit_table.capacity / threads;
        parts[i] = (struct part){
            .port = &ports[i], .first = i, .capacity = capacity, .rows = kit_table.rows + i * capacity};
    }
    return parts;
}

/* Says `stop` and `done` for all threads. The file ends with what each has written. */
static void done(const struct part *parts)
{
    const struct kit_options *o = &kit_options;
    const uint32_t threads = o->threads;
    uint64_t sent = 0, refused = 0, least = UINT64_MAX;
    int64_t start_ns = INT64_MAX, stop_ns = 0;

    for (const struct part *part = parts; part < parts + threads; part++) {
        const uint64_t kept = part->written < part->capacity ? part->written : part->capacity;
        least = kept < least ? kept : least;
        refused += part->refused;
        const uint64_t warmup = below(o->warmup, part->first);
        sent += part->written > warmup ? part->written - warmup : 0;
        start_ns = part->start_ns < start_ns ? part->start_ns : start_ns;
        stop_ns = part->stop_ns > stop_ns ? part->stop_ns : stop_ns;
    }
    kit_stop(least * threads);
    kit_done(",\"sent\":%llu,\"refused\":%llu,\"start_ns\":%lld,\"stop_ns\":%lld", (unsigned long long)sent,
             (unsigned long long)refused, (long long)start_ns, (long long)stop_ns);
}

void kit_pub(const struct kit_port *port, const char *wait)
{
    kit_options.threads = 1;
    struct part *part = parts_new(port);
    kit_say_ready(wait);
    kit_await_go();
    part->begin_ns = kit_now();
    write_all(part);
    finish(part);
    done(part);
}

static void *run_part(void *part)
{
    write_all(part);
    finish(part);
    return NULL;
}

void kit_crowd(const struct kit_port *ports, const char *wait)
{
    const uint32_t threads = kit_options.threads;
    struct part *parts = parts_new(ports);
    kit_say_ready(wait);
    kit_await_go();
    const int64_t begin_ns = kit_now();
    for (uint32_t i = 0; i < threads; i++) {
        parts[i].begin_ns = begin_ns;
        if (pthread_create(&parts[i].thread, NULL, run_part, &parts[i]) != 0)
            kit_failed("no thread");
    }
    for (uint32_t i = 0; i < threads; i++)
        pthread_join(parts[i].thread, NULL);
    done(parts);
}

/* One for each thread that writes: one may be any number of samples ahead of the others. */
static struct kit_tally *tallies;
static size_t noted; /* rows of the table in use */
static int64_t taken_ns; /* when anything came last, corrupt or not */

void kit_sub_new(void)
{
    const struct kit_options *o = &kit_options;
    tallies = calloc(o->threads, sizeof *tallies);
    if (tallies == NULL)
        kit_failed("no memory for the tallies of %u threads", o->threads);
    for (uint32_t i = 0; i < o->threads; i++)
        kit_tally_new(&tallies[i], below(o->warmup, i), o->count != 0 ? below(o->warmup + o->count, i) : 0);
}

/* Returns whether it is one to note. */
static bool count(const struct kit_taken *taken)
{
    const uint32_t threads = kit_options.threads;
    /* A division for each sample is time that is not the peer's. */
    if (threads == 1)
        return kit_tally_add(tallies, taken->seq, taken->right, taken->taken_ns);
    return kit_tally_add(&tallies[taken->seq % threads], taken->seq / threads, taken->right, taken->taken_ns);
}

void kit_sub_took(const struct kit_taken *taken)
{
    __atomic_store_n(&taken_ns, taken->taken_ns, __ATOMIC_RELAXED);
    if (count(taken) && noted < kit_table.capacity)
        kit_table.rows[noted++] =
            (struct kit_row){(uint64_t)taken->sent_ns, taken->seq, (uint64_t)taken->taken_ns};
}

static void say_counts(void)
{
    struct kit_tally all = {0};
    uint64_t lost = 0;

    for (const struct kit_tally *one = tallies; one < tallies + kit_options.threads; one++) {
        lost += kit_tally_lost(one);
        all.received += one->received;
        all.out_of_order += one->out_of_order;
        all.duplicates += one->duplicates;
        all.corrupt += one->corrupt;
        if (one->received > 0 && (all.first_ns == 0 || one->first_ns < all.first_ns))
            all.first_ns = one->first_ns;
        all.last_ns = one->last_ns > all.last_ns ? one->last_ns : all.last_ns;
    }
    kit_done(",\"received\":%llu,\"lost\":%llu,\"out_of_order\":%llu,\"duplicates\":%llu,\"corrupt\":%llu,"
             "\"bytes\":%llu,\"first_ns\":%lld,\"last_ns\":%lld",
             (unsigned long long)all.received, (unsigned long long)lost, (unsigned long long)all.out_of_order,
             (unsigned long long)all.duplicates, (unsigned long long)all.corrupt,
             (unsigned long long)(all.received * kit_options.size), (long long)all.first_ns,
             (long long)all.last_ns);
}

void kit_sub(const struct kit_port *port, const char *wait)
{
    int64_t ended_ns = 0;

    kit_say_ready(wait);
    for (;;) {
        const int64_t now = kit_now();
        const int64_t last_ns = __atomic_load_n(&taken_ns, __ATOMIC_RELAXED);
        if (ended_ns == 0 && kit_ended())
            ended_ns = now;
        if (ended_ns != 0 && ((now - ended_ns >= SILENCE_NS && now - last_ns >= SILENCE_NS) ||
                              now - ended_ns >= LINGER_MAX_NS))
            break;
        if (port->poll != NULL)
            port->poll(port->context, kit_options.wait == KIT_SPIN ? 0 : LOOK_NS);
        else if (ended_ns == 0)
            kit_await_end();
        else
            kit_sleep_until(now + LOOK_NS, false);
    }
    kit_table_save(noted);
    say_counts();
}
