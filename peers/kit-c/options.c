/* The command line: pairs of options behind a role; unknown keys are left alone. */
#include "kit_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct kit_options kit_options = {
    .transport = KIT_UDP,
    .variant = "",
    .interface_name = "lo",
    .address = "127.0.0.1",
    .remote = "127.0.0.1",
    .samples = "",
    .domain = 1,
    .history_depth = 1,
    .size = 64,
    .remotes = 1,
    .nodes = 1,
    .endpoints = 1,
    .threads = 1,
    .reliable = true,
    .multicast = true,
    .count = 1000,
};

static const char *const roles[] = {"ping", "pong",     "pub",  "sub",    "crowd", "local",
                                    "cdr",  "entities", "node", "daemon", NULL};
static const char *const transports[] = {"thread", "intra", "shm", "udp", "xdp", "xdp-l2", "dpdk", NULL};
static const char *const waits[] = {"block", "listener", "waitset", "spin", NULL};
static const char *const types[] = {"bytes", "plain", "simple", "complex", NULL};
static const char *const reliabilities[] = {"best-effort", "reliable", NULL};
static const char *const answers[] = {"no", "yes", NULL};

/* The position of `text` among `names`. A word that this kit does not know is
 * something newer than it: absent, not failed. */
static int choice(const char *key, const char *text, const char *const *names)
{
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    kit_absent("%s %s is unknown to this adapter", key, text);
}

static uint64_t number(const char *key, const char *text, uint64_t most)
{
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *text == '-' || value > most)
        kit_failed("%s needs a whole number of at most %llu, not \"%s\"", key, (unsigned long long)most, text);
    return value;
}

static uint32_t history(const char *text)
{
    if (strcmp(text, "keep-all") == 0)
        return 0;
    if (strncmp(text, "keep-last:", 10) != 0)
        kit_failed("--history is keep-all or keep-last:N, not \"%s\"", text);
    const uint32_t depth = (uint32_t)number("--history keep-last", text + 10, INT32_MAX);
    if (depth == 0)
        kit_failed("--history keep-last needs a depth of at least 1");
    return depth;
}

static bool set_word(struct kit_options *o, const char *key, const char *value)
{
    if (strcmp(key, "--transport") == 0)
        o->transport = (enum kit_transport)choice(key, value, transports);
    else if (strcmp(key, "--wait") == 0)
        o->wait = (enum kit_wait)choice(key, value, waits);
    else if (strcmp(key, "--type") == 0)
        o->type = (enum kit_type)choice(key, value, types);
    else if (strcmp(key, "--reliability") == 0)
        o->reliable = choice(key, value, reliabilities) == 1;
    else if (strcmp(key, "--multicast") == 0)
        o->multicast = choice(key, value, answers) == 1;
    else if (strcmp(key, "--loan") == 0)
        o->loan = choice(key, value, answers) == 1;
    else if (strcmp(key, "--history") == 0)
        o->history_depth = history(value);
    else if (strcmp(key, "--variant") == 0)
        o->variant = value;
    else if (strcmp(key, "--interface") == 0)
        o->interface_name = value;
    else if (strcmp(key, "--address") == 0)
        o->address = value;
    else if (strcmp(key, "--remote") == 0)
        o->remote = value;
    else if (strcmp(key, "--samples") == 0)
        o->samples = value;
    else
        return false;
    return true;
}

static void set_number(struct kit_options *o, const char *key, const char *value)
{
    enum { MOST_MS = 1000 * 3600 * 24 }; /* a day: longer is a mistake */
    const struct {
        const char *key;
        uint32_t *at;
    } small[] = {
        {"--domain", &o->domain}, {"--size", &o->size},           {"--remotes", &o->remotes},
        {"--index", &o->index},   {"--nodes", &o->nodes},         {"--endpoints", &o->endpoints},
        {"--burst", &o->burst},   {"--threads", &o->threads},
    };
    for (size_t i = 0; i < sizeof small / sizeof small[0]; i++)
        if (strcmp(key, small[i].key) == 0)
            *small[i].at = (uint32_t)number(key, value, INT32_MAX);
    if (strcmp(key, "--warmup") == 0)
        o->warmup = number(key, value, UINT32_MAX);
    else if (strcmp(key, "--count") == 0)
        o->count = number(key, value, UINT64_MAX / 2);
    else if (strcmp(key, "--duration-ms") == 0)
        o->duration_ns = (int64_t)number(key, value, MOST_MS) * 1000000;
    else if (strcmp(key, "--period-ns") == 0)
        o->period_ns = (int64_t)number(key, value, INT64_MAX);
    else if (strcmp(key, "--interval-ns") == 0)
        o->interval_ns = (int64_t)number(key, value, INT64_MAX);
}

/* Sizes that a type cannot have are absent, as ../README.md lists them. */
static void check_size(const struct kit_options *o)
{
    static const uint32_t plain[] = {16,   64,    256,   512,     1024,    4096,   8192,
                                     16384, 65536, 1048576, 2097152, 4194304, 8388608};
    if (o->type == KIT_BYTES && o->size < 28)
        kit_absent("a sample of type bytes takes 28 bytes at least, not %u", o->size);
    if (o->type == KIT_SIMPLE && o->size < 4)
        kit_absent("type simple starts at 4 bytes, not %u", o->size);
    if (o->type != KIT_PLAIN)
        return;
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++)
        if (plain[i] == o->size)
            return;
    kit_absent("type plain has no size %u", o->size);
}

void kit_parse(int argc, char **argv)
{
    struct kit_options *o = &kit_options;
    if (argc < 2)
        kit_failed("the first argument is info or a role; peers/README.md has the contract");
    o->role = (enum kit_role)choice("role", argv[1], roles);
    for (int i = 2; i < argc; i += 2) {
        if (i + 1 == argc)
            kit_failed("%s needs a value", argv[i]);
        if (!set_word(o, argv[i], argv[i + 1]))
            set_number(o, argv[i], argv[i + 1]);
    }
    if (o->count == 0 && o->duration_ns == 0 && o->role <= KIT_LOCAL && o->role != KIT_PONG && o->role != KIT_SUB)
        kit_failed("--count and --duration-ms are both 0: this would never end");
    if (o->threads == 0)
        kit_failed("--threads needs one at least");
    check_size(o);
}
