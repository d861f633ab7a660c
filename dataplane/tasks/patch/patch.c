// SPDX-License-Identifier: BSD-3-Clause
// patch: the least a switch can do, a cross-connect of two ports. Frames are not looked at.
//
// With a fault it drops every n-th of the frames that it receives on either port, counted from the task's
// start, for tests of what finds losses. Clearing counters leaves that count alone: over any number of trials
// floor(frames / n) are dropped. A patch without a fault between two guests has their frames copied from ring to ring
// (port_hop_of()).
//
// rx_packets == tx_packets + drop_tx_full + fault, always.
#include <errno.h>
#include <stdlib.h>

#include "port/port.h"
#include "tasks/task.h"

enum { BURST_DEFAULT = 32 };

struct patch {
	struct task task;
	uint16_t burst;
	uint32_t fault_interval; // frames; 0 = no fault
	uint32_t fault_passed;   // frames since the last one that was dropped
	uint64_t faults;
};

struct patch_settings {
	uint32_t drop_one_in; // of so many frames, the last is dropped; 0 = none
};

static const struct field fault_keys[] = {
        {.key = "drop_one_in",
         FIELD(FIELD_UINT, struct patch_settings, drop_one_in),
         .required = true,
         .min = 1,
         .max = UINT32_MAX},
        {0},
};

static const struct field settings_keys[] = {{.key = "fault", .type = FIELD_OBJECT, .fields = fault_keys},
                                             {0}};

static void *patch_settings_parse(const struct config_task *config, const char *where, char *error)
{
	static const struct patch_settings defaults = {0};

	return task_settings_decode(config, settings_keys, &defaults, sizeof(defaults), where, error);
}

static const struct task_ops patch_ops, patch_hop_ops;

static const struct task_ops *choose(const struct config_task *config, struct port *const *ports)
{
	const struct patch_settings *settings = config->settings;

	return settings->drop_one_in == 0 && port_can_hop(ports[0], ports[1]) ? &patch_hop_ops : &patch_ops;
}

static int patch_create(const struct config_task *config, struct port *const *ports, struct task **out)
{
	struct patch *p = task_alloc(sizeof(*p), choose(config, ports), config, ports);

	if (!p)
		return -ENOMEM;
	p->burst = config->burst ? (uint16_t)config->burst : BURST_DEFAULT;
	p->fault_interval = ((const struct patch_settings *)config->settings)->drop_one_in;
	*out = &p->task;
	return 0;
}

static void patch_destroy(struct task *task)
{
	free(task);
}

// Pass those frames of a view that are not due. Returns how many were sent.
static __attribute__((noinline)) unsigned pass_faulty(struct patch *p, unsigned in, unsigned out,
                                                      struct view *view)
{
	struct task *task = &p->task;
	struct view kept;
	unsigned sent;

	view_part_begin(&kept, view);
	for (unsigned i = 0; i < view->count; i++)
		if (++p->fault_passed == p->fault_interval) {
			p->fault_passed = 0;
			p->faults++;
		} else {
			view_part_add(&kept, view, i);
		}
	sent = port_pass(task->ports[in], task->ports[out], task->queue, &kept);
	task->counters.drop_tx_full[out] += kept.count - sent;
	return sent;
}

static inline unsigned pass(struct patch *p, unsigned in, unsigned out, struct view *view, unsigned n)
{
	struct task *task = &p->task;
	unsigned sent;

	if (unlikely(p->fault_interval))
		return pass_faulty(p, in, out, view);
	sent = port_pass(task->ports[in], task->ports[out], task->queue, view);
	task->counters.drop_tx_full[out] += n - sent;
	return sent;
}

static inline unsigned forward(struct patch *p, unsigned in, unsigned out)
{
	struct task *task = &p->task;
	struct view view;
	unsigned n = port_peek(task->ports[in], task->queue, &view, p->burst);

	if (n == 0)
		return 0;
	task->counters.tx_packets += pass(p, in, out, &view, n);
	task_received(&task->counters, n, p->burst);
	port_release(task->ports[in], task->queue, &view);
	return n;
}

// Both directions had nothing.
static inline unsigned idle(const struct task *task)
{
	port_warm(task->ports[0], task->queue);
	port_warm(task->ports[1], task->queue);
	return 0;
}

static unsigned patch_poll(struct task *task, uint64_t now_tsc)
{
	struct patch *p = (struct patch *)task;
	unsigned n = forward(p, 0, 1) + forward(p, 1, 0);

	return n ? n : idle(task);
}

static inline uint16_t hop_over(struct patch *p, unsigned in, unsigned out)
{
	struct task *task = &p->task;
	struct port_hop done = port_hop_of(task->ports[in], task->ports[out], task->queue, p->burst);

	task_received(&task->counters, done.received, p->burst);
	task->counters.tx_packets += done.received - done.dropped;
	task->counters.drop_tx_full[out] += done.dropped;
	return done.received;
}

static unsigned patch_hop_poll(struct task *task, uint64_t now_tsc)
{
	struct patch *p = (struct patch *)task;
	unsigned n = hop_over(p, 0, 1) + hop_over(p, 1, 0);

	return n ? n : idle(task);
}

static void patch_clear(struct task *task)
{
	((struct patch *)task)->faults = 0;
}

static void patch_report(const struct task *task, json_t *object, uint64_t now_tsc)
{
	const struct patch *p = (const struct patch *)task;

	if (p->fault_interval)
		json_object_set_new(json_object_get(object, "drops"), "fault",
		                    json_integer((json_int_t)p->faults));
}

#define PATCH_OPS                                                                                            \
	.kind = "patch", .ports_min = 2, .ports_max = 2, .receives = true, .sends = true, .bursts = true,    \
	.settings_parse = patch_settings_parse, .create = patch_create, .destroy = patch_destroy,            \
	.clear = patch_clear, .report = patch_report

static const struct task_ops patch_ops = {PATCH_OPS, .poll = patch_poll};
TASK_KIND(patch_ops)

static const struct task_ops patch_hop_ops = {PATCH_OPS, .poll = patch_hop_poll};
