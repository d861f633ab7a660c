// SPDX-License-Identifier: BSD-3-Clause
// A task is what a worker polls: generator, monitor, l2fwd, patch, bridge. One file per kind implements
// struct task_ops.
//
// Threads: poll() runs on the task's worker only. Everything else runs on the control thread while that
// worker is parked, so a task needs no locks and no atomics. poll() never allocates, logs, locks or sleeps.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/config.h"

struct port;
struct stamps;
struct task;
struct vnf_ops;

// What the worker and every kind count. One writer (the worker); a cache line of its own.
struct task_counters {
	uint64_t polls;
	uint64_t busy_polls;  // poll() returned > 0
	uint64_t busy_cycles; // TSC cycles spent in those
	uint64_t idle_cycles;
	uint64_t rx_packets;                          // taken from a port
	uint64_t tx_packets;                          // accepted by a port
	uint64_t rx_bursts;                           // polls of a port that found frames; of ops->bursts
	uint64_t rx_full_bursts;                      // those that found as many as they may take
	uint64_t drop_tx_full[CONFIG_TASK_PORTS_MAX]; // freed because ports[i] did not accept them
} __attribute__((aligned(64)));

// Count one poll of a port that took n frames (0..burst) of at most burst.
static inline void task_received(struct task_counters *counters, unsigned n, unsigned burst)
{
	counters->rx_bursts += n != 0;
	counters->rx_full_bursts += n == burst;
	counters->rx_packets += n;
}

// One kind of task.
struct task_ops {
	const char *kind;
	unsigned ports_min, ports_max;
	bool receives, sends; // on its queue of each port; no two tasks do the same on one queue
	bool faults;          // takes the key "fault"
	bool bursts;          // calls task_received(), so rx_bursts and rx_full_bursts are counted
	bool stamps;          // notes the probes it sees in task->stamps, if there are any

	const struct vnf_ops *vnf; // of a network function (tasks/vnf/vnf.h), or NULL

	// Allocate and set up from an already validated config; ports[] outlive the task.
	// Returns 0 and *out, or -errno after logging one line.
	int (*create)(const struct config_task *config, struct port *const *ports, struct task **out);
	void (*destroy)(struct task *task); // frees every mbuf it holds

	// Do a bounded amount of work. now_tsc: time of this call. Returns the number of packets handled, 0
	// when idle.
	unsigned (*poll)(struct task *task, uint64_t now_tsc);

	void (*clear)(struct task *task); // kind-specific counters to zero; may be NULL
	void (*report)(const struct task *task,
	               json_t *object); // adds kind-specific keys to the stats object; may be NULL
};

// Every kind's struct begins with this.
struct task {
	struct task_counters counters;
	const struct task_ops *ops;
	char name[CONFIG_NAME_MAX];
	const char *worker;    // name of the worker that polls it
	struct stamps *stamps; // NULL unless asked for; made and freed between trials (traffic.c)
	uint16_t queue;        // of each of its ports
	unsigned port_count;
	struct port *ports[CONFIG_TASK_PORTS_MAX];
};

extern const struct task_ops generator_ops, monitor_ops, l2fwd_ops, patch_ops, bridge_ops, l3fwd_ops,
        firewall_ops, nat44_ops, load_balancer_ops, rate_limiter_ops, flow_monitor_ops, fib_offload_ops,
        fib_source_ops;

// What all ports of a task together did not accept.
uint64_t task_drop_tx_full(const struct task *task);

// What every kind drops, into its stats object: "drops", to which a kind adds its own reasons, and
// "drops_by_port".
void task_report_drops(const struct task *task, json_t *object);

// The names of all kinds, one space between them.
const char *task_kinds(void);

// The ops of a kind, or NULL.
const struct task_ops *task_ops_find(const char *kind);

// What every kind's create() begins with. Control thread.

// Allocate a zeroed struct of size bytes that begins with struct task, cache-line aligned, with ops, name and
// ports set. NULL without memory, after logging one line. Free with free().
void *task_alloc(size_t size, const struct task_ops *ops, const struct config_task *config,
                 struct port *const *ports);
