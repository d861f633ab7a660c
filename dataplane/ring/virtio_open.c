// SPDX-License-Identifier: BSD-3-Clause
// A virtio port's life: opened, closed, and kept aside where its device may still write to what is its.
// Control thread.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_malloc.h>

#include "ring/buffers.h"
#include "lib/log.h"
#include "ring/virtio_session.h"

static int rings_init(struct virtio_port *port)
{
	unsigned count = 2u * port->pairs;
	size_t bytes = driver_ring_bytes(port->ring_size);

	port->rings = rte_zmalloc("virtio rings", count * bytes, DRIVER_LINE);
	port->pieces = aligned_alloc(DRIVER_LINE, count * port->ring_size * sizeof(*port->pieces));
	port->queues = aligned_alloc(DRIVER_LINE, count * sizeof(*port->queues));
	if (port->rings == NULL || port->pieces == NULL || port->queues == NULL)
		return -ENOMEM;
	memset(port->queues, 0, count * sizeof(*port->queues));
	for (unsigned i = 0; i < count; i++)
		port->queues[i].kick_fd = port->queues[i].call_fd = -1; // for rings_free()
	for (unsigned i = 0; i < count; i++) {
		struct virtio_queue *queue = &port->queues[i];

		driver_ring_init(&queue->ring, i % 2 == 0, port->ring_size, port->room,
		                 (uint8_t *)port->rings + i * bytes, &port->pieces[i * port->ring_size]);
		queue->kick_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		queue->call_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (queue->kick_fd < 0 || queue->call_fd < 0)
			return -EMFILE;
	}
	return 0;
}

static void rings_free(struct virtio_port *port)
{
	for (unsigned i = 0; port->queues && i < 2u * port->pairs; i++) {
		if (port->queues[i].kick_fd >= 0)
			close(port->queues[i].kick_fd);
		if (port->queues[i].call_fd >= 0)
			close(port->queues[i].call_fd);
	}
	free(port->queues);
	free(port->pieces);
	rte_free(port->rings);
}

// Ports whose device may still write to rings and buffers. Control thread.
static struct virtio_port *quarantined;

static unsigned buffer_count(const struct virtio_port *port)
{
	return 2u * port->pairs * port->ring_size;
}

static void discard(struct virtio_port *port)
{
	rings_free(port);
	free(port);
}

static void release(struct virtio_port *port)
{
	buffers_give_back(port->pieces, buffer_count(port));
	discard(port);
}

// The session is over. A device that hangs must not find what another port has now when it goes on.
static void release_or_quarantine(struct virtio_port *port)
{
	if (virtio_session_parted(port)) {
		release(port);
		return;
	}
	LOG_WARN("port %s: its device has not stopped and may still write: %u buffers and the rings stay "
	         "unused until it hangs up and another port is opened",
	         port->name, buffer_count(port));
	port->next = quarantined;
	quarantined = port;
}

static void quarantine_sweep(void)
{
	struct virtio_port **at = &quarantined;

	while (*at) {
		struct virtio_port *port = *at;

		if (!virtio_session_parted(port)) {
			at = &port->next;
			continue;
		}
		*at = port->next;
		release(port);
	}
}

// Takes the port over: it is released, or kept aside, if this fails.
static int begin(struct virtio_port *port)
{
	unsigned count = buffer_count(port);
	int rc = buffers_take(port->pieces, count, port->room);

	if (rc) {
		LOG_ERROR("port %s: %u buffers of %u bytes: %s; %s", port->name, count, port->room,
		          strerror(-rc),
		          rc == -ENOMEM ? "raise memory.size_mb"
		                        : "those of other ports have another size, close these first");
		discard(port);
		return rc;
	}
	rc = virtio_session_begin(port);
	if (rc)
		release_or_quarantine(port);
	return rc;
}

int virtio_port_open(const char *name, const char *path, uint16_t ring_size, uint16_t pairs,
                     struct rte_mempool *pool, struct virtio_port **out)
{
	struct virtio_port *port;
	int rc = gate_prepare();

	if (rc) {
		LOG_ERROR("port %s: membarrier(2): %s; use \"backend\": \"dpdk\"", name, strerror(-rc));
		return rc;
	}
	quarantine_sweep();
	port = calloc(1, sizeof(*port));
	if (port == NULL) {
		LOG_ERROR("port %s: no memory for %zu bytes", name, sizeof(*port));
		return -ENOMEM;
	}
	snprintf(port->name, sizeof(port->name), "%s", name);
	snprintf(port->path, sizeof(port->path), "%s", path);
	port->pool = pool;
	port->pairs = pairs;
	port->ring_size = ring_size;
	port->room = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
	port->parting_fd = -1;
	rc = rings_init(port);
	if (rc) {
		LOG_ERROR("port %s: no rings: %s; %s", name, strerror(-rc),
		          rc == -EMFILE ? "raise ulimit -n" : "raise memory.size_mb");
		discard(port);
		return rc;
	}
	rc = begin(port);
	if (rc)
		return rc;
	*out = port;
	return 0;
}

void virtio_port_close(struct virtio_port *port)
{
	if (port == NULL)
		return;
	virtio_session_end(port);
	release_or_quarantine(port);
}
