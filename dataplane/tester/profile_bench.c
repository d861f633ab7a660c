// SPDX-License-Identifier: BSD-3-Clause
// profile_bench: what the frames of a profile cost in TSC cycles a packet, beside plain ones. "generator" and
// "monitor" are the tasks on a port that is one ring (tester_bench); "draw, write, count" is the profile
// alone, into buffers that stay in the caches. Medians over rounds, the smallest of several; all take turns.
//
// Not a test: nothing is asserted. Writes a million addresses to a file in /tmp and removes it.
#include <rte_cycles.h>
#include <rte_eth_ring.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/fixture.h"
#include "tester/frame_run.h"
#include "tester/generator.h"
#include "tester/monitor.h"
#include "tester/profile.h"

enum { RING = 1024, BURST = 32, CHUNK = 256, ROUNDS = 300, REPEATS = 5, ADDRESSES = 1000000, BUFFER = 2048 };

#define FILE_PATH "/tmp/profile_bench_addresses"

static const struct {
	const char *name, *text;
} profiles[] = {
        {"plain, 64 B", NULL},
        {"profile of nothing, 64 B", "{}"},
        {"IMIX", "{\"sizes\": [[64, 7], [594, 4], [1518, 1]]}"},
        {"1 M flows uniform, 64 B", "{\"flows\": {\"count\": 1000000, \"draw\": \"uniform\"}}"},
        {"1 M flows Zipf, 64 B", "{\"flows\": {\"count\": 1000000, \"draw\": \"zipf\"}}"},
        {"1 M addresses of a range, 64 B", "{\"dst_ips\": {\"first\": \"10.0.0.0\", \"count\": 1000000}}"},
        {"1 M addresses of a file, 64 B", "{\"dst_ips_file\": \"" FILE_PATH "\"}"},
        {"IPv6 and TCP, 96 B", "{\"sizes\": [[96, 1]], \"ip\": 6, \"transport\": \"tcp\"}"},
        {"IMIX, flows, addresses, MACs",
         "{\"sizes\": [[64, 7], [594, 4], [1518, 1]], \"dst_mac_count\": 64, \"dst_ips_file\": \"" FILE_PATH
         "\", \"flows\": {\"count\": 1000000, \"draw\": \"uniform\"}}"},
};

static struct port loop;
static struct task *generator, *monitor;
static uint8_t buffers[CHUNK][BUFFER] __attribute__((aligned(64)));

static struct task *task_open(const char *kind)
{
	struct config_task config = {.name = "bench", .port_count = 1, .burst = BURST};
	struct port *port = &loop;
	struct task *task = NULL;

	if (task_create(task_ops_find(kind), &config, &port, &task) != 0)
		exit(1);
	return task;
}

static void open_all(void)
{
	struct rte_ring *ring = rte_ring_create("loop", RING, SOCKET_ID_ANY, 0);

	loop.rx_pool = rte_pktmbuf_pool_create("loop", 4095, 256, 0, FIXTURE_DATA_BYTES, SOCKET_ID_ANY);
	loop.port_id = (uint16_t)rte_eth_from_rings("loop", &ring, 1, &ring, 1, 0);
	loop.config.ring_size = RING;
	fixture_device_start(&loop);
	generator = task_open("generator");
	monitor = task_open("monitor");
}

static void addresses_write(void)
{
	FILE *file = fopen(FILE_PATH, "w");

	for (uint32_t i = 0; file && i < ADDRESSES; i++)
		fprintf(file, "10.%u.%u.%u\n", i >> 16, i >> 8 & 255, i & 255);
	if (!file || fclose(file) != 0)
		exit(1);
}

static int compare(const void *a, const void *b)
{
	return *(const uint64_t *)a < *(const uint64_t *)b ? -1 : *(const uint64_t *)a > *(const uint64_t *)b;
}

static double median(uint64_t *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare);
	return (double)values[ROUNDS / 2] / CHUNK;
}

static uint64_t poll_chunk(struct task *task)
{
	uint64_t begin = rte_rdtsc_precise();

	for (unsigned i = 0; i < CHUNK / BURST; i++)
		task->ops->poll(task, rte_rdtsc());
	return rte_rdtsc_precise() - begin;
}

static void tasks_measure(json_t *source, double *send, double *receive)
{
	struct generator_load load = {.start_tsc = rte_rdtsc(),
	                              .duration_ns = UINT64_C(3600000000000),
	                              .frame_size_bytes = FRAME_SIZE_MIN,
	                              .flat_out = true};
	uint64_t sent[ROUNDS], received[ROUNDS];
	char error[CONFIG_ERROR_MAX];

	monitor_start(monitor, 0, load.start_tsc);
	if (generator_prepare(generator, source, &load, "bench", error) != 0 ||
	    generator_start(generator, &load) != 0)
		exit(1);
	for (unsigned i = 0; i < ROUNDS; i++) {
		sent[i] = poll_chunk(generator);
		received[i] = poll_chunk(monitor);
	}
	*send = RTE_MIN(*send, median(sent));
	*receive = RTE_MIN(*receive, median(received));
}

static uint64_t profile_chunk(struct profile *p, uint64_t k)
{
	uint64_t begin = rte_rdtsc_precise();
	uint8_t *data[BURST];

	for (unsigned done = 0; done < CHUNK; done += BURST) {
		for (unsigned i = 0; i < BURST; i++)
			data[i] = buffers[done + i];
		profile_draw(p, k + done, BURST);
		profile_write(p, data, k + done, BURST);
		profile_count(p, k + done, BURST);
	}
	return rte_rdtsc_precise() - begin;
}

static double alone_measure(struct profile *p, const struct frame_flow *flow)
{
	uint64_t cycles[ROUNDS];

	profile_begin(p, flow);
	for (unsigned i = 0; i < ROUNDS; i++)
		cycles[i] = profile_chunk(p, (uint64_t)i * CHUNK);
	return median(cycles);
}

int main(void)
{
	const struct frame_flow flow = {.frame_size_bytes = FRAME_SIZE_MIN};
	char error[CONFIG_ERROR_MAX];

	if (fixture_eal_init("bench") != 0)
		return 1;
	open_all();
	addresses_write();
	printf("%-32s%12s%12s%22s\n", "cycles/packet", "generator", "monitor", "draw, write, count");
	for (size_t i = 0; i < RTE_DIM(profiles); i++) {
		json_t *source = profiles[i].text ? json_loads(profiles[i].text, 0, NULL) : NULL;
		struct profile *p = source ? profile_make(source, &flow, BUFFER, "bench", error) : NULL;
		double send = 1e9, receive = 1e9, alone = p ? 1e9 : 0;

		for (unsigned repeat = 0; repeat < REPEATS; repeat++) {
			tasks_measure(source, &send, &receive);
			alone = p ? RTE_MIN(alone, alone_measure(p, &flow)) : 0;
		}
		printf("%-32s%12.1f%12.1f%22.1f\n", profiles[i].name, send, receive, alone);
		profile_free(p);
		json_decref(source);
	}
	unlink(FILE_PATH);
	return 0;
}
