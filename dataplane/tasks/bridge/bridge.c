// SPDX-License-Identifier: BSD-3-Clause
// bridge: made, reported, asked for its table. Control thread, while the worker is parked or beside it.
//
// rx_packets == forwarded + flooded + hairpin + reserved + runt + vlan + no_member + oversize, always: each
// frame once. forwarded + flood_copies == tx_packets + drop_tx_full + no_mbuf + no_headroom, always: each
// copy once.
#include "tasks/bridge/bridge.h"

#include <errno.h>
#include <stdlib.h>

#include <rte_cycles.h>
#include <rte_ether.h>

#include "tasks/bridge/bridge_tables.h"
#include "lib/log.h"
#include "tasks/task_alloc.h"

enum { BURST_DEFAULT = 32 };

_Static_assert(CONFIG_BRIDGE_PORTS_MAX <= (int)MAC_TABLE_PORTS, "an entry holds a port");
_Static_assert(CONFIG_BRIDGE_PORTS_MAX <= 32, "a set of ports is a word");

static const struct task_ops bridge_in_place_ops, bridge_in_place_vlan_ops, bridge_vlan_ops;

static const struct task_ops *choose(const struct config_task *config, struct port *const *ports)
{
	bool in_place = true;

	for (unsigned i = 0; i < config->port_count; i++)
		in_place = in_place && port_in_place(ports[i]);
	if (in_place)
		return config->bridge.vlan ? &bridge_in_place_vlan_ops : &bridge_in_place_ops;
	return config->bridge.vlan ? &bridge_vlan_ops : &bridge_ops;
}

static void join(struct bridge *b, unsigned port, const struct config_bridge_port *config)
{
	uint32_t bit = UINT32_C(1) << port;

	b->ports[port] = (struct bridge_port){.untagged_vlan = config->untagged_vlan, .trunk = config->trunk};
	for (unsigned vlan = 1; vlan < BRIDGE_VLANS - 1; vlan++)
		if (config->tagged[vlan / 64] >> vlan % 64 & 1) {
			b->vlans[vlan].members |= bit;
			b->vlans[vlan].tagged |= bit;
		}
	// A native VLAN that is in the list of its trunk too leaves without a tag.
	if (config->untagged_vlan) {
		b->vlans[config->untagged_vlan].members |= bit;
		b->vlans[config->untagged_vlan].tagged &= ~bit;
	}
}

static void set_members(struct bridge *b, const struct config_task *config)
{
	if (!config->bridge.vlan)
		b->vlans[0].members = UINT32_MAX >> (32 - config->port_count);
	for (unsigned i = 0; config->bridge.vlan && i < config->port_count; i++)
		join(b, i, &config->bridge.ports[i]);
}

static int bridge_create(const struct config_task *config, struct port *const *ports, struct task **out)
{
	struct bridge *b = task_alloc(sizeof(*b), choose(config, ports), config, ports);

	if (!b)
		return -ENOMEM;
	b->table = bridge_tables_get(config, ports);
	if (!b->table) {
		LOG_ERROR("task %s: no memory for a table of %u", config->name, config->bridge.table_size);
		free(b);
		return -ENOMEM;
	}
	b->burst = config->burst ? (uint16_t)config->burst : BURST_DEFAULT;
	set_members(b, config);
	*out = &b->task;
	return 0;
}

static void bridge_destroy(struct task *task)
{
	bridge_tables_put(((struct bridge *)task)->table);
	free(task);
}

static void bridge_clear(struct task *task)
{
	struct bridge *b = (struct bridge *)task;

	memset(b->verdicts, 0, sizeof(b->verdicts));
	b->learning = (struct mac_counts){0};
	b->flood_copies = b->no_mbuf = b->no_headroom = 0;
}

static json_t *count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static void bridge_report(const struct task *task, json_t *object)
{
	static const char *const reasons[BRIDGE_VERDICTS] = {
	        [BRIDGE_HAIRPIN] = "hairpin",     [BRIDGE_RESERVED] = "reserved",
	        [BRIDGE_RUNT] = "runt",           [BRIDGE_VLAN] = "vlan",
	        [BRIDGE_NO_MEMBER] = "no_member", [BRIDGE_OVERSIZE] = "oversize"};
	const struct bridge *b = (const struct bridge *)task;
	json_t *drops = json_object_get(object, "drops");

	for (unsigned i = BRIDGE_HAIRPIN; i < BRIDGE_VERDICTS; i++)
		json_object_set_new(drops, reasons[i], count(b->verdicts[i]));
	json_object_set_new(drops, "no_mbuf", count(b->no_mbuf));
	json_object_set_new(drops, "no_headroom", count(b->no_headroom));
	json_object_set_new(object, "bridge",
	                    json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "learned",
	                              count(b->learning.learned), "moved", count(b->learning.moved), "aged",
	                              count(b->learning.aged), "table_full", count(b->learning.replaced),
	                              "forwarded", count(b->verdicts[BRIDGE_FORWARDED]), "flooded",
	                              count(b->verdicts[BRIDGE_FLOODED]), "flood_copies",
	                              count(b->flood_copies)));
}

// NULL if it is no bridge.
static const struct mac_table *table_of(const struct task *task)
{
	return task->ops->report == bridge_report ? ((const struct bridge *)task)->table : NULL;
}

static json_t *entries_of(const json_t *reports, size_t i)
{
	return json_object_get(json_object_get(json_array_get(reports, i), "bridge"), "entries");
}

void bridge_report_entries(struct task *const *tasks, unsigned task_count, json_t *reports)
{
	for (unsigned i = 0; i < task_count; i++) {
		const struct mac_table *table = table_of(tasks[i]);
		unsigned first = 0;

		if (table == NULL)
			continue;
		while (table_of(tasks[first]) != table)
			first++;
		json_object_set_new(json_object_get(json_array_get(reports, i), "bridge"), "entries",
		                    first < i ? json_incref(entries_of(reports, first))
		                              : count(mac_table_count(table, rte_rdtsc())));
	}
}

static json_t *entry_json(const struct bridge *b, const struct mac_entry *entry)
{
	struct rte_ether_addr address;
	char mac[RTE_ETHER_ADDR_FMT_SIZE];

	memcpy(address.addr_bytes, entry->mac, sizeof(entry->mac));
	rte_ether_format_addr(mac, sizeof(mac), &address);
	return json_pack("{s:s, s:i, s:s, s:o}", "mac", mac, "vlan", entry->vlan, "port",
	                 b->task.ports[entry->port]->config.name, "age_s",
	                 count(entry->age_cycles / rte_get_tsc_hz()));
}

json_t *bridge_table_list(const struct task *task, uint32_t from, uint32_t limit, uint64_t now_tsc)
{
	const struct bridge *b = (const struct bridge *)task;
	struct mac_entry entries[64];
	json_t *list = json_array();
	unsigned bucket = from;
	size_t left = limit;

	if (list == NULL)
		return NULL;
	while (bucket < b->table->bucket_count && left >= MAC_TABLE_WAYS) {
		unsigned n = mac_table_list(b->table, &bucket, entries,
		                            (unsigned)RTE_MIN(left, RTE_DIM(entries)), now_tsc);

		for (unsigned i = 0; i < n; i++)
			json_array_append_new(list, entry_json(b, &entries[i]));
		left -= n;
	}
	return json_pack("{s:o, s:o}", "entries", list, "next",
	                 bucket < b->table->bucket_count ? count(bucket) : json_null());
}

json_t *bridge_table_flush(const struct task *task, uint64_t now_tsc)
{
	const struct bridge *b = (const struct bridge *)task;

	return json_pack("{s:i}", "flushed", (int)mac_table_flush(b->table, now_tsc));
}

// What the kinds of bridge have in common: all but how they are polled.
#define BRIDGE_OPS                                                                                           \
	.kind = "bridge", .ports_min = 2, .ports_max = CONFIG_BRIDGE_PORTS_MAX, .receives = true,            \
	.sends = true, .create = bridge_create, .destroy = bridge_destroy, .clear = bridge_clear,            \
	.report = bridge_report, .bursts = true

const struct task_ops bridge_ops = {BRIDGE_OPS, .poll = bridge_poll_mbufs};

static const struct task_ops bridge_vlan_ops = {BRIDGE_OPS, .poll = bridge_poll_mbufs_vlan};

static const struct task_ops bridge_in_place_ops = {BRIDGE_OPS, .poll = bridge_poll_in_place};

static const struct task_ops bridge_in_place_vlan_ops = {BRIDGE_OPS, .poll = bridge_poll_in_place_vlan};
