/* When samples of an open loop are due, and from when they count. In a closed loop
 * each counts from its write. Reads no clock but to begin: ../schedule.txt holds it
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
 * samples behind it would be nobody's. Who is woken late is held up by the machine. */
int64_t kit_counts_from(struct kit_schedule *schedule, uint64_t seq, int64_t sent_ns, bool slept)
{
    if (kit_options.period_ns == 0)
        return sent_ns;
    const int64_t due_ns = kit_due(schedule, seq);
    if (seq >= kit_options.warmup) {
        schedule->late += sent_ns - due_ns > kit_options.period_ns;
        schedule->behind_ns += sent_ns - due_ns;
    }
    if (slept)
        schedule->woke_ns = sent_ns;
    return due_ns > schedule->woke_ns ? due_ns : schedule->woke_ns;
}
