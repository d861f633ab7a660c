// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/tester/profile_making.h"

#include <rte_byteorder.h>
#include <rte_common.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND_MAX = 1 << 24 };

static int size_check(const struct making *m, uint32_t size)
{
	uint32_t least = m->p->own + FRAME_OWN_BYTES + FRAME_FCS_BYTES;
	uint32_t most = RTE_MIN(m->room + FRAME_FCS_BYTES, (uint32_t)FRAME_SIZE_MAX);

	if (size >= least && size <= most)
		return 0;
	snprintf(m->error, SCHEMA_ERROR_MAX,
	         "%s.sizes: a frame of %u bytes: IPv%u and %s%s take frames of at least %u, and the buffers "
	         "of "
	         "memory.mbuf_data_bytes hold at most %u",
	         m->where, size, m->r->ip, m->r->transport ? "TCP" : "UDP",
	         m->r->vlan ? " with a VLAN tag" : "", least, most);
	return -EINVAL;
}

// Lengths in the headers, and what they and the pattern add to the sums.
static struct profile_size size_make(const struct profile *p, uint16_t frame_size)
{
	uint16_t length = frame_size - FRAME_FCS_BYTES, head = p->own + FRAME_OWN_BYTES;
	struct profile_size size = {
	        .length = length,
	        .ip_bytes_be = rte_cpu_to_be_16(length - (p->version == 6 ? p->l4 : p->l3)),
	        .l4_bytes_be = rte_cpu_to_be_16(length - p->l4),
	};

	size.ip_sum = size.ip_bytes_be;
	size.l4_sum = frame_fold64(frame_sum16(frame_pattern() + head, length - head) +
	                           (p->protocol == IPPROTO_UDP ? 2u : 1u) * size.l4_bytes_be);
	return size;
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
	return b ? gcd(b, a % b) : a;
}

// Each size as often as its weight says, over the greatest common divisor of all, then shuffled (Fisher and
// Yates): the proportions are exact over each round.
static int round_make(const struct making *m, const struct profile_sizes *sizes)
{
	uint64_t length = 0, random = profile_key(m, KEY_ROUND);
	struct profile *p = m->p;
	uint32_t divisor = 0;

	for (unsigned i = 0; i < sizes->count; i++) {
		divisor = gcd(divisor, sizes->of[i].weight);
		length += sizes->of[i].weight;
	}
	length /= divisor;
	if (length > ROUND_MAX) {
		snprintf(m->error, SCHEMA_ERROR_MAX,
		         "%s.sizes: the weights, without their common divisor, add up to %llu; at most %d",
		         m->where, (unsigned long long)length, ROUND_MAX);
		return -EINVAL;
	}
	p->round_length = (uint32_t)length;
	p->round = malloc(length);
	if (!p->round)
		return profile_no_memory(m, "sizes");
	for (uint32_t i = 0, at = 0; i < sizes->count; at += sizes->of[i++].weight / divisor)
		memset(p->round + at, (int)i, sizes->of[i].weight / divisor);
	for (uint32_t i = p->round_length - 1; i > 0; i--) {
		uint32_t other = draw_below(draw_hash(random, i), i + 1);
		uint8_t size = p->round[i];

		p->round[i] = p->round[other];
		p->round[other] = size;
	}
	return 0;
}

int profile_sizes_make(struct making *m)
{
	struct profile_sizes *sizes = &m->r->sizes;
	double sum = 0, weights = 0;
	struct profile *p = m->p;

	if (sizes->count == 0) {
		sizes->count = 1;
		sizes->of[0].frame_size_bytes = m->flow->frame_size_bytes;
		sizes->of[0].weight = 1;
	}
	p->size_count = sizes->count;
	p->sizes = calloc(sizes->count, sizeof(*p->sizes));
	if (!p->sizes)
		return profile_no_memory(m, "sizes");
	for (unsigned i = 0; i < sizes->count; i++) {
		if (size_check(m, sizes->of[i].frame_size_bytes) != 0)
			return -EINVAL;
		p->sizes[i] = size_make(p, sizes->of[i].frame_size_bytes);
		p->longest = RTE_MAX(p->longest, p->sizes[i].length);
		sum += (double)sizes->of[i].weight * sizes->of[i].frame_size_bytes;
		weights += sizes->of[i].weight;
	}
	p->mean_frame_bytes = sum / weights;
	return round_make(m, sizes);
}
