/* The peer of Fast DDS 2.9: one writer or one reader on UDPv4 alone, or on
 * UDPv6 if the runner says so, driven by a wait set. The contract of the command
 * line and of the output is in ../README.md. */
#include "peer.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>

#include <fastdds/dds/core/condition/StatusCondition.hpp>
#include <fastdds/dds/core/condition/WaitSet.hpp>
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/UDPv6TransportDescriptor.h>

#include "typesPubSubTypes.h"

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::Duration_t;
using eprosima::fastrtps::types::ReturnCode_t;

namespace {

[[noreturn]] void broken(const char *what)
{
    std::fprintf(stderr, "%s failed\n", what);
    std::exit(EXIT_BROKEN);
}

template <typename T> T *made(T *entity, const char *what)
{
    if (entity == nullptr)
        broken(what);
    return entity;
}

/* The first address of an interface of this family: the white list takes no names. */
std::string address_of(const char *interface, int family)
{
    ifaddrs *all = nullptr;
    std::string found;
    getifaddrs(&all);
    for (ifaddrs *a = all; a != nullptr && found.empty(); a = a->ifa_next) {
        if (a->ifa_addr == nullptr || a->ifa_addr->sa_family != family || std::strcmp(a->ifa_name, interface) != 0)
            continue;
        char text[INET6_ADDRSTRLEN];
        const void *address = &reinterpret_cast<sockaddr_in *>(a->ifa_addr)->sin_addr;
        if (family == AF_INET6)
            address = &reinterpret_cast<sockaddr_in6 *>(a->ifa_addr)->sin6_addr;
        inet_ntop(family, address, text, sizeof text);
        found = text;
    }
    freeifaddrs(all);
    if (found.empty()) {
        std::fprintf(stderr, "interface %s has no address of this kind; name one that has\n", interface);
        std::exit(EXIT_USAGE);
    }
    return found;
}

DomainParticipant *make_participant(const options &o)
{
    const bool ipv6 = std::getenv("INTEROP_IPV6") != nullptr;
    std::shared_ptr<eprosima::fastdds::rtps::UDPTransportDescriptor> udp;
    if (ipv6)
        udp = std::make_shared<eprosima::fastdds::rtps::UDPv6TransportDescriptor>();
    else
        udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
    udp->interfaceWhiteList.push_back(address_of(o.interface, ipv6 ? AF_INET6 : AF_INET));
    udp->sendBufferSize = udp->receiveBufferSize = 4 << 20;

    DomainParticipantQos qos;
    qos.transport().use_builtin_transports = false;
    qos.transport().user_transports.push_back(udp);
    auto *factory = DomainParticipantFactory::get_instance();
    return made(factory->create_participant(o.domain, qos), "create_participant");
}

TypeSupport type_support(sample_type type)
{
    switch (type) {
    case TYPE_PLAIN:
        return TypeSupport(new interop::PlainPubSubType());
    case TYPE_KEYED:
        return TypeSupport(new interop::KeyedPubSubType());
    case TYPE_SHAPE:
        return TypeSupport(new ShapeTypePubSubType());
    default:
        return TypeSupport(new telemetry::MetricPubSubType());
    }
}

/* The policies a writer and a reader have in common. */
template <typename Qos> void set_common(Qos &qos, const options &o)
{
    qos.reliability().kind = o.reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
    qos.reliability().max_blocking_time = Duration_t(10, 0);
    qos.durability().kind = o.transient_local ? TRANSIENT_LOCAL_DURABILITY_QOS : VOLATILE_DURABILITY_QOS;
    qos.history().kind = o.history_depth == 0 ? KEEP_ALL_HISTORY_QOS : KEEP_LAST_HISTORY_QOS;
    qos.history().depth = o.history_depth == 0 ? 1 : static_cast<int32_t>(o.history_depth);
    qos.resource_limits().max_samples = 0;
    qos.resource_limits().max_instances = 0;
    qos.resource_limits().max_samples_per_instance = 0;
    qos.data_sharing().off();
}

/* A sample of any of the types; only the member of the chosen one is used. */
struct Sample {
    interop::Plain plain;
    interop::Keyed keyed;
    ShapeType shape;
    telemetry::Metric metric;

    void *of(sample_type type)
    {
        switch (type) {
        case TYPE_PLAIN:
            return &plain;
        case TYPE_KEYED:
            return &keyed;
        case TYPE_SHAPE:
            return &shape;
        default:
            return &metric;
        }
    }

    void fill(const options &o, uint32_t seq)
    {
        const uint32_t id = sample_id(&o, seq);
        char key[COLOR_SIZE];
        switch (o.type) {
        case TYPE_PLAIN:
            plain.seq(seq);
            plain.payload().resize(o.size);
            payload_fill(plain.payload().data(), o.size, seq);
            break;
        case TYPE_KEYED:
            keyed.id(id);
            keyed.seq(seq);
            keyed.payload().resize(o.size);
            payload_fill(keyed.payload().data(), o.size, seq);
            break;
        case TYPE_SHAPE:
            shape_color(id, key);
            shape.color(key);
            shape.x(static_cast<int32_t>(seq));
            shape.y(static_cast<int32_t>(id));
            shape.shapesize(static_cast<int32_t>(seq + id));
            break;
        case TYPE_METRIC:
            metric_name(id, key);
            metric.name(key);
            metric.seq(seq);
            metric.sent_unix_ns(unix_ns_now());
            metric.value(seq * 0.5);
            metric.unit("unit");
            break;
        }
    }

    uint32_t id(sample_type type) const
    {
        switch (type) {
        case TYPE_PLAIN:
            return 0;
        case TYPE_KEYED:
            return keyed.id();
        case TYPE_SHAPE:
            return id_of_string_key(shape.color().c_str());
        default:
            return id_of_string_key(metric.name().c_str());
        }
    }

    void tally(::tally *t, const options &o) const
    {
        const uint32_t i = id(o.type);
        switch (o.type) {
        case TYPE_PLAIN:
            tally_octets(t, i, plain.seq(), plain.payload());
            break;
        case TYPE_KEYED:
            tally_octets(t, i, keyed.seq(), keyed.payload());
            break;
        case TYPE_SHAPE:
            tally_sample(t, i, static_cast<uint32_t>(shape.x()), 0,
                         shape.y() == static_cast<int32_t>(i) &&
                             shape.shapesize() == static_cast<int32_t>(shape.x() + static_cast<int32_t>(i)));
            break;
        case TYPE_METRIC:
            event_metric(&o, metric.name().c_str(), metric.seq(), metric.value());
            tally_sample(t, i, static_cast<uint32_t>(metric.seq()), 0,
                         std::fabs(metric.value() - static_cast<double>(metric.seq()) * 0.5) < 1e-9 &&
                             metric.unit() == "unit");
            break;
        }
    }

    static void tally_octets(::tally *t, uint32_t id, uint32_t seq, const std::vector<uint8_t> &octets)
    {
        const auto size = static_cast<uint32_t>(octets.size());
        tally_sample(t, id, seq, size, payload_right(octets.data(), size, seq));
    }
};

Duration_t left(double deadline)
{
    const double seconds = std::max(0.0, deadline - seconds_now());
    const auto whole = static_cast<int32_t>(seconds);
    return Duration_t(whole, static_cast<uint32_t>((seconds - whole) * 1e9));
}

/* Waits until at least (or, with `at_most`, at most) `count` readers match. */
bool wait_matched(DataWriter *writer, WaitSet &set, uint32_t count, bool at_most, double deadline, uint32_t *last)
{
    for (;;) {
        PublicationMatchedStatus status;
        ConditionSeq active;
        writer->get_publication_matched_status(status);
        event_matched(static_cast<uint32_t>(status.current_count), last);
        if (at_most ? *last <= count : *last >= count)
            return true;
        if (seconds_now() >= deadline)
            return false;
        set.wait(active, left(deadline));
    }
}

/* Waits in slices: a reader that leaves meanwhile does not end the wait of this
 * version, though nobody is left then whose acknowledgment could come. */
bool wait_acknowledged(DataWriter *writer, double deadline)
{
    const Duration_t slice(0, 50000000);
    do {
        PublicationMatchedStatus status;
        if (writer->wait_for_acknowledgments(slice) == ReturnCode_t::RETCODE_OK)
            return true;
        writer->get_publication_matched_status(status);
        if (status.current_count == 0)
            return true;
    } while (seconds_now() < deadline);
    return false;
}

void write_all(const options &o, DataWriter *writer, double deadline)
{
    Sample sample;
    double next = seconds_now();

    for (uint32_t seq = 0; seq < o.count; seq++) {
        if (o.rate_hz > 0.0) {
            sleep_until(next);
            next += 1.0 / o.rate_hz;
        }
        sample.fill(o, seq);
        if (!writer->write(sample.of(o.type)))
            broken("DataWriter::write");
    }
    /* This version spins for ever on an unregister that overtakes acknowledgments. */
    if (o.final_state == FINAL_UNREGISTER && o.reliable)
        wait_acknowledged(writer, deadline);
    for (uint32_t id = 0; id < o.instances && o.final_state != FINAL_NONE; id++) {
        sample.fill(o, id);
        const auto code = o.final_state == FINAL_DISPOSE
                              ? writer->dispose(sample.of(o.type), HANDLE_NIL)
                              : writer->unregister_instance(sample.of(o.type), HANDLE_NIL);
        if (code != ReturnCode_t::RETCODE_OK)
            broken("ending an instance");
    }
    event_count("sent", o.count);
}

int publish(const options &o, DomainParticipant *participant, Topic *topic)
{
    const double deadline = seconds_now() + o.timeout_s;
    PublisherQos publisher_qos;
    if (o.partition != nullptr)
        publisher_qos.partition().push_back(o.partition);
    auto *publisher = made(participant->create_publisher(publisher_qos), "create_publisher");

    DataWriterQos qos;
    set_common(qos, o);
    qos.endpoint().history_memory_policy = eprosima::fastrtps::rtps::DYNAMIC_RESERVE_MEMORY_MODE;
    /* Fragments are sent by the flow controller's thread, never by the caller. */
    qos.publish_mode().kind = o.size > 60000 ? ASYNCHRONOUS_PUBLISH_MODE : SYNCHRONOUS_PUBLISH_MODE;
    /* The last samples are acknowledged when a heartbeat asks; the default is 3 s. */
    qos.reliable_writer_qos().times.heartbeatPeriod = Duration_t(0, 100000000);
    /* Otherwise unregistering would dispose as well. */
    qos.writer_data_lifecycle().autodispose_unregistered_instances = false;
    auto *writer = made(publisher->create_datawriter(topic, qos), "create_datawriter");

    WaitSet set;
    writer->get_statuscondition().set_enabled_statuses(StatusMask::publication_matched());
    set.attach_condition(writer->get_statuscondition());
    uint32_t matched = 0;
    if (!wait_matched(writer, set, o.wait_matched, false, deadline, &matched))
        return EXIT_TIMED_OUT;
    if (o.hold)
        wait_for_stdin_line();
    write_all(o, writer, deadline);
    if (o.wait_matched == 0 && !wait_matched(writer, set, 1, false, deadline, &matched))
        return EXIT_TIMED_OUT;
    bool all = true;
    if (o.reliable) {
        all = wait_acknowledged(writer, deadline);
        event_acknowledged(all);
    }
    wait_matched(writer, set, 0, true, seconds_now() + o.linger_s, &matched);
    return all ? EXIT_COMPLETE : EXIT_TIMED_OUT;
}

/* Takes what is there. An ended instance carries no data, only its handle. */
bool take(DataReader *reader, const options &o, tally *t, std::map<InstanceHandle_t, uint32_t> &ids)
{
    Sample sample;
    SampleInfo info;
    bool any = false;

    while (reader->take_next_sample(sample.of(o.type), &info) == ReturnCode_t::RETCODE_OK) {
        any = true;
        if (info.valid_data) {
            ids[info.instance_handle] = sample.id(o.type);
            sample.tally(t, o);
        }
        if (!type_keyed(o.type) || info.instance_state == ALIVE_INSTANCE_STATE ||
            (info.valid_data && info.sample_rank != 0))
            continue;
        const auto found = ids.find(info.instance_handle);
        tally_state(t, found == ids.end() ? UINT32_MAX : found->second,
                    info.instance_state == NOT_ALIVE_DISPOSED_INSTANCE_STATE ? FINAL_DISPOSE : FINAL_UNREGISTER);
    }
    return any;
}

int subscribe(const options &o, DomainParticipant *participant, Topic *topic)
{
    const double deadline = seconds_now() + o.timeout_s;
    SubscriberQos subscriber_qos;
    if (o.partition != nullptr)
        subscriber_qos.partition().push_back(o.partition);
    auto *subscriber = made(participant->create_subscriber(subscriber_qos), "create_subscriber");

    DataReaderQos qos;
    set_common(qos, o);
    /* The dynamic modes drop a dispose that comes without a payload. */
    qos.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
    auto *reader = made(subscriber->create_datareader(topic, qos), "create_datareader");

    WaitSet set;
    StatusMask mask = StatusMask::subscription_matched();
    mask << StatusMask::data_available();
    reader->get_statuscondition().set_enabled_statuses(mask);
    set.attach_condition(reader->get_statuscondition());

    tally *t = tally_new(&o);
    std::map<InstanceHandle_t, uint32_t> ids;
    double end = deadline;
    uint32_t matched = 0;
    bool writers_left = false, lingering = false;
    for (;;) {
        SubscriptionMatchedStatus status;
        ConditionSeq active;
        const uint32_t was = matched;
        reader->get_subscription_matched_status(status);
        event_matched(static_cast<uint32_t>(status.current_count), &matched);
        writers_left = writers_left || matched < was;
        const bool idle = !take(reader, o, t, ids);
        if (idle && !lingering && (tally_complete(t) || (writers_left && matched == 0))) {
            lingering = true;
            end = seconds_now() + o.linger_s;
        }
        if (seconds_now() >= end)
            return tally_finish(t);
        if (idle)
            set.wait(active, left(end));
    }
}

} // namespace

int main(int argc, char **argv)
{
    const options o = options_parse(argc, argv);
    auto *participant = make_participant(o);
    if (o.late)
        wait_for_stdin_line();
    TypeSupport type = type_support(o.type);
    type.register_type(participant);
    auto *topic = made(participant->create_topic(o.topic, type.get_type_name(), TOPIC_QOS_DEFAULT), "create_topic");
    const int code = o.publisher ? publish(o, participant, topic) : subscribe(o, participant, topic);
    participant->delete_contained_entities();
    DomainParticipantFactory::get_instance()->delete_participant(participant);
    return code;
}
