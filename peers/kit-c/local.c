/* local: both ends in one process, in one thread or in two. */
#include "kit_internal.h"

#include <pthread.h>
#include <semaphore.h>

/* When a sample that was not taken counts as lost, as for ping. */
#define TAKE_LIMIT_NS ((int64_t)SECOND_NS)

/* How long the taker waits at a time, and thus looks whether all is over. */
enum { LOOK_NS = 20000000 };

static struct {
    const struct kit_port *port;
    struct kit_row *rows;
    uint64_t sent;  /* one above the last number sent */
    uint64_t taken; /* one above the last number taken */
    sem_t took;     /* wakes a sender that sleeps until its sample is taken */
    bool sleeps, spin, over;
    uint64_t corrupt, duplicates, late;
} local;

void kit_local_took(const struct kit_taken *taken)
{
    if (local.rows == NULL)
        return;
    if (!taken->right || taken->seq >= __atomic_load_n(&local.sent, __ATOMIC_ACQUIRE)) {
        local.corrupt++;
        return;
    }
    struct kit_row *row = &local.rows[taken->seq];
    if (row->third != 0) {
        local.duplicates++;
        return;
    }
    row->third = (uint64_t)taken->taken_ns;
    __atomic_store_n(&local.taken, taken->seq + 1, __ATOMIC_RELEASE);
    if (local.sleeps)
        sem_post(&local.took);
}

static bool was_taken(uint64_t seq)
{
    return __atomic_load_n(&local.taken, __ATOMIC_ACQUIRE) > seq;
}

/* Waits until sample `seq` is taken, a second at most. */
static void await_take(uint64_t seq)
{
    const int64_t until_ns = kit_now() + TAKE_LIMIT_NS;
    const struct timespec until = {.tv_sec = until_ns / SECOND_NS, .tv_nsec = until_ns % SECOND_NS};

    if (kit_options.transport == KIT_THREAD && local.port->poll != NULL) {
        while (!was_taken(seq) && kit_now() < until_ns)
            local.port->poll(local.port->context, 0);
    } else if (local.sleeps) {
        while (!was_taken(seq) && sem_clockwait(&local.took, CLOCK_MONOTONIC, &until) == 0) {
        }
    } else {
        while (!was_taken(seq) && kit_now() < until_ns) {
        }
    }
}

static void send_all(void)
{
    const struct kit_options *o = &kit_options;
    const int64_t start_ns = kit_now();
    int64_t measured_since_ns = start_ns;

    for (uint64_t seq = 0; seq < kit_table.capacity; seq++) {
        if (o->period_ns != 0) {
            const int64_t due_ns = start_ns + (int64_t)seq * o->period_ns;
            kit_sleep_until(due_ns, local.spin);
            local.late += seq >= o->warmup && kit_now() - due_ns > o->period_ns;
        }
        if (seq == o->warmup)
            measured_since_ns = kit_now();
        else if (seq > o->warmup && o->duration_ns != 0 && kit_now() - measured_since_ns >= o->duration_ns)
            break;
        __atomic_store_n(&local.sent, seq + 1, __ATOMIC_RELEASE);
        const int64_t sent_ns = local.port->send(local.port->context, seq);
        const int64_t after_ns = kit_now();
        local.rows[seq].first = (uint64_t)(sent_ns != 0 ? sent_ns : after_ns);
        local.rows[seq].second = (uint64_t)after_ns;
        if (sent_ns != 0 && (o->period_ns == 0 || o->transport == KIT_THREAD))
            await_take(seq);
    }
    if (local.sent != 0)
        await_take(local.sent - 1);
}

static void *taker(void *unused)
{
    kit_punctual();
    while (!__atomic_load_n(&local.over, __ATOMIC_ACQUIRE))
        local.port->poll(local.port->context, local.spin ? 0 : LOOK_NS);
    return unused;
}

void kit_local(const struct kit_port *port, const char *wait)
{
    const struct kit_options *o = &kit_options;
    const bool threads = o->transport == KIT_INTRA && port->poll != NULL;
    pthread_t thread;

    local.port = port;
    local.spin = o->wait == KIT_SPIN;
    local.sleeps = o->transport == KIT_INTRA && !local.spin;
    sem_init(&local.took, 0, 0);
    local.rows = kit_table.rows;
    if (threads && pthread_create(&thread, NULL, taker, NULL) != 0)
        kit_failed("no second thread");
    kit_say_ready(wait);
    kit_await_go();
    kit_punctual();
    send_all();
    __atomic_store_n(&local.over, true, __ATOMIC_RELEASE);
    if (threads)
        pthread_join(thread, NULL);
    kit_stop(local.sent);

    uint64_t received = 0;
    for (uint64_t seq = o->warmup; seq < local.sent; seq++)
        received += local.rows[seq].third != 0;
    kit_done(",\"sent\":%llu,\"received\":%llu,\"corrupt\":%llu,\"duplicates\":%llu,\"late\":%llu",
             (unsigned long long)(local.sent > o->warmup ? local.sent - o->warmup : 0),
             (unsigned long long)received, (unsigned long long)local.corrupt,
             (unsigned long long)local.duplicates, (unsigned long long)local.late);
}
