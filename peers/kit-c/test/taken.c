/* A sub notes each measured sample once, with its number; without a table, none. Exit
 * code 1 and a line if not. */
#include "../kit_internal.h"

#include <stdio.h>

static const struct kit_row expected[] = {{200, 2, 207}, {400, 4, 407}, {300, 3, 307}};
enum { EXPECTED = sizeof expected / sizeof *expected };

/* Takes numbers 1 to 4, of which 1 is of the warm-up, 4 overtakes 3, and 3 comes twice. */
static void take(void)
{
    static const uint64_t numbers[] = {1, 2, 4, 3, 3};
    kit_sub_new();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const int64_t sent_ns = 100 * (int64_t)numbers[i];
        kit_sub_took(&(struct kit_taken){
            .seq = numbers[i], .sent_ns = sent_ns, .taken_ns = sent_ns + 7, .right = true});
    }
}

int main(void)
{
    struct kit_row rows[8] = {{0, 0, 0}};

    kit_options.role = KIT_SUB;
    kit_options.warmup = 2;
    kit_options.count = 9;
    take();
    kit_table = (struct kit_table){.rows = rows, .capacity = sizeof rows / sizeof *rows};
    take();
    for (size_t i = 0; i < EXPECTED; i++) {
        if (rows[i].first == expected[i].first && rows[i].second == expected[i].second &&
            rows[i].third == expected[i].third)
            continue;
        printf("taken: row %zu is of %llu, number %llu, taken at %llu\n", i,
               (unsigned long long)rows[i].first, (unsigned long long)rows[i].second,
               (unsigned long long)rows[i].third);
        return 1;
    }
    if (rows[EXPECTED].third == 0)
        return 0;
    printf("taken: more than %d rows\n", EXPECTED);
    return 1;
}
