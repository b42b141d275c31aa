/* What a thread ran in a wait since a sample was due: its work, not its sleep, and not
 * what lies before. Exit code 1 and a line if not. */
#include "../kit_internal.h"

#include <stdio.h>

enum { PERIOD_NS = 5000000 };

/* Works for three periods of CPU time, whatever else the machine does meanwhile. */
static void work(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    const int64_t end_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec + 3 * PERIOD_NS;
    while (now.tv_sec * INT64_C(1000000000) + now.tv_nsec < end_ns)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
}

static int wrong(const char *what, int64_t ran_ns)
{
    printf("waited: %s ran for %lld ns\n", what, (long long)ran_ns);
    return 1;
}

int main(void)
{
    for (int spins = 0; spins < 2; spins++) {
        const struct kit_waited wait = kit_wait_begin(spins);
        work();
        /* One period of it may lie before. */
        const int64_t ran_ns = kit_ran_since(&wait, wait.since_ns + PERIOD_NS);
        if (ran_ns < 2 * PERIOD_NS)
            return wrong("who works", ran_ns);
    }
    const struct kit_waited sleep = kit_wait_begin(false);
    kit_sleep_until(sleep.since_ns + 3 * PERIOD_NS, false);
    const int64_t slept_ns = kit_ran_since(&sleep, sleep.since_ns + PERIOD_NS);
    if (slept_ns >= PERIOD_NS)
        return wrong("who sleeps", slept_ns);
    const struct kit_waited early = kit_wait_begin(true);
    work();
    const int64_t early_ns = kit_ran_since(&early, INT64_MAX);
    return early_ns == 0 ? 0 : wrong("who is early", early_ns);
}
