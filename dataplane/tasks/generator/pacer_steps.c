// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/generator/pacer_steps.h"

#include <errno.h>
#include <math.h>

#include "lib/draw.h"

enum { STEPS_MAX = 4096 }; // late slots of one call that are drawn one by one: below 100 us

// The gap before slot k: -ln(u) / rate, u in (0, 1].
static double gap_tsc(const struct pacer *p, uint64_t k)
{
	double u = (double)((draw_hash(p->arrival.seed, k) >> 11) + 1) * 0x1p-53;

	return -log(u) * p->gap_tsc;
}

// From the start and the round, not from the slot before: nothing adds up.
static double recorded_tsc(const struct pacer *p)
{
	double ns = (double)p->round * (double)p->arrival.period_ns + (double)p->arrival.times_ns[p->at];

	return ns / p->arrival.time_scale * p->tsc_per_ns;
}

static inline void step(struct pacer *p)
{
	p->next++;
	if (p->arrival.process == PACER_POISSON) {
		p->due_tsc += gap_tsc(p, p->next);
		return;
	}
	if (++p->at == p->arrival.time_count) {
		p->at = 0;
		p->round++;
	}
	p->due_tsc = recorded_tsc(p);
}

// The first slot at or after a time, by its place in the round: as many slots as there are may be late.
static void recorded_skip(struct pacer *p, double until_tsc)
{
	const struct pacer_arrival *arrival = &p->arrival;
	double ns = until_tsc / p->tsc_per_ns * arrival->time_scale;
	double rounds = floor(ns / (double)arrival->period_ns);
	uint64_t in_round = (uint64_t)ceil(ns - rounds * (double)arrival->period_ns), low = 0;
	uint64_t high = arrival->time_count, next;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (arrival->times_ns[middle] < in_round)
			low = middle + 1;
		else
			high = middle;
	}
	next = (uint64_t)rounds * arrival->time_count + low;
	if (next <= p->next)
		return;
	p->late += next - p->next;
	p->next = next;
	p->round = next / arrival->time_count;
	p->at = next % arrival->time_count;
	p->due_tsc = recorded_tsc(p);
}

// As many slots as there are on average: what comes next does not depend on what was before.
static void poisson_skip(struct pacer *p, double until_tsc)
{
	uint64_t count = (uint64_t)((until_tsc - p->due_tsc) / p->gap_tsc);

	p->late += count;
	p->next += count;
	p->due_tsc += (double)count * p->gap_tsc;
}

// Slots before a time are late. Those that STEPS_MAX leaves are counted at once: drawn one by one, a rate
// that is too high for that would make the trial longer than it was meant to be.
static void late_skip(struct pacer *p, double until_tsc)
{
	for (unsigned i = 0; p->due_tsc < until_tsc; i++) {
		if (i == STEPS_MAX) {
			if (p->arrival.process == PACER_POISSON)
				poisson_skip(p, until_tsc);
			else
				recorded_skip(p, until_tsc);
			return;
		}
		p->late++;
		step(p);
	}
}

static int recorded_start(struct pacer *p, uint64_t tsc_hz)
{
	const struct pacer_arrival *arrival = &p->arrival;

	if (arrival->time_count == 0 || arrival->period_ns == 0 || !isfinite(arrival->time_scale) ||
	    arrival->time_scale <= 0)
		return -EINVAL;
	p->due_tsc = recorded_tsc(p);
	return (double)arrival->time_count / (double)arrival->period_ns * arrival->time_scale * 1e9 <
	                       (double)tsc_hz
	               ? 0
	               : -EINVAL;
}

int pacer_steps_start(struct pacer *p, const struct pacer_load *load, uint64_t tsc_hz)
{
	const struct pacer_arrival *arrival = &load->arrival;

	p->arrival = *arrival;
	p->one_by_one = true;
	p->tsc_per_ns = (double)tsc_hz / 1e9;
	if (arrival->process == PACER_RECORDED)
		return recorded_start(p, tsc_hz);
	if (!isfinite(load->rate_pps) || load->rate_pps <= 0 || load->rate_pps >= (double)tsc_hz)
		return -EINVAL;
	p->gap_tsc = (double)tsc_hz / load->rate_pps;
	p->due_tsc = gap_tsc(p, 0);
	return 0;
}

uint16_t pacer_steps_poll(struct pacer *p, uint64_t elapsed_tsc)
{
	double end = (double)p->duration_tsc, now = (double)elapsed_tsc;
	double late = now - (double)p->late_limit_tsc;
	uint16_t due = 0;

	late_skip(p, fmin(late, end));
	if (p->due_tsc >= late)
		for (; due < p->burst && p->due_tsc <= now && p->due_tsc < end; due++)
			step(p);
	p->intended = p->next;
	return due;
}
