// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/methods.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_version.h>

#include "runtime/planed.h"
#include "runtime/report.h"
#include "base/clock.h"
#include "base/schema.h"
#include "tester/stamps.h"
#include "task/task.h"
#include "tester/probe_tap.h"
#include "runtime/traffic.h"

// A method answers with a new object, or NULL after setting *code and error.
typedef json_t *method_fn(struct planed *planed, const json_t *params, int *code, char *error);

static json_t *do_version(struct planed *planed, const json_t *params, int *code, char *error)
{
	return json_pack("{s:s, s:s, s:i, s:I, s:I, s:i}", "planed", PLANED_VERSION, "dpdk", rte_version(),
	                 "protocol", CONFIG_VERSION, "tsc_hz", (json_int_t)clock_hz(), "tsc_nominal_hz",
	                 (json_int_t)clock_nominal_hz(), "pid", (int)getpid());
}

static json_t *do_config_get(struct planed *planed, const json_t *params, int *code, char *error)
{
	return json_incref(planed->document);
}

static json_t *do_config_apply(struct planed *planed, const json_t *params, int *code, char *error)
{
	struct config *config = config_decode(params, error);
	json_t *added, *removed, *document;

	if (config == NULL) {
		*code = RPC_INVALID_PARAMS;
		return NULL;
	}
	added = json_array();
	removed = json_array();
	document = json_deep_copy(params);
	if (planed_apply(planed, config, document, added, removed, error)) {
		*code = RPC_REFUSED;
		config_free(config);
		json_decref(added);
		json_decref(removed);
		json_decref(document);
		return NULL;
	}
	json_decref(document);
	return json_pack("{s:o, s:o}", "added", added, "removed", removed);
}

static json_t *do_ports_get(struct planed *planed, const json_t *params, int *code, char *error)
{
	return report_ports(planed);
}

static json_t *do_traffic_start(struct planed *planed, const json_t *params, int *code, char *error)
{
	*code = RPC_INVALID_PARAMS;
	return traffic_start(planed, params, error);
}

static json_t *do_traffic_stop(struct planed *planed, const json_t *params, int *code, char *error)
{
	*code = RPC_REFUSED;
	if (planed_park(planed, error))
		return NULL;
	traffic_stop(planed);
	planed_run(planed);
	return json_object();
}

static json_t *do_traffic_get(struct planed *planed, const json_t *params, int *code, char *error)
{
	return json_pack("{s:b}", "running", traffic_running(planed));
}

static json_t *do_stats_get(struct planed *planed, const json_t *params, int *code, char *error)
{
	*code = RPC_REFUSED;
	return report_stats(planed, error);
}

static json_t *do_stats_clear(struct planed *planed, const json_t *params, int *code, char *error)
{
	*code = RPC_REFUSED;
	if (planed_park(planed, error))
		return NULL;
	traffic_clear(planed, 0, UINT64_MAX);
	planed_run(planed);
	return json_object();
}

// A page of a log.
struct stamps_page {
	char task[CONFIG_NAME_MAX];
	uint32_t from, limit;
};

enum { PAGE_LIMIT_DEFAULT = 4096, PAGE_LIMIT_MAX = 65536 };

static const struct field stamps_fields[] = {
        {.key = "task", FIELD(FIELD_NAME, struct stamps_page, task), .required = true},
        {UINT_FIELD("from", struct stamps_page, from, 0, UINT32_MAX)},
        {UINT_FIELD("limit", struct stamps_page, limit, 1, PAGE_LIMIT_MAX)},
        {0},
};

static json_t *do_stamps_get(struct planed *planed, const json_t *params, int *code, char *error)
{
	struct stamps_page page = {.limit = PAGE_LIMIT_DEFAULT};
	struct task *task;
	json_t *list;

	*code = RPC_INVALID_PARAMS;
	if (schema_decode(params, stamps_fields, &page, "params", error))
		return NULL;
	task = planed_find_task(planed, page.task);
	if (task == NULL || !task->ops->stamps)
		return config_error_null(error, "params.task: there is no task \"%s\" that stamps probes",
		                         page.task);
	if (planed_park_task(planed, task, error)) {
		*code = RPC_REFUSED;
		return NULL;
	}
	if (task->stamps && task->stamps->tap)
		probe_tap_collect(task->stamps->tap, task->stamps);
	list = stamps_list(task->stamps, page.from, page.limit);
	planed_run(planed);
	return list;
}

// The kind with whose name and a dot a method begins, if it has methods; or NULL.
static const struct task_ops *kind_of(const char *method)
{
	char kind[CONFIG_NAME_MAX];
	const char *dot = strchr(method, '.');
	const struct task_ops *ops;

	if (dot == NULL || dot - method >= (ptrdiff_t)sizeof(kind))
		return NULL;
	memcpy(kind, method, (size_t)(dot - method));
	kind[dot - method] = '\0';
	ops = task_ops_find(kind);
	return ops && (ops->methods || ops->vnf) ? ops : NULL;
}

// KIND.NAME: a method of a kind of task. params.task says whose.
static json_t *call_task(struct planed *planed, const struct task_ops *kind, const char *name,
                         const json_t *params, int *code, char *error)
{
	const char *task_name = json_string_value(json_object_get(params, "task"));
	struct task *task = task_name ? planed_find_task(planed, task_name) : NULL;
	json_t *result;

	*code = RPC_INVALID_PARAMS;
	if (task == NULL || strcmp(task->ops->kind, kind->kind) != 0)
		return config_error_null(error, "params.task: there is no task \"%.31s\" of kind %s",
		                         task_name ? task_name : "", kind->kind);
	if (kind->methods_beside)
		return task_call(task, name, params, rte_rdtsc(), error);
	if (planed_park_task(planed, task, error)) {
		*code = RPC_REFUSED;
		return NULL;
	}
	result = task_call(task, name, params, rte_rdtsc(), error);
	planed_run(planed);
	return result;
}

static json_t *do_keep(struct planed *planed, const json_t *params, int *code, char *error)
{
	planed_keep(planed, true);
	return json_object();
}

static json_t *do_shutdown(struct planed *planed, const json_t *params, int *code, char *error)
{
	planed->ending = true;
	return json_object();
}

static const struct {
	const char *name;
	method_fn *call;
	bool takes_params;
} methods[] = {
        {"version", do_version, false},
        {"config.get", do_config_get, false},
        {"config.apply", do_config_apply, true},
        {"ports.get", do_ports_get, false},
        {"traffic.start", do_traffic_start, true},
        {"traffic.stop", do_traffic_stop, false},
        {"traffic.get", do_traffic_get, false},
        {"stats.get", do_stats_get, false},
        {"stats.clear", do_stats_clear, false},
        {"stamps.get", do_stamps_get, true},
        {"keep", do_keep, false},
        {"shutdown", do_shutdown, false},
};
enum { METHOD_COUNT = sizeof(methods) / sizeof(methods[0]) };

static json_t *unknown(const char *method, int *code, char *error)
{
	size_t used =
	        (size_t)snprintf(error, CONFIG_ERROR_MAX, "there is no method \"%.40s\"; valid:", method);

	for (unsigned i = 0; i < METHOD_COUNT && used < CONFIG_ERROR_MAX; i++)
		used += (size_t)snprintf(error + used, CONFIG_ERROR_MAX - used, " %s", methods[i].name);
	*code = RPC_UNKNOWN_METHOD;
	return NULL;
}

json_t *methods_call(struct planed *planed, const char *method, const json_t *params, int *code,
                     char error[static CONFIG_ERROR_MAX])
{
	const struct task_ops *kind;

	for (unsigned i = 0; i < METHOD_COUNT; i++) {
		if (strcmp(methods[i].name, method) != 0)
			continue;
		if (!methods[i].takes_params && params &&
		    json_object_size(params) + json_array_size(params) > 0) {
			snprintf(error, CONFIG_ERROR_MAX, "%s takes no params", method);
			*code = RPC_INVALID_PARAMS;
			return NULL;
		}
		return methods[i].call(planed, params, code, error);
	}
	kind = kind_of(method);
	return kind ? call_task(planed, kind, strchr(method, '.') + 1, params, code, error)
	            : unknown(method, code, error);
}
