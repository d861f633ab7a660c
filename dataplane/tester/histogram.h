// SPDX-License-Identifier: BSD-3-Clause
// Latency histogram with the buckets of HdrHistogram for 1 ns .. 10 s and three significant digits
// (hdrhistogram.org): what is exported here and recorded into any HdrHistogram of the same range falls into
// the same buckets. 2048 buckets of 1 ns, then 1024 buckets for each doubling. 200 KB, allocated once;
// record() costs a few cycles.
//
// Created and freed on the control thread; one writer.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HISTOGRAM_LOWEST_NS  UINT64_C(1)
#define HISTOGRAM_HIGHEST_NS UINT64_C(10000000000)
enum {
	HISTOGRAM_SIGNIFICANT_DIGITS = 3,
	HISTOGRAM_HALF_BITS = 10, // 2^11 >= 2 * 10^3, the smallest power of two that resolves three digits
	HISTOGRAM_HALF = 1 << HISTOGRAM_HALF_BITS,
	HISTOGRAM_DOUBLINGS = 24, // 2^11 << 23 is the first beyond 10^10
	HISTOGRAM_BUCKETS = (HISTOGRAM_DOUBLINGS + 1) * HISTOGRAM_HALF,
};

struct histogram {
	uint64_t total;    // values recorded, without overflow
	uint64_t overflow; // values above HISTOGRAM_HIGHEST_NS
	uint64_t counts[HISTOGRAM_BUCKETS];
};

// Allocate an empty histogram; NULL without memory. Free with free().
struct histogram *histogram_create(void);
void histogram_reset(struct histogram *h);

// The next bucket at or after *index that is not empty: its lowest value to *value_ns, its count to *count,
// and *index moves behind it. Returns 0 at the end. Start with *index = 0.
int histogram_next(const struct histogram *h, uint32_t *index, uint64_t *value_ns, uint64_t *count);

// Bucket of a value of at most HISTOGRAM_HIGHEST_NS.
static inline uint32_t histogram_index(uint64_t value_ns)
{
	uint32_t doubling =
	        63 - HISTOGRAM_HALF_BITS - (uint32_t)__builtin_clzll(value_ns | (2 * HISTOGRAM_HALF - 1));

	return doubling * HISTOGRAM_HALF + (uint32_t)(value_ns >> doubling);
}

// Lowest value of a bucket.
static inline uint64_t histogram_value_ns(uint32_t index)
{
	uint32_t doubling = index < 2 * HISTOGRAM_HALF ? 0 : index / HISTOGRAM_HALF - 1;

	return (uint64_t)(index - doubling * HISTOGRAM_HALF) << doubling;
}

static inline void histogram_record(struct histogram *h, uint64_t value_ns)
{
	if (__builtin_expect(value_ns > HISTOGRAM_HIGHEST_NS, 0)) {
		h->overflow++;
		return;
	}
	h->total++;
	h->counts[histogram_index(value_ns)]++;
}

// --- Jitter ----------------------------------------------------------------------------------------------

// Jitter of one stream, by two definitions, in histograms of sizes in ns:
//
// ipdv: RFC 3393, size of the difference between the delays of two probes. Selection function (s3.2 there):
// successive received probes, in the order in which they were sent. A probe that comes after a later one is
// left out, and the next pair is made of those around it. Probes carry the sequence number of their stream
// and no number of their own, so a probe that was lost between two others cannot be told: the two make a
// pair.
//
// rises, falls: the generator of ic16, difference of the mean delays of two successive receive bursts, a rise or a
// fall of the mean: so the difference is known with its sign. The mean is that of all frames of the burst, reordered or
// not, so all have to be stamped: with probes alone a burst has one, and the differences are those of IPDV. Means
// are whole ns.
//
// A delay above HISTOGRAM_HIGHEST_NS is not recorded here: its overflow is counted with the latency.

struct jitter {
	struct histogram *ipdv, *rises, *falls; // rises: of 0, too
	uint64_t last_delay_ns;                 // of the probe that was sent last of those received
	uint64_t burst_sum_ns;                  // of this burst
	uint64_t last_mean_ns;                  // of the last burst
	uint32_t last_sequence;
	uint32_t burst_frames; // of this burst
	bool has_last, has_mean;
};

// Allocate the histograms. Returns 0, or -ENOMEM; jitter_release() either way.
int jitter_init(struct jitter *j);
void jitter_release(struct jitter *j);

// Forget all probes, bursts and counts.
void jitter_reset(struct jitter *j);

// A unique probe with this number of its stream, received after this delay.
void jitter_probe(struct jitter *j, uint32_t sequence, uint64_t delay_ns);

// A unique frame of a load that stamps all, probe or not, received after this delay.
static inline void jitter_frame(struct jitter *j, uint64_t delay_ns)
{
	if (__builtin_expect(delay_ns > HISTOGRAM_HIGHEST_NS, 0))
		return;
	j->burst_sum_ns += delay_ns;
	j->burst_frames++;
}

// A receive burst ends; only needed for those that hold such frames.
void jitter_burst_end(struct jitter *j);
