// SPDX-License-Identifier: BSD-3-Clause
// Ports that are devices of DPDK: any device by its devargs, and DPDK's own ends of a vhost-user socket ("backend":
// "dpdk").
#include "port/port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/virtio_net.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_eth_vhost.h>
#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_mempool.h>
#include <rte_vhost.h>

#include "base/listen_socket.h"
#include "base/log.h"
#include "port/device_clock.h"

static struct port_ops net_virtio_user_ops;
static bool taken[RTE_MAX_ETHPORTS]; // devices that are ports of ours

// A NIC given by its PCI address may exist already: EAL probed it at start.
static int attach(struct port *port, const char *text)
{
	uint16_t port_id;
	int rc;

	snprintf(port->device, sizeof(port->device), "%.*s", (int)strcspn(text, ","), text);
	if (rte_eth_dev_get_port_by_name(port->device, &port_id) == 0) {
		if (taken[port_id]) {
			LOG_ERROR("port %s: device %s is another port's", port->config.name, port->device);
			return -EBUSY;
		}
		port->port_id = port_id;
		taken[port_id] = true;
		return 0;
	}
	rc = rte_dev_probe(text);
	if (rc) {
		LOG_ERROR("port %s: cannot create device %s: %s", port->config.name, text, strerror(-rc));
		return rc;
	}
	port->hotplugged = true;
	rc = rte_eth_dev_get_port_by_name(port->device, &port->port_id);
	if (rc)
		LOG_ERROR("port %s: device %s has no ethdev of that name", port->config.name, port->device);
	else
		taken[port->port_id] = true;
	return rc;
}

// DPDK's virtio driver refuses buffers that have no room for a VLAN tag and its own header beside the frame.
enum { FRAME_HEADERS = RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN + sizeof(struct virtio_net_hdr_mrg_rxbuf) };

static int frame_mtu(const struct port *port, const struct rte_eth_dev_info *info)
{
	uint32_t room = rte_pktmbuf_data_room_size(port->rx_pool) - RTE_PKTMBUF_HEADROOM;
	uint32_t mtu = room - FRAME_HEADERS;

	if (room <= RTE_ETHER_MAX_LEN + RTE_PKTMBUF_HEADROOM * 8)
		return 0; // standard frames: the driver's default
	return (int)RTE_MIN(mtu, (uint32_t)info->max_mtu);
}

static int check_queues(const struct port *port, const struct rte_eth_dev_info *info)
{
	unsigned has = RTE_MIN(info->max_rx_queues, info->max_tx_queues);

	if (port->config.queues <= has)
		return 0;
	LOG_ERROR("port %s: device %s has %u queue%s, queues is %u%s", port->config.name, port->device, has,
	          has == 1 ? "" : "s", port->config.queues,
	          port->ops == &net_virtio_user_ops ? "; has the other end as many?" : "");
	return -EINVAL;
}

// Which flow comes to which queue is the device's choice: by addresses and ports where it can, a flow always
// to the same one.
static void spread_flows(const struct port *port, const struct rte_eth_dev_info *info,
                         struct rte_eth_conf *conf)
{
	uint64_t hash = info->flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP);

	if (port->config.queues == 1 || hash == 0)
		return;
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	conf->rx_adv_conf.rss_conf.rss_hf = hash;
}

static int set_up_queues(const struct port *port)
{
	uint16_t rx_ring = (uint16_t)port->config.ring_size, tx_ring = rx_ring;
	unsigned socket = (unsigned)rte_eth_dev_socket_id(port->port_id);
	int rc = rte_eth_dev_adjust_nb_rx_tx_desc(port->port_id, &rx_ring, &tx_ring);

	for (uint16_t i = 0; rc == 0 && i < port->config.queues; i++) {
		rc = rte_eth_rx_queue_setup(port->port_id, i, rx_ring, socket, NULL, port->rx_pool);
		if (rc == 0)
			rc = rte_eth_tx_queue_setup(port->port_id, i, tx_ring, socket, NULL);
	}
	return rc;
}

static int configure(struct port *port)
{
	uint16_t queues = (uint16_t)port->config.queues;
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	const char *step = "read its properties";
	int rc = rte_eth_dev_info_get(port->port_id, &info);

	if (rc)
		goto err;
	rc = check_queues(port, &info);
	if (rc)
		return rc;
	conf.rxmode.mtu = (uint32_t)frame_mtu(port, &info);
	spread_flows(port, &info, &conf);
	device_clock_configure(port, &info, &conf);
	step = "configure it";
	rc = rte_eth_dev_configure(port->port_id, queues, queues, &conf);
	if (rc)
		goto err;
	step = "set up its queues with that ring_size";
	rc = set_up_queues(port);
	if (rc)
		goto err;
	step = "start it";
	rc = rte_eth_dev_start(port->port_id);
	if (rc)
		goto err;
	rte_eth_promiscuous_enable(port->port_id); // a device without it receives everything anyway
	return device_clock_open(port);
err:
	LOG_ERROR("port %s (%s): cannot %s: %s", port->config.name, port->device, step, strerror(-rc));
	return rc;
}

static void ethdev_close(struct port *port)
{
	struct rte_eth_dev_info info;

	if (port->port_id == RTE_MAX_ETHPORTS)
		return;
	taken[port->port_id] = false;
	if (rte_eth_dev_info_get(port->port_id, &info))
		return;
	device_clock_close(port);
	rte_eth_dev_stop(port->port_id);
	if (port->hotplugged)
		rte_dev_remove(info.device);
	else
		rte_eth_dev_close(port->port_id);
	port->port_id = RTE_MAX_ETHPORTS;
}

static int open_device(struct port *port, const char *devargs)
{
	int rc = attach(port, devargs);

	if (rc == 0)
		rc = configure(port);
	if (rc)
		ethdev_close(port);
	return rc;
}

// A packet socket says of the interface below it that it is up, whatever it is.
static void find_interface(struct port *port)
{
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(port->port_id, &info) || strcmp(info.driver_name, "net_af_packet") != 0)
		return;
	port_watch_interface(port, info.if_index);
}

// The kernel shows its stamps to who looks on at an interface, which a driver that bypasses the queueing of the kernel
// keeps its frames from.
static int ethdev_open(struct port *port)
{
	char devargs[CONFIG_DEVICE_MAX + sizeof(",qdisc_bypass=0")];
	int rc;

	snprintf(devargs, sizeof(devargs), "%s%s", port->config.device,
	         port->config.clock == PORT_CLOCK_KERNEL ? ",qdisc_bypass=0" : "");
	rc = open_device(port, devargs);
	if (rc == 0)
		find_interface(port);
	return rc;
}

// Listens on path; the ring size is the driver's choice (virtio 1.2 s2.6). The port's name makes the device unique.
static int net_vhost_open(struct port *port)
{
	const struct config_port *config = &port->config;
	char devargs[CONFIG_DEVICE_MAX + CONFIG_PATH_MAX];

	snprintf(devargs, sizeof(devargs), "net_vhost_%s,iface=%s,queues=%u", config->name, config->path,
	         config->queues);
	return open_device(port, devargs);
}

static int net_virtio_user_open(struct port *port)
{
	const struct config_port *config = &port->config;
	char devargs[CONFIG_DEVICE_MAX + CONFIG_PATH_MAX];

	snprintf(devargs, sizeof(devargs), "net_virtio_user_%s,path=%s,queues=%u,queue_size=%u", config->name,
	         config->path, config->queues, config->ring_size);
	return open_device(port, devargs);
}

static bool ethdev_link_up(const struct port *port)
{
	struct rte_eth_link link = {0};

	return rte_eth_link_get_nowait(port->port_id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP &&
	       port_interface_runs(port);
}

static uint32_t ethdev_speed_mbps(const struct port *port)
{
	struct rte_eth_link link = {0};

	if (rte_eth_link_get_nowait(port->port_id, &link) || link.link_status != RTE_ETH_LINK_UP)
		return 0;
	return link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
}

static const char *ethdev_driver(const struct port *port)
{
	struct rte_eth_dev_info info;

	return rte_eth_dev_info_get(port->port_id, &info) == 0 && info.driver_name ? info.driver_name : "";
}

static int ethdev_mac(const struct port *port, struct rte_ether_addr *mac)
{
	return rte_eth_macaddr_get(port->port_id, mac);
}

#ifdef RTE_ETHDEV_QUEUE_STAT_CNTRS // before DPDK 25.11
static void read_queues(const struct port *port, const struct rte_eth_stats *stats, struct port_counters *out)
{
	for (unsigned i = 0; i < port->config.queues && i < RTE_ETHDEV_QUEUE_STAT_CNTRS; i++) {
		out->queues[i].rx_packets = stats->q_ipackets[i];
		out->queues[i].tx_packets = stats->q_opackets[i];
	}
}
#else
// The basic statistics have no queues any more: the extended ones have them under these names.
static uint64_t read_queue(uint16_t port_id, const char *direction, unsigned queue)
{
	char name[RTE_ETH_XSTATS_NAME_SIZE];
	uint64_t id, value = 0;

	snprintf(name, sizeof(name), "%s_q%u_packets", direction, queue);
	if (rte_eth_xstats_get_id_by_name(port_id, name, &id) == 0)
		rte_eth_xstats_get_by_id(port_id, &id, &value, 1);
	return value;
}

static void read_queues(const struct port *port, const struct rte_eth_stats *stats, struct port_counters *out)
{
	for (unsigned i = 0; i < port->config.queues; i++) {
		out->queues[i].rx_packets = read_queue(port->port_id, "rx", i);
		out->queues[i].tx_packets = read_queue(port->port_id, "tx", i);
	}
}
#endif

// What found no room in its ring is an error to this driver; it stays with the task, which counts it as tx_full.
static bool refusals_are_errors(const struct port *port)
{
	return strcmp(ethdev_driver(port), "net_af_xdp") == 0;
}

static void ethdev_counters(const struct port *port, struct port_counters *out)
{
	struct rte_eth_stats stats = {0};

	rte_eth_stats_get(port->port_id, &stats);
	out->rx_packets = stats.ipackets;
	out->tx_packets = stats.opackets;
	out->rx_missed = stats.imissed;
	out->rx_errors = stats.ierrors;
	out->tx_errors = refusals_are_errors(port) ? 0 : stats.oerrors;
	out->rx_nombuf = stats.rx_nombuf;
	if (port->config.queues > 1)
		read_queues(port, &stats, out);
}

// --- Buffers to be filled --------------------------------------------------------------------------------

// A queue lends mbufs of a pool of its own, which nobody else fills: what is behind the bytes that the sender writes each
// time stays there. Who receives them in this process may rewrite these bytes only.
struct lender {
	struct rte_mempool *pool;
	port_filler *fill;
	struct rte_mbuf *pkts[BURST_FRAMES_MAX]; // reserved in this poll
	unsigned reserved;
};

struct lenders {
	unsigned count;
	struct lender *queues[CONFIG_QUEUES_MAX];
};

enum {
	POOL_CACHE = 256, // what the worker reuses while the frames are hot in its caches
	POOL_MIN = 1024,
};

// Pools that were given up while a device's ring or another task still had mbufs of them: they are freed later.
static struct retired {
	struct retired *next;
	struct rte_mempool *pool;
} * retired_pools;

static void reap(void)
{
	for (struct retired **at = &retired_pools; *at;) {
		struct retired *r = *at;

		if (!rte_mempool_full(r->pool)) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		rte_mempool_free(r->pool);
		free(r);
	}
}

static void retire(struct rte_mempool *pool)
{
	struct retired *r = malloc(sizeof(*r));

	if (r) { // without memory the pool leaks, which is better than a device that reads what was freed
		*r = (struct retired){.next = retired_pools, .pool = pool};
		retired_pools = r;
	}
	reap();
}

static void fill_mbuf(struct rte_mempool *pool, void *lender, void *object, unsigned index)
{
	struct rte_mbuf *m = object;

	((struct lender *)lender)
	        ->fill((uint8_t *)m->buf_addr + RTE_PKTMBUF_HEADROOM, m->buf_len - RTE_PKTMBUF_HEADROOM);
}

// So large that the device's ring cannot empty it.
static struct rte_mempool *pool_create(const struct port *port)
{
	static unsigned created; // makes the name: pools may outlive their port, and its name may be too long
	unsigned count = 2 * port->config.ring_size + 2 * POOL_CACHE + 2 * BURST_FRAMES_MAX;
	char name[RTE_MEMPOOL_NAMESIZE];

	reap();
	snprintf(name, sizeof(name), "lent-%u", created++);
	return rte_pktmbuf_pool_create(name, RTE_MAX(count, (unsigned)POOL_MIN), POOL_CACHE, 0,
	                               rte_pktmbuf_data_room_size(port->rx_pool), SOCKET_ID_ANY);
}

static int ethdev_lend(struct port *port, uint16_t queue, port_filler *fill)
{
	struct lenders *lenders = port->own ? port->own : calloc(1, sizeof(*lenders));
	struct lender *lender = calloc(1, sizeof(*lender));

	if (lender)
		lender->pool = pool_create(port);
	if (!lenders || !lender || !lender->pool) {
		LOG_ERROR("port %s: no memory for a packet pool: %s; raise memory.size_mb", port->config.name,
		          rte_strerror(rte_errno));
		free(lender);
		if (lenders != port->own)
			free(lenders);
		return -ENOMEM;
	}
	lender->fill = fill;
	rte_mempool_obj_iter(lender->pool, fill_mbuf, lender);
	lenders->queues[queue] = lender;
	lenders->count++;
	port->own = lenders;
	return 1;
}

static void ethdev_take_back(struct port *port, uint16_t queue)
{
	struct lenders *lenders = port->own;
	struct lender *lender = lenders->queues[queue];

	if (!rte_mempool_full(lender->pool))
		rte_eth_tx_done_cleanup(port->port_id, queue, 0); // not every device can
	retire(lender->pool);
	free(lender);
	lenders->queues[queue] = NULL;
	if (--lenders->count == 0) {
		free(lenders);
		port->own = NULL;
	}
}

// One at a time, when the pool has less than the whole bulk.
static __attribute__((noinline, cold)) unsigned alloc_rest(struct lender *lender, unsigned n)
{
	unsigned got = 0;

	while (got < n && rte_mempool_get(lender->pool, (void **)&lender->pkts[got]) == 0)
		got++;
	return got;
}

static unsigned ethdev_reserve(const struct port *port, uint16_t queue, const uint16_t *lengths,
                               uint8_t **data, unsigned n)
{
	struct lender *lender = ((struct lenders *)port->own)->queues[queue];

	if (unlikely(rte_mempool_get_bulk(lender->pool, (void **)lender->pkts, n) != 0))
		n = alloc_rest(lender, n);
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = lender->pkts[i];

		rte_pktmbuf_reset(m);
		rte_mbuf_refcnt_set(m, 1);
		m->data_len = lengths[i];
		m->pkt_len = lengths[i];
		data[i] = rte_pktmbuf_mtod(m, uint8_t *);
	}
	lender->reserved = n;
	return n;
}

static unsigned ethdev_publish(const struct port *port, uint16_t queue, unsigned n)
{
	struct lender *lender = ((struct lenders *)port->own)->queues[queue];
	unsigned sent = rte_eth_tx_burst(port->port_id, queue, lender->pkts, (uint16_t)n);

	if (unlikely(sent < lender->reserved))
		rte_pktmbuf_free_bulk(&lender->pkts[sent], lender->reserved - sent);
	return sent;
}

static void ethdev_stamp_next(const struct port *port, uint16_t queue, unsigned index)
{
	struct lender *lender = ((struct lenders *)port->own)->queues[queue];

	lender->pkts[index]->ol_flags |= RTE_MBUF_F_TX_IEEE1588_TMST;
}

// --- Kinds -----------------------------------------------------------------------------------------------

// The library speaks for itself: its connection may go at any time, and then says nothing.
static bool net_vhost_negotiated(const struct port *port, struct negotiated *out)
{
	int vid = rte_eth_vhost_get_vid_from_port_id(port->port_id);

	if (vid < 0 || !ethdev_link_up(port) || rte_vhost_get_negotiated_features(vid, &out->features))
		return false;
	out->rings = 2 * port->config.queues;
	for (unsigned i = 0; i < out->rings; i++) {
		struct rte_vhost_vring vring = {0};

		if (rte_vhost_get_vhost_vring(vid, (uint16_t)i, &vring) == 0 && vring.desc)
			out->sizes[i] = vring.size;
	}
	return true;
}

// What found no room is an error to the library since DPDK 23.11; it stays with the task, which counts it as tx_full.
static void net_vhost_counters(const struct port *port, struct port_counters *out)
{
	ethdev_counters(port, out);
	out->tx_errors = 0;
}

// What all have in common. Packets do not come by here: port_peek() and port_pass() call the device.
#define ETHDEV_OPS                                                                                           \
	.close = ethdev_close, .link_up = ethdev_link_up, .speed_mbps = ethdev_speed_mbps,                   \
	.driver = ethdev_driver, .mac = ethdev_mac, .lend = ethdev_lend, .take_back = ethdev_take_back,      \
	.reserve = ethdev_reserve, .publish = ethdev_publish, .stamp_received = device_clock_received,       \
	.stamp_next = ethdev_stamp_next, .stamp_sent = device_clock_sent

struct port_ops ethdev_port_ops = {.kind = "ethdev",
                                   .is_default = true,
                                   .has_device = true,
                                   .open = ethdev_open,
                                   .counters = ethdev_counters,
                                   ETHDEV_OPS};
PORT_KIND(ethdev_port_ops)

static struct port_ops net_vhost_ops = {.kind = "vhost-user",
                                        .backend = "dpdk",
                                        .listens = true,
                                        .open = net_vhost_open,
                                        .negotiated = net_vhost_negotiated,
                                        .counters = net_vhost_counters,
                                        ETHDEV_OPS};
PORT_KIND(net_vhost_ops)

static struct port_ops net_virtio_user_ops = {.kind = "virtio-user",
                                              .backend = "dpdk",
                                              .open = net_virtio_user_open,
                                              .counters = ethdev_counters,
                                              ETHDEV_OPS};
PORT_KIND(net_virtio_user_ops)
