// SPDX-License-Identifier: BSD-3-Clause
// Slot arithmetic. The number of slots due after e ticks is floor(e * rate) + 1, computed from e itself with
// a 64x64 bit multiplication: an error can neither accumulate nor depend on how often the pacer is asked.
#include <errno.h>
#include <math.h>

#include "tasks/generator/pacer.h"
#include "tasks/generator/pacer_steps.h"

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

// Of elapsed_tsc ticks, those that were on. A tick that is off shows what the last one that was on showed.
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
		return pacer_steps_start(p, load, tsc_hz);
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
		return pacer_steps_poll(p, elapsed);
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
