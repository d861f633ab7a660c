// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/schema.h"
#include "port/port.h"
#include "task/task.h"

// --- What goes together ----------------------------------------------------------------------------------

static bool has_mac(const struct config_port *port)
{
	static const uint8_t none[sizeof(port->mac)];

	return memcmp(port->mac, none, sizeof(none)) != 0;
}

static int check_port(const struct config_port *port, char *error)
{
	const struct port_ops *ops = port->ops;
	const char *has_needed = ops->has_device ? port->device : port->path;
	const char *has_other = ops->has_device ? port->path : port->device;

	if (*has_needed == '\0' || *has_other != '\0')
		return config_error(error, "port %s: kind %s needs the key \"%s\" and not \"%s\"", port->name,
		                    port->kind, ops->has_device ? "device" : "path",
		                    ops->has_device ? "path" : "device");
	if (has_mac(port) && !ops->takes_mac)
		return config_error(
		        error,
		        "port %s: a device of DPDK has a \"mac\" of its own; leave it out, or use kind "
		        "vhost-user, virtio-user or a memif with backend planed",
		        port->name);
	if (memcmp(&port->drivers, &(struct config_drivers){0}, sizeof(port->drivers)) != 0 && !ops->refuses)
		return config_error(
		        error,
		        "port %s: only kinds vhost-user and memif-server, with the default backend, have "
		        "\"group\", \"max_connections\", \"connections_per_s\", \"max_memory_mb\" and \"max_charged_mb\"",
		        port->name);
	if (port->offloads && !ops->takes_offloads)
		return config_error(
		        error, "port %s: only kind vhost-user, with the default backend, has \"offloads\"",
		        port->name);
	if (port->zero_copy && !ops->takes_zero_copy)
		return config_error(
		        error, "port %s: only kind memif-client, with the default backend, has \"zero_copy\"",
		        port->name);
	if (port->packed && !ops->takes_packed)
		return config_error(
		        error, "port %s: only kind virtio-user, with the default backend, has \"packed\"",
		        port->name);
	if ((port->clock == PORT_CLOCK_KERNEL || port->clock == PORT_CLOCK_HARDWARE) && !ops->stamp_received)
		return config_error(error, "port %s: kind %s has no \"clock\" but \"software\"", port->name,
		                    port->kind);
	if (port->mac[0] & 1)
		return config_error(error, "port %s: mac is a group address; give one of a station",
		                    port->name);
	if ((port->ring_size & (port->ring_size - 1)) != 0 && !port->packed)
		return config_error(error, "port %s: ring_size %u is not a power of two", port->name,
		                    port->ring_size);
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
	if (*user && *user != task->name)
		return config_error(error,
		                    "tasks %s and %s both %s on port %s, queue %u: a queue has one user",
		                    *user, task->name, verb, port, task->queue);
	*user = task->name;
	return 0;
}

static int check_task_port(const struct config *config, const struct config_task *task, const char *name,
                           const struct task_ops *ops, struct port_users *users, char *error)
{
	int port = find_port(config, name);
	uint32_t queues;

	if (port < 0)
		return config_error(error, "task %s: there is no port \"%s\" in ports", task->name, name);
	queues = config->ports[port].queues;
	if (task->queue >= queues)
		return config_error(
		        error,
		        "task %s: queue is %u, but port %s has queues 0 to %u; raise \"queues\" of the "
		        "port, or "
		        "name another queue",
		        task->name, task->queue, name, queues - 1);
	if (config->ports[port].offloads && !ops->offloads)
		return config_error(
		        error,
		        "task %s: port %s has \"offloads\", which kind %s cannot pass on; use kind patch or bridge, or a "
		        "port without",
		        task->name, name, task->kind);
	if (ops->receives && claim(&users[port].queues[task->queue].receiver, task, name, "receive", error))
		return -EINVAL;
	return ops->sends ? claim(&users[port].queues[task->queue].sender, task, name, "send", error) : 0;
}

// With the tasks of its kind before it.
static int check_agreement(const struct config *config, const struct config_task *task,
                           const struct task_ops *ops, char *error)
{
	for (const struct config_task *other = config->tasks; ops->agree && other < task; other++)
		if (strcmp(other->kind, task->kind) == 0 && ops->agree(other, task, error))
			return -EINVAL;
	return 0;
}

static int check_task(const struct config *config, struct config_task *task, struct port_users *users,
                      char *error)
{
	const struct task_ops *ops = task_ops_find(task->kind);
	char where[32];

	if (ops == NULL)
		return config_error(error, "task %s: unknown kind \"%s\"; valid kinds: %s", task->name,
		                    task->kind, task_kinds());
	if (task->port_count < ops->ports_min || task->port_count > ops->ports_max)
		return config_error(error, "task %s: kind %s takes %u to %u ports, not %u", task->name,
		                    task->kind, ops->ports_min, ops->ports_max, task->port_count);
	snprintf(where, sizeof(where), "tasks[%td]", task - config->tasks);
	if (task_settings_parse(ops, task, where, error) || check_agreement(config, task, ops, error))
		return -EINVAL;
	for (unsigned i = 0; i < task->port_count; i++)
		if (check_task_port(config, task, task->ports[i], ops, users, error))
			return -EINVAL;
	return 0;
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
			if (i == config->task_count)
				return config_error(error, "worker %s: there is no task \"%s\" in tasks",
				                    config->workers[w].name, name);
			users[i]++;
		}
	for (unsigned i = 0; i < config->task_count; i++)
		if (users[i] != 1)
			return config_error(error, "task %s: %u workers poll it; name it in exactly one",
			                    config->tasks[i].name, users[i]);
	return 0;
}

static int check_unique(const char *what, const char *names, size_t stride, unsigned count, char *error)
{
	for (unsigned i = 0; i < count; i++)
		for (unsigned j = 0; j < i; j++)
			if (strcmp(names + i * stride, names + j * stride) == 0)
				return config_error(error, "two %s are called \"%s\"; names must differ",
				                    what, names + i * stride);
	return 0;
}

// What makes a decoded document valid as a whole: names that exist and differ, keys that fit the kind, and
// one user for each queue. Returns 0, or -EINVAL with a sentence in error.
static int check(struct config *config, char *error)
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

static const char *const worker_idles[] = {"poll", "sleep", "nap", NULL};

static const struct field memory_fields[] = {
        {.key = "hugepages", FIELD(FIELD_BOOL, struct config_memory, hugepages)},
        {UINT_FIELD("size_mb", struct config_memory, size_mb, 32, 1 << 20)},
        {UINT_FIELD("mbuf_count", struct config_memory, mbuf_count, 64, 1 << 22)},
        {UINT_FIELD("mbuf_data_bytes", struct config_memory, mbuf_data_bytes, 1024, 65535)},
        {0},
};

static const struct field port_fields[] = {
        {.key = "name", FIELD(FIELD_NAME, struct config_port, name), .required = true},
        {.key = "kind", FIELD(FIELD_NAME, struct config_port, kind), .required = true},
        {.key = "backend", FIELD(FIELD_NAME, struct config_port, backend)},
        {.key = "path", FIELD(FIELD_STRING, struct config_port, path)},
        {.key = "device", FIELD(FIELD_STRING, struct config_port, device)},
        {UINT_FIELD("ring_size", struct config_port, ring_size, 16, 32768)},
        {UINT_FIELD("queues", struct config_port, queues, 1, CONFIG_QUEUES_MAX)},
        {UINT_FIELD("line_rate_bps", struct config_port, line_rate_bps, 1e6, 1e12)},
        {.key = "mac", FIELD(FIELD_MAC, struct config_port, mac)},
        {CHOICE_FIELD("clock", struct config_port, clock, port_clock_names)},
        {.key = "offloads", FIELD(FIELD_BOOL, struct config_port, offloads)},
        {.key = "packed", FIELD(FIELD_BOOL, struct config_port, packed)},
        {.key = "zero_copy", FIELD(FIELD_BOOL, struct config_port, zero_copy)},
        {.key = "group", FIELD(FIELD_STRING, struct config_port, drivers.group)},
        {UINT_FIELD("max_connections", struct config_port, drivers.max_connections, 1,
                    CONFIG_CONNECTIONS_MAX)},
        {UINT_FIELD("connections_per_s", struct config_port, drivers.connections_per_s, 1, 1000)},
        {UINT_FIELD("max_memory_mb", struct config_port, drivers.max_memory_mb, 1,
                    CONFIG_DRIVER_MEMORY_MB_MAX)},
        {UINT_FIELD("max_charged_mb", struct config_port, drivers.max_charged_mb, 1,
                    CONFIG_DRIVER_MEMORY_MB_MAX)},
        {0},
};

static const struct field worker_fields[] = {
        {.key = "name", FIELD(FIELD_NAME, struct config_worker, name), .required = true},
        {UINT_FIELD("cpu", struct config_worker, cpu, 0, 1023), .required = true},
        {CHOICE_FIELD("idle", struct config_worker, idle, worker_idles)},
        {UINT_FIELD("duty_percent", struct config_worker, duty_percent, 1, 99)},
        {UINT_FIELD("gap_threshold_ns", struct config_worker, gap_threshold_ns, 1e3, 1e9)},
        {ARRAY_FIELD("tasks", FIELD_NAME, struct config_worker, tasks, task_count, 0, CONFIG_TASKS_MAX),
         .required = true},
        {0},
};

// What its kind has of its own is decoded later (task_settings_parse()).
static int decode_task(const json_t *value, void *out, const char *where, char *error)
{
	((struct config_task *)out)->object = value;
	return schema_decode_beside(value, task_common_keys, SCHEMA_ANY, out, where, error);
}

static const struct field root_fields[] = {
        {UINT_FIELD("version", struct config, version, 0, 65535), .required = true},
        {.key = "name", FIELD(FIELD_NAME, struct config, name), .required = true},
        {.key = "nice", FIELD(FIELD_INT, struct config, nice), .min = -20, .max = 19},
        {.key = "memory", FIELD(FIELD_OBJECT, struct config, memory), .fields = memory_fields},
        {ARRAY_FIELD("ports", FIELD_OBJECT, struct config, ports, port_count, 0, CONFIG_PORTS_MAX),
         .fields = port_fields},
        {ARRAY_FIELD("tasks", FIELD_CUSTOM, struct config, tasks, task_count, 0, CONFIG_TASKS_MAX),
         .decode = decode_task},
        {ARRAY_FIELD("workers", FIELD_OBJECT, struct config, workers, worker_count, 0, CONFIG_WORKERS_MAX),
         .fields = worker_fields},
        {0},
};

static int find_port_kinds(struct config *config, char *error)
{
	for (unsigned i = 0; i < config->port_count; i++) {
		struct config_port *port = &config->ports[i];

		port->ops = port_ops_find(port->kind, port->backend);
		if (port->ops)
			continue;
		if (!port_ops_find(port->kind, ""))
			return config_error(error, "ports[%u].kind: \"%s\" is not valid: expected one of %s",
			                    i, port->kind, port_kinds());
		if (*port_backends(port->kind) == '\0')
			return config_error(
			        error,
			        "port %s: kind %s has no \"backend\"; leave it out, or use kind vhost-user or "
			        "virtio-user",
			        port->name, port->kind);
		return config_error(error, "ports[%u].backend: \"%s\" is not valid: expected one of %s", i,
		                    port->backend, port_backends(port->kind));
	}
	return 0;
}

static int decode(const json_t *document, struct config *config, char *error)
{
	config->nice = CONFIG_NICE_UNSET;
	config->memory = (struct config_memory){.size_mb = 256, .mbuf_count = 16383, .mbuf_data_bytes = 2176};
	for (unsigned i = 0; i < CONFIG_PORTS_MAX; i++) {
		config->ports[i].ring_size = 256;
		config->ports[i].queues = 1;
		config->ports[i].line_rate_bps = 10000000000;
	}
	if (schema_decode(document, root_fields, config, "document", error))
		return -EINVAL;
	if (config->version != CONFIG_VERSION)
		return config_error(error,
		                    "document.version: %u is not supported; this planed reads version %d",
		                    config->version, CONFIG_VERSION);
	if (find_port_kinds(config, error) || check(config, error))
		return -EINVAL;
	for (unsigned i = 0; i < config->task_count; i++)
		config->tasks[i].object = NULL; // it is the caller's
	return 0;
}

struct config *config_decode(const json_t *document, char error[static CONFIG_ERROR_MAX])
{
	struct config *config = calloc(1, sizeof(*config));

	if (config == NULL)
		return config_error_null(error, "no memory for the configuration");
	if (decode(document, config, error)) {
		config_free(config);
		return NULL;
	}
	return config;
}

// --- What this machine has --------------------------------------------------------------------------------

// By trying it: the CPUs of this thread may be fewer than those that a worker may move to.
static bool may_run_on(unsigned cpu)
{
	cpu_set_t before, one;
	bool moved;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_getaffinity(0, sizeof(before), &before);
	moved = sched_setaffinity(0, sizeof(one), &one) == 0;
	if (moved)
		sched_setaffinity(0, sizeof(before), &before);
	return moved;
}

static int check_cpu(const struct config_worker *worker, char *error)
{
	const long count = sysconf(_SC_NPROCESSORS_CONF);

	if (may_run_on(worker->cpu))
		return 0;
	if (worker->cpu >= count)
		return config_error(
		        error,
		        "worker %s cannot run on cpu %u: this machine has cpus 0 to %ld; give one of them",
		        worker->name, worker->cpu, count - 1);
	return config_error(error,
	                    "worker %s cannot run on cpu %u: it is offline or this process may not use it; "
	                    "see taskset -p %d, or give another cpu",
	                    worker->name, worker->cpu, (int)getpid());
}

static int check_folder(const struct config_port *port, char *error)
{
	const char *slash = strrchr(port->path, '/');
	char folder[CONFIG_PATH_MAX];

	if (!port->ops->listens)
		return 0;
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - port->path) + 1 : 1,
	         slash ? port->path : ".");
	if (access(folder, W_OK | X_OK) == 0)
		return 0;
	return config_error(error, "port %s: folder %.120s of its path: %s; %s", port->name, folder,
	                    strerror(errno),
	                    errno == ENOENT ? "create it, or give another path"
	                                    : "give a path in a folder that planed may write");
}

int config_check_host(const struct config *config, char error[static CONFIG_ERROR_MAX])
{
	for (unsigned i = 0; i < config->worker_count; i++)
		if (check_cpu(&config->workers[i], error))
			return -EINVAL;
	for (unsigned i = 0; i < config->port_count; i++)
		if (check_folder(&config->ports[i], error))
			return -EINVAL;
	return 0;
}

void config_free(struct config *config)
{
	for (unsigned i = 0; config && i < config->task_count; i++) {
		struct config_task *task = &config->tasks[i];

		if (task->settings)
			task_settings_free(task->ops, task->settings);
	}
	free(config);
}

struct config *config_load(const char *path, json_t **document, char error[static CONFIG_ERROR_MAX])
{
	FILE *file = fopen(path, "re");
	json_error_t where;
	struct config *config;

	*document = NULL;
	if (file == NULL)
		return config_error_null(error, "%.180s: %s", path, strerror(errno));
	(void)!fscanf(file, "\xef\xbb\xbf"); // a byte-order mark, if there is one
	*document = json_loadf(file, JSON_REJECT_DUPLICATES, &where);
	fclose(file);
	if (*document == NULL)
		return config_error_null(error, "%.100s: line %d: %.100s", path, where.line, where.text);
	config = config_decode(*document, error);
	if (config == NULL) {
		json_decref(*document);
		*document = NULL;
	}
	return config;
}
