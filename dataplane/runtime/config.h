// SPDX-License-Identifier: BSD-3-Clause
// The configuration document (docs/design/planed-protocol.md) as C structs. Passive data: decoded whole or
// refused whole, needs no EAL. Owned by whoever called config_decode(): config_free().
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include "port/port.h"
#include "task/task.h"

enum {
	CONFIG_VERSION = 1,
	CONFIG_TASKS_MAX = 128,
	CONFIG_WORKERS_MAX = 32,
};

enum config_worker_idle { WORKER_IDLE_POLL, WORKER_IDLE_SLEEP, WORKER_IDLE_NAP };

struct config_worker {
	char name[CONFIG_NAME_MAX];
	uint32_t cpu;
	enum config_worker_idle idle; // what it does when there is nothing to do
	uint32_t duty_percent;        // the emulated clock, of that of the CPU; 0: the CPU's own
	uint32_t gap_threshold_ns;    // 0: WORKER_GAP_THRESHOLD_NS
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
	uint32_t version;
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

// Whether this machine has what a document names: the CPUs of workers, and the folders of sockets that planed makes.
// Returns 0, or -EINVAL with a sentence in error.
int config_check_host(const struct config *config, char error[static CONFIG_ERROR_MAX]);

// config_decode() from a file.
struct config *config_load(const char *path, json_t **document, char error[static CONFIG_ERROR_MAX]);
