/* The adapter of ZeroMQ: samples are packed by hand and go over TCP between
 * processes, or over inproc within one. ping and pong are two DEALER sockets (PAIR
 * within a process), pub and sub an XPUB, which is a PUB that sees its subscribers,
 * and a SUB. */
#include "kit.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

/* How long a write may wait for room, as a DDS writer's max_blocking_time. */
enum { SEND_LIMIT_MS = 1000 };

/* How long closing waits for what is still queued: below the kit's time to exit. */
enum { LINGER_MS = 1000 };

/* What a queue may hold: ZeroMQ counts messages, 1,000 by default, which is 8 GB of
 * the largest ones. Less than a few of those would stop a stream. */
enum { QUEUE_MEMORY = 64 << 20, QUEUE_MOST = 1000, QUEUE_LEAST = 4 };

static const struct kit_options *o;

struct end {
    void *socket;
    int fd;          /* readable when the socket may have something */
    bool answers;    /* pong: each sample goes back */
    struct end *other; /* takes what this end sends, in one thread; or NULL */
    uint8_t *packed; /* the sample to send */
    uint32_t subscribers;
};

static int checked(int result, const char *what)
{
    if (result < 0)
        kit_failed("%s: %s", what, zmq_strerror(zmq_errno()));
    return result;
}

static void set(struct end *end, int option, int value, const char *what)
{
    checked(zmq_setsockopt(end->socket, option, &value, sizeof value), what);
}

static int queue_length(void)
{
    const size_t fit = QUEUE_MEMORY / (kit_packed_length() + 1);
    return fit > QUEUE_MOST ? QUEUE_MOST : fit < QUEUE_LEAST ? QUEUE_LEAST : (int)fit;
}

static struct end open_end(void *context, int kind)
{
    struct end end = {.socket = zmq_socket(context, kind), .packed = calloc(1, kit_packed_length())};
    size_t length = sizeof end.fd;

    if (end.socket == NULL || end.packed == NULL)
        kit_failed("no socket: %s", zmq_strerror(zmq_errno()));
    set(&end, ZMQ_SNDHWM, queue_length(), "ZMQ_SNDHWM");
    set(&end, ZMQ_RCVHWM, queue_length(), "ZMQ_RCVHWM");
    set(&end, ZMQ_LINGER, LINGER_MS, "ZMQ_LINGER");
    set(&end, ZMQ_SNDTIMEO, SEND_LIMIT_MS, "ZMQ_SNDTIMEO");
    checked(zmq_getsockopt(end.socket, ZMQ_FD, &end.fd, &length), "ZMQ_FD");
    return end;
}

static void close_end(struct end *end)
{
    zmq_close(end->socket);
    free(end->packed);
}

static const char *tcp_of(const char *address)
{
    static char name[128];
    snprintf(name, sizeof name, "tcp://%s:%u", address, 20000 + 50 * o->domain);
    return name;
}

/* The port is the domain's: a process that still holds it is about to end. */
static void bind_tcp(struct end *end)
{
    checked(zmq_bind(end->socket, tcp_of(o->address)), tcp_of(o->address));
}

static void connect_tcp(struct end *end)
{
    checked(zmq_connect(end->socket, tcp_of(o->remote)), tcp_of(o->remote));
}

static int64_t send_sample(void *context, uint64_t seq)
{
    const struct end *end = context;
    const int64_t sent_ns = kit_pack(end->packed, seq);
    return zmq_send(end->socket, end->packed, kit_packed_length(), 0) < 0 ? 0 : sent_ns;
}

static void took(struct end *end, zmq_msg_t *message)
{
    struct kit_taken taken = {.taken_ns = kit_now()};
    uint8_t *packed = zmq_msg_data(message);

    if (o->role == KIT_PING || (o->role == KIT_LOCAL && o->transport == KIT_INTRA && !end->answers)) {
        kit_unpack_answer(packed, zmq_msg_size(message), &taken);
    } else {
        kit_unpack(packed, zmq_msg_size(message), &taken);
        /* The message itself goes back, shortened to an Ack where that is the answer. */
        if (end->answers && taken.right) {
            const size_t length = kit_pack_answer(packed, &taken);
            if (length == zmq_msg_size(message))
                zmq_msg_send(message, end->socket, 0);
            else
                zmq_send(end->socket, packed, length, 0);
        }
    }
    if (!(end->answers && o->role == KIT_LOCAL))
        kit_took(&taken);
}

/* Without data, waits on the socket's file descriptor: zmq_poll() knows nothing
 * shorter than a millisecond. */
static void poll_socket(void *context, int64_t timeout_ns)
{
    struct end *const self = context, *const end = self->other != NULL ? self->other : self;
    bool waited = timeout_ns == 0;

    for (;;) {
        zmq_msg_t message;
        zmq_msg_init(&message);
        const int received = zmq_msg_recv(&message, end->socket, ZMQ_DONTWAIT);
        if (received > 0)
            took(end, &message);
        zmq_msg_close(&message);
        if (received == 0 && end->answers)
            zmq_send(end->socket, "", 0, 0);
        if (received >= 0) {
            waited = true;
            continue;
        }
        if (waited)
            return;
        struct pollfd file = {.fd = end->fd, .events = POLLIN};
        const struct timespec timeout = {.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
        if (ppoll(&file, 1, &timeout, NULL) == 0)
            return;
        waited = true;
    }
}

/* True when pong has answered the empty message, which shows both directions. */
static bool greeted(void *context)
{
    const struct end *end = context;
    char nothing[1];
    return zmq_recv(end->socket, nothing, sizeof nothing, ZMQ_DONTWAIT) == 0;
}

/* True when all subscribers have said so. */
static bool subscribed(void *context)
{
    struct end *end = context;
    uint8_t word[2];
    while (zmq_recv(end->socket, word, sizeof word, ZMQ_DONTWAIT) > 0)
        end->subscribers += word[0] == 1;
    return end->subscribers >= o->remotes;
}

static struct kit_port port_of(struct end *end)
{
    return (struct kit_port){.context = end, .send = send_sample, .poll = poll_socket};
}

static const char *wait_name(void)
{
    return o->wait == KIT_SPIN ? "spin" : "waitset";
}

static void play_ping(void *context)
{
    struct end end = open_end(context, ZMQ_DEALER);
    connect_tcp(&end);
    checked(zmq_send(end.socket, "", 0, 0), "zmq_send");
    kit_await(greeted, &end, "pong does not answer");
    const struct kit_port port = port_of(&end);
    kit_ping(&port, wait_name());
    close_end(&end);
}

static void play_pong(void *context)
{
    struct end end = open_end(context, ZMQ_DEALER);
    end.answers = true;
    bind_tcp(&end);
    const struct kit_port port = port_of(&end);
    kit_pong(&port, wait_name());
    close_end(&end);
}

static void play_pub(void *context)
{
    struct end end = open_end(context, ZMQ_XPUB);
    set(&end, ZMQ_XPUB_VERBOSE, 1, "ZMQ_XPUB_VERBOSE");
    if (o->reliable) /* otherwise it drops what does not fit into a subscriber's queue */
        set(&end, ZMQ_XPUB_NODROP, 1, "ZMQ_XPUB_NODROP");
    bind_tcp(&end);
    kit_await(subscribed, &end, "not subscribed");
    struct kit_port port = port_of(&end);
    port.poll = NULL;
    kit_pub(&port, wait_name());
    close_end(&end);
}

static void play_sub(void *context)
{
    struct end end = open_end(context, ZMQ_SUB);
    checked(zmq_setsockopt(end.socket, ZMQ_SUBSCRIBE, "", 0), "ZMQ_SUBSCRIBE");
    connect_tcp(&end);
    const struct kit_port port = port_of(&end);
    kit_sub(&port, wait_name());
    close_end(&end);
}

static void play_local(void *context)
{
    struct end near = open_end(context, ZMQ_PAIR), far = open_end(context, ZMQ_PAIR);
    checked(zmq_bind(near.socket, "inproc://perf"), "zmq_bind");
    checked(zmq_connect(far.socket, "inproc://perf"), "zmq_connect");
    const struct kit_port port = port_of(&near), pong = port_of(&far);
    if (o->transport == KIT_INTRA) {
        far.answers = true;
        kit_local(&port, &pong, wait_name());
    } else {
        near.other = &far;
        kit_local(&port, NULL, "spin");
    }
    close_end(&near);
    close_end(&far);
}

int main(int argc, char **argv)
{
    char info[1024];
    int major, minor, patch;
    zmq_version(&major, &minor, &patch);
    snprintf(info, sizeof info,
             "{\"peer\":\"zeromq\",\"version\":\"%d.%d.%d\",\"transports\":[\"udp\",\"thread\",\"intra\"],"
             "\"roles\":[\"ping\",\"pong\",\"pub\",\"sub\",\"local\"],"
             "\"types\":[\"bytes\",\"simple\",\"complex\",\"plain\"],\"waits\":[\"waitset\",\"spin\"],"
             "\"variants\":[],\"multicast\":false,\"loan\":false,\"daemon\":false,"
             "\"note\":\"udp is TCP, the network path that ZeroMQ has; reliable is TCP and blocking at the "
             "high-water mark, without acknowledgement; fields are packed by hand\"}",
             major, minor, patch);
    o = kit_begin(argc, argv, info);

    const bool within = o->transport == KIT_THREAD || o->transport == KIT_INTRA;
    if (!within && o->transport != KIT_UDP)
        kit_absent("ZeroMQ has TCP and inproc");
    if (o->wait == KIT_LISTENER)
        kit_absent("ZeroMQ does not call back");
    if (o->loan)
        kit_absent("ZeroMQ lends no memory");
    if (o->variant[0] != '\0')
        kit_absent("no variant %s", o->variant);
    if (within != (o->role == KIT_LOCAL))
        kit_absent("transport and role do not fit");
    void *context = zmq_ctx_new();
    switch (o->role) {
    case KIT_PING:
        play_ping(context);
        break;
    case KIT_PONG:
        play_pong(context);
        break;
    case KIT_PUB:
        play_pub(context);
        break;
    case KIT_SUB:
        play_sub(context);
        break;
    case KIT_LOCAL:
        play_local(context);
        break;
    default:
        kit_absent("no such role");
    }
    zmq_ctx_term(context);
    return 0;
}
