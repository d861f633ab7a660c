// SPDX-License-Identifier: BSD-3-Clause
// line_bench [ROUNDS [CPU_A CPU_B]]: what a cache line costs that comes from the other core, in TSC cycles, with so many under
// way at a time as the CPU has room for. This, times the lines that a frame moves, is the least that a cross-connect can take
// (docs/performance.md). One JSON line for each case:
//
//   read: lines that the other core has just written        write: lines that it has just read, taken for writing
//   wait: one line after the other, each found by the one before
//
// lines: of a chunk; 64 as the heads of a burst, 1024 as its frames of 1024 B. Medians; core_to_core_ns before and after.
#include <inttypes.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_pause.h>

#include "shm/copy.h"
#include "runtime/core_distance.h"
#include "test/pin.h"

enum { LINE = 64, LINES_MAX = 1024, ROUNDS_DEFAULT = 2000, STRIDE = 33 }; // of frames 2112 B apart

enum what { LINE_READ, LINE_WRITE, LINE_WAIT, WHATS };
static const char *const names[WHATS] = {"read", "write", "wait"};

static struct {
	alignas(64) _Atomic(unsigned) turn; // odd: the other core's
	alignas(64) unsigned other_cpu, lines, rounds;
	enum what what;
	uint8_t *memory;
	uint32_t next[LINES_MAX]; // of LINE_WAIT: a cycle through all lines
} bench;

static inline uint8_t *line(unsigned i)
{
	return bench.memory + (size_t)i * STRIDE * LINE % ((size_t)LINES_MAX * STRIDE * LINE);
}

static void wait_turn(unsigned turn)
{
	while (atomic_load_explicit(&bench.turn, memory_order_acquire) != turn)
		rte_pause();
}

static void give_turn(unsigned turn)
{
	atomic_store_explicit(&bench.turn, turn, memory_order_release);
}

// What the other core does before each measured pass: it writes all lines, or reads them.
static void prepare(void)
{
	volatile uint64_t sum = 0;

	for (unsigned i = 0; i < bench.lines; i++) {
		uint64_t *at = (uint64_t *)(void *)line(i);

		if (bench.what == LINE_WRITE)
			sum += *(volatile uint64_t *)at;
		else
			*(volatile uint64_t *)at = bench.next[i];
	}
}

static void *other(void *nothing)
{
	pin(bench.other_cpu);
	for (unsigned i = 0; i < bench.rounds; i++) {
		wait_turn(2 * i + 1);
		prepare();
		give_turn(2 * i + 2);
	}
	return nothing;
}

static uint64_t pass(void)
{
	uint64_t sum = 0;

	if (bench.what == LINE_WAIT)
		for (unsigned i = 0, at = 0; i < bench.lines; i++)
			sum += at = (unsigned)*(volatile uint64_t *)(void *)line(at);
	else if (bench.what == LINE_READ)
		for (unsigned i = 0; i < bench.lines; i++)
			sum += *(volatile uint64_t *)(void *)line(i);
	for (unsigned i = 0; bench.what == LINE_WRITE && i < bench.lines; i++)
		prefetch_to_write(line(i));
	for (unsigned i = 0; bench.what == LINE_WRITE && i < bench.lines; i++)
		*(volatile uint64_t *)(void *)line(i) = i;
	return sum;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

// Cycles of a line, the median of all rounds.
static double measure(uint64_t *ticks)
{
	pthread_t thread;

	atomic_store(&bench.turn, 0);
	if (pthread_create(&thread, NULL, other, NULL))
		return 0;
	for (unsigned i = 0; i < bench.rounds; i++) {
		uint64_t begin;

		give_turn(2 * i + 1);
		wait_turn(2 * i + 2);
		begin = rte_rdtsc_precise();
		pass();
		ticks[i] = rte_rdtsc_precise() - begin;
	}
	pthread_join(thread, NULL);
	qsort(ticks, bench.rounds, sizeof(ticks[0]), by_size);
	return (double)ticks[bench.rounds / 2] / bench.lines;
}

// A cycle in an order that no prefetcher knows: an odd factor reaches each line of a power of two.
static void cycle_make(void)
{
	unsigned at = 0;

	for (unsigned i = 0; i < bench.lines; i++)
		at = bench.next[at] = (at * 5 + 1) & (bench.lines - 1); // full period: Hull and Dobell, 1962
}

int main(int argc, char **argv)
{
	static const unsigned sizes[] = {64, LINES_MAX};
	struct core_distance before = {0}, after = {0};
	unsigned cpu = argc > 3 ? (unsigned)atoi(argv[2]) : 0;
	uint64_t *ticks;

	bench.other_cpu = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
	bench.rounds = argc > 1 ? (unsigned)RTE_MAX(atoi(argv[1]), 1) : ROUNDS_DEFAULT;
	bench.memory = aligned_alloc(4096, (size_t)LINES_MAX * STRIDE * LINE);
	ticks = calloc(bench.rounds, sizeof(*ticks));
	if (bench.memory == NULL || ticks == NULL)
		return 1;
	memset(bench.memory, 0, (size_t)LINES_MAX * STRIDE * LINE);
	pin(cpu);
	for (bench.what = LINE_READ; bench.what < WHATS; bench.what++)
		for (unsigned s = 0; s < RTE_DIM(sizes); s++) {
			double cycles;

			bench.lines = sizes[s];
			cycle_make();
			core_distance_measure(cpu, bench.other_cpu, &before);
			cycles = measure(ticks);
			core_distance_measure(cpu, bench.other_cpu, &after);
			printf("{\"case\": \"%s\", \"lines\": %u, \"cycles_per_line\": %.1f, "
			       "\"core_to_core_ns\": [%.0f, %.0f]}\n",
			       names[bench.what], bench.lines, cycles, before.median_ns, after.median_ns);
		}
	free(ticks);
	free(bench.memory);
	return 0;
}
