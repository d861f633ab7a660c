// SPDX-License-Identifier: BSD-3-Clause
// flow_monitor: forwards every frame as l2fwd does and counts it by flow (flow_table.h), in both directions.
//
// A flow that was idle for the timeout is over: its counts go to "expired", its packets begin a new one. What
// finds the table full of busy flows is "untracked". Frames that are no sound IP packet are "other". Nothing
// is dropped but runts. A flow's fragments but the first are a flow without ports.
#include <errno.h>
#include <rte_tcp.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/flow_table.h"
#include "lib/log.h"
#include "lib/schema.h"
#include "tasks/vnf/forward.h"
#include "tasks/vnf/vnf.h"

// Sums always add up: tracked + expired + untracked + other == all, in packets and in bytes. Bytes are of
// frames with FCS, as everywhere in planed.

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

static const struct counter counters[] = {
        COUNTER("all.packets", struct flow_monitor, all.packets),
        COUNTER("all.bytes", struct flow_monitor, all.bytes),
        COUNTER("tracked.packets", struct flow_monitor, tracked.packets),
        COUNTER("tracked.bytes", struct flow_monitor, tracked.bytes),
        COUNTER("expired.packets", struct flow_monitor, expired.packets),
        COUNTER("expired.bytes", struct flow_monitor, expired.bytes),
        COUNTER("expired.flows", struct flow_monitor, expired_flows),
        COUNTER("untracked.packets", struct flow_monitor, untracked.packets),
        COUNTER("untracked.bytes", struct flow_monitor, untracked.bytes),
        COUNTER("other.packets", struct flow_monitor, other.packets),
        COUNTER("other.bytes", struct flow_monitor, other.bytes),
        {0},
};

// --- Report and methods ----------------------------------------------------------------------------------

// What is seen of flow_monitor: its report, lists of flows, the top talkers. Control thread, worker parked.

enum { TOP_DEFAULT = 10, TOP_MAX = 1000, PAGE_DEFAULT = 4096, PAGE_MAX = 65536 };

// --- A flow as it is listed ------------------------------------------------------------------------------

static json_t *listed(const struct flow_monitor *monitor, uint32_t index)
{
	const struct flow *flow = &monitor->table.flows[index];
	const struct flow_more *more = &monitor->more[index];
	char source[FLOW_ADDRESS_TEXT], destination[FLOW_ADDRESS_TEXT];
	struct flow_key_bytes key;

	memcpy(&key, &flow->key, sizeof(key));
	return json_pack("{s:s, s:s, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:i}", "source",
	                 flow_address(key.source, key.version, source), "destination",
	                 flow_address(key.destination, key.version, destination), "protocol",
	                 (int)key.protocol, "source_port", (int)ntohs(key.src_port), "destination_port",
	                 (int)ntohs(key.dst_port), "packets", (json_int_t)flow->value[0], "bytes",
	                 (json_int_t)flow->value[1], "first_tsc", (json_int_t)more->first_tsc, "last_tsc",
	                 (json_int_t)flow->last_tsc, "tcp_flags", (int)more->tcp_flags);
}

// --- top -------------------------------------------------------------------------------------------------

struct top {
	unsigned by; // index of value[]
	uint32_t limit, count;
	uint32_t best[TOP_MAX]; // from the most on
};

// More of the one, then of the other, then the lower key.
static bool is_before(const struct flow_table *table, unsigned by, uint32_t a, uint32_t b)
{
	const struct flow *x = &table->flows[a], *y = &table->flows[b];

	if (x->value[by] != y->value[by])
		return x->value[by] > y->value[by];
	if (x->value[1 - by] != y->value[1 - by])
		return x->value[1 - by] > y->value[1 - by];
	return memcmp(&x->key, &y->key, sizeof(x->key)) < 0;
}

static void top_offer(struct top *top, const struct flow_table *table, uint32_t index)
{
	uint32_t low = 0, high = top->count;

	if (top->count == top->limit && is_before(table, top->by, top->best[top->count - 1], index))
		return;
	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (is_before(table, top->by, top->best[middle], index))
			low = middle + 1;
		else
			high = middle;
	}
	if (top->count < top->limit)
		top->count++;
	memmove(&top->best[low + 1], &top->best[low], (top->count - 1 - low) * sizeof(top->best[0]));
	top->best[low] = index;
}

struct top_params {
	int by;
	uint32_t limit;
};

static const char *const by_names[] = {"packets", "bytes", NULL};

static const struct field top_fields[] = {
        {CHOICE_FIELD("by", struct top_params, by, by_names)},
        {UINT_FIELD("limit", struct top_params, limit, 1, TOP_MAX)},
        {0},
};

static json_t *call_top(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	struct flow_monitor *monitor = (struct flow_monitor *)task;
	struct flow_table *table = &monitor->table;
	const struct top_params *given = params;
	json_t *flows;
	struct top top;

	top.by = (unsigned)given->by;
	top.limit = given->limit;
	top.count = 0;
	flow_table_expire(table, now_tsc, UINT32_MAX);
	for (uint32_t i = 0; i < table->capacity; i++) // as they lie: by age each would be a cache miss
		if (flow_table_is_used(table, i))
			top_offer(&top, table, i);
	flows = json_array();
	for (uint32_t i = 0; i < top.count; i++)
		json_array_append_new(flows, listed(monitor, top.best[i]));
	return json_pack("{s:o}", "flows", flows);
}

// --- flows -----------------------------------------------------------------------------------------------

static const struct field page_fields[] = {TASK_PAGE_FIELDS(1, PAGE_MAX), {0}};

static json_t *call_flows(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	struct flow_monitor *monitor = (struct flow_monitor *)task;
	struct flow_table *table = &monitor->table;
	const struct task_page *page = params;
	json_t *flows = json_array();
	uint64_t i;

	flow_table_expire(table, now_tsc, UINT32_MAX);
	for (i = page->from; i < table->capacity && json_array_size(flows) < page->limit; i++)
		if (flow_table_is_used(table, (uint32_t)i))
			json_array_append_new(flows, listed(monitor, (uint32_t)i));
	return task_page("flows", flows, i < table->capacity, i);
}

// --- flush, and the report -------------------------------------------------------------------------------

// The counts of all flows go to "expired": the sums still add up.
static json_t *call_flush(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	struct flow_monitor *monitor = (struct flow_monitor *)task;
	json_int_t flushed = monitor->table.count;

	monitor->expired.packets += monitor->tracked.packets;
	monitor->expired.bytes += monitor->tracked.bytes;
	monitor->expired_flows += (uint64_t)flushed;
	monitor->tracked = (struct flow_sum){0};
	flow_table_flush(&monitor->table);
	return json_pack("{s:I}", "flushed", flushed);
}

enum { DROP_RUNT, FLOWS_DEFAULT = 65536, TIMEOUT_S_DEFAULT = 60, TCP_FLAGS_OFFSET = 13 };

static const struct counter drops[] = {VNF_DROP_COUNTER(DROP_RUNT, "runt"), {0}};

// --- Settings --------------------------------------------------------------------------------------------

struct settings {
	struct vnf_settings vnf;
	uint32_t flows_max, idle_timeout_s;
};

static const struct settings defaults = {.flows_max = FLOWS_DEFAULT, .idle_timeout_s = TIMEOUT_S_DEFAULT};

static const struct field fields[] = {
        {UINT_FIELD("flows_max", struct settings, flows_max, 1, FLOW_TABLE_MAX)},
        {UINT_FIELD("idle_timeout_s", struct settings, idle_timeout_s, 1, 1e6)},
        {0},
};

// --- Made and ended --------------------------------------------------------------------------------------

static void gone(void *owner, const struct flow *flow, uint32_t index)
{
	struct flow_monitor *monitor = owner;

	monitor->tracked.packets -= flow->value[0];
	monitor->tracked.bytes -= flow->value[1];
	monitor->expired.packets += flow->value[0];
	monitor->expired.bytes += flow->value[1];
	monitor->expired_flows++;
}

static int monitor_open(struct vnf *vnf, const struct config_task *config)
{
	struct flow_monitor *monitor = (struct flow_monitor *)vnf;
	const struct settings *settings = config->settings;

	monitor->more = calloc(settings->flows_max, sizeof(*monitor->more));
	if (!monitor->more || flow_table_open(&monitor->table, settings->flows_max,
	                                      settings->idle_timeout_s * clock_hz()) != 0) {
		LOG_ERROR("task %s: no memory for %u flows", config->name, settings->flows_max);
		return -ENOMEM;
	}
	monitor->table.gone = gone;
	monitor->table.owner = monitor;
	return 0;
}

static void monitor_close(struct vnf *vnf)
{
	struct flow_monitor *monitor = (struct flow_monitor *)vnf;

	flow_table_close(&monitor->table);
	free(monitor->more);
}

// The flows that were seen last; what does not fit is expired.
static void monitor_adopt(struct task *task, struct task *before)
{
	struct flow_monitor *monitor = (struct flow_monitor *)task, *old = (struct flow_monitor *)before;
	const struct flow_table *table = &old->table;

	counters_copy(counters, monitor, old);
	monitor->table.now_tsc = table->now_tsc;
	for (uint32_t i = flow_table_oldest(table); i != FLOW_NONE; i = flow_table_newer(table, i))
		monitor->more[flow_table_put(&monitor->table, &table->flows[i])] = old->more[i];
}

// A trial begins: every flow goes with the counters, for half of them would not add up.
static void monitor_clear(struct task *task)
{
	flow_table_flush(&((struct flow_monitor *)task)->table);
}

// As of the last tick or burst: flows that were idle by then are expired.
static void monitor_report(const struct task *task, json_t *object, uint64_t now_tsc)
{
	struct flow_monitor *monitor = (struct flow_monitor *)(uintptr_t)task;

	flow_table_expire(&monitor->table, monitor->table.now_tsc, UINT32_MAX);
	json_object_set_new(object, "flows", json_integer(monitor->table.count));
}

// --- Frames ----------------------------------------------------------------------------------------------

enum kind { KIND_FLOW, KIND_OTHER, KIND_RUNT };

// What is known of a frame of a burst before its flow is looked up.
struct look {
	struct flow_key key;
	uint32_t hash;
	uint8_t kind, tcp_flags;
};

static inline void count(struct flow_sum *sum, const struct vnf_frame *frame)
{
	sum->packets++;
	sum->bytes += frame->total + RTE_ETHER_CRC_LEN;
}

static inline void look_at(const struct flow_monitor *monitor, const struct vnf_frame *frame,
                           struct look *look)
{
	struct packet p;
	enum packet_fault fault = packet_parse(frame, &p);

	look->kind = fault == PACKET_FINE ? KIND_FLOW : fault == PACKET_RUNT ? KIND_RUNT : KIND_OTHER;
	if (unlikely(fault != PACKET_FINE))
		return;
	flow_key_of(&look->key, frame->data, &p);
	look->tcp_flags = p.protocol == IPPROTO_TCP && p.first ? frame->data[p.l4 + TCP_FLAGS_OFFSET] : 0;
	look->hash = flow_table_hash(&monitor->table, &look->key);
	flow_table_prefetch_slot(&monitor->table, look->hash);
}

static inline void count_flow(struct flow_monitor *monitor, const struct vnf_frame *frame,
                              const struct look *look, uint64_t now_tsc)
{
	struct flow_table *table = &monitor->table;
	uint32_t index = flow_table_get(table, &look->key, look->hash, now_tsc);
	struct flow *flow;

	if (unlikely(index == FLOW_NONE)) {
		count(&monitor->untracked, frame);
		return;
	}
	flow = &table->flows[index];
	if (unlikely(flow->value[0] == 0))
		monitor->more[index] = (struct flow_more){.first_tsc = now_tsc};
	flow_table_touch(table, index, now_tsc);
	flow->value[0]++;
	flow->value[1] += frame->total + RTE_ETHER_CRC_LEN;
	if (look->tcp_flags)
		monitor->more[index].tcp_flags |= look->tcp_flags;
	count(&monitor->tracked, frame);
}

// Returns false for a frame that is dropped.
static inline bool count_frame(struct flow_monitor *monitor, const struct vnf_frame *frame,
                               const struct look *look, uint64_t now_tsc)
{
	if (unlikely(look->kind == KIND_RUNT))
		return false;
	count(&monitor->all, frame);
	if (likely(look->kind == KIND_FLOW))
		count_flow(monitor, frame, look, now_tsc);
	else
		count(&monitor->other, frame);
	return true;
}

static bool monitor_process(struct vnf *vnf, unsigned in, const struct vnf_frame *frames, unsigned n,
                            uint64_t now_tsc, uint8_t *verdicts)
{
	struct flow_monitor *monitor = (struct flow_monitor *)vnf;
	struct look looks[CONFIG_BURST_MAX];
	unsigned out = vnf->out[in], left = 0;

	monitor->table.now_tsc = now_tsc;
	for (unsigned i = 0; i < n; i++) {
		if (i + FORWARD_AHEAD < n)
			__builtin_prefetch(frames[i + FORWARD_AHEAD].data, 1);
		look_at(monitor, &frames[i], &looks[i]);
	}
	for (unsigned i = 0; i < n; i++)
		if (looks[i].kind == KIND_FLOW)
			flow_table_prefetch_flow(&monitor->table, looks[i].hash);
	for (unsigned i = 0; i < n; i++) {
		bool leaves = count_frame(monitor, &frames[i], &looks[i], now_tsc);

		verdicts[i] = (uint8_t)(leaves ? out : VNF_DROP | DROP_RUNT);
		left += leaves;
		if (leaves)
			vnf_write_macs(vnf, out, frames[i].data);
	}
	return left == n;
}

static void monitor_tick(struct vnf *vnf, uint64_t now_tsc)
{
	flow_table_expire(&((struct flow_monitor *)vnf)->table, now_tsc, FLOW_TICK_MAX);
}

static const struct top_params top_defaults = {.limit = TOP_DEFAULT};
static const struct task_page page_defaults = {.limit = PAGE_DEFAULT};

static const struct task_method methods[] = {
        {.name = "top", .call = call_top, .fields = top_fields, TASK_DEFAULTS(top_defaults)},
        {.name = "flows", .call = call_flows, .fields = page_fields, TASK_DEFAULTS(page_defaults)},
        {.name = "flush", .call = call_flush},
        {0},
};

static const struct vnf_ops flow_monitor_vnf = {
        .size = sizeof(struct flow_monitor),
        .dear = true,
        .settings_fields = fields,
        .open = monitor_open,
        .close = monitor_close,
        .process = monitor_process,
        .tick = monitor_tick,
};

static const struct task_ops flow_monitor_ops = {
        VNF_TASK_OPS("flow_monitor", &flow_monitor_vnf, drops, vnf_keys, struct settings),
        .settings_defaults = &defaults,
        .adopt = monitor_adopt,
        .counters = counters,
        .clear = monitor_clear,
        .report = monitor_report,
        .report_parks = true, // flows that are over are taken out
        .methods = methods,
        .ports_min = 2,
        .ports_max = 2,
};
TASK_KIND(flow_monitor_ops)
