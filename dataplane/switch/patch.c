// SPDX-License-Identifier: BSD-3-Clause
// patch: the least a switch can do, a cross-connect of two ports. Frames are not looked at.
//
// With a fault it drops every n-th of the frames that it receives on either port, counted from the task's
// start, for tests of what finds losses. Clearing counters leaves that count alone: over any number of trials
// floor(frames / n) are dropped. A patch without a fault between two guests has their frames copied from ring to ring
// (port_xconnect()).
//
// rx_packets + segments_added == tx_packets + drop_tx_full + fault, always. segments_added: only of ports with offloads,
// whose frames may have to be segmented (port_send()).
#include <errno.h>
#include <stdlib.h>

#include "port/port.h"
#include "task/task.h"

struct patch {
	struct task task;
	uint16_t burst;
	uint32_t fault_interval; // frames; 0 = no fault
	uint32_t fault_passed;   // frames since the last one that was dropped
	uint64_t faults;
	uint64_t segments_added; // frames that others became, more than these were
};

struct patch_settings {
	uint32_t drop_one_in; // of so many frames, the last is dropped; 0 = none
};

static const struct field fault_keys[] = {
        {UINT_FIELD("drop_one_in", struct patch_settings, drop_one_in, 1, UINT32_MAX), .required = true},
        {0},
};
static const struct field settings_keys[] = {{.key = "fault", .type = FIELD_OBJECT, .fields = fault_keys},
                                             {0}};

static const struct counter faults[] = {COUNTER("fault", struct patch, faults), {0}};
static const struct counter added[] = {COUNTER("segments_added", struct patch, segments_added), {0}};

static const struct task_ops patch_ops, patch_hop_ops, patch_offload_ops, patch_faulty_ops;

static const struct task_ops *choose(const struct config_task *config, struct port *const *ports)
{
	if (((const struct patch_settings *)config->settings)->drop_one_in)
		return &patch_faulty_ops;
	if (port_has_offloads(ports[0]) || port_has_offloads(ports[1]))
		return &patch_offload_ops;
	return port_can_xconnect(ports[0], ports[1]) ? &patch_hop_ops : &patch_ops;
}

static int patch_create(const struct config_task *config, struct port *const *ports, struct task **out)
{
	struct patch *p = task_alloc(sizeof(*p), choose(config, ports), config, ports);

	if (!p)
		return -ENOMEM;
	p->burst = (uint16_t)config->burst;
	p->fault_interval = ((const struct patch_settings *)config->settings)->drop_one_in;
	*out = &p->task;
	return 0;
}

static void patch_destroy(struct task *task)
{
	free(task);
}

// Pass what may have offloads. Returns how many frames were sent.
static unsigned pass_any(struct patch *p, unsigned in, unsigned out, struct view *view)
{
	struct task *task = &p->task;
	unsigned n = view->count;
	struct offload_sent sent = port_send(task->ports[in], task->ports[out], task->queue, view, false);

	p->segments_added += sent.offered - n;
	counter_add(&task->counters.drop_tx_full[out], sent.offered - sent.taken);
	return sent.taken;
}

// Pass those frames of a view that are not due. Returns how many were sent.
static __attribute__((noinline)) unsigned pass_faulty(struct patch *p, unsigned in, unsigned out,
                                                      struct view *view)
{
	struct view kept;

	view_part_begin(&kept, view);
	for (unsigned i = 0; i < view->count; i++)
		if (++p->fault_passed == p->fault_interval) {
			p->fault_passed = 0;
			p->faults++;
		} else {
			view_part_add(&kept, view, i);
		}
	return pass_any(p, in, out, &kept);
}

// How frames are passed on.
enum way { PLAIN, OFFLOADS, FAULTY };

static inline __attribute__((always_inline)) unsigned forward(struct patch *p, unsigned in, unsigned out,
                                                              enum way way)
{
	struct task *task = &p->task;
	struct view view;
	unsigned n = port_peek(task->ports[in], task->queue, &view, p->burst), sent;

	if (n == 0)
		return 0;
	if (way == FAULTY) {
		sent = pass_faulty(p, in, out, &view);
	} else if (way == OFFLOADS) {
		sent = pass_any(p, in, out, &view);
	} else {
		sent = port_pass(task->ports[in], task->ports[out], task->queue, &view);
		counter_add(&task->counters.drop_tx_full[out], n - sent);
	}
	task_received(&task->counters, n, p->burst);
	counter_add(&task->counters.tx_packets, sent);
	port_release(task->ports[in], task->queue, &view);
	return n;
}

// The end of a poll of both directions.
static inline unsigned handled(struct task *task, unsigned n)
{
	if (task_warms(task, n)) {
		port_warm(task->ports[0], task->queue);
		port_warm(task->ports[1], task->queue);
	}
	return n;
}

static unsigned patch_poll(struct task *task, uint64_t now_tsc)
{
	struct patch *p = (struct patch *)task;

	return handled(task, forward(p, 0, 1, PLAIN) + forward(p, 1, 0, PLAIN));
}

static unsigned patch_offload_poll(struct task *task, uint64_t now_tsc)
{
	struct patch *p = (struct patch *)task;

	return handled(task, forward(p, 0, 1, OFFLOADS) + forward(p, 1, 0, OFFLOADS));
}

static unsigned patch_faulty_poll(struct task *task, uint64_t now_tsc)
{
	struct patch *p = (struct patch *)task;

	return forward(p, 0, 1, FAULTY) + forward(p, 1, 0, FAULTY);
}

static inline uint16_t xconnect_over(struct patch *p, unsigned in, unsigned out)
{
	struct task *task = &p->task;
	struct port_moved done = port_xconnect(task->ports[in], task->ports[out], task->queue, p->burst);

	task_received(&task->counters, done.received, p->burst);
	counter_add(&task->counters.tx_packets, done.received - done.dropped);
	counter_add(&task->counters.drop_tx_full[out], done.dropped);
	return done.received;
}

static unsigned patch_hop_poll(struct task *task, uint64_t now_tsc)
{
	struct patch *p = (struct patch *)task;

	return handled(task, xconnect_over(p, 0, 1) + xconnect_over(p, 1, 0));
}

#define PATCH_OPS                                                                                            \
	.kind = "patch", .ports_min = 2, .ports_max = 2, .receives = true, .sends = true, .bursts = true,    \
	.offloads = true, .settings_keys = settings_keys, .settings_size = sizeof(struct patch_settings),    \
	.create = patch_create, .destroy = patch_destroy

static const struct task_ops patch_ops = {PATCH_OPS, .poll = patch_poll};
TASK_KIND(patch_ops)

static const struct task_ops patch_hop_ops = {PATCH_OPS, .poll = patch_hop_poll};

static const struct task_ops patch_offload_ops = {PATCH_OPS, .poll = patch_offload_poll, .counters = added};

static const struct task_ops patch_faulty_ops = {PATCH_OPS, .poll = patch_faulty_poll, .drops = faults};
