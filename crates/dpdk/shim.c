/*
 * What of DPDK can only be called from C, as it is inline or passes large structures: each function here is one
 * of DPDK's, or a few in a row, and takes plain numbers and pointers. Decides nothing; src/ffi.rs declares it.
 *
 * Results are 0 or a negative error number, as DPDK has them.
 */
#define _GNU_SOURCE
/* Frames whose bytes lie where they are told to. */
#define ALLOW_EXPERIMENTAL_API
#include <errno.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_memzone.h>

/* The log: what DPDK says while it does something, to be told if that fails. */

/* Some ten lines; what comes first is mostly the cause, so what comes last is not kept. */
#define SAID 1024

static FILE *heard;
static char said[SAID];
static size_t said_len;
static uint32_t loudest;
/* What this thread tries again and again is not told. */
static __thread bool is_quiet;

/* Called with the stream locked. */
static ssize_t hear(void *cookie, const char *bytes, size_t len)
{
	uint32_t level = (uint32_t)rte_log_cur_msg_loglevel();

	(void)cookie;
	if (is_quiet)
		return (ssize_t)len;
	if (level <= RTE_LOG_ERR) {
		size_t fits = RTE_MIN(len, sizeof(said) - said_len);

		memcpy(said + said_len, bytes, fits);
		said_len += fits;
	}
	/* Before it ends the process it says why. */
	if (level <= RTE_MAX(loudest, RTE_LOG_CRIT))
		fwrite(bytes, 1, len, stderr);
	return (ssize_t)len;
}

/* Takes what was said since the last call. */
size_t taut_dpdk_said(char *into, size_t room)
{
	size_t len = 0;

	if (heard == NULL)
		return 0;
	flockfile(heard);
	len = RTE_MIN(said_len, room);
	memcpy(into, said, len);
	said_len = 0;
	funlockfile(heard);
	return len;
}

/* Once in a process. What is at most this loud goes to the standard error stream too. */
int taut_dpdk_start(int argc, char **argv, uint32_t loudness)
{
	cookie_io_functions_t calls = { .write = hear };
	cpu_set_t cores;
	int known, result;

	loudest = loudness;
	heard = fopencookie(NULL, "w", calls);
	if (heard == NULL || rte_openlog_stream(heard) != 0)
		return -ENOMEM;
	/* It pins the thread that starts it, which is not its own but the user's. */
	known = pthread_getaffinity_np(pthread_self(), sizeof(cores), &cores) == 0;
#ifdef __GLIBC__
	/* On wrong arguments it prints all that it knows, to where the program's own output goes. */
	FILE *out = stdout;
	stdout = stderr;
#endif
	result = rte_eal_init(argc, argv);
#ifdef __GLIBC__
	stdout = out;
#endif
	if (known)
		pthread_setaffinity_np(pthread_self(), sizeof(cores), &cores);
	return result < 0 ? -rte_errno : 0;
}

/* The first core that this thread may run on; 0 if that is not known. */
uint32_t taut_dpdk_first_core(void)
{
	cpu_set_t cores;
	uint32_t core;

	if (pthread_getaffinity_np(pthread_self(), sizeof(cores), &cores) != 0)
		return 0;
	for (core = 0; core < CPU_SETSIZE; core++)
		if (CPU_ISSET(core, &cores))
			return core;
	return 0;
}

/*
 * The gate. memif's driver hears of its peer in DPDK's thread of interrupts, and when the peer is gone it gives back the
 * memory there, whether or not another thread is just looking at it. So that thread is kept busy, with sleeping in an
 * alarm, and let do its work only while nobody is inside: whoever comes then finds nothing, and looks again.
 */

/* How long it sleeps. More and a peer that is gone is noticed later; less and looks find nothing more often. */
#define SHUT_NS 50000000
/* The same while a peer is awaited: to connect takes some six messages. */
#define AWAIT_NS 1000000
/* How long it is let do its work. Less and its next alarm is due before it has looked at anything else. */
#define HEAR_US 10

static pthread_mutex_t gates = PTHREAD_MUTEX_INITIALIZER;
static int turning;
static atomic_bool guarded[RTE_MAX_ETHPORTS];
/* Does the thread do its work with this one, or has it stopped it? */
static atomic_bool hearing[RTE_MAX_ETHPORTS];
/* Who receives and who sends are two. */
enum way { IN, OUT, WAYS };
static struct {
	atomic_bool now;
} __rte_cache_aligned inside[RTE_MAX_ETHPORTS][WAYS];

/*
 * A client whose server has gone does not look for the next one by itself: it is stopped and started again for that, which
 * connects it. One that was just let in is not disturbed: who leaves before it was greeted ends the server's process.
 */

/* How long after a try in vain. Less makes more system calls, more and a server that is there again is found later. */
#define AGAIN_NS 100000000
/* How long a server may take to greet, as one that is being debugged. Less ends it, more and the next is found later. */
#define GREET_NS 60000000000

/* Clients that were greeted once. */
static atomic_bool joins[RTE_MAX_ETHPORTS];
/* When to try again: the thread's own. */
static uint64_t join_at_ns[RTE_MAX_ETHPORTS];
/* Does it not run, as the last try was in vain? */
static atomic_bool stopped[RTE_MAX_ETHPORTS];
static bool is_up(uint16_t port)
{
	struct rte_eth_link link;

	memset(&link, 0, sizeof(link));
	return rte_eth_link_get_nowait(port, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

/* Until it is let in again nobody is inside, and nobody comes in. */
static void shut(uint16_t port)
{
	uint16_t way;

	atomic_store(&hearing[port], true);
	/* With the fence in `enter`: either we see them inside, or they see us. */
	for (way = 0; way < WAYS; way++)
		while (atomic_load(&inside[port][way].now))
			rte_pause();
}

uint64_t taut_dpdk_now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void join(uint16_t port)
{
	const uint64_t now_ns = taut_dpdk_now_ns();
	bool runs;

	if (now_ns < join_at_ns[port])
		return;
	shut(port);
	is_quiet = true;
	rte_eth_dev_stop(port);
	runs = rte_eth_dev_start(port) == 0;
	is_quiet = false;
	atomic_store(&stopped[port], !runs);
	join_at_ns[port] = now_ns + (runs ? GREET_NS : AGAIN_NS);
}

/* How long the thread may sleep, 0 if there is nothing to guard any more. */
static long turn_ns(void)
{
	long result = 0;
	uint16_t port;

	for (port = 0; port < RTE_MAX_ETHPORTS; port++) {
		if (!atomic_load(&guarded[port]))
			continue;
		if (!is_up(port))
			return AWAIT_NS;
		result = SHUT_NS;
	}
	return result;
}

static void turn(void *unused)
{
	struct timespec pause = { 0 };
	uint16_t port;

	pthread_mutex_lock(&gates);
	pause.tv_nsec = turn_ns();
	turning = pause.tv_nsec > 0;
	pthread_mutex_unlock(&gates);
	if (pause.tv_nsec == 0)
		return;
	for (port = 0; port < RTE_MAX_ETHPORTS; port++)
		atomic_store(&hearing[port], atomic_load(&stopped[port]));
	nanosleep(&pause, NULL);
	/* It takes longer than to hear, and is of one device: those of the others go on meanwhile. */
	for (port = 0; port < RTE_MAX_ETHPORTS; port++) {
		if (!atomic_load(&joins[port]))
			continue;
		if (is_up(port))
			join_at_ns[port] = 0;
		else
			join(port);
	}
	for (port = 0; port < RTE_MAX_ETHPORTS; port++)
		shut(port);
	if (rte_eal_alarm_set(HEAR_US, turn, unused) != 0) {
		pthread_mutex_lock(&gates);
		turning = 0;
		pthread_mutex_unlock(&gates);
	}
}

/* From here on, before it runs. */
int taut_dpdk_guard(uint16_t port)
{
	int result = 0;

	pthread_mutex_lock(&gates);
	atomic_store(&hearing[port], true);
	atomic_store(&guarded[port], true);
	if (!turning) {
		result = rte_eal_alarm_set(HEAR_US, turn, NULL);
		turning = result == 0;
	}
	pthread_mutex_unlock(&gates);
	return result;
}

/* It was greeted: from here on it looks for a server whenever it has none. */
void taut_dpdk_join_again(uint16_t port)
{
	atomic_store(&joins[port], true);
}

/* If it was guarded the thread does it. */
static void unguard(uint16_t port)
{
	atomic_store(&joins[port], false);
	atomic_store(&stopped[port], false);
	join_at_ns[port] = 0;
	pthread_mutex_lock(&gates);
	atomic_store(&guarded[port], false);
	pthread_mutex_unlock(&gates);
}

static bool enter(uint16_t port, enum way way)
{
	if (!atomic_load_explicit(&guarded[port], memory_order_relaxed))
		return true;
	atomic_store_explicit(&inside[port][way].now, true, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (likely(!atomic_load_explicit(&hearing[port], memory_order_acquire)))
		return true;
	atomic_store_explicit(&inside[port][way].now, false, memory_order_release);
	/* The thread that has shut it may wait for this processor. */
	sched_yield();
	return false;
}

/* Does nobody come in for now? Into one that does not run nobody comes before there is another end. */
int taut_dpdk_is_shut(uint16_t port)
{
	return atomic_load(&guarded[port]) && atomic_load(&hearing[port]) && !atomic_load(&stopped[port]);
}

static void leave(uint16_t port, enum way way)
{
	atomic_store_explicit(&inside[port][way].now, false, memory_order_release);
}

/* Devices and ports. */

struct taut_dpdk_facts {
	struct rte_device *device;
	char driver[32];
	uint16_t max_rx_queues;
	uint16_t max_tx_queues;
	uint16_t min_mtu;
	uint16_t max_mtu;
	uint16_t kernel_mtu;
};

struct taut_dpdk_setup {
	struct rte_mempool *pool;
	uint16_t rx_queues;
	uint16_t tx_queues;
	uint16_t rx_descriptors;
	uint16_t tx_descriptors;
	uint8_t takes_tags_off;
};

struct taut_dpdk_statistics {
	uint64_t rx_frames;
	uint64_t rx_bytes;
	uint64_t tx_frames;
	uint64_t tx_bytes;
	uint64_t rx_missed;
	uint64_t rx_errors;
	uint64_t rx_no_frame;
	uint64_t tx_errors;
};

/* Has the driver take the device, unless it has done so, and this process own its port. */
int taut_dpdk_probe(const char *devargs, const char *name, uint16_t *port)
{
	struct rte_eth_dev_owner owner = { .name = "taut" };
	int result;

	if (rte_eth_dev_get_port_by_name(name, port) != 0) {
		result = rte_dev_probe(devargs);
		if (result != 0)
			return result;
		if (rte_eth_dev_get_port_by_name(name, port) != 0)
			return -ENXIO;
	}
	result = rte_eth_dev_owner_new(&owner.id);
	if (result != 0)
		return result;
	return rte_eth_dev_owner_set(*port, &owner) == 0 ? 0 : -EBUSY;
}

/* The MTU of an interface of the kernel's, which drivers do not look at; 0 if there is none. */
static uint16_t kernel_mtu(unsigned int interface)
{
	struct ifreq request;
	int fd, result;

	memset(&request, 0, sizeof(request));
	if (interface == 0 || if_indextoname(interface, request.ifr_name) == NULL)
		return 0;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	result = ioctl(fd, SIOCGIFMTU, &request);
	close(fd);
	return result == 0 ? (uint16_t)RTE_MIN(request.ifr_mtu, UINT16_MAX) : 0;
}

int taut_dpdk_facts(uint16_t port, struct taut_dpdk_facts *facts)
{
	struct rte_eth_dev_info info;
	int result = rte_eth_dev_info_get(port, &info);

	if (result != 0)
		return result;
	facts->device = info.device;
	snprintf(facts->driver, sizeof(facts->driver), "%s", info.driver_name);
	facts->max_rx_queues = info.max_rx_queues;
	facts->max_tx_queues = info.max_tx_queues;
	facts->min_mtu = info.min_mtu;
	facts->max_mtu = info.max_mtu;
	facts->kernel_mtu = kernel_mtu(info.if_index);
	return 0;
}

/* An MTU of 0 is the driver's own. Says how many descriptors the driver wants of those that were asked for. */
int taut_dpdk_configure(uint16_t port, struct taut_dpdk_setup *setup, uint32_t mtu)
{
	struct rte_eth_conf conf;
	int result;

	memset(&conf, 0, sizeof(conf));
	conf.rxmode.mtu = mtu;
	conf.rxmode.offloads = setup->takes_tags_off ? RTE_ETH_RX_OFFLOAD_VLAN_STRIP : 0;
	result = rte_eth_dev_configure(port, setup->rx_queues, setup->tx_queues, &conf);
	if (result != 0)
		return result;
	return rte_eth_dev_adjust_nb_rx_tx_desc(port, &setup->rx_descriptors, &setup->tx_descriptors);
}

int taut_dpdk_queues(uint16_t port, const struct taut_dpdk_setup *setup)
{
	unsigned int node = (unsigned int)rte_eth_dev_socket_id(port);
	uint16_t queue;
	int result;

	for (queue = 0; queue < setup->rx_queues; queue++) {
		result = rte_eth_rx_queue_setup(port, queue, setup->rx_descriptors, node, NULL, setup->pool);
		if (result != 0)
			return result;
	}
	for (queue = 0; queue < setup->tx_queues; queue++) {
		result = rte_eth_tx_queue_setup(port, queue, setup->tx_descriptors, node, NULL);
		if (result != 0)
			return result;
	}
	return 0;
}

int taut_dpdk_run(uint16_t port)
{
	return rte_eth_dev_start(port);
}

/* Does a device of memif's wait for others? By what its driver has read, wherever that was given. */
int taut_dpdk_is_server(const struct rte_device *device)
{
	const struct rte_devargs *given = device != NULL ? rte_dev_devargs(device) : NULL;

	if (given == NULL || given->args == NULL)
		return 0;
	return strstr(given->args, "role=server") != NULL || strstr(given->args, "role=master") != NULL;
}

/*
 * Waits for the link, at most so long. Whoever connects to memif's server and leaves before it was greeted ends the
 * server's process: the driver closes a descriptor that DPDK still waits on.
 */
int taut_dpdk_settle(uint16_t port, uint32_t at_most_ms)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	uint32_t waited;

	for (waited = 0; waited < at_most_ms; waited++) {
		if (is_up(port))
			return 0;
		nanosleep(&pause, NULL);
	}
	return -ETIMEDOUT;
}

struct closing {
	uint16_t port;
	int promiscuous;
	sem_t done;
};

static void close_port(void *arg)
{
	struct closing *closing = arg;

	/* Some drivers set a flag that would stay. */
	if (closing->promiscuous)
		rte_eth_promiscuous_disable(closing->port);
	rte_eth_dev_stop(closing->port);
	rte_eth_dev_close(closing->port);
	unguard(closing->port);
	sem_post(&closing->done);
}

/*
 * Stops, closes and gives the device back. `is_memif`: by the thread that also hears when the other end leaves, as that
 * driver has no lock between the two; an alarm of DPDK's is the way there. It gets its turn at the gate.
 */
void taut_dpdk_close(uint16_t port, struct rte_device *device, int promiscuous, int is_memif)
{
	struct closing closing = { .port = port, .promiscuous = promiscuous };

	sem_init(&closing.done, 0, 0);
	if (!is_memif || rte_eal_alarm_set(1, close_port, &closing) != 0)
		close_port(&closing);
	while (sem_wait(&closing.done) != 0)
		;
	sem_destroy(&closing.done);
	if (device != NULL)
		rte_dev_remove(device);
}

int taut_dpdk_mac(uint16_t port, uint8_t mac[6])
{
	struct rte_ether_addr address;
	int result = rte_eth_macaddr_get(port, &address);

	if (result == 0)
		memcpy(mac, address.addr_bytes, 6);
	return result;
}

int taut_dpdk_mtu(uint16_t port, uint16_t *mtu)
{
	return rte_eth_dev_get_mtu(port, mtu);
}

int taut_dpdk_link(uint16_t port, uint32_t *mbit_per_s)
{
	struct rte_eth_link link;
	int result;

	memset(&link, 0, sizeof(link));
	result = rte_eth_link_get_nowait(port, &link);
	*mbit_per_s = link.link_speed;
	return result != 0 ? result : link.link_status;
}

/* Has an interface of the kernel's take all frames for as long as a socket is open: all groups, and all VLANs. */
static int hold_all(unsigned int interface, int *socket_of)
{
	const struct packet_mreq all = { .mr_ifindex = (int)interface, .mr_type = PACKET_MR_PROMISC };
	/* Of no protocol: nothing is received by it. */
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int result;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) != 0) {
		result = -errno;
		close(fd);
		return result;
	}
	*socket_of = fd;
	return 0;
}

/*
 * All groups, by the driver; where it cannot, all frames. If it has an interface of the kernel's that is so by a socket, which
 * is to be closed with the port and ends with the process. Otherwise by the driver: then 1, and `close` is to be told.
 */
int taut_dpdk_receive_groups(uint16_t port, int *socket_of)
{
	struct rte_eth_dev_info info;
	int result = rte_eth_allmulticast_enable(port);

	if (result != -ENOTSUP)
		return result;
	if (rte_eth_dev_info_get(port, &info) == 0 && info.if_index > 0)
		return hold_all(info.if_index, socket_of);
	if (rte_eth_promiscuous_get(port) == 1)
		return 0;
	result = rte_eth_promiscuous_enable(port);
	return result != 0 ? result : 1;
}

/* What a card knows a frame by: the port of UDP that it goes to, or if that is 0 the priority in its tag. */
struct taut_dpdk_flow {
	uint16_t udp_port;
	uint8_t is_ipv6;
	uint8_t is_tagged;
	uint8_t priority;
};

/* Has such frames come by a queue, until the port is closed. Where it cannot, `why` is DPDK's own text, or NULL. */
int taut_dpdk_steer(uint16_t port, uint16_t queue, const struct taut_dpdk_flow *flow, const char **why)
{
	const struct rte_flow_attr attr = { .ingress = 1 };
	const struct rte_flow_item_vlan vlan = { .tci = rte_cpu_to_be_16((uint16_t)(flow->priority << 13)) };
	const struct rte_flow_item_vlan vlan_mask = { .tci = RTE_BE16(0xe000) };
	const struct rte_flow_item_udp udp = { .hdr.dst_port = rte_cpu_to_be_16(flow->udp_port) };
	const struct rte_flow_item_udp udp_mask = { .hdr.dst_port = RTE_BE16(0xffff) };
	const struct rte_flow_action_queue to = { .index = queue };
	const struct rte_flow_action actions[] = {
		{ .type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &to },
		{ .type = RTE_FLOW_ACTION_TYPE_END },
	};
	/* The last one is RTE_FLOW_ITEM_TYPE_END. */
	struct rte_flow_item pattern[5] = { { .type = RTE_FLOW_ITEM_TYPE_ETH } };
	struct rte_flow_item *item = pattern + 1;
	struct rte_flow_error error = { .message = NULL };

	if (flow->udp_port == 0) {
		*item = (struct rte_flow_item){ .type = RTE_FLOW_ITEM_TYPE_VLAN, .spec = &vlan, .mask = &vlan_mask };
	} else {
		if (flow->is_tagged)
			item++->type = RTE_FLOW_ITEM_TYPE_VLAN;
		item++->type = flow->is_ipv6 ? RTE_FLOW_ITEM_TYPE_IPV6 : RTE_FLOW_ITEM_TYPE_IPV4;
		*item = (struct rte_flow_item){ .type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &udp, .mask = &udp_mask };
	}
	if (rte_flow_create(port, &attr, pattern, actions, &error) != NULL)
		return 0;
	*why = error.message;
	return rte_errno != 0 ? -rte_errno : -EINVAL;
}

int taut_dpdk_statistics(uint16_t port, struct taut_dpdk_statistics *statistics)
{
	struct rte_eth_stats stats;
	int result;

	memset(&stats, 0, sizeof(stats));
	result = rte_eth_stats_get(port, &stats);
	statistics->rx_frames = stats.ipackets;
	statistics->rx_bytes = stats.ibytes;
	statistics->tx_frames = stats.opackets;
	statistics->tx_bytes = stats.obytes;
	statistics->rx_missed = stats.imissed;
	statistics->rx_errors = stats.ierrors;
	statistics->rx_no_frame = stats.rx_nombuf;
	statistics->tx_errors = stats.oerrors;
	return result;
}

/* Frames. */

struct taut_dpdk_pool {
	struct rte_mempool *pool;
	const struct rte_memzone *memory;
	uint8_t *bytes;
	uint32_t frames;
	uint32_t cache;
	uint16_t stride;
	uint16_t shift;
};

/*
 * A pool whose frames have their bytes one behind the other in one piece of DPDK's memory, `stride` apart, and each
 * from `shift` on. Cards address it by pages, where the kernel says what these are called; then a stride that does not
 * divide them is refused, as there are too few frames.
 */
static int fill_pool(struct taut_dpdk_pool *pool, const char *name, int node)
{
	const size_t len = pool->memory->len;
	const size_t page = rte_eal_iova_mode() == RTE_IOVA_PA ? pool->memory->hugepage_sz : len;
	struct rte_pktmbuf_extmem *pieces = calloc(len / page + 2, sizeof(*pieces));
	size_t at, end;
	unsigned int count = 0;

	if (pieces == NULL)
		return -ENOMEM;
	for (at = 0; at < len; at = end) {
		end = len;
		if (page < len)
			end = RTE_MIN(len, (size_t)(RTE_PTR_ALIGN_CEIL(pool->bytes + at + 1, page) - pool->bytes));
		/* The length is for the number of frames: what each has begins and ends within its stride. */
		pieces[count].buf_ptr = pool->bytes + at + pool->shift;
		pieces[count].buf_iova = rte_mem_virt2iova(pool->bytes + at) + pool->shift;
		pieces[count].buf_len = end - at;
		pieces[count++].elt_size = pool->stride;
	}
	pool->pool = rte_pktmbuf_pool_create_extbuf(name, pool->frames, pool->cache, 0, pool->stride - pool->shift, node,
						    pieces, count);
	free(pieces);
	return pool->pool != NULL ? 0 : -rte_errno;
}

/* Sets the pool and its memory, in which the first frame's part begins at `bytes`. */
int taut_dpdk_pool(struct taut_dpdk_pool *pool, const char *name, uint16_t port)
{
	const int node = rte_eth_dev_socket_id(port);
	const unsigned int align = rte_is_power_of_2(pool->stride) ? pool->stride : RTE_CACHE_LINE_SIZE;
	int result;

	pool->memory = rte_memzone_reserve_aligned(name, (size_t)pool->frames * pool->stride, node, 0, align);
	if (pool->memory == NULL)
		return -rte_errno;
	pool->bytes = pool->memory->addr;
	result = fill_pool(pool, name, node);
	if (result != 0)
		rte_memzone_free(pool->memory);
	return result;
}

/* Takes all frames of a pool that has them, in the order of their bytes. */
int taut_dpdk_take_all(const struct taut_dpdk_pool *pool, struct rte_mbuf **frames)
{
	uint32_t at;

	for (at = 0; at < pool->frames; at++) {
		struct rte_mbuf *frame = rte_pktmbuf_alloc(pool->pool);

		if (frame == NULL)
			return -ENOBUFS;
		frames[(size_t)((uint8_t *)frame->buf_addr - pool->bytes) / pool->stride] = frame;
	}
	return 0;
}

static void add_shared(struct rte_mempool *pool, void *shared, void *frame, unsigned int at)
{
	(void)pool;
	(void)at;
	*(uint32_t *)shared += rte_mbuf_refcnt_read(frame) > 1;
}

/* Frees a pool that has all of its frames but `ours`, which nobody sends. What is out keeps it for ever. */
void taut_dpdk_drop_pool(const struct taut_dpdk_pool *pool, uint32_t ours)
{
	uint32_t shared = 0;

	rte_mempool_obj_iter(pool->pool, add_shared, &shared);
	if (shared > 0 || rte_mempool_avail_count(pool->pool) + ours < pool->frames)
		return;
	rte_mempool_free(pool->pool);
	rte_memzone_free(pool->memory);
}

/* Has a frame of ours be sent, from there on and so long: who sends it frees the second of its two references. */
void taut_dpdk_share(struct rte_mbuf *frame, uint16_t start, uint16_t len)
{
	rte_pktmbuf_reset(frame);
	frame->data_off = start;
	frame->data_len = len;
	frame->pkt_len = len;
	rte_mbuf_refcnt_set(frame, 2);
}

/* What whoever had it did comes before it is not. */
int taut_dpdk_is_shared(const struct rte_mbuf *frame)
{
	return __atomic_load_n(&frame->refcnt, __ATOMIC_ACQUIRE) > 1;
}

struct rte_mbuf *taut_dpdk_frame(struct rte_mempool *pool)
{
	return rte_pktmbuf_alloc(pool);
}

void taut_dpdk_free(struct rte_mbuf **frames, uint32_t count)
{
	rte_pktmbuf_free_bulk(frames, count);
}

uint8_t *taut_dpdk_bytes(struct rte_mbuf *frame, uint16_t *len)
{
	*len = rte_pktmbuf_data_len(frame);
	return rte_pktmbuf_mtod(frame, uint8_t *);
}

/*
 * A frame gets no longer than the room that it has behind the headroom, wherever it begins: drivers take that for the
 * longest there is, and memif's copies into as much. One that is ours and another's is as it is.
 */
static uint16_t left_of(const struct rte_mbuf *frame)
{
	uint32_t most = frame->buf_len - RTE_MIN(frame->buf_len, (uint16_t)RTE_PKTMBUF_HEADROOM);

	if (rte_mbuf_refcnt_read(frame) > 1)
		return 0;
	return (uint16_t)(most - RTE_MIN(most, rte_pktmbuf_data_len(frame)));
}

uint16_t taut_dpdk_front(const struct rte_mbuf *frame)
{
	return RTE_MIN(rte_pktmbuf_headroom(frame), left_of(frame));
}

uint16_t taut_dpdk_back(const struct rte_mbuf *frame)
{
	return RTE_MIN(rte_pktmbuf_tailroom(frame), left_of(frame));
}

/* These three with a length that was checked against the room, or the length, before. */
uint8_t *taut_dpdk_append(struct rte_mbuf *frame, uint16_t len)
{
	return (uint8_t *)rte_pktmbuf_append(frame, len);
}

uint8_t *taut_dpdk_prepend(struct rte_mbuf *frame, uint16_t len)
{
	return (uint8_t *)rte_pktmbuf_prepend(frame, len);
}

void taut_dpdk_cut(struct rte_mbuf *frame, uint16_t len)
{
	rte_pktmbuf_trim(frame, len);
}

/* The tag of a frame stands beside it: puts it where it was. */
static bool put_tag(struct rte_mbuf *frame)
{
	const uint8_t tag[RTE_VLAN_HLEN] = { 0x81, 0, (uint8_t)(frame->vlan_tci >> 8), (uint8_t)frame->vlan_tci };
	const size_t stations = 2 * RTE_ETHER_ADDR_LEN;
	char *start;

	if (rte_pktmbuf_data_len(frame) < stations)
		return true;
	start = rte_pktmbuf_prepend(frame, RTE_VLAN_HLEN);
	if (start == NULL)
		return false;
	memmove(start, start + RTE_VLAN_HLEN, stations);
	memcpy(start + stations, tag, sizeof(tag));
	return true;
}

/* Has a frame be in one piece, with its tag. */
static bool make_whole(struct rte_mbuf *frame)
{
	if (frame->nb_segs > 1 && rte_pktmbuf_linearize(frame) != 0)
		return false;
	return (frame->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0 || put_tag(frame);
}

static bool is_whole(const struct rte_mbuf *frame)
{
	return frame->nb_segs == 1 && (frame->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) == 0;
}

/* Each frame that it returns is whole; adds those that cannot be to `split`, which are gone. */
uint16_t taut_dpdk_rx(uint16_t port, uint16_t queue, struct rte_mbuf **frames, uint16_t room, uint64_t *split)
{
	uint16_t came, at, kept = 0;

	if (!enter(port, IN))
		return 0;
	came = rte_eth_rx_burst(port, queue, frames, room);
	leave(port, IN);
	for (at = 0; at < came; at++) {
		if (likely(is_whole(frames[at])) || make_whole(frames[at])) {
			frames[kept++] = frames[at];
		} else {
			rte_pktmbuf_free(frames[at]);
			*split += 1;
		}
	}
	return kept;
}

uint16_t taut_dpdk_tx(uint16_t port, uint16_t queue, struct rte_mbuf **frames, uint16_t count)
{
	uint16_t went;

	if (!enter(port, OUT))
		return 0;
	went = rte_eth_tx_burst(port, queue, frames, count);
	leave(port, OUT);
	return went;
}
