// SPDX-License-Identifier: BSD-3-Clause
// A token bucket (RFC 2697, one bucket: committed rate and burst), exact to the TSC tick.
//
// A unit is a bit of a frame with FCS, or a packet. Credit is counted in units times ticks of a second: a
// tick brings `rate` of it, a unit costs tsc_hz of it. Both are whole numbers, so nothing is ever rounded,
// and nothing drifts.
#pragma once

#include <rte_common.h>
#include <rte_ether.h>
#include <stdbool.h>
#include <stdint.h>

struct token_bucket {
	uint64_t credit, seen_tsc;
};

struct token_meter {
	uint64_t rate;                  // credit of a tick
	uint64_t full;                  // credit of a bucket that is full: the burst. 2^63 at most
	uint64_t full_tsc;              // ticks after which any bucket is full
	uint64_t cost_frame, cost_byte; // of a frame of n bytes: cost_frame + n * cost_byte
};

// The meter of a rate in packets a second.
static inline struct token_meter token_meter_of_packets(uint64_t rate_pps, uint64_t burst_packets,
                                                        uint64_t tsc_hz)
{
	uint64_t full = burst_packets * tsc_hz;

	return (struct token_meter){.rate = rate_pps,
	                            .full = full,
	                            .full_tsc = (full + rate_pps - 1) / rate_pps,
	                            .cost_frame = tsc_hz};
}

// The meter of a rate in bits a second.
static inline struct token_meter token_meter_of_bits(uint64_t rate_bps, uint64_t burst_bytes, uint64_t tsc_hz)
{
	uint64_t full = burst_bytes * 8 * tsc_hz;

	return (struct token_meter){.rate = rate_bps,
	                            .full = full,
	                            .full_tsc = (full + rate_bps - 1) / rate_bps,
	                            .cost_frame = RTE_ETHER_CRC_LEN * 8 * tsc_hz,
	                            .cost_byte = 8 * tsc_hz};
}

// Whether a frame of so many bytes (without FCS) conforms; it is paid for if it does.
static inline bool token_bucket_take(const struct token_meter *meter, uint64_t *credit, uint64_t *seen_tsc,
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
