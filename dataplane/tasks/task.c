// SPDX-License-Identifier: BSD-3-Clause
// The kinds of task there are, and what they have in common. A new kind is its file and a line here.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "port/port.h"
#include "tasks/task.h"

static const struct task_ops *const kinds[] = {
        &generator_ops,    &monitor_ops,     &l2fwd_ops,      &patch_ops,         &bridge_ops,
        &l3fwd_ops,        &firewall_ops,    &nat44_ops,      &load_balancer_ops, &rate_limiter_ops,
        &flow_monitor_ops, &fib_offload_ops, &fib_source_ops,
};

const struct task_ops *task_ops_find(const char *kind)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i]->kind, kind) == 0)
			return kinds[i];
	return NULL;
}

const char *task_kinds(void)
{
	static char names[512];
	size_t used = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && used < sizeof(names); i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? " " : "",
		                         kinds[i]->kind);
	return names;
}

uint64_t task_drop_tx_full(const struct task *task)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < CONFIG_TASK_PORTS_MAX; i++)
		total += task->counters.drop_tx_full[i];
	return total;
}

void task_report_drops(const struct task *task, json_t *object)
{
	json_t *by_port = json_object();

	for (unsigned i = 0; i < task->port_count; i++) {
		const char *name = task->ports[i]->config.name;
		json_int_t n = (json_int_t)task->counters.drop_tx_full[i];

		// An echo names its port twice.
		n += json_integer_value(json_object_get(json_object_get(by_port, name), "tx_full"));
		json_object_set_new(by_port, name, json_pack("{sI}", "tx_full", n));
	}
	json_object_set_new(object, "drops",
	                    json_pack("{sI}", "tx_full", (json_int_t)task_drop_tx_full(task)));
	json_object_set_new(object, "drops_by_port", by_port);
}

void *task_alloc(size_t size, const struct task_ops *ops, const struct config_task *config,
                 struct port *const *ports)
{
	const size_t line = _Alignof(struct task_counters);
	struct task *task = aligned_alloc(line, (size + line - 1) / line * line);

	if (!task) {
		LOG_ERROR("task %s: no memory", config->name);
		return NULL;
	}
	memset(task, 0, size);
	task->ops = ops;
	memcpy(task->name, config->name, sizeof(task->name));
	task->queue = (uint16_t)config->queue;
	task->port_count = config->port_count;
	for (unsigned i = 0; i < config->port_count; i++)
		task->ports[i] = ports[i];
	return task;
}
