// SPDX-License-Identifier: BSD-3-Clause
// memif_bench: what a hop between two memifs costs a switch, their client, with our own data path and with DPDK's. One thread
// sends, hops and receives in turn, so no line ever travels: for instructions, under callgrind:
//
//     valgrind --tool=callgrind --toggle-collect=hop_once build/dataplane/memif_bench own 64 32
//
// Arguments: backend, frame size with FCS, burst. The cycles that it prints are those of warm caches of one core.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "port/port.h"
#include "test/fixture.h"

enum { FCS_BYTES = 4, RING = 256, ROUNDS = 2000, WARM = 200, MBUFS = 4095, CACHE = 256 };

static struct port ends[2], hops[2]; // ends: the servers, which send and receive
static struct rte_mempool *pool;
static char directory[] = "/tmp/memif_bench.XXXXXX";

static void open_one(struct port *port, const char *kind, const char *backend, unsigned number)
{
	struct config_port config = {.ring_size = RING, .queues = 1};

	snprintf(config.name, sizeof(config.name), "%.6s%u", kind + strlen("memif-"), number);
	snprintf(config.path, sizeof(config.path), "%s/%u", directory, number);
	config.ops = port_ops_find(kind, backend);
	if (config.ops == NULL || port_open(port, &config, pool))
		exit(1);
}

// What port_hop_of() would do for a patch: a function of its own, so that it can be counted alone.
static __attribute__((noinline)) unsigned hop_once(unsigned burst)
{
	struct view view;
	unsigned passed = 0;

	if (port_peek(&hops[0], 0, &view, burst)) {
		passed = port_pass(&hops[0], &hops[1], 0, &view);
		port_release(&hops[0], 0, &view);
	}
	return passed;
}

static void offer(uint32_t length, unsigned burst)
{
	static uint8_t bytes[RING_BATCH_MAX][2048];
	struct ring_piece pieces[RING_BATCH_MAX];
	struct frame frames[RING_BATCH_MAX];

	for (unsigned i = 0; i < burst; i++) {
		pieces[i] = (struct ring_piece){bytes[i], length};
		frames[i] = (struct frame){{&pieces[i], 0}, length, 0};
	}
	port_deliver(&ends[0], 0, frames, burst);
}

static unsigned take(unsigned burst)
{
	struct view view;
	unsigned came = port_peek(&ends[1], 0, &view, burst);

	if (came)
		port_release(&ends[1], 0, &view);
	return came;
}

static void open_all(const char *backend)
{
	for (unsigned i = 0; i < 2; i++)
		open_one(&ends[i], "memif-server", "own", i);
	for (unsigned i = 0; i < 2; i++)
		open_one(&hops[i], "memif-client", backend, i);
	for (unsigned i = 0; i < 2; i++)
		while (!port_link_up(&ends[i]) || !port_link_up(&hops[i]))
			usleep(1000);
}

static void close_all(void)
{
	for (unsigned i = 0; i < 2; i++) {
		port_close(&hops[i]);
		port_close(&ends[i]);
	}
	rmdir(directory);
}

static void run(const char *backend, uint32_t length, unsigned burst)
{
	uint64_t cycles = 0, hopped = 0, came = 0;

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t begin;
		unsigned n;

		offer(length, burst);
		begin = rte_rdtsc();
		n = hop_once(burst);
		if (round >= WARM) {
			cycles += rte_rdtsc() - begin;
			hopped += n;
		}
		came += take(burst);
	}
	printf("%s %u B burst %u: %.1f cycles a packet, %lu of %u hopped after the first %u rounds, %lu received\n",
	       backend, length + FCS_BYTES, burst, (double)cycles / (double)hopped, hopped,
	       (ROUNDS - WARM) * burst, WARM, came);
}

int main(int argc, char **argv)
{
	const char *backend = argc > 1 ? argv[1] : "own";
	uint32_t length = (argc > 2 ? (uint32_t)atoi(argv[2]) : 64) - FCS_BYTES;
	unsigned burst = argc > 3 ? (unsigned)atoi(argv[3]) : 32;

	if (mkdtemp(directory) == NULL || fixture_eal_init("memif_bench"))
		return 1;
	pool = rte_pktmbuf_pool_create("memif_bench", MBUFS, CACHE, 0, FIXTURE_DATA_BYTES, SOCKET_ID_ANY);
	if (pool == NULL)
		return 1;
	open_all(backend);
	run(backend, length, burst);
	close_all();
	return 0;
}
