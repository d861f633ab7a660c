// SPDX-License-Identifier: BSD-3-Clause
// What a port with rings of our own has, at whichever end of them we are: a vhost-user device (port/vhost_port.c), a
// virtio driver (port/virtio_port.c), or either end of a memif (port/memif_port.c). Its rings, the gates before them, why one has stopped, and what is counted.
// How the other end connects is the session's of each kind, which takes the rings away from the workers and gives them
// back.
//
// Threads: open and close on the control thread while no worker uses the port. Receiving, and sending, on one worker
// each for each queue pair, the same or another; what they write is not on one cache line. No locks, no
// read-modify-write and no system calls on the data path, but the write that wakes an end that sleeps.
#pragma once

#include <stdatomic.h>

#include "base/counters.h"
#include "base/log_rate.h"
#include "port/port.h"
#include "virtio/driver_ring.h"
#include "virtio/device_frames.h"
#include "shm/gate.h"
#include "memif/memif_ring.h"

// The rings of pair i, as a driver calls them: receiveq 2i, transmitq 2i + 1 (virtio 1.2 s5.1.2). A memif's client calls
// them so.
enum { GUEST_RECEIVEQ, GUEST_TRANSMITQ, PAIR_RINGS, SHM_PORT_RINGS_MAX = PAIR_RINGS * CONFIG_QUEUES_MAX };

// One ring. Used by one worker, cache lines of its own: two workers share none. Behind the gate: the ring, and the
// eventfd that wakes the other end.
struct ring_queue {
	struct gate gate;
	bool attached; // device: the gate is open; session's thread
	uint8_t pay_polls; // that is received from: polls until what the pair's sink owes is paid (bell_at_poll())
	int call_fd,
	        kick_fd; // the driver's, and the device's, doorbell; -1 for none. bell.fd is the one that is not ours
	union {
		struct doorbell bell;      // of all three
		struct device_ring ring;   // we are the device
		struct driver_ring driver; // we are the driver
		struct memif_ring memif;
	};
	uint64_t called_tsc, call_gap_tsc; // when it was rung last, and for how long it is not rung again
	struct fault_word fault;           // of the ring; stays until the other end sets it up anew
	uint64_t packets;
	uint64_t refused, lost; // sending: not taken; taken, but no buffer can hold it, or gone with the ring
	struct frames_lost none; // receiving: buffers that made no frame
} __attribute__((aligned(64)));

// Which end of its rings a port is.
struct shm_end {
	bool drives;         // the driver, or the client of a memif: receives from the receiveq
	const char *device;  // the name of the port's device
	const char *other;   // what the other end is called
	const char *restart; // what sets its rings up anew
	const char *(*fault_text)(unsigned fault);
};

struct shm_port {
	struct ring_queue queues[SHM_PORT_RINGS_MAX]; // of these, the first PAIR_RINGS * pairs
	unsigned pairs;
	const struct shm_end *end;
	char name[CONFIG_NAME_MAX], path[CONFIG_PATH_MAX];
	_Atomic(bool) link_up; // the other end is connected and the first pair runs
	_Atomic(uint64_t) broken;
	struct log_rate lines;
	_Atomic(uint64_t) features;                  // negotiated; for who reports it
	_Atomic(uint16_t) sizes[SHM_PORT_RINGS_MAX]; // of the rings that run, else 0; the same
};

// --- Doorbells (shm/doorbell.h): behind the gate of the queue that they are of -----------------------------------------------

// One that always wants to be woken would cost a system call in each poll: it is rung once in call_gap_tsc, and owed the next
// ring then. One that sleeps longer than that is woken at once.
void bell_ring(struct ring_queue *queue);

static inline void bell_look(struct ring_queue *queue)
{
	if (doorbell_look(&queue->bell))
		bell_ring(queue);
}

static inline void bell_pay(struct ring_queue *queue)
{
	if (unlikely(doorbell_pay(&queue->bell)))
		bell_ring(queue);
}

// A task has sent to the sink of a pair that receives from its source, too: the second poll of the source from now on pays
// what is owed; the first may be of the same round. The source of a task that only receives is never told: what another
// worker sends is not its concern.
static inline void bell_after_send(struct ring_queue *source, const struct ring_queue *sink)
{
	source->pay_polls = sink->bell.owed ? 2 : 0;
}

// At each poll of the source, outside of its gate.
void bell_settle(struct ring_queue *source, struct ring_queue *sink);
static inline void bell_at_poll(struct ring_queue *source, struct ring_queue *sink)
{
	if (unlikely(source->pay_polls) && --source->pay_polls == 0)
		bell_settle(source, sink);
}

// What sent to the queue stops for long: its worker, or the control thread while that is parked. Not behind the gate; does not
// wait for a gap.
void bell_flush(struct ring_queue *queue);

static inline unsigned shm_port_rings(const struct shm_port *port)
{
	return PAIR_RINGS * port->pairs;
}

// Make the port of a kind, which begins with a struct shm_port and has bytes in all, zeros but for what the document
// says. To be freed. Returns NULL, with errno, after logging one line.
void *shm_port_create(struct port *port, size_t bytes, const struct shm_end *end);

// Count and log, once each, the rings that a worker has stopped: it cannot say so itself. Any thread but a worker.
void shm_port_say_faults(struct shm_port *port);

// Clear the faults of rings that are set up anew. The caller holds their gates shut.
void shm_port_forgive(struct shm_port *port);

// Any other worker may poll the rings from now on. See port_flush_all().
void shm_port_flush_all(const struct port *port);

// What all kinds have in their struct port_ops: these, and functions of their own that begin with kind_.
bool shm_port_link_up(const struct port *port);
void shm_port_counters(const struct port *port, struct port_counters *counters);
bool shm_port_negotiated(const struct port *port, struct negotiated *out);
#define SHM_PORT_OPS(kind_)                                                                                  \
	.is_default = true, .takes_mac = true, .open = kind_##_open, .close = kind_##_close,                 \
	.release = kind_##_release, .deliver = kind_##_deliver_frames,                                       \
	.deliver_polled = kind_##_deliver_polled, .warm = kind_##_warm, .flush = kind_##_flush,              \
	.flush_all = shm_port_flush_all, .link_up = shm_port_link_up

extern struct port_ops vhost_port_ops, virtio_port_ops; // for tests that make their own port
