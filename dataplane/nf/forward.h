// SPDX-License-Identifier: BSD-3-Clause
// What a function does with frames of a direction that it has nothing to say about: what l2fwd does. New
// addresses, and frames too short for them are dropped. Pure but for the frames.
#pragma once

#include "vnf.h"

enum { FORWARD_AHEAD = 4 };

// As struct vnf_ops's process(). runt: the kind's drop reason.
static inline bool forward_burst(const struct vnf *vnf, unsigned in, const struct vnf_frame *frames,
                                 unsigned n, unsigned runt, uint8_t *verdicts)
{
	unsigned out = vnf->out[in];
	bool runts = false;

	for (unsigned i = 0; i < n; i++) {
		if (i + FORWARD_AHEAD < n)
			__builtin_prefetch(frames[i + FORWARD_AHEAD].data, 1);
		verdicts[i] = (uint8_t)out;
		if (likely(frames[i].length >= RTE_ETHER_HDR_LEN)) {
			vnf_write_macs(vnf, out, frames[i].data);
		} else {
			verdicts[i] = (uint8_t)(VNF_DROP | runt);
			runts = true;
		}
	}
	return !runts;
}
