// SPDX-License-Identifier: BSD-3-Clause
#include "port/shm_port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "base/clock.h"
#include "base/log.h"

enum { LINES_BURST = 64, LINES_PER_MINUTE = 60 }; // of a port

void *shm_port_create(struct port *port, size_t bytes, const struct shm_end *end)
{
	const struct config_port *config = &port->config;
	struct shm_port *own;
	int rc = gate_prepare();

	if (rc) {
		LOG_ERROR("port %s: membarrier(2): %s; use \"backend\": \"dpdk\"", config->name,
		          strerror(-rc));
		errno = -rc;
		return NULL;
	}
	own = aligned_alloc(64, RTE_ALIGN_CEIL(bytes, 64));
	if (own == NULL) {
		LOG_ERROR("port %s: no memory for %zu bytes", config->name, bytes);
		errno = ENOMEM;
		return NULL;
	}
	memset(own, 0, bytes);
	snprintf(own->name, sizeof(own->name), "%s", config->name);
	snprintf(own->path, sizeof(own->path), "%s", config->path);
	own->pairs = config->queues;
	own->end = end;
	log_rate_init(&own->lines, LINES_BURST, LINES_PER_MINUTE, clock_now_ms());
	for (unsigned i = 0; i < SHM_PORT_RINGS_MAX; i++)
		own->queues[i].call_fd = own->queues[i].kick_fd = -1;
	snprintf(port->device, sizeof(port->device), "%s", end->device);
	port->mac = port_own_mac(config);
	return own;
}

void bell_ring(struct ring_queue *queue)
{
	uint64_t now_tsc = rte_rdtsc();

	if (now_tsc - queue->called_tsc < queue->call_gap_tsc) {
		doorbell_owe(&queue->bell);
		return;
	}
	queue->called_tsc = now_tsc;
	doorbell_ring(&queue->bell);
}

void bell_settle(struct ring_queue *source, struct ring_queue *sink)
{
	if (!gate_enter(&sink->gate))
		return;
	bell_pay(sink);
	source->pay_polls = sink->bell.owed;
	gate_leave(&sink->gate);
}

void bell_flush(struct ring_queue *queue)
{
	gate_hand_over(&queue->gate);
	if (gate_enter(&queue->gate)) {
		if (doorbell_pay(&queue->bell))
			doorbell_ring(&queue->bell);
		gate_leave(&queue->gate);
	}
	gate_hand_over(&queue->gate);
}

void shm_port_say_faults(struct shm_port *port)
{
	char unsaid[LOG_UNSAID_BYTES];

	for (unsigned i = 0; i < shm_port_rings(port); i++) {
		unsigned fault = fault_take(&port->queues[i].fault);

		if (fault == 0)
			continue;
		atomic_fetch_add(&port->broken, 1);
		if (!log_rate_take(&port->lines, clock_now_ms(), unsaid))
			continue;
		LOG_WARN("port %s: the %s's %s ring of queue %u is stopped: %s; restart %s%s", port->name,
		         port->end->other, i % PAIR_RINGS == GUEST_TRANSMITQ ? "transmit" : "receive",
		         i / PAIR_RINGS, port->end->fault_text(fault), port->end->restart, unsaid);
	}
}

void shm_port_forgive(struct shm_port *port)
{
	for (unsigned i = 0; i < shm_port_rings(port); i++)
		fault_forgive(&port->queues[i].fault);
}

void shm_port_flush_all(const struct port *port)
{
	struct shm_port *own = port->own;

	for (unsigned i = 0; i < shm_port_rings(own); i++) {
		bell_flush(&own->queues[i]);
		own->queues[i].pay_polls = 0; // it is paid; the next task may only receive here
	}
}

bool shm_port_link_up(const struct port *port)
{
	struct shm_port *own = port->own;
	bool up = atomic_load(&own->link_up);

	for (unsigned i = 0; i < shm_port_rings(own); i++)
		up = up && !fault_there(&own->queues[i].fault);
	return up;
}

void shm_port_counters(const struct port *port, struct port_counters *out)
{
	struct shm_port *own = port->own;

	shm_port_say_faults(own);
	for (unsigned i = 0; i < own->pairs; i++) {
		const struct ring_queue *pair = &own->queues[PAIR_RINGS * i];
		const struct ring_queue *rx = &pair[own->end->drives ? GUEST_RECEIVEQ : GUEST_TRANSMITQ];
		const struct ring_queue *tx = &pair[own->end->drives ? GUEST_TRANSMITQ : GUEST_RECEIVEQ];

		port_counters_add(out, i, counter_read(&rx->packets), counter_read(&tx->packets),
		                  counter_read(&tx->refused));
		out->rx_errors += counter_read(&rx->none.bad) + counter_read(&rx->none.oversize);
		out->tx_errors += counter_read(&tx->lost);
	}
	out->broken_rings = atomic_load(&own->broken);
}

bool shm_port_negotiated(const struct port *port, struct negotiated *out)
{
	struct shm_port *own = port->own;

	if (!atomic_load(&own->link_up))
		return false;
	out->features = atomic_load(&own->features);
	out->rings = shm_port_rings(own);
	for (unsigned i = 0; i < out->rings; i++)
		out->sizes[i] = atomic_load(&own->sizes[i]);
	return true;
}
