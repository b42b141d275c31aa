/* The peer of Cyclone DDS 0.10: one writer or one reader, driven by a waitset.
 * The contract of the command line and of the output is in ../README.md. */
#include "peer.h"

#include <dds/dds.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "types.h"

static dds_entity_t checked(dds_entity_t entity, const char *what)
{
    if (entity < 0) {
        fprintf(stderr, "%s: %s\n", what, dds_strretcode(-entity));
        exit(EXIT_BROKEN);
    }
    return entity;
}

static const dds_topic_descriptor_t *descriptor(enum sample_type type)
{
    switch (type) {
    case TYPE_PLAIN:
        return &interop_Plain_desc;
    case TYPE_KEYED:
        return &interop_Keyed_desc;
    case TYPE_SHAPE:
        return &ShapeType_desc;
    default:
        return &telemetry_Metric_desc;
    }
}

/* One interface, multicast on it, whatever the interface is; announcements often
 * enough that a lost one does not cost half a minute. The domain ends
 * with the process. */
static void make_domain(const struct options *o)
{
    char config[512];
    snprintf(config, sizeof config,
             "<General><Interfaces><NetworkInterface name=\"%s\" multicast=\"true\"/></Interfaces>"
             "<Transport>%s</Transport><AllowMulticast>true</AllowMulticast></General>"
             "<Discovery><SPDPInterval>1s</SPDPInterval></Discovery>",
             o->interface, getenv("INTEROP_IPV6") != NULL ? "udp6" : "udp");
    checked(dds_create_domain(o->domain, config), "dds_create_domain");
}

static dds_qos_t *make_qos(const struct options *o)
{
    dds_qos_t *qos = dds_create_qos();
    const dds_history_kind_t kind = o->history_depth == 0 ? DDS_HISTORY_KEEP_ALL : DDS_HISTORY_KEEP_LAST;
    const int32_t depth = o->history_depth == 0 ? 1 : (int32_t)o->history_depth;

    dds_qset_reliability(qos, o->reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT,
                         DDS_SECS(10));
    dds_qset_durability(qos, o->transient_local ? DDS_DURABILITY_TRANSIENT_LOCAL : DDS_DURABILITY_VOLATILE);
    dds_qset_history(qos, kind, depth);
    /* What a late joiner gets is governed by this policy, not by HISTORY. */
    if (o->transient_local)
        dds_qset_durability_service(qos, 0, kind, depth, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED,
                                    DDS_LENGTH_UNLIMITED);
    /* Otherwise unregistering would dispose as well. */
    dds_qset_writer_data_lifecycle(qos, false);
    if (o->partition != NULL)
        dds_qset_partition1(qos, o->partition);
    return qos;
}

union sample {
    interop_Plain plain;
    interop_Keyed keyed;
    ShapeType shape;
    telemetry_Metric metric;
};

static void fill(union sample *s, const struct options *o, uint8_t *payload, uint32_t seq)
{
    const dds_sequence_octet octets = {._maximum = o->size, ._length = o->size, ._buffer = payload};
    const uint32_t id = sample_id(o, seq);

    switch (o->type) {
    case TYPE_PLAIN:
        payload_fill(payload, o->size, seq);
        s->plain = (interop_Plain){.seq = seq, .payload = octets};
        break;
    case TYPE_KEYED:
        payload_fill(payload, o->size, seq);
        s->keyed = (interop_Keyed){.id = id, .seq = seq, .payload = octets};
        break;
    case TYPE_SHAPE:
        shape_color(id, s->shape.color);
        s->shape.x = (int32_t)seq;
        s->shape.y = (int32_t)id;
        s->shape.shapesize = (int32_t)(seq + id);
        break;
    case TYPE_METRIC:
        metric_name(id, s->metric.name);
        s->metric.seq = seq;
        s->metric.sent_unix_ns = unix_ns_now();
        s->metric.value = seq * 0.5;
        strcpy(s->metric.unit, "unit");
        break;
    }
}

static uint32_t id_of(const union sample *s, enum sample_type type)
{
    switch (type) {
    case TYPE_PLAIN:
        return 0;
    case TYPE_KEYED:
        return s->keyed.id;
    case TYPE_SHAPE:
        return id_of_string_key(s->shape.color);
    default:
        return id_of_string_key(s->metric.name);
    }
}

static void tally(struct tally *t, const union sample *s, const dds_sample_info_t *info, const struct options *o)
{
    const enum sample_type type = o->type;
    const uint32_t id = id_of(s, type);

    if (!info->valid_data) {
        if (info->instance_state != DDS_IST_ALIVE)
            tally_state(t, id,
                        info->instance_state == DDS_IST_NOT_ALIVE_DISPOSED ? FINAL_DISPOSE : FINAL_UNREGISTER);
        return;
    }
    switch (type) {
    case TYPE_PLAIN:
        tally_sample(t, id, s->plain.seq, s->plain.payload._length,
                     payload_right(s->plain.payload._buffer, s->plain.payload._length, s->plain.seq));
        break;
    case TYPE_KEYED:
        tally_sample(t, id, s->keyed.seq, s->keyed.payload._length,
                     payload_right(s->keyed.payload._buffer, s->keyed.payload._length, s->keyed.seq));
        break;
    case TYPE_SHAPE:
        tally_sample(t, id, (uint32_t)s->shape.x, 0,
                     s->shape.y == (int32_t)id && s->shape.shapesize == (int32_t)(s->shape.x + (int32_t)id));
        break;
    case TYPE_METRIC:
        event_metric(o, s->metric.name, s->metric.seq, s->metric.value);
        tally_sample(t, id, (uint32_t)s->metric.seq, 0,
                     fabs(s->metric.value - (double)s->metric.seq * 0.5) < 1e-9 &&
                         strcmp(s->metric.unit, "unit") == 0);
        break;
    }
}

/* An instance that has ended says so on its last valid sample when that one has
 * not been taken yet; no separate invalid sample follows then. */
static void tally_state_of_valid(struct tally *t, const union sample *s, const dds_sample_info_t *info,
                                 enum sample_type type)
{
    if (info->valid_data && info->sample_rank == 0 && info->instance_state != DDS_IST_ALIVE && type_keyed(type))
        tally_state(t, id_of(s, type),
                    info->instance_state == DDS_IST_NOT_ALIVE_DISPOSED ? FINAL_DISPOSE : FINAL_UNREGISTER);
}

static dds_duration_t left(double deadline)
{
    const double seconds = deadline - seconds_now();
    return seconds <= 0.0 ? 0 : (dds_duration_t)(seconds * 1e9);
}

static void wait_on(dds_entity_t waitset, double deadline)
{
    dds_attach_t triggered[1];
    dds_waitset_wait(waitset, triggered, 1, left(deadline));
}

/* Waits until at least (or, with `at_most`, at most) `count` readers match. */
static bool wait_matched(dds_entity_t writer, dds_entity_t waitset, uint32_t count, bool at_most,
                         double deadline, uint32_t *last)
{
    for (;;) {
        dds_publication_matched_status_t status;
        dds_get_publication_matched_status(writer, &status);
        event_matched(status.current_count, last);
        if (at_most ? *last <= count : *last >= count)
            return true;
        if (seconds_now() >= deadline)
            return false;
        wait_on(waitset, deadline);
    }
}

static void write_all(const struct options *o, dds_entity_t writer)
{
    uint8_t *payload = malloc(o->size + 1);
    union sample sample;
    double next = seconds_now();

    for (uint32_t seq = 0; seq < o->count; seq++) {
        if (o->rate_hz > 0.0) {
            sleep_until(next);
            next += 1.0 / o->rate_hz;
        }
        fill(&sample, o, payload, seq);
        checked(dds_write(writer, &sample), "dds_write");
    }
    for (uint32_t id = 0; id < o->instances && o->final_state != FINAL_NONE; id++) {
        fill(&sample, o, payload, id);
        if (o->final_state == FINAL_DISPOSE)
            checked(dds_dispose(writer, &sample), "dds_dispose");
        else
            checked(dds_unregister_instance(writer, &sample), "dds_unregister_instance");
    }
    free(payload);
    event_count("sent", o->count);
}

static int publish(const struct options *o, dds_entity_t participant, dds_entity_t topic, dds_qos_t *qos)
{
    const double deadline = seconds_now() + o->timeout_s;
    dds_entity_t publisher = checked(dds_create_publisher(participant, qos, NULL), "dds_create_publisher");
    dds_entity_t writer = checked(dds_create_writer(publisher, topic, qos, NULL), "dds_create_writer");
    dds_entity_t waitset = checked(dds_create_waitset(participant), "dds_create_waitset");
    uint32_t matched = 0;
    bool all = true;

    dds_set_status_mask(writer, DDS_PUBLICATION_MATCHED_STATUS);
    dds_waitset_attach(waitset, writer, writer);
    if (!wait_matched(writer, waitset, o->wait_matched, false, deadline, &matched))
        return EXIT_TIMED_OUT;
    if (o->hold)
        wait_for_stdin_line();
    write_all(o, writer);
    if (o->wait_matched == 0 && !wait_matched(writer, waitset, 1, false, deadline, &matched))
        return EXIT_TIMED_OUT;
    if (o->reliable) {
        all = dds_wait_for_acks(writer, left(deadline)) == DDS_RETCODE_OK;
        event_acknowledged(all);
    }
    wait_matched(writer, waitset, 0, true, seconds_now() + o->linger_s, &matched);
    return all ? EXIT_COMPLETE : EXIT_TIMED_OUT;
}

static int subscribe(const struct options *o, dds_entity_t participant, dds_entity_t topic, dds_qos_t *qos)
{
    enum { BATCH = 32 };
    const double deadline = seconds_now() + o->timeout_s;
    dds_entity_t subscriber = checked(dds_create_subscriber(participant, qos, NULL), "dds_create_subscriber");
    dds_entity_t reader = checked(dds_create_reader(subscriber, topic, qos, NULL), "dds_create_reader");
    dds_entity_t waitset = checked(dds_create_waitset(participant), "dds_create_waitset");
    struct tally *t = tally_new(o);
    double end = deadline;
    uint32_t matched = 0;
    bool writers_left = false, lingering = false;

    dds_set_status_mask(reader, DDS_SUBSCRIPTION_MATCHED_STATUS | DDS_DATA_AVAILABLE_STATUS);
    dds_waitset_attach(waitset, reader, reader);
    for (;;) {
        dds_subscription_matched_status_t status;
        void *samples[BATCH] = {NULL};
        dds_sample_info_t infos[BATCH];
        const uint32_t was = matched;
        uint32_t set;

        dds_take_status(reader, &set, DDS_DATA_AVAILABLE_STATUS);
        dds_get_subscription_matched_status(reader, &status);
        event_matched(status.current_count, &matched);
        writers_left = writers_left || matched < was;
        int taken = dds_take(reader, samples, infos, BATCH, BATCH);
        for (int i = 0; i < taken; i++) {
            tally(t, samples[i], &infos[i], o);
            tally_state_of_valid(t, samples[i], &infos[i], o->type);
        }
        if (taken > 0)
            dds_return_loan(reader, samples, taken);
        if (taken <= 0 && !lingering && (tally_complete(t) || (writers_left && matched == 0))) {
            lingering = true;
            end = seconds_now() + o->linger_s;
        }
        if (seconds_now() >= end)
            return tally_finish(t);
        if (taken <= 0)
            wait_on(waitset, end);
    }
}

int main(int argc, char **argv)
{
    const struct options o = options_parse(argc, argv);
    make_domain(&o);
    dds_qos_t *qos = make_qos(&o);
    dds_entity_t participant =
        checked(dds_create_participant(o.domain, NULL, NULL), "dds_create_participant");
    if (o.late)
        wait_for_stdin_line();
    dds_entity_t topic =
        checked(dds_create_topic(participant, descriptor(o.type), o.topic, NULL, NULL), "dds_create_topic");
    const int code = o.publisher ? publish(&o, participant, topic, qos) : subscribe(&o, participant, topic, qos);
    dds_delete_qos(qos);
    /* Everything, the domain too: only then is the departure announced. */
    dds_delete(DDS_CYCLONEDDS_HANDLE);
    return code;
}
