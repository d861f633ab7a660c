// SPDX-License-Identifier: BSD-3-Clause
// The kinds of task there are, and what they have in common.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/schema.h"
#include "port/port.h"
#include "tasks/task.h"

enum { KINDS_MAX = 64 };

static const struct task_ops *kinds[KINDS_MAX]; // by name
static size_t kind_count;

void task_register(const struct task_ops *ops)
{
	size_t at = kind_count++;

	for (; at > 0 && strcmp(kinds[at - 1]->kind, ops->kind) > 0; at--)
		kinds[at] = kinds[at - 1];
	kinds[at] = ops;
}

const struct task_ops *task_ops_find(const char *kind)
{
	for (size_t i = 0; i < kind_count; i++)
		if (strcmp(kinds[i]->kind, kind) == 0)
			return kinds[i];
	return NULL;
}

const char *task_kinds(void)
{
	static char names[KINDS_MAX * CONFIG_NAME_MAX];
	size_t used = 0;

	for (size_t i = 0; i < kind_count; i++)
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? " " : "",
		                         kinds[i]->kind);
	return names;
}

// --- Settings, and tasks made of them ----------------------------------------------------------------------

const struct field task_common_keys[] = {
        {.key = "name", FIELD(FIELD_NAME, struct config_task, name), .required = true},
        {.key = "kind", FIELD(FIELD_NAME, struct config_task, kind), .required = true},
        {.key = "ports",
         FIELD(FIELD_NAMES, struct config_task, ports),
         .required = true,
         .min = 1,
         .max = CONFIG_TASK_PORTS_MAX,
         .count_offset = offsetof(struct config_task, port_count)},
        {.key = "queue", FIELD(FIELD_UINT, struct config_task, queue), .max = CONFIG_QUEUES_MAX - 1},
        {.key = "burst", FIELD(FIELD_UINT, struct config_task, burst), .min = 1, .max = CONFIG_BURST_MAX},
        {0},
};

// A key of another kind: who gives it takes this one for that.
static int check_keys(const struct config_task *config, const struct field *keys, char *error)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)config->object, key, value) {
		bool known = false;

		for (const struct field *field = task_common_keys; field->key; field++)
			known = known || strcmp(field->key, key) == 0;
		for (const struct field *field = keys; field->key; field++)
			known = known || strcmp(field->key, key) == 0;
		if (!known)
			return config_error(error, "task %s: kind %s has no \"%.40s\"; leave it out",
			                    config->name, config->kind, key);
	}
	return 0;
}

static const struct field no_keys[] = {{0}};

void *task_settings_decode(const struct config_task *config, const struct field *keys, const void *defaults,
                           size_t size, const char *where, char *error)
{
	void *settings = malloc(size);

	if (!settings) {
		config_error(error, "task %s: no memory for its settings", config->name);
		return NULL;
	}
	memcpy(settings, defaults, size);
	if (config->object &&
	    (check_keys(config, keys, error) ||
	     schema_decode_beside(config->object, keys, task_common_keys, settings, where, error))) {
		free(settings);
		return NULL;
	}
	return settings;
}

int task_settings_parse(const struct task_ops *ops, struct config_task *config, const char *where,
                        char *error)
{
	config->ops = ops;
	if (!ops->settings_parse)
		return config->object ? check_keys(config, no_keys, error) : 0;
	config->settings = ops->settings_parse(config, where, error);
	return config->settings ? 0 : -EINVAL;
}

void task_settings_free(const struct task_ops *ops, void *settings)
{
	if (settings && ops->settings_free)
		ops->settings_free(settings);
	else
		free(settings);
}

int task_create(const struct task_ops *ops, struct config_task *config, struct port *const *ports,
                struct task **out)
{
	char error[CONFIG_ERROR_MAX] = "";
	int status = 0;

	if (!config->settings && task_settings_parse(ops, config, config->name, error) != 0) {
		LOG_ERROR("%s", error);
		return -EINVAL;
	}
	status = ops->create(config, ports, out);
	if (status == 0)
		(*out)->settings = config->settings;
	else
		task_settings_free(ops, config->settings);
	config->settings = NULL;
	return status;
}

void task_destroy(struct task *task)
{
	const struct task_ops *ops = task->ops;
	void *settings = task->settings;

	ops->destroy(task);
	task_settings_free(ops, settings);
}

json_t *task_call(struct task *task, const char *method, const json_t *params, uint64_t now_tsc, char *error)
{
	const struct task_method *methods = task->ops->methods;
	size_t used;

	for (const struct task_method *m = methods; m && m->name; m++)
		if (strcmp(m->name, method) == 0)
			return m->call(task, params, now_tsc, error);
	used = (size_t)snprintf(error, CONFIG_ERROR_MAX,
	                        "kind %s has no method \"%.40s\"; valid:", task->ops->kind, method);
	for (const struct task_method *m = methods; m && m->name && used < CONFIG_ERROR_MAX; m++)
		used += (size_t)snprintf(error + used, CONFIG_ERROR_MAX - used, " %s", m->name);
	return NULL;
}

// --- What is seen of a task --------------------------------------------------------------------------------

uint64_t task_drop_tx_full(const struct task *task)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < CONFIG_TASK_PORTS_MAX; i++)
		total += task->counters.drop_tx_full[i];
	return total;
}

static void report_drops(const struct task *task, json_t *object)
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

void task_report(const struct task *task, json_t *object, uint64_t now_tsc)
{
	report_drops(task, object);
	if (task->ops->report)
		task->ops->report(task, object, now_tsc);
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
