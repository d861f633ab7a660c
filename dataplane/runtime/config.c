// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tasks/bridge/config_bridge.h"
#include "runtime/config_check.h"
#include "lib/schema.h"

_Static_assert(CONFIG_ERROR_MAX == (int)SCHEMA_ERROR_MAX, "one buffer serves both");

const char *const config_port_kinds[] = {"vhost-user", "virtio-user", "ethdev", NULL};
static const char *const port_backends[] = {"dpdk", "vring", NULL};
static const char *const worker_idles[] = {"poll", "sleep", NULL};

struct root {
	uint32_t version;
	char name[CONFIG_NAME_MAX];
	int nice;
};

static const struct field root_fields[] = {
        {.key = "version", FIELD(FIELD_UINT, struct root, version), .required = true, .max = 65535},
        {.key = "name", FIELD(FIELD_NAME, struct root, name), .required = true},
        {.key = "nice", FIELD(FIELD_INT, struct root, nice), .min = -20, .max = 19},
        {.key = "memory", .type = FIELD_ANY},
        {.key = "ports", .type = FIELD_ANY},
        {.key = "tasks", .type = FIELD_ANY},
        {.key = "workers", .type = FIELD_ANY},
        {0},
};

static const struct field memory_fields[] = {
        {.key = "hugepages", FIELD(FIELD_BOOL, struct config_memory, hugepages)},
        {.key = "size_mb", FIELD(FIELD_UINT, struct config_memory, size_mb), .min = 32, .max = 1 << 20},
        {.key = "mbuf_count", FIELD(FIELD_UINT, struct config_memory, mbuf_count), .min = 64, .max = 1 << 22},
        {.key = "mbuf_data_bytes",
         FIELD(FIELD_UINT, struct config_memory, mbuf_data_bytes),
         .min = 1024,
         .max = 65535},
        {0},
};

static const struct field port_fields[] = {
        {.key = "name", FIELD(FIELD_NAME, struct config_port, name), .required = true},
        {.key = "kind",
         FIELD(FIELD_CHOICE, struct config_port, kind),
         .required = true,
         .choices = config_port_kinds},
        {.key = "backend", FIELD(FIELD_CHOICE, struct config_port, backend), .choices = port_backends},
        {.key = "path", FIELD(FIELD_STRING, struct config_port, path)},
        {.key = "device", FIELD(FIELD_STRING, struct config_port, device)},
        {.key = "ring_size", FIELD(FIELD_UINT, struct config_port, ring_size), .min = 16, .max = 32768},
        {.key = "queues", FIELD(FIELD_UINT, struct config_port, queues), .min = 1, .max = CONFIG_QUEUES_MAX},
        {.key = "line_rate_bps",
         FIELD(FIELD_UINT, struct config_port, line_rate_bps),
         .min = 1e6,
         .max = 1e12},
        {.key = "mac", FIELD(FIELD_MAC, struct config_port, mac)},
        {0},
};

static const struct field fault_fields[] = {
        {.key = "drop_one_in",
         FIELD(FIELD_UINT, struct config_fault, drop_one_in),
         .required = true,
         .min = 1,
         .max = UINT32_MAX},
        {0},
};

static int decode_settings(const json_t *value, void *out, const char *where, char *error)
{
	const json_t **settings = out;

	if (!json_is_object(value)) {
		snprintf(error, CONFIG_ERROR_MAX, "%s: expected an object", where);
		return -EINVAL;
	}
	*settings = value;
	return 0;
}

static const struct field task_fields[] = {
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
        {.key = "stream", FIELD(FIELD_UINT, struct config_task, stream), .max = CONFIG_STREAMS - 1},
        {.key = "src_mac", FIELD(FIELD_MAC, struct config_task, src_mac)},
        {.key = "dst_mac", FIELD(FIELD_MAC, struct config_task, dst_mac)},
        {.key = "src_ip", FIELD(FIELD_IPV4, struct config_task, src_ip)},
        {.key = "dst_ip", FIELD(FIELD_IPV4, struct config_task, dst_ip)},
        {.key = "peer_macs", FIELD(FIELD_MACS, struct config_task, peer_macs), .max = 2},
        {.key = "fault", FIELD(FIELD_OBJECT, struct config_task, fault), .fields = fault_fields},
        {.key = "bridge", FIELD(FIELD_CUSTOM, struct config_task, bridge), .decode = config_bridge_decode},
        {.key = "settings", FIELD(FIELD_CUSTOM, struct config_task, settings), .decode = decode_settings},
        {0},
};

static const struct field worker_fields[] = {
        {.key = "name", FIELD(FIELD_NAME, struct config_worker, name), .required = true},
        {.key = "cpu", FIELD(FIELD_UINT, struct config_worker, cpu), .required = true, .max = 1023},
        {.key = "idle", FIELD(FIELD_CHOICE, struct config_worker, idle), .choices = worker_idles},
        {.key = "tasks",
         FIELD(FIELD_NAMES, struct config_worker, tasks),
         .required = true,
         .min = 0,
         .max = CONFIG_TASKS_MAX,
         .count_offset = offsetof(struct config_worker, task_count)},
        {0},
};

// Decode every object of an array into items[]; absent means empty.
static int decode_array(const json_t *document, const char *key, const struct field *fields, void *items,
                        size_t item_size, unsigned max, unsigned *count, char *error)
{
	const json_t *array = json_object_get(document, key);

	*count = 0;
	if (array == NULL)
		return 0;
	if (!json_is_array(array) || json_array_size(array) > max) {
		snprintf(error, CONFIG_ERROR_MAX, "%s: expected an array of at most %u objects", key, max);
		return -EINVAL;
	}
	for (size_t i = 0; i < json_array_size(array); i++) {
		char where[48];

		snprintf(where, sizeof(where), "%s[%zu]", key, i);
		if (schema_decode(json_array_get(array, i), fields, (char *)items + i * item_size, where,
		                  error))
			return -EINVAL;
	}
	*count = (unsigned)json_array_size(array);
	return 0;
}

static int decode_parts(const json_t *document, struct config *config, char *error)
{
	const json_t *memory = json_object_get(document, "memory");

	if (memory && schema_decode(memory, memory_fields, &config->memory, "memory", error))
		return -EINVAL;
	if (decode_array(document, "ports", port_fields, config->ports, sizeof(config->ports[0]),
	                 CONFIG_PORTS_MAX, &config->port_count, error) ||
	    decode_array(document, "tasks", task_fields, config->tasks, sizeof(config->tasks[0]),
	                 CONFIG_TASKS_MAX, &config->task_count, error) ||
	    decode_array(document, "workers", worker_fields, config->workers, sizeof(config->workers[0]),
	                 CONFIG_WORKERS_MAX, &config->worker_count, error))
		return -EINVAL;
	return 0;
}

static int decode(const json_t *document, struct config *config, char *error)
{
	struct root root = {.nice = CONFIG_NICE_UNSET};

	if (schema_decode(document, root_fields, &root, "document", error))
		return -EINVAL;
	if (root.version != CONFIG_VERSION) {
		snprintf(error, CONFIG_ERROR_MAX,
		         "document.version: %u is not supported; this planed reads version %d", root.version,
		         CONFIG_VERSION);
		return -EINVAL;
	}
	memcpy(config->name, root.name, sizeof(config->name));
	config->nice = root.nice;
	config->memory = (struct config_memory){.size_mb = 256, .mbuf_count = 16383, .mbuf_data_bytes = 2176};
	for (unsigned i = 0; i < CONFIG_PORTS_MAX; i++) {
		config->ports[i].ring_size = 256;
		config->ports[i].queues = 1;
		config->ports[i].line_rate_bps = 10000000000;
		config->ports[i].backend = PORT_BACKEND_UNSET;
	}
	for (unsigned i = 0; i < CONFIG_TASKS_MAX; i++)
		config_bridge_default(&config->tasks[i].bridge);
	if (decode_parts(document, config, error) || config_check(config, error))
		return -EINVAL;
	for (unsigned i = 0; i < config->port_count; i++)
		if (config->ports[i].backend == PORT_BACKEND_UNSET)
			config->ports[i].backend = PORT_BACKEND_DEFAULT;
	return 0;
}

struct config *config_decode(const json_t *document, char error[static CONFIG_ERROR_MAX])
{
	struct config *config = calloc(1, sizeof(*config));

	if (config == NULL) {
		snprintf(error, CONFIG_ERROR_MAX, "no memory for the configuration");
		return NULL;
	}
	if (decode(document, config, error)) {
		free(config);
		return NULL;
	}
	return config;
}

struct config *config_load(const char *path, json_t **document, char error[static CONFIG_ERROR_MAX])
{
	json_error_t where;
	struct config *config;

	*document = NULL;
	if (access(path, R_OK)) {
		snprintf(error, CONFIG_ERROR_MAX, "%.180s: %s", path, strerror(errno));
		return NULL;
	}
	*document = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
	if (*document == NULL) {
		snprintf(error, CONFIG_ERROR_MAX, "%.100s: line %d: %.100s", path, where.line, where.text);
		return NULL;
	}
	config = config_decode(*document, error);
	if (config == NULL) {
		json_decref(*document);
		*document = NULL;
	}
	return config;
}
