// SPDX-License-Identifier: BSD-3-Clause
// A virtio-user port whose driver is our own: we connect to the unix socket of a vhost-user device (a switch)
// and drive its rings as a guest would. Buffers are ours: what has come is looked at, changed and passed on
// where it lies, and what is sent can be written where the device will read it.
//
// A port lives through any number of devices, one after the other: while there is none, nothing comes and
// nothing that is sent is taken. What was in the rings is lost when a device goes.
//
// Threads: open and close on the control thread while no worker uses the port. Each queue pair: receiving on
// one worker, sending on one, the same or another. A thread of this module watches the sockets, takes the
// rings away from the workers and gives them back, through gates (ring/gate.h). No locks, no
// read-modify-write on the data path, and no system calls but the write that wakes a device that sleeps.
#pragma once

#include <rte_mbuf.h>

#include "port/port.h"
#include "runtime/config.h"
#include "ring/frames.h"

struct virtio_port;

// Connect to path and set up pairs queue pairs with rings of ring_size; name is for the log. A device that is
// not there yet is waited for, for a second. pool: for receiving into mbufs; its data room says how long a
// frame may be. Returns 0 and *out, or -errno after logging one line.
int virtio_port_open(const char *name, const char *path, uint16_t ring_size, uint16_t pairs,
                     struct rte_mempool *pool, struct virtio_port **out);
void virtio_port_close(struct virtio_port *port); // NULL is nothing

// As port_receive() and port_send(): by copy.
uint16_t virtio_port_receive(struct virtio_port *port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);
uint16_t virtio_port_send(struct virtio_port *port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);

// As port_peek(), port_release(), port_deliver(), port_reserve(), port_publish().
unsigned virtio_port_peek(struct virtio_port *port, uint16_t queue, struct view *view, unsigned n);
void virtio_port_release(struct virtio_port *port, uint16_t queue, struct view *view);
unsigned virtio_port_deliver(struct virtio_port *port, uint16_t queue, const struct frame *frames,
                             unsigned n);
unsigned virtio_port_reserve(struct virtio_port *port, uint16_t queue, struct frame *frames, unsigned n);
void virtio_port_publish(struct virtio_port *port, uint16_t queue, const struct frame *frames, unsigned n);

// As port_warm().
void virtio_port_warm(struct virtio_port *port, uint16_t queue);

// As port_flush(). All: of all queues, both ways; control thread, while no worker runs.
void virtio_port_flush(struct virtio_port *port, uint16_t queue);
void virtio_port_flush_all(struct virtio_port *port);

// As port_pass(), between two virtio ports, or from one to itself.
unsigned virtio_port_pass(struct virtio_port *from, struct virtio_port *to, uint16_t queue,
                          const struct view *view);

// Return whether a device is there, all rings run and none was stopped. Any thread, also a worker: does not
// log.
bool virtio_port_link_up(struct virtio_port *port);

// What was negotiated with its device, and its rings; false, and nothing, without a device. Any thread.
bool virtio_port_negotiated(struct virtio_port *port, struct negotiated *out);

// Add its counters, while no worker uses the port. Logs, once, which ring was stopped and why.
void virtio_port_counters(struct virtio_port *port, struct port_counters *counters);

extern const struct port_ops virtio_port_ops; // for tests that make their own port
