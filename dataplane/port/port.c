// SPDX-License-Identifier: BSD-3-Clause
#include "port/port.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <linux/virtio_net.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_ether.h>

#include "lib/log.h"

// Devargs of the port's device. A driver is chosen by the beginning of the name; the port's name makes it
// unique.
static void devargs(const struct config_port *config, char *out, size_t size)
{
	switch (config->kind) {
	case PORT_VHOST_USER: // "backend": "dpdk"; listens on path; the ring size is the driver's choice
	                      // (virtio 1.2 s2.6)
		snprintf(out, size, "net_vhost_%s,iface=%s,queues=%u", config->name, config->path,
		         config->queues);
		break;
	case PORT_VIRTIO_USER: // "backend": "dpdk"
		snprintf(out, size, "net_virtio_user_%s,path=%s,queues=%u,queue_size=%u", config->name,
		         config->path, config->queues, config->ring_size);
		break;
	case PORT_ETHDEV:
		snprintf(out, size, "%s", config->device);
		break;
	}
}

// A NIC given by its PCI address may exist already: EAL probed it at start.
static int attach(struct port *port)
{
	char text[CONFIG_DEVICE_MAX + CONFIG_PATH_MAX];
	uint16_t port_id;
	int rc;

	devargs(&port->config, text, sizeof(text));
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
	          port->config.kind == PORT_VIRTIO_USER ? "; has the other end as many?" : "");
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

// As DPDK's vhost device has it, "VHOS" and more: its fifth byte is a "T", ours is above all letters. An
// address comes again after 32768 ports.
static struct rte_ether_addr next_mac(void)
{
	static uint16_t number;

	number++;
	return (struct rte_ether_addr){
	        {0x56, 0x48, 0x4f, 0x53, (uint8_t)(0x80 | number >> 8), (uint8_t)number}};
}

// The document's, or one of our own.
static struct rte_ether_addr own_mac(const struct config_port *config)
{
	struct rte_ether_addr mac;

	memcpy(mac.addr_bytes, config->mac, sizeof(mac.addr_bytes));
	return rte_is_zero_ether_addr(&mac) ? next_mac() : mac;
}

static int open_vring(struct port *port)
{
	const struct config_port *config = &port->config;

	snprintf(port->device, sizeof(port->device), "vring");
	port->mac = own_mac(config);
	return vhost_port_open(config, port->rx_pool, &port->vhost);
}

static int open_virtio(struct port *port)
{
	const struct config_port *config = &port->config;

	snprintf(port->device, sizeof(port->device), "virtio");
	port->mac = own_mac(config);
	return virtio_port_open(config->name, config->path, (uint16_t)config->ring_size,
	                        (uint16_t)config->queues, port->rx_pool, &port->virtio);
}

int port_open(struct port *port, const struct config_port *config, struct rte_mempool *rx_pool)
{
	int rc;

	*port = (struct port){.config = *config, .rx_pool = rx_pool, .port_id = RTE_MAX_ETHPORTS};
	if (config->kind == PORT_VHOST_USER && config->backend == PORT_BACKEND_VRING)
		return open_vring(port);
	if (config->kind == PORT_VIRTIO_USER && config->backend == PORT_BACKEND_VRING)
		return open_virtio(port);
	rc = attach(port);
	if (rc == 0)
		rc = configure(port);
	if (rc)
		port_close(port);
	return rc;
}

void port_close(struct port *port)
{
	struct rte_eth_dev_info info;

	vhost_port_close(port->vhost);
	port->vhost = NULL;
	virtio_port_close(port->virtio);
	port->virtio = NULL;
	if (port->port_id == RTE_MAX_ETHPORTS || rte_eth_dev_info_get(port->port_id, &info))
		return;
	rte_eth_dev_stop(port->port_id);
	if (port->hotplugged)
		rte_dev_remove(info.device);
	else
		rte_eth_dev_close(port->port_id);
	port->port_id = RTE_MAX_ETHPORTS;
}

bool port_link_up(const struct port *port)
{
	struct rte_eth_link link = {0};

	if (port->vhost)
		return vhost_port_link_up(port->vhost);
	if (port->virtio)
		return virtio_port_link_up(port->virtio);
	return rte_eth_link_get_nowait(port->port_id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

const char *port_driver(const struct port *port)
{
	struct rte_eth_dev_info info;

	if (port_in_place(port))
		return "planed";
	return rte_eth_dev_info_get(port->port_id, &info) == 0 && info.driver_name ? info.driver_name : "";
}

int port_mac(const struct port *port, struct rte_ether_addr *mac)
{
	if (!port_in_place(port))
		return rte_eth_macaddr_get(port->port_id, mac);
	*mac = port->mac;
	return 0;
}

// What both kinds of rings of our own count of a queue.
struct queue_counts {
	uint64_t rx_packets, tx_packets, rx_errors, tx_errors, rx_nombuf, tx_full;
};

static void add_queue(struct port_stats *stats, unsigned queue, const struct queue_counts *own)
{
	stats->eth.ipackets += own->rx_packets;
	stats->eth.opackets += own->tx_packets;
	stats->eth.ierrors += own->rx_errors;
	stats->eth.oerrors += own->tx_errors;
	stats->eth.rx_nombuf += own->rx_nombuf;
	stats->rx_packets[queue] = own->rx_packets;
	stats->tx_packets[queue] = own->tx_packets;
	stats->tx_full[queue] = own->tx_full;
}

static void vhost_stats(const struct port *port, struct port_stats *stats)
{
	struct vhost_port_stats own = vhost_port_stats(port->vhost);

	for (unsigned i = 0; i < port->config.queues; i++) {
		const struct vhost_queue_stats *q = &own.queues[i];

		add_queue(stats, i,
		          &(struct queue_counts){q->rx_packets, q->tx_packets, q->rx_bad + q->rx_oversize,
		                                 q->tx_too_long, q->rx_nombuf, q->tx_full});
	}
	stats->broken_rings = own.broken;
}

static void virtio_stats(const struct port *port, struct port_stats *stats)
{
	struct virtio_port_stats own = virtio_port_stats(port->virtio);

	for (unsigned i = 0; i < port->config.queues; i++) {
		const struct virtio_queue_stats *q = &own.queues[i];

		add_queue(stats, i,
		          &(struct queue_counts){q->rx_packets, q->tx_packets, q->rx_empty,
		                                 q->tx_too_long + q->tx_lost, q->rx_nombuf, q->tx_full});
	}
	stats->broken_rings = own.broken;
}

#ifdef RTE_ETHDEV_QUEUE_STAT_CNTRS // before DPDK 25.11
static void ethdev_queue_stats(const struct port *port, struct port_stats *stats)
{
	for (unsigned i = 0; i < port->config.queues && i < RTE_ETHDEV_QUEUE_STAT_CNTRS; i++) {
		stats->rx_packets[i] = stats->eth.q_ipackets[i];
		stats->tx_packets[i] = stats->eth.q_opackets[i];
	}
}
#else
static uint64_t xstat(const struct port *port, const char *format, unsigned queue)
{
	uint64_t id, value = 0;
	char name[RTE_ETH_XSTATS_NAME_SIZE];

	snprintf(name, sizeof(name), format, queue);
	if (rte_eth_xstats_get_id_by_name(port->port_id, name, &id) == 0)
		rte_eth_xstats_get_by_id(port->port_id, &id, &value, 1);
	return value;
}

static void ethdev_queue_stats(const struct port *port, struct port_stats *stats)
{
	for (unsigned i = 0; i < port->config.queues; i++) {
		stats->rx_packets[i] = xstat(port, "rx_q%u_packets", i);
		stats->tx_packets[i] = xstat(port, "tx_q%u_packets", i);
	}
}
#endif

static void ethdev_stats(const struct port *port, struct port_stats *stats)
{
	rte_eth_stats_get(port->port_id, &stats->eth);
	if (port->config.queues > 1)
		ethdev_queue_stats(port, stats);
}

void port_stats(const struct port *port, struct port_stats *stats)
{
	*stats = (struct port_stats){0};
	if (port->vhost)
		vhost_stats(port, stats);
	else if (port->virtio)
		virtio_stats(port, stats);
	else
		ethdev_stats(port, stats);
}

void port_reclaim(const struct port *port)
{
	for (uint16_t i = 0; !port_in_place(port) && i < port->config.queues; i++)
		rte_eth_tx_done_cleanup(port->port_id, i, 0);
}
