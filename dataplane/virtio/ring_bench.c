// SPDX-License-Identifier: BSD-3-Clause
// ring_bench: what a cross-connect between two guests costs, in TSC cycles a packet of the polls that moved something.
// One thread plays the drivers of both guests (test/lean_driver.h) on one core, the other hops on the other;
// or both in turn in one thread (--single): instructions on warm caches, no line ever travels. Cases take
// turns within each round; printed are medians over rounds. bench/ab.py compares two builds.
//
// A frame's 4 bytes of FCS are never in memory: "64" copies 60 bytes. Not covered: ports, gates, messages;
// but the look at whether the guests want to be called is in it, as a cross-connect of vhost ports has it.
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <rte_cycles.h>

#include "virtio/device_frames.h"
#include "base/isa.h"
#include "test/lean_driver.h"
#include "test/pin.h"

enum { FCS_BYTES = 4, RING_SIZE = 256, VALUES_MAX = 8, CASES_MAX = 96, ROUNDS_MAX = 1000 };

#define GIVE_UP_CYCLES UINT64_C(2000000000)

struct values {
	unsigned count, at[VALUES_MAX];
};

static struct options {
	struct values sizes, bursts, directions, kinds; // kinds: 0 split, 1 packed
	unsigned rounds, packets, cpus[2];
	enum lean_touch touch;
	bool single, json, rewrite;
} options = {
        .sizes = {4, {64, 256, 1024, 1518}},
        .bursts = {3, {8, 32, 64}},
        .directions = {2, {1, 2}},
        .kinds = {2, {0, 1}},
        .rounds = 15,
        .packets = 30000,
        .cpus = {0, 1},
        .touch = LEAN_HEAD,
};

struct bench_case {
	unsigned size, burst, directions, kind;
	double cycles[ROUNDS_MAX], polls[ROUNDS_MAX], mpps[ROUNDS_MAX]; // polls: busy ones, per packet
};

static struct bench_case cases[CASES_MAX];
static unsigned case_count;

struct bench {
	struct lean_end a, b;
	unsigned directions;
	atomic_bool stop;
};

static void drive(struct bench *bench)
{
	lean_drive(&bench->a.transmit);
	lean_drive(&bench->b.receive);
	if (bench->directions == 2) {
		lean_drive(&bench->b.transmit);
		lean_drive(&bench->a.receive);
	}
}

static void *drivers(void *argument)
{
	struct bench *bench = argument;

	pin(options.cpus[1]);
	while (!atomic_load_explicit(&bench->stop, memory_order_relaxed))
		drive(bench);
	return NULL;
}

static unsigned calls; // that guests wanted: none, but the compiler does not know

// As a patch does it: a direction's poll, and what a cross-connect of vhost ports does after it.
static inline unsigned poll_once(struct bench *bench, unsigned direction, unsigned burst)
{
	struct device_ring *from = direction ? &bench->b.transmit.ring : &bench->a.transmit.ring;
	struct device_ring *to = direction ? &bench->a.receive.ring : &bench->b.receive.ring;
	struct xconnect_counts counts = xconnect(from, to, burst);

	calls += doorbell_poll(&to->bell, counts.forwarded > 0);
	calls += doorbell_poll(&from->bell, counts.received > 0);
	return counts.forwarded;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// Until this many packets came through; or were tried for long: the other thread lost its CPU, or nothing
// moves.
static void measure(struct bench *bench, struct bench_case *c, unsigned round, uint64_t packets)
{
	uint64_t busy = 0, polls = 0, forwarded = 0, begin_ns = now_ns(),
	         give_up = rte_rdtsc() + GIVE_UP_CYCLES;

	while (forwarded < packets) {
		for (unsigned direction = 0; direction < bench->directions; direction++) {
			uint64_t start = rte_rdtsc();
			unsigned n = poll_once(bench, direction, c->burst);

			if (n) {
				busy += rte_rdtsc() - start;
				polls++;
				forwarded += n;
			}
		}
		if (options.single)
			drive(bench);
		if (rte_rdtsc() > give_up)
			break;
	}
	c->cycles[round] = (double)busy / (double)forwarded;
	c->polls[round] = (double)polls / (double)forwarded;
	c->mpps[round] = (double)forwarded * 1e3 / (double)(now_ns() - begin_ns);
}

static uint64_t features_of(unsigned kind)
{
	return 1ULL << VIRTIO_F_VERSION_1 | 1ULL << VIRTIO_NET_F_MRG_RXBUF | 1ULL << VIRTIO_F_IN_ORDER |
	       (uint64_t)kind << VIRTIO_F_RING_PACKED;
}

static void run_case(struct bench_case *c, unsigned round)
{
	struct bench bench = {.directions = c->directions};
	pthread_t thread;

	lean_open(&bench.a, features_of(c->kind), RING_SIZE, c->size - FCS_BYTES, options.touch,
	          options.rewrite);
	lean_open(&bench.b, features_of(c->kind), RING_SIZE, c->size - FCS_BYTES, options.touch,
	          options.rewrite);
	if (!options.single)
		pthread_create(&thread, NULL, drivers, &bench);
	measure(&bench, c, round, options.packets / 10); // warm
	measure(&bench, c, round, options.packets);
	atomic_store(&bench.stop, true);
	if (!options.single)
		pthread_join(thread, NULL);
	lean_close(&bench.a);
	lean_close(&bench.b);
}

static void cases_make(void)
{
	const struct options *o = &options;

	for (unsigned k = 0; k < o->kinds.count; k++)
		for (unsigned d = 0; d < o->directions.count; d++)
			for (unsigned s = 0; s < o->sizes.count; s++)
				for (unsigned b = 0; b < o->bursts.count && case_count < CASES_MAX; b++) {
					struct bench_case *c = &cases[case_count++];

					c->kind = o->kinds.at[k];
					c->directions = o->directions.at[d];
					c->size = o->sizes.at[s];
					c->burst = o->bursts.at[b];
				}
}

static int compare(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static double median(double *values)
{
	qsort(values, options.rounds, sizeof(*values), compare);
	return values[options.rounds / 2];
}

static void print_case(struct bench_case *c)
{
	double cycles = median(c->cycles), batch = 1 / median(c->polls), mpps = median(c->mpps);

	if (options.json)
		printf("{\"kind\": \"%s\", \"directions\": %u, \"frame_size_bytes\": %u, \"burst\": %u, "
		       "\"cycles_per_packet\": %.3f, \"packets_per_poll\": %.2f, \"mpps\": %.3f}\n",
		       c->kind ? "packed" : "split", c->directions, c->size, c->burst, cycles, batch, mpps);
	else
		printf("%-6s %u-way %5u B  burst %2u  %8.1f cycles/packet  %5.1f packets/poll  %7.2f Mpps\n",
		       c->kind ? "packed" : "split", c->directions, c->size, c->burst, cycles, batch, mpps);
}

static const char usage[] =
        "usage: ring_bench [--single] [--json] [--rewrite] [--isa scalar|avx2|avx512]\n"
        "                  [--touch none|head|all|test]\n"
        "                  [--sizes N,..] [--bursts N,..] [--directions 1,2] [--kinds split,packed]\n"
        "                  [--rounds N] [--packets N] [--cpus HOP,DRIVERS]\n";

static int fail(const char *what)
{
	fprintf(stderr, "ring_bench: %s\n%s", what, usage);
	return EXIT_FAILURE;
}

// Numbers, or names by their place in names, between min and max. Returns how many, 0 for nonsense.
static unsigned parse_list(char *text, const char *const *names, unsigned min, unsigned max, unsigned *at)
{
	unsigned count = 0;

	for (char *word = strtok(text, ","); word && count < VALUES_MAX; word = strtok(NULL, ",")) {
		unsigned value = names ? 0 : (unsigned)strtoul(word, NULL, 10);

		while (names && names[value] && strcmp(names[value], word) != 0)
			value++;
		if ((names && !names[value]) || value < min || value > max)
			return 0;
		at[count++] = value;
	}
	return count;
}

static int parse_option(int option, char *text)
{
	static const char *const kinds[] = {"split", "packed", NULL};
	static const char *const touches[] = {"none", "head", "all", "test", NULL};
	unsigned value;

	switch (option) {
	case 's':
		return !(options.sizes.count = parse_list(text, NULL, 64, 2048, options.sizes.at));
	case 'b':
		return !(options.bursts.count =
		                 parse_list(text, NULL, 1, BURST_FRAMES_MAX, options.bursts.at));
	case 'd':
		return !(options.directions.count = parse_list(text, NULL, 1, 2, options.directions.at));
	case 'k':
		return !(options.kinds.count = parse_list(text, kinds, 0, 1, options.kinds.at));
	case 'r':
		return !parse_list(text, NULL, 1, ROUNDS_MAX, &options.rounds);
	case 'p':
		return !parse_list(text, NULL, 1000, 1000000000, &options.packets);
	case 'c':
		return parse_list(text, NULL, 0, 1023, options.cpus) != 2;
	case 't':
		if (!parse_list(text, touches, 0, 3, &value))
			return 1;
		options.touch = (enum lean_touch)value;
		return 0;
	case 'i':
		return isa_force(text) != 0;
	default:
		return 1;
	}
}

static int parse(int argc, char **argv)
{
	static const struct option names[] = {
	        {"rewrite", no_argument, NULL, 'w'},
	        {"single", no_argument, NULL, 'S'},
	        {"json", no_argument, NULL, 'j'},
	        {"isa", required_argument, NULL, 'i'},
	        {"touch", required_argument, NULL, 't'},
	        {"sizes", required_argument, NULL, 's'},
	        {"bursts", required_argument, NULL, 'b'},
	        {"rounds", required_argument, NULL, 'r'},
	        {"directions", required_argument, NULL, 'd'},
	        {"kinds", required_argument, NULL, 'k'},
	        {"packets", required_argument, NULL, 'p'},
	        {"cpus", required_argument, NULL, 'c'},
	        {NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1)
		if (option == 'S')
			options.single = true;
		else if (option == 'j')
			options.json = true;
		else if (option == 'w')
			options.rewrite = true;
		else if (parse_option(option, optarg))
			return fail("a bad option");
	return optind < argc ? fail("an argument too many") : 0;
}

int main(int argc, char **argv)
{
	if (parse(argc, argv))
		return EXIT_FAILURE;
	cases_make();
	pin(options.cpus[0]);
	for (unsigned round = 0; round < options.rounds; round++)
		for (unsigned i = 0; i < case_count; i++)
			run_case(&cases[i], round);
	if (!options.json)
		printf("%s, %s\n", isa_text(isa_current()), options.single ? "one core" : "two cores");
	for (unsigned i = 0; i < case_count; i++)
		print_case(&cases[i]);
	return 0;
}
