// SPDX-License-Identifier: BSD-3-Clause
// tester_bench [cross]: what generator and monitor cost in TSC cycles a packet. A port that is one ring
// carries the frames from the one to the other, so nothing is copied and the numbers are the tester's own,
// beside those of a bare loop (allocate, send; receive, free) through the same ring and pool. Kinds and sizes
// take turns; medians over rounds. "cross": sender and receiver on two cores, so that the frames come from
// another core's cache.
//
// Not a test: nothing is asserted. Close other load, and mind that the clock counts TSC ticks, not core
// cycles.
#include <pthread.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_lcore.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "frame.h"
#include "generator.h"
#include "monitor.h"

enum { BURST = 32, CHUNK = 512, RING = 1024, ROUNDS = 2000, CROSS_PACKETS = 400000, CROSS_ROUNDS = 15 };

static const uint16_t sizes[] = {64, 256, 1024};
enum { SIZES = RTE_DIM(sizes) };

// What is measured, for each frame size.
enum kind { SEND_BARE, RECEIVE_BARE, GENERATE, MONITOR, KINDS };
static const char *const kind_names[] = {"allocate, send", "receive, free", "generator", "monitor"};

struct bench {
	struct port port;
	struct rte_mempool *pool;
	struct task *generator, *monitor;
	uint16_t length; // of bare frames
	atomic_bool stop;
	bool bare;
};

static uint64_t samples[KINDS][SIZES][ROUNDS];

static void loop_open(struct bench *b)
{
	struct rte_ring *ring = rte_ring_create("loop", RING, SOCKET_ID_ANY, 0);

	b->pool = rte_pktmbuf_pool_create("bare", 4095, 256, 0, FIXTURE_DATA_BYTES, SOCKET_ID_ANY);
	b->port.port_id = (uint16_t)rte_eth_from_rings("loop", &ring, 1, &ring, 1, 0);
	b->port.rx_pool = b->pool;
	b->port.config.ring_size = RING;
	fixture_device_start(&b->port);
}

static struct task *task_open(struct bench *b, const char *kind)
{
	struct config_task config = {.port_count = 1, .burst = BURST};
	struct port *port = &b->port;
	struct task *task = NULL;

	snprintf(config.name, sizeof(config.name), "%s", kind);
	task_ops_find(kind)->create(&config, &port, &task);
	return task;
}

static void traffic_start(struct bench *b, uint16_t frame_size)
{
	struct generator_load load = {.start_tsc = rte_rdtsc(),
	                              .duration_ns = UINT64_C(3600000000000),
	                              .frame_size_bytes = frame_size,
	                              .flat_out = true};

	b->length = frame_size - FRAME_FCS_BYTES;
	monitor_start(b->monitor, 0);
	generator_start(b->generator, &load);
}

static unsigned send_bare(struct bench *b)
{
	struct rte_mbuf *pkts[BURST];

	if (rte_pktmbuf_alloc_bulk(b->pool, pkts, BURST) != 0)
		return 0;
	for (unsigned i = 0; i < BURST; i++)
		pkts[i]->data_len = pkts[i]->pkt_len = b->length;
	return BURST - port_send_drop(&b->port, 0, pkts, BURST);
}

static unsigned receive_bare(struct bench *b)
{
	struct rte_mbuf *pkts[BURST];
	uint16_t n = port_receive(&b->port, 0, pkts, BURST);

	rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

static unsigned turn(struct bench *b, enum kind kind)
{
	switch (kind) {
	case SEND_BARE:
		return send_bare(b);
	case RECEIVE_BARE:
		return receive_bare(b);
	case GENERATE:
		return b->generator->ops->poll(b->generator, rte_rdtsc());
	default:
		return b->monitor->ops->poll(b->monitor, rte_rdtsc());
	}
}

static void sample(struct bench *b, enum kind kind, unsigned size, unsigned round)
{
	uint64_t begin = rte_rdtsc_precise();

	for (unsigned i = 0; i < CHUNK / BURST; i++)
		turn(b, kind);
	samples[kind][size][round] = rte_rdtsc_precise() - begin;
}

static int compare(const void *a, const void *b)
{
	return *(const uint64_t *)a < *(const uint64_t *)b ? -1 : *(const uint64_t *)a > *(const uint64_t *)b;
}

static double median(uint64_t *values, unsigned n)
{
	qsort(values, n, sizeof(*values), compare);
	return (double)values[n / 2];
}

static void table_print(const char *title, unsigned rounds, double packets)
{
	printf("%s\n%-16s", title, "cycles/packet");
	for (unsigned size = 0; size < SIZES; size++)
		printf("%9u B", sizes[size]);
	for (unsigned kind = 0; kind < KINDS; kind++) {
		if (samples[kind][0][0] == 0)
			continue; // not measured in this mode
		printf("\n%-16s", kind_names[kind]);
		for (unsigned size = 0; size < SIZES; size++)
			printf("%11.1f", median(samples[kind][size], rounds) / packets);
	}
	printf("\n");
}

static void run_single(struct bench *b)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned size = 0; size < SIZES; size++) {
			traffic_start(b, sizes[size]);
			for (unsigned kind = 0; kind < KINDS; kind++) // starting has cleared megabytes
				sample(b, kind, size, round);
			for (unsigned kind = 0; kind < KINDS; kind++)
				sample(b, kind, size, round);
		}
	table_print("one core", ROUNDS, CHUNK);
}

static void pin(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set) != 0)
		printf("cannot run on CPU %u; the numbers will be noisy\n", cpu);
}

static void *sender(void *arg)
{
	struct bench *b = arg;

	pin(1);
	rte_thread_register(); // an lcore id, and with it a cache of the pool
	while (!atomic_load_explicit(&b->stop, memory_order_relaxed))
		turn(b, b->bare ? SEND_BARE : GENERATE);
	rte_thread_unregister();
	return NULL;
}

// Busy polls only: an empty one waits for the sender.
static uint64_t receive_cycles(struct bench *b, enum kind kind)
{
	uint64_t cycles = 0, begin = rte_rdtsc();

	for (unsigned received = 0; received < CROSS_PACKETS;) {
		unsigned n = turn(b, kind);
		uint64_t end = rte_rdtsc();

		received += n;
		cycles += n ? end - begin : 0;
		begin = end;
	}
	return cycles;
}

static void sample_cross(struct bench *b, enum kind kind, unsigned size, unsigned round)
{
	pthread_t thread;

	b->bare = kind == RECEIVE_BARE;
	atomic_store(&b->stop, false);
	pthread_create(&thread, NULL, sender, b);
	samples[kind][size][round] = receive_cycles(b, kind);
	atomic_store(&b->stop, true);
	pthread_join(thread, NULL);
	while (receive_bare(b))
		;
}

static void run_cross(struct bench *b)
{
	pin(0);
	for (unsigned round = 0; round < CROSS_ROUNDS; round++)
		for (unsigned size = 0; size < SIZES; size++) {
			traffic_start(b, sizes[size]);
			sample_cross(b, RECEIVE_BARE, size, round);
			sample_cross(b, MONITOR, size, round);
		}
	table_print("two cores, receiving side", CROSS_ROUNDS, CROSS_PACKETS);
}

int main(int argc, char **argv)
{
	static struct bench b;

	if (fixture_eal_init("bench") != 0)
		return 1;
	loop_open(&b);
	b.generator = task_open(&b, "generator");
	b.monitor = task_open(&b, "monitor");
	if (argc > 1 && strcmp(argv[1], "cross") == 0)
		run_cross(&b);
	else
		run_single(&b);
	return 0;
}
