/* The table of times: made and touched before the first sample, written to the
 * file that --samples names after the last. */
#include "kit_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* 400 MB. Fewer cut off minutes of a fast workload; more, in two processes, is
 * more memory than a small machine has. */
enum { ROWS_MAX = 1 << 24 };

/* A run that only time limits gets rows for one sample in so many nanoseconds: a
 * round trip takes longer on any machine, a write or take longer than a fifth. Too
 * high a figure cuts the run short, too low wastes memory. */
enum { ROUND_TRIP_NS = 1000, WRITE_NS = 200 };

struct kit_table kit_table = {.parts = 1};

static bool wanted(const struct kit_options *o)
{
    switch (o->role) {
    case KIT_PING:
    case KIT_LOCAL: /* know by the table what was answered */
        return true;
    case KIT_PUB:
    case KIT_SUB:
    case KIT_CROWD:
    case KIT_CDR:
        return o->samples[0] != '\0';
    default:
        return false;
    }
}

static struct kit_row *rows_new(uint64_t rows)
{
    void *memory = mmap(NULL, rows * sizeof(struct kit_row), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        kit_failed("no memory for the times of %llu samples", (unsigned long long)rows);
    return (struct kit_row *)memory;
}

void kit_table_new(void)
{
    const struct kit_options *o = &kit_options;
    uint64_t rows = o->count;

    if (!wanted(o))
        return;
    if (rows == 0) {
        const int64_t least_ns = o->role == KIT_PING ? ROUND_TRIP_NS : WRITE_NS;
        const int64_t period_ns = o->period_ns > least_ns ? o->period_ns : least_ns;
        rows = ((uint64_t)(o->duration_ns / period_ns) + 1) * o->threads;
    }
    if (rows > ROWS_MAX)
        rows = ROWS_MAX;
    if (o->role != KIT_SUB && o->role != KIT_CDR)
        rows += o->warmup;
    kit_table.rows = rows_new(rows);
    kit_table.capacity = rows;
}

/* The first rows in the order of their numbers. */
static const struct kit_row *in_order(size_t length)
{
    const size_t parts = kit_table.parts, of_part = kit_table.capacity / parts;
    if (parts == 1)
        return kit_table.rows;
    struct kit_row *rows = rows_new(length + 1);
    for (size_t seq = 0; seq < length; seq++)
        rows[seq] = kit_table.rows[seq % parts * of_part + seq / parts];
    return rows;
}

void kit_table_save(size_t length)
{
    const char *name = kit_options.samples;
    size_t left = length * sizeof(struct kit_row);

    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little-endian");
    if (name[0] == '\0')
        return;
    const char *bytes = (const char *)in_order(length);
    const int file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0)
        kit_failed("%s cannot be written: %s", name, strerror(errno));
    while (left > 0) {
        const ssize_t n = write(file, bytes, left);
        if (n < 0 && errno != EINTR)
            kit_failed("%s cannot be written: %s", name, strerror(errno));
        if (n > 0) {
            bytes += n;
            left -= (size_t)n;
        }
    }
    close(file);
}
