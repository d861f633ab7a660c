// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/dry_poll.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "base/clock.h"

#define NS_PER_MS UINT64_C(1000000)

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void count_gap(struct dry_poll *out, uint64_t gap_ns)
{
	unsigned log2 = 63 - (unsigned)__builtin_clzll(gap_ns);
	unsigned bucket = log2 - DRY_POLL_LEAST_LOG2;

	out->gaps[bucket < DRY_POLL_BUCKETS ? bucket : DRY_POLL_BUCKETS - 1]++;
}

// The clock of the core, by additions that need each other's result: each takes one cycle. The best of several times is
// the least disturbed.
static double core_mhz(void)
{
	enum { TIMES = 5, ROUNDS = 50000, ADDS = 8 };
	double best = 0;

	for (unsigned time = 0; time < TIMES; time++) {
		uint64_t begin_ns = now_ns(), value = 0;
		double mhz;

		for (uint64_t round = 0; round < ROUNDS; round++)
#pragma GCC unroll 8
			for (unsigned k = 0; k < ADDS; k++) {
				value += round;
				__asm__ volatile("" : "+r"(value));
			}
		mhz = (double)ROUNDS * ADDS * 1e3 / (double)(now_ns() - begin_ns);
		best = mhz > best ? mhz : best;
	}
	return best;
}

int dry_poll_measure(unsigned cpu, unsigned duration_ms, struct dry_poll *out)
{
	struct clock_reading begin, end;
	uint64_t begin_ns, last_ns, at_ns;
	cpu_set_t cpus;
	int rc;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	rc = pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	if (rc)
		return -rc;
	*out = (struct dry_poll){.core_mhz = core_mhz()};
	begin = clock_read();
	begin_ns = last_ns = now_ns();
	do {
		at_ns = now_ns();
		if (at_ns - last_ns > out->longest_ns)
			out->longest_ns = at_ns - last_ns;
		if (at_ns - last_ns >= UINT64_C(1) << DRY_POLL_LEAST_LOG2)
			count_gap(out, at_ns - last_ns);
		out->polls++;
		last_ns = at_ns;
	} while (at_ns - begin_ns < duration_ms * NS_PER_MS);
	out->duration_ns = at_ns - begin_ns;
	end = clock_read();
	out->tsc_hz = clock_hz_between(&begin, &end);
	return 0;
}
