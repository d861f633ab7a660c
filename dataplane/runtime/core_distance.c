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

#include "runtime/core_speed.h"

// 60 samples of 100 round trips: 0.3 to 2.5 ms in all. A sample during which a thread lost its CPU does not
// move the median.
enum { SAMPLES = 60, ROUNDS = 100, WARM_UP_SAMPLES = 5, DEADLINE_S = 2 };

struct table {
	_Alignas(128) atomic_uint ball; // even: a's turn, odd: b's turn
	_Alignas(128) atomic_bool stop;
	unsigned cpu_b;
	int error_b;
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

static void *return_ball(void *argument)
{
	struct table *table = argument;

	table->error_b = pin(table->cpu_b);
	while (!atomic_load_explicit(&table->stop, memory_order_relaxed)) {
		unsigned ball = atomic_load_explicit(&table->ball, memory_order_acquire);

		if (ball & 1)
			atomic_store_explicit(&table->ball, ball + 1, memory_order_release);
	}
	table->speed_b = core_speed_measure();
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

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
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
	qsort(samples, SAMPLES, sizeof(samples[0]), by_value);
	out->median_ns = (double)samples[SAMPLES / 2] / ROUNDS;
	out->min_ns = (double)samples[0] / ROUNDS;
	return 0;
}

int core_distance_measure(unsigned cpu_a, unsigned cpu_b, struct core_distance *out)
{
	struct table table = {.cpu_b = cpu_b};
	pthread_t other;
	int rc = cpu_a == cpu_b ? -EINVAL : pin(cpu_a);

	if (rc)
		return rc;
	rc = -pthread_create(&other, NULL, return_ball, &table);
	if (rc)
		return rc;
	rc = play(&table, out);
	atomic_store(&table.stop, true);
	out->additions_per_cycle[0] = core_speed_measure();
	pthread_join(other, NULL);
	out->additions_per_cycle[1] = table.speed_b;
	return table.error_b ? table.error_b : rc;
}
