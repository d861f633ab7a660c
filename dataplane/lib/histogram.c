// SPDX-License-Identifier: BSD-3-Clause
// Memory, merging and reading of the latency histogram.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/histogram.h"

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

void histogram_merge(struct histogram *to, const struct histogram *from)
{
	to->total += from->total;
	to->overflow += from->overflow;
	for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		to->counts[i] += from->counts[i];
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
