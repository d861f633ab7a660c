// SPDX-License-Identifier: BSD-3-Clause
// What a function does with frames of a direction that it has nothing to say about: what l2fwd does. New
// addresses, and frames too short for them are dropped. Pure but for the frames.
#pragma once

#include "nf/vnf.h"

enum { FORWARD_AHEAD = 4 }; // frames that are fetched ahead

_Static_assert(VNF_MACS_BYTES == sizeof(uint64_t) + sizeof(uint32_t), "written at once");

static inline void forward_verdicts(const struct vnf *vnf, unsigned in, const struct vnf_frame *frames,
                                    unsigned n, unsigned runt, uint8_t *verdicts)
{
	for (unsigned i = 0; i < n; i++)
		verdicts[i] =
		        (uint8_t)(frames[i].length < RTE_ETHER_HDR_LEN ? VNF_DROP | runt : vnf->out[in]);
}

// As struct vnf_ops's process(). runt: the kind's drop reason.
static inline bool forward_burst(const struct vnf *vnf, unsigned in, const struct vnf_frame *frames,
                                 unsigned n, unsigned runt, uint8_t *verdicts)
{
	const uint8_t *macs = vnf->macs[vnf->out[in]];
	uint64_t first; // copies, in registers: what is written to a frame could be macs
	uint32_t rest;
	bool runts = false;

	memcpy(&first, macs, sizeof(first));
	memcpy(&rest, macs + sizeof(first), sizeof(rest));
	for (unsigned i = 0; i < n; i++)
		if (likely(frames[i].length >= RTE_ETHER_HDR_LEN)) {
			memcpy(frames[i].data, &first, sizeof(first));
			memcpy(frames[i].data + sizeof(first), &rest, sizeof(rest));
		} else {
			runts = true;
		}
	if (unlikely(runts))
		forward_verdicts(vnf, in, frames, n, runt, verdicts);
	return !runts;
}
