// SPDX-License-Identifier: BSD-3-Clause
// fib_offload: the switch that forwards for many VNFs (docs/fib-offload.md is its manual). Here is what its
// files share: fib_offload.c takes bursts through it, fib_offload_open.c makes it and has the FIBs by name,
// fib_offload_settings.c reads the configuration, fib_offload_methods.c has its methods and its report.
//
// Threads: a FIB may be shared by tasks of several workers. Workers look up without locks; whoever changes
// it, a worker with a message or the control thread with a method, has its lock (fib_trylock). A VNF's
// session is shared, too, and has a lock of its own: a worker that does not get it drops the message.
#pragma once

#include <rte_spinlock.h>

#include "fib/fib.h"
#include "fib/fib_session.h"
#include "base/bucket.h"
#include "base/schema.h"
#include "table/mac_table.h"
#include "base/packet.h"
#include "nf/vnf.h"

enum {
	OFFLOAD_WIRES_MAX = 8,
	OFFLOAD_VNFS_MAX = CONFIG_TASK_PORTS_MAX - 1, // of a task: each has a port of its own
	OFFLOAD_RULES_MAX = 16,
	OFFLOAD_SLOTS = 1024, // of MAC addresses: so many that each VNF's has a slot to itself
	OFFLOAD_PATH_BYTES = 1024,
	OFFLOAD_NONE = 0xff,    // no VNF, no wire
	OFFLOAD_LOOK_UP = 0x7f, // no verdict yet: the FIB says
	OFFLOAD_PUNT = 0x7e,    // to the VNF itself, within its rate
};
_Static_assert((int)CONFIG_TASK_PORTS_MAX <= (int)OFFLOAD_PUNT, "no port has this number");

enum offload_drop {
	OFFLOAD_UNKNOWN_MAC = PACKET_FAULTS, // to nobody on this wire
	OFFLOAD_NO_LISTENER,                 // group address, and nobody to have it
	OFFLOAD_NO_ROUTE,
	OFFLOAD_BLACKHOLE,
	OFFLOAD_PUNT_LIMITED,
	OFFLOAD_SPOOFED,         // a VNF's frame with another's address
	OFFLOAD_FOREIGN_MESSAGE, // a FIB message from a wire, or from a VNF that is not offloaded
	OFFLOAD_BAD_MESSAGE,     // not one, or too short for an answer
	OFFLOAD_BUSY_MESSAGE,    // another worker has the session
	OFFLOAD_WIRE_DOWN,       // by which it would have left
	OFFLOAD_FOREIGN_VLAN,    // not the VNF's, to it or from it; to a group, no VNF's
};

// --- Settings --------------------------------------------------------------------------------------------

struct offload_rule {
	uint8_t protocol;
	rte_be16_t port; // either end's; 0: any
};

struct offload_vnf_settings {
	uint16_t vnf, routes_of; // 0: no other VNF's
	uint8_t mac[RTE_ETHER_ADDR_LEN];
	uint8_t port;  // of the task's ports
	uint8_t wires; // one bit each, of the task's wires
	uint8_t out;   // wire by which its frames leave
	bool offload, punts_misses;
	uint64_t vlans[VLAN_WORDS];          // those whose tags its frames may have
	uint8_t reflect[RTE_ETHER_ADDR_LEN]; // not 0: frames to it leave by out to this address, from its own
	uint64_t quota_routes;
	uint32_t quota_hops;
	uint32_t grace_s, hold_s;
};

// What a FIB is made from. Tasks that name the same have the same. Zeroed where not used: it is compared.
struct offload_fib_settings {
	char name[CONFIG_NAME_MAX];
	uint64_t routes4, routes6;
	enum pages pages;
	char snapshot[OFFLOAD_PATH_BYTES]; // or empty
	unsigned wire_count;
	char wires[OFFLOAD_WIRES_MAX][CONFIG_NAME_MAX]; // a hop's port is an index of these
};
_Static_assert((int)CONFIG_NAME_MAX == (int)FIB_NAME_MAX, "wires are the names of the FIB's ports");

struct offload_settings {
	struct vnf_settings vnf;
	struct offload_fib_settings fib;
	uint8_t wire_ports[OFFLOAD_WIRES_MAX]; // of the task's ports
	unsigned mtu_count;
	struct offload_mtu {
		char wire[CONFIG_NAME_MAX];
		uint32_t mtu;
	} mtus[OFFLOAD_WIRES_MAX];
	uint64_t punt_pps, punt_burst;
	uint32_t snapshot_s; // period in which fib.snapshot is written; 0: at the end only
	unsigned rule_count, vnf_count;
	struct offload_rule rules[OFFLOAD_RULES_MAX];
	struct offload_vnf_settings vnfs[OFFLOAD_VNFS_MAX];
};

extern const struct offload_settings offload_defaults;
extern const struct field offload_fields[];

// As in struct vnf_ops.
int offload_settings_check(const struct config_task *config, const json_t *object, void *out,
                           const char *where, char *error);

// --- FIBs by name ----------------------------------------------------------------------------------------

// A VNF as the FIB knows it.
struct offload_session {
	rte_spinlock_t lock;
	unsigned users; // tasks
	struct fib_session fib_session;
};

struct offload_fib {
	struct offload_fib *next;
	struct offload_fib_settings settings;
	unsigned users;
	int64_t keep_ms, keep_due_ms; // of its snapshot
	uint64_t edits, kept;         // changes that no session counts; all changes that the snapshot has
	bool keep_failed;
	bool is_foreign; // what is at settings.snapshot: not loaded, but whole; it is not written over, but by "save"
	_Atomic(uint32_t) wires_down; // a bit for each wire, as of the last look at it by any of the tasks
	// Of VNFs (the VNF's number is the VLAN): by which wire they were heard. An answer may come by another worker.
	struct mac_table *neighbours;
	struct fib *fib;
	struct offload_session
	        *sessions[FIB_VNFS_MAX]; // by the VNF's number; NULL: not offloaded by any task
};

// The FIB of these settings with the offloaded VNFs among these: an existing one, or a new one. What an
// existing session is goes on as it is. Control thread, all three. Returns 0 or -errno after logging a line.
int offload_fib_get(const struct offload_settings *settings, const char *task, struct offload_fib **out);
void offload_fib_put(struct offload_fib *fib, const struct offload_settings *settings); // NULL is nothing
// The settings of VNFs are these from now on. No worker runs.
void offload_fib_set(struct offload_fib *fib, const struct offload_settings *settings);

// The VNF has to say HELLO again: its messages are refused until then. With the lock.
void offload_session_forget(struct offload_session *session);

// It was replaced by a snapshot: VNFs have to say HELLO again, and have the grace period to do so; what VNFs
// left there that are not offloaded here goes. With the lock.
void offload_fib_loaded(struct offload_fib *fib);

// Wait for the lock: a worker has it for as long as a message takes. Control thread.
void offload_fib_lock(struct fib *fib);

// --- The task --------------------------------------------------------------------------------------------

// A VNF as a task knows it.
struct offload_vnf {
	uint16_t number, routes_of; // what has no route of its own is looked up there; 0: it has none
	uint8_t port, out;          // of the task's ports: its own, and by which its frames leave
	uint8_t wires;              // one bit each
	uint8_t direct; // of these: 0 if it is not offloaded, and learns by which its neighbours are heard
	bool offload, punts_misses, reflects;
	uint8_t mac[RTE_ETHER_ADDR_LEN];
	uint8_t macs[2 * RTE_ETHER_ADDR_LEN]; // of frames that it reflects
	struct offload_session *session;      // NULL: not offloaded
	struct bucket punts;
	uint64_t forwarded, punted, limited, no_route, too_long, sent;
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct offload_vnf) == 128, "two cache lines");

struct offload {
	struct vnf vnf;
	uint64_t mac_factor;                   // of the hash
	uint64_t macs[OFFLOAD_SLOTS];          // address << 16 | index of vnfs[]; 0: none
	uint8_t wire_ports[OFFLOAD_WIRES_MAX]; // verdicts; of no wire: a drop
	uint8_t wire_of[CONFIG_TASK_PORTS_MAX], vnf_of[CONFIG_TASK_PORTS_MAX]; // or OFFLOAD_NONE
	uint8_t doubt[256]; // by the lower byte of a port: bit 0 TCP, bit 1 UDP; a rule may say so
	struct offload_settings settings;
	struct offload_fib *fib;
	struct mac_counts neighbour_counts;
	unsigned vnf_count;
	uint32_t wires_down;                   // the FIB's, as of the last tick
	unsigned wire_next;                    // that is looked at next
	bool careful;                          // not every hop that forwards can be taken as it is
	bool has_mtus, shares;                 // there is a VNF with routes_of
	uint32_t frame_max[OFFLOAD_WIRES_MAX]; // bytes that fit the MTU of each wire
	uint64_t copies, copies_lost;          // of group-addressed frames, beside the one that is a verdict
	int reader;                            // of the FIB; -1: none
	unsigned tick_next;                    // VNF whose session is looked after next
	struct offload_vnf vnfs[OFFLOAD_VNFS_MAX];
};

// As in struct vnf_ops.
int offload_agree(const struct config_task *a, const struct config_task *b, char *error);
int offload_open(struct vnf *vnf, const struct config_task *config);
void offload_close(struct vnf *vnf);
void offload_take_effect(struct task *task);
int offload_keep(struct task *task, bool ending);
extern const struct task_method offload_methods[];
extern const struct counter offload_counters[], offload_vnf_counters[];
void offload_report(const struct task *task, json_t *object, uint64_t now_tsc);

// Those whose tags the frames of a VNF may have.
static inline const uint64_t *offload_vlans(const struct offload *o, const struct offload_vnf *vnf)
{
	return o->settings.vnfs[vnf - o->vnfs].vlans;
}

// The VNF that a frame is for (its first six bytes), or OFFLOAD_NONE.
static inline unsigned offload_slot(uint64_t factor, uint64_t mac)
{
	return (unsigned)((mac * factor) >> 54);
}
_Static_assert(OFFLOAD_SLOTS == 1 << (64 - 54), "as the hash has it");

static inline unsigned offload_vnf_of_mac(const struct offload *o, const uint8_t *frame)
{
	uint64_t mac, entry;

	memcpy(&mac, frame, sizeof(mac)); // and two bytes that are cut off
	mac <<= 16;
	entry = o->macs[offload_slot(o->mac_factor, mac)];
	return likely(entry && !((entry ^ mac) >> 16)) ? entry & 0xffff : OFFLOAD_NONE;
}
