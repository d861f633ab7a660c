// SPDX-License-Identifier: BSD-3-Clause
// What is seen of flow_monitor: its report, lists of flows, the top talkers. Control thread, worker parked.
#include <errno.h>
#include <stdlib.h>

#include "tasks/flow_monitor/flow_monitor.h"
#include "lib/schema.h"

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
        {.key = "task", .type = FIELD_ANY},
        {.key = "by", FIELD(FIELD_CHOICE, struct top_params, by), .choices = by_names},
        {.key = "limit", FIELD(FIELD_UINT, struct top_params, limit), .min = 1, .max = TOP_MAX},
        {0},
};

json_t *flow_monitor_top(struct vnf *vnf, const json_t *params, uint64_t now_tsc, char *error)
{
	struct flow_monitor *monitor = (struct flow_monitor *)vnf;
	struct flow_table *table = &monitor->table;
	struct top_params given = {.by = 0, .limit = TOP_DEFAULT};
	json_t *flows;
	struct top top;

	if (schema_decode(params, top_fields, &given, "params", error) != 0)
		return NULL;
	top.by = (unsigned)given.by;
	top.limit = given.limit;
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

struct page_params {
	uint32_t from, limit;
};

static const struct field page_fields[] = {
        {.key = "task", .type = FIELD_ANY},
        {.key = "from", FIELD(FIELD_UINT, struct page_params, from), .max = FLOW_TABLE_MAX},
        {.key = "limit", FIELD(FIELD_UINT, struct page_params, limit), .min = 1, .max = PAGE_MAX},
        {0},
};

json_t *flow_monitor_flows(struct vnf *vnf, const json_t *params, uint64_t now_tsc, char *error)
{
	struct flow_monitor *monitor = (struct flow_monitor *)vnf;
	struct flow_table *table = &monitor->table;
	struct page_params page = {.from = 0, .limit = PAGE_DEFAULT};
	json_t *flows;
	uint32_t i;

	if (schema_decode(params, page_fields, &page, "params", error) != 0)
		return NULL;
	flow_table_expire(table, now_tsc, UINT32_MAX);
	flows = json_array();
	for (i = page.from; i < table->capacity && json_array_size(flows) < page.limit; i++)
		if (flow_table_is_used(table, i))
			json_array_append_new(flows, listed(monitor, i));
	return json_pack("{s:o, s:o}", "flows", flows, "next",
	                 i < table->capacity ? json_integer(i) : json_null());
}

// --- flush, and the report -------------------------------------------------------------------------------

static const struct field flush_fields[] = {{.key = "task", .type = FIELD_ANY}, {0}};

// The counts of all flows go to "expired": the sums still add up.
json_t *flow_monitor_flush(struct vnf *vnf, const json_t *params, uint64_t now_tsc, char *error)
{
	struct flow_monitor *monitor = (struct flow_monitor *)vnf;
	json_int_t flushed = monitor->table.count;
	uint8_t nothing;

	if (schema_decode(params, flush_fields, &nothing, "params", error) != 0)
		return NULL;
	monitor->expired.packets += monitor->tracked.packets;
	monitor->expired.bytes += monitor->tracked.bytes;
	monitor->expired_flows += (uint64_t)flushed;
	monitor->tracked = (struct flow_sum){0};
	flow_table_flush(&monitor->table);
	return json_pack("{s:I}", "flushed", flushed);
}

static json_t *sum_of(const struct flow_sum *sum)
{
	return json_pack("{s:I, s:I}", "packets", (json_int_t)sum->packets, "bytes", (json_int_t)sum->bytes);
}

// As of the last tick or burst: flows that were idle by then are expired.
void flow_monitor_report(const struct vnf *vnf, json_t *object)
{
	struct flow_monitor *monitor = (struct flow_monitor *)(uintptr_t)vnf;
	json_t *expired;

	flow_table_expire(&monitor->table, monitor->table.now_tsc, UINT32_MAX);
	expired = sum_of(&monitor->expired);
	json_object_set_new(expired, "flows", json_integer((json_int_t)monitor->expired_flows));
	json_object_set_new(object, "flows", json_integer(monitor->table.count));
	json_object_set_new(object, "all", sum_of(&monitor->all));
	json_object_set_new(object, "tracked", sum_of(&monitor->tracked));
	json_object_set_new(object, "expired", expired);
	json_object_set_new(object, "untracked", sum_of(&monitor->untracked));
	json_object_set_new(object, "other", sum_of(&monitor->other));
}
