// SPDX-License-Identifier: BSD-3-Clause
#include "test/wire.h"

#include <stdlib.h>
#include <string.h>

#include "port/shm_port.h"

enum { BUFFER_BYTES = GUEST_BUFFER_BYTES };

#define FEATURES (UINT64_C(1) << VIRTIO_F_VERSION_1 | UINT64_C(1) << VIRTIO_NET_F_MRG_RXBUF)

static void queue_open(struct ring_queue *queue, const struct driver *driver)
{
	queue->ring = driver->ring;
	queue->call_fd = -1;
	gate_open(&queue->gate);
}

// As many buffers as a ring of mbufs of this size holds packets.
static int guest_port_open(struct wire *w, uint16_t size)
{
	guest_open(&w->guest, FEATURES, size, false);
	w->vhost = aligned_alloc(64, sizeof(*w->vhost));
	if (!w->vhost)
		return -1;
	memset(w->vhost, 0, sizeof(*w->vhost));
	queue_open(&w->vhost->queues[GUEST_RECEIVEQ], &w->guest.receive);
	queue_open(&w->vhost->queues[GUEST_TRANSMITQ], &w->guest.transmit);
	w->guest_port = w->fixture->ports[0].port;
	w->guest_port.ops = &vhost_port_ops;
	w->guest_port.own = w->vhost;
	w->guest_port.port_id = RTE_MAX_ETHPORTS;
	w->port = &w->guest_port;
	return driver_offer_own(&w->guest.receive, size - 1, BUFFER_BYTES) == size - 1u ? 0 : -1;
}

static int setup(void **state, bool in_place, uint16_t slots)
{
	struct wire *w = calloc(1, sizeof(*w));
	void *fixture = NULL;

	*state = w;
	if (!w || (slots == FIXTURE_SLOTS ? fixture_setup : fixture_setup_small)(&fixture) != 0)
		return -1;
	w->fixture = fixture;
	w->in_place = in_place;
	w->port = &w->fixture->ports[0].port;
	return in_place ? guest_port_open(w, slots) : 0;
}

int wire_setup_mbufs(void **state)
{
	return setup(state, false, FIXTURE_SLOTS);
}

int wire_setup_mbufs_small(void **state)
{
	return setup(state, false, 16);
}

int wire_setup_in_place(void **state)
{
	return setup(state, true, FIXTURE_SLOTS);
}

int wire_setup_in_place_small(void **state)
{
	return setup(state, true, 16);
}

int wire_teardown(void **state)
{
	struct wire *w = *state;
	void *fixture = w->fixture;

	if (w->in_place)
		guest_close(&w->guest);
	free(w->vhost);
	free(w);
	return fixture_teardown(&fixture);
}

struct task *wire_task(struct wire *w, struct config_task *config)
{
	const struct task_ops *ops = task_ops_find(config->kind);
	struct task *task;

	return ops && task_create(ops, config, &w->port, &task) == 0 ? task : NULL;
}

static unsigned collect_mbuf(struct wire *w, uint8_t *data)
{
	unsigned length = 0;
	struct rte_mbuf *m;

	if (ring_port_collect(&w->fixture->ports[0], &m, 1) == 1) {
		length = m->pkt_len;
		memcpy(data, rte_pktmbuf_mtod(m, uint8_t *), length);
		rte_pktmbuf_free(m);
	}
	return length;
}

unsigned wire_collect(struct wire *w, uint8_t *data)
{
	struct driver *driver = &w->guest.receive;
	uint32_t written;
	int id;

	if (!w->in_place)
		return collect_mbuf(w, data);
	id = driver_collect(driver, &written);
	if (id < 0)
		return 0;
	memcpy(data, (uint8_t *)guest_at(&w->guest, driver_buffer(driver, (unsigned)id)) + RING_HEADER,
	       written - RING_HEADER);
	driver_offer_own(driver, 1, BUFFER_BYTES);
	return written - RING_HEADER;
}

static bool inject_mbufs(struct wire *w, const uint8_t *data, unsigned length, unsigned run)
{
	struct rte_mbuf *first = NULL;

	for (unsigned at = 0; at < length; at += run) {
		struct rte_mbuf *m =
		        fixture_packet(w->fixture, data + at, (uint16_t)RTE_MIN(run, length - at));

		if (first && m)
			rte_pktmbuf_chain(first, m);
		first = first ? first : m;
	}
	return first && ring_port_inject(&w->fixture->ports[0], &first, 1) == 1;
}

// The header and the first run are one range.
static bool inject_buffer(struct wire *w, const uint8_t *data, unsigned length, unsigned run)
{
	struct driver *driver = &w->guest.transmit;
	struct guest_range ranges[GUEST_TABLE_ENTRIES];
	unsigned count = 0, left = RING_HEADER + length;
	uint32_t written;
	uint64_t at;

	while (driver_collect(driver, &written) >= 0)
		; // the task is done with these
	at = driver_buffer(driver, driver_next_id(driver));
	memset(guest_at(&w->guest, at), 0, RING_HEADER);
	memcpy((uint8_t *)guest_at(&w->guest, at) + RING_HEADER, data, length);
	for (; left; count++) {
		ranges[count] = (struct guest_range){at, RTE_MIN(count ? run : run + RING_HEADER, left)};
		at += ranges[count].length;
		left -= ranges[count].length;
	}
	return driver_offer(driver, ranges, count, count > 1) >= 0;
}

bool wire_inject(struct wire *w, const uint8_t *data, unsigned length, unsigned run)
{
	return (w->in_place ? inject_buffer : inject_mbufs)(w, data, length, run ? run : length);
}
