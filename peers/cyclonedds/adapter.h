/* What the files of the Cyclone DDS adapter share. They are built twice: against
 * the distribution's 0.10, and against 11. */
#ifndef PERF_CYCLONEDDS_H
#define PERF_CYCLONEDDS_H

#include <dds/dds.h>
#include <dds/version.h>

#include "kit.h"

#define CYCLONE11 (DDS_VERSION_MAJOR >= 11)

/* The one set of options of this process. */
extern const struct kit_options *o;

/* samples.c: a sample of --type and --size, and its answer. */
const dds_topic_descriptor_t *sample_descriptor(void);
const dds_topic_descriptor_t *answer_descriptor(void);
/* Memory for one, right but for what sample_fill() and answer_fill() set. */
void *sample_new(void);
void *answer_new(void);
/* Type bytes whatever --type is, of this size. */
const dds_topic_descriptor_t *bytes_descriptor(void);
void *bytes_new(uint32_t size);
int64_t sample_fill(void *sample, uint64_t seq);
void sample_read(const void *sample, struct kit_taken *taken);
/* The answer borrows its data from the sample: write it before that goes back. */
void answer_fill(void *answer, const void *sample, const struct kit_taken *taken);
void answer_read(const void *answer, struct kit_taken *taken);

/* domain.c: everything below the entities of data. */
dds_entity_t checked(dds_entity_t entity, const char *what);
void make_domain(void);
dds_entity_t make_topic(dds_entity_t participant, const dds_topic_descriptor_t *descriptor, const char *name);
dds_qos_t *make_qos(void);
/* Of a writer that keeps all for readers to come. */
dds_qos_t *make_holding_qos(void);
bool variant_is(const char *name);
/* Runs iox-roudi where --transport asks for shared memory. */
void play_daemon(void);

#endif
