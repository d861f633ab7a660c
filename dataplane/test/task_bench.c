// SPDX-License-Identifier: BSD-3-Clause
// task_bench: what a poll of a task costs for a frame, between two ports of any of our kinds: of one
// that is forwarded, and, with --dropped, of one for which the next port's ring has no room.
//
// One thread sends, polls and receives in turn, so no line ever travels: for instructions, under callgrind (bench/drops.py):
//
//     valgrind --tool=callgrind --toggle-collect=poll_measured build/dataplane/task_bench --ports memif --tasks patch
//
// --ports memif,vhost: frames come from the first and go to the second, as in p2v.
//
// With --cross the tester's ends are another thread's, on another core, which writes and reads the first line of each frame:
// TSC cycles a frame of the polls that found some, the median of some rounds. --json: lines as ring_bench has them, so
// bench/ab.py compares two builds: bench/ab.py OLD NEW -- --cross --ports memif --sizes 64,1024
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "port/port.h"
#include "test/fixture.h"
#include "test/pin.h"

enum {
	FCS_BYTES = 4,
	FRAME_MAX = 2048,
	WARM = 200,
	MBUFS = 8191,
	CACHE = 256,
	SIZES_MAX = 8,
	TASKS_MAX = 16,
	ROUNDS_MAX = 100
};

static struct {
	const char *ports, *tasks[TASKS_MAX];
	unsigned task_count, sizes[SIZES_MAX], size_count, burst, bursts, rounds;
	bool dropped, cross, json;
} options = {.ports = "memif",
             .tasks = {"patch"},
             .task_count = 1,
             .sizes = {64},
             .size_count = 1,
             .burst = 32,
             .bursts = 1000,
             .rounds = 3};

// Switch and tester at a wire: the end that listens is opened first.
static const struct wiring {
	const char *name, *switch_kind, *switch_backend, *tester_kind;
	bool tester_listens;
} wirings[] = {
        {"memif", "memif-client", "planed", "memif-server", true},
        {"virtio", "virtio-user", "planed", "vhost-user", true},
        {"vhost", "vhost-user", "planed", "virtio-user", false},
};

static struct port ends[2], hops[2]; // ends: the tester's
static struct rte_mempool *pool;
static char directory[] = "/tmp/task_bench.XXXXXX";

static const struct wiring *wires[2]; // where frames come from, and where they go

static const struct wiring *wiring_named(const char *name, size_t length)
{
	for (unsigned i = 0; i < RTE_DIM(wirings); i++)
		if (strlen(wirings[i].name) == length && memcmp(wirings[i].name, name, length) == 0)
			return &wirings[i];
	fprintf(stderr, "%.*s: no such ports\n", (int)length, name);
	exit(2);
}

// NAME for both, or NAME,NAME.
static void find_wires(const char *names)
{
	size_t first = strcspn(names, ",");
	const char *second = names[first] ? names + first + 1 : names;

	wires[0] = wiring_named(names, first);
	wires[1] = wiring_named(second, strlen(second));
}

// What planed makes of a document: the four ports, and the task between the two of the switch.
static struct config *document(const char *kind, unsigned burst)
{
	json_t *ports = json_array(), *object; // stays: the task's configuration is in it
	char error[CONFIG_ERROR_MAX] = "";
	struct config *config;

	for (unsigned i = 0; i < 4; i++) {
		const struct wiring *w = wires[i % 2];
		bool tester = i < 2;
		json_t *port = json_pack("{s:o, s:s, s:o, s:i}", "name", json_sprintf("p%u", i), "kind",
		                         tester ? w->tester_kind : w->switch_kind, "path",
		                         json_sprintf("%s/%u", directory, i % 2), "ring_size", 256);

		if (!tester)
			json_object_set_new(port, "backend", json_string(w->switch_backend));
		json_array_append_new(ports, port);
	}
	object = json_pack("{s:i, s:s, s:o, s:[{s:s, s:s, s:i, s:[s, s]}], s:[{s:s, s:i, s:[s]}]}", "version",
	                   CONFIG_VERSION, "name", "task_bench", "ports", ports, "tasks", "name", "task",
	                   "kind", kind, "burst", (int)burst, "ports", "p2", "p3", "workers", "name", "w",
	                   "cpu", 0, "tasks", "task");
	config = config_decode(object, error);
	if (config == NULL) {
		fprintf(stderr, "%s\n", error);
		exit(2);
	}
	return config;
}

static void open_all(const struct config *config)
{
	for (unsigned wire = 0; wire < 2; wire++)
		for (unsigned i = 0; i < 2; i++) {
			bool tester = wires[wire]->tester_listens == (i == 0);
			struct port *port = tester ? &ends[wire] : &hops[wire];

			if (port_open(port, &config->ports[(tester ? 0 : 2) + wire], pool))
				exit(1);
		}
	for (unsigned i = 0; i < 2; i++)
		while (!port_link_up(&ends[i]) || !port_link_up(&hops[i]))
			usleep(1000);
}

// Those that connect before those that listen.
static void close_all(void)
{
	for (unsigned i = 0; i < 2; i++) {
		port_close(wires[i]->tester_listens ? &hops[i] : &ends[i]);
		port_close(wires[i]->tester_listens ? &ends[i] : &hops[i]);
	}
	rmdir(directory);
}

// A UDP frame as the tester's first stream sends them: the functions forward it with their default settings.
static void make_frame(uint8_t *data, uint32_t length)
{
	struct rte_ipv4_hdr ip = {.version_ihl = RTE_IPV4_VHL_DEF,
	                          .total_length = rte_cpu_to_be_16((uint16_t)(length - RTE_ETHER_HDR_LEN)),
	                          .time_to_live = 64,
	                          .next_proto_id = IPPROTO_UDP,
	                          .src_addr = RTE_BE32(0xc6120001),
	                          .dst_addr = RTE_BE32(0xc6130001)};
	const struct rte_udp_hdr udp = {RTE_BE16(49152), RTE_BE16(28770),
	                                rte_cpu_to_be_16((uint16_t)(length - RTE_ETHER_HDR_LEN - sizeof(ip))),
	                                0};

	memcpy(data, "\2\0\0\0\0\2\2\0\0\0\0\1\x8", 14);
	ip.hdr_checksum = rte_ipv4_cksum(&ip);
	memcpy(data + RTE_ETHER_HDR_LEN, &ip, sizeof(ip));
	memcpy(data + RTE_ETHER_HDR_LEN + sizeof(ip), &udp, sizeof(udp));
}

static void fill(uint8_t bytes[BURST_FRAMES_MAX][FRAME_MAX], uint32_t length)
{
	for (unsigned i = 0; i < options.burst; i++)
		make_frame(bytes[i], length);
}

static void offer(uint8_t bytes[BURST_FRAMES_MAX][FRAME_MAX], uint32_t length)
{
	struct piece pieces[BURST_FRAMES_MAX];
	struct frame frames[BURST_FRAMES_MAX];

	for (unsigned i = 0; i < options.burst; i++) {
		pieces[i] = (struct piece){bytes[i], length};
		frames[i] = (struct frame){{&pieces[i], 0}, length, 0};
	}
	port_deliver(&ends[0], 0, frames, options.burst);
}

static unsigned take(void)
{
	struct view view;
	unsigned came = port_peek(&ends[1], 0, &view, options.burst);

	for (unsigned i = 0; i < came; i++)
		__asm__ volatile("" ::"r"(*view_span(&view, i).data));
	if (came)
		port_release(&ends[1], 0, &view);
	return came;
}

static unsigned pass_bare(void)
{
	struct view view;
	unsigned n = port_peek(&hops[0], 0, &view, options.burst);

	if (n) {
		port_pass(&hops[0], &hops[1], 0, &view);
		port_release(&hops[0], 0, &view);
	}
	return n;
}

static inline unsigned poll_once(struct task *task)
{
	return task ? task->ops->poll(task, rte_rdtsc()) : pass_bare();
}

// Polls until a burst was handled: a side may rest.
static inline __attribute__((always_inline)) unsigned poll_until(struct task *task)
{
	unsigned n = 0;

	for (unsigned i = 0; n == 0 && i <= UINT8_MAX; i++)
		n = poll_once(task);
	return n;
}

// What callgrind counts; and where it writes down what it has counted (--dump-after).
static __attribute__((noinline)) void case_ends(void)
{
	__asm__ volatile("");
}

static __attribute__((noinline)) unsigned poll_measured(struct task *task)
{
	return poll_until(task);
}

// Not taken, frames fill the ring behind the task in the first rounds: those are not measured.
static double run_alone(struct task *task, uint32_t length)
{
	static uint8_t bytes[BURST_FRAMES_MAX][FRAME_MAX];
	unsigned came = 0, handled = 0;
	uint64_t cycles = 0, begin;

	fill(bytes, length);
	for (unsigned i = 0; i < WARM; i++) {
		offer(bytes, length);
		poll_until(task);
		if (!options.dropped)
			take();
	}
	for (unsigned i = 0; i < options.bursts; i++) {
		offer(bytes, length);
		begin = rte_rdtsc();
		handled += poll_measured(task);
		cycles += rte_rdtsc() - begin;
		if (!options.dropped)
			came += take();
	}
	if (!options.json)
		printf("%u handled, %u received\n", handled, came);
	return (double)cycles / handled;
}

// --- Two cores -------------------------------------------------------------------------------------------

static struct {
	atomic_bool ends;
	uint32_t length;
} crossing;

static void *test_on_another_core(void *none)
{
	static uint8_t bytes[BURST_FRAMES_MAX][FRAME_MAX];

	pin(0);
	fill(bytes, crossing.length);
	while (!atomic_load_explicit(&crossing.ends, memory_order_relaxed)) {
		offer(bytes, crossing.length);
		if (!options.dropped)
			take();
	}
	return none;
}

static double run_across(struct task *task, uint32_t length)
{
	uint64_t cycles = 0, handled = 0;
	pthread_t thread;

	crossing.length = length;
	atomic_store(&crossing.ends, false);
	pin(1);
	if (pthread_create(&thread, NULL, test_on_another_core, NULL))
		exit(1);
	for (unsigned i = 0; i < WARM; i++)
		poll_until(task);
	while (handled < (uint64_t)options.bursts * options.burst) {
		uint64_t begin = rte_rdtsc();
		unsigned n = poll_once(task);

		if (n) {
			cycles += rte_rdtsc() - begin;
			handled += n;
		}
	}
	atomic_store(&crossing.ends, true);
	pthread_join(thread, NULL);
	return (double)cycles / (double)handled;
}

// --- Cases -----------------------------------------------------------------------------------------------

static int ascending(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static void run(struct task *task, const char *name, unsigned size)
{
	double found[ROUNDS_MAX], median;
	unsigned rounds = options.cross ? options.rounds : 1;

	for (unsigned i = 0; i < rounds; i++)
		found[i] = (options.cross ? run_across : run_alone)(task, size - FCS_BYTES);
	case_ends();
	while (poll_once(task) + take()) // nothing is left for the next case
		;
	qsort(found, rounds, sizeof(found[0]), ascending);
	median = found[rounds / 2];
	if (options.json)
		printf("{\"kind\": \"%s\", \"directions\": 1, \"frame_size_bytes\": %u, \"burst\": %u, "
		       "\"cycles_per_packet\": %.2f}\n",
		       options.ports, size, options.burst, median);
	else
		printf("%s %s %u B: %.1f cycles a frame\n", options.ports, name, size, median);
}

static unsigned number(const char *text, int least, int most)
{
	int given = atoi(text);

	return (unsigned)(given < least ? least : RTE_MIN(given, most));
}

static void parse_tasks(char *text)
{
	options.task_count = 0;
	for (const char *task; (task = strsep(&text, ",")) && options.task_count < TASKS_MAX;)
		options.tasks[options.task_count++] = task;
}

static void parse_sizes(char *text)
{
	options.size_count = 0;
	for (char *size; (size = strsep(&text, ",")) && options.size_count < SIZES_MAX;)
		options.sizes[options.size_count++] = number(size, 64, FRAME_MAX);
}

static bool parse(int argc, char **argv)
{
	static const struct option known[] = {{"ports", 1, NULL, 'p'},   {"tasks", 1, NULL, 't'},
	                                      {"sizes", 1, NULL, 's'},   {"burst", 1, NULL, 'b'},
	                                      {"bursts", 1, NULL, 'n'},  {"rounds", 1, NULL, 'r'},
	                                      {"dropped", 0, NULL, 'd'}, {"cross", 0, NULL, 'c'},
	                                      {"json", 0, NULL, 'j'},    {0}};

	for (int key; (key = getopt_long(argc, argv, "", known, NULL)) != -1;)
		switch (key) {
		case 'p':
			options.ports = optarg;
			break;
		case 't':
			parse_tasks(optarg);
			break;
		case 's':
			parse_sizes(optarg);
			break;
		case 'b':
			options.burst = number(optarg, 1, BURST_FRAMES_MAX);
			break;
		case 'n':
			options.bursts = number(optarg, 1, INT32_MAX);
			break;
		case 'r':
			options.rounds = number(optarg, 1, ROUNDS_MAX);
			break;
		case 'd':
			options.dropped = true;
			break;
		case 'c':
			options.cross = true;
			break;
		case 'j':
			options.json = true;
			break;
		default:
			return false;
		}
	return optind == argc;
}

static bool run_task(const char *name)
{
	bool bare = strcmp(name, "none") == 0;
	struct config *config = document(bare ? "patch" : name, options.burst);
	struct port *between[] = {&hops[0], &hops[1]};
	struct task *task = NULL;

	if (!bare && task_create(config->tasks[0].ops, &config->tasks[0], between, &task))
		return false;
	for (unsigned i = 0; i < options.size_count; i++)
		run(task, name, options.sizes[i]);
	if (task)
		task_destroy(task);
	config_free(config);
	return true;
}

int main(int argc, char **argv)
{
	struct config *config;
	bool good = true;

	if (!parse(argc, argv))
		return 2;
	find_wires(options.ports);
	if (mkdtemp(directory) == NULL || fixture_eal_init("task_bench"))
		return 1;
	pool = rte_pktmbuf_pool_create("task_bench", MBUFS, CACHE, 0, FIXTURE_DATA_BYTES, SOCKET_ID_ANY);
	if (pool == NULL)
		return 1;
	config = document("patch", options.burst);
	open_all(config);
	config_free(config);
	for (unsigned i = 0; good && i < options.task_count; i++)
		good = run_task(options.tasks[i]);
	close_all();
	return good ? 0 : 1;
}
