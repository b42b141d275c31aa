/* One class for each kind of the generated types; `plain` is a template over its
 * thirteen sizes. */
#include "types.h"

#include <string>

#include "typesPubSubTypes.h"

using eprosima::fastdds::dds::TypeSupport;

namespace {

/* Of type bytes, what is in front of the data. */
constexpr uint32_t BYTES_HEADER = 28;

/* Seven characters, as the contract wants them. */
const std::string info_text = "payload";

/* `Sample` and the large enough `Plain`: number, two times, octets. */
template <typename Message, typename Support> class Stamped : public SampleType {
public:
    explicit Stamped(std::unique_ptr<Message> message) : message_(std::move(message)) {}
    TypeSupport support() const override { return TypeSupport(new Support()); }
    void *memory() override { return message_.get(); }

    int64_t fill(void *sample, uint64_t seq) const override
    {
        auto *message = static_cast<Message *>(sample);
        message->seq(seq);
        message->seen_ns(0);
        kit_fill(message->data().data(), message->data().size(), seq);
        const int64_t now = kit_now();
        message->sent_ns(now);
        return now;
    }

    void read(const void *sample, kit_taken *taken) const override
    {
        const auto *message = static_cast<const Message *>(sample);
        taken->seq = message->seq();
        taken->sent_ns = message->sent_ns();
        taken->seen_ns = message->seen_ns();
        taken->right = kit_right(message->data().data(), message->data().size(), message->seq());
    }

    /* A loaned sample is not the one that was taken: all that changes is written. */
    void answer(void *sample, const kit_taken &taken) const override
    {
        auto *message = static_cast<Message *>(sample);
        message->seq(taken.seq);
        message->sent_ns(taken.sent_ns);
        message->seen_ns(taken.taken_ns);
        kit_fill(message->data().data(), message->data().size(), taken.seq);
    }

private:
    std::unique_ptr<Message> message_;
};

class Plain16 : public SampleType {
public:
    TypeSupport support() const override { return TypeSupport(new perf::Plain16PubSubType()); }
    void *memory() override { return &message_; }

    int64_t fill(void *sample, uint64_t seq) const override
    {
        auto *message = static_cast<perf::Plain16 *>(sample);
        message->seq(seq);
        const int64_t now = kit_now();
        message->sent_ns(now);
        return now;
    }

    void read(const void *sample, kit_taken *taken) const override
    {
        const auto *message = static_cast<const perf::Plain16 *>(sample);
        taken->seq = message->seq();
        taken->sent_ns = message->sent_ns();
        taken->seen_ns = 0;
        taken->right = true;
    }

    void answer(void *sample, const kit_taken &taken) const override
    {
        auto *message = static_cast<perf::Plain16 *>(sample);
        message->seq(taken.seq);
        message->sent_ns(taken.sent_ns);
    }

private:
    perf::Plain16 message_;
};

/* `simple`, `complex` and `Ack` carry a number of 32 bits and no time. */
void read_index(kit_taken *taken, int32_t index, bool right)
{
    taken->seq = static_cast<uint32_t>(index);
    taken->sent_ns = taken->seen_ns = 0;
    taken->right = right;
}

class Simple : public SampleType {
public:
    Simple() { message_.data().resize(kit_data_length()); }
    TypeSupport support() const override { return TypeSupport(new perf::SimplePubSubType()); }
    void *memory() override { return &message_; }

    int64_t fill(void *sample, uint64_t seq) const override
    {
        auto *message = static_cast<perf::Simple *>(sample);
        message->index(static_cast<int32_t>(seq));
        kit_fill(message->data().data(), message->data().size(), seq);
        return kit_now();
    }

    void read(const void *sample, kit_taken *taken) const override
    {
        const auto *message = static_cast<const perf::Simple *>(sample);
        read_index(taken, message->index(),
                   kit_right(message->data().data(), message->data().size(),
                             static_cast<uint32_t>(message->index())));
    }

    void answer(void *sample, const kit_taken &taken) const override { fill(sample, taken.seq); }

private:
    perf::Simple message_;
};

class Complex : public SampleType {
public:
    Complex()
    {
        message_.length(static_cast<int32_t>(kit_item_count()));
        message_.items().resize(kit_item_count());
        for (perf::Item &item : message_.items())
            item.info(info_text);
    }
    TypeSupport support() const override { return TypeSupport(new perf::ComplexPubSubType()); }
    void *memory() override { return &message_; }

    /* The first and the last item, as the ends of `data` elsewhere. */
    int64_t fill(void *sample, uint64_t seq) const override
    {
        auto *message = static_cast<perf::Complex *>(sample);
        message->items().front().index(static_cast<int32_t>(seq));
        message->items().back().index(static_cast<int32_t>(seq));
        return kit_now();
    }

    void read(const void *sample, kit_taken *taken) const override
    {
        const auto *message = static_cast<const perf::Complex *>(sample);
        const auto &items = message->items();
        if (items.size() != kit_item_count() || message->length() != static_cast<int32_t>(items.size())) {
            read_index(taken, 0, false);
            return;
        }
        read_index(taken, items.front().index(),
                   items.back().index() == items.front().index() && items.front().info() == info_text &&
                       items.back().info() == info_text);
    }

    void answer(void *sample, const kit_taken &taken) const override { fill(sample, taken.seq); }

private:
    perf::Complex message_;
};

class Ack : public SampleType {
public:
    TypeSupport support() const override { return TypeSupport(new perf::AckPubSubType()); }
    uint32_t size() const override { return KIT_ACK_LENGTH; }
    void *memory() override { return &message_; }

    int64_t fill(void *sample, uint64_t seq) const override
    {
        static_cast<perf::Ack *>(sample)->index(static_cast<int32_t>(seq));
        return kit_now();
    }

    void read(const void *sample, kit_taken *taken) const override
    {
        read_index(taken, static_cast<const perf::Ack *>(sample)->index(), true);
    }

    void answer(void *sample, const kit_taken &taken) const override { fill(sample, taken.seq); }

private:
    perf::Ack message_;
};

template <typename Message, typename Support> std::unique_ptr<SampleType> plain()
{
    return std::make_unique<Stamped<Message, Support>>(std::make_unique<Message>());
}

std::unique_ptr<SampleType> plain_type(uint32_t size)
{
    switch (size) {
    case 16:
        return std::make_unique<Plain16>();
    case 64:
        return plain<perf::Plain64, perf::Plain64PubSubType>();
    case 256:
        return plain<perf::Plain256, perf::Plain256PubSubType>();
    case 512:
        return plain<perf::Plain512, perf::Plain512PubSubType>();
    case 1024:
        return plain<perf::Plain1024, perf::Plain1024PubSubType>();
    case 4096:
        return plain<perf::Plain4096, perf::Plain4096PubSubType>();
    case 8192:
        return plain<perf::Plain8192, perf::Plain8192PubSubType>();
    case 16384:
        return plain<perf::Plain16384, perf::Plain16384PubSubType>();
    case 65536:
        return plain<perf::Plain65536, perf::Plain65536PubSubType>();
    case 1048576:
        return plain<perf::Plain1048576, perf::Plain1048576PubSubType>();
    case 2097152:
        return plain<perf::Plain2097152, perf::Plain2097152PubSubType>();
    case 4194304:
        return plain<perf::Plain4194304, perf::Plain4194304PubSubType>();
    case 8388608:
        return plain<perf::Plain8388608, perf::Plain8388608PubSubType>();
    default:
        kit_absent("type plain has no size %u", size);
    }
}

} // namespace

std::unique_ptr<SampleType> bytes_type(uint32_t size)
{
    auto message = std::make_unique<perf::Sample>();
    message->data().resize(size - BYTES_HEADER);
    return std::make_unique<Stamped<perf::Sample, perf::SamplePubSubType>>(std::move(message));
}

std::unique_ptr<SampleType> sample_type(const kit_options &o)
{
    switch (o.type) {
    case KIT_BYTES:
        return bytes_type(o.size);
    case KIT_PLAIN:
        return plain_type(o.size);
    case KIT_SIMPLE:
        return std::make_unique<Simple>();
    default:
        return std::make_unique<Complex>();
    }
}

bool answers_in_kind(const kit_options &o)
{
    return o.type == KIT_BYTES || o.type == KIT_PLAIN;
}

std::unique_ptr<SampleType> answer_type(const kit_options &o)
{
    if (answers_in_kind(o))
        return sample_type(o);
    return std::make_unique<Ack>();
}
