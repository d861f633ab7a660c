// SPDX-License-Identifier: BSD-3-Clause
// tester_polls [FRAME_SIZE]: polls of generator and monitor at each end of our wires, for callgrind to count what a frame
// costs (bench/tester.py). A wire carries the frames from the generator at its one end to the monitor at the other, and then
// the other way; all polls are of one thread, so no clock and no line that travels has a part in it.
//
// For each end and each of the two tasks it runs polls in poll_measured(), prints how many frames they moved, and calls
// case_ends(). Both are exported: callgrind finds them in a program without symbols, too. The same in a sampled trial, where
// only the monitor differs.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rte_cycles.h>

#include "base/isa.h"
#include "port/port.h"
#include "task/task.h"
#include "test/fixture.h"

enum { BURST = 64, WARM = 48, POLLS = 160, MBUFS = 2047, CACHE = 256 };

// The end that listens, and the one that connects.
static const struct {
	const char *kinds[2], *backend;
} wires[] = {{{"vhost-user", "virtio-user"}, "planed"}, {{"memif-server", "memif-client"}, "planed"}};

static struct port ends[2];

unsigned poll_measured(struct task *task);
void case_ends(void);

__attribute__((noinline)) unsigned poll_measured(struct task *task)
{
	return task->ops->poll(task, rte_rdtsc());
}

__attribute__((noinline)) void case_ends(void)
{
	__asm__ volatile("");
}

static unsigned poll_once(struct task *task)
{
	return task->ops->poll(task, rte_rdtsc());
}

static struct task *task_make(const char *kind, struct port *port)
{
	struct config_task config = {.port_count = 1, .burst = BURST};
	struct task *task;

	snprintf(config.name, sizeof(config.name), "%s", kind);
	if (task_create(task_ops_find(kind), &config, &port, &task))
		exit(1);
	return task;
}

static void ends_open(unsigned wire, struct rte_mempool *pool)
{
	struct config_port config = {.ring_size = 256, .queues = 1, .line_rate_bps = 10000000000};

	snprintf(config.path, sizeof(config.path), "/tmp/tester_polls.%d.%u", getpid(), wire);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(config.name, sizeof(config.name), "%s", wires[wire].kinds[i]);
		config.ops = port_ops_find(wires[wire].kinds[i], wires[wire].backend);
		if (port_open(&ends[i], &config, pool))
			exit(1);
	}
	while (!port_link_up(&ends[0]) || !port_link_up(&ends[1]))
		usleep(1000);
}

static void load_begin(struct task *generator, struct task *monitor, unsigned frame_size, bool sampled)
{
	json_t *load = json_pack("{s:s, s:i, s:b}", "task", "generator", "frame_size_bytes", (int)frame_size,
	                         "flat_out", 1);
	const struct trial trial = {.epoch = 1,
	                            .start_tsc = rte_rdtsc(),
	                            .duration_ns = UINT64_C(3600000000000),
	                            .sampled = sampled};
	char error[CONFIG_ERROR_MAX] = "";

	if (generator->ops->load(generator, load, "load", error) || monitor->ops->begin(monitor, &trial) ||
	    generator->ops->begin(generator, &trial)) {
		fprintf(stderr, "%s\n", error);
		exit(1);
	}
	json_decref(load);
}

// Frames that were lost or damaged would be counted by another path than those that are right.
static void all_came(const struct task *generator, const struct task *monitor)
{
	json_t *sent = fixture_report(generator), *came = fixture_report(monitor);

	if (fixture_number(sent, "generator.offered_packets") !=
	    fixture_number(came, "monitor.streams.0.forwarded_packets")) {
		fprintf(stderr, "tester_polls: not all frames have come\n");
		exit(1);
	}
	json_decref(sent);
	json_decref(came);
}

static void measure(struct port *from, struct port *to, unsigned frame_size, bool sampled)
{
	struct task *generator = task_make("generator", from), *monitor = task_make("monitor", to);
	unsigned frames = 0;

	load_begin(generator, monitor, frame_size, sampled);
	for (unsigned i = 0; i < WARM; i++) {
		poll_once(generator);
		poll_once(monitor);
	}
	for (unsigned i = 0; i < POLLS && !sampled; i++) {
		frames += poll_measured(generator);
		poll_once(monitor);
	}
	if (!sampled) {
		printf("%s generator %u\n", from->ops->kind, frames);
		case_ends();
	}
	frames = 0;
	for (unsigned i = 0; i < POLLS; i++) {
		poll_once(generator);
		frames += poll_measured(monitor);
	}
	printf("%s %s %u\n", to->ops->kind, sampled ? "sampled" : "monitor", frames);
	case_ends();
	all_came(generator, monitor);
	task_destroy(generator);
	task_destroy(monitor);
}

int main(int argc, char **argv)
{
	unsigned frame_size = argc > 1 ? (unsigned)atoi(argv[1]) : 64;
	struct rte_mempool *pool;

	if (fixture_eal_init("tester_polls"))
		return 1;
	pool = rte_pktmbuf_pool_create("tester_polls", MBUFS, CACHE, 0, FIXTURE_DATA_BYTES, SOCKET_ID_ANY);
	if (pool == NULL)
		return 1;
	printf("isa %s\n", isa_text(isa_current()));
	for (unsigned wire = 0; wire < RTE_DIM(wires); wire++) {
		ends_open(wire, pool);
		for (unsigned sampled = 0; sampled < 2; sampled++) {
			measure(&ends[0], &ends[1], frame_size, sampled);
			measure(&ends[1], &ends[0], frame_size, sampled);
		}
		port_close(&ends[1]);
		port_close(&ends[0]);
	}
	return 0;
}
