/* Holds the tally of kit-c to a slow one that remembers every number: on random
 * streams with losses, repeats and late samples, on jumps beyond the window, and on
 * numbers that cannot be. Prints its speed. Exit code 1 and a line if they differ. */
#include "../kit_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 100000, WINDOW = 1 << 20 };

static int wrong;

static void same(const char *what, uint64_t got, uint64_t want)
{
    if (got == want)
        return;
    printf("tally: %s is %llu, not %llu\n", what, (unsigned long long)got, (unsigned long long)want);
    wrong = 1;
}

/* A stream like a lossy network's: `drop`, `repeat` and `late` of each thousand. */
static void random_stream(unsigned seed, unsigned drop, unsigned repeat, unsigned late)
{
    static uint8_t seen[NUMBERS];
    struct kit_tally tally;
    uint64_t base = seed % 200, next = base, received = 0, out_of_order = 0, duplicates = 0;

    srandom(seed);
    memset(seen, 0, sizeof seen);
    kit_tally_new(&tally, base, NUMBERS);
    for (uint64_t at = 0; at < NUMBERS; at++) {
        uint64_t seq = at;
        const unsigned dice = (unsigned)random() % 1000;
        if (dice < drop)
            continue;
        if (dice < drop + repeat || (dice < drop + repeat + late && at > 0))
            seq = at - (uint64_t)random() % (at < 300 ? at + 1 : 300);
        kit_tally_add(&tally, seq, true, 1);
        if (seq < base)
            continue;
        if (seen[seq]) {
            duplicates++;
            continue;
        }
        seen[seq] = 1;
        received++;
        out_of_order += seq < next;
        next = seq >= next ? seq + 1 : next;
    }
    same("received", tally.received, received);
    same("lost", kit_tally_lost(&tally), next - base - received);
    same("out_of_order", tally.out_of_order, out_of_order);
    same("duplicates", tally.duplicates, duplicates);
    free(tally.bits);
}

/* The ring comes round: a number of the round before must not count as come. */
static void jumps(void)
{
    struct kit_tally tally;
    kit_tally_new(&tally, 0, 0);
    for (uint64_t seq = 0; seq < 1000; seq++)
        kit_tally_add(&tally, seq, true, 1);
    kit_tally_add(&tally, WINDOW + 500, true, 1);
    kit_tally_add(&tally, WINDOW + 100, true, 1);
    kit_tally_add(&tally, WINDOW + 100, true, 1);
    kit_tally_add(&tally, 2, true, 1); /* older than the window */
    same("received after a jump", tally.received, 1002);
    same("duplicates after a jump", tally.duplicates, 1);
    same("out_of_order after a jump", tally.out_of_order, 2);
    same("lost after a jump", kit_tally_lost(&tally), WINDOW + 501 - 1002);
    kit_tally_add(&tally, UINT64_MAX, true, 1);
    kit_tally_add(&tally, 5, false, 1);
    same("corrupt", tally.corrupt, 2);
    free(tally.bits);
}

int main(void)
{
    enum { FAST = 20000000 };
    struct kit_tally tally;

    for (unsigned seed = 1; seed <= 20; seed++)
        random_stream(seed, seed % 4 * 30, seed % 3 * 20, seed % 5 * 25);
    jumps();
    kit_tally_new(&tally, 0, 0);
    const int64_t start_ns = kit_now();
    for (uint64_t seq = 0; seq < FAST; seq++)
        kit_tally_add(&tally, seq, true, 1);
    printf("tally: %.1f ns a sample\n", (double)(kit_now() - start_ns) / FAST);
    same("received", tally.received, FAST);
    return wrong;
}
