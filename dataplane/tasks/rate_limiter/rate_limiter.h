// SPDX-License-Identifier: BSD-3-Clause
// The token bucket of rate_limiter (RFC 2697, one bucket: committed rate and burst), exact to the TSC tick.
//
// A unit is a bit of a frame with FCS, or a packet. Credit is counted in units times ticks of a second: a
// tick brings `rate` of it, a unit costs tsc_hz of it. Both are whole numbers, so nothing is rounded, ever,
// and nothing drifts.
#pragma once

#include "lib/flow_table.h"
#include "tasks/vnf/vnf.h"

enum limiter_per { PER_ALL, PER_DIRECTION, PER_SOURCE, PER_DESTINATION };

struct limiter_settings {
	uint64_t rate_bps, rate_pps; // one of them is 0
	uint64_t burst_bytes, burst_packets;
	int per;
	uint32_t buckets_max;
	int directions;
};

struct limiter_bucket {
	uint64_t credit, seen_tsc;
};

struct limiter_meter {
	uint64_t rate;                  // credit of a tick
	uint64_t full;                  // credit of a bucket that is full: the burst. 2^63 at most
	uint64_t full_tsc;              // ticks after which any bucket is full
	uint64_t cost_frame, cost_byte; // of a frame of n bytes: cost_frame + n * cost_byte
};

struct limiter_meter limiter_meter_of(const struct limiter_settings *settings, uint64_t tsc_hz);

// Whether a frame of so many bytes (without FCS) conforms; it is paid for if it does.
static inline bool limiter_take(const struct limiter_meter *meter, uint64_t *credit, uint64_t *seen_tsc,
                                uint64_t bytes, uint64_t now_tsc)
{
	int64_t passed_tsc = (int64_t)(now_tsc - *seen_tsc);
	uint64_t cost = meter->cost_frame + bytes * meter->cost_byte;

	if (likely(passed_tsc > 0)) { // the time of another CPU may be a little behind
		*seen_tsc = now_tsc;
		*credit += (uint64_t)passed_tsc < meter->full_tsc ? (uint64_t)passed_tsc * meter->rate
		                                                  : meter->full;
		*credit = RTE_MIN(*credit, meter->full);
	}
	if (*credit < cost)
		return false;
	*credit -= cost;
	return true;
}
