/* Loss, order and duplicates of a numbered stream, exact within a window, in
 * bounded memory, a few nanoseconds a sample. */
#include "kit_internal.h"

#include <stdlib.h>
#include <string.h>

/* Numbers the ring remembers: 128 KiB of bits, as many as the kit in Rust has, which sets them before the
 * first sample as well. A sample that comes more than so many numbers late counts as out of order and stays
 * lost: far above what any history holds. More is time before the first sample that is not the peer's. */
enum { WINDOW = 1 << 20, WORDS = WINDOW / 64 };

/* Where no count limits the numbers, a jump by more than this is a broken number:
 * half an hour at two million a second. */
#define JUMP_MAX (UINT64_C(1) << 32)

void kit_tally_new(struct kit_tally *tally, uint64_t base, uint64_t limit)
{
    *tally = (struct kit_tally){.base = base, .limit = limit, .next = base};
    tally->bits = malloc(WORDS * sizeof *tally->bits);
    if (tally->bits == NULL)
        kit_failed("no memory for the tally");
    memset(tally->bits, 0, WORDS * sizeof *tally->bits);
    /* calloc() would leave the pages to be touched by the first samples. */
    __asm__ volatile("" : : "r"(tally->bits) : "memory");
}

static uint64_t *word(struct kit_tally *tally, uint64_t seq)
{
    return &tally->bits[seq / 64 % WORDS];
}

/* Forgets the numbers from `from` on, `to` excluded, as the ring is to say now of
 * those one window later that they have not come. */
static void forget(struct kit_tally *tally, uint64_t from, uint64_t to)
{
    if (to - from >= WINDOW)
        from = to - WINDOW;
    while (from < to) {
        const uint64_t first = from % 64;
        const uint64_t span = to - from < 64 - first ? to - from : 64 - first;
        const uint64_t mask = span == 64 ? ~UINT64_C(0) : ((UINT64_C(1) << span) - 1) << first;
        *word(tally, from) &= ~mask;
        from += span;
    }
}

bool kit_tally_add(struct kit_tally *tally, uint64_t seq, bool right, int64_t taken_ns)
{
    const uint64_t bit = UINT64_C(1) << seq % 64;

    if (right && seq < tally->base)
        return false; /* warm-up */
    if (!right || (tally->limit != 0 ? seq >= tally->limit : seq > tally->next && seq - tally->next > JUMP_MAX)) {
        tally->corrupt++;
        return false;
    }
    tally->last_ns = taken_ns;
    if (seq >= tally->next) {
        forget(tally, tally->next, seq);
        tally->next = seq + 1;
    } else if (seq + WINDOW < tally->next) {
        tally->out_of_order++;
        return false;
    } else if (*word(tally, seq) & bit) {
        tally->duplicates++;
        return false;
    } else {
        tally->out_of_order++;
    }
    *word(tally, seq) |= bit;
    if (tally->received++ == 0)
        tally->first_ns = taken_ns;
    return true;
}

uint64_t kit_tally_lost(const struct kit_tally *tally)
{
    return tally->next - tally->base - tally->received;
}
