/* How a sample is borrowed, written, waited for, taken and given back. */
#include "flow.h"

#include <fastdds/dds/core/LoanableSequence.hpp>
#include <fastdds/dds/core/condition/StatusCondition.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::Duration_t;
using eprosima::fastrtps::types::ReturnCode_t;

namespace {

constexpr int64_t SECOND_NS = 1000000000;

/* loan_sample() does not wait for room as write() does: it is asked again this often,
 * for as long as write() would block. Longer pauses cost throughput, shorter ones
 * keep the threads that would make room from running. */
constexpr int64_t BORROW_PAUSE_NS = 20000;
constexpr int64_t BORROW_LIMIT_NS = 10 * SECOND_NS;

Duration_t duration(int64_t ns)
{
    return Duration_t(static_cast<int32_t>(ns / SECOND_NS), static_cast<uint32_t>(ns % SECOND_NS));
}

} // namespace

void *Sender::borrow()
{
    void *sample = nullptr;
    if (writer_->loan_sample(sample) == ReturnCode_t::RETCODE_OK)
        return sample;
    const int64_t limit_ns = kit_now() + BORROW_LIMIT_NS;
    while (kit_now() < limit_ns) {
        kit_sleep_until(kit_now() + BORROW_PAUSE_NS, false);
        if (writer_->loan_sample(sample) == ReturnCode_t::RETCODE_OK)
            return sample;
    }
    return nullptr;
}

int64_t Sender::send(uint64_t seq)
{
    void *sample = loan_ ? borrow() : type_.memory();
    if (sample == nullptr)
        return 0;
    const int64_t sent_ns = type_.fill(sample, seq);
    if (writer_->write(sample))
        return sent_ns;
    if (loan_)
        writer_->discard_loan(sample);
    return 0;
}

void Sender::answer(const kit_taken &taken, void *same)
{
    void *sample = loan_ ? borrow() : same != nullptr ? same : type_.memory();
    if (sample == nullptr)
        return;
    type_.answer(sample, taken);
    if (!writer_->write(sample) && loan_)
        writer_->discard_loan(sample);
}

void Sender::drain(int64_t timeout_ns)
{
    writer_->wait_for_acknowledgments(duration(timeout_ns));
}

void Taker::watch(DataReader *reader)
{
    reader_ = reader;
    reader->get_statuscondition().set_enabled_statuses(StatusMask::data_available());
    set_.attach_condition(reader->get_statuscondition());
}

void Taker::poll(int64_t timeout_ns)
{
    ConditionSeq active;
    /* Who spins asks the condition: to take from an empty reader again and again would
     * hold the lock that the thread which receives needs. */
    const bool some = timeout_ns > 0 ? set_.wait(active, duration(timeout_ns)) == ReturnCode_t::RETCODE_OK
                                     : reader_->get_statuscondition().get_trigger_value();
    if (some)
        take_all(reader_);
}

void Taker::take_all(DataReader *reader)
{
    SampleInfo info;
    kit_taken taken = {};

    if (loan_) {
        take_loans(reader);
        return;
    }
    void *sample = type_.memory();
    while (reader->take_next_sample(sample, &info) == ReturnCode_t::RETCODE_OK) {
        taken.taken_ns = kit_now();
        if (!info.valid_data)
            continue;
        type_.read(sample, &taken);
        took(taken, sample);
    }
}

/* The sequence's type does not matter: as it owns no memory, it holds pointers to
 * samples that the reader lends. */
void Taker::take_loans(DataReader *reader)
{
    kit_taken taken = {};
    for (;;) {
        LoanableSequence<uint8_t> samples;
        SampleInfoSeq infos;
        if (reader->take(samples, infos) != ReturnCode_t::RETCODE_OK)
            return;
        taken.taken_ns = kit_now();
        for (LoanableCollection::size_type i = 0; i < samples.length(); i++) {
            if (!infos[i].valid_data)
                continue;
            type_.read(samples.buffer()[i], &taken);
            /* Shared data may be overwritten while it is read: such a sample is lost. */
            if (!reader->is_sample_valid(samples.buffer()[i], &infos[i]))
                continue;
            took(taken, samples.buffer()[i]);
        }
        reader->return_loan(samples, infos);
    }
}

void Answerer::took(const kit_taken &taken, void *sample)
{
    sender_.answer(taken, may_return_ ? sample : nullptr);
    if (counts_)
        kit_took(&taken);
}
