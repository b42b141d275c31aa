/* The QoS and the transports. What is not set here is Fast DDS' default. */
#include "entities.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastdds/rtps/transport/shared_mem/SharedMemTransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

using namespace eprosima::fastdds::dds;
using eprosima::fastdds::rtps::SharedMemTransportDescriptor;
using eprosima::fastdds::rtps::UDPv4TransportDescriptor;
using eprosima::fastrtps::Duration_t;

namespace {

/* As large as the other DDS are given theirs. The kernel's default of 208 KiB drops
 * datagrams of one large sample; more than net.core.rmem_max is cut to that. */
constexpr uint32_t SOCKET_BUFFER_SIZE = 4 << 20;

/* What the SHM transport may have on its way. With the default of 512 KiB a sample of
 * 1 MiB does not fit and waits for retransmissions, thirty times as long as with this;
 * more than some samples is memory that nobody uses. */
constexpr uint32_t SEGMENT_SIZE_MIN = SOCKET_BUFFER_SIZE;
constexpr uint32_t SEGMENT_SAMPLES = 4;

/* Above this a sample is fragmented, which only the asynchronous mode can do: one
 * datagram takes 65,500 bytes with all headers. */
constexpr uint32_t SYNCHRONOUS_SIZE_MAX = 60000;

/* How long write() may wait for room. Shorter refuses samples while a slow reader
 * catches up, longer lets a dead one hold up the run. */
constexpr int32_t BLOCKING_MAX_S = 10;

/* Samples that a history may hold. What the product takes by default for KEEP_LAST;
 * more of them at once gains nothing, fewer let the writer stall. */
constexpr int32_t SAMPLES_MAX = 5000;

/* What a KEEP_ALL history may hold at most, in each of the processes: 64 samples of a
 * mebibyte. More only costs memory. */
constexpr uint32_t HISTORY_BYTES_MAX = 64 << 20;

/* How many it holds of 64 KiB, and above. Fewer let the writer wait for each
 * acknowledgement; more let a burst outrun the sockets' buffers, and lose fragments. */
constexpr int32_t LARGE_SAMPLES_MAX = 256, VERY_LARGE_SAMPLES_MAX = 64;

/* How often a KEEP_ALL writer asks for acknowledgements. Whoever writes from inside of
 * a listener blocks the thread that would receive them: once the history is full, for
 * all of BLOCKING_MAX_S. With the default of 3 s it is full after 1,667 samples a
 * second; with this, after 100,000, which no listener reaches. A shorter period costs
 * datagrams. */
constexpr uint32_t KEEP_ALL_HEARTBEAT_NS = 50000000;

/* Data by multicast goes to the group and the port that RTPS names for user traffic:
 * PB + DG * domain + d2, with its defaults (RTPS 2.5, 9.6.1.1). */
constexpr char MULTICAST_GROUP[] = "239.255.0.1";
constexpr uint32_t MULTICAST_PORT_BASE = 7401;
constexpr uint32_t MULTICAST_PORT_GAIN = 250;

template <typename T> T *made(T *entity, const char *what)
{
    if (entity == nullptr)
        kit_failed("%s could not be made", what);
    return entity;
}

/* The first IPv4 address of an interface: the white list takes no names. */
std::string address_of(const char *interface)
{
    ifaddrs *all = nullptr;
    std::string found;
    getifaddrs(&all);
    for (const ifaddrs *a = all; a != nullptr && found.empty(); a = a->ifa_next) {
        if (a->ifa_addr == nullptr || a->ifa_addr->sa_family != AF_INET || std::strcmp(a->ifa_name, interface) != 0)
            continue;
        char text[INET_ADDRSTRLEN];
        inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in *>(a->ifa_addr)->sin_addr, text, sizeof text);
        found = text;
    }
    freeifaddrs(all);
    if (found.empty())
        kit_failed("interface %s has no IPv4 address", interface);
    return found;
}

int32_t keep_all_samples(uint32_t size)
{
    const int32_t most = size < 65536 ? SAMPLES_MAX : size == 65536 ? LARGE_SAMPLES_MAX : VERY_LARGE_SAMPLES_MAX;
    return std::clamp(static_cast<int32_t>(HISTORY_BYTES_MAX / size), 1, most);
}

/* The policies that a writer and a reader have in common. */
template <typename Qos> void set_common(Qos &qos, const kit_options &o, uint32_t size)
{
    const bool keep_all = o.history_depth == 0;
    const auto depth = static_cast<int32_t>(keep_all ? 1 : o.history_depth);
    const int32_t samples = keep_all ? keep_all_samples(size) : std::max(depth, SAMPLES_MAX);

    qos.reliability().kind = o.reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
    qos.reliability().max_blocking_time = Duration_t(BLOCKING_MAX_S, 0);
    qos.durability().kind = VOLATILE_DURABILITY_QOS;
    qos.history().kind = keep_all ? KEEP_ALL_HISTORY_QOS : KEEP_LAST_HISTORY_QOS;
    qos.history().depth = depth;
    qos.resource_limits().max_samples = samples;
    qos.resource_limits().max_samples_per_instance = samples;
    qos.resource_limits().max_instances = 1;
    qos.resource_limits().allocated_samples = std::min(qos.resource_limits().allocated_samples, samples);
    if (data_sharing(o))
        qos.data_sharing().on("");
    else
        qos.data_sharing().off();
}

} // namespace

bool data_sharing(const kit_options &o)
{
    return std::strcmp(o.variant, "data-sharing") == 0;
}

void ignore_surroundings()
{
    for (const char *name : {"FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_STATISTICS", "FASTDDS_ENVIRONMENT_FILE",
                             "ROS_DISCOVERY_SERVER"})
        unsetenv(name);
    setenv("SKIP_DEFAULT_XML", "1", 1);
}

void Entities::make_participant()
{
    DomainParticipantQos qos;
    qos.transport().use_builtin_transports = false;
    if (options_.transport == KIT_SHM) {
        auto shm = std::make_shared<SharedMemTransportDescriptor>();
        shm->segment_size(std::max(SEGMENT_SIZE_MIN, options_.size * SEGMENT_SAMPLES));
        qos.transport().user_transports.push_back(shm);
    } else {
        auto udp = std::make_shared<UDPv4TransportDescriptor>();
        udp->interfaceWhiteList.push_back(address_of(options_.interface_name));
        udp->sendBufferSize = udp->receiveBufferSize = SOCKET_BUFFER_SIZE;
        qos.transport().user_transports.push_back(udp);
    }
    auto *factory = DomainParticipantFactory::get_instance();
    participant_ = made(factory->create_participant(options_.domain, qos), "the participant");
}

void Entities::make_publisher()
{
    publisher_ = made(participant_->create_publisher(PUBLISHER_QOS_DEFAULT), "the publisher");
}

void Entities::make_subscriber()
{
    subscriber_ = made(participant_->create_subscriber(SUBSCRIBER_QOS_DEFAULT), "the subscriber");
}

Topic *Entities::topic(const std::string &name, const SampleType &type)
{
    if (participant_ == nullptr)
        make_participant();
    TypeSupport support = type.support();
    if (auto *known = participant_->lookup_topicdescription(name))
        return dynamic_cast<Topic *>(known);
    if (participant_->find_type(support.get_type_name()).empty())
        support.register_type(participant_);
    return made(participant_->create_topic(name, support.get_type_name(), TOPIC_QOS_DEFAULT), "the topic");
}

DataWriter *Entities::writer(const std::string &topic_name, const SampleType &type)
{
    auto *data_topic = topic(topic_name, type);
    DataWriterQos qos;

    if (publisher_ == nullptr)
        make_publisher();
    set_common(qos, options_, type.size());
    const bool fragmented = type.size() > SYNCHRONOUS_SIZE_MAX && options_.role != KIT_LOCAL;
    qos.publish_mode().kind = fragmented ? ASYNCHRONOUS_PUBLISH_MODE : SYNCHRONOUS_PUBLISH_MODE;
    if (options_.history_depth == 0)
        qos.reliable_writer_qos().times.heartbeatPeriod = Duration_t(0, KEEP_ALL_HEARTBEAT_NS);
    return made(publisher_->create_datawriter(data_topic, qos), "the writer");
}

DataWriter *Entities::holding_writer(const std::string &topic_name, const SampleType &type)
{
    auto *data_topic = topic(topic_name, type);
    DataWriterQos qos;

    if (publisher_ == nullptr)
        make_publisher();
    set_common(qos, options_, type.size());
    qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
    qos.durability().kind = TRANSIENT_LOCAL_DURABILITY_QOS;
    qos.history().kind = KEEP_ALL_HISTORY_QOS;
    qos.resource_limits().max_samples = qos.resource_limits().max_samples_per_instance = SAMPLES_MAX;
    /* By default a hundred are the writer's from the beginning, and would not be counted as samples. */
    qos.resource_limits().allocated_samples = 1;
    return made(publisher_->create_datawriter(data_topic, qos), "the writer");
}

DataReader *Entities::reader(const std::string &topic_name, const SampleType &type, DataReaderListener *listener)
{
    auto *data_topic = topic(topic_name, type);
    DataReaderQos qos;

    if (subscriber_ == nullptr)
        make_subscriber();
    set_common(qos, options_, type.size());
    if (options_.multicast && options_.transport == KIT_UDP) {
        eprosima::fastrtps::rtps::Locator_t group;
        eprosima::fastrtps::rtps::IPLocator::createLocator(LOCATOR_KIND_UDPv4, MULTICAST_GROUP,
                                                           MULTICAST_PORT_BASE + MULTICAST_PORT_GAIN * options_.domain,
                                                           group);
        qos.endpoint().multicast_locator_list.push_back(group);
    }
    return made(subscriber_->create_datareader(data_topic, qos, listener,
                                               listener != nullptr ? StatusMask::data_available()
                                                                   : StatusMask::none()),
                "the reader");
}

void Entities::remove()
{
    if (participant_ == nullptr)
        return;
    participant_->delete_contained_entities();
    DomainParticipantFactory::get_instance()->delete_participant(participant_);
    participant_ = nullptr;
}

uint32_t matched(DataWriter *writer)
{
    PublicationMatchedStatus status;
    writer->get_publication_matched_status(status);
    return static_cast<uint32_t>(status.current_count);
}

uint32_t matched(DataReader *reader)
{
    SubscriptionMatchedStatus status;
    reader->get_subscription_matched_status(status);
    return static_cast<uint32_t>(status.current_count);
}
