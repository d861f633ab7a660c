// SPDX-License-Identifier: BSD-3-Clause
// Slot arithmetic. The number of slots due after e ticks is floor(e * rate) + 1, computed from e itself with
// a 64x64 bit multiplication: an error can neither accumulate nor depend on how often the pacer is asked.
#include "tester/pacer.h"

#include <errno.h>
#include <math.h>

#include "base/random.h"

// Slots whose due times follow from each other, for pacer.c: exponential gaps, and recorded times. How many
// there are in a duration is known at its end only, so intended grows with next. A call does a bounded amount
// of work: of a long stall, or where slots come faster than they can be drawn, the first few thousand late
// slots are drawn and the rest is counted at once: recorded ones exactly, of a Poisson process the mean.

static inline uint64_t pacer_ticks(uint64_t ns, uint64_t tsc_hz)
{
	return (uint64_t)((unsigned __int128)ns * tsc_hz / 1000000000);
}

// --- Slots that follow from each other -------------------------------------------------------------------

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

static int steps_start(struct pacer *p, const struct pacer_load *load, uint64_t tsc_hz)
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

static uint16_t steps_poll(struct pacer *p, uint64_t elapsed_tsc)
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

enum { SHIFT_MAX = 124 }; // of a 128-bit product

static int rate_set(struct pacer *p, double rate_pps, uint64_t tsc_hz)
{
	int exponent;
	long double mantissa;

	if (!isfinite(rate_pps) || rate_pps <= 0 || rate_pps >= (double)tsc_hz)
		return -EINVAL;
	mantissa = frexpl((long double)rate_pps / tsc_hz, &exponent); // [0.5, 1) * 2^exponent, exponent <= 0
	if (64 - exponent > SHIFT_MAX)
		return -EINVAL;
	p->rate_mantissa = (uint64_t)ldexpl(mantissa, 64);
	p->rate_shift = (uint8_t)(64 - exponent);
	return 0;
}

// Return how many of elapsed_tsc ticks were on. A tick that is off shows what the last one that was on showed.
static inline uint64_t active_tsc(const struct pacer *p, uint64_t elapsed_tsc)
{
	uint64_t in_period;

	if (__builtin_expect(p->period_tsc == 0, 1))
		return elapsed_tsc;
	in_period = elapsed_tsc % p->period_tsc;
	return elapsed_tsc / p->period_tsc * p->on_tsc + (in_period < p->on_tsc ? in_period : p->on_tsc - 1);
}

// Slots with a due time of at most elapsed_tsc, of those intended.
static inline uint64_t slots_due(const struct pacer *p, uint64_t elapsed_tsc)
{
	unsigned __int128 product = (unsigned __int128)active_tsc(p, elapsed_tsc) * p->rate_mantissa;
	uint64_t due = (uint64_t)(product >> p->rate_shift) + 1;

	return due < p->intended ? due : p->intended;
}

static int on_off_start(struct pacer *p, const struct pacer_load *load, uint64_t tsc_hz)
{
	uint64_t on_ns = load->arrival.on_ns, off_ns = load->arrival.off_ns;
	int rc;

	p->on_tsc = pacer_ticks(on_ns, tsc_hz);
	if (p->on_tsc == 0)
		return -EINVAL;
	p->period_tsc = p->on_tsc + pacer_ticks(off_ns, tsc_hz);
	rc = rate_set(p, load->rate_pps * (double)p->period_tsc / (double)p->on_tsc, tsc_hz);
	p->intended = UINT64_MAX;
	if (rc == 0)
		p->intended = p->duration_tsc ? slots_due(p, p->duration_tsc - 1) : 0;
	return rc;
}

int pacer_start(struct pacer *p, const struct pacer_load *load, uint64_t tsc_hz)
{
	const enum pacer_process process = load->arrival.process;

	*p = (struct pacer){
	        .start_tsc = load->start_tsc,
	        .duration_tsc = pacer_ticks(load->duration_ns, tsc_hz),
	        .late_limit_tsc = pacer_ticks(PACER_LATE_LIMIT_NS, tsc_hz),
	        .flat_out = load->rate_pps == 0 && process == PACER_CONSTANT,
	        .burst = load->burst,
	};
	if (load->duration_ns == 0 || load->burst == 0)
		return -EINVAL;
	if (p->flat_out)
		return 0;
	if (process == PACER_POISSON || process == PACER_RECORDED)
		return steps_start(p, load, tsc_hz);
	if (process == PACER_ON_OFF)
		return on_off_start(p, load, tsc_hz);
	p->intended = (uint64_t)((long double)load->rate_pps * load->duration_ns / 1e9L);
	return rate_set(p, load->rate_pps, tsc_hz);
}

static void skip_late(struct pacer *p, uint64_t elapsed_tsc)
{
	uint64_t late_end;

	if (elapsed_tsc <= p->late_limit_tsc)
		return;
	late_end = slots_due(p, elapsed_tsc - p->late_limit_tsc - 1);
	if (late_end > p->next) {
		p->late += late_end - p->next;
		p->next = late_end;
	}
}

uint16_t pacer_poll(struct pacer *p, uint64_t now_tsc)
{
	uint64_t elapsed = now_tsc - p->start_tsc, due;

	if (now_tsc < p->start_tsc)
		return 0;
	if (p->flat_out)
		return elapsed < p->duration_tsc ? p->burst : 0;
	if (__builtin_expect(p->one_by_one, 0))
		return steps_poll(p, elapsed);
	due = slots_due(p, elapsed);
	if (due == p->next)
		return 0;
	skip_late(p, elapsed);
	due -= p->next;
	if (due > p->burst)
		due = p->burst; // the others may still be used by the next call, until they are late
	p->next += due;
	return (uint16_t)due;
}

bool pacer_done(const struct pacer *p, uint64_t now_tsc)
{
	return now_tsc >= p->start_tsc + p->duration_tsc &&
	       (p->one_by_one ? p->due_tsc >= (double)p->duration_tsc : p->next == p->intended);
}

void pacer_cut(struct pacer *p)
{
	p->intended = p->next;
	p->due_tsc = (double)p->duration_tsc; // no slot is left
}
