/* perf-peer-fastdds: Fast DDS 2.9 (Debian) behind the contract of ../README.md. Here
 * are the roles; how entities are set up is in entities.cpp. */
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <unistd.h>
#include <vector>

#include <fastrtps/config.h>

#include "entities.h"
#include "flow.h"
#include "leftovers.h"
#include "types.h"

using eprosima::fastdds::dds::DataReader;
using eprosima::fastdds::dds::DataWriter;
using eprosima::fastrtps::rtps::SerializedPayload_t;

namespace {

constexpr char PING_TOPIC[] = "perf_ping";
constexpr char PONG_TOPIC[] = "perf_pong";
constexpr char DATA_TOPIC[] = "perf_data";

const char info[] =
    "{\"peer\":\"fastdds\",\"version\":\"" FASTRTPS_VERSION_STR "\","
    "\"transports\":[\"udp\",\"shm\",\"thread\",\"intra\"],"
    "\"roles\":[\"ping\",\"pong\",\"pub\",\"sub\",\"crowd\",\"local\",\"cdr\",\"entities\",\"node\"],"
    "\"types\":[\"bytes\",\"simple\",\"complex\",\"plain\"],\"waits\":[\"listener\",\"waitset\",\"spin\"],"
    "\"variants\":[\"data-sharing\"],\"multicast\":true,\"loan\":true,\"daemon\":false,"
    "\"note\":\"fastddsgen types; UDPv4 with 4 MiB socket buffers, or the SHM transport alone with a segment of "
    "4 MiB, or of 4 samples if that is more; synchronous publishing up to 60,000 bytes, asynchronous above but "
    "within a process; KEEP_ALL holds 64 MiB at most, 5,000 samples below 64 KiB, 256 of 64 KiB, 64 above, and "
    "its writers send heartbeats every 50 ms; max_blocking_time 10 s; thread and intra by intra-process "
    "delivery, without listeners, which write() would call; variant data-sharing is for type plain on shm; the "
    "rest is default, as is that discovery of endpoints goes to each participant and not to the group "
    "(avoid_builtin_multicast)\"}";

/* --- waiting ---------------------------------------------------------------- */

bool by_listener(const kit_options &o)
{
    return o.role != KIT_LOCAL && (o.wait == KIT_BLOCK || o.wait == KIT_LISTENER);
}

const char *wait_name(const kit_options &o)
{
    if (by_listener(o))
        return "listener";
    return o.wait == KIT_SPIN || o.transport == KIT_THREAD ? "spin" : "waitset";
}

/* Matched is what this side knows. The other side learns the same from datagrams that
 * are on their way, and nothing here tells when it has: too short a pause loses the
 * first sample, too long a one only stretches the trial. */
constexpr int64_t OTHER_SIDE_NS = 100000000;

/* A writer and a reader of this process, and what moves samples through them. */
struct Flow {
    Sender *sender = nullptr;
    Taker *taker = nullptr;
    DataReader *reader = nullptr;
    uint32_t remotes = 0;
};

kit_port port_of(Flow &flow, bool polls)
{
    kit_port port = {};
    port.context = &flow;
    port.send = [](void *context, uint64_t seq) { return static_cast<Flow *>(context)->sender->send(seq); };
    if (polls)
        port.poll = [](void *context, int64_t ns) { static_cast<Flow *>(context)->taker->poll(ns); };
    port.drain = [](void *context, int64_t ns) { static_cast<Flow *>(context)->sender->drain(ns); };
    return port;
}

void await_matched(Flow &flow)
{
    const auto all = [](void *context) {
        const auto *f = static_cast<Flow *>(context);
        return (f->sender == nullptr || matched(f->sender->writer()) >= f->remotes) &&
               (f->reader == nullptr || matched(f->reader) >= f->remotes);
    };
    kit_await(all, &flow, "not matched");
    kit_sleep_until(kit_now() + OTHER_SIDE_NS, false);
}

/* Makes the reader of `taker`, which takes by callback or is polled. */
DataReader *take_from(Entities &entities, const char *topic, const SampleType &type, Taker &taker, bool listen)
{
    DataReader *reader = entities.reader(topic, type, listen ? &taker : nullptr);
    if (!listen)
        taker.watch(reader);
    return reader;
}

/* The library aborts now and then while it deletes entities. What was measured is
 * reported by then, and stays good. */
void left_by_signal(int)
{
    static const char text[] = "Fast DDS ended the process while its entities were deleted, after done\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    _exit(0);
}

void finish(Entities &entities)
{
    std::signal(SIGABRT, left_by_signal);
    std::signal(SIGSEGV, left_by_signal);
    entities.remove();
}

/* --- the roles ---------------------------------------------------------------- */

void ping(const kit_options &o, Entities &entities)
{
    const auto sent = sample_type(o), answered = answer_type(o);
    Taker taker(*answered, o.loan);
    DataReader *reader = take_from(entities, PONG_TOPIC, *answered, taker, by_listener(o));
    Sender sender(entities.writer(PING_TOPIC, *sent), *sent, o.loan);
    Flow flow = {&sender, &taker, reader, o.remotes};
    const kit_port port = port_of(flow, !by_listener(o));

    await_matched(flow);
    kit_ping(&port, wait_name(o));
    finish(entities);
}

void pong(const kit_options &o, Entities &entities)
{
    const auto asked = sample_type(o), answered = answer_type(o);
    Sender sender(entities.writer(PONG_TOPIC, *answered), *answered, o.loan);
    Answerer answerer(*asked, sender, answers_in_kind(o), o.loan, true);
    Flow flow = {&sender, &answerer, nullptr, 0};
    const kit_port port = port_of(flow, !by_listener(o));

    take_from(entities, PING_TOPIC, *asked, answerer, by_listener(o));
    kit_pong(&port, wait_name(o));
    finish(entities);
}

void pub(const kit_options &o, Entities &entities)
{
    const auto type = sample_type(o);
    Sender sender(entities.writer(DATA_TOPIC, *type), *type, o.loan);
    Flow flow = {&sender, nullptr, nullptr, o.remotes};
    const kit_port port = port_of(flow, false);

    await_matched(flow);
    kit_pub(&port, wait_name(o));
    finish(entities);
}

/* Each thread has a writer of its own, and samples. */
void crowd(const kit_options &o, Entities &entities)
{
    struct One {
        std::unique_ptr<SampleType> type;
        std::unique_ptr<Sender> sender;
        Flow flow;
    };
    std::vector<One> ones(o.threads);
    std::vector<kit_port> ports;
    for (One &one : ones) {
        one.type = sample_type(o);
        one.sender = std::make_unique<Sender>(entities.writer(DATA_TOPIC, *one.type), *one.type, o.loan);
        one.flow = {one.sender.get(), nullptr, nullptr, o.remotes};
        ports.push_back(port_of(one.flow, false));
    }
    for (One &one : ones)
        await_matched(one.flow);
    kit_crowd(ports.data(), wait_name(o));
    finish(entities);
}

void sub(const kit_options &o, Entities &entities)
{
    const auto type = sample_type(o);
    Taker taker(*type, o.loan);
    Flow flow = {nullptr, &taker, nullptr, 0};
    const kit_port port = port_of(flow, !by_listener(o));

    take_from(entities, DATA_TOPIC, *type, taker, by_listener(o));
    kit_sub(&port, wait_name(o));
    finish(entities);
}

void local_thread(const kit_options &o, Entities &entities)
{
    const auto type = sample_type(o);
    Taker taker(*type, o.loan);
    DataReader *reader = take_from(entities, PING_TOPIC, *type, taker, false);
    Sender sender(entities.writer(PING_TOPIC, *type), *type, o.loan);
    Flow flow = {&sender, &taker, reader, 1};
    const kit_port port = port_of(flow, true);

    await_matched(flow);
    kit_local(&port, nullptr, wait_name(o));
    finish(entities);
}

void local_intra(const kit_options &o, Entities &entities)
{
    const auto sent = sample_type(o), asked = sample_type(o), answered = answer_type(o), got = answer_type(o);
    Sender pong_sender(entities.writer(PONG_TOPIC, *answered), *answered, o.loan);
    Answerer answerer(*asked, pong_sender, answers_in_kind(o), o.loan, false);
    DataReader *pong_reader = take_from(entities, PING_TOPIC, *asked, answerer, false);
    Taker taker(*got, o.loan);
    DataReader *reader = take_from(entities, PONG_TOPIC, *got, taker, false);
    Sender sender(entities.writer(PING_TOPIC, *sent), *sent, o.loan);
    Flow here = {&sender, &taker, reader, 1};
    Flow there = {&pong_sender, &answerer, pong_reader, 1};
    const kit_port port = port_of(here, true), pong_port = port_of(there, true);

    await_matched(here);
    await_matched(there);
    kit_local(&port, &pong_port, wait_name(o));
    finish(entities);
}

void cdr(const kit_options &o)
{
    const auto type = sample_type(o);
    const auto support = type->support();
    void *sample = type->memory();
    type->fill(sample, 0);
    SerializedPayload_t payload(support->getSerializedSizeProvider(sample)());
    struct Coder {
        eprosima::fastdds::dds::TopicDataType *support;
        void *sample;
        SerializedPayload_t *payload;
    } coder = {support.get(), sample, &payload};

    if (!support->serialize(sample, &payload) || !support->deserialize(&payload, sample))
        kit_failed("the sample cannot be encoded and decoded");
    kit_cdr(
        [](void *context) {
            const auto *c = static_cast<Coder *>(context);
            c->support->serialize(c->sample, c->payload);
        },
        [](void *context) {
            const auto *c = static_cast<Coder *>(context);
            c->support->deserialize(c->payload, c->sample);
        },
        &coder);
}

/* README.md: the samples that a writer holds. */
constexpr uint32_t HELD = 1000, HELD_SIZE = 1024;

struct Steps {
    Entities &entities;
    std::unique_ptr<SampleType> type, held_type;
    DataWriter *holder;

    /* Readers have one of their own: a match of each with each would be counted as theirs. */
    static constexpr const char *written = "perf_data", *read = "perf_data_read", *kept = "perf_data_held";
};

void step_held(void *context, uint32_t)
{
    auto *steps = static_cast<Steps *>(context);
    if (!steps->holder->write(steps->held_type->memory()))
        kit_failed("the writer holds no more samples");
}

void step_holder(void *context, uint32_t i)
{
    auto *steps = static_cast<Steps *>(context);
    steps->held_type = bytes_type(HELD_SIZE);
    steps->holder = steps->entities.holding_writer(Steps::kept, *steps->held_type);
    step_held(context, i);
}

void entities_role(const kit_options &o, Entities &entities)
{
    Steps steps = {entities, sample_type(o), nullptr, nullptr};
    const kit_step all[] = {
        {"participant", 1, [](void *c, uint32_t) { static_cast<Steps *>(c)->entities.make_participant(); }},
        {"topic", 1,
         [](void *c, uint32_t) {
             auto *s = static_cast<Steps *>(c);
             s->entities.topic(Steps::written, *s->type);
         }},
        {"writer", 100,
         [](void *c, uint32_t) {
             auto *s = static_cast<Steps *>(c);
             s->entities.writer(Steps::written, *s->type);
         }},
        {"reader", 100,
         [](void *c, uint32_t) {
             auto *s = static_cast<Steps *>(c);
             s->entities.reader(Steps::read, *s->type, nullptr);
         }},
        {"publisher", 100, [](void *c, uint32_t) { static_cast<Steps *>(c)->entities.make_publisher(); }},
        {"subscriber", 100, [](void *c, uint32_t) { static_cast<Steps *>(c)->entities.make_subscriber(); }},
        {"holding writer", 1, step_holder},
        {"held sample", HELD, step_held},
    };
    kit_entities(all, sizeof all / sizeof all[0], &steps);
    finish(entities);
}

struct Node {
    const kit_options &options;
    Entities &entities;
    std::unique_ptr<SampleType> type;
    std::vector<DataWriter *> writers;
    std::vector<DataReader *> readers;
    size_t matched; /* endpoints in front of this one are */
};

void create_node(void *context)
{
    auto *node = static_cast<Node *>(context);
    for (uint32_t i = 0; i < node->options.endpoints; i++) {
        const std::string topic = "perf_node_" + std::to_string(i);
        node->writers.push_back(node->entities.writer(topic, *node->type));
        node->readers.push_back(node->entities.reader(topic, *node->type, nullptr));
    }
}

bool node_matched(void *context)
{
    auto *node = static_cast<Node *>(context);
    const uint32_t all = node->options.nodes;
    while (node->matched < node->writers.size() && matched(node->writers[node->matched]) >= all &&
           matched(node->readers[node->matched]) >= all)
        node->matched++;
    return node->matched == node->writers.size();
}

void node_role(const kit_options &o, Entities &entities)
{
    Node node = {o, entities, sample_type(o), {}, {}, 0};
    kit_node(create_node, node_matched, &node);
    finish(entities);
}

/* --- beginning and end --------------------------------------------------------- */

/* Ends the process with what it cannot do, before anything is made. */
void check(const kit_options &o)
{
    const bool here = o.transport == KIT_THREAD || o.transport == KIT_INTRA;
    if (o.role == KIT_DAEMON)
        kit_absent("Fast DDS needs no daemon");
    if (o.transport != KIT_UDP && o.transport != KIT_SHM && !here)
        kit_absent("Fast DDS has no such transport");
    if (o.variant[0] != '\0' && !data_sharing(o))
        kit_absent("Fast DDS has no variant %s", o.variant);
    if (data_sharing(o) && (o.type != KIT_PLAIN || o.transport != KIT_SHM))
        kit_absent("data-sharing is for bounded types, thus plain, between processes, thus shm");
    if (o.loan && o.role <= KIT_LOCAL && o.type != KIT_PLAIN)
        kit_absent("only samples of type plain are lent");
    if (here && o.role < KIT_LOCAL)
        kit_absent("this transport is for the role local");
    if (!here && o.role == KIT_LOCAL)
        kit_absent("local is for the transports thread and intra");
    if (o.role == KIT_LOCAL && o.wait == KIT_LISTENER)
        kit_absent("within a process write() itself calls the listener: each answer would nest in the last");
}

void play(const kit_options &o, Entities &entities)
{
    switch (o.role) {
    case KIT_PING:
        return ping(o, entities);
    case KIT_PONG:
        return pong(o, entities);
    case KIT_PUB:
        return pub(o, entities);
    case KIT_SUB:
        return sub(o, entities);
    case KIT_CROWD:
        return crowd(o, entities);
    case KIT_LOCAL:
        return o.transport == KIT_THREAD ? local_thread(o, entities) : local_intra(o, entities);
    case KIT_CDR:
        return cdr(o);
    case KIT_ENTITIES:
        return entities_role(o, entities);
    default:
        return node_role(o, entities);
    }
}

} // namespace

int main(int argc, char **argv)
{
    const kit_options &o = *kit_begin(argc, argv, info);
    check(o);
    ignore_surroundings();
    if (o.transport == KIT_SHM)
        kit_on_abandon(remove_shared_memory);
    Entities entities(o);
    play(o, entities);
    /* Neither destructors of statics nor handlers of exit(): the library's own have
     * been seen to abort. */
    _exit(0);
}
