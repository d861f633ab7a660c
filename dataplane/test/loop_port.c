// SPDX-License-Identifier: BSD-3-Clause
// A kind of port for tests, and the example of docs/design/adding.md: what is sent to a queue comes back
// from it, up to ring_size packets.
#include "port/port.h"

#include <errno.h>
#include <stdlib.h>

#include "base/counters.h"
#include "base/log.h"

struct loop_queue {
	uint64_t rx_packets, tx_packets, tx_full;
	_Atomic(uint32_t) head, tail; // free running: sent, received; each worker writes one
	struct rte_mbuf **pkts;
};

struct loop_port {
	uint32_t size;
	struct loop_queue queues[CONFIG_QUEUES_MAX];
};

static void loop_close(struct port *port)
{
	struct loop_port *loop = port->own;

	for (unsigned i = 0; i < port->config.queues; i++) {
		struct loop_queue *q = &loop->queues[i];

		for (; q->pkts && q->tail != q->head; q->tail++)
			rte_pktmbuf_free(q->pkts[q->tail % loop->size]);
		free(q->pkts);
	}
	free(loop);
	port->own = NULL;
}

static int loop_open(struct port *port)
{
	struct loop_port *loop = calloc(1, sizeof(*loop));
	bool whole = loop != NULL;

	if (loop)
		loop->size = port->config.ring_size;
	for (unsigned i = 0; whole && i < port->config.queues; i++) {
		loop->queues[i].pkts = calloc(loop->size, sizeof(struct rte_mbuf *));
		whole = loop->queues[i].pkts != NULL;
	}
	port->own = loop;
	port->mac = port_own_mac(&port->config);
	if (whole)
		return 0;
	LOG_ERROR("port %s: no memory for its queues", port->config.name);
	if (loop)
		loop_close(port);
	return -ENOMEM;
}

static uint16_t loop_rx(const struct port *port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct loop_port *loop = port->own;
	struct loop_queue *q = &loop->queues[queue];
	uint32_t tail = q->tail, head = q->head;
	uint16_t count = 0;

	while (count < n && tail != head)
		pkts[count++] = q->pkts[tail++ % loop->size];
	q->tail = tail;
	counter_add(&q->rx_packets, count);
	return count;
}

static uint16_t loop_tx(const struct port *port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	struct loop_port *loop = port->own;
	struct loop_queue *q = &loop->queues[queue];
	uint32_t tail = q->tail, head = q->head;
	uint16_t count = 0;

	while (count < n && head - tail < loop->size)
		q->pkts[head++ % loop->size] = pkts[count++];
	q->head = head;
	counter_add(&q->tx_packets, count);
	counter_add(&q->tx_full, n - count);
	return count;
}

static bool loop_link_up(const struct port *port)
{
	return true;
}

static void loop_counters(const struct port *port, struct port_counters *counters)
{
	const struct loop_port *loop = port->own;

	for (unsigned i = 0; i < port->config.queues; i++) {
		const struct loop_queue *q = &loop->queues[i];

		port_counters_add(counters, i, counter_read(&q->rx_packets), counter_read(&q->tx_packets),
		                  counter_read(&q->tx_full));
	}
}

static struct port_ops loop_port_ops = {
        .kind = "loop",
        .is_default = true,
        .has_device = true,
        .takes_mac = true,
        .open = loop_open,
        .close = loop_close,
        .rx = loop_rx,
        .tx = loop_tx,
        .link_up = loop_link_up,
        .counters = loop_counters,
};
PORT_KIND(loop_port_ops)
