// SPDX-License-Identifier: BSD-3-Clause
// Memory and reading of the latency histogram, and differences of delays.
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tester/histogram.h"

static_assert(HISTOGRAM_HIGHEST_NS >> (HISTOGRAM_DOUBLINGS - 1) < 2 * HISTOGRAM_HALF,
              "the highest value has a bucket");

struct histogram *histogram_create(void)
{
	return calloc(1, sizeof(struct histogram));
}

void histogram_reset(struct histogram *h)
{
	if (h->total == 0 && h->overflow == 0)
		return; // 200 KB that need not go through the cache
	memset(h, 0, sizeof(*h));
}

int histogram_next(const struct histogram *h, uint32_t *index, uint64_t *value_ns, uint64_t *count)
{
	for (uint32_t i = *index; i < HISTOGRAM_BUCKETS; i++) {
		if (h->counts[i] == 0)
			continue;
		*index = i + 1;
		*value_ns = histogram_value_ns(i);
		*count = h->counts[i];
		return 1;
	}
	*index = HISTOGRAM_BUCKETS;
	return 0;
}

// --- Jitter ----------------------------------------------------------------------------------------------

// Only probes and bursts get here, not each frame: nothing is tuned.

int jitter_init(struct jitter *j)
{
	*j = (struct jitter){
	        .ipdv = histogram_create(), .rises = histogram_create(), .falls = histogram_create()};
	return j->ipdv && j->rises && j->falls ? 0 : -ENOMEM;
}

void jitter_release(struct jitter *j)
{
	free(j->ipdv);
	free(j->rises);
	free(j->falls);
	*j = (struct jitter){0};
}

void jitter_reset(struct jitter *j)
{
	histogram_reset(j->ipdv);
	histogram_reset(j->rises);
	histogram_reset(j->falls);
	*j = (struct jitter){.ipdv = j->ipdv, .rises = j->rises, .falls = j->falls};
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

void jitter_probe(struct jitter *j, uint32_t sequence, uint64_t delay_ns)
{
	if (delay_ns > HISTOGRAM_HIGHEST_NS)
		return;
	if (j->has_last && (int32_t)(sequence - j->last_sequence) < 0)
		return;
	if (j->has_last)
		histogram_record(j->ipdv, distance(delay_ns, j->last_delay_ns));
	j->last_delay_ns = delay_ns;
	j->last_sequence = sequence;
	j->has_last = true;
}

void jitter_burst_end(struct jitter *j)
{
	uint64_t mean_ns;

	if (j->burst_frames == 0)
		return;
	mean_ns = j->burst_sum_ns / j->burst_frames;
	if (j->has_mean)
		histogram_record(mean_ns < j->last_mean_ns ? j->falls : j->rises,
		                 distance(mean_ns, j->last_mean_ns));
	j->last_mean_ns = mean_ns;
	j->has_mean = true;
	j->burst_sum_ns = 0;
	j->burst_frames = 0;
}
