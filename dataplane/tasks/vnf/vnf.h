// SPDX-License-Identifier: BSD-3-Clause
// What network functions have in common: a function looks at a burst of frames where they lie, changes them
// there and says of each by which port it leaves or why it is dropped. Receiving, sending, counting, and the
// stamps of probes are done here (vnf.c), in mbufs or in place, whatever the ports are (port.h).
//
// A new function is a file in nf/ with a struct vnf_ops and a line in tasks/task.c. Its key in the
// configuration document is its kind, its settings are decoded by itself (check, open).
//
// Threads: process() and tick() run on the task's worker, which never allocates, logs, locks or reads a
// clock. All else runs on the control thread while that worker is parked.
//
// rx_packets == tx_packets + drops, always.
//
// Sides (ports that are received from) are fast, polled each time, or slow: one frame of one of them a poll,
// in turn. Those that carry but control are slow (vnf_side_slow()): 63 of them would cost each poll a
// thousand cycles, and a burst of FIB messages, thousands of routes, would hold up everybody else.
#pragma once

#include <rte_ether.h>
#include <string.h>

#include "runtime/config.h"
#include "port/port.h"
#include "tasks/task.h"

enum {
	VNF_DROP = 0x80,    // a verdict: VNF_DROP | index of drops[]; below: index of ports[]
	VNF_DROPS_MAX = 32, // reasons of a kind
	VNF_MACS_BYTES = 2 * RTE_ETHER_ADDR_LEN,
};

_Static_assert((int)CONFIG_TASK_PORTS_MAX <= (int)VNF_DROP, "a verdict holds a port");

// A frame without FCS, in memory that may be written. length bytes of it lie at data; if it is longer than
// that (total), the rest is elsewhere, and whatever reads beyond must do without.
struct vnf_frame {
	uint8_t *data;
	uint32_t length, total;
};

struct vnf;

// A method of the control socket, KIND.NAME. params has "task" and what the method itself takes. Returns a
// new object, or NULL with a sentence in error (CONFIG_ERROR_MAX).
struct vnf_method {
	const char *name;
	json_t *(*call)(struct vnf *vnf, const json_t *params, uint64_t now_tsc, char *error);
};

struct vnf_ops {
	size_t size;              // of the kind's struct, which begins with struct vnf; zeroed
	const char *const *drops; // names of the reasons, NULL at the end
	bool only_forwards;       // process() is forward_burst() (forward.h), and drops[0] its runts

	// Settings (config->settings, may be NULL) and files they name, without side effect. Returns 0, or
	// -EINVAL with a sentence in error. NULL: the kind has no settings.
	int (*check)(const struct config_task *config, char *error);

	// Of two tasks of this kind in one document, which passed check(). Returns as check(). May be NULL.
	int (*agree)(const struct config_task *a, const struct config_task *b, char *error);

	// Settings into the struct: they passed check(), but files may have changed. Returns 0, or -errno
	// after logging one line; then close() is called all the same. May be NULL.
	int (*open)(struct vnf *vnf, const struct config_task *config);
	void (*close)(struct vnf *vnf); // may be NULL

	// A task of this name and kind is about to be replaced by vnf: take over what it knows (sessions), as
	// far as it fits the new settings. It is closed next. May be NULL.
	void (*adopt)(struct vnf *vnf, struct vnf *old);

	// The task is about to run, whether it replaces one or not: what it shares with other tasks has its settings
	// from now on. No worker runs. May be NULL.
	void (*take_effect)(struct vnf *vnf);

	// Handle n frames (1 .. CONFIG_BURST_MAX) from ports[in]. Returns true if all leave by vnf->out[in]
	// and verdicts were not written, or false when there is one for each.
	bool (*process)(struct vnf *vnf, unsigned in, const struct vnf_frame *frames, unsigned n,
	                uint64_t now_tsc, uint8_t *verdicts);

	// Every millisecond or so, for what time alone does; a bounded amount of work. May be NULL.
	void (*tick)(struct vnf *vnf, uint64_t now_tsc);

	void (*clear)(struct vnf *vnf);                        // counters to zero; may be NULL
	void (*report)(const struct vnf *vnf, json_t *object); // adds keys to the object KIND; may be NULL
	const struct vnf_method *methods;                      // NULL name at the end; may be NULL
	bool methods_beside; // workers run meanwhile: methods keep out of their way by themselves
};

struct vnf {
	struct task task;
	const struct vnf_ops *ops;
	uint16_t burst;
	uint8_t side_count;                   // of ports[] that are received from: 1 for an echo
	uint8_t out[CONFIG_TASK_PORTS_MAX];   // the other port of each; itself for an echo
	bool in_place[CONFIG_TASK_PORTS_MAX]; // frames from this port are handled where they lie
	uint8_t fast[CONFIG_TASK_PORTS_MAX], slow[CONFIG_TASK_PORTS_MAX]; // sides
	uint8_t fast_count, slow_count;
	uint8_t slow_next; // of slow[], whose turn it is
	uint64_t tick_due_tsc, tick_tsc;
	uint64_t drops[VNF_DROPS_MAX];
	uint8_t macs[CONFIG_TASK_PORTS_MAX][VNF_MACS_BYTES]; // destination, source of what leaves ports[i]
};

// Write the addresses of a frame that leaves by ports[out]: the peer's MAC and the port's own.
static inline void vnf_write_macs(const struct vnf *vnf, unsigned out, uint8_t *data)
{
	memcpy(data, vnf->macs[out], VNF_MACS_BYTES);
}

// A fast side, as all are at first, becomes a slow one. For open().
void vnf_side_slow(struct vnf *vnf, unsigned side);

// Make a function of a kind that need not be in the table of kinds. As create() of struct task_ops.
int vnf_create_of(const struct task_ops *ops, const struct config_task *config, struct port *const *ports,
                  struct task **out);

// The functions of struct task_ops that are the same for every kind.
int vnf_create(const struct config_task *config, struct port *const *ports, struct task **out);
void vnf_destroy(struct task *task);
unsigned vnf_poll(struct task *task, uint64_t now_tsc);
void vnf_clear(struct task *task);
void vnf_report(const struct task *task, json_t *object);

// Process a burst without ports: a verdict for each of n frames in verdicts. For tests and benches.
void vnf_process(struct vnf *vnf, unsigned in, const struct vnf_frame *frames, unsigned n, uint64_t now_tsc,
                 uint8_t *verdicts);

// Call a kind's method. Returns as struct vnf_method; NULL and an error that lists the valid ones if it has
// none of this name. The worker is parked, unless ops->methods_beside.
json_t *vnf_call(struct task *task, const char *method, const json_t *params, uint64_t now_tsc, char *error);

// Initialisers of a kind's struct task_ops.
#define VNF_TASK_OPS(kind_, vnf_ops_)                                                                        \
	.kind = (kind_), .receives = true, .sends = true, .stamps = true, .vnf = (vnf_ops_),                 \
	.create = vnf_create, .destroy = vnf_destroy, .poll = vnf_poll, .clear = vnf_clear,                  \
	.report = vnf_report
