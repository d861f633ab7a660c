// SPDX-License-Identifier: BSD-3-Clause
// patch: the least a switch can do, a cross-connect of two ports. Frames are not looked at.
// rx_packets == tx_packets + drop_tx_full, always.
#include <errno.h>
#include <stdlib.h>

#include "port.h"
#include "task.h"
#include "task_alloc.h"

enum { BURST_DEFAULT = 32 };

struct patch {
	struct task task;
	uint16_t burst;
};

static int patch_create(const struct config_task *config, struct port *const *ports, struct task **out)
{
	struct patch *p = task_alloc(sizeof(*p), &patch_ops, config, ports);

	if (!p)
		return -ENOMEM;
	p->burst = config->burst ? (uint16_t)config->burst : BURST_DEFAULT;
	*out = &p->task;
	return 0;
}

static void patch_destroy(struct task *task)
{
	free(task);
}

static inline uint16_t forward(struct task *task, const struct port *in, const struct port *out,
                               uint16_t burst)
{
	struct rte_mbuf *pkts[CONFIG_BURST_MAX];
	uint16_t n = port_receive(in, pkts, burst), dropped;

	if (n == 0)
		return 0;
	dropped = port_send_drop(out, pkts, n);
	task->counters.rx_packets += n;
	task->counters.tx_packets += n - dropped;
	task->counters.drop_tx_full += dropped;
	return n;
}

static unsigned patch_poll(struct task *task, uint64_t now_tsc)
{
	uint16_t burst = ((struct patch *)task)->burst;

	return forward(task, task->ports[0], task->ports[1], burst) +
	       forward(task, task->ports[1], task->ports[0], burst);
}

const struct task_ops patch_ops = {
        .kind = "patch",
        .ports_min = 2,
        .ports_max = 2,
        .receives = true,
        .sends = true,
        .create = patch_create,
        .destroy = patch_destroy,
        .poll = patch_poll,
};
