// SPDX-License-Identifier: BSD-3-Clause
#include "pacer_steps.h"

#include <errno.h>
#include <math.h>

#include "draw.h"

enum { STEPS_MAX = 4096 }; // late slots of one call: below 100 us

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

int pacer_steps_start(struct pacer *p, const struct pacer_load *load, uint64_t tsc_hz)
{
	const struct pacer_arrival *arrival = &load->arrival;

	p->arrival = *arrival;
	p->one_by_one = true;
	p->tsc_per_ns = (double)tsc_hz / 1e9;
	if (arrival->process == PACER_RECORDED) {
		if (arrival->time_count == 0 || arrival->period_ns == 0 || !isfinite(arrival->time_scale) ||
		    arrival->time_scale <= 0)
			return -EINVAL;
		p->due_tsc = recorded_tsc(p);
		return 0;
	}
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

	for (unsigned i = 0; i < STEPS_MAX && p->due_tsc < late && p->due_tsc < end; i++) {
		p->late++;
		step(p);
	}
	if (p->due_tsc >= late)
		for (; due < p->burst && p->due_tsc <= now && p->due_tsc < end; due++)
			step(p);
	p->intended = p->next;
	return due;
}
