/* The roles without a stream: cdr, entities, node, daemon. */
#include "kit_internal.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* README.md: encodes and decodes a batch. */
enum { BATCH = 1000 };

/* How often a node looks whether it is matched: well below what discovery takes,
 * well above what asking costs. */
enum { MATCHED_LOOK_NS = 100000 };

/* A daemon gets ten seconds to answer. To leave it gets less than the second in which
 * the end of file is to end all; one that is killed before it is done leaves its shared
 * memory behind. */
enum { DAEMON_START_S = 10, DAEMON_LOOK_NS = 10000000, DAEMON_LEAVE_MS = 700 };

static int64_t timed(void (*once)(void *context), void *context)
{
    const int64_t start_ns = kit_now();
    for (int i = 0; i < BATCH; i++)
        once(context);
    return kit_now() - start_ns;
}

void kit_cdr(void (*encode)(void *context), void (*decode)(void *context), void *context)
{
    const struct kit_options *o = &kit_options;
    size_t length = 0;

    kit_say_ready("spin");
    kit_await_go();
    for (uint64_t done = 0; done < o->warmup; done += BATCH) {
        timed(encode, context);
        timed(decode, context);
    }
    const int64_t start_ns = kit_now();
    for (uint64_t batch = 0; o->count == 0 || batch < o->count; batch++) {
        const int64_t encode_ns = timed(encode, context), decode_ns = timed(decode, context);
        if (length < kit_table.capacity)
            kit_table.rows[length++] = (struct kit_row){(uint64_t)encode_ns, (uint64_t)decode_ns, 0};
        if (o->duration_ns != 0 && kit_now() - start_ns >= o->duration_ns)
            break;
    }
    kit_stop(length);
    kit_done("%s", "");
}

void kit_entities(const struct kit_step *steps, size_t length, void *context)
{
    kit_say_ready("");
    for (size_t s = 0; s < length; s++) {
        kit_await_go();
        for (uint32_t i = 0; i < steps[s].count; i++)
            steps[s].make(context, i);
        kit_say("{\"event\":\"step\",\"name\":\"%s\",\"count\":%u}", steps[s].name, steps[s].count);
    }
    kit_await_go();
    kit_done("%s", "");
}

void kit_node(void (*create)(void *context), bool (*matched)(void *context), void *context)
{
    bool said = false;

    kit_say_ready("");
    kit_await_go();
    create(context);
    while (!kit_ended() && !said) {
        const int64_t now = kit_now();
        said = matched(context);
        if (said)
            kit_say("{\"event\":\"matched\",\"ns\":%lld}", (long long)now);
        else
            kit_sleep_until(now + MATCHED_LOOK_NS, false);
    }
    kit_await_end();
    kit_done("%s", "");
}

/* The daemon that runs, 0 for none, and what sweeps up after it, or NULL. */
static pid_t child;
static void (*sweep_up)(void);

/* Ends the daemon: asks, then insists. */
static void end_child(void)
{
    const int64_t limit_ns = kit_now() + (int64_t)DAEMON_LEAVE_MS * 1000000;
    const pid_t pid = __atomic_exchange_n(&child, 0, __ATOMIC_ACQ_REL);

    if (pid <= 0)
        return;
    kill(pid, SIGTERM);
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (kit_now() >= limit_ns) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            break;
        }
        kit_sleep_until(kit_now() + DAEMON_LOOK_NS, false);
    }
    if (sweep_up != NULL)
        sweep_up();
}

static pid_t start_child(char *const argv[])
{
    const pid_t parent = getpid();
    const pid_t pid = fork();

    if (pid != 0)
        return pid;
    /* Should this process be killed, its daemon goes too. */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0UL, 0UL, 0UL);
    if (getppid() != parent)
        _exit(1);
    close(STDIN_FILENO);
    execvp(argv[0], argv);
    _exit(127);
}

void kit_daemon(char *const argv[], bool (*answers)(void *context), void (*sweep)(void), void *context)
{
    if (argv != NULL) {
        sweep_up = sweep;
        const int64_t limit_ns = kit_now() + DAEMON_START_S * (int64_t)SECOND_NS;
        /* One whose parent was killed takes a moment to give its memory back. */
        while (answers(context)) {
            if (kit_now() >= limit_ns)
                kit_failed("another %s runs already", argv[0]);
            kit_sleep_until(kit_now() + DAEMON_LOOK_NS, false);
        }
        child = start_child(argv);
        if (child < 0)
            kit_failed("no process for %s: %s", argv[0], strerror(errno));
        kit_on_abandon(end_child);
        while (!answers(context)) {
            int status;
            if (waitpid(child, &status, WNOHANG) == child) {
                child = 0;
                kit_failed("%s ended before it answered, with status %d", argv[0], status);
            }
            if (kit_now() >= limit_ns)
                kit_failed("%s does not answer after %d s", argv[0], DAEMON_START_S);
            kit_sleep_until(kit_now() + DAEMON_LOOK_NS, false);
        }
    }
    kit_say_ready("");
    kit_await_end();
    end_child();
    kit_done("%s", "");
}
