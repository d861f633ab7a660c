// SPDX-License-Identifier: BSD-3-Clause
// l2fwd: the VNF of the papers (METHODOLOGY.md s4). What comes in on one port leaves by the other with the
// peer's MAC address as destination and the port's own as source. One port, or the same twice, is an echo.
//
// Frames too short for an Ethernet header are dropped and counted as "runt". No settings.
#include "nf/forward.h"

enum { RUNT };

static const struct counter drops[] = {VNF_DROP_COUNTER(RUNT, "runt"), {0}};

static bool l2fwd_process(struct vnf *vnf, unsigned in, struct vnf_frame *frames, unsigned n,
                          uint64_t now_tsc, uint8_t *verdicts)
{
	return forward_burst(vnf, in, frames, n, RUNT, verdicts);
}

static const struct vnf_ops l2fwd_vnf = {
        .size = sizeof(struct vnf),
        .process = l2fwd_process,
};

static const struct task_ops l2fwd_ops = {
        VNF_TASK_OPS("l2fwd", &l2fwd_vnf, drops, vnf_keys_macs, struct vnf_settings),
        .ports_min = 1,
        .ports_max = 2,
};
TASK_KIND(l2fwd_ops)
