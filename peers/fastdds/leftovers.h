/* Shared memory has names that outlive a process which ends without deleting its
 * participant. */
#ifndef PERF_FASTDDS_LEFTOVERS_H
#define PERF_FASTDDS_LEFTOVERS_H

/* Removes the names of all shared memory of Fast DDS that this process has mapped or
 * open. Each trial has a domain of its own, so all of it belongs to this trial; who
 * has it mapped keeps it. */
void remove_shared_memory();

#endif
