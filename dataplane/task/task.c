// SPDX-License-Identifier: BSD-3-Clause
// The kinds of task there are, and what they have in common.
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/schema.h"
#include "port/port.h"
#include "task/task.h"

enum { KINDS_MAX = 64 };

static const struct task_ops *kinds[KINDS_MAX]; // by name
static size_t kind_count;

_Thread_local struct poll_turn poll_turn;
_Atomic(uint64_t) poll_gap_end_tsc;

// One is torn if it is read while it is written: then a gap that ends now is not known yet, or the oldest no more.
static struct {
	_Atomic(uint64_t) begin_tsc, end_tsc;
} gaps[POLL_GAPS];
static _Atomic(unsigned) gap_count;

void poll_gap_note(uint64_t begin_tsc, uint64_t end_tsc)
{
	unsigned at = atomic_fetch_add(&gap_count, 1) % POLL_GAPS;
	uint64_t last = atomic_load_explicit(&poll_gap_end_tsc, memory_order_relaxed);

	atomic_store_explicit(&gaps[at].begin_tsc, begin_tsc, memory_order_relaxed);
	atomic_store_explicit(&gaps[at].end_tsc, end_tsc, memory_order_relaxed);
	while (last < end_tsc && !atomic_compare_exchange_weak(&poll_gap_end_tsc, &last, end_tsc))
		;
}

uint64_t poll_gap_ticks(uint64_t from_tsc, uint64_t until_tsc)
{
	uint64_t ticks = 0;

	for (unsigned i = 0; i < POLL_GAPS; i++) {
		uint64_t begin = atomic_load_explicit(&gaps[i].begin_tsc, memory_order_relaxed);
		uint64_t end = atomic_load_explicit(&gaps[i].end_tsc, memory_order_relaxed);

		begin = RTE_MAX(begin, from_tsc);
		end = RTE_MIN(end, until_tsc);
		ticks += end > begin ? end - begin : 0;
	}
	return ticks;
}

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
        {ARRAY_FIELD("ports", FIELD_NAME, struct config_task, ports, port_count, 1, CONFIG_TASK_PORTS_MAX),
         .required = true},
        {UINT_FIELD("queue", struct config_task, queue, 0, CONFIG_QUEUES_MAX - 1)},
        {UINT_FIELD("burst", struct config_task, burst, 1, CONFIG_BURST_MAX)},
        {0},
};

// The key belongs to another kind: the user has probably confused the two.
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

static int settings_fill(const struct task_ops *ops, const struct config_task *config, void *settings,
                         const char *where, char *error)
{
	const struct field *keys = ops->settings_keys ? ops->settings_keys : no_keys;

	if (ops->settings_defaults)
		memcpy(settings, ops->settings_defaults, ops->settings_size);
	if (config->object &&
	    (check_keys(config, keys, error) ||
	     schema_decode_beside(config->object, keys, task_common_keys, settings, where, error)))
		return -EINVAL;
	return ops->settings_check ? ops->settings_check(config, settings, where, error) : 0;
}

int task_settings_parse(const struct task_ops *ops, struct config_task *config, const char *where,
                        char *error)
{
	config->ops = ops;
	config->settings = calloc(1, ops->settings_size + 1);
	if (!config->settings)
		return config_error(error, "task %s: no memory for its settings", config->name);
	if (settings_fill(ops, config, config->settings, where, error) == 0)
		return 0;
	task_settings_free(ops, config->settings);
	config->settings = NULL;
	return -EINVAL;
}

void task_settings_free(const struct task_ops *ops, void *settings)
{
	if (settings && ops->settings_free)
		ops->settings_free(settings);
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
	if (config->burst == 0)
		config->burst = ops->burst ? ops->burst : TASK_BURST;
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

// --- Methods -----------------------------------------------------------------------------------------------

static json_t *call(struct task *task, const struct task_method *method, const json_t *params,
                    uint64_t now_tsc, char *error)
{
	static const struct field task_key[] = {{.key = "task", .type = FIELD_ANY}, {0}};
	alignas(max_align_t) char decoded[TASK_PARAMS_MAX] = {0};

	if (method->defaults)
		memcpy(decoded, method->defaults, method->size);
	if (params && schema_decode_beside(params, method->fields ? method->fields : no_keys, task_key,
	                                   decoded, "params", error))
		return NULL;
	return method->call(task, decoded, now_tsc, error);
}

json_t *task_call(struct task *task, const char *method, const json_t *params, uint64_t now_tsc, char *error)
{
	const struct task_method *methods = task->ops->methods;
	size_t used;

	for (const struct task_method *m = methods; m && m->name; m++)
		if (strcmp(m->name, method) == 0)
			return call(task, m, params, now_tsc, error);
	used = (size_t)snprintf(error, CONFIG_ERROR_MAX,
	                        "kind %s has no method \"%.40s\"; valid:", task->ops->kind, method);
	for (const struct task_method *m = methods; m && m->name && used < CONFIG_ERROR_MAX; m++)
		used += (size_t)snprintf(error + used, CONFIG_ERROR_MAX - used, " %s", m->name);
	return NULL;
}

json_t *task_page(const char *key, json_t *items, bool more, uint64_t next)
{
	return json_pack("{s:o, s:o}", key, items, "next",
	                 more ? json_integer((json_int_t)next) : json_null());
}

// --- What is seen of a task --------------------------------------------------------------------------------

uint64_t task_drop_tx_full(const struct task *task)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < CONFIG_TASK_PORTS_MAX; i++)
		total += counter_read(&task->counters.drop_tx_full[i]);
	return total;
}

static void report_drops(const struct task *task, json_t *object)
{
	json_t *by_port = json_object();

	for (unsigned i = 0; i < task->port_count; i++) {
		const char *name = task->ports[i]->config.name;
		json_int_t n = (json_int_t)counter_read(&task->counters.drop_tx_full[i]);

		// An echo names its port twice.
		n += json_integer_value(json_object_get(json_object_get(by_port, name), "tx_full"));
		json_object_set_new(by_port, name, json_pack("{sI}", "tx_full", n));
	}
	json_object_set_new(object, "drops",
	                    json_pack("{sI}", "tx_full", (json_int_t)task_drop_tx_full(task)));
	json_object_set_new(object, "drops_by_port", by_port);
}

static const struct counter common_counters[] = {
        COUNTER("polls", struct task_counters, polls),
        COUNTER("busy_polls", struct task_counters, busy_polls),
        COUNTER("busy_cycles", struct task_counters, busy_cycles),
        COUNTER("idle_cycles", struct task_counters, idle_cycles),
        COUNTER("rx_packets", struct task_counters, rx_packets),
        COUNTER("tx_packets", struct task_counters, tx_packets),
        {0},
};

static const struct counter burst_counters[] = {
        COUNTER("rx_bursts", struct task_counters, rx_bursts),
        COUNTER("rx_full_bursts", struct task_counters, rx_full_bursts),
        {0},
};

void task_report(const struct task *task, json_t *object, uint64_t now_tsc, bool whole)
{
	const struct task_ops *ops = task->ops;
	json_t *own = json_object();

	counters_report(common_counters, &task->counters, NULL, object);
	if (ops->bursts)
		counters_report(burst_counters, &task->counters, NULL, object);
	report_drops(task, object);
	if (ops->report && whole)
		ops->report(task, own, now_tsc);
	counters_report(ops->drops, task, NULL, json_object_get(object, "drops"));
	counters_report(ops->counters, task, NULL, own);
	if (json_object_size(own))
		json_object_set(object, ops->kind, own);
	json_decref(own);
}

void task_clear(struct task *task)
{
	if (task->ops->clear)
		task->ops->clear(task);
	task->counters = (struct task_counters){0};
	counters_clear(task->ops->drops, task);
	counters_clear(task->ops->counters, task);
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
