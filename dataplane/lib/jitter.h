// SPDX-License-Identifier: BSD-3-Clause
// Jitter of the probes of one stream, by two definitions, each a histogram of sizes in ns:
//
// ipdv: RFC 3393, size of the difference between the delays of two probes. Selection function (s3.2 there):
// successive received probes, in the order in which they were sent. A probe that comes after a later one is
// left out, and the next pair is made of those around it. Probes carry the sequence number of their stream
// and no number of their own, so a probe that was lost between two others cannot be told: the two make a
// pair.
//
// burst: the generator of ic16, size of the difference of the mean delays of two successive receive bursts
// that hold probes. Means are whole ns. Every probe counts, reordered or not.
//
// A delay above HISTOGRAM_HIGHEST_NS is not recorded here: its overflow is counted with the latency.
// Created and freed on the control thread; one writer.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/histogram.h"

struct jitter {
	struct histogram *ipdv, *burst;
	uint64_t last_delay_ns; // of the probe that was sent last of those received
	uint64_t burst_sum_ns;  // of this burst
	uint64_t last_mean_ns;  // of the last burst with probes
	uint32_t last_sequence;
	uint32_t burst_probes; // of this burst
	bool has_last, has_mean;
};

// Allocate both histograms. Returns 0, or -ENOMEM; jitter_release() either way.
int jitter_init(struct jitter *j);
void jitter_release(struct jitter *j);

// Forget all probes and counts.
void jitter_reset(struct jitter *j);

// A unique probe with this number of its stream, received after this delay.
void jitter_probe(struct jitter *j, uint32_t sequence, uint64_t delay_ns);

// A receive burst ends; only needed for those that hold probes of the stream.
void jitter_burst_end(struct jitter *j);
