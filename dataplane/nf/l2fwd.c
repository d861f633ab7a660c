// SPDX-License-Identifier: BSD-3-Clause
// l2fwd: the VNF of the papers (METHODOLOGY.md s4). What comes in on one port leaves by the other with the
// peer's MAC address as destination and the port's own as source. One port, or the same twice, is an echo.
//
// Frames too short for an Ethernet header are dropped and counted as "runt". No settings.
#include "vnf.h"

enum { DROP_RUNT };

static const char *const drops[] = {[DROP_RUNT] = "runt", NULL};

static __attribute__((noinline)) bool
verdicts_of(const struct vnf *vnf, unsigned in, const struct vnf_frame *frames, unsigned n, uint8_t *verdicts)
{
	for (unsigned i = 0; i < n; i++)
		verdicts[i] = frames[i].length < RTE_ETHER_HDR_LEN ? VNF_DROP | DROP_RUNT : vnf->out[in];
	return false;
}

static bool l2fwd_process(struct vnf *vnf, unsigned in, const struct vnf_frame *frames, unsigned n,
                          uint64_t now_tsc, uint8_t *verdicts)
{
	uint8_t macs[VNF_MACS_BYTES]; // a copy, in registers: what is written to a frame could be vnf->macs
	bool runts = false;

	memcpy(macs, vnf->macs[vnf->out[in]], sizeof(macs));
	for (unsigned i = 0; i < n; i++)
		if (unlikely(frames[i].length < RTE_ETHER_HDR_LEN))
			runts = true;
		else
			memcpy(frames[i].data, macs, sizeof(macs));
	return likely(!runts) || verdicts_of(vnf, in, frames, n, verdicts);
}

static const struct vnf_ops l2fwd_vnf = {
        .size = sizeof(struct vnf),
        .drops = drops,
        .process = l2fwd_process,
};

const struct task_ops l2fwd_ops = {
        VNF_TASK_OPS("l2fwd", &l2fwd_vnf),
        .ports_min = 1,
        .ports_max = 2,
};
