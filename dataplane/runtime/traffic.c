// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/traffic.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>

#include "tasks/generator/generator.h"
#include "tasks/monitor/monitor.h"
#include "runtime/planed.h"
#include "runtime/report.h"
#include "lib/schema.h"
#include "tasks/stamps.h"
#include "tasks/task.h"
#include "runtime/worker.h"

// The workers wake up and warm their caches before the first slot is due.
enum { START_DELAY_US = 500 };

struct request {
	uint16_t epoch;
	uint64_t duration_ns;
	bool stamps;
};

struct generator_request {
	char task[CONFIG_NAME_MAX];
	struct generator_load load;
};

static const struct field request_fields[] = {
        {.key = "epoch", FIELD(FIELD_UINT, struct request, epoch), .required = true, .max = UINT16_MAX},
        {.key = "duration_ns",
         FIELD(FIELD_UINT, struct request, duration_ns),
         .required = true,
         .min = 1e3,
         .max = 86400e9},
        {.key = "stamps", FIELD(FIELD_BOOL, struct request, stamps)},
        {.key = "generators", .type = FIELD_ANY, .required = true},
        {0},
};

static const struct field generator_fields[] = {
        {.key = "task", FIELD(FIELD_NAME, struct generator_request, task), .required = true},
        {.key = "frame_size_bytes",
         FIELD(FIELD_UINT, struct generator_request, load.frame_size_bytes),
         .min = 64,
         .max = 9018},
        {.key = "rate_pps",
         FIELD(FIELD_REAL, struct generator_request, load.rate_pps),
         .min = 0.01,
         .max = 1e9},
        {.key = "line_share",
         FIELD(FIELD_REAL, struct generator_request, load.line_share),
         .min = 1e-9,
         .max = 1},
        {.key = "flat_out", FIELD(FIELD_BOOL, struct generator_request, load.flat_out)},
        {.key = "probe_rate_pps",
         FIELD(FIELD_REAL, struct generator_request, load.probe_rate_pps),
         .max = 1e7},
        {.key = "profile", .type = FIELD_ANY},
        {0},
};

static bool is_generator(const struct task *task)
{
	return task && task->ops == &generator_ops;
}

// Sizes may be the profile's, times those of a capture.
static int check_load(const json_t *object, const struct generator_load *load, const char *where, char *error)
{
	const json_t *profile = json_object_get(object, "profile"), *pcap = json_object_get(profile, "pcap");
	const char *timing = json_string_value(json_object_get(pcap, "timing"));
	int loads = (load->rate_pps > 0) + (load->line_share > 0) + load->flat_out;
	bool recorded = timing && strcmp(timing, "recorded") == 0;

	if (load->frame_size_bytes == 0 && !pcap && !json_object_get(profile, "sizes"))
		return config_error(error, "%s: key \"frame_size_bytes\" is missing", where);
	if (loads == 1 || (loads == 0 && recorded))
		return 0;
	return config_error(error, "%s: give exactly one of rate_pps, line_share and flat_out: true", where);
}

static int decode_generator(const struct planed *planed, const json_t *object, unsigned i,
                            struct generator_request *out, char *error)
{
	struct task *task;
	char where[32];

	snprintf(where, sizeof(where), "generators[%u]", i);
	if (schema_decode(object, generator_fields, out, where, error))
		return -EINVAL;
	task = planed_find_task(planed, out->task);
	if (!is_generator(task))
		return config_error(error, "%s.task: there is no generator \"%.31s\"", where, out->task);
	if (check_load(object, &out->load, where, error) != 0)
		return -EINVAL;
	return generator_prepare(task, json_object_get(object, "profile"), &out->load, where, error);
}

// A second load of a task would replace its first one without a word.
static int check_once(const struct generator_request *generators, unsigned last, char *error)
{
	for (unsigned i = 0; i < last; i++)
		if (strcmp(generators[i].task, generators[last].task) == 0)
			return config_error(
			        error,
			        "generators[%u].task: generators[%u] names %.31s already; a generator has "
			        "one "
			        "load",
			        last, i, generators[last].task);
	return 0;
}

static void clear_tasks(struct planed *planed)
{
	for (unsigned i = 0; i < planed->task_count; i++) {
		struct task *task = planed->tasks[i];

		task->counters = (struct task_counters){0};
		if (task->ops->clear)
			task->ops->clear(task);
	}
}

static void clear_others(struct planed *planed, uint64_t from_tsc, uint64_t until_tsc)
{
	for (unsigned i = 0; i < planed->worker_count; i++)
		worker_clear(planed->workers[i], from_tsc, until_tsc);
	report_clear_ports(planed);
}

void traffic_clear(struct planed *planed, uint64_t from_tsc, uint64_t until_tsc)
{
	clear_tasks(planed);
	clear_others(planed, from_tsc, until_tsc);
}

// Logs of stamps for all tasks that can, or for none.
static int stamps_set(struct planed *planed, bool wanted, char *error)
{
	for (unsigned i = 0; i < planed->task_count; i++) {
		struct task *task = planed->tasks[i];

		stamps_free(task->stamps);
		task->stamps = wanted && task->ops->stamps ? stamps_create() : NULL;
		if (wanted && task->ops->stamps && task->stamps == NULL) {
			snprintf(error, CONFIG_ERROR_MAX, "no memory for the stamps of task %s", task->name);
			return -ENOMEM;
		}
	}
	return 0;
}

static int start_all(struct planed *planed, const struct request *request,
                     struct generator_request *generators, unsigned count, uint64_t start_tsc, char *error)
{
	for (unsigned i = 0; i < planed->task_count; i++)
		if (planed->tasks[i]->ops == &monitor_ops)
			monitor_start(planed->tasks[i], request->epoch, start_tsc);
	for (unsigned i = 0; i < count; i++) {
		int rc;

		generators[i].load.epoch = request->epoch;
		generators[i].load.start_tsc = start_tsc;
		generators[i].load.duration_ns = request->duration_ns;
		rc = generator_start(planed_find_task(planed, generators[i].task), &generators[i].load);
		if (rc) {
			traffic_stop(planed);
			snprintf(error, CONFIG_ERROR_MAX,
			         "generator %.31s cannot send this load: %s; the log of planed says more",
			         generators[i].task, strerror(-rc));
			return rc;
		}
	}
	return 0;
}

// Workers are parked. What takes time comes before the start is set, or the first slots would be late: the
// tables of a profile are large, and so are logs of stamps.
static int start_parked(struct planed *planed, const struct request *request,
                        struct generator_request *generators, unsigned count, uint64_t *start_tsc,
                        char *error)
{
	uint64_t duration_tsc =
	        (uint64_t)((unsigned __int128)request->duration_ns * rte_get_tsc_hz() / NS_PER_S);

	clear_tasks(planed);
	if (stamps_set(planed, request->stamps, error))
		return -ENOMEM;
	*start_tsc = rte_rdtsc() + rte_get_tsc_hz() / US_PER_S * START_DELAY_US;
	clear_others(planed, *start_tsc, *start_tsc + duration_tsc);
	return start_all(planed, request, generators, count, *start_tsc, error);
}

json_t *traffic_start(struct planed *planed, const json_t *params, char error[static CONFIG_ERROR_MAX])
{
	struct generator_request generators[CONFIG_TASKS_MAX] = {0};
	const json_t *array = json_object_get(params, "generators");
	struct request request = {0};
	uint64_t start_tsc;
	int rc;

	if (schema_decode(params, request_fields, &request, "params", error))
		return NULL;
	if (!json_is_array(array) || json_array_size(array) > CONFIG_TASKS_MAX)
		return config_error_null(error, "params.generators: expected an array of at most %d objects",
		                         CONFIG_TASKS_MAX);
	for (unsigned i = 0; i < json_array_size(array); i++)
		if (decode_generator(planed, json_array_get(array, i), i, &generators[i], error) ||
		    check_once(generators, i, error))
			return NULL;
	planed_park(planed);
	rc = start_parked(planed, &request, generators, (unsigned)json_array_size(array), &start_tsc, error);
	planed_run(planed);
	return rc ? NULL : json_pack("{s:I}", "start_tsc", (json_int_t)start_tsc);
}

void traffic_stop(struct planed *planed)
{
	for (unsigned i = 0; i < planed->task_count; i++)
		if (is_generator(planed->tasks[i]))
			generator_stop(planed->tasks[i]);
}

bool traffic_running(const struct planed *planed)
{
	for (unsigned i = 0; i < planed->task_count; i++)
		if (is_generator(planed->tasks[i]) && generator_running(planed->tasks[i]))
			return true;
	return false;
}
