// SPDX-License-Identifier: BSD-3-Clause
// Two ports with rings of our own and what is between them, for the tests of every kind: which end is looked at is the kind's
// name, and a doorbell is the ring's (shm/doorbell.h). Needs no task.
#pragma once

#include <fcntl.h>
#include <rte_eal.h>
#include <rte_mbuf.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "port/shm_port.h"

enum { RIG_FRAME = 60, RIG_MBUFS = 1023, RIG_ROOM = 2176, RIG_UP_MS = 10000 };

// A kind of port, and that of its other end; NULL: what is sent comes back to the same port. What is NULL, 0 or false is the
// default (struct config_port).
struct rig_kind {
	const char *kind, *peer;
	const char *backend, *peer_backend, *device, *peer_device;
	bool zero_copy, offloads;
	bool packed;        // of the virtio driver, whichever end it is
	unsigned ring_size; // 0: the case's
};

static const struct rig_kind rig_kinds[] = {
        {.kind = "memif-server", .peer = "memif-client"},
        {.kind = "memif-client", .peer = "memif-server"},
        {.kind = "virtio-user", .peer = "vhost-user"},
        {.kind = "vhost-user", .peer = "virtio-user"},
        {.kind = "virtio-user", .peer = "vhost-user", .packed = true},
        {.kind = "vhost-user", .peer = "virtio-user", .packed = true},
};
enum { RIG_KINDS = RTE_DIM(rig_kinds) };

struct rig {
	const struct rig_kind *kind;
	struct config_port config[2]; // of both
	struct port port, peer;       // the one that is looked at, and its other end
};

static struct rte_mempool *rig_pool;
static char rig_directory[] = "/tmp/planed-ports.XXXXXX";

// Once per program. name: of the program.
static inline void rig_begin(const char *name)
{
	char prefix[64];
	char *args[] = {
	        "test",           "--no-huge",     "-m",   "256",         "--no-pci",      "--no-shconf",
	        "--no-telemetry", "--file-prefix", prefix, "--log-level", "lib.eal:error", NULL};
	cpu_set_t cpus;

	snprintf(prefix, sizeof(prefix), "test-%s-%d", name, getpid());
	sched_getaffinity(0, sizeof(cpus), &cpus);
	if (rte_eal_init(RTE_DIM(args) - 1, args) < 0 || mkdtemp(rig_directory) == NULL)
		exit(2);
	sched_setaffinity(0, sizeof(cpus), &cpus); // EAL has pinned us
	rmdir(rte_eal_get_runtime_dir());
	rig_pool = rte_pktmbuf_pool_create("rig", RIG_MBUFS, 0, 0, RIG_ROOM, SOCKET_ID_ANY);
	if (rig_pool == NULL)
		exit(2);
}

static inline void rig_end(void)
{
	rmdir(rig_directory);
	rte_mempool_free(
	        rig_pool); // without rte_eal_cleanup(): the interrupt thread may be in what that frees
}

static inline bool rig_open_port(struct port *port, const struct config_port *config)
{
	return port_open(port, config, rig_pool) == 0;
}

static inline bool rig_wait(const struct rig *r, bool up)
{
	for (unsigned i = 0; i < RIG_UP_MS; i++) {
		if (port_link_up(&r->port) == up && (!up || r->kind->peer == NULL || port_link_up(&r->peer)))
			return true;
		usleep(1000);
	}
	return false;
}

static inline void rig_config(struct rig *r, const struct rig_kind *kind, unsigned ring_size)
{
	*r = (struct rig){.kind = kind};
	for (unsigned i = 0; i < 2; i++) {
		struct config_port *config = &r->config[i];
		const char *backend = i ? kind->peer_backend : kind->backend;

		*config = (struct config_port){.ring_size = kind->ring_size ? kind->ring_size : ring_size,
		                               .queues = 1,
		                               .packed = kind->packed};
		if (i == 0 || kind->peer)
			config->ops = port_ops_find(i ? kind->peer : kind->kind, backend ? backend : "");
		snprintf(config->name, sizeof(config->name), "%s", i ? "peer" : "port");
		snprintf(config->path, sizeof(config->path), "%s/%p", rig_directory, (void *)r);
	}
	r->config[0].zero_copy = kind->zero_copy;
	r->config[0].offloads = kind->offloads;
	for (unsigned i = 0; i < 2; i++) {
		const char *device = i ? kind->peer_device : kind->device;

		snprintf(r->config[i].device, CONFIG_DEVICE_MAX, "%s", device ? device : "");
	}
}

static inline bool rig_open(struct rig *r, const struct rig_kind *kind, unsigned ring_size)
{
	rig_config(r, kind, ring_size);
	if (kind->peer == NULL)
		return rig_open_port(&r->port, &r->config[0]) && rig_wait(r, true);
	if (r->config[0].ops->listens)
		return rig_open_port(&r->port, &r->config[0]) && rig_open_port(&r->peer, &r->config[1]) &&
		       rig_wait(r, true);
	return rig_open_port(&r->peer, &r->config[1]) && rig_open_port(&r->port, &r->config[0]) &&
	       rig_wait(r, true);
}

static inline void rig_close_port(struct port *port)
{
	port_stop(port);
	port_close(port);
}

// Close the end that connects first.
static inline void rig_close(struct rig *r)
{
	if (r->kind->peer && r->port.ops->listens)
		rig_close_port(&r->peer);
	rig_close_port(&r->port);
	if (r->kind->peer && !r->port.ops->listens)
		rig_close_port(&r->peer);
}

// The ring that a port sends to, and the one that it receives from.
static inline struct ring_queue *rig_sink(const struct port *port)
{
	struct shm_port *own = port->own;

	return &own->queues[own->end->drives ? GUEST_TRANSMITQ : GUEST_RECEIVEQ];
}

static inline struct ring_queue *rig_source(const struct port *port)
{
	struct shm_port *own = port->own;

	return &own->queues[own->end->drives ? GUEST_RECEIVEQ : GUEST_TRANSMITQ];
}

// What is owed in a gap comes later (vhost_port_test): not here.
static inline void rig_no_gap(const struct port *port)
{
	rig_sink(port)->call_gap_tsc = rig_source(port)->call_gap_tsc = 0;
}

// What the other end says of itself.
static inline void rig_sleeps(const struct ring_queue *queue, bool sleeps)
{
	__atomic_store_n((uint16_t *)(uintptr_t)queue->bell.word, sleeps ? 0 : DOORBELL_AWAKE,
	                 __ATOMIC_SEQ_CST);
}

// How often its doorbell was rung since the last call.
static inline unsigned rig_rung(const struct ring_queue *queue)
{
	eventfd_t count;

	if (fcntl(queue->bell.fd, F_SETFL, O_NONBLOCK) || eventfd_read(queue->bell.fd, &count))
		return 0;
	return (unsigned)count;
}

// How a task sends: as one that receives, too, or as one that does not, by a copy or in place.
enum rig_way { RIG_POLLED, RIG_ALONE, RIG_IN_PLACE, RIG_WAYS };

static inline unsigned rig_send(const struct port *port, enum rig_way way, unsigned n)
{
	static uint8_t bytes[RIG_FRAME];
	static const struct piece piece = {bytes, RIG_FRAME};
	struct frame frames[BURST_FRAMES_MAX];
	uint16_t lengths[BURST_FRAMES_MAX];
	uint8_t *data[BURST_FRAMES_MAX];

	for (unsigned i = 0; i < n; i++) {
		frames[i] = (struct frame){{(struct piece *)(uintptr_t)&piece, 0}, RIG_FRAME, 0};
		lengths[i] = RIG_FRAME;
	}
	if (way == RIG_POLLED)
		return port_deliver_polled(port, 0, frames, n);
	if (way == RIG_ALONE || !port_lends(port))
		return port_deliver(port, 0, frames, n);
	n = port_reserve(port, 0, lengths, data, n);
	for (unsigned i = 0; i < n; i++)
		memset(data[i], 0, RIG_FRAME);
	return n ? port_publish(port, 0, n) : 0;
}

// Take up to n frames that have come.
static inline unsigned rig_take(const struct port *port, unsigned n)
{
	struct view view;
	unsigned came = port_peek(port, 0, &view, n);

	if (came)
		port_release(port, 0, &view);
	return came;
}
