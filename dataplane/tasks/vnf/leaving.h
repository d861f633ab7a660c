// SPDX-License-Identifier: BSD-3-Clause
// Where the frames of a burst leave, by their verdicts (vnf.h). Of vnf.c.
#pragma once

#include "tasks/vnf/vnf.h"

// Whether all of a burst leaves by one port: then *out is that.
static inline bool leaving_is_uniform(const uint8_t *verdicts, unsigned n, unsigned *out)
{
	if (verdicts[0] & VNF_DROP || memcmp(verdicts, verdicts + 1, n - 1) != 0)
		return false;
	*out = verdicts[0];
	return true;
}

// The frames of a burst by the port that they leave by, each port's in order: in lists, so that as many ports
// as frames cost no more than one.
struct leaving {
	unsigned count; // of outs[]
	uint8_t outs[CONFIG_BURST_MAX];
	uint8_t next[CONFIG_BURST_MAX], lengths[CONFIG_TASK_PORTS_MAX]; // of lists
	uint8_t first[CONFIG_TASK_PORTS_MAX], last[CONFIG_TASK_PORTS_MAX];
};

static inline void leaving_add(struct leaving *leaving, unsigned out, unsigned i)
{
	if (leaving->lengths[out]++ == 0) {
		leaving->outs[leaving->count++] = (uint8_t)out;
		leaving->first[out] = (uint8_t)i;
	} else {
		leaving->next[leaving->last[out]] = (uint8_t)i;
	}
	leaving->last[out] = (uint8_t)i;
}

// Sort a burst; drops are counted, and freed where they are mbufs (pkts, or NULL).
static inline void leaving_sort(struct leaving *leaving, struct vnf *vnf, const uint8_t *verdicts, unsigned n,
                                struct rte_mbuf **pkts)
{
	leaving->count = 0;
	memset(leaving->lengths, 0, vnf->side_count);
	for (unsigned i = 0; i < n; i++) {
		if (!(verdicts[i] & VNF_DROP)) {
			leaving_add(leaving, verdicts[i], i);
			continue;
		}
		vnf->drops[verdicts[i] & ~VNF_DROP]++;
		if (pkts)
			rte_pktmbuf_free(pkts[i]);
	}
}
