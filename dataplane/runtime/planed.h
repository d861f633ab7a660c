// SPDX-License-Identifier: BSD-3-Clause
// The running process: the configuration in force and what was made of it. One per process, owned by main(),
// used by the control thread only.
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "runtime/config.h"

struct port;
struct rte_mempool;
struct task;
struct worker;

struct planed {
	json_t *document; // as it was given
	struct config *config;
	struct rte_mempool *rx_pool;
	unsigned port_count, task_count, worker_count;
	struct port *ports[CONFIG_PORTS_MAX];
	struct task *tasks[CONFIG_TASKS_MAX];
	struct worker *workers[CONFIG_WORKERS_MAX];
	bool ending;     // set by the RPC shutdown
	bool takes_over; // what came before the workers run is handled by another process
};

// Make config the one in force: open ports that are new, close those that are gone, replace tasks and
// workers. Applied whole, or refused whole with a sentence in error and nothing changed. Takes config over,
// and a reference to document, if it returns 0. A port that is unchanged keeps its connection. added and
// removed are JSON arrays that collect names; both may be NULL.
int planed_apply(struct planed *planed, struct config *config, json_t *document, json_t *added,
                 json_t *removed, char error[static CONFIG_ERROR_MAX]);

// Whether what a document names fits: the pool and all tasks are made and freed again. The machine's ports may be in use:
// before EAL starts, planed_stand_in() gives config a name of its own, and devices that take and bring nothing instead.
// Returns 0, or -errno after logging one line.
void planed_stand_in(struct config *config);
int planed_fits(struct config *config);

// Stop and free everything. Returns 0; or -ETIMEDOUT after logging one line if a worker does not stop: nothing is freed,
// and the process can only exit.
int planed_close(struct planed *planed);

// Have all workers parked, or the one that polls a task; and have them poll again. One deadline for all: where one does
// not park in time, -ETIMEDOUT with a sentence in error (CONFIG_ERROR_MAX), and all poll on.
int planed_park(const struct planed *planed, char *error);
int planed_park_task(const struct planed *planed, const struct task *task, char *error);
void planed_run(const struct planed *planed);

// Wait until each worker has polled all of its tasks once since the call. Returns 0, or -ETIMEDOUT with a sentence in
// error (CONFIG_ERROR_MAX) that names one that has not, and the task that it stands in.
int planed_wait_turn(const struct planed *planed, char *error);

// Log which workers stand, and which go on, if drivers that are not ours can make them. Returns after how many
// milliseconds to call it again; -1: never, so that nobody's CPU is taken for it in vain.
int planed_look_after_workers(const struct planed *planed);

// Have tasks keep in files what outlives the process (task_ops.keep), while workers run. As above: after how many
// milliseconds to call it again, or -1.
int planed_keep(const struct planed *planed, bool ending);

// The task of this name, or NULL.
struct task *planed_find_task(const struct planed *planed, const char *name);
