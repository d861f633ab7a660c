// SPDX-License-Identifier: BSD-3-Clause
// The parts of flow_monitor: the data path (flow_monitor.c) and what is seen of it (flow_monitor_list.c).
//
// Sums always add up: tracked + expired + untracked + other == all, in packets and in bytes. Bytes are of
// frames with FCS, as everywhere in planed.
#pragma once

#include "lib/flow_table.h"
#include "tasks/vnf/vnf.h"

struct flow_sum {
	uint64_t packets, bytes;
};

// Of a flow, beside its line in the table: what packets seldom change.
struct flow_more {
	uint64_t first_tsc;
	uint8_t tcp_flags; // all that were seen
};

struct flow_monitor {
	struct vnf vnf;
	struct flow_table table; // value[]: packets, bytes
	struct flow_more *more;
	struct flow_sum all, tracked, expired, untracked, other;
	uint64_t expired_flows;
};

json_t *flow_monitor_top(struct vnf *vnf, const json_t *params, uint64_t now_tsc, char *error);
json_t *flow_monitor_flows(struct vnf *vnf, const json_t *params, uint64_t now_tsc, char *error);
json_t *flow_monitor_flush(struct vnf *vnf, const json_t *params, uint64_t now_tsc, char *error);
void flow_monitor_report(const struct vnf *vnf, json_t *object);
