// SPDX-License-Identifier: BSD-3-Clause
// tester_bench in place: a guest in plain memory whose driver, outside of what is measured, puts the buffers
// that were filled into its transmit ring, and those that were looked at back into its receive ring. And what
// a port that lends its buffers would ask of the generator.
#include <stdlib.h>
#include <string.h>

#include "tester/generator_tx.h"
#include "tester/frame_run.h"
#include "test/guest.h"
#include "tester/tester_bench.h"
#include "port/shm_port.h"

// As DPDK's drivers do it: the frame begins with a cache line, the header ends the one before.
enum { BUFFER_BYTES = 2048 + RING_HEADER, BUFFER_OFFSET = RTE_CACHE_LINE_SIZE - RING_HEADER };

struct bench_guest {
	struct guest guest;
	struct shm_port vhost;
	const struct frame_run *run;
	struct frame_room *room;
	struct frame frames[BENCH_BURST];
	struct piece pieces[BENCH_BURST];
	unsigned lent_next;
	uint32_t sequence;
	struct frame_template template;
	uint8_t memory[BENCH_CHUNK][2048] __attribute__((aligned(64)));
};

static void offer(struct driver *driver, uint64_t address, uint32_t length)
{
	driver_offer(driver, &(struct guest_range){address, length}, 1, false);
}

// To receive into.
static void offer_empty(struct driver *driver, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		offer(driver, driver_buffer(driver, driver_next_id(driver)) + BUFFER_OFFSET, BUFFER_BYTES);
}

static void queue_open(struct ring_queue *queue, const struct driver *driver)
{
	queue->ring = driver->ring;
	queue->call_fd = -1;
	gate_open(&queue->gate);
}

void bench_guest_open(struct bench *b, struct rte_mempool *pool)
{
	struct bench_guest *g = aligned_alloc(64, sizeof(*g));

	if (!g)
		abort();
	memset(g, 0, sizeof(*g));
	guest_open(&g->guest, UINT64_C(1) << VIRTIO_F_VERSION_1 | UINT64_C(1) << VIRTIO_NET_F_MRG_RXBUF,
	           GUEST_SIZE_MAX, false);
	queue_open(&g->vhost.queues[GUEST_RECEIVEQ], &g->guest.receive);
	queue_open(&g->vhost.queues[GUEST_TRANSMITQ], &g->guest.transmit);
	offer_empty(&g->guest.receive, GUEST_SIZE_MAX);
	g->run = frame_run_current();
	g->room = frame_room_create(BENCH_CHUNK);
	b->guest = g;
	b->port = (struct port){
	        .ops = &vhost_port_ops, .own = &g->vhost, .port_id = RTE_MAX_ETHPORTS, .rx_pool = pool};
	b->port.config.ring_size = GUEST_SIZE_MAX;
}

// What the receive ring got is what the transmit ring offers.
static void pass_on(struct bench *b)
{
	struct driver *receive = &b->guest->guest.receive, *transmit = &b->guest->guest.transmit;
	uint32_t written;

	for (int id; (id = driver_collect(receive, &written)) >= 0;)
		offer(transmit, driver_buffer(receive, (unsigned)id) + BUFFER_OFFSET, written);
}

static void take_back(struct bench *b)
{
	struct driver *receive = &b->guest->guest.receive, *transmit = &b->guest->guest.transmit;
	uint32_t written;

	while (driver_collect(transmit, &written) >= 0)
		offer_empty(receive, 1);
}

static unsigned deliver_bare(struct bench *b)
{
	struct bench_guest *g = b->guest;

	for (unsigned i = 0; i < BENCH_BURST; i++) {
		g->pieces[i] = (struct piece){g->memory[i], b->length};
		g->frames[i] = (struct frame){.at = {&g->pieces[i], 0}, .length = b->length};
	}
	return port_deliver(&b->port, 0, g->frames, BENCH_BURST);
}

static unsigned peek_bare(struct bench *b)
{
	struct view view;
	unsigned n = port_peek(&b->port, 0, &view, BENCH_BURST);

	if (n)
		port_release(&b->port, 0, &view);
	return n;
}

// As the generator in lent buffers, without a port.
static unsigned write_lent(struct bench *b)
{
	struct bench_guest *g = b->guest;
	uint8_t *data[BENCH_BURST];

	for (unsigned i = 0; i < BENCH_BURST; i++, g->lent_next = (g->lent_next + 1) % BENCH_CHUNK)
		data[i] = g->memory[g->lent_next];
	frame_room_fill(g->room, data, BENCH_BURST, b->length);
	g->run->write(&g->template, data, BENCH_BURST, g->sequence);
	g->sequence += BENCH_BURST;
	return BENCH_BURST;
}

const struct bench_kind bench_guest_kinds[] = {
        {"in place: deliver", deliver_bare, pass_on, true},
        {"in place: peek, release", peek_bare, take_back, true},
        {"in place: generator, copy", bench_generate, pass_on, false},
        {"in place: monitor", bench_monitor, take_back, false},
        {"in place: write lent room", write_lent, NULL, false},
};
const unsigned bench_guest_kind_count = RTE_DIM(bench_guest_kinds);
