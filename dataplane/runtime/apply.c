// SPDX-License-Identifier: BSD-3-Clause
// How a configuration comes into force. Everything that can fail is done beside what runs; only then are the
// old tasks and workers replaced, so that a refusal leaves the process as it was.
#include "runtime/planed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/eal.h"
#include "base/log.h"
#include "base/schema.h"
#include "port/port.h"
#include "task/task.h"
#include "runtime/traffic.h"
#include "runtime/worker.h"

// What is built beside the running set.
struct next {
	struct planed set;
	bool opened[CONFIG_PORTS_MAX]; // ours to close when refused
};

static struct port *find_port(const struct planed *planed, const char *name)
{
	for (unsigned i = 0; i < planed->port_count; i++)
		if (strcmp(planed->ports[i]->config.name, name) == 0)
			return planed->ports[i];
	return NULL;
}

struct task *planed_find_task(const struct planed *planed, const char *name)
{
	for (unsigned i = 0; i < planed->task_count; i++)
		if (strcmp(planed->tasks[i]->name, name) == 0)
			return planed->tasks[i];
	return NULL;
}

static bool same_port(const struct config_port *a, const struct config_port *b)
{
	return a->ops == b->ops && strcmp(a->path, b->path) == 0 && strcmp(a->device, b->device) == 0 &&
	       a->ring_size == b->ring_size && a->queues == b->queues &&
	       memcmp(a->mac, b->mac, sizeof(a->mac)) == 0 && a->clock == b->clock &&
	       a->offloads == b->offloads && a->packed == b->packed && a->zero_copy == b->zero_copy &&
	       memcmp(&a->drivers, &b->drivers, sizeof(a->drivers)) == 0;
}

static int check_fixed(const struct config *old, const struct config *new, char *error)
{
	if (old == NULL)
		return 0;
	if (strcmp(old->name, new->name) != 0 ||
	    memcmp(&old->memory, &new->memory, sizeof(old->memory)) != 0) {
		snprintf(error, CONFIG_ERROR_MAX,
		         "name and memory cannot change while planed runs; restart it with the new ones");
		return -EBUSY;
	}
	return 0;
}

static bool same_device(const char *a, const char *b)
{
	size_t length = strcspn(a, ",");

	return length > 0 && length == strcspn(b, ",") && strncmp(a, b, length) == 0;
}

// Return the running port that listens on the path of config, or has its device: under another name.
static const struct port *find_owner(const struct planed *planed, const struct config_port *config)
{
	for (unsigned i = 0; i < planed->port_count; i++) {
		const struct config_port *other = &planed->ports[i]->config;

		if ((config->ops->listens && other->ops->listens && strcmp(other->path, config->path) == 0) ||
		    same_device(config->device, other->device))
			return planed->ports[i];
	}
	return NULL;
}

static int build_port(const struct planed *old, struct next *next, unsigned i, char *error)
{
	const struct config_port *config = &next->set.config->ports[i];
	struct port *port = find_port(old, config->name);
	int rc;

	if (port && !same_port(&port->config, config)) {
		snprintf(
		        error, CONFIG_ERROR_MAX,
		        "port %s exists with another kind, backend, path, device, ring_size, queues, mac, clock or "
		        "limit of its drivers, or with other offloads, packed or zero_copy; "
		        "apply a document without it first",
		        config->name);
		return -EEXIST;
	}
	if (port == NULL) {
		const struct port *owner = find_owner(old, config);

		if (owner) {
			snprintf(
			        error, CONFIG_ERROR_MAX,
			        "port %s: port %s has its path or device; keep that name, or apply a document "
			        "without either first",
			        config->name, owner->config.name);
			return -EADDRINUSE;
		}
		port = calloc(1, sizeof(*port));
		rc = port ? port_open(port, config, next->set.rx_pool) : -ENOMEM;
		if (rc) {
			free(port);
			snprintf(error, CONFIG_ERROR_MAX,
			         "port %s cannot be opened: %s; the log of planed says more", config->name,
			         strerror(-rc));
			return rc;
		}
		next->opened[i] = true;
	}
	next->set.ports[next->set.port_count++] = port;
	return 0;
}

static int build_task(struct next *next, struct config_task *config, char *error)
{
	const struct task_ops *ops = task_ops_find(config->kind);
	struct port *ports[CONFIG_TASK_PORTS_MAX] = {0};
	struct task *task = NULL;
	int rc;

	for (unsigned i = 0; i < config->port_count; i++)
		ports[i] = find_port(&next->set, config->ports[i]);
	rc = task_create(ops, config, ports, &task);
	if (rc) {
		snprintf(error, CONFIG_ERROR_MAX, "task %s cannot be made: %s; the log of planed says more",
		         config->name, strerror(-rc));
		return rc;
	}
	next->set.tasks[next->set.task_count++] = task;
	return 0;
}

static int build_worker(struct next *next, const struct config_worker *config, char *error)
{
	struct task *tasks[CONFIG_TASKS_MAX];
	struct worker *worker = NULL;
	int rc;

	for (unsigned i = 0; i < config->task_count; i++)
		tasks[i] = planed_find_task(&next->set, config->tasks[i]);
	rc = worker_create(config, tasks, next->set.config->nice, &worker);
	if (rc) {
		snprintf(error, CONFIG_ERROR_MAX, "worker %s cannot run on cpu %u: %s", config->name,
		         config->cpu, strerror(-rc));
		return rc;
	}
	next->set.workers[next->set.worker_count++] = worker;
	for (unsigned i = 0; i < config->task_count; i++)
		tasks[i]->worker = worker->name;
	return 0;
}

static int build_tasks(const struct planed *old, struct next *next, char *error)
{
	struct config *config = next->set.config;
	int rc = check_fixed(old->config, config, error);

	for (unsigned i = 0; rc == 0 && i < config->port_count; i++)
		rc = build_port(old, next, i, error);
	for (unsigned i = 0; rc == 0 && i < config->task_count; i++)
		rc = build_task(next, &config->tasks[i], error);
	return rc;
}

static int build(const struct planed *old, struct next *next, char *error)
{
	struct config *config = next->set.config;
	int rc = build_tasks(old, next, error);

	for (unsigned i = 0; rc == 0 && i < config->worker_count; i++)
		rc = build_worker(next, &config->workers[i], error);
	return rc;
}

static void end_workers(struct planed *set)
{
	for (unsigned i = 0; i < set->worker_count; i++)
		worker_destroy(set->workers[i]);
	set->worker_count = 0;
}

static void end_tasks(struct planed *set)
{
	for (unsigned i = 0; i < set->task_count; i++) {
		traffic_stamps_free(set->tasks[i]);
		task_destroy(set->tasks[i]);
	}
	set->task_count = 0;
}

// What the old tasks know goes to the new ones of their names. No worker polls either.
static void adopt(struct planed *old, struct planed *new)
{
	for (unsigned i = 0; i < new->task_count; i++) {
		struct task *task = new->tasks[i], *before = planed_find_task(old, task->name);

		if (before && task->ops->adopt && strcmp(before->ops->kind, task->ops->kind) == 0)
			task->ops->adopt(task, before);
		if (task->ops->take_effect)
			task->ops->take_effect(task);
	}
}

static void close_port(struct port *port)
{
	port_close(port);
	free(port);
}

static void discard(struct next *next)
{
	end_workers(&next->set);
	end_tasks(&next->set);
	for (unsigned i = 0; i < next->set.port_count; i++)
		if (next->opened[i])
			port_stop(next->set.ports[i]);
	for (unsigned i = 0; i < next->set.port_count; i++)
		if (next->opened[i])
			close_port(next->set.ports[i]);
}

static void note(json_t *names, const char *kind, const char *name)
{
	if (names)
		json_array_append_new(names, json_sprintf("%s %s", kind, name));
}

// Close the ports that the new set has not, and note the difference.
static void close_gone_ports(struct planed *old, const struct planed *new, json_t *removed)
{
	for (unsigned i = 0; i < old->port_count; i++)
		if (find_port(new, old->ports[i]->config.name) == NULL)
			port_stop(old->ports[i]);
	for (unsigned i = 0; i < old->port_count; i++)
		if (find_port(new, old->ports[i]->config.name) == NULL) {
			note(removed, "port", old->ports[i]->config.name);
			close_port(old->ports[i]);
		}
}

static void note_tasks(const struct planed *set, const struct planed *other, json_t *names)
{
	for (unsigned i = 0; i < set->task_count; i++)
		if (planed_find_task(other, set->tasks[i]->name) == NULL)
			note(names, "task", set->tasks[i]->name);
}

// A bounded number of frames, and at least those that a ring holds.
static void drain(const struct port *port)
{
	enum { BURSTS = 256 };
	struct view view;

	for (uint16_t queue = 0; queue < RTE_MAX(port->config.queues, 1u); queue++)
		for (unsigned i = 0; i < BURSTS && port_peek(port, queue, &view, CONFIG_BURST_MAX); i++)
			port_release(port, queue, &view);
}

int planed_apply(struct planed *planed, struct config *config, json_t *document, json_t *added,
                 json_t *removed, char error[static CONFIG_ERROR_MAX])
{
	struct next next = {.set = {.config = config, .rx_pool = planed->rx_pool}};
	int rc = planed_wait_turn(planed, error); // the threads of ports may wait for one that stands

	if (rc == 0)
		rc = build(planed, &next, error);
	if (rc == 0)
		rc = planed_park(planed, error); // one that does not stop would not end either
	if (rc) {
		discard(&next);
		return rc;
	}
	for (unsigned i = 0; i < next.set.port_count; i++)
		if (next.opened[i])
			note(added, "port", next.set.ports[i]->config.name);
	note_tasks(&next.set, planed, added);
	note_tasks(planed, &next.set, removed);
	end_workers(planed);
	adopt(planed, &next.set);
	end_tasks(planed);
	close_gone_ports(planed, &next.set, removed);
	for (unsigned i = 0; i < next.set.port_count; i++) {
		struct port *port = next.set.ports[i];

		port->config = config->ports[i]; // of a port that stays: its line rate may be new
		if (planed->takes_over)
			drain(port);
		port_flush_all(port); // it may have no task any more; and who polls it next is another thread
	}
	config_free(planed->config);
	json_decref(planed->document);
	next.set.document = json_incref(document);
	*planed = next.set;
	planed_run(planed);
	return 0;
}

void planed_stand_in(struct config *config)
{
	snprintf(config->name, sizeof(config->name), "check-%d", (int)getpid());
	for (unsigned i = 0; i < config->port_count; i++) {
		struct config_port *port = &config->ports[i];
		struct config_port other = {.kind = "ethdev",
		                            .ring_size = port->ring_size,
		                            .queues = port->queues,
		                            .line_rate_bps = port->line_rate_bps};

		memcpy(other.name, port->name, sizeof(other.name));
		snprintf(other.device, sizeof(other.device), "net_null%u,no-rx=1", i);
		other.ops = port_ops_find(other.kind, other.backend);
		*port = other;
	}
	for (unsigned i = 0; i < config->task_count; i++)
		config->tasks[i].check = true;
}

int planed_fits(struct config *config)
{
	struct next next = {.set = {.config = config, .rx_pool = eal_pool_create(&config->memory)}};
	char error[CONFIG_ERROR_MAX]; // less than the line that was logged
	const struct planed nothing = {0};
	int rc = next.set.rx_pool ? build_tasks(&nothing, &next, error) : -ENOMEM;

	discard(&next);
	return rc;
}

int planed_close(struct planed *planed)
{
	char error[CONFIG_ERROR_MAX];

	if (planed_park(planed, error)) {
		LOG_ERROR("%s", error);
		return -ETIMEDOUT;
	}
	end_workers(planed);
	end_tasks(planed);
	for (unsigned i = 0; i < planed->port_count; i++)
		port_stop(planed->ports[i]);
	for (unsigned i = 0; i < planed->port_count; i++)
		close_port(planed->ports[i]);
	planed->port_count = 0;
	config_free(planed->config);
	planed->config = NULL;
	json_decref(planed->document);
	planed->document = NULL;
	return 0;
}

// Returns -ETIMEDOUT.
static int name_standing(const struct worker *worker, const char *verb, char *error)
{
	const struct task *task = worker_standing_in(worker);

	config_error(error,
	             "worker %s %s within %u ms: it stands in task %s; is its CPU %u free for it? Ask again, "
	             "or restart planed",
	             worker->name, verb, worker_park_ms(), task ? task->name : "-", worker->cpu);
	return -ETIMEDOUT;
}

static int park(const struct planed *planed, const char *name, char *error)
{
	struct timespec deadline = worker_park_deadline();

	for (unsigned i = 0; i < planed->worker_count; i++)
		if (name == NULL || strcmp(planed->workers[i]->name, name) == 0)
			worker_order_park(planed->workers[i]);
	for (unsigned i = 0; i < planed->worker_count; i++) {
		struct worker *worker = planed->workers[i];

		if ((name && strcmp(worker->name, name) != 0) || worker_wait_parked(worker, &deadline) == 0)
			continue;
		planed_run(planed);
		return name_standing(worker, "did not stop polling", error);
	}
	return 0;
}

int planed_wait_turn(const struct planed *planed, char *error)
{
	struct timespec deadline = worker_park_deadline();

	for (unsigned i = 0; i < planed->worker_count; i++)
		if (!worker_wait_turn(planed->workers[i], &deadline))
			return name_standing(planed->workers[i], "did not poll all of its tasks", error);
	return 0;
}

int planed_look_after_workers(const struct planed *planed)
{
	bool drivers = false;

	for (unsigned i = 0; i < planed->port_count; i++)
		drivers |= planed->ports[i]->ops->refuses;
	for (unsigned i = 0; drivers && i < planed->worker_count; i++)
		worker_look_after(planed->workers[i]);
	return drivers ? WORKER_LOOK_MS : -1;
}

int planed_keep(const struct planed *planed, bool ending)
{
	int least = -1;

	for (unsigned i = 0; i < planed->task_count; i++) {
		struct task *task = planed->tasks[i];
		int ms = task->ops->keep ? task->ops->keep(task, ending) : -1;

		if (ms >= 0 && (least < 0 || ms < least))
			least = ms;
	}
	return least;
}

int planed_park(const struct planed *planed, char *error)
{
	return park(planed, NULL, error);
}

int planed_park_task(const struct planed *planed, const struct task *task, char *error)
{
	return task->worker ? park(planed, task->worker, error) : 0;
}

void planed_run(const struct planed *planed)
{
	for (unsigned i = 0; i < planed->worker_count; i++)
		worker_run(planed->workers[i]);
}
