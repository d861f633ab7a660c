// SPDX-License-Identifier: BSD-3-Clause
// The configuration document (docs/design/planed-protocol.md) as C structs. Passive data: decoded whole or
// refused whole, needs no EAL. Owned by whoever called config_decode(): config_free().
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

enum {
	CONFIG_VERSION = 1,
	CONFIG_NAME_MAX = 32,
	CONFIG_PATH_MAX = 108, // sockaddr_un
	CONFIG_DEVICE_MAX = 256,
	CONFIG_PORTS_MAX = 128,
	CONFIG_TASKS_MAX = 128,
	CONFIG_WORKERS_MAX = 32,
	CONFIG_TASK_PORTS_MAX = 72, // 63 VNFs and their wires (ic16); a verdict (vnf.h) has room for 127
	CONFIG_BURST_MAX = 64,
	CONFIG_ERROR_MAX = 256,
	CONFIG_STREAMS = 8,
	CONFIG_QUEUES_MAX = 16, // queue pairs of a port
};

struct port_ops;

struct config_port {
	char name[CONFIG_NAME_MAX];
	char kind[CONFIG_NAME_MAX], backend[CONFIG_NAME_MAX]; // backend: or empty
	const struct port_ops *ops;                           // what these two say
	char path[CONFIG_PATH_MAX];                           // of a socket; or empty
	char device[CONFIG_DEVICE_MAX];                       // devargs or PCI address; or empty
	uint32_t ring_size;
	uint32_t queues; // queue pairs
	uint64_t line_rate_bps;
	uint8_t mac[6]; // of rings of our own: its address; all zero: one is made up
};

struct task_ops;

struct config_task {
	char name[CONFIG_NAME_MAX];
	char kind[CONFIG_NAME_MAX];
	unsigned port_count;
	char ports[CONFIG_TASK_PORTS_MAX][CONFIG_NAME_MAX];
	uint32_t queue;             // which queue pair of its ports
	uint32_t burst;             // 0 = the kind's default
	const struct task_ops *ops; // of its kind
	const json_t *object;       // the whole of it, while it is decoded
	void *settings;             // of the kind, from its settings_parse() until its task is made
};

enum config_worker_idle { WORKER_IDLE_POLL, WORKER_IDLE_SLEEP };

struct config_worker {
	char name[CONFIG_NAME_MAX];
	uint32_t cpu;
	enum config_worker_idle idle; // what it does when there is nothing to do
	unsigned task_count;
	char tasks[CONFIG_TASKS_MAX][CONFIG_NAME_MAX];
};

struct config_memory {
	bool hugepages;
	uint32_t size_mb;
	uint32_t mbuf_count;      // of each pool
	uint32_t mbuf_data_bytes; // data room including headroom
};

struct config {
	char name[CONFIG_NAME_MAX];
	struct config_memory memory;
	int nice; // CONFIG_NICE_UNSET: leave as it is
	unsigned port_count, task_count, worker_count;
	struct config_port ports[CONFIG_PORTS_MAX];
	struct config_task tasks[CONFIG_TASKS_MAX];
	struct config_worker workers[CONFIG_WORKERS_MAX];
};
enum { CONFIG_NICE_UNSET = 100 };

// Decode and validate a document. Returns a config, or NULL with a sentence in error (key, value,
// way out).
struct config *config_decode(const json_t *document, char error[static CONFIG_ERROR_MAX]);

void config_free(struct config *config); // NULL is nothing

// The same from a file.
struct config *config_load(const char *path, json_t **document, char error[static CONFIG_ERROR_MAX]);
