/* The adapter of MQTT: libmosquitto's client in threaded mode, which calls back when a
 * message comes, and the broker mosquitto as daemon. Samples are packed by hand. */
#include "kit.h"

#include <arpa/inet.h>
#include <mosquitto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What is under way from this client to the broker: the library would queue without
 * limit. Fewer than a few would stop a stream of the largest samples. */
enum { WAY_MEMORY = 64 << 20, WAY_MOST = 1000, WAY_LEAST = 4 };

/* How long a write waits for room on the way. */
enum { SEND_LIMIT_S = 1 };

/* A subscriber that is ready says so here, for publishers that come later too. */
#define HELLO "perf_hello/"

static const struct kit_options *o;

static struct {
    struct mosquitto *client;
    const char *publishes, *subscribes;
    uint8_t *packed;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t under_way, most; /* messages that the broker does not have yet */
    bool subscribed;          /* the broker confirmed it */
    uint32_t hellos;
} mqtt = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void checked(int result, const char *what)
{
    if (result != MOSQ_ERR_SUCCESS)
        kit_failed("%s: %s", what, mosquitto_strerror(result));
}

static int quality(void)
{
    return o->reliable ? 1 : 0;
}

static uint16_t port_number(void)
{
    return (uint16_t)(20000 + 50 * o->domain);
}

/* --- callbacks, from the client's thread ------------------------------------ */

static void on_publish(struct mosquitto *client, void *unused, int id)
{
    (void)client, (void)unused, (void)id;
    pthread_mutex_lock(&mqtt.lock);
    if (mqtt.under_way > 0)
        mqtt.under_way--;
    pthread_cond_signal(&mqtt.changed);
    pthread_mutex_unlock(&mqtt.lock);
}

static void on_subscribe(struct mosquitto *client, void *unused, int id, int count, const int *granted)
{
    char hello[32];
    (void)unused, (void)id, (void)count, (void)granted;
    __atomic_store_n(&mqtt.subscribed, true, __ATOMIC_RELEASE);
    if (o->role == KIT_PONG || o->role == KIT_SUB) {
        snprintf(hello, sizeof hello, HELLO "%u", o->index);
        mosquitto_publish(client, NULL, hello, 1, "1", 1, true);
    }
}

/* Past the limit: a callback must not wait for what only its own thread can free. */
static void publish_answer(const uint8_t *packed, size_t length)
{
    pthread_mutex_lock(&mqtt.lock);
    mqtt.under_way++;
    pthread_mutex_unlock(&mqtt.lock);
    mosquitto_publish(mqtt.client, NULL, mqtt.publishes, (int)length, packed, quality(), false);
}

static void on_message(struct mosquitto *client, void *unused, const struct mosquitto_message *message)
{
    struct kit_taken taken = {.taken_ns = kit_now()};
    const size_t length = message->payloadlen < 0 ? 0 : (size_t)message->payloadlen;
    (void)client, (void)unused;

    if (strncmp(message->topic, HELLO, strlen(HELLO)) == 0) {
        __atomic_add_fetch(&mqtt.hellos, 1, __ATOMIC_ACQ_REL);
        return;
    }
    if (o->role == KIT_PING) {
        kit_unpack_answer(message->payload, length, &taken);
    } else {
        kit_unpack(message->payload, length, &taken);
        if (o->role == KIT_PONG && taken.right)
            publish_answer(message->payload, kit_pack_answer(message->payload, &taken));
    }
    kit_took(&taken);
}

/* --- sending ------------------------------------------------------------------ */

/* Waits until fewer than `most` messages are under way. */
static bool await_room(uint32_t most, int64_t limit_ns)
{
    const int64_t until_ns = kit_now() + limit_ns;
    const struct timespec until = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    int late = 0;
    pthread_mutex_lock(&mqtt.lock);
    while (mqtt.under_way >= most && late == 0)
        late = pthread_cond_timedwait(&mqtt.changed, &mqtt.lock, &until);
    const bool room = mqtt.under_way < most;
    pthread_mutex_unlock(&mqtt.lock);
    return room;
}

static int64_t send_sample(void *unused, uint64_t seq)
{
    (void)unused;
    if (o->role == KIT_PUB && !await_room(mqtt.most, (int64_t)SEND_LIMIT_S * 1000000000))
        return 0;
    const int64_t sent_ns = kit_pack(mqtt.packed, seq);
    pthread_mutex_lock(&mqtt.lock);
    mqtt.under_way++;
    pthread_mutex_unlock(&mqtt.lock);
    const int result = mosquitto_publish(mqtt.client, NULL, mqtt.publishes, (int)kit_packed_length(),
                                         mqtt.packed, quality(), false);
    if (result == MOSQ_ERR_SUCCESS)
        return sent_ns;
    on_publish(mqtt.client, NULL, 0);
    return 0;
}

static void drain(void *unused, int64_t timeout_ns)
{
    (void)unused;
    await_room(1, timeout_ns);
}

/* --- roles ---------------------------------------------------------------------- */

static bool subscribed(void *unused)
{
    (void)unused;
    return __atomic_load_n(&mqtt.subscribed, __ATOMIC_ACQUIRE);
}

static bool greeted(void *unused)
{
    (void)unused;
    return __atomic_load_n(&mqtt.hellos, __ATOMIC_ACQUIRE) >= o->remotes;
}

static void connect_client(void)
{
    pthread_condattr_t attributes;
    const size_t fit = WAY_MEMORY / (kit_packed_length() + 1);

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&mqtt.changed, &attributes);
    mqtt.most = fit > WAY_MOST ? WAY_MOST : fit < WAY_LEAST ? WAY_LEAST : (uint32_t)fit;
    mqtt.packed = calloc(1, kit_packed_length());
    mqtt.client = mosquitto_new(NULL, true, NULL);
    if (mqtt.client == NULL || mqtt.packed == NULL)
        kit_failed("no memory for a client");
    mosquitto_message_callback_set(mqtt.client, on_message);
    mosquitto_publish_callback_set(mqtt.client, on_publish);
    mosquitto_subscribe_callback_set(mqtt.client, on_subscribe);
    /* Without it a small message waits for the acknowledgement of the one before. */
    checked(mosquitto_int_option(mqtt.client, MOSQ_OPT_TCP_NODELAY, 1), "TCP_NODELAY");
    /* The broker runs beside who begins. */
    const char *broker = o->role == KIT_PONG || o->role == KIT_SUB ? o->remote : o->address;
    checked(mosquitto_connect(mqtt.client, broker, port_number(), 60), "mosquitto_connect");
    checked(mosquitto_loop_start(mqtt.client), "mosquitto_loop_start");
}

static void subscribe(const char *topic)
{
    __atomic_store_n(&mqtt.subscribed, false, __ATOMIC_RELEASE);
    checked(mosquitto_subscribe(mqtt.client, NULL, topic, quality()), "mosquitto_subscribe");
    kit_await(subscribed, NULL, "not subscribed");
}

static void play(void)
{
    const struct kit_port port = {.send = send_sample, .drain = drain};
    connect_client();
    if (mqtt.subscribes != NULL)
        subscribe(mqtt.subscribes);
    if (o->role == KIT_PING || o->role == KIT_PUB) {
        subscribe(HELLO "+");
        kit_await(greeted, NULL, "no subscriber");
    }
    switch (o->role) {
    case KIT_PING:
        kit_ping(&port, "listener");
        break;
    case KIT_PONG:
        kit_pong(&port, "listener");
        break;
    case KIT_PUB:
        kit_pub(&port, "listener");
        break;
    default:
        kit_sub(&port, "listener");
        break;
    }
    mosquitto_disconnect(mqtt.client);
    mosquitto_loop_stop(mqtt.client, true);
    mosquitto_destroy(mqtt.client);
}

/* --- the broker ------------------------------------------------------------------- */

static char config_name[] = "/tmp/perf-mosquitto-XXXXXX";

static void remove_config(void)
{
    unlink(config_name);
}

/* As it comes, but for the port, Nagle's algorithm, and the queue of a subscriber: a
 * thousand messages are dropped behind within a millisecond. It stays bounded. `user`
 * keeps the process the one that ends with its parent. */
static void write_config(void)
{
    const int file = mkstemp(config_name);
    if (file < 0)
        kit_failed("%s cannot be written", config_name);
    dprintf(file,
            "listener %u %s\nallow_anonymous true\nset_tcp_nodelay true\npersistence false\n"
            "user root\nmax_queued_messages 100000\nlog_type error\nlog_type warning\n",
            port_number(), o->address);
    close(file);
}

static bool broker_answers(void *unused)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port_number())};
    const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)unused;
    const bool answers = s >= 0 && inet_pton(AF_INET, o->address, &address.sin_addr) == 1 &&
                         connect(s, (const struct sockaddr *)&address, sizeof address) == 0;
    close(s);
    return answers;
}

static void play_daemon(void)
{
    char *argv[] = {"/usr/sbin/mosquitto", "-c", config_name, NULL};
    if (access(argv[0], X_OK) != 0)
        kit_absent("the broker mosquitto is not installed");
    write_config();
    kit_daemon(argv, broker_answers, remove_config, NULL);
}

int main(int argc, char **argv)
{
    char info[1024];
    int major, minor, patch;
    mosquitto_lib_init();
    mosquitto_lib_version(&major, &minor, &patch);
    snprintf(info, sizeof info,
             "{\"peer\":\"mqtt\",\"version\":\"mosquitto %d.%d.%d\",\"transports\":[\"udp\"],"
             "\"roles\":[\"ping\",\"pong\",\"pub\",\"sub\",\"daemon\"],"
             "\"types\":[\"bytes\",\"simple\",\"complex\",\"plain\"],\"waits\":[\"listener\"],"
             "\"variants\":[],\"multicast\":false,\"loan\":false,\"daemon\":true,"
             "\"note\":\"udp is TCP through the broker mosquitto, two hops a sample; reliable is QoS 1, which "
             "acknowledges each hop, best-effort QoS 0; the broker drops what a subscriber's queue of 100,000 "
             "does not hold\"}",
             major, minor, patch);
    o = kit_begin(argc, argv, info);

    if (o->transport != KIT_UDP)
        kit_absent("MQTT goes through a broker, over TCP");
    if (o->wait == KIT_SPIN || o->wait == KIT_WAITSET)
        kit_absent("the client calls back from a thread of its own");
    if (o->loan)
        kit_absent("MQTT lends no memory");
    if (o->variant[0] != '\0')
        kit_absent("no variant %s", o->variant);
    switch (o->role) {
    case KIT_DAEMON:
        play_daemon();
        return 0;
    case KIT_PING:
        mqtt.publishes = "perf_ping";
        mqtt.subscribes = "perf_pong";
        break;
    case KIT_PONG:
        mqtt.publishes = "perf_pong";
        mqtt.subscribes = "perf_ping";
        break;
    case KIT_PUB:
        mqtt.publishes = "perf_data";
        break;
    case KIT_SUB:
        mqtt.subscribes = "perf_data";
        break;
    default:
        kit_absent("MQTT has no such role");
    }
    play();
    return 0;
}
