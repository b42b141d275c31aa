/* The beginning of an adapter, where its samples go, and waiting by the clock. */
#include "kit.h"
#include "kit_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

/* How long kit_await() waits: a minute is far beyond any discovery, and below what
 * makes somebody wonder whether the run still lives. */
enum { AWAIT_LIMIT_S = 60, AWAIT_STEP_NS = 200000 };

const struct kit_options *kit_begin(int argc, char **argv, const char *info)
{
    if (argc >= 2 && strcmp(argv[1], "info") == 0) {
        puts(info);
        exit(fflush(stdout) == 0 ? 0 : 1);
    }
    /* A thread's sleeps are rounded up by 50 us otherwise. Before any other thread is made, as the
     * middleware's get what this one has: so it is in the adapters that are written in Rust. */
    prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    kit_control_start();
    kit_parse(argc, argv);
    kit_table_new();
    if (kit_options.role == KIT_SUB)
        kit_sub_new();
    return &kit_options;
}

void kit_took(const struct kit_taken *taken)
{
    switch (kit_options.role) {
    case KIT_PING:
        kit_ping_took(taken);
        break;
    case KIT_PONG:
        kit_pong_took(taken);
        break;
    case KIT_SUB:
        kit_sub_took(taken);
        break;
    case KIT_LOCAL:
        if (kit_options.transport == KIT_INTRA)
            kit_ping_took(taken);
        else
            kit_local_took(taken);
        break;
    default:
        break;
    }
}

bool kit_sleep_until(int64_t until_ns, bool spin)
{
    const struct timespec until = {.tv_sec = until_ns / SECOND_NS, .tv_nsec = until_ns % SECOND_NS};
    if (until_ns == 0 || kit_now() >= until_ns)
        return false;
    if (spin) {
        while (kit_now() < until_ns) {
        }
        return true;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
    return true;
}

void kit_await(bool (*condition)(void *context), void *context, const char *what)
{
    const int64_t limit_ns = kit_now() + (int64_t)AWAIT_LIMIT_S * SECOND_NS;
    while (!condition(context)) {
        if (kit_now() >= limit_ns)
            kit_failed("%s after %d s", what, AWAIT_LIMIT_S);
        kit_sleep_until(kit_now() + AWAIT_STEP_NS, false);
    }
}
