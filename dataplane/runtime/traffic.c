// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/traffic.h"

#include <errno.h>
#include <net/if.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <rte_cycles.h>

#include "runtime/planed.h"
#include "base/clock.h"
#include "base/schema.h"
#include "tester/stamps.h"
#include "port/device_clock.h"
#include "port/port.h"
#include "task/task.h"
#include "tester/probe_tap.h"
#include "runtime/worker.h"

// The workers wake up and warm their caches before the first slot is due.
static const uint64_t start_delay_ns = 500000;

struct request {
	uint16_t epoch;
	uint64_t duration_ns, nonce, delay_ns;
	bool keep;   // counters and stamps of the trial that has begun, which others join
	bool stamps; // of all tasks that can
	bool clocks; // of those at the ends of a path only
	bool sampled;
};

static const struct field request_fields[] = {
        {UINT_FIELD("epoch", struct request, epoch, 0, UINT16_MAX), .required = true},
        {UINT_FIELD("duration_ns", struct request, duration_ns, 1e3, 86400e9), .required = true},
        {UINT_FIELD("nonce", struct request, nonce, 1, (double)INT64_MAX)},
        {UINT_FIELD("delay_ns", struct request, delay_ns, 1e3, 10e9)},
        {.key = "keep", FIELD(FIELD_BOOL, struct request, keep)},
        {.key = "stamps", FIELD(FIELD_BOOL, struct request, stamps)},
        {.key = "clocks", FIELD(FIELD_BOOL, struct request, clocks)},
        {.key = "sampled", FIELD(FIELD_BOOL, struct request, sampled)},
        {.key = "generators", .type = FIELD_ANY, .required = true},
        {0},
};

// The task that an object of "generators" names, which is ready to send that load afterwards; or NULL.
static struct task *load(const struct planed *planed, const json_t *object, unsigned i, char *error)
{
	const char *name = json_string_value(json_object_get(object, "task"));
	struct task *task;
	char where[32];

	snprintf(where, sizeof(where), "generators[%u]", i);
	if (!json_is_object(object))
		return config_error_null(error, "%s: expected an object", where);
	if (name == NULL)
		return config_error_null(error, "%s: key \"task\" is missing, or no name", where);
	task = planed_find_task(planed, name);
	if (task == NULL || task->ops->load == NULL)
		return config_error_null(error, "%s.task: there is no generator \"%.31s\"", where, name);
	return task->ops->load(task, object, where, error) ? NULL : task;
}

static int check_once(struct task *const *loaded, unsigned last, char *error)
{
	for (unsigned i = 0; i < last; i++)
		if (loaded[i] == loaded[last])
			return config_error(
			        error,
			        "generators[%u].task: generators[%u] names %.31s already; a generator has one load",
			        last, i, loaded[last]->name);
	return 0;
}

static void clear_tasks(struct planed *planed)
{
	for (unsigned i = 0; i < planed->task_count; i++)
		task_clear(planed->tasks[i]);
}

static void clear_others(struct planed *planed, uint64_t from_tsc, uint64_t until_tsc)
{
	for (unsigned i = 0; i < planed->worker_count; i++)
		worker_clear(planed->workers[i], from_tsc, until_tsc);
	// The ports' counters as they are become the new zero: those of an ethdev are not reset, as drivers differ in how.
	for (unsigned i = 0; i < planed->port_count; i++)
		port_read_counters(planed->ports[i], &planed->ports[i]->baseline);
}

void traffic_clear(struct planed *planed, uint64_t from_tsc, uint64_t until_tsc)
{
	clear_tasks(planed);
	clear_others(planed, from_tsc, until_tsc);
}

void traffic_stamps_free(struct task *task)
{
	if (task->stamps)
		probe_tap_close(task->stamps->tap);
	stamps_free(task->stamps);
	task->stamps = NULL;
}

// The stamps of the kernel for the frames that a task sends, or receives, if the clock of its port is that.
static int tap_set(const struct task *task, uint16_t epoch, char *error)
{
	const struct port *port = task->ports[0];
	char interface[IF_NAMESIZE];

	if (port->clock != PORT_CLOCK_KERNEL || task->ops->sends == task->ops->receives ||
	    !device_clock_interface(port, interface, sizeof(interface)))
		return 0;
	task->stamps->tap = probe_tap_open(interface, task->ops->sends, epoch);
	if (task->stamps->tap)
		return 0;
	snprintf(error, CONFIG_ERROR_MAX,
	         "port %s: no time stamps of the kernel; the log of planed says more", port->config.name);
	return -EIO;
}

// Logs of stamps for the tasks that are asked for them.
static int stamps_set(struct planed *planed, const struct request *request, char *error)
{
	for (unsigned i = 0; i < planed->task_count; i++) {
		struct task *task = planed->tasks[i];
		bool is_end = task->ops->sends != task->ops->receives;
		bool wanted = task->ops->stamps && (request->stamps || (request->clocks && is_end));

		traffic_stamps_free(task);
		task->stamps = wanted ? stamps_create() : NULL;
		if (wanted && task->stamps == NULL) {
			snprintf(error, CONFIG_ERROR_MAX, "no memory for the stamps of task %s", task->name);
			return -ENOMEM;
		}
		if (task->stamps && tap_set(task, request->epoch, error) != 0)
			return -EIO;
	}
	return 0;
}

static bool any_stamps_ptp_only(const struct planed *planed)
{
	for (unsigned i = 0; i < planed->port_count; i++)
		if (planed->ports[i]->clock == PORT_CLOCK_HARDWARE && planed->ports[i]->stamps_ptp_only)
			return true;
	return false;
}

static int begin(struct planed *planed, struct task *task, const struct trial *trial, char *error)
{
	int rc = task->ops->begin(task, trial);

	if (rc == 0)
		return 0;
	traffic_stop(planed);
	config_error(error, "%s %.31s cannot send this load: %s; the log of planed says more",
	             task->ops->kind, task->name, strerror(-rc));
	return rc;
}

// Without a nonce anybody's frames are counted, and so of generators elsewhere.
static struct trial_offered *offered_begin(uint64_t nonce, bool keep)
{
	static struct trial_offered offered[TRIAL_STREAMS];

	for (unsigned i = 0; !keep && i < TRIAL_STREAMS; i++)
		atomic_store_explicit(&offered[i].packets, TRIAL_OFFERED_UNKNOWN, memory_order_relaxed);
	return nonce ? offered : NULL;
}

static int start_all(struct planed *planed, const struct trial *trial, bool keep, struct task *const *loaded,
                     unsigned count, char *error)
{
	int rc = 0;

	for (unsigned i = 0; !keep && rc == 0 && i < planed->task_count; i++)
		if (planed->tasks[i]->ops->begin && !planed->tasks[i]->ops->load)
			rc = begin(planed, planed->tasks[i], trial, error);
	for (unsigned i = 0; rc == 0 && i < count; i++)
		rc = begin(planed, loaded[i], trial, error);
	return rc;
}

// Workers are parked. What takes time comes before the start is set, or the first slots would be late: the
// tables of a profile are large, and so are logs of stamps.
static int start_parked(struct planed *planed, const struct request *request, struct task *const *loaded,
                        unsigned count, uint64_t *start_tsc, char *error)
{
	struct trial trial = {.epoch = request->epoch,
	                      .duration_ns = request->duration_ns,
	                      .nonce = request->nonce,
	                      .ptp_probes = any_stamps_ptp_only(planed),
	                      .sampled = request->sampled};

	if (!request->keep && traffic_running(planed))
		traffic_stop(planed); // who still sends is of another trial, and would be counted in this one
	trial.offered = offered_begin(request->nonce, request->keep);
	if (!request->keep)
		clear_tasks(planed);
	if (!request->keep && stamps_set(planed, request, error))
		return -ENOMEM;
	if (!request->keep)
		clock_mark();
	*start_tsc = trial.start_tsc = rte_rdtsc() + clock_ticks(request->delay_ns);
	if (!request->keep)
		clear_others(planed, *start_tsc, *start_tsc + clock_ticks(request->duration_ns));
	return start_all(planed, &trial, request->keep, loaded, count, error);
}

json_t *traffic_start(struct planed *planed, const json_t *params, char error[static CONFIG_ERROR_MAX])
{
	const json_t *array = json_object_get(params, "generators");
	struct task *loaded[CONFIG_TASKS_MAX];
	struct request request = {.delay_ns = start_delay_ns};
	uint64_t start_tsc;
	int rc;

	if (schema_decode(params, request_fields, &request, "params", error))
		return NULL;
	if (request.sampled && (request.stamps || request.clocks))
		return config_error_null(error, "params.sampled: not all probes would be seen; leave out %s",
		                         request.stamps ? "stamps" : "clocks");
	if (!json_is_array(array) || json_array_size(array) > CONFIG_TASKS_MAX)
		return config_error_null(error, "params.generators: expected an array of at most %d objects",
		                         CONFIG_TASKS_MAX);
	for (unsigned i = 0; i < json_array_size(array); i++) {
		loaded[i] = load(planed, json_array_get(array, i), i, error);
		if (loaded[i] == NULL || check_once(loaded, i, error))
			return NULL;
	}
	if (planed_park(planed, error))
		return NULL;
	rc = start_parked(planed, &request, loaded, (unsigned)json_array_size(array), &start_tsc, error);
	planed_run(planed);
	return rc ? NULL : json_pack("{s:I}", "start_tsc", (json_int_t)start_tsc);
}

void traffic_stop(struct planed *planed)
{
	for (unsigned i = 0; i < planed->task_count; i++)
		if (planed->tasks[i]->ops->end)
			planed->tasks[i]->ops->end(planed->tasks[i]);
}

bool traffic_running(const struct planed *planed)
{
	for (unsigned i = 0; i < planed->task_count; i++)
		if (planed->tasks[i]->ops->running && planed->tasks[i]->ops->running(planed->tasks[i]))
			return true;
	return false;
}
