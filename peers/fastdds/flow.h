/* Samples out and samples in, with loans and without, in callback style or polled. */
#ifndef PERF_FASTDDS_FLOW_H
#define PERF_FASTDDS_FLOW_H

#include <fastdds/dds/core/condition/WaitSet.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>

#include "types.h"

class Sender {
public:
    Sender(eprosima::fastdds::dds::DataWriter *writer, SampleType &type, bool loan)
        : writer_(writer), type_(type), loan_(loan)
    {
    }
    /* Writes sample `seq`. Returns its time, 0 when it was refused. */
    int64_t send(uint64_t seq);
    /* Writes the answer to a sample; `same` is memory of the answer's type that may
     * be written as it is, NULL if there is none. */
    void answer(const kit_taken &taken, void *same);
    void drain(int64_t timeout_ns);
    eprosima::fastdds::dds::DataWriter *writer() { return writer_; }

private:
    void *borrow();

    eprosima::fastdds::dds::DataWriter *const writer_;
    SampleType &type_;
    const bool loan_;
};

/* Takes all there is, in a callback of the middleware or when it is polled. */
class Taker : public eprosima::fastdds::dds::DataReaderListener {
public:
    Taker(SampleType &type, bool loan) : type_(type), loan_(loan) {}
    /* Before it is polled: the reader to wait for. */
    void watch(eprosima::fastdds::dds::DataReader *reader);
    void poll(int64_t timeout_ns);
    void on_data_available(eprosima::fastdds::dds::DataReader *reader) override { take_all(reader); }

protected:
    /* `sample` may be changed unless it is on loan. */
    virtual void took(const kit_taken &taken, void *) { kit_took(&taken); }

private:
    void take_all(eprosima::fastdds::dds::DataReader *reader);
    void take_loans(eprosima::fastdds::dds::DataReader *reader);

    SampleType &type_;
    const bool loan_;
    eprosima::fastdds::dds::DataReader *reader_ = nullptr;
    eprosima::fastdds::dds::WaitSet set_;
};

/* Answers each sample. `counts` says whether it is the pong of this process, and no
 * other role's. */
class Answerer : public Taker {
public:
    Answerer(SampleType &type, Sender &sender, bool in_kind, bool loan, bool counts)
        : Taker(type, loan), sender_(sender), may_return_(in_kind && !loan), counts_(counts)
    {
    }

protected:
    void took(const kit_taken &taken, void *sample) override;

private:
    Sender &sender_;
    const bool may_return_;
    const bool counts_;
};

#endif
