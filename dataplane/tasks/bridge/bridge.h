// SPDX-License-Identifier: BSD-3-Clause
// bridge: a learning switch of 2 to 32 ports, VLAN-aware if asked to. docs/design/bridge.md is its manual.
// Here is what its files share: bridge.c makes and reports it, bridge_forward.h says where frames go,
// bridge_forward.c takes them there.
//
// Threads: as any task (task.h). Several bridges may share a table (mac_table.h): entries, not counters.
#pragma once

#include "lib/mac_table.h"
#include "port/port.h"
#include "tasks/task.h"

enum { BRIDGE_VLANS = 4096, BRIDGE_PORTS_MAX = 32, BRIDGE_VLAN_WORDS = BRIDGE_VLANS / 64 };

// --- Settings: the key "bridge"

struct bridge_port_settings {
	uint16_t untagged_vlan;             // access or native; 0: untagged frames are dropped
	bool trunk;                         // takes frames with a tag
	uint64_t tagged[BRIDGE_VLAN_WORDS]; // a trunk's VLANs, one bit each
};

struct bridge_settings {
	bool vlan;
	uint32_t ageing_s; // 0 = never
	uint32_t table_size;
	char table[CONFIG_NAME_MAX]; // shared by bridges that name the same; or empty
	unsigned port_count;         // of ports[]: those of the task with VLANs, else 0
	struct bridge_port_settings ports[BRIDGE_PORTS_MAX];
};

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
	struct bridge_port ports[BRIDGE_PORTS_MAX];
	struct bridge_vlan vlans[BRIDGE_VLANS]; // without VLANs: only [0], every port
};

// The polls: VLAN-aware or not.
unsigned bridge_poll(struct task *task, uint64_t now_tsc);
unsigned bridge_poll_vlan(struct task *task, uint64_t now_tsc);
