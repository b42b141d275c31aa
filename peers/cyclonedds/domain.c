/* The domain with its configuration, topics and QoS, and the daemon that shared
 * memory needs. */
#include "adapter.h"

#include <glob.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* How long a reliable write may wait for room. Shorter would refuse writes during a
 * reader's pause; a run that stalls this long is broken. */
#define BLOCKING_LIMIT DDS_SECS(10)

/* As large as the other DDS have theirs: 1 MiB is asked for otherwise, which drops
 * datagrams of a large sample. More than net.core.rmem_max is cut to that. */
#define SOCKET_BUFFER "<SocketReceiveBufferSize max=\"4MiB\"/>"

dds_entity_t checked(dds_entity_t entity, const char *what)
{
    if (entity < 0)
        kit_failed("%s: %s", what, dds_strretcode(-entity));
    return entity;
}

bool variant_is(const char *name)
{
    return strcmp(o->variant, name) == 0;
}

/* 11 takes shared memory as one more interface, 0.10 as an element of its own. */
static const char *interface_of_shm(void)
{
    static char text[256];
    if (CYCLONE11 && o->transport == KIT_SHM)
        snprintf(text, sizeof text,
                 "<PubSubMessageExchange type=\"iox\" library=\"psmx_iox\" priority=\"1000000\""
                 " config=\"LOG_LEVEL=ERROR;SERVICE_NAME=perf_%u\"/>",
                 o->domain);
    return text;
}

/* By default its discovery goes to the group once it knows several others, and samples
 * to one reader go to that reader alone. To several readers samples would go to the
 * group, too; what keeps them from it is an element for the discovery of endpoints as
 * well, thus for nobody but the writer whose samples it is about. */
static const char *allow_multicast(void)
{
    const bool to_each = !o->multicast && o->role == KIT_PUB && o->remotes > 1;
    return to_each ? "<AllowMulticast>spdp</AllowMulticast>" : "";
}

void make_domain(void)
{
    char config[1024];
    snprintf(config, sizeof config,
             "<CycloneDDS><Domain Id=\"any\">"
             "<General><Interfaces><NetworkInterface name=\"%s\" multicast=\"true\"/>%s</Interfaces>"
             "%s%s</General>"
             "%s<Internal>" SOCKET_BUFFER "%s</Internal></Domain></CycloneDDS>",
             o->interface_name, interface_of_shm(), allow_multicast(),
             variant_is("65500") ? "<MaxMessageSize>65500B</MaxMessageSize>" : "",
             !CYCLONE11 && o->transport == KIT_SHM
                 ? "<SharedMemory><Enable>true</Enable><LogLevel>error</LogLevel></SharedMemory>"
                 : "",
             !CYCLONE11 && variant_is("batching") ? "<WriteBatch>true</WriteBatch>" : "");
    checked(dds_create_domain(o->domain, config), "dds_create_domain");
}

dds_entity_t make_topic(dds_entity_t participant, const dds_topic_descriptor_t *descriptor, const char *name)
{
    return checked(dds_create_topic(participant, descriptor, name, NULL, NULL), "dds_create_topic");
}

dds_qos_t *make_qos(void)
{
    dds_qos_t *qos = dds_create_qos();
    dds_qset_reliability(qos, o->reliable ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT,
                         BLOCKING_LIMIT);
    dds_qset_durability(qos, DDS_DURABILITY_VOLATILE);
    if (o->history_depth == 0)
        dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, DDS_LENGTH_UNLIMITED);
    else
        dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, (int32_t)o->history_depth);
#if CYCLONE11
    if (variant_is("batching"))
        dds_qset_writer_batching(qos, true);
#endif
    return qos;
}

dds_qos_t *make_holding_qos(void)
{
    enum { ALL = DDS_LENGTH_UNLIMITED };
    dds_qos_t *qos = dds_create_qos();
    dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, BLOCKING_LIMIT);
    dds_qset_durability(qos, DDS_DURABILITY_TRANSIENT_LOCAL);
    dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, ALL);
    /* Its default keeps one sample for readers to come. */
    dds_qset_durability_service(qos, 0, DDS_HISTORY_KEEP_ALL, ALL, ALL, ALL, ALL);
    return qos;
}

/* --- RouDi, which hands out iceoryx's shared memory ------------------------ */

static char pools_name[] = "/tmp/perf-roudi-XXXXXX";

static void remove_pools(void)
{
    unlink(pools_name);
}

/* The memory for samples of --size: a subscriber's queue takes 256, and the two
 * ends hold a few. Big samples get fewer: 384 MB in all. */
static void write_pools(void)
{
    enum { HEADERS = 1024, MEMORY = 384 << 20, MOST = 1024, LEAST = 16 };
    const uint32_t chunk = (o->size + HEADERS + 1023) / 1024 * 1024;
    uint32_t count = MEMORY / chunk;
    const int file = mkstemp(pools_name);
    if (file < 0)
        kit_failed("%s cannot be written", pools_name);
    count = count > MOST ? MOST : count < LEAST ? LEAST : count;
    /* The small ones are for what Cyclone DDS sends besides. */
    dprintf(file,
            "[general]\nversion = 1\n[[segment]]\n"
            "[[segment.mempool]]\nsize = 512\ncount = 1024\n"
            "[[segment.mempool]]\nsize = %u\ncount = %u\n",
            chunk, count);
    close(file);
}

/* RouDi opens its socket when the memory is there. */
static bool roudi_answers(void *unused)
{
    const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/tmp/roudi"};
    const int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool answers = s >= 0 && connect(s, (const struct sockaddr *)&address, sizeof address) == 0;
    (void)unused;
    close(s);
    if (answers)
        remove_pools(); /* it has been read */
    return answers;
}

/* iceoryx names its sockets, locks and memory, and leaves them behind when a process
 * is killed; RouDi itself aborts when it then ends. Only one RouDi runs on a machine, so
 * what is there is this one's. */
static void sweep_up(void)
{
    static const char *const patterns[] = {
        "/tmp/roudi", "/tmp/roudi.lock", "/tmp/iox-unique-roudi.lock", "/tmp/CycloneDDS-iox_psmx-*",
        "/tmp/iceoryx_rt_*", "/dev/shm/iceoryx_mgmt",
    };
    const struct group *group = getgrgid(getegid());
    char segment[NAME_MAX];

    remove_pools();
    if (group != NULL) { /* RouDi names the samples' memory so */
        snprintf(segment, sizeof segment, "/dev/shm/%s", group->gr_name);
        unlink(segment);
    }
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        glob_t found;
        if (glob(patterns[i], 0, NULL, &found) != 0)
            continue;
        for (size_t n = 0; n < found.gl_pathc; n++)
            unlink(found.gl_pathv[n]);
        globfree(&found);
    }
}

void play_daemon(void)
{
    char *argv[] = {"iox-roudi", "-c", pools_name, "-l", "warning", "-k", "0", NULL};
    if (o->transport != KIT_SHM) {
        kit_daemon(NULL, NULL, NULL, NULL);
        return;
    }
    if (access("/usr/bin/iox-roudi", X_OK) != 0)
        kit_absent("iox-roudi is not installed");
    write_pools();
    kit_daemon(argv, roudi_answers, sweep_up, NULL);
}
