/* Plays the moments of schedule.txt, on stdin, which the Rust kit plays too. Exit code
 * 1 and a line where a sample counts otherwise. */
#include "../kit_internal.h"

#include <stdio.h>

int main(void)
{
    char line[200];
    long long ran_ns, written_ns, expected_ns, behind_ns = -1;
    unsigned long long seq = 0, late = 0;
    struct kit_schedule schedule = {.start_ns = 1000};

    kit_options.period_ns = 100;
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (line[0] == '#' || sscanf(line, " late %llu behind %lld", &late, &behind_ns) == 2)
            continue;
        if (sscanf(line, "%lld %lld %lld", &ran_ns, &written_ns, &expected_ns) != 3)
            break;
        const long long counted_ns = kit_counts_from(&schedule, seq, written_ns, ran_ns);
        if (counted_ns != expected_ns) {
            printf("schedule: sample %llu counts from %lld, not %lld\n", seq, counted_ns, expected_ns);
            return 1;
        }
        seq++;
    }
    if (seq == 18 && schedule.late == late && schedule.behind_ns == behind_ns)
        return 0;
    printf("schedule: %llu samples, late %llu behind %lld\n", seq, (unsigned long long)schedule.late,
           (long long)schedule.behind_ns);
    return 1;
}
