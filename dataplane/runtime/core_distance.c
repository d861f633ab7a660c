// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/core_distance.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

// 60 samples of 100 round trips: 0.3 to 2.5 ms in all. A sample during which a thread lost its CPU does not
// move the median.
enum { SAMPLES = 60, ROUNDS = 100, WARM_UP_SAMPLES = 5, DEADLINE_S = 2 };

struct table {
	_Alignas(128) atomic_uint ball; // even: a's turn, odd: b's turn
	_Alignas(128) atomic_bool stop;
	unsigned cpu_b;
	double speed_b;
};

static int pin(unsigned cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	return -pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

// Sorts the samples.
static double median(int64_t *samples, size_t count)
{
	qsort(samples, count, sizeof(samples[0]), by_value);
	return (double)samples[count / 2];
}

// --- How much of its core a CPU has ----------------------------------------------------------------------

// A sample: so many turns of a loop of additions, and of one of multiplications, each of which waits for the one before.
// Another hyperthread takes places of additions, but none of a chain that leaves most of the core idle: the chain is the
// clock. A multiplication takes three cycles on all cores of x86 since 2008; on another, figures differ by a factor.
enum { SPEED_SAMPLES = 15, TURNS = 4000, ADDITIONS = 16, MULTIPLICATIONS = 4, MULTIPLICATION_CYCLES = 3 };

// Values that the compiler cannot know, so that it keeps each addition.
#define KEEP(a, b, c, d, e, f, g, h)                                                                         \
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h))

// Nanoseconds that TURNS times ADDITIONS take, eight of which can always go on.
static int64_t add(void)
{
	uint64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0, begin = now_ns();

	for (unsigned i = 0; i < TURNS; i++)
#pragma GCC unroll 2
		for (unsigned k = 0; k < ADDITIONS / 8; k++) {
			a += 3, b += 3, c += 3, d += 3, e += 3, f += 3, g += 3, h += 3;
			KEEP(a, b, c, d, e, f, g, h);
		}
	return (int64_t)(now_ns() - begin);
}

// Nanoseconds that TURNS times MULTIPLICATIONS take, one after the other.
static int64_t multiply(void)
{
	uint64_t product = 1, factor = 3, begin = now_ns();

	__asm__ volatile("" : "+r"(factor));
	for (unsigned i = 0; i < TURNS; i++)
#pragma GCC unroll 4
		for (unsigned k = 0; k < MULTIPLICATIONS; k++) {
			product *= factor;
			__asm__ volatile("" : "+r"(product));
		}
	return (int64_t)(now_ns() - begin);
}

// The independent additions that this thread makes in a cycle of its core, at whatever clock that runs. A core alone makes as
// many as it is wide. Below 0: the time did not pass.
static double additions_per_cycle(void)
{
	int64_t added[SPEED_SAMPLES], multiplied[SPEED_SAMPLES];
	double cycle_ns, turn_ns;

	for (unsigned i = 0; i < SPEED_SAMPLES; i++) {
		added[i] = add();
		multiplied[i] = multiply();
	}
	cycle_ns = median(multiplied, SPEED_SAMPLES) / (TURNS * MULTIPLICATIONS * MULTIPLICATION_CYCLES);
	turn_ns = median(added, SPEED_SAMPLES) / TURNS;
	return turn_ns > 0 ? ADDITIONS * cycle_ns / turn_ns : -1;
}

// --- Distance --------------------------------------------------------------------------------------------

static void *return_ball(void *argument)
{
	struct table *table = argument;

	pin(table->cpu_b);
	while (!atomic_load_explicit(&table->stop, memory_order_relaxed)) {
		unsigned ball = atomic_load_explicit(&table->ball, memory_order_acquire);

		if (ball & 1)
			atomic_store_explicit(&table->ball, ball + 1, memory_order_release);
	}
	table->speed_b = additions_per_cycle();
	return NULL;
}

// One sample in ns, or -ETIMEDOUT.
static int64_t sample(struct table *table, uint64_t deadline_ns)
{
	uint64_t begin = now_ns();

	for (int i = 0; i < ROUNDS; i++) {
		unsigned ball = atomic_load_explicit(&table->ball, memory_order_relaxed);
		unsigned spins = 0;

		atomic_store_explicit(&table->ball, ball + 1, memory_order_release);
		while (atomic_load_explicit(&table->ball, memory_order_acquire) != ball + 2)
			if ((++spins & 0xffff) == 0 && now_ns() > deadline_ns)
				return -ETIMEDOUT;
	}
	return (int64_t)(now_ns() - begin);
}

static int play(struct table *table, struct core_distance *out)
{
	uint64_t deadline_ns = now_ns() + DEADLINE_S * UINT64_C(1000000000);
	int64_t samples[SAMPLES];

	for (int i = -WARM_UP_SAMPLES; i < SAMPLES; i++) {
		int64_t ns = sample(table, deadline_ns);

		if (ns < 0)
			return (int)ns;
		if (i >= 0)
			samples[i] = ns;
	}
	out->median_ns = median(samples, SAMPLES) / ROUNDS;
	out->min_ns = (double)samples[0] / ROUNDS;
	return 0;
}

int core_distance_measure(unsigned cpu_a, unsigned cpu_b, struct core_distance *out)
{
	struct table table = {.cpu_b = cpu_b};
	pthread_t other;
	int rc = cpu_a == cpu_b ? -EINVAL : pin(cpu_b); // whether that can be: it is the other thread's

	if (rc == 0)
		rc = pin(cpu_a);
	if (rc == 0)
		rc = -pthread_create(&other, NULL, return_ball, &table);
	if (rc)
		return rc;
	rc = play(&table, out);
	atomic_store(&table.stop, true);
	out->additions_per_cycle[0] = additions_per_cycle();
	pthread_join(other, NULL);
	out->additions_per_cycle[1] = table.speed_b;
	return rc;
}
