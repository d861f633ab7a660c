// SPDX-License-Identifier: BSD-3-Clause
// The clocks. Deadlines are in milliseconds. Whatever is timed on the data path is timed by the time stamp counter (TSC):
// all know its frequency from here, where it is measured against CLOCK_MONOTONIC_RAW. DPDK rounds it to 10 MHz where the
// CPU does not tell it, which is up to 0.24 % of 2.1 GHz, and of every rate and latency.
#pragma once

#include <stdint.h>
#include <time.h>

// Return milliseconds since some moment before the process began: it only goes forward. Any thread.
static inline int64_t clock_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

// A clock reads ns at tsc, within half of width_tsc.
struct clock_reading {
	uint64_t tsc, width_tsc, ns;
};

// Read CLOCK_MONOTONIC_RAW: the narrowest of some readings. Any thread.
struct clock_reading clock_read(void);

// The frequency of the TSC between two readings, if they are so far apart that it is wrong by 5 ppm at most. Else 0: as
// where the TSC went back, since a virtual machine moved. Pure.
uint64_t clock_hz_between(const struct clock_reading *from, const struct clock_reading *to);

// Measure the frequency for the first time: tens of ms, after EAL has started. A program that is told the time and does not
// read it leaves this out: then the frequency is DPDK's and the same each time. Control thread.
void clock_start(void);

// Measure it anew since the mark, if that is long enough ago; and set the mark where that was done. A trial begins with a
// mark: so its pace is that of the time up to it, and what is reported of it later is of its own time. Control thread.
void clock_measure(void);
void clock_mark(void);

uint64_t clock_hz(void);         // of the TSC, as measured last. Any thread.
uint64_t clock_nominal_hz(void); // as DPDK has it

// Time in ticks of the TSC, and back. Any thread.
uint64_t clock_ticks(uint64_t ns);
uint64_t clock_ns(uint64_t ticks);
