// SPDX-License-Identifier: BSD-3-Clause
// l3fwd in parts: frames (l3fwd.c), settings, report and methods (l3fwd_control.c). Threads as in vnf.h.
#pragma once

#include "base/packet.h"
#include "nf/l3fwd/route_table.h"
#include "nf/vnf.h"

enum {
	L3FWD_PORTS_MAX = 8,
	L3FWD_PATH_BYTES = 1024,
	L3FWD_FINE = VNF_DROP - 1, // of l3fwd_classify(): to be looked up
};

// Reasons of drops, behind those of packet.h.
enum {
	L3FWD_L2_GROUP = PACKET_FAULTS,
	L3FWD_L2_OTHER,
	L3FWD_MARTIAN_SOURCE,
	L3FWD_MARTIAN_DESTINATION,
	L3FWD_LINK_LOCAL,
	L3FWD_BAD_OPTIONS,
	L3FWD_SOURCE_ROUTE,
	L3FWD_NO_ROUTE,
	L3FWD_BLACKHOLE,
	L3FWD_TTL_EXPIRED,
	L3FWD_TOO_BIG,
	L3FWD_UNFRAGMENTED,
};

// ICMP errors that a router would send (RFC 1812 s4.3, RFC 4443 s3); the last one: would, but must not.
enum l3fwd_icmp {
	L3FWD_TIME_EXCEEDED,
	L3FWD_NET_UNREACHABLE,
	L3FWD_FRAGMENTATION_NEEDED, // IPv4
	L3FWD_PACKET_TOO_BIG,       // IPv6
	L3FWD_PARAMETER_PROBLEM,
	L3FWD_BEYOND_SCOPE,
	L3FWD_SUPPRESSED,
	L3FWD_ICMP,
};

enum l3fwd_fib { L3FWD_LPM, L3FWD_CUCKOO };

struct l3fwd_settings {
	struct vnf_settings vnf;
	int fib; // enum l3fwd_fib; L3FWD_CUCKOO: host routes are apart
	char routes_file[L3FWD_PATH_BYTES];
	uint32_t synthetic; // routes
	bool own_mac_only;
	uint32_t mtu;           // longest datagram
	struct route_list list; // sorted; each with its port and MAC, if it has them
};

struct l3fwd {
	struct vnf vnf;
	uint64_t own[L3FWD_PORTS_MAX]; // MAC of each port, in the lower six bytes
	uint64_t own_mask;             // of these bytes; 0: any destination will do
	uint32_t mtu;
	uint8_t verdicts[L3FWD_PORTS_MAX][ROUTE_OUTS]; // of what comes in by a port, by its entry's out
	struct route_table table;
	uint64_t icmp[L3FWD_ICMP];
};

extern const struct l3fwd_settings l3fwd_defaults;
extern const struct field l3fwd_fields[];

// As in struct vnf_ops. The routes they name are read, whole or not at all.
int l3fwd_settings_check(const struct config_task *config, const json_t *object, void *out, const char *where,
                         char *error);
void l3fwd_settings_free(void *settings);

// As in struct task_ops: {"prefixes": [...]} of the routes that forward, for settings of a task.
json_t *l3fwd_facts(const json_t *object, char *error);

static inline uint64_t l3fwd_mac(const uint8_t *frame)
{
	uint64_t mac = 0;

	memcpy(&mac, frame, RTE_ETHER_ADDR_LEN);
	return mac;
}

extern const struct counter l3fwd_counters[];
void l3fwd_report(const struct task *task, json_t *object, uint64_t now_tsc);
extern const struct task_method l3fwd_methods[];
