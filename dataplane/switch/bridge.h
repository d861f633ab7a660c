// SPDX-License-Identifier: BSD-3-Clause
// bridge: a learning switch of 2 to 32 ports, VLAN-aware if asked to. docs/design/ports.md is its manual.
// Here is what its files share: bridge.c makes and reports it, bridge_forward.h says where frames go,
// bridge_forward.c takes them there.
//
// Threads: as any task (task.h). Several bridges may share a table (mac_table.h): entries, not counters.
#pragma once

#include "table/mac_table.h"
#include "port/port.h"
#include "task/task.h"

enum { BRIDGE_STATIONS_MAX = 64, BRIDGE_STATIC_MAX = 8 }; // of a port
enum { BRIDGE_VLANS = 4096, BRIDGE_PORTS_MAX = 32 };

// --- Settings: the key "bridge"

struct bridge_port_settings {
	uint16_t untagged_vlan;             // access or native; 0: untagged frames are dropped
	bool trunk;                         // takes frames with a tag
	uint64_t tagged[BRIDGE_VLANS / 64]; // a trunk's VLANs, one bit each
};

// Which stations may send by a port. No two ports have the same station.
struct bridge_security {
	uint32_t max_stations; // at a time; 0: any number
	bool locked;           // only these, which no other port may have:
	unsigned station_count;
	uint8_t stations[BRIDGE_STATIC_MAX][6];
};

struct bridge_settings {
	bool vlan;
	uint32_t ageing_s; // 0 = never
	uint32_t table_size;
	char table[CONFIG_NAME_MAX]; // shared by bridges that name the same; or empty
	unsigned port_count;         // of ports[]: those of the task with VLANs, else 0
	struct bridge_port_settings ports[BRIDGE_PORTS_MAX];
	unsigned security_count; // of security[]: those of the task, or 0
	struct bridge_security security[BRIDGE_PORTS_MAX];
};

// What became of a frame that was received: exactly one of these.
enum bridge_verdict {
	BRIDGE_FORWARDED,     // to the port where its destination is
	BRIDGE_FLOODED,       // to every other port of its VLAN
	BRIDGE_HAIRPIN,       // dropped, this one and the rest: the destination is where it came from
	BRIDGE_RESERVED,      // to 01:80:C2:00:00:00 .. 0F: never forwarded (IEEE 802.1Q s8.6.3)
	BRIDGE_RUNT,          // no room for its header
	BRIDGE_VLAN,          // of a VLAN that the port is not in
	BRIDGE_NO_MEMBER,     // flooded, and no other port is in the VLAN
	BRIDGE_OVERSIZE,      // no room for a tag
	BRIDGE_LOCKED,        // its source is not one of its port's stations, or one of a locked port's
	BRIDGE_STATION_LIMIT, // its source would be one station too many
	BRIDGE_VERDICTS,
};

// A VLAN by ports, one bit each.
struct bridge_vlan {
	uint32_t members, tagged; // tagged: leaves them with a tag
};

struct bridge_port {
	uint16_t untagged_vlan; // of frames without a tag; 0: dropped
	bool trunk;             // takes frames with a tag
	bool locked;
	uint8_t max_stations;                   // 0: any number
	uint8_t station_count, next;            // next: whose place a new one may have, if it is gone
	uint64_t stations[BRIDGE_STATIONS_MAX]; // keys of the table, if they are limited
};

// A station that belongs to a locked port.
struct bridge_static {
	uint64_t mac;
	unsigned port;
};

struct bridge {
	struct task task;
	struct mac_table *table;
	uint16_t burst;
	struct mac_counts learning;
	uint64_t verdicts[BRIDGE_VERDICTS];
	bool secure; // some port has a limit or is locked
	unsigned static_count;
	struct bridge_static statics[BRIDGE_PORTS_MAX * BRIDGE_STATIC_MAX];
	uint64_t flood_copies;   // that flooded frames were to become
	uint64_t no_mbuf;        // copies, of these or of forwarded frames: without an mbuf
	uint64_t no_headroom;    // without room for a tag before the frame
	uint64_t segments_added; // frames that others became, more than these were
	struct bridge_port ports[BRIDGE_PORTS_MAX];
	struct bridge_vlan vlans[BRIDGE_VLANS]; // without VLANs: only [0], every port
};

// On a bridge with secure ports, whether this source may send by port in. If so, it is learned. Returns what becomes of
// the frame otherwise, or BRIDGE_FORWARDED.
enum bridge_verdict bridge_admit(struct bridge *b, unsigned in, uint64_t source, uint16_t vlan,
                                 uint64_t now_tsc);

// The polls: VLAN-aware or not, with ports that have offloads or without.
unsigned bridge_poll(struct task *task, uint64_t now_tsc);
unsigned bridge_poll_vlan(struct task *task, uint64_t now_tsc);
unsigned bridge_poll_offloads(struct task *task, uint64_t now_tsc);
unsigned bridge_poll_vlan_offloads(struct task *task, uint64_t now_tsc);
