// SPDX-License-Identifier: BSD-3-Clause
// A task is what a worker polls: generator, monitor, network function, switch. A kind of task is one struct task_ops
// that registers itself (TASK_KIND), so a new kind is a file and a line in meson.build
// (docs/design/adding.md). Nothing else knows a kind by its name.
//
// Threads: poll() runs on the task's worker only, and never allocates, logs, locks or sleeps. Everything else runs on
// the control thread: while that worker is parked, unless it says otherwise. Counters have one writer, the worker, and
// are read while it runs.
#pragma once

#include <jansson.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/counters.h"
#include "base/schema.h"

struct port;
struct stamps;
struct task;
struct task_ops;
struct vnf_ops;

enum {
	CONFIG_TASK_PORTS_MAX = 72, // 63 VNFs and their wires (ic16); a verdict (vnf.h) has room for 127
	CONFIG_BURST_MAX = 64,
	TASK_BURST = 32,
};

// A task of the configuration document.
struct config_task {
	char name[CONFIG_NAME_MAX];
	char kind[CONFIG_NAME_MAX];
	unsigned port_count;
	char ports[CONFIG_TASK_PORTS_MAX][CONFIG_NAME_MAX];
	uint32_t queue;             // which queue pair of its ports
	uint32_t burst;             // 0: the kind's, which task_create() puts here
	const struct task_ops *ops; // of its kind
	const json_t *object;       // the whole of it, while it is decoded
	void *settings;             // of the kind, from task_settings_parse() until its task is made
	bool check;                 // planed --check: what a formula says need not be filled in
};

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
	counter_add(&counters->rx_bursts, n != 0);
	counter_add(&counters->rx_full_bursts, n == burst);
	counter_add(&counters->rx_packets, n);
}

// What a generator has offered of a stream: frames 0 .. packets - 1. It says so before it sends them, so that who
// receives one always finds it counted. TRIAL_OFFERED_UNKNOWN: the stream has no generator in this process.
enum { TRIAL_STREAMS = 8 };
#define TRIAL_OFFERED_UNKNOWN UINT64_MAX

struct trial_offered {
	_Alignas(64) _Atomic(uint64_t) packets;
};

struct trial {
	uint16_t epoch;
	uint64_t start_tsc, duration_ns;
	uint64_t nonce;  // of its frames (frame_stamp()), or 0
	bool ptp_probes; // a device of some port stamps received PTP messages only
	bool sampled;    // monitors look into some bursts only, so there are no frames with time stamps
	struct trial_offered
	        *offered; // of TRIAL_STREAMS streams, for as long as the process runs; NULL without nonce
};

// A method of the control socket, KIND.NAME. call() is given its params as fields decode them (beside "task", which each
// method has) over a copy of defaults (size bytes). Returns a new object, or NULL with a sentence in error
// (CONFIG_ERROR_MAX).
struct task_method {
	const char *name;
	json_t *(*call)(struct task *task, const void *params, uint64_t now_tsc, char *error);
	const struct field *fields; // NULL: it takes no params
	const void *defaults;       // NULL: zeros
	size_t size;                // TASK_PARAMS_MAX at most
};
enum { TASK_PARAMS_MAX = 2048 };
#define TASK_DEFAULTS(defaults_) .defaults = &(defaults_), .size = sizeof(defaults_)

// A page of a list that a method returns: its params, their fields (of limit, with its bounds), and the answer
// {key: items, "next": from of the page that follows, or null if there is none}.
struct task_page {
	uint64_t from;
	uint32_t limit;
};
#define TASK_PAGE_FIELDS(min_, max_)                                                                         \
	{UINT_FIELD("from", struct task_page, from, 0, UINT32_MAX)},                                         \
	{                                                                                                    \
		UINT_FIELD("limit", struct task_page, limit, min_, max_)                                     \
	}
json_t *task_page(const char *key, json_t *items, bool more, uint64_t next);

// One kind of task. What may be NULL says so.
struct task_ops {
	const char *kind;
	unsigned ports_min, ports_max;
	bool receives, sends; // on its queue of each port; no two tasks do the same on one queue
	bool bursts;          // calls task_received(), so rx_bursts and rx_full_bursts are counted
	uint16_t burst;       // frames of a poll where the document says nothing; 0: TASK_BURST
	bool offloads;        // takes ports with offloads: passes frames on by port_send()
	bool stamps;          // notes the probes it sees in task->stamps, if there are any

	const struct vnf_ops *vnf; // of a network function (nf/vnf.h), or NULL

	// Settings: the keys of the task object that not all kinds have, decoded once over a copy of the defaults into what
	// config->settings and then task->settings is. settings_check(): whether they go together, and the files that they
	// name, without side effect; returns 0, or -EINVAL with a sentence in error. where: names the object.
	// settings_free(): what settings own, also after an error.
	const struct field *settings_keys; // NULL: the kind has no keys of its own
	const void *settings_defaults;     // NULL: zeros
	size_t settings_size;
	int (*settings_check)(const struct config_task *config, void *settings, const char *where,
	                      char *error);
	void (*settings_free)(void *settings);

	// What the kind would make of an object, of files that it names too, without a task: for plans (planed --facts). Returns
	// a new object, or NULL with a sentence in error. May be NULL.
	json_t *(*facts)(const json_t *object, char *error);

	// Check that two tasks of this kind fit into one document. Returns 0, or -EINVAL with a sentence in error. May be NULL.
	int (*agree)(const struct config_task *a, const struct config_task *b, char *error);

	// Allocate (task_alloc()) and set up from config and its settings, which outlive the task; so do ports[].
	// Returns 0 and *out, or -errno after logging one line.
	int (*create)(const struct config_task *config, struct port *const *ports, struct task **out);
	void (*destroy)(struct task *task); // frees every mbuf it holds

	// A task of this name and kind is about to be replaced by task: take over what it knows (sessions), as far as it
	// fits the new settings. It is destroyed next. No worker runs. May be NULL.
	void (*adopt)(struct task *task, struct task *old);

	// The task is about to run, whether it replaces one or not: what it shares with other tasks has its settings from
	// now on. No worker runs. May be NULL.
	void (*take_effect)(struct task *task);

	// Keep in a file what outlives the process, while the worker runs: if it is due, or ending, and there is anything new.
	// Returns the milliseconds after which to call it again, or -1 for never. May be NULL.
	int (*keep)(struct task *task, bool ending);

	// Do a bounded amount of work. now_tsc: time of this call. Returns the number of packets handled, 0
	// when idle.
	unsigned (*poll)(struct task *task, uint64_t now_tsc);

	// A trial. load(): get ready to send what an object of traffic.start says, the worker may run; begin(): it starts,
	// for a kind with load() only if there was one. Return 0, or -errno; load() with a sentence in error, begin()
	// after logging one line. running() is called while the worker runs. All may be NULL.
	int (*load)(struct task *task, const json_t *load, const char *where, char *error);
	int (*begin)(struct task *task, const struct trial *trial);
	void (*end)(struct task *task);
	bool (*running)(const struct task *task);

	// Counters of the kind's struct, in the objects "drops" and KIND of the stats object. NULL: none.
	const struct counter *drops, *counters;
	void (*clear)(struct task *task); // what is not in these tables to zero; may be NULL

	// Add what is not in these tables to the object KIND. The workers run meanwhile, unless report_parks: then what is
	// read is more than single counters, and they are parked; not while traffic runs, when this is left out. May be NULL.
	void (*report)(const struct task *task, json_t *object, uint64_t now_tsc);
	bool report_parks;

	const struct task_method *methods; // NULL name at the end; may be NULL
	bool methods_beside; // the worker runs meanwhile: methods keep out of its way by themselves
};

// Put a kind into the table of kinds, before main().
#define TASK_KIND(ops_)                                                                                      \
	__attribute__((constructor)) static void register_##ops_(void)                                       \
	{                                                                                                    \
		task_register(&(ops_));                                                                      \
	}
void task_register(const struct task_ops *ops);

// Every kind's struct begins with this.
struct task {
	struct task_counters counters;
	const struct task_ops *ops;
	char name[CONFIG_NAME_MAX];
	void *settings;        // for as long as the task is there
	const char *worker;    // name of the worker that polls it
	struct stamps *stamps; // NULL unless asked for; made and freed between trials (traffic.c)
	uint16_t queue;        // of each of its ports
	uint32_t charge;       // of this poll of a port: see task_charge()
	uint32_t idle_polls;   // since the last frame: see task_warms()
	unsigned port_count;
	struct port *ports[CONFIG_TASK_PORTS_MAX];
	uint8_t debt[CONFIG_TASK_PORTS_MAX]; // polls in which nothing is read from ports[i]
};

// A port whose frames make a poll long is polled less often, so that it takes no more of its worker's time than others.
// The function that does more for a frame than for one of a known flow adds that to task->charge, in frames of a known flow:
// a new session, a station to be learned, a copy. Each burst of them is paid by one poll in which nothing is read from the
// port. No frame is lost: they wait in its ring. A worker that has nothing else to do is back at once.
static inline void task_charge(struct task *task, unsigned in, unsigned burst)
{
	if (likely(task->charge == 0))
		return;
	task->debt[in] = (uint8_t)RTE_MIN(task->charge / burst, (uint32_t)UINT8_MAX);
	task->charge = 0;
}

// Whether this poll is one of those.
static inline bool task_skips_poll(struct task *task, unsigned in)
{
	if (likely(task->debt[in] == 0))
		return false;
	task->debt[in]--;
	return true;
}

// Whether a poll that handled so many frames has its ports fetch what the next frame needs (port_warm()): the first that
// found none, and then one of WARM_EACH, for what an interrupt has evicted. More often only makes the round longer in which
// a frame waits for its poll.
enum { WARM_EACH = 16 };
static inline bool task_warms(struct task *task, unsigned handled)
{
	if (likely(handled)) {
		task->idle_polls = 0;
		return false;
	}
	return task->idle_polls++ % WARM_EACH == 0;
}

// The turn of the worker whose thread this is: when it began, and the ticks above which a turn is a gap.
// Zeros: no worker. Its place is known when the program is linked, so that a worker tells it by one store.
struct poll_turn {
	uint64_t begin_tsc, gap_ticks;
};
extern _Thread_local struct poll_turn poll_turn __attribute__((tls_model("local-exec")));

// Gaps of all workers of this process: when the last ended; that there was one; how much of a time is in the last
// POLL_GAPS, where those of several workers add up. Any thread.
enum { POLL_GAPS = 256 };
extern _Atomic(uint64_t) poll_gap_end_tsc;
void poll_gap_note(uint64_t begin_tsc, uint64_t end_tsc);
uint64_t poll_gap_ticks(uint64_t from_tsc, uint64_t until_tsc);

// Whether a gap of a worker has ended since from_tsc, or the turn that this thread is in is one by now_tsc. One of another
// worker is known when its turn has ended.
static inline bool poll_gap_met(uint64_t from_tsc, uint64_t now_tsc)
{
	return atomic_load_explicit(&poll_gap_end_tsc, memory_order_relaxed) > from_tsc ||
	       (poll_turn.gap_ticks && now_tsc - poll_turn.begin_tsc > poll_turn.gap_ticks);
}

// What all ports of a task together did not accept.
uint64_t task_drop_tx_full(const struct task *task);

// Into its stats object: what all kinds count, "drops", "drops_by_port", and the object KIND; of that, unless whole, only
// counters.
void task_report(const struct task *task, json_t *object, uint64_t now_tsc, bool whole);

void task_clear(struct task *task); // counters to zero

// The names of all kinds, one space between them.
const char *task_kinds(void);

// The ops of a kind, or NULL.
const struct task_ops *task_ops_find(const char *kind);

// What every kind's create() begins with. Control thread.

// Allocate a zeroed struct of size bytes that begins with struct task, cache-line aligned, with ops, name and
// ports set. NULL without memory, after logging one line. Free with free().
void *task_alloc(size_t size, const struct task_ops *ops, const struct config_task *config,
                 struct port *const *ports);

// --- Settings, and tasks made of them ----------------------------------------------------------------------

extern const struct field
        task_common_keys[]; // that every task object may have; offsets in struct config_task

// Parse what config->object says beside the common keys into config->settings. Returns 0, or -EINVAL with a sentence
// in error.
int task_settings_parse(const struct task_ops *ops, struct config_task *config, const char *where,
                        char *error);
void task_settings_free(const struct task_ops *ops, void *settings);

// Make a task of a kind; settings that config does not have yet are parsed. The task takes config->settings over. Returns
// 0 and *out, or -errno after logging one line.
int task_create(const struct task_ops *ops, struct config_task *config, struct port *const *ports,
                struct task **out);
void task_destroy(struct task *task);

// Call a method of a task's kind. As struct task_method; an error lists the valid ones if there is none of this name.
json_t *task_call(struct task *task, const char *method, const json_t *params, uint64_t now_tsc, char *error);
