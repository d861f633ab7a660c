// SPDX-License-Identifier: BSD-3-Clause
// What a function does with frames of a direction that it has nothing to say about: what l2fwd does. New
// addresses, and frames too short for them are dropped. Pure but for the frames.
#pragma once

#include "tasks/vnf/vnf.h"

enum { FORWARD_AHEAD = 4, FORWARD_RUNT = 0 }; // runts: drop reason of a kind that only forwards

static inline void forward_verdicts(const struct vnf *vnf, unsigned in, const struct vnf_frame *frames,
                                    unsigned n, unsigned runt, uint8_t *verdicts)
{
	for (unsigned i = 0; i < n; i++)
		verdicts[i] =
		        (uint8_t)(frames[i].length < RTE_ETHER_HDR_LEN ? VNF_DROP | runt : vnf->out[in]);
}

// As struct vnf_ops's process(). runt: the kind's drop reason. vnf.c has prefetched mbufs.
static inline bool forward_burst(const struct vnf *vnf, unsigned in, const struct vnf_frame *frames,
                                 unsigned n, unsigned runt, uint8_t *verdicts)
{
	uint8_t macs[VNF_MACS_BYTES]; // a copy, in registers: what is written to a frame could be vnf->macs
	bool runts = false;

	memcpy(macs, vnf->macs[vnf->out[in]], sizeof(macs));
	for (unsigned i = 0; i < n; i++)
		if (likely(frames[i].length >= RTE_ETHER_HDR_LEN))
			memcpy(frames[i].data, macs, sizeof(macs));
		else
			runts = true;
	if (unlikely(runts))
		forward_verdicts(vnf, in, frames, n, runt, verdicts);
	return !runts;
}
