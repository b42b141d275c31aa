/* local: both ends in one process. In one thread: write, take, and again. In two:
 * ping here, pong in a thread of the kit's. */
#include "kit_internal.h"

#include <pthread.h>

/* When a sample that was not taken counts as lost, as for ping. */
#define TAKE_LIMIT_NS ((int64_t)SECOND_NS)

/* How long the pong's thread waits at a time. */
enum { LOOK_NS = 20000000 };

static struct {
    struct kit_row *rows;
    uint64_t sent; /* one above the last number sent */
    bool taken;    /* the last one sent */
    uint64_t corrupt, duplicates;
    struct kit_schedule schedule;
} local;

void kit_local_took(const struct kit_taken *taken)
{
    if (!taken->right || taken->seq >= local.sent) {
        local.corrupt++;
    } else if (local.rows[taken->seq].third != 0) {
        local.duplicates++;
    } else {
        local.rows[taken->seq].third = (uint64_t)taken->taken_ns;
        local.taken = taken->seq + 1 == local.sent;
    }
}

static void write_and_take(const struct kit_port *port, uint64_t seq, int64_t ran_ns)
{
    local.taken = false;
    local.sent = seq + 1;
    const int64_t sent_ns = port->send(port->context, seq);
    const int64_t after_ns = kit_now();
    const int64_t written_ns = sent_ns != 0 ? sent_ns : after_ns;
    local.rows[seq].first = (uint64_t)kit_counts_from(&local.schedule, seq, written_ns, ran_ns);
    local.rows[seq].second = (uint64_t)after_ns;
    if (sent_ns == 0)
        return; /* refused, thus lost */
    port->poll(port->context, 0);
    while (!local.taken && kit_now() - after_ns < TAKE_LIMIT_NS)
        port->poll(port->context, 0);
}

static void one_thread(const struct kit_port *port)
{
    const struct kit_options *o = &kit_options;
    int64_t measured_since_ns = kit_now();

    kit_schedule_begin(&local.schedule);
    for (uint64_t seq = 0; seq < kit_table.capacity; seq++) {
        const bool waited = kit_sleep_until(kit_due(&local.schedule, seq), o->wait == KIT_SPIN);
        if (seq == o->warmup)
            measured_since_ns = kit_now();
        else if (seq > o->warmup && o->duration_ns != 0 && kit_now() - measured_since_ns >= o->duration_ns)
            break;
        write_and_take(port, seq, waited ? 0 : KIT_NO_WAIT);
    }
}

static bool over;

static void *pong_thread(void *argument)
{
    const struct kit_port *pong = argument;
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE))
        pong->poll(pong->context, kit_options.wait == KIT_SPIN ? 0 : LOOK_NS);
    return NULL;
}

static void two_threads(const struct kit_port *port, const struct kit_port *pong, const char *wait)
{
    pthread_t thread;

    if (pong->poll == NULL) {
        kit_ping(port, wait);
        return;
    }
    if (pthread_create(&thread, NULL, pong_thread, (void *)pong) != 0)
        kit_failed("no thread for pong");
    kit_ping(port, wait);
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
}

void kit_local(const struct kit_port *port, const struct kit_port *pong, const char *wait)
{
    uint64_t received = 0;

    if (kit_options.transport == KIT_INTRA) {
        two_threads(port, pong, wait);
        return;
    }
    local.rows = kit_table.rows;
    kit_say_ready(wait);
    kit_await_go();
    one_thread(port);
    kit_stop(local.sent);
    for (uint64_t seq = 0; seq < local.sent; seq++)
        received += local.rows[seq].third != 0;
    kit_ping_done(local.sent, received, local.corrupt, local.duplicates, &local.schedule);
}
