// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tasks/bridge/config_bridge.h"
#include "tasks/task.h"
#include "tasks/vnf/vnf.h"

static bool has_mac(const struct config_port *port)
{
	static const uint8_t none[sizeof(port->mac)];

	return memcmp(port->mac, none, sizeof(none)) != 0;
}

static int check_port(const struct config_port *port, char *error)
{
	const char *needs = port->kind == PORT_ETHDEV ? "device" : "path";
	const char *other = port->kind == PORT_ETHDEV ? "path" : "device";
	const char *has_needed = port->kind == PORT_ETHDEV ? port->device : port->path;
	const char *has_other = port->kind == PORT_ETHDEV ? port->path : port->device;

	if (*has_needed == '\0' || *has_other != '\0') {
		snprintf(error, CONFIG_ERROR_MAX, "port %s: kind %s needs the key \"%s\" and not \"%s\"",
		         port->name, config_port_kinds[port->kind], needs, other);
		return -EINVAL;
	}
	if (port->kind == PORT_ETHDEV && port->backend != PORT_BACKEND_UNSET) {
		snprintf(error, CONFIG_ERROR_MAX,
		         "port %s: kind %s has no \"backend\"; leave it out, or use kind vhost-user or "
		         "virtio-user",
		         port->name, config_port_kinds[port->kind]);
		return -EINVAL;
	}
	if (has_mac(port) && (port->kind == PORT_ETHDEV || port->backend == PORT_BACKEND_DPDK)) {
		snprintf(error, CONFIG_ERROR_MAX,
		         "port %s: a device of DPDK has a \"mac\" of its own; leave it out, or use kind "
		         "vhost-user or virtio-user with backend vring",
		         port->name);
		return -EINVAL;
	}
	if (port->mac[0] & 1) {
		snprintf(error, CONFIG_ERROR_MAX, "port %s: mac is a group address; give one of a station",
		         port->name);
		return -EINVAL;
	}
	if ((port->ring_size & (port->ring_size - 1)) != 0) {
		snprintf(error, CONFIG_ERROR_MAX, "port %s: ring_size %u is not a power of two", port->name,
		         port->ring_size);
		return -EINVAL;
	}
	return 0;
}

static int find_port(const struct config *config, const char *name)
{
	for (unsigned i = 0; i < config->port_count; i++)
		if (strcmp(config->ports[i].name, name) == 0)
			return (int)i;
	return -1;
}

// What the tasks before this one already do on each queue of each port.
struct port_users {
	struct {
		const char *receiver, *sender;
	} queues[CONFIG_QUEUES_MAX];
};

static int claim(const char **user, const struct config_task *task, const char *port, const char *verb,
                 char *error)
{
	if (*user && *user != task->name) {
		snprintf(error, CONFIG_ERROR_MAX,
		         "tasks %s and %s both %s on port %s, queue %u: a queue has one user", *user,
		         task->name, verb, port, task->queue);
		return -EINVAL;
	}
	*user = task->name;
	return 0;
}

// A fault that is asked for and never comes would be believed.
static int check_fault(const struct config *config, const struct config_task *task,
                       const struct task_ops *ops, char *error)
{
	if (task->fault.drop_one_in == 0 || ops->faults)
		return 0;
	snprintf(error, CONFIG_ERROR_MAX,
	         "tasks[%td].fault: kind %s takes no fault; leave it out, or use kind patch",
	         task - config->tasks, task->kind);
	return -EINVAL;
}

static int check_settings(const struct config_task *task, const struct task_ops *ops, char *error)
{
	if (ops->vnf && ops->vnf->check)
		return ops->vnf->check(task, error);
	if (task->settings == NULL)
		return 0;
	snprintf(error, CONFIG_ERROR_MAX, "task %s: kind %s has no \"settings\"; leave them out", task->name,
	         task->kind);
	return -EINVAL;
}

// With the tasks of its kind before it.
static int check_agreement(const struct config *config, const struct config_task *task,
                           const struct task_ops *ops, char *error)
{
	if (!ops->vnf || !ops->vnf->agree)
		return 0;
	for (const struct config_task *other = config->tasks; other < task; other++)
		if (strcmp(other->kind, task->kind) == 0 && ops->vnf->agree(other, task, error))
			return -EINVAL;
	return 0;
}

static int check_task_port(const struct config *config, const struct config_task *task, const char *name,
                           const struct task_ops *ops, struct port_users *users, char *error)
{
	int port = find_port(config, name);
	uint32_t queues;

	if (port < 0) {
		snprintf(error, CONFIG_ERROR_MAX, "task %s: there is no port \"%s\" in ports", task->name,
		         name);
		return -EINVAL;
	}
	queues = config->ports[port].queues;
	if (task->queue >= queues) {
		snprintf(error, CONFIG_ERROR_MAX,
		         "task %s: queue is %u, but port %s has queues 0 to %u; raise \"queues\" of the "
		         "port, or "
		         "name another queue",
		         task->name, task->queue, name, queues - 1);
		return -EINVAL;
	}
	if (ops->receives && claim(&users[port].queues[task->queue].receiver, task, name, "receive", error))
		return -EINVAL;
	return ops->sends ? claim(&users[port].queues[task->queue].sender, task, name, "send", error) : 0;
}

static int check_task(const struct config *config, const struct config_task *task, struct port_users *users,
                      char *error)
{
	const struct task_ops *ops = task_ops_find(task->kind);

	if (ops == NULL) {
		snprintf(error, CONFIG_ERROR_MAX, "task %s: unknown kind \"%s\"; valid kinds: %s", task->name,
		         task->kind, task_kinds());
		return -EINVAL;
	}
	if (task->port_count < ops->ports_min || task->port_count > ops->ports_max) {
		snprintf(error, CONFIG_ERROR_MAX, "task %s: kind %s takes %u to %u ports, not %u", task->name,
		         task->kind, ops->ports_min, ops->ports_max, task->port_count);
		return -EINVAL;
	}
	if (check_fault(config, task, ops, error) || config_bridge_check(config, task, error))
		return -EINVAL;
	for (unsigned i = 0; i < task->port_count; i++)
		if (check_task_port(config, task, task->ports[i], ops, users, error))
			return -EINVAL;
	return check_settings(task, ops, error) ? -EINVAL : check_agreement(config, task, ops, error);
}

static int check_workers(const struct config *config, char *error)
{
	unsigned users[CONFIG_TASKS_MAX] = {0};

	for (unsigned w = 0; w < config->worker_count; w++)
		for (unsigned t = 0; t < config->workers[w].task_count; t++) {
			const char *name = config->workers[w].tasks[t];
			unsigned i = 0;

			while (i < config->task_count && strcmp(config->tasks[i].name, name) != 0)
				i++;
			if (i == config->task_count) {
				snprintf(error, CONFIG_ERROR_MAX,
				         "worker %s: there is no task \"%s\" in tasks",
				         config->workers[w].name, name);
				return -EINVAL;
			}
			users[i]++;
		}
	for (unsigned i = 0; i < config->task_count; i++)
		if (users[i] != 1) {
			snprintf(error, CONFIG_ERROR_MAX,
			         "task %s: %u workers poll it; name it in exactly one", config->tasks[i].name,
			         users[i]);
			return -EINVAL;
		}
	return 0;
}

static int check_unique(const char *what, const char *names, size_t stride, unsigned count, char *error)
{
	for (unsigned i = 0; i < count; i++)
		for (unsigned j = 0; j < i; j++)
			if (strcmp(names + i * stride, names + j * stride) == 0) {
				snprintf(error, CONFIG_ERROR_MAX,
				         "two %s are called \"%s\"; names must differ", what,
				         names + i * stride);
				return -EINVAL;
			}
	return 0;
}

int config_check(const struct config *config, char error[static CONFIG_ERROR_MAX])
{
	struct port_users users[CONFIG_PORTS_MAX] = {0};

	if (check_unique("ports", config->ports[0].name, sizeof(config->ports[0]), config->port_count,
	                 error) ||
	    check_unique("tasks", config->tasks[0].name, sizeof(config->tasks[0]), config->task_count,
	                 error) ||
	    check_unique("workers", config->workers[0].name, sizeof(config->workers[0]), config->worker_count,
	                 error))
		return -EINVAL;
	for (unsigned i = 0; i < config->port_count; i++)
		if (check_port(&config->ports[i], error))
			return -EINVAL;
	for (unsigned i = 0; i < config->task_count; i++)
		if (check_task(config, &config->tasks[i], users, error))
			return -EINVAL;
	return check_workers(config, error);
}
