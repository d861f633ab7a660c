// SPDX-License-Identifier: BSD-3-Clause
// Differences of delays. Only probes get here, a few thousand a second: nothing is tuned.
#include <errno.h>
#include <stdlib.h>

#include "lib/jitter.h"

int jitter_init(struct jitter *j)
{
	*j = (struct jitter){.ipdv = histogram_create(), .burst = histogram_create()};
	return j->ipdv && j->burst ? 0 : -ENOMEM;
}

void jitter_release(struct jitter *j)
{
	free(j->ipdv);
	free(j->burst);
	j->ipdv = j->burst = NULL;
}

void jitter_reset(struct jitter *j)
{
	struct histogram *ipdv = j->ipdv, *burst = j->burst;

	histogram_reset(ipdv);
	histogram_reset(burst);
	*j = (struct jitter){.ipdv = ipdv, .burst = burst};
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

void jitter_probe(struct jitter *j, uint32_t sequence, uint64_t delay_ns)
{
	if (delay_ns > HISTOGRAM_HIGHEST_NS)
		return;
	j->burst_sum_ns += delay_ns;
	j->burst_probes++;
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

	if (j->burst_probes == 0)
		return;
	mean_ns = j->burst_sum_ns / j->burst_probes;
	if (j->has_mean)
		histogram_record(j->burst, distance(mean_ns, j->last_mean_ns));
	j->last_mean_ns = mean_ns;
	j->has_mean = true;
	j->burst_sum_ns = 0;
	j->burst_probes = 0;
}
