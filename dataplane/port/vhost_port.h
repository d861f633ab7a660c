// SPDX-License-Identifier: BSD-3-Clause
// A vhost-user port whose data path is our own: we are the device and listen on a unix socket; a virtio
// driver (DPDK's virtio-user, QEMU for its guest) connects. rte_vhost speaks the protocol and maps the
// memory, in its own thread; our workers move the frames.
//
// Up to CONFIG_QUEUES_MAX queue pairs, as many as its driver enables of them; what is sent to a pair that it
// has not is not taken. A port lives through any number of connections, one after the other; if a second
// driver completes its set-up while the first is still there, the newest wins. Until a driver is there
// nothing is received, and nothing sent is taken.
//
// Threads: open and close on the control thread while no worker uses the port. Receive, and send, on one
// worker each for each queue, the same or another; what they write is not on one cache line. The library's
// thread takes the rings away from them and gives them back through gates (gate.h). No locks, no
// read-modify-write and no system calls on the data path, but the write that wakes a guest that sleeps.
#pragma once

#include <rte_mbuf.h>
#include <stdatomic.h>

#include "port/port.h"
#include "runtime/config.h"
#include "ring/frames.h"
#include "ring/gate.h"

struct vhost_port;

// Listen on config->path, with config->queues pairs. Returns 0 and *out, or -errno after logging one line.
int vhost_port_open(const struct config_port *config, struct rte_mempool *pool, struct vhost_port **out);
void vhost_port_close(struct vhost_port *port); // NULL is nothing

// Receive up to n frames; the caller owns them. Send n frames; returns how many the guest's ring took, the
// caller keeps the others. As port_receive() and port_send().
uint16_t vhost_port_receive(struct vhost_port *port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);
uint16_t vhost_port_send(struct vhost_port *port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);

// As port_peek(), port_release() and port_deliver(). The guest may write to what it lends while it is looked
// at: what is read twice may differ.
unsigned vhost_port_peek(struct vhost_port *port, uint16_t queue, struct view *view, unsigned n);
void vhost_port_release(struct vhost_port *port, uint16_t queue, struct view *view);
unsigned vhost_port_deliver(struct vhost_port *port, uint16_t queue, const struct frame *frames, unsigned n);

// As port_warm().
void vhost_port_warm(struct vhost_port *port, uint16_t queue);

// vhost_port_deliver() by a task that also receives from this queue of the port, again and again: without a
// fence, since its polls pay what this owes (ring_poll_wants_call()).
unsigned vhost_port_pass(struct vhost_port *port, uint16_t queue, const struct frame *frames, unsigned n);

// Move up to n frames from one guest to the other without mbufs. What the receiver does not take is dropped.
struct port_hop vhost_port_hop(struct vhost_port *from, struct vhost_port *to, uint16_t queue, uint16_t n);

// The worker that polled this port does so no more, and has not begun to on another: wake the guest if a call
// is still owed (ring_poll_wants_call()). Control thread, while no worker runs.
void vhost_port_flush(struct vhost_port *port);

// A driver is connected, the first pair runs and no ring was stopped. Any thread.
bool vhost_port_link_up(struct vhost_port *port);

// What its driver has negotiated, and its rings; false, and nothing, while the link is down. Any thread.
bool vhost_port_negotiated(struct vhost_port *port, struct negotiated *out);

// Add its counters, while no worker uses the port. Logs, once, which ring was stopped and why.
void vhost_port_counters(struct vhost_port *port, struct port_counters *counters);

extern const struct port_ops vhost_port_ops; // for tests that make their own port
