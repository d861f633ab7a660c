// SPDX-License-Identifier: BSD-3-Clause
// A worker is one thread pinned to one CPU that polls its tasks in turn. It never blocks while it runs, and
// sleeps only where others poll on its CPU and it was told to ("idle": "sleep"): for a microsecond at a time
// once nothing has come for WORKER_IDLE_TURNS turns. Parked, it sleeps, and the control thread may read and
// change everything its tasks own.
//
// With a duty of less than 100 % it waits after each poll, so that all its work takes as much longer as at a lower clock.
// The wait counts as the poll's own cycles, as TSC cycles at a lower clock would.
//
// All functions are for the control thread.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "runtime/config.h"

struct task;

enum {
	WORKER_GAP_THRESHOLD_NS = 100000,
	WORKER_IDLE_TURNS = 64,
	WORKER_SLEEP_NS = 1000,
	WORKER_NAP_NS = 5000000, // of a control plane, which may wait
	WORKER_PARK_MS = 5000,
	WORKER_STANDS_MS = 2000, // without a turn: it is named
	WORKER_LOOK_MS = 1000,
	WORKER_RAN_NS = 20000000, // no turn takes so much of a CPU
};

enum worker_order { WORKER_PARK, WORKER_RUN, WORKER_END };

// One writer: the worker. A gap is one turn through all tasks that took longer than the worker's threshold:
// the thread lost its CPU. Of a gap counts what is in the watched time; one may begin with it, before the
// first turn. Sleeping is idle, and no gap.
struct worker_counters {
	uint64_t loops, sleeps, busy_cycles, idle_cycles;
	uint64_t gaps, gap_sum_cycles, gap_max_cycles;
};

struct worker {
	char name[CONFIG_NAME_MAX];
	uint32_t cpu;
	enum config_worker_idle idle;
	uint32_t duty_percent;
	int nice;
	pid_t tid;
	unsigned task_count;
	struct task *tasks[CONFIG_TASKS_MAX];
	uint64_t watch_from_tsc, watch_until_tsc, gap_threshold_ns, gap_threshold_cycles;

	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int start_error;
	bool parked;         // under lock
	uint64_t loops_seen; // by worker_look_after()
	int64_t seen_ms;
	uint64_t ran_seen_ns; // CPU time that its thread had had then
	bool stands, waits;   // said since
	_Atomic(enum worker_order) order;

	struct worker_counters counters __attribute__((aligned(64)));
};

// Start the thread, parked. The tasks stay the caller's and must outlive the worker. Returns 0, or -errno
// after logging one line.
int worker_create(const struct config_worker *config, struct task *const *tasks, int nice,
                  struct worker **out);
void worker_destroy(struct worker *worker);

// Parking: first the order to all that are to park, then for each the wait, until the deadline that they share.
// worker_wait_parked() returns 0, or -ETIMEDOUT: it polls on after worker_run().
void worker_order_park(struct worker *worker);
unsigned worker_park_ms(void);              // WORKER_PARK_MS times $PLANEBENCH_PATIENCE (1 to 1000)
struct timespec worker_park_deadline(void); // worker_park_ms() from now
int worker_wait_parked(struct worker *worker, const struct timespec *deadline);
void worker_run(struct worker *worker);

// Wait until the worker has polled all its tasks once since the call, or for the deadline. It goes on meanwhile. Returns
// whether it has.
bool worker_wait_turn(const struct worker *worker, const struct timespec *deadline);

// Log one line if the worker has not finished a turn for WORKER_STANDS_MS: it stands in a task, or others use its CPU; and
// one when it goes on.
void worker_look_after(struct worker *worker);

// Whether a thread in this state (proc(5)) that ran for so long since its last turn waits for its CPU. One that stands in a task
// uses its CPU or sleeps.
bool worker_waits_for_cpu(char state, uint64_t ran_ns);

// The task that a worker is in that does not finish its turn; NULL if it has none.
const struct task *worker_standing_in(const struct worker *worker);

// Counters to zero; gaps count from from_tsc (0: from the first turn on) to until_tsc. Parked workers only.
void worker_clear(struct worker *worker, uint64_t from_tsc, uint64_t until_tsc);
