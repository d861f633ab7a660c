// SPDX-License-Identifier: BSD-3-Clause
// Slots whose due times follow from each other, for pacer.c: exponential gaps, and recorded times. How many
// there are in a duration is known at its end only, so intended grows with next. A call does a bounded amount
// of work: of a long stall, or where slots come faster than they can be drawn, the first few thousand late
// slots are drawn and the rest is counted at once: recorded ones exactly, of a Poisson process the mean.
#pragma once

#include "tasks/generator/pacer.h"

int pacer_steps_start(struct pacer *p, const struct pacer_load *load, uint64_t tsc_hz);
uint16_t pacer_steps_poll(struct pacer *p, uint64_t elapsed_tsc);

static inline uint64_t pacer_ticks(uint64_t ns, uint64_t tsc_hz)
{
	return (uint64_t)((unsigned __int128)ns * tsc_hz / 1000000000);
}
