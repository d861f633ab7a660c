// SPDX-License-Identifier: BSD-3-Clause
// bridge: a learning switch of 2 to 32 ports, VLAN-aware if asked to. docs/design/bridge.md is its manual.
// Here is what its files share: bridge.c makes and reports it, bridge_forward.h says where frames go,
// bridge_forward.c takes them there.
//
// Threads: as any task (task.h). Several bridges may share a table (mac_table.h): entries, not counters.
#pragma once

#include "lib/mac_table.h"
#include "port/port.h"
#include "runtime/config.h"
#include "tasks/task.h"

// The key "bridge" of a task (docs/design/planed-protocol.md): decoding and checking. Pure; struct
// config_bridge is in config.h. Errors are sentences that name the key, as everywhere in the document.

// What a bridge without the key has.
void config_bridge_default(struct config_bridge *bridge);

// Decode the value of the key over the defaults. Returns 0, or -EINVAL with a sentence in error.
int config_bridge_decode(const json_t *value, void *bridge, const char *where, char *error);

// That the task may have the key, that it fits its ports, and that tasks before it which share its table
// agree.
int config_bridge_check(const struct config *config, const struct config_task *task, char *error);

enum { BRIDGE_VLANS = 4096 };

// What became of a frame that was received: exactly one of these.
enum bridge_verdict {
	BRIDGE_FORWARDED, // to the port where its destination is
	BRIDGE_FLOODED,   // to every other port of its VLAN
	BRIDGE_HAIRPIN,   // dropped, this one and the rest: the destination is where it came from
	BRIDGE_RESERVED,  // to 01:80:C2:00:00:00 .. 0F: never forwarded (IEEE 802.1Q s8.6.3)
	BRIDGE_RUNT,      // no room for its header
	BRIDGE_VLAN,      // of a VLAN that the port is not in
	BRIDGE_NO_MEMBER, // flooded, and no other port is in the VLAN
	BRIDGE_OVERSIZE,  // no room for a tag
	BRIDGE_VERDICTS,
};

// A VLAN by ports, one bit each.
struct bridge_vlan {
	uint32_t members, tagged; // tagged: leaves them with a tag
};

struct bridge_port {
	uint16_t untagged_vlan; // of frames without a tag; 0: dropped
	bool trunk;             // takes frames with a tag
};

struct bridge {
	struct task task;
	struct mac_table *table;
	uint16_t burst;
	struct mac_counts learning;
	uint64_t verdicts[BRIDGE_VERDICTS];
	uint64_t flood_copies; // that flooded frames were to become
	uint64_t no_mbuf;      // copies, of these or of forwarded frames: without an mbuf
	uint64_t no_headroom;  // without room for a tag before the frame
	struct bridge_port ports[CONFIG_BRIDGE_PORTS_MAX];
	struct bridge_vlan vlans[BRIDGE_VLANS]; // without VLANs: only [0], every port
};

extern const struct task_ops bridge_ops;

// The polls: all ports in place or not, VLAN-aware or not.
unsigned bridge_poll_in_place(struct task *task, uint64_t now_tsc);
unsigned bridge_poll_in_place_vlan(struct task *task, uint64_t now_tsc);
unsigned bridge_poll_mbufs(struct task *task, uint64_t now_tsc);
unsigned bridge_poll_mbufs_vlan(struct task *task, uint64_t now_tsc);

// Control thread, also while workers poll: a table can be 16 MiB.

// A page of the entries of a bridge's table, {"entries": [{mac, vlan, port, age_s}], "next": n}: at most
// limit (at least MAC_TABLE_WAYS) of them, from a place on: 0, then what next was; null after the last. NULL
// without memory.
json_t *bridge_table_list(const struct task *task, uint32_t from, uint32_t limit, uint64_t now_tsc);

// Forget them all, {"flushed": n}.
json_t *bridge_table_flush(const struct task *task, uint64_t now_tsc);

// Add "entries", how many its table has now, to the "bridge" of each bridge among these tasks; reports: their
// stats objects, in the same order. Each table is counted once, whoever shares it.
void bridge_report_entries(struct task *const *tasks, unsigned count, json_t *reports);
