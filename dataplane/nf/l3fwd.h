// SPDX-License-Identifier: BSD-3-Clause
// l3fwd in parts: settings (l3fwd_settings.c), frames (l3fwd.c), what is seen of it (l3fwd_report.c). Threads
// as in vnf.h.
#pragma once

#include "route_table.h"
#include "vnf.h"

enum { L3FWD_PORTS_MAX = 8 };

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

struct l3fwd_settings {
	struct route_list list; // sorted; each with its port and MAC, if it has them
	bool own_mac_only;
	uint32_t mtu; // longest datagram
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

// Settings and the routes they name, whole or not at all: returns 0, or -EINVAL with a sentence in error
// (CONFIG_ERROR_MAX). The caller frees the list, errors or not.
int l3fwd_settings_read(const struct config_task *config, struct l3fwd_settings *out, char *error);

void l3fwd_report(const struct vnf *vnf, json_t *object);
extern const struct vnf_method l3fwd_methods[];
