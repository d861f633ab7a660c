// SPDX-License-Identifier: BSD-3-Clause
// bridge: made, reported, asked for its table. Control thread, while the worker is parked or beside it.
//
// rx_packets == forwarded + flooded + hairpin + reserved + runt + vlan + no_member + oversize + locked + station_limit,
// always: each frame once. forwarded + flood_copies + segments_added == tx_packets + drop_tx_full + no_mbuf + no_headroom,
// always: each copy once. segments_added: only of ports with offloads.
#include "switch/bridge.h"

#include <errno.h>
#include <rte_ether.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "table/mac_table.h"
#include "base/random.h"
#include "base/schema.h"
#include "task/task.h"

_Static_assert(BRIDGE_PORTS_MAX <= (int)MAC_TABLE_PORTS, "an entry holds a port");
_Static_assert(BRIDGE_PORTS_MAX <= 32, "a set of ports is a word");

// --- Settings: the key "bridge" ---------------------------------------------------------------------------

enum { AGEING_S_DEFAULT = 300, TABLE_SIZE_DEFAULT = 8192 };

// --- One port: {"access": 10}, or {"trunk": [10, 20] or "all", "native": 1} ------------------------------

struct port_document {
	uint16_t access, native;
	struct vlan_set {
		bool given;
		uint64_t bits[VLAN_WORDS];
	} trunk;
};

static int decode_trunk(const json_t *value, void *out, const char *where, char *error)
{
	struct vlan_set *set = out;

	set->given = true;
	return schema_decode_vlans(value, set->bits, where, error);
}

static const struct field port_fields[] = {
        {UINT_FIELD("access", struct port_document, access, 1, VLAN_ID_MAX)},
        {CUSTOM_FIELD("trunk", struct port_document, trunk, decode_trunk)},
        {UINT_FIELD("native", struct port_document, native, 1, VLAN_ID_MAX)},
        {0},
};

static int decode_port(const json_t *value, void *out, const char *where, char *error)
{
	struct bridge_port_settings *port = out;
	struct port_document document = {0};

	if (schema_decode(value, port_fields, &document, where, error))
		return -EINVAL;
	if ((document.access != 0) == document.trunk.given)
		return config_error(error, "%s: one of the keys \"access\" and \"trunk\" is needed, not both",
		                    where);
	if (document.native && !document.trunk.given)
		return config_error(error, "%s.native: only a port with \"trunk\" has one; leave it out",
		                    where);
	if (document.trunk.given && !(document.trunk.bits[0] & 1) && !document.native)
		return config_error(error, "%s.trunk: a port in no VLAN; name one, or a \"native\" one",
		                    where);
	port->trunk = document.trunk.given;
	port->untagged_vlan = document.trunk.given ? document.native : document.access;
	memcpy(port->tagged, document.trunk.bits, sizeof(port->tagged));
	port->tagged[0] &= ~UINT64_C(1);
	return 0;
}

// --- Who may send: {"max_stations": 4} or {"locked": true, "stations": ["02:00:00:00:00:01"]} ---------------

static const struct field security_fields[] = {
        {UINT_FIELD("max_stations", struct bridge_security, max_stations, 1, BRIDGE_STATIONS_MAX)},
        {.key = "locked", FIELD(FIELD_BOOL, struct bridge_security, locked)},
        {ARRAY_FIELD("stations", FIELD_MAC, struct bridge_security, stations, station_count, 1,
                     BRIDGE_STATIC_MAX)},
        {0},
};

static int decode_security(const json_t *value, void *out, const char *where, char *error)
{
	struct bridge_security *security = out;

	if (schema_decode(value, security_fields, security, where, error))
		return -EINVAL;
	if (security->locked != (security->station_count > 0))
		return config_error(error, "%s: \"locked\": true and \"stations\" need each other", where);
	if (security->locked && security->max_stations)
		return config_error(error,
		                    "%s.max_stations: a locked port has just its \"stations\"; leave it out",
		                    where);
	return 0;
}

// --- The whole key ---------------------------------------------------------------------------------------

static const struct field bridge_keys[] = {
        {UINT_FIELD("ageing_s", struct bridge_settings, ageing_s, 0, 1000000)},
        {UINT_FIELD("table_size", struct bridge_settings, table_size, 16, 1 << 20)},
        {.key = "table", FIELD(FIELD_NAME, struct bridge_settings, table)},
        {.key = "vlan", FIELD(FIELD_BOOL, struct bridge_settings, vlan)},
        {ARRAY_FIELD("port_vlans", FIELD_CUSTOM, struct bridge_settings, ports, port_count, 0,
                     BRIDGE_PORTS_MAX),
         .decode = decode_port},
        {ARRAY_FIELD("port_security", FIELD_CUSTOM, struct bridge_settings, security, security_count, 0,
                     BRIDGE_PORTS_MAX),
         .decode = decode_security},
        {0},
};

static const struct field settings_keys[] = {{.key = "bridge", .type = FIELD_OBJECT, .fields = bridge_keys},
                                             {0}};

static bool has_station(const struct bridge_security *security, const uint8_t mac[6])
{
	for (unsigned i = 0; i < security->station_count; i++)
		if (memcmp(security->stations[i], mac, 6) == 0)
			return true;
	return false;
}

// A station belongs to one port.
static int stations_check(const struct config_task *task, const struct bridge_settings *bridge, char *error)
{
	for (unsigned i = 0; i < bridge->security_count; i++)
		for (unsigned j = 0; j < i; j++)
			for (unsigned k = 0; k < bridge->security[j].station_count; k++)
				if (has_station(&bridge->security[i], bridge->security[j].stations[k]))
					return config_error(
					        error,
					        "task %s: bridge.port_security[%u] and [%u] have the same station",
					        task->name, j, i);
	return 0;
}

static int bridge_settings_check(const struct config_task *task, void *settings, const char *where,
                                 char *error)
{
	const struct bridge_settings *bridge = settings;

	if (bridge->table_size & (bridge->table_size - 1))
		return config_error(error, "task %s: bridge.table_size %u is not a power of two", task->name,
		                    bridge->table_size);
	if (!bridge->vlan && bridge->port_count)
		return config_error(error, "task %s: bridge.port_vlans needs \"vlan\": true", task->name);
	if (bridge->vlan && bridge->port_count != task->port_count)
		return config_error(
		        error,
		        "task %s: bridge.port_vlans has %u items for %u ports; each of \"ports\" needs one",
		        task->name, bridge->port_count, task->port_count);
	if (bridge->security_count && bridge->security_count != task->port_count)
		return config_error(
		        error,
		        "task %s: bridge.port_security has %u items for %u ports; each of \"ports\" needs one",
		        task->name, bridge->security_count, task->port_count);
	for (unsigned i = 0; i < task->port_count; i++)
		for (unsigned j = 0; j < i; j++)
			if (strcmp(task->ports[i], task->ports[j]) == 0)
				return config_error(error,
				                    "task %s: port %s is named twice; a bridge has it once",
				                    task->name, task->ports[i]);
	return stations_check(task, bridge, error);
}

static const struct bridge_settings defaults = {.ageing_s = AGEING_S_DEFAULT,
                                                .table_size = TABLE_SIZE_DEFAULT};

static int bridge_agree(const struct config_task *a, const struct config_task *b, char *error)
{
	const struct bridge_settings *of_a = a->settings, *of_b = b->settings;

	if (of_a->table[0] == '\0' || strcmp(of_a->table, of_b->table) != 0 ||
	    (memcmp(of_a, of_b, sizeof(*of_a)) == 0 && a->port_count == b->port_count &&
	     memcmp(a->ports, b->ports, sizeof(a->ports)) == 0))
		return 0;
	return config_error(
	        error,
	        "tasks %s and %s share the table \"%s\": their \"ports\" and \"bridge\" must be the same",
	        a->name, b->name, of_a->table);
}

// --- Tables by name --------------------------------------------------------------------------------------

struct shared {
	struct shared *next;
	struct mac_table *table;
	unsigned users;
	struct bridge_settings settings;
	unsigned port_count;
	struct port *ports[BRIDGE_PORTS_MAX]; // an entry names a port by its place here
	uint64_t counted_tsc;                 // of the report that counted its entries last
	size_t entries;
};

static struct shared *all;

static struct shared *shared_of(const struct mac_table *table)
{
	struct shared *shared = all;

	while (shared->table != table)
		shared = shared->next;
	return shared;
}

// Whether what is known for one is true for the other, too.
static bool is_same(const struct shared *shared, const struct bridge_settings *settings, unsigned port_count,
                    struct port *const *ports)
{
	return memcmp(&shared->settings, settings, sizeof(*settings)) == 0 &&
	       shared->port_count == port_count &&
	       memcmp(shared->ports, ports, port_count * sizeof(ports[0])) == 0;
}

static struct shared *shared_create(const struct bridge_settings *settings, unsigned port_count,
                                    struct port *const *ports)
{
	struct shared *shared = calloc(1, sizeof(*shared));
	uint64_t hz = clock_hz();

	if (shared == NULL)
		return NULL;
	shared->table = mac_table_create(settings->table_size, settings->ageing_s * hz, hz, random_secret());
	if (shared->table == NULL) {
		free(shared);
		return NULL;
	}
	shared->settings = *settings;
	shared->port_count = port_count;
	memcpy(shared->ports, ports, port_count * sizeof(ports[0]));
	shared->next = all;
	all = shared;
	return shared;
}

static struct mac_table *table_get(const struct bridge_settings *settings, unsigned port_count,
                                   struct port *const *ports)
{
	struct shared *shared = settings->table[0] ? all : NULL;

	while (shared && !is_same(shared, settings, port_count, ports))
		shared = shared->next;
	if (shared == NULL)
		shared = shared_create(settings, port_count, ports);
	if (shared == NULL)
		return NULL;
	shared->users++;
	return shared->table;
}

static void table_put(struct mac_table *table)
{
	struct shared **at = &all, *shared;

	while ((*at)->table != table)
		at = &(*at)->next;
	shared = *at;
	if (--shared->users > 0)
		return;
	*at = shared->next;
	mac_table_destroy(shared->table);
	free(shared);
}

// --- The task ----------------------------------------------------------------------------------------------

static const struct task_ops bridge_ops, bridge_vlan_ops, bridge_offload_ops, bridge_vlan_offload_ops;

static const struct task_ops *choose(const struct config_task *config, struct port *const *ports)
{
	bool offloads = false;

	for (unsigned i = 0; i < config->port_count; i++)
		offloads |= port_has_offloads(ports[i]);
	if (((const struct bridge_settings *)config->settings)->vlan)
		return offloads ? &bridge_vlan_offload_ops : &bridge_vlan_ops;
	return offloads ? &bridge_offload_ops : &bridge_ops;
}

static void join(struct bridge *b, unsigned port, const struct bridge_port_settings *config)
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
	const struct bridge_settings *settings = config->settings;

	if (!settings->vlan)
		b->vlans[0].members = UINT32_MAX >> (32 - config->port_count);
	for (unsigned i = 0; settings->vlan && i < config->port_count; i++)
		join(b, i, &settings->ports[i]);
}

static void set_security(struct bridge *b, unsigned port, const struct bridge_security *security)
{
	b->ports[port].locked = security->locked;
	b->ports[port].max_stations = (uint8_t)security->max_stations;
	b->secure = b->secure || security->locked || security->max_stations;
	for (unsigned i = 0; i < security->station_count; i++) {
		struct bridge_static *station = &b->statics[b->static_count++];

		memcpy(&station->mac, security->stations[i], 6);
		station->port = port;
	}
}

static int bridge_create(const struct config_task *config, struct port *const *ports, struct task **out)
{
	const struct bridge_settings *settings = config->settings;
	struct bridge *b = task_alloc(sizeof(*b), choose(config, ports), config, ports);

	if (!b)
		return -ENOMEM;
	b->table = table_get(settings, config->port_count, ports);
	if (!b->table) {
		LOG_ERROR("task %s: no memory for a table of %u", config->name, settings->table_size);
		free(b);
		return -ENOMEM;
	}
	b->burst = (uint16_t)config->burst;
	set_members(b, config);
	for (unsigned i = 0; i < settings->security_count; i++)
		set_security(b, i, &settings->security[i]);
	*out = &b->task;
	return 0;
}

static void bridge_destroy(struct task *task)
{
	table_put(((struct bridge *)task)->table);
	free(task);
}

// What an unnamed table knows is still true, if nothing but the task is new.
static void bridge_adopt(struct task *task, struct task *old)
{
	struct bridge *b = (struct bridge *)task, *before = (struct bridge *)old;
	const struct bridge_settings *settings = task->settings;
	struct mac_table *fresh = b->table;

	if (b->table == before->table) // a named one, of the same settings and ports
		memcpy(b->ports, before->ports, sizeof(b->ports));
	if (settings->table[0] || !is_same(shared_of(before->table), settings, task->port_count, task->ports))
		return;
	b->table = before->table;
	before->table = fresh;
	memcpy(b->ports, before->ports, sizeof(b->ports)); // whose stations are in it
}

// The entries of its table. Bridges that share one count it once in a report.
static size_t entries_of(const struct bridge *b, uint64_t now_tsc)
{
	struct shared *shared = shared_of(b->table);

	if (shared->counted_tsc != now_tsc)
		shared->entries = mac_table_count(b->table, now_tsc);
	shared->counted_tsc = now_tsc;
	return shared->entries;
}

static const struct counter drops[] = {
        COUNTER("hairpin", struct bridge, verdicts[BRIDGE_HAIRPIN]),
        COUNTER("reserved", struct bridge, verdicts[BRIDGE_RESERVED]),
        COUNTER("runt", struct bridge, verdicts[BRIDGE_RUNT]),
        COUNTER("vlan", struct bridge, verdicts[BRIDGE_VLAN]),
        COUNTER("no_member", struct bridge, verdicts[BRIDGE_NO_MEMBER]),
        COUNTER("oversize", struct bridge, verdicts[BRIDGE_OVERSIZE]),
        COUNTER("locked", struct bridge, verdicts[BRIDGE_LOCKED]),
        COUNTER("station_limit", struct bridge, verdicts[BRIDGE_STATION_LIMIT]),
        COUNTER("no_mbuf", struct bridge, no_mbuf),
        COUNTER("no_headroom", struct bridge, no_headroom),
        {0},
};

static const struct counter counters[] = {
        COUNTER("learned", struct bridge, learning.learned),
        COUNTER("moved", struct bridge, learning.moved),
        COUNTER("aged", struct bridge, learning.aged),
        COUNTER("table_full", struct bridge, learning.replaced),
        COUNTER("forwarded", struct bridge, verdicts[BRIDGE_FORWARDED]),
        COUNTER("flooded", struct bridge, verdicts[BRIDGE_FLOODED]),
        COUNTER("flood_copies", struct bridge, flood_copies),
        COUNTER("segments_added", struct bridge, segments_added),
        {0},
};

static void bridge_report(const struct task *task, json_t *object, uint64_t now_tsc)
{
	size_t entries = entries_of((const struct bridge *)task, now_tsc);

	json_object_set_new(object, "entries", json_integer((json_int_t)entries));
}

static json_t *entry_json(const struct bridge *b, const struct mac_entry *entry)
{
	return json_pack("{s:o, s:i, s:s, s:I}", "mac", schema_mac_json(entry->mac), "vlan", entry->vlan,
	                 "port", b->task.ports[entry->port]->config.name, "age_s",
	                 (json_int_t)(entry->age_cycles / clock_hz()));
}

enum { PAGE_LIMIT_DEFAULT = 4096, PAGE_LIMIT_MAX = 65536 };

static const struct task_page page_defaults = {.limit = PAGE_LIMIT_DEFAULT};
static const struct field page_fields[] = {TASK_PAGE_FIELDS(MAC_TABLE_WAYS, PAGE_LIMIT_MAX), {0}};

static json_t *call_table(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	const struct bridge *b = (const struct bridge *)task;
	const struct task_page *page = params;
	unsigned bucket = (unsigned)page->from;
	size_t left = page->limit;
	struct mac_entry entries[64];
	json_t *list = json_array();

	while (bucket < b->table->bucket_count && left >= MAC_TABLE_WAYS) {
		unsigned n = mac_table_list(b->table, &bucket, entries,
		                            (unsigned)RTE_MIN(left, RTE_DIM(entries)), now_tsc);

		for (unsigned i = 0; i < n; i++)
			json_array_append_new(list, entry_json(b, &entries[i]));
		left -= n;
	}
	return task_page("entries", list, bucket < b->table->bucket_count, bucket);
}

static json_t *call_flush(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	return json_pack("{s:i}", "flushed",
	                 (int)mac_table_flush(((const struct bridge *)task)->table, now_tsc));
}

static const struct task_method methods[] = {
        {.name = "table", .call = call_table, .fields = page_fields, TASK_DEFAULTS(page_defaults)},
        {.name = "flush", .call = call_flush},
        {0},
};

// What the kinds of bridge have in common: all but how they are polled.
#define BRIDGE_OPS                                                                                           \
	.kind = "bridge", .ports_min = 2, .ports_max = BRIDGE_PORTS_MAX, .receives = true, .sends = true,    \
	.create = bridge_create, .destroy = bridge_destroy, .drops = drops, .counters = counters,            \
	.report = bridge_report, .bursts = true, .settings_keys = settings_keys,                             \
	.settings_defaults = &defaults, .settings_size = sizeof(struct bridge_settings),                     \
	.settings_check = bridge_settings_check, .agree = bridge_agree, .adopt = bridge_adopt,               \
	.methods = methods, .methods_beside = true, .offloads = true

static const struct task_ops bridge_ops = {BRIDGE_OPS, .poll = bridge_poll};
TASK_KIND(bridge_ops)

static const struct task_ops bridge_vlan_ops = {BRIDGE_OPS, .poll = bridge_poll_vlan};

static const struct task_ops bridge_offload_ops = {BRIDGE_OPS, .poll = bridge_poll_offloads};

static const struct task_ops bridge_vlan_offload_ops = {BRIDGE_OPS, .poll = bridge_poll_vlan_offloads};
