/* The samples of --type and --size as fastddsgen's classes hold them: filled,
 * checked and answered. Knows nothing of entities. */
#ifndef PERF_FASTDDS_TYPES_H
#define PERF_FASTDDS_TYPES_H

#include <cstdint>
#include <memory>

#include <fastdds/dds/topic/TypeSupport.hpp>

#include "kit.h"

class SampleType {
public:
    virtual ~SampleType() = default;
    /* A new one for each participant that registers it. */
    virtual eprosima::fastdds::dds::TypeSupport support() const = 0;
    /* What a sample takes when it is serialized. */
    virtual uint32_t size() const { return static_cast<uint32_t>(kit_packed_length()); }
    /* One sample, of the right length, for who writes or takes without a loan. */
    virtual void *memory() = 0;
    /* Makes `sample` number `seq`; returns the time that it carries, read last. */
    virtual int64_t fill(void *sample, uint64_t seq) const = 0;
    /* Reads all of `taken` but `taken_ns`. */
    virtual void read(const void *sample, kit_taken *taken) const = 0;
    /* Makes `sample` the answer to the one of `taken`. */
    virtual void answer(void *sample, const kit_taken &taken) const = 0;
};

/* Type bytes whatever --type is, of this size. */
std::unique_ptr<SampleType> bytes_type(uint32_t size);
/* What ping, pub and local send. */
std::unique_ptr<SampleType> sample_type(const kit_options &o);
/* What pong sends: the same, or an Ack. */
std::unique_ptr<SampleType> answer_type(const kit_options &o);
/* Whether pong's answer is the sample that it took, rather than an Ack. */
bool answers_in_kind(const kit_options &o);

#endif
