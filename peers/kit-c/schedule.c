/* When samples of an open loop are due, and from when they count. In a closed loop
 * each counts from its write. The rule itself reads no clock: ../schedule.txt holds it
 * and the Rust kit's to one rule, which is the contract's. */
#include "kit_internal.h"

void kit_schedule_begin(struct kit_schedule *schedule)
{
    const int64_t period_ns = kit_options.period_ns;
    *schedule = (struct kit_schedule){.start_ns = period_ns != 0 ? kit_now() + period_ns : 0};
}

int64_t kit_due(const struct kit_schedule *schedule, uint64_t seq)
{
    return schedule->start_ns + (int64_t)seq * kit_options.period_ns;
}

/* Who is held up by the middleware sends late: counted from the write, the wait of the
 * samples behind it would be nobody's. Who is woken late is held up by the machine; but
 * who runs in a wait works for the middleware. */
int64_t kit_counts_from(struct kit_schedule *schedule, uint64_t seq, int64_t sent_ns, int64_t ran_ns)
{
    if (kit_options.period_ns == 0)
        return sent_ns;
    const int64_t due_ns = kit_due(schedule, seq);
    if (seq >= kit_options.warmup) {
        schedule->late += sent_ns - due_ns > kit_options.period_ns;
        schedule->behind_ns += sent_ns - due_ns;
    }
    if (ran_ns != KIT_NO_WAIT)
        schedule->woke_ns = sent_ns - ran_ns;
    return due_ns > schedule->woke_ns ? due_ns : schedule->woke_ns;
}

/* A wait may look for data so long before it sleeps. Longer than any here does, that CPU
 * time could hide work; shorter, a look before a sleep would count as one after it. */
enum { LOOK_NS = 60000 };

static int64_t thread_cpu(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * SECOND_NS + used.tv_nsec;
}

/* Who spins never sleeps, however long it looks. */
struct kit_waited kit_wait_begin(bool spin)
{
    return (struct kit_waited){.since_ns = kit_now(), .cpu_ns = thread_cpu(), .spins = spin};
}

int64_t kit_ran_since(const struct kit_waited *wait, int64_t due_ns)
{
    const int64_t used_ns = thread_cpu() - wait->cpu_ns;
    int64_t before_ns = due_ns > wait->since_ns ? due_ns - wait->since_ns : 0;
    if (!wait->spins && before_ns > LOOK_NS)
        before_ns = LOOK_NS;
    return used_ns > before_ns ? used_ns - before_ns : 0;
}
