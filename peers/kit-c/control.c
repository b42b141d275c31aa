/* The lines on stdin and stdout, and the thread that reads stdin: it ends the
 * process when stdin closes, whatever the other threads are doing. */
#include "kit_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* What is left to delete entities after `done`. Shorter cuts off vendors whose
 * threads look up once a second; longer stretches each trial of one that hangs. */
enum { EXIT_LIMIT_MS = 2000 };

/* A line of an error's text is longer than any line of the contract. */
enum { LINE_SIZE = 1024 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned gos;        /* `go` that nobody waited for yet */
    bool ended;          /* also read without the lock, atomically */
    int exit_eventfd;    /* rings when the time to exit starts */
    int out;             /* the real stdout */
    int64_t begin_ns;    /* when the program began */
    void (*abandon)(void);
} control = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .changed = PTHREAD_COND_INITIALIZER,
    .exit_eventfd = -1,
    .out = STDOUT_FILENO,
};

static void say(const char *format, va_list args)
{
    char line[LINE_SIZE];
    int length = vsnprintf(line, sizeof line - 1, format, args);
    if (length < 0)
        return;
    if (length > (int)sizeof line - 2)
        length = (int)sizeof line - 2;
    line[length++] = '\n';
    for (int done = 0; done < length;) {
        const ssize_t n = write(control.out, line + done, (size_t)(length - done));
        if (n < 0 && errno != EINTR)
            _exit(1); /* nobody reads: the driver is gone */
        done += n > 0 ? (int)n : 0;
    }
}

void kit_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

/* Says {"event":EVENT,"reason":...} with the reason as JSON wants it. */
static void say_reason(const char *event, const char *format, va_list args)
{
    char reason[LINE_SIZE / 2], escaped[LINE_SIZE - 64];
    size_t used = 0;
    vsnprintf(reason, sizeof reason, format, args);
    for (const char *at = reason; *at != '\0' && used + 3 < sizeof escaped; at++) {
        if (*at == '"' || *at == '\\')
            escaped[used++] = '\\';
        escaped[used++] = (unsigned char)*at < ' ' ? ' ' : *at;
    }
    escaped[used] = '\0';
    kit_say("{\"event\":\"%s\",\"reason\":\"%s\"}", event, escaped);
}

/* exit() would run destructors of libraries whose threads are still at work. */
static _Noreturn void leave(int code)
{
    if (control.abandon != NULL)
        control.abandon();
    _exit(code);
}

void kit_absent(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_reason("absent", format, args);
    va_end(args);
    leave(0);
}

void kit_failed(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_reason("failed", format, args);
    va_end(args);
    leave(1);
}

void kit_on_abandon(void (*hook)(void))
{
    control.abandon = hook;
}

static void obey(const char *word)
{
    pthread_mutex_lock(&control.lock);
    if (strcmp(word, "go") == 0)
        control.gos++;
    else if (strcmp(word, "end") == 0)
        __atomic_store_n(&control.ended, true, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&control.changed);
    pthread_mutex_unlock(&control.lock);
}

/* Reads words until stdin closes, which ends the process, or until the time to
 * exit is over, which ends it too. */
static void *control_thread(void *unused)
{
    struct pollfd files[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = control.exit_eventfd, .events = POLLIN}};
    char word[16];
    size_t length = 0;

    for (;;) {
        if (poll(files, 2, -1) < 0 && errno != EINTR)
            leave(1);
        if (files[1].revents != 0) {
            poll(NULL, 0, EXIT_LIMIT_MS);
            leave(0);
        }
        if (files[0].revents == 0)
            continue;
        char c;
        const ssize_t n = read(STDIN_FILENO, &c, 1);
        if (n == 0 || (n < 0 && errno != EINTR))
            leave(1);
        if (n < 0)
            continue;
        if (c != '\n') {
            length += length < sizeof word;
            word[length - 1] = c;
            continue;
        }
        word[length < sizeof word ? length : sizeof word - 1] = '\0';
        length = 0;
        obey(word);
    }
    return unused;
}

void kit_control_start(void)
{
    pthread_t thread;
    sigset_t all, before;

    control.begin_ns = kit_now();
    control.out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    control.exit_eventfd = eventfd(0, EFD_CLOEXEC);
    if (control.out < 0 || control.exit_eventfd < 0)
        _exit(1);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, control_thread, NULL) != 0)
        kit_failed("no thread for stdin: %s", strerror(errno));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_detach(thread);
}

void kit_say_ready(const char *wait)
{
    kit_say("{\"event\":\"ready\",\"wait\":\"%s\"}", wait);
}

void kit_await_go(void)
{
    pthread_mutex_lock(&control.lock);
    while (control.gos == 0 && !control.ended)
        pthread_cond_wait(&control.changed, &control.lock);
    if (control.gos > 0)
        control.gos--;
    pthread_mutex_unlock(&control.lock);
}

void kit_await_end(void)
{
    pthread_mutex_lock(&control.lock);
    while (!control.ended)
        pthread_cond_wait(&control.changed, &control.lock);
    pthread_mutex_unlock(&control.lock);
}

bool kit_ended(void)
{
    return __atomic_load_n(&control.ended, __ATOMIC_ACQUIRE);
}

void kit_stop(size_t length)
{
    kit_say("{\"event\":\"stop\"}");
    kit_await_go();
    kit_table_save(length);
}

void kit_done(const char *fields, ...)
{
    char line[LINE_SIZE];
    const int start = snprintf(line, sizeof line, "{\"event\":\"done\",\"begin_ns\":%lld",
                               (long long)control.begin_ns);
    const uint64_t one = 1;
    va_list args;
    va_start(args, fields);
    const int length = start + vsnprintf(line + start, sizeof line - (size_t)start, fields, args);
    va_end(args);
    if (length + 2 > (int)sizeof line)
        kit_failed("the figures do not fit into a line");
    kit_say("%s}", line);
    if (write(control.exit_eventfd, &one, sizeof one) != sizeof one)
        leave(0);
}
