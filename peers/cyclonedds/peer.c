/* The adapter of Cyclone DDS: the entities, their callbacks and the roles. */
#include "adapter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if CYCLONE11
#include <dds/ddsi/ddsi_serdata.h>
#include <dds/ddsi/ddsi_sertype.h>
#define LOAN "true"
#define CDR_NOTE "cdr encodes into memory that is kept, as the others; "
#else
/* A 0.10 writer lends shared memory, and its reader copies out of it. */
#define LOAN "false"
#define CDR_NOTE "no cdr, as it has no public way to its serializer; "
#define dds_request_loan(writer, sample) DDS_RETCODE_UNSUPPORTED
#include <dds/ddsc/dds_loan_api.h>
#endif

const struct kit_options *o;

/* Samples a take brings at most, and their memory: 0.10 allocates for all of them. */
enum { BATCH = 32, BATCH_MEMORY = 1 << 20 };

struct end {
    dds_entity_t writer, reader, waitset;
    void *sample; /* what the writer sends: a sample, or an answer */
    void *own[BATCH]; /* what the reader copies samples into; NULL: they are lent */
    bool answers; /* takes samples and answers them */
    bool asks;    /* takes answers */
    bool delivered; /* there may be something to take: of who spins, set by whoever delivers */
};

static uint32_t batch(void)
{
    const uint32_t fit = BATCH_MEMORY / (o->size + 1);
    return fit < 1 ? 1 : fit > BATCH ? BATCH : fit;
}

static void answer(const struct end *end, const void *sample, const struct kit_taken *taken)
{
    void *loan = end->sample;
    if (o->loan && dds_request_loan(end->writer, &loan) != DDS_RETCODE_OK)
        return; /* ping counts it as lost */
    answer_fill(loan, sample, taken);
    if (dds_write(end->writer, loan) != DDS_RETCODE_OK && o->loan)
        dds_return_loan(end->writer, &loan, 1);
}

static void took(const struct end *end, const void *sample, int64_t taken_ns)
{
    struct kit_taken taken = {.taken_ns = taken_ns};
    if (end->asks)
        answer_read(sample, &taken);
    else
        sample_read(sample, &taken);
    if (end->answers && taken.right)
        answer(end, sample, &taken);
    if (!end->answers || o->role == KIT_PONG)
        kit_took(&taken);
}

/* Shared memory lends samples in place, so what is to be copied needs a place to go to. Elsewhere a take
 * decodes into memory that it lends. */
static void prepare_to_take(struct end *end)
{
    if (o->transport == KIT_SHM && o->type == KIT_PLAIN && !o->loan)
        for (uint32_t i = 0; i < batch(); i++)
            end->own[i] = sample_new();
}

/* Takes all there is. */
static void take_all(const struct end *end, dds_entity_t reader)
{
    const uint32_t most = batch();
    int32_t count;
    do {
        void *samples[BATCH];
        dds_sample_info_t infos[BATCH];
        memcpy(samples, end->own, sizeof samples);
        count = dds_take(reader, samples, infos, most, most);
        if (count <= 0)
            return;
        const int64_t now = kit_now();
        for (int32_t i = 0; i < count; i++)
            if (infos[i].valid_data)
                took(end, samples[i], now);
        if (end->own[0] == NULL)
            dds_return_loan(reader, samples, count);
    } while ((uint32_t)count == most);
}

static void on_data(dds_entity_t reader, void *argument)
{
    take_all(argument, reader);
}

static bool spins(void)
{
    return o->wait == KIT_SPIN;
}

static void on_delivered(dds_entity_t reader, void *argument)
{
    struct end *end = argument;
    (void)reader;
    __atomic_store_n(&end->delivered, true, __ATOMIC_RELEASE);
}

static void poll_reader(void *context, int64_t timeout_ns)
{
    struct end *end = context;
    if (timeout_ns > 0)
        dds_waitset_wait(end->waitset, NULL, 0, timeout_ns);
    /* Who spins takes only if there is something: to take from an empty reader again and
     * again holds the lock that the thread which delivers needs. */
    if (!spins() || __atomic_exchange_n(&end->delivered, false, __ATOMIC_ACQUIRE))
        take_all(end, end->reader);
}

/* With batching, what a burst has gathered goes out at its end. */
static void flush(const struct end *end, uint64_t seq)
{
    if (variant_is("65500") && o->role != KIT_DAEMON && (o->role > KIT_SUB || o->size <= 14000))
        kit_absent("65500 is for samples that take several messages: by default one has 14,720 bytes");
    if (variant_is("batching") && (o->period_ns != 0 || (o->burst != 0 && (seq + 1) % o->burst == 0)))
        dds_write_flush(end->writer);
}

static int64_t send_sample(void *context, uint64_t seq)
{
    const struct end *end = context;
    void *sample = end->sample;
    if (o->loan && dds_request_loan(end->writer, &sample) != DDS_RETCODE_OK)
        return 0;
    const int64_t sent_ns = sample_fill(sample, seq);
    if (dds_write(end->writer, sample) != DDS_RETCODE_OK) {
        if (o->loan)
            dds_return_loan(end->writer, &sample, 1);
        return 0;
    }
    flush(end, seq);
    return sent_ns;
}

static void drain(void *context, int64_t timeout_ns)
{
    const struct end *end = context;
    if (variant_is("batching"))
        dds_write_flush(end->writer);
    if (o->reliable)
        dds_wait_for_acks(end->writer, timeout_ns);
}

/* --- entities -------------------------------------------------------------- */

/* A listener runs in the thread that receives. With KEEP_ALL its write may wait for
 * acknowledgements that this same thread is to read, until max_blocking_time; at the
 * full rate of a closed loop that happens within a second. */
static bool blocks_itself(void)
{
    return o->reliable && o->history_depth == 0 && o->period_ns == 0 &&
           (o->role == KIT_PING || o->role == KIT_PONG);
}

static bool listens(void)
{
    return (o->wait == KIT_LISTENER || (o->wait == KIT_BLOCK && !blocks_itself())) && o->role != KIT_LOCAL;
}

static const char *wait_name(void)
{
    return listens() ? "listener" : spins() ? "spin" : "waitset";
}

/* A silent fall back to the network, or to copies, would be measured as what it is
 * not. */
static void check_shm(dds_entity_t endpoint)
{
    if (o->transport == KIT_SHM && !dds_is_shared_memory_available(endpoint))
        kit_absent("this type and QoS do not go through shared memory");
}

static void add_writer(struct end *end, dds_entity_t participant, dds_entity_t topic)
{
    dds_qos_t *qos = make_qos();
    end->writer = checked(dds_create_writer(participant, topic, qos, NULL), "dds_create_writer");
    dds_delete_qos(qos);
    check_shm(end->writer);
}

/* After the writer: the listener may be called at once, and answers. */
static void add_reader(struct end *end, dds_entity_t participant, dds_entity_t topic)
{
    prepare_to_take(end);
    dds_qos_t *qos = make_qos();
    dds_listener_t *listener = dds_create_listener(end);
    dds_lset_data_available(listener, spins() ? on_delivered : on_data);
    end->reader = checked(dds_create_reader(participant, topic, qos, spins() || listens() ? listener : NULL),
                          "dds_create_reader");
    dds_delete_listener(listener);
    dds_delete_qos(qos);
    check_shm(end->reader);
    if (listens())
        return;
    end->waitset = checked(dds_create_waitset(participant), "dds_create_waitset");
    const dds_entity_t condition = checked(dds_create_readcondition(end->reader, DDS_ANY_STATE),
                                           "dds_create_readcondition");
    checked(dds_waitset_attach(end->waitset, condition, 0), "dds_waitset_attach");
}

static dds_entity_t make_participant(void)
{
    make_domain();
    return checked(dds_create_participant(o->domain, NULL, NULL), "dds_create_participant");
}

static bool matched(void *context)
{
    const struct end *end = context;
    dds_publication_matched_status_t readers;
    dds_subscription_matched_status_t writers;
    dds_get_publication_matched_status(end->writer, &readers);
    if (readers.current_count < o->remotes)
        return false;
    if (end->reader == 0)
        return true;
    dds_get_subscription_matched_status(end->reader, &writers);
    return writers.current_count >= o->remotes;
}

static struct kit_port port_of(struct end *end)
{
    return (struct kit_port){
        .context = end,
        .send = send_sample,
        .poll = listens() ? NULL : poll_reader,
        .drain = drain,
    };
}

/* --- roles ----------------------------------------------------------------- */

static void play_ping_or_pong(void)
{
    static struct end end;
    const bool ping = o->role == KIT_PING;
    const dds_entity_t participant = make_participant();
    const dds_entity_t there = make_topic(participant, sample_descriptor(), "perf_ping");
    const dds_entity_t back = make_topic(participant, answer_descriptor(), "perf_pong");

    end.asks = ping;
    end.answers = !ping;
    end.sample = ping ? sample_new() : answer_new();
    add_writer(&end, participant, ping ? there : back);
    add_reader(&end, participant, ping ? back : there);
    const struct kit_port port = port_of(&end);
    if (ping)
        kit_await(matched, &end, "not matched");
    (ping ? kit_ping : kit_pong)(&port, wait_name());
}

static void play_pub_or_sub(void)
{
    static struct end end;
    const dds_entity_t participant = make_participant();
    const dds_entity_t topic = make_topic(participant, sample_descriptor(), "perf_data");

    if (o->role == KIT_SUB) {
        add_reader(&end, participant, topic);
        const struct kit_port port = port_of(&end);
        kit_sub(&port, wait_name());
        return;
    }
    end.sample = sample_new();
    add_writer(&end, participant, topic);
    kit_await(matched, &end, "not matched");
    const struct kit_port port = port_of(&end);
    kit_pub(&port, wait_name());
}

/* Each thread has a writer of its own. */
static void play_crowd(void)
{
    struct end *ends = calloc(o->threads, sizeof *ends);
    struct kit_port *ports = calloc(o->threads, sizeof *ports);
    const dds_entity_t participant = make_participant();
    const dds_entity_t topic = make_topic(participant, sample_descriptor(), "perf_data");

    for (uint32_t i = 0; i < o->threads; i++) {
        ends[i].sample = sample_new();
        add_writer(&ends[i], participant, topic);
        ports[i] = port_of(&ends[i]);
    }
    for (uint32_t i = 0; i < o->threads; i++)
        kit_await(matched, &ends[i], "not matched");
    kit_crowd(ports, wait_name());
}

static void play_local(void)
{
    static struct end near, far;
    const dds_entity_t participant = make_participant();
    const dds_entity_t there = make_topic(participant, sample_descriptor(), "perf_ping");
    const struct kit_port port = port_of(&near), pong = port_of(&far);

    near.sample = sample_new();
    add_writer(&near, participant, there);
    if (o->transport == KIT_THREAD) {
        add_reader(&near, participant, there);
        kit_local(&port, NULL, "spin");
        return;
    }
    const dds_entity_t back = make_topic(participant, answer_descriptor(), "perf_pong");
    near.asks = far.answers = true;
    far.sample = answer_new();
    add_writer(&far, participant, back);
    add_reader(&far, participant, there);
    add_reader(&near, participant, back);
    kit_local(&port, &pong, wait_name());
}

#if CYCLONE11
static struct {
    const struct ddsi_sertype *type;
    struct ddsi_serdata *encoded; /* as a write makes it */
    void *sample, *decoded;
    void *buffer; /* which is encoded into, again and again */
    size_t size;  /* of what is encoded, without an encapsulation header */
    bool broken;
} cdr;

static void encode(void *unused)
{
    (void)unused;
    cdr.broken |= !ddsi_sertype_serialize_into(cdr.type, SDK_DATA, cdr.sample, cdr.buffer, cdr.size);
}

static void decode(void *unused)
{
    (void)unused;
    cdr.broken |= !ddsi_serdata_to_sample(cdr.encoded, cdr.decoded, NULL, NULL);
}

/* Is what is encoded into the buffer what a write sends, and is that the sample? */
static bool encodes_and_decodes(void)
{
    enum { ENCAPSULATION = 4 };
    struct kit_taken taken;
    void *sent = calloc(1, cdr.size);
    encode(NULL);
    decode(NULL);
    ddsi_serdata_to_ser(cdr.encoded, ENCAPSULATION, cdr.size, sent);
    const bool same = memcmp(sent, cdr.buffer, cdr.size) == 0;
    free(sent);
    sample_read(cdr.decoded, &taken);
    return same && !cdr.broken && taken.right && taken.seq == 7;
}

static void play_cdr(void)
{
    const dds_entity_t topic = make_topic(make_participant(), sample_descriptor(), "perf_data");
    uint16_t encoding;
    checked(dds_get_entity_sertype(topic, &cdr.type), "dds_get_entity_sertype");
    cdr.sample = sample_new();
    cdr.decoded = calloc(1, sample_descriptor()->m_size);
    sample_fill(cdr.sample, 7);
    cdr.encoded = ddsi_serdata_from_sample(cdr.type, SDK_DATA, cdr.sample);
    checked(ddsi_sertype_get_serialized_size(cdr.type, SDK_DATA, cdr.sample, &cdr.size, &encoding),
            "ddsi_sertype_get_serialized_size");
    cdr.buffer = calloc(1, cdr.size);
    if (!encodes_and_decodes())
        kit_failed("a sample is not the same when it is encoded and decoded");
    kit_cdr(encode, decode, NULL);
    ddsi_serdata_unref(cdr.encoded);
}
#else
static void play_cdr(void)
{
    kit_absent("Cyclone DDS 0.10 has no public way to its serializer");
}
#endif

/* --- entities and node ------------------------------------------------------ */

/* README.md: the samples that a writer holds. */
enum { HELD = 1000, HELD_SIZE = 1024 };

static dds_entity_t participant, topic, holder;
static void *held;

static void step_participant(void *unused, uint32_t i)
{
    (void)unused, (void)i;
    participant = make_participant();
}

static void step_topic(void *unused, uint32_t i)
{
    (void)unused, (void)i;
    topic = make_topic(participant, sample_descriptor(), "perf_data");
}

static dds_entity_t make_publisher(void)
{
    return checked(dds_create_publisher(participant, NULL, NULL), "dds_create_publisher");
}

static dds_entity_t make_subscriber(void)
{
    return checked(dds_create_subscriber(participant, NULL, NULL), "dds_create_subscriber");
}

static void step_publisher(void *unused, uint32_t i)
{
    (void)unused, (void)i;
    make_publisher();
}

static void step_subscriber(void *unused, uint32_t i)
{
    (void)unused, (void)i;
    make_subscriber();
}

static void step_writer(void *qos, uint32_t i)
{
    static dds_entity_t publisher;
    if (i == 0)
        publisher = make_publisher();
    checked(dds_create_writer(publisher, topic, qos, NULL), "dds_create_writer");
}

/* On a topic of their own: a match of each with each would be counted as theirs. */
static void step_reader(void *qos, uint32_t i)
{
    static dds_entity_t read, subscriber;
    if (i == 0) {
        read = make_topic(participant, sample_descriptor(), "perf_data_read");
        subscriber = make_subscriber();
    }
    checked(dds_create_reader(subscriber, read, qos, NULL), "dds_create_reader");
}

static void step_held(void *unused, uint32_t i)
{
    (void)unused, (void)i;
    checked(dds_write(holder, held), "dds_write");
}

static void step_holder(void *unused, uint32_t i)
{
    dds_qos_t *qos = make_holding_qos();
    const dds_entity_t kept = make_topic(participant, bytes_descriptor(), "perf_data_held");
    holder = checked(dds_create_writer(participant, kept, qos, NULL), "dds_create_writer");
    dds_delete_qos(qos);
    held = bytes_new(HELD_SIZE);
    step_held(unused, i);
}

static void play_entities(void)
{
    static const struct kit_step steps[] = {
        {"participant", 1, step_participant},   {"topic", 1, step_topic},
        {"writer", 100, step_writer},           {"reader", 100, step_reader},
        {"publisher", 100, step_publisher},     {"subscriber", 100, step_subscriber},
        {"holding writer", 1, step_holder},     {"held sample", HELD, step_held},
    };
    kit_entities(steps, sizeof steps / sizeof steps[0], make_qos());
}

struct nodes {
    struct end *ends; /* one a topic */
    uint32_t matched; /* so many of them are */
};

static void node_create(void *context)
{
    struct nodes *nodes = context;
    dds_qos_t *qos = make_qos();
    participant = make_participant();
    for (uint32_t i = 0; i < o->endpoints; i++) {
        char name[32];
        snprintf(name, sizeof name, "perf_node_%u", i);
        topic = make_topic(participant, sample_descriptor(), name);
        nodes->ends[i].writer = checked(dds_create_writer(participant, topic, qos, NULL), "dds_create_writer");
        nodes->ends[i].reader = checked(dds_create_reader(participant, topic, qos, NULL), "dds_create_reader");
    }
    dds_delete_qos(qos);
}

/* With the endpoints of all nodes: a node's own match each other as well. */
static bool node_matched(void *context)
{
    struct nodes *nodes = context;
    for (; nodes->matched < o->endpoints; nodes->matched++) {
        const struct end *end = &nodes->ends[nodes->matched];
        dds_publication_matched_status_t readers;
        dds_subscription_matched_status_t writers;
        dds_get_publication_matched_status(end->writer, &readers);
        dds_get_subscription_matched_status(end->reader, &writers);
        if (readers.current_count < o->nodes || writers.current_count < o->nodes)
            return false;
    }
    return true;
}

static void play_node(void)
{
    struct nodes nodes = {.ends = calloc(o->endpoints + 1, sizeof *nodes.ends)};
    if (nodes.ends == NULL)
        kit_failed("no memory for %u endpoints", o->endpoints);
    kit_node(node_create, node_matched, &nodes);
}

/* What this product does not have, or would do in another way than asked. */
static void check_options(void)
{
    const bool within = o->transport == KIT_THREAD || o->transport == KIT_INTRA;
    if (!within && o->transport != KIT_UDP && o->transport != KIT_SHM)
        kit_absent("Cyclone DDS has no such transport");
    if (o->role == KIT_LOCAL ? !within : within && o->role < KIT_LOCAL)
        kit_absent("transport and role do not fit");
    if (o->transport == KIT_INTRA && o->wait == KIT_LISTENER)
        kit_absent("within a process the listener runs in the thread that writes");
    if (o->wait == KIT_LISTENER && blocks_itself())
        kit_absent("reliable KEEP_ALL: a listener that writes waits for its own thread");
    if (o->loan && !CYCLONE11)
        kit_absent("Cyclone DDS 0.10 lends memory to writers only");
    if (o->loan && (o->transport != KIT_SHM || o->type != KIT_PLAIN))
        kit_absent("only shared memory and type plain lend memory that is not copied");
    if (o->variant[0] != '\0' && !variant_is("batching") && !variant_is("65500"))
        kit_absent("no variant %s", o->variant);
    if (variant_is("batching") && o->role != KIT_PUB && o->role != KIT_SUB && o->role != KIT_DAEMON)
        kit_absent("batching is for streams");
}

static void play(void)
{
    switch (o->role) {
    case KIT_PING:
    case KIT_PONG:
        play_ping_or_pong();
        break;
    case KIT_PUB:
    case KIT_SUB:
        play_pub_or_sub();
        break;
    case KIT_CROWD:
        play_crowd();
        break;
    case KIT_LOCAL:
        play_local();
        break;
    case KIT_CDR:
        play_cdr();
        break;
    case KIT_ENTITIES:
        play_entities();
        break;
    case KIT_NODE:
        play_node();
        break;
    case KIT_DAEMON:
        play_daemon();
        break;
    }
}

int main(int argc, char **argv)
{
    o = kit_begin(argc, argv,
                  "{\"peer\":\"" PEER_NAME "\",\"version\":\"" DDS_VERSION "\","
                  "\"transports\":[\"udp\",\"thread\",\"intra\",\"shm\"],"
                  "\"roles\":[\"ping\",\"pong\",\"pub\",\"sub\",\"crowd\",\"local\","
#if CYCLONE11
                  "\"cdr\","
#endif
                  "\"entities\",\"node\",\"daemon\"],"
                  "\"types\":[\"bytes\",\"simple\",\"complex\",\"plain\"],"
                  "\"waits\":[\"listener\",\"waitset\",\"spin\"],\"variants\":[\"batching\",\"65500\"],"
                  "\"multicast\":true,\"loan\":" LOAN ",\"daemon\":true,"
                  "\"note\":\"defaults but for the interface, 4 MiB to receive into for each socket, and writes that "
                  "may block for 10 s; a writer of several readers that is not to use multicast sends the discovery "
                  "of endpoints to each as well (AllowMulticast spdp); who spins looks at what its listener notes; "
                  CDR_NOTE "within a process nothing goes over the network; "
                  "shm is iceoryx with the daemon iox-roudi, the other transports need none\"}");
    check_options();
    play();
    /* Everything, the domain too: only then is the departure announced. */
    if (o->role != KIT_DAEMON)
        dds_delete(DDS_CYCLONEDDS_HANDLE);
    return 0;
}
