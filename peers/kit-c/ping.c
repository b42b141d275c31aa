/* ping and pong. A closed loop sends the next sample as soon as the answer is
 * there, from inside of kit_took(); an open loop sends by the clock. */
#include "kit_internal.h"

#include <pthread.h>

/* When a sample that has no answer counts as lost: README.md's figure. */
#define ANSWER_LIMIT_NS ((int64_t)SECOND_NS)

/* How often a spinning loop looks whether an answer is overdue: rarely enough to
 * cost nothing, and still within a millisecond. */
enum { POLLS_A_LOOK = 64 };

/* A polling pong looks for `end` so often. */
enum { END_LOOK_NS = 20000000 };

static struct {
    const struct kit_port *port;
    struct kit_row *rows;
    uint64_t limit;  /* numbers end here */
    bool closed;
    /* Closed loop: the sample whose answer is out. Whoever moves it on, the taker
     * or the one who gives up, sends the next. */
    uint64_t awaited;
    bool finished;
    uint64_t sent; /* one above the last number sent */
    int64_t measured_since_ns;
    uint64_t corrupt, duplicates;
    bool took; /* an answer came; of interest where one thread sends and polls */
    struct kit_schedule schedule;
    pthread_mutex_t lock;
    pthread_cond_t finish;
} ping = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note(uint64_t *at, int64_t value)
{
    __atomic_store_n(at, (uint64_t)value, __ATOMIC_RELAXED);
}

static int64_t noted(uint64_t *at)
{
    return (int64_t)__atomic_load_n(at, __ATOMIC_RELAXED);
}

static bool finished(void)
{
    return __atomic_load_n(&ping.finished, __ATOMIC_ACQUIRE);
}

static bool move_on_from(uint64_t seq)
{
    return __atomic_compare_exchange_n(&ping.awaited, &seq, seq + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Whether the time for measuring is over before `seq` is sent. */
static bool time_over(uint64_t seq)
{
    if (seq < kit_options.warmup || kit_options.duration_ns == 0)
        return false;
    const int64_t now = kit_now();
    if (seq == kit_options.warmup)
        ping.measured_since_ns = now;
    return now - ping.measured_since_ns >= kit_options.duration_ns;
}

/* `ran_ns`: see kit_counts_from(). */
static void send_one(uint64_t seq, int64_t ran_ns)
{
    __atomic_store_n(&ping.sent, seq + 1, __ATOMIC_RELEASE);
    const int64_t sent_ns = ping.port->send(ping.port->context, seq);
    /* A sample that was refused gets no answer, and is lost like any other. */
    const int64_t written_ns = sent_ns != 0 ? sent_ns : kit_now();
    note(&ping.rows[seq].first, kit_counts_from(&ping.schedule, seq, written_ns, ran_ns));
}

/* Closed loop: sends `seq`, or finishes. */
static void next(uint64_t seq)
{
    if (seq < ping.limit && !time_over(seq)) {
        send_one(seq, KIT_NO_WAIT);
        return;
    }
    pthread_mutex_lock(&ping.lock);
    __atomic_store_n(&ping.finished, true, __ATOMIC_RELEASE);
    pthread_cond_signal(&ping.finish);
    pthread_mutex_unlock(&ping.lock);
}

void kit_ping_took(const struct kit_taken *taken)
{
    if (ping.rows == NULL)
        return; /* before `go`, nothing is ours */
    ping.took = true;
    if (!taken->right || taken->seq >= __atomic_load_n(&ping.sent, __ATOMIC_ACQUIRE)) {
        __atomic_fetch_add(&ping.corrupt, 1, __ATOMIC_RELAXED);
        return;
    }
    struct kit_row *row = &ping.rows[taken->seq];
    if (noted(&row->third) != 0) {
        ping.duplicates++;
        return;
    }
    if (ping.closed && !move_on_from(taken->seq))
        return; /* it came after it was given up, and stays lost */
    row->second = (uint64_t)taken->seen_ns;
    note(&row->third, taken->taken_ns);
    if (ping.closed)
        next(taken->seq + 1);
}

/* Gives the awaited sample up if its time is over. Returns the nanoseconds left. */
static int64_t give_up(void)
{
    const uint64_t seq = __atomic_load_n(&ping.awaited, __ATOMIC_ACQUIRE);
    const int64_t sent_ns = seq < ping.limit ? noted(&ping.rows[seq].first) : 0;
    if (sent_ns == 0)
        return ANSWER_LIMIT_NS; /* its write has not returned yet */
    const int64_t left_ns = sent_ns + ANSWER_LIMIT_NS - kit_now();
    if (left_ns > 0)
        return left_ns;
    if (move_on_from(seq))
        next(seq + 1);
    return ANSWER_LIMIT_NS;
}

static void closed_loop(bool spin)
{
    next(0);
    while (!finished()) {
        const int64_t left_ns = give_up();
        if (ping.port->poll != NULL) {
            for (int i = 0; i < (spin ? POLLS_A_LOOK : 1) && !finished(); i++)
                ping.port->poll(ping.port->context, spin ? 0 : left_ns);
            continue;
        }
        const int64_t until_ns = kit_now() + left_ns;
        const struct timespec until = {.tv_sec = until_ns / SECOND_NS, .tv_nsec = until_ns % SECOND_NS};
        pthread_mutex_lock(&ping.lock);
        if (!finished())
            pthread_cond_timedwait(&ping.finish, &ping.lock, &until);
        pthread_mutex_unlock(&ping.lock);
    }
}

/* Takes what comes until `until_ns`. Returns how long this thread then ran in its last
 * wait since; whom an answer kept until then did not wait. */
static int64_t take_until(int64_t until_ns, bool spin)
{
    if (ping.port->poll == NULL)
        return kit_sleep_until(until_ns, spin) ? 0 : KIT_NO_WAIT;
    struct kit_waited wait = kit_wait_begin(spin);
    bool waited = false;
    for (;;) {
        const int64_t left_ns = until_ns - kit_now();
        if (left_ns <= 0)
            return waited ? kit_ran_since(&wait, until_ns) : KIT_NO_WAIT;
        /* Looks without a sleep are one wait: a system call before each would slow them. */
        if (!spin)
            wait = kit_wait_begin(false);
        ping.took = false;
        ping.port->poll(ping.port->context, spin ? 0 : left_ns);
        waited = !ping.took;
    }
}

static uint64_t answered(void)
{
    uint64_t count = 0;
    for (uint64_t seq = 0; seq < ping.sent; seq++)
        count += noted(&ping.rows[seq].third) != 0;
    return count;
}

static void open_loop(bool spin)
{
    enum { LOOK_NS = 5000000 };

    kit_schedule_begin(&ping.schedule);
    for (uint64_t seq = 0; seq < ping.limit && !time_over(seq); seq++) {
        const int64_t due_ns = kit_due(&ping.schedule, seq);
        /* Who is behind takes what is there all the same: else nobody empties the
         * queues that answers stand in. */
        if (ping.port->poll != NULL && due_ns <= kit_now())
            ping.port->poll(ping.port->context, 0);
        send_one(seq, take_until(due_ns, spin));
    }
    const int64_t give_up_ns = kit_now() + ANSWER_LIMIT_NS;
    while (answered() < ping.sent && kit_now() < give_up_ns)
        take_until(kit_now() + LOOK_NS, spin);
}

void kit_ping_done(uint64_t sent, uint64_t received, uint64_t corrupt, uint64_t duplicates,
                   const struct kit_schedule *schedule)
{
    const uint64_t measured = sent > kit_options.warmup ? sent - kit_options.warmup : 1;
    kit_done(",\"sent\":%llu,\"received\":%llu,\"corrupt\":%llu,\"duplicates\":%llu,\"late\":%llu,\"behind_ns\":%lld,"
             "\"start_ns\":%lld",
             (unsigned long long)sent, (unsigned long long)received, (unsigned long long)corrupt,
             (unsigned long long)duplicates, (unsigned long long)schedule->late,
             (long long)(schedule->behind_ns / (int64_t)measured), (long long)schedule->start_ns);
}

void kit_ping(const struct kit_port *port, const char *wait)
{
    const bool spin = kit_options.wait == KIT_SPIN;
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&ping.finish, &attributes);
    ping.port = port;
    ping.limit = kit_table.capacity;
    ping.closed = kit_options.period_ns == 0;
    kit_say_ready(wait);
    kit_await_go();
    ping.rows = kit_table.rows;
    if (ping.closed)
        closed_loop(spin);
    else
        open_loop(spin);
    kit_stop(ping.sent);
    kit_ping_done(ping.sent, answered(), ping.corrupt, ping.duplicates, &ping.schedule);
}

static struct {
    uint64_t received, corrupt;
} pong;

void kit_pong_took(const struct kit_taken *taken)
{
    pong.received++;
    pong.corrupt += !taken->right;
}

void kit_pong(const struct kit_port *port, const char *wait)
{
    kit_say_ready(wait);
    if (port->poll == NULL)
        kit_await_end();
    while (!kit_ended())
        port->poll(port->context, kit_options.wait == KIT_SPIN ? 0 : END_LOOK_NS);
    kit_done(",\"received\":%llu,\"corrupt\":%llu", (unsigned long long)pong.received,
             (unsigned long long)pong.corrupt);
}
