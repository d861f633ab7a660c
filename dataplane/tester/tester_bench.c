// SPDX-License-Identifier: BSD-3-Clause
// tester_bench [--isa NAME] [cross]: what generator and monitor cost in TSC cycles a packet, in each
// instruction set of this CPU or in one. With mbufs a port that is one ring carries the frames from the one
// to the other, so nothing is copied; in place the port is a guest in plain memory, whose driver passes on
// what it receives (tester_bench_guest.c). Beside them bare loops through the same ports: the difference is
// the tester's own. All take turns; medians over rounds. "cross": sender and receiver on two cores, with
// mbufs, so that the frames come from another core's cache.
//
// Not a test: nothing is asserted. Close other load, and mind that the clock counts TSC ticks, not core
// cycles.
#include <pthread.h>
#include <rte_eth_ring.h>
#include <rte_lcore.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tester/monitor.h"
#include "test/pin.h"
#include "tester/tester_bench.h"

enum { RING = 1024, ROUNDS = 1000, CROSS_PACKETS = 400000, CROSS_ROUNDS = 15, ROWS_MAX = 32 };

static const uint16_t sizes[] = {64, 256, 1024};
enum { SIZES = RTE_DIM(sizes) };

struct row {
	const struct bench_kind *kind;
	struct bench *bench;
	enum isa isa;
	uint64_t samples[SIZES][ROUNDS];
};

static struct row rows[ROWS_MAX];
static unsigned row_count;
static atomic_bool stop;

// --- Mbufs -----------------------------------------------------------------------------------------------

static unsigned send_bare(struct bench *b)
{
	struct rte_mbuf *pkts[BENCH_BURST];
	unsigned sent;

	if (rte_pktmbuf_alloc_bulk(b->port.rx_pool, pkts, BENCH_BURST) != 0)
		return 0;
	for (unsigned i = 0; i < BENCH_BURST; i++)
		pkts[i]->data_len = pkts[i]->pkt_len = b->length;
	sent = rte_eth_tx_burst(b->port.port_id, 0, pkts, BENCH_BURST);
	rte_pktmbuf_free_bulk(&pkts[sent], BENCH_BURST - sent);
	return sent;
}

static unsigned receive_bare(struct bench *b)
{
	struct rte_mbuf *pkts[BENCH_BURST];
	uint16_t n = rte_eth_rx_burst(b->port.port_id, 0, pkts, BENCH_BURST);

	rte_pktmbuf_free_bulk(pkts, n);
	return n;
}

unsigned bench_generate(struct bench *b)
{
	return b->generator->ops->poll(b->generator, rte_rdtsc());
}

unsigned bench_monitor(struct bench *b)
{
	return b->monitor->ops->poll(b->monitor, rte_rdtsc());
}

enum { SEND_BARE, RECEIVE_BARE, GENERATE, MONITOR, KINDS };

static const struct bench_kind kinds[KINDS] = {
        [SEND_BARE] = {"mbufs: allocate, send", send_bare, NULL, true},
        [RECEIVE_BARE] = {"mbufs: receive, free", receive_bare, NULL, true},
        [GENERATE] = {"mbufs: generator", bench_generate, NULL, false},
        [MONITOR] = {"mbufs: monitor", bench_monitor, NULL, false},
};

static void loop_open(struct bench *b, enum isa isa)
{
	char name[RTE_RING_NAMESIZE];
	struct rte_ring *ring;

	snprintf(name, sizeof(name), "loop-%s", isa_text(isa));
	ring = rte_ring_create(name, RING, SOCKET_ID_ANY, 0);
	b->port.rx_pool = rte_pktmbuf_pool_create(name, 4095, 256, 0, FIXTURE_DATA_BYTES, SOCKET_ID_ANY);
	b->port.port_id = (uint16_t)rte_eth_from_rings(name, &ring, 1, &ring, 1, 0);
	b->port.config.ring_size = RING;
	fixture_device_start(&b->port);
}

// --- Rounds ----------------------------------------------------------------------------------------------

static struct task *task_open(struct bench *b, const char *kind)
{
	struct config_task config = {.port_count = 1, .burst = BENCH_BURST};
	struct port *port = &b->port;
	struct task *task = NULL;

	snprintf(config.name, sizeof(config.name), "%s", kind);
	if (task_create(task_ops_find(kind), &config, &port, &task) != 0)
		exit(1);
	return task;
}

static void rows_add(struct bench *b, const struct bench_kind *from, unsigned n, enum isa isa, bool first)
{
	b->generator = task_open(b, "generator");
	b->monitor = task_open(b, "monitor");
	for (unsigned i = 0; i < n; i++)
		if (first || !from[i].once)
			rows[row_count++] = (struct row){.kind = &from[i], .bench = b, .isa = isa};
}

static void traffic_start(struct bench *b, uint16_t frame_size)
{
	struct generator_load load = {.start_tsc = rte_rdtsc(),
	                              .duration_ns = UINT64_C(3600000000000),
	                              .frame_size_bytes = frame_size,
	                              .flat_out = true};

	b->length = frame_size - FRAME_FCS_BYTES;
	monitor_start(b->monitor, 0, load.start_tsc);
	generator_start(b->generator, &load);
}

static void sample(struct row *row, unsigned size, unsigned round)
{
	uint64_t begin = rte_rdtsc_precise();

	for (unsigned i = 0; i < BENCH_CHUNK / BENCH_BURST; i++)
		row->kind->turn(row->bench);
	row->samples[size][round] = rte_rdtsc_precise() - begin;
	if (row->kind->after)
		row->kind->after(row->bench);
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
	printf("%s\n%-26s%-8s", title, "cycles/packet", "isa");
	for (unsigned size = 0; size < SIZES; size++)
		printf("%9u B", sizes[size]);
	for (unsigned i = 0; i < row_count; i++) {
		if (rows[i].samples[0][0] == 0)
			continue; // not measured in this mode
		printf("\n%-26s%-8s", rows[i].kind->name, rows[i].kind->once ? "" : isa_text(rows[i].isa));
		for (unsigned size = 0; size < SIZES; size++)
			printf("%11.1f", median(rows[i].samples[size], rounds) / packets);
	}
	printf("\n");
}

// The rows of one bench, which follow one another: what one sends, the next receives. The second time counts:
// starting has cleared megabytes. Returns the first row of the next bench.
static unsigned sample_bench(unsigned first, unsigned size, unsigned round)
{
	unsigned end = first;

	traffic_start(rows[first].bench, sizes[size]);
	while (end < row_count && rows[end].bench == rows[first].bench)
		sample(&rows[end++], size, round);
	for (unsigned i = first; i < end; i++)
		sample(&rows[i], size, round);
	return end;
}

static void run_single(void)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned size = 0; size < SIZES; size++)
			for (unsigned i = 0; i < row_count;)
				i = sample_bench(i, size, round);
	table_print("one core", ROUNDS, BENCH_CHUNK);
}

// --- Two cores -------------------------------------------------------------------------------------------

static void *sender(void *arg)
{
	struct row *receiver = arg;
	unsigned (*turn)(struct bench * b) = receiver->kind == &kinds[MONITOR] ? bench_generate : send_bare;

	pin(1);
	rte_thread_register(); // an lcore id, and with it a cache of the pool
	while (!atomic_load_explicit(&stop, memory_order_relaxed))
		turn(receiver->bench);
	rte_thread_unregister();
	return NULL;
}

// Busy polls only: an empty one waits for the sender.
static uint64_t receive_cycles(struct row *row)
{
	uint64_t cycles = 0, begin = rte_rdtsc();

	for (unsigned received = 0; received < CROSS_PACKETS;) {
		unsigned n = row->kind->turn(row->bench);
		uint64_t end = rte_rdtsc();

		received += n;
		cycles += n ? end - begin : 0;
		begin = end;
	}
	return cycles;
}

static void sample_cross(struct row *row, unsigned size, unsigned round)
{
	pthread_t thread;

	atomic_store(&stop, false);
	pthread_create(&thread, NULL, sender, row);
	row->samples[size][round] = receive_cycles(row);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	while (receive_bare(row->bench))
		;
}

static void run_cross(void)
{
	pin(0);
	for (unsigned round = 0; round < CROSS_ROUNDS; round++)
		for (unsigned size = 0; size < SIZES; size++)
			for (unsigned i = 0; i < row_count; i++)
				if (rows[i].kind == &kinds[MONITOR] || rows[i].kind == &kinds[RECEIVE_BARE]) {
					traffic_start(rows[i].bench, sizes[size]);
					sample_cross(&rows[i], size, round);
				}
	table_print("two cores, receiving side", CROSS_ROUNDS, CROSS_PACKETS);
}

static void open_all(const char *only)
{
	static struct bench benches[2 * ISA_COUNT];
	struct bench *b = benches;

	for (enum isa isa = 0; isa < ISA_COUNT; isa++) {
		bool first = b == benches;

		if ((only && strcmp(only, isa_text(isa)) != 0) || isa_force(isa_text(isa)) != 0)
			continue;
		loop_open(b, isa);
		rows_add(b++, kinds, KINDS, isa, first);
		bench_guest_open(b, rows[0].bench->port.rx_pool);
		rows_add(b++, bench_guest_kinds, bench_guest_kind_count, isa, first);
	}
}

int main(int argc, char **argv)
{
	const char *only = argc > 2 && strcmp(argv[1], "--isa") == 0 ? argv[2] : NULL;

	if (fixture_eal_init("bench") != 0)
		return 1;
	open_all(only);
	if (row_count == 0) {
		fprintf(stderr, "--isa %s: there is none, or this CPU has not got it\n", only);
		return 2;
	}
	if (strcmp(argv[argc - 1], "cross") == 0)
		run_cross();
	else
		run_single();
	return 0;
}
