/* pub and sub: a stream of numbered samples, and the tally of what came. */
#include "kit_internal.h"

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

static struct {
    uint64_t sent, refused;
    int64_t start_ns, stop_ns;
} pub;

/* Waits until sample `seq` may be sent. */
static void pace(uint64_t seq, int64_t start_ns, int64_t *burst_ns)
{
    const struct kit_options *o = &kit_options;
    const bool spin = o->wait == KIT_SPIN;

    if (o->period_ns != 0) {
        kit_sleep_until(start_ns + (int64_t)seq * o->period_ns, spin);
    } else if (o->burst != 0 && seq % o->burst == 0) {
        if (seq != 0)
            kit_sleep_until(*burst_ns + o->interval_ns, spin);
        *burst_ns = kit_now();
    }
}

static void write_all(const struct kit_port *port)
{
    const struct kit_options *o = &kit_options;
    const uint64_t limit = o->count != 0 ? o->warmup + o->count : UINT64_MAX;
    const int64_t start_ns = kit_now();
    int64_t burst_ns = start_ns, refused_since_ns = 0;
    unsigned long refused_in_a_row = 0;

    for (uint64_t seq = 0; seq < limit;) {
        if (refused_in_a_row == 0)
            pace(seq, start_ns, &burst_ns);
        const int64_t sent_ns = port->send(port->context, seq);
        /* The sample that was refused is written again: a number that never went
         * out would look like a loss. */
        if (sent_ns == 0) {
            pub.refused += seq >= o->warmup;
            if (refused_in_a_row++ == 0)
                refused_since_ns = kit_now();
            if (refused_in_a_row >= REFUSED_IN_A_ROW_MAX && kit_now() - refused_since_ns >= REFUSED_NS)
                kit_failed("%lu writes in a row were refused after %llu samples", refused_in_a_row,
                           (unsigned long long)seq);
        } else {
            refused_in_a_row = 0;
            if (seq < kit_table.capacity)
                kit_table.rows[seq] = (struct kit_row){(uint64_t)sent_ns, 0, (uint64_t)kit_now()};
            if (seq == o->warmup)
                pub.start_ns = sent_ns;
            seq++;
            pub.sent = seq;
        }
        const int64_t now = sent_ns != 0 ? sent_ns : kit_now();
        if (o->duration_ns != 0 && pub.start_ns != 0 && now - pub.start_ns >= o->duration_ns)
            break;
    }
    pub.stop_ns = kit_now();
}

void kit_pub(const struct kit_port *port, const char *wait)
{
    const struct kit_options *o = &kit_options;

    kit_say_ready(wait);
    kit_await_go();
    write_all(port);
    if (port->drain != NULL)
        port->drain(port->context, DRAIN_NS);
    kit_stop(pub.sent < kit_table.capacity ? pub.sent : kit_table.capacity);
    kit_done(",\"sent\":%llu,\"refused\":%llu,\"start_ns\":%lld,\"stop_ns\":%lld",
             (unsigned long long)(pub.sent > o->warmup ? pub.sent - o->warmup : 0),
             (unsigned long long)pub.refused, (long long)pub.start_ns, (long long)pub.stop_ns);
}

static struct kit_tally tally;
static size_t noted; /* rows of the table in use */
static int64_t taken_ns; /* when anything came last, corrupt or not */

void kit_sub_new(void)
{
    const struct kit_options *o = &kit_options;
    kit_tally_new(&tally, o->warmup, o->count != 0 ? o->warmup + o->count : 0);
}

void kit_sub_took(const struct kit_taken *taken)
{
    __atomic_store_n(&taken_ns, taken->taken_ns, __ATOMIC_RELAXED);
    if (kit_tally_add(&tally, taken->seq, taken->right, taken->taken_ns) && noted < kit_table.capacity)
        kit_table.rows[noted++] =
            (struct kit_row){(uint64_t)taken->sent_ns, taken->seq, (uint64_t)taken->taken_ns};
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
    kit_done(",\"received\":%llu,\"lost\":%llu,\"out_of_order\":%llu,\"duplicates\":%llu,\"corrupt\":%llu,"
             "\"bytes\":%llu,\"first_ns\":%lld,\"last_ns\":%lld",
             (unsigned long long)tally.received, (unsigned long long)kit_tally_lost(&tally),
             (unsigned long long)tally.out_of_order, (unsigned long long)tally.duplicates,
             (unsigned long long)tally.corrupt, (unsigned long long)(tally.received * kit_options.size),
             (long long)tally.first_ns, (long long)tally.last_ns);
}
