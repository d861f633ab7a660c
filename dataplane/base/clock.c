// SPDX-License-Identifier: BSD-3-Clause
#include "base/clock.h"

#include <rte_cycles.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { READINGS = 32, WIDTHS_APART = 100000, START_STEPS = 100 };

static const struct timespec start_step = {.tv_nsec = 10000000};

static _Atomic uint64_t measured_hz; // 0: not yet
static struct clock_reading mark;

struct clock_reading clock_read(void)
{
	struct clock_reading best = {.width_tsc = UINT64_MAX};
	struct timespec time;

	for (unsigned i = 0; i < READINGS; i++) {
		uint64_t before = rte_rdtsc(), width_tsc;

		clock_gettime(CLOCK_MONOTONIC_RAW, &time);
		width_tsc = rte_rdtsc() - before;
		if (width_tsc < best.width_tsc)
			best = (struct clock_reading){.tsc = before + width_tsc / 2,
			                              .width_tsc = width_tsc,
			                              .ns = (uint64_t)time.tv_sec * NS_PER_S +
			                                    (uint64_t)time.tv_nsec};
	}
	return best;
}

uint64_t clock_hz_between(const struct clock_reading *from, const struct clock_reading *to)
{
	uint64_t ticks = to->tsc - from->tsc, ns = to->ns - from->ns;

	if (to->tsc <= from->tsc || to->ns <= from->ns ||
	    ticks / WIDTHS_APART < from->width_tsc + to->width_tsc)
		return 0;
	return (uint64_t)(((unsigned __int128)ticks * NS_PER_S + ns / 2) / ns);
}

// The frequency since the mark until now becomes that of all. False if it cannot be told yet.
static bool measure(const struct clock_reading *now)
{
	uint64_t hz = mark.ns ? clock_hz_between(&mark, now) : 0;

	if (hz)
		atomic_store_explicit(&measured_hz, hz, memory_order_relaxed);
	return hz != 0;
}

void clock_start(void)
{
	struct clock_reading now;

	mark = clock_read();
	for (unsigned i = 0; i < START_STEPS; i++) {
		nanosleep(&start_step, NULL);
		now = clock_read();
		if (measure(&now))
			return;
	}
}

void clock_measure(void)
{
	struct clock_reading now = clock_read();

	measure(&now);
}

void clock_mark(void)
{
	struct clock_reading now = clock_read();

	if (measure(&now) || now.tsc < mark.tsc)
		mark = now;
}

uint64_t clock_hz(void)
{
	uint64_t hz = atomic_load_explicit(&measured_hz, memory_order_relaxed);

	return hz ? hz : rte_get_tsc_hz();
}

uint64_t clock_nominal_hz(void)
{
	return rte_get_tsc_hz();
}

uint64_t clock_ticks(uint64_t ns)
{
	return (uint64_t)((unsigned __int128)ns * clock_hz() / NS_PER_S);
}

uint64_t clock_ns(uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * NS_PER_S / clock_hz());
}
