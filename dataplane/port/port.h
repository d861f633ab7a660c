// SPDX-License-Identifier: BSD-3-Clause
// A port has queue pairs and one of these behind it: a started ethdev (DPDK's virtio-user driver, its
// vhost-user device, any DPDK device), a vhost-user device of our own (port/vhost_port.h), or a virtio
// driver of our own (port/virtio_port.h). Opened and closed on the control thread; rx/tx by the worker that
// owns the task using it.
#pragma once

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "runtime/config.h"
#include "port/vhost_port.h"
#include "port/virtio_port.h"

// eth: frames that no buffers of the other end can hold, or that were lost with a ring, are oerrors; buffers
// of the other end without a frame in them, or with too long a one, ierrors. The rest is known of rings of our own;
// zeros with an ethdev.
struct port_stats {
	struct rte_eth_stats eth;
	uint64_t rx_packets[CONFIG_QUEUES_MAX], tx_packets[CONFIG_QUEUES_MAX]; // by queue
	uint64_t broken_rings;               // stopped, because the other end broke a rule
	uint64_t tx_full[CONFIG_QUEUES_MAX]; // frames offered to the queue that it did not take
};

struct port {
	struct vhost_port *vhost;   // or NULL
	struct virtio_port *virtio; // or NULL: both are, of an ethdev
	uint16_t port_id;           // of the ethdev, or RTE_MAX_ETHPORTS
	struct config_port config;
	char device[CONFIG_DEVICE_MAX]; // ethdev name, as DPDK knows it; "vring" or "virtio" without one
	struct rte_ether_addr mac;      // without an ethdev
	struct rte_mempool *rx_pool;    // shared by all ports of the process; not owned
	struct port_stats baseline;     // counters at the last clear
	bool hotplugged;
};

// Packets in mbufs: every port, whatever is behind it. queue: of the port's queue pairs, 0 .. queues - 1.

// Receive up to n packets; the caller owns them.
static inline uint16_t port_receive(const struct port *port, uint16_t queue, struct rte_mbuf **pkts,
                                    uint16_t n)
{
	if (port->vhost)
		return vhost_port_receive(port->vhost, queue, pkts, n);
	if (port->virtio)
		return virtio_port_receive(port->virtio, queue, pkts, n);
	return rte_eth_rx_burst(port->port_id, queue, pkts, n);
}

// Send n packets; returns how many the port accepted and now owns. The caller keeps the others.
static inline uint16_t port_send(const struct port *port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	if (port->vhost)
		return vhost_port_send(port->vhost, queue, pkts, n);
	if (port->virtio)
		return virtio_port_send(port->virtio, queue, pkts, n);
	return rte_eth_tx_burst(port->port_id, queue, pkts, n);
}

// Send n packets, free and return the count of those the port did not accept.
static inline uint16_t port_send_drop(const struct port *port, uint16_t queue, struct rte_mbuf **pkts,
                                      uint16_t n)
{
	uint16_t sent = port_send(port, queue, pkts, n);

	if (sent < n)
		rte_pktmbuf_free_bulk(&pkts[sent], n - sent);
	return n - sent;
}

// Frames in place: ports that have rings of ours only. One poll: peek; read, or write where that is allowed;
// deliver or pass on; release.

static inline bool port_in_place(const struct port *port)
{
	return port->vhost || port->virtio;
}

// Whether the task may change the frames that the port lends: they are in our memory, not a guest's.
static inline bool port_view_writable(const struct port *port)
{
	return port->virtio;
}

// Lend up to n (at most RING_BATCH_MAX) frames that have arrived. Returns view->count; if it is not 0, the
// same poll must end with port_release().
static inline unsigned port_peek(const struct port *port, uint16_t queue, struct view *view, unsigned n)
{
	if (port->virtio)
		return virtio_port_peek(port->virtio, queue, view, n);
	return vhost_port_peek(port->vhost, queue, view, n);
}

// Give all of a view back, whatever the task left in it.
static inline void port_release(const struct port *port, uint16_t queue, struct view *view)
{
	if (port->virtio)
		virtio_port_release(port->virtio, queue, view);
	else
		vhost_port_release(port->vhost, queue, view);
}

// Copy n (at most RING_BATCH_MAX) frames out of the port, in order. Returns how many it took: a frame that
// can never fit is taken, and counted.
static inline unsigned port_deliver(const struct port *port, uint16_t queue, const struct frame *frames,
                                    unsigned n)
{
	if (port->virtio)
		return virtio_port_deliver(port->virtio, queue, frames, n);
	return vhost_port_deliver(port->vhost, queue, frames, n);
}

// Whether the port lends buffers of its own to be filled: no copy at all. They belong to the task that sends
// on this queue: what it wrote behind a frame's head is still there the next time round.
static inline bool port_lends_room(const struct port *port)
{
	return port->virtio;
}

// Lend up to n (at most RING_BATCH_MAX) empty buffers: frames[i].at says where, frames[i].length how much
// room. Returns how many. Nothing needs to be given back: what is not published is lent again.
static inline unsigned port_reserve(const struct port *port, uint16_t queue, struct frame *frames, unsigned n)
{
	return virtio_port_reserve(port->virtio, queue, frames, n);
}

// Send the first n of the reserved buffers, frames[i].length bytes of each.
static inline void port_publish(const struct port *port, uint16_t queue, const struct frame *frames,
                                unsigned n)
{
	virtio_port_publish(port->virtio, queue, frames, n);
}

// Nothing was sent in this poll: have in this core's cache what the next frame out of the port will need, so
// that a frame after a long silence is as fast as one of many. For ports in place; for the task that sends.
static inline void port_warm(const struct port *port, uint16_t queue)
{
	if (port->vhost)
		vhost_port_warm(port->vhost, queue);
	else
		virtio_port_warm(port->virtio, queue);
}

// Who sends on this queue stops for long: wake the other end if it still has to be. The worker that sends, or
// the control thread while it is parked. A device of our own owes nothing to who sends frames of its own:
// deliver and send look behind a fence.
static inline void port_settle(const struct port *port, uint16_t queue)
{
	if (port->virtio)
		virtio_port_settle(port->virtio, queue);
}

// Hand the frames of a view of from on to another port, in order: by exchanging buffers where both are ours,
// else by one copy. Returns how many it took; the view must still be released. The task receives from this
// queue of to as well: these polls call a guest that could not be seen to sleep.
static inline unsigned port_pass(const struct port *from, const struct port *to, uint16_t queue,
                                 struct view *view)
{
	if (from->virtio && to->virtio)
		return virtio_port_pass(from->virtio, to->virtio, queue, view);
	if (to->vhost)
		return vhost_port_pass(to->vhost, queue, view->frames, view->count);
	return port_deliver(to, queue, view->frames, view->count);
}

// Create, configure and start the device. Returns 0, or -errno after logging one line.
int port_open(struct port *port, const struct config_port *config, struct rte_mempool *rx_pool);
void port_close(struct port *port);

bool port_link_up(const struct port *port);

// What drives it: DPDK's name of the driver; "planed" for rings of our own.
const char *port_driver(const struct port *port);

// Its MAC address. Returns 0 or -errno.
int port_mac(const struct port *port, struct rte_ether_addr *mac);

// Counters since it was opened; no worker may use the port meanwhile.
void port_stats(const struct port *port, struct port_stats *stats);

// Ask for mbufs back that were sent; not every device can.
void port_reclaim(const struct port *port);
