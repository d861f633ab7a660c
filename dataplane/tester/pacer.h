// SPDX-License-Identifier: BSD-3-Clause
// When a generator may send. Open loop: slot k is due at start + k / rate, or when its arrival process says
// (docs/traffic.md), whatever became of the slots before it, and a slot that could not be used in time
// is counted as unsent, not caught up: catching up would offer bursts that nobody asked for, and waiting
// would stretch the trial (PRINCIPLES 17). Flat out: a burst at every call until the time is over.
//
// Pure: time is an argument. One thread. Conservation: intended == handed out + late, once pacer_done().
#pragma once

#include <stdbool.h>
#include <stdint.h>

// How late a slot may be used. Long enough for one round of a worker that polls ten busy tasks in the far
// band, short against what a switch's rings can hold; a stall of the host is longer and becomes unsent slots.
enum { PACER_LATE_LIMIT_NS = 50000 };

enum pacer_process {
	PACER_CONSTANT,
	PACER_POISSON,  // gaps between slots are exponential, drawn from seed and number: the same each run
	PACER_ON_OFF,   // slots come at rate * (on + off) / on while on; the average is rate
	PACER_RECORDED, // at given times, again and again
};

struct pacer_arrival {
	enum pacer_process process;
	uint64_t on_ns, off_ns;
	uint64_t seed;
	const uint64_t *times_ns; // recorded: does not fall, the first is 0; lives as long as the pacer
	uint64_t time_count;
	uint64_t period_ns; // recorded: from the first time to the first of the next round; above 0
	double time_scale;  // recorded: times are divided by this
};

struct pacer_load {
	uint64_t start_tsc;
	uint64_t duration_ns;
	double rate_pps;              // 0 = flat out; recorded: not looked at
	uint16_t burst;               // most slots of one call
	struct pacer_arrival arrival; // zeroed: constant
};

struct pacer {
	uint64_t start_tsc;
	uint64_t duration_tsc;
	uint64_t late_limit_tsc;
	uint64_t rate_mantissa; // slots per tick = mantissa / 2^shift, with all 64 bits of mantissa used: no
	                        // drift
	uint64_t intended;      // slots of the whole duration, floor(rate * duration); 0 when flat out
	uint64_t next;          // slots before this one are handed out or late
	uint64_t late;
	uint8_t rate_shift; // 64..127
	bool flat_out;
	bool one_by_one; // Poisson and recorded: due times follow from each other
	uint16_t burst;

	// On and off; period_tsc 0: always on.
	uint64_t on_tsc, period_tsc;

	// One by one. intended: slots before next, as far as they are known.
	struct pacer_arrival arrival;
	double due_tsc; // of slot next, from the start; exact to a thousandth of a tick in an hour
	double gap_tsc; // Poisson: mean
	double tsc_per_ns;
	uint64_t round, at; // recorded: slot next is times_ns[at] of this round
};

// Begin. Returns 0, or -EINVAL when the rate (while on; of recorded times the mean) is not a number in
// (2^-60, tsc_hz), duration or burst is 0, or the arrival process makes no sense.
int pacer_start(struct pacer *p, const struct pacer_load *load, uint64_t tsc_hz);

// How many frames may be sent now, at most burst. They count as handed out: what the caller does not send of
// them is for the caller to count.
uint16_t pacer_poll(struct pacer *p, uint64_t now_tsc);

// True when the time is over and no slot is left.
bool pacer_done(const struct pacer *p, uint64_t now_tsc);

// End early: slots not yet handed out or late are no longer intended.
void pacer_cut(struct pacer *p);
