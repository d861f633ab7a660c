// SPDX-License-Identifier: BSD-3-Clause
// A port has one queue each way and one of two things behind it: a started ethdev (virtio-user driver, DPDK's
// vhost-user device, any DPDK device), or a vhost-user device of our own (vring/vhost_port.h). Opened and
// closed on the control thread; rx/tx by the worker that owns the task using it.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "config.h"
#include "vhost_port.h"

struct port {
	struct vhost_port *vhost; // or NULL: an ethdev
	uint16_t port_id;         // of the ethdev, or RTE_MAX_ETHPORTS
	struct config_port config;
	char device[CONFIG_DEVICE_MAX]; // ethdev name, as DPDK knows it; "vring" without one
	struct rte_ether_addr mac;      // without an ethdev
	struct rte_mempool *rx_pool;    // shared by all ports of the process; not owned
	struct rte_eth_stats baseline;  // counters at the last clear
	bool hotplugged;
};

// Receive up to n packets; the caller owns them.
static inline uint16_t port_receive(const struct port *port, struct rte_mbuf **pkts, uint16_t n)
{
	if (port->vhost)
		return vhost_port_receive(port->vhost, pkts, n);
	return rte_eth_rx_burst(port->port_id, 0, pkts, n);
}

// Send n packets; returns how many the port accepted and now owns. The caller keeps the others.
static inline uint16_t port_send(const struct port *port, struct rte_mbuf **pkts, uint16_t n)
{
	if (port->vhost)
		return vhost_port_send(port->vhost, pkts, n);
	return rte_eth_tx_burst(port->port_id, 0, pkts, n);
}

// Send n packets, free and return the count of those the port did not accept.
static inline uint16_t port_send_drop(const struct port *port, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t sent = port_send(port, pkts, n);

	if (sent < n)
		rte_pktmbuf_free_bulk(&pkts[sent], n - sent);
	return n - sent;
}

// Create, configure and start the device. Returns 0, or -errno after logging one line.
int port_open(struct port *port, const struct config_port *config, struct rte_mempool *rx_pool);
void port_close(struct port *port);

bool port_link_up(const struct port *port);

// Its MAC address. Returns 0 or -errno.
int port_mac(const struct port *port, struct rte_ether_addr *mac);

// Counters since it was opened; no worker may use the port meanwhile. Frames that a driver's buffers cannot
// hold are oerrors, buffers of a driver without a frame in them, or with too long a one, ierrors.
void port_stats(const struct port *port, struct rte_eth_stats *stats);

// Ask for mbufs back that were sent; not every device can.
void port_reclaim(const struct port *port);
