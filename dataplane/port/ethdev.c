// SPDX-License-Identifier: BSD-3-Clause
// Ports that are devices of DPDK: any device by its devargs, and DPDK's own ends of a vhost-user socket ("backend":
// "dpdk").
#include "port/port.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <linux/virtio_net.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_eth_vhost.h>
#include <rte_ether.h>
#include <rte_vhost.h>

#include "lib/log.h"

static const struct port_ops net_virtio_user_ops;

// A NIC given by its PCI address may exist already: EAL probed it at start.
static int attach(struct port *port, const char *text)
{
	uint16_t port_id;
	int rc;

	snprintf(port->device, sizeof(port->device), "%.*s", (int)strcspn(text, ","), text);
	if (rte_eth_dev_get_port_by_name(port->device, &port_id) == 0) {
		port->port_id = port_id;
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
	return 0;
err:
	LOG_ERROR("port %s (%s): cannot %s: %s", port->config.name, port->device, step, strerror(-rc));
	return rc;
}

static void ethdev_close(struct port *port)
{
	struct rte_eth_dev_info info;

	if (port->port_id == RTE_MAX_ETHPORTS || rte_eth_dev_info_get(port->port_id, &info))
		return;
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

static int ethdev_open(struct port *port)
{
	return open_device(port, port->config.device);
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

	return rte_eth_link_get_nowait(port->port_id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
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

static void ethdev_counters(const struct port *port, struct port_counters *out)
{
	struct rte_eth_stats stats = {0};

	rte_eth_stats_get(port->port_id, &stats);
	out->rx_packets = stats.ipackets;
	out->tx_packets = stats.opackets;
	out->rx_missed = stats.imissed;
	out->rx_errors = stats.ierrors;
	out->tx_errors = stats.oerrors;
	out->rx_nombuf = stats.rx_nombuf;
	if (port->config.queues > 1)
		read_queues(port, &stats, out);
}

static void ethdev_reclaim(const struct port *port)
{
	for (uint16_t i = 0; i < port->config.queues; i++)
		rte_eth_tx_done_cleanup(port->port_id, i, 0);
}

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

// What all have in common. Packets do not come by here: port_receive() and port_send() call the device.
#define ETHDEV_OPS                                                                                           \
	.close = ethdev_close, .link_up = ethdev_link_up, .driver = ethdev_driver, .mac = ethdev_mac,        \
	.reclaim = ethdev_reclaim

const struct port_ops ethdev_port_ops = {.kind = "ethdev",
                                         .is_default = true,
                                         .has_device = true,
                                         .open = ethdev_open,
                                         .counters = ethdev_counters,
                                         ETHDEV_OPS};
PORT_KIND(ethdev_port_ops)

static const struct port_ops net_vhost_ops = {.kind = "vhost-user",
                                              .backend = "dpdk",
                                              .listens = true,
                                              .open = net_vhost_open,
                                              .negotiated = net_vhost_negotiated,
                                              .counters = net_vhost_counters,
                                              ETHDEV_OPS};
PORT_KIND(net_vhost_ops)

static const struct port_ops net_virtio_user_ops = {.kind = "virtio-user",
                                                    .backend = "dpdk",
                                                    .open = net_virtio_user_open,
                                                    .counters = ethdev_counters,
                                                    ETHDEV_OPS};
PORT_KIND(net_virtio_user_ops)
