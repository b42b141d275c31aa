/* The command line of the C and C++ peers. */
#include "peer.h"

#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputs("; interop/README.md lists the options\n", stderr);
    exit(EXIT_USAGE);
}

static uint32_t whole_number(const char *option, const char *text)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *text == '-' || value > UINT32_MAX)
        usage("%s needs a whole number, not \"%s\"", option, text);
    return (uint32_t)value;
}

static double decimal(const char *option, const char *text)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !(value >= 0.0))
        usage("%s needs a number of at least 0, not \"%s\"", option, text);
    return value;
}

/* The position of `text` among the NULL-terminated `names`. */
static int choice(const char *option, const char *text, const char *const *names)
{
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], text) == 0)
            return i;
    fprintf(stderr, "%s is one of", option);
    for (int i = 0; names[i] != NULL; i++)
        fprintf(stderr, " %s", names[i]);
    usage(", not \"%s\"", text);
}

static uint32_t history(const char *text)
{
    if (strcmp(text, "keep-all") == 0)
        return 0;
    if (strncmp(text, "keep-last:", 10) != 0)
        usage("--history is keep-all or keep-last:N, not \"%s\"", text);
    uint32_t depth = whole_number("--history keep-last", text + 10);
    if (depth == 0)
        usage("--history keep-last needs a depth of at least 1");
    return depth;
}

static void set(struct options *o, const char *name, const char *value)
{
    static const char *const types[] = {"plain", "keyed", "shape", "metric", NULL};
    static const char *const reliabilities[] = {"best-effort", "reliable", NULL};
    static const char *const durabilities[] = {"volatile", "transient-local", NULL};
    static const char *const finals[] = {"none", "dispose", "unregister", NULL};

    if (strcmp(name, "--domain") == 0)
        o->domain = whole_number(name, value);
    else if (strcmp(name, "--topic") == 0)
        o->topic = value;
    else if (strcmp(name, "--type") == 0)
        o->type = (enum sample_type)choice(name, value, types);
    else if (strcmp(name, "--reliability") == 0)
        o->reliable = choice(name, value, reliabilities) == 1;
    else if (strcmp(name, "--durability") == 0)
        o->transient_local = choice(name, value, durabilities) == 1;
    else if (strcmp(name, "--history") == 0)
        o->history_depth = history(value);
    else if (strcmp(name, "--size") == 0)
        o->size = whole_number(name, value);
    else if (strcmp(name, "--count") == 0)
        o->count = whole_number(name, value);
    else if (strcmp(name, "--instances") == 0)
        o->instances = whole_number(name, value);
    else if (strcmp(name, "--rate") == 0)
        o->rate_hz = decimal(name, value);
    else if (strcmp(name, "--partition") == 0)
        o->partition = value;
    else if (strcmp(name, o->publisher ? "--final" : "--expect-final") == 0)
        o->final_state = (enum final_state)choice(name, value, finals);
    else if (strcmp(name, "--timeout") == 0)
        o->timeout_s = decimal(name, value);
    else if (strcmp(name, "--wait-matched") == 0)
        o->wait_matched = whole_number(name, value);
    else if (strcmp(name, "--linger") == 0)
        o->linger_s = decimal(name, value);
    else if (strcmp(name, "--interface") == 0)
        o->interface = value;
    else
        usage("unknown option \"%s\"", name);
}

struct options options_parse(int argc, char **argv)
{
    struct options o = {
        .topic = "interop",
        .count = 100,
        .instances = 1,
        .size = 64,
        .rate_hz = 100.0,
        .timeout_s = 10.0,
        .wait_matched = 1,
        .interface = "lo",
    };
    if (argc < 2 || (strcmp(argv[1], "pub") != 0 && strcmp(argv[1], "sub") != 0))
        usage("the first argument is pub or sub");
    o.publisher = strcmp(argv[1], "pub") == 0;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--quiet") == 0) {
            o.quiet = true;
        } else if (strcmp(argv[i], "--hold") == 0) {
            o.hold = true;
        } else if (strcmp(argv[i], "--late") == 0) {
            o.late = true;
        } else {
            const char *name = argv[i++];
            if (i == argc)
                usage("%s needs a value", name);
            set(&o, name, argv[i]);
        }
    }
    if (o.instances == 0 || o.count == 0)
        usage("--count and --instances are at least 1");
    if (o.domain > 232)
        usage("--domain is at most 232: above it the RTPS ports exceed 65535");
    if (if_nametoindex(o.interface) == 0)
        usage("there is no interface %s", o.interface);
    if (!type_keyed(o.type)) {
        if (o.final_state != FINAL_NONE)
            usage("--type plain has no key, so it has no instances to end");
        o.instances = 1;
    }
    return o;
}
