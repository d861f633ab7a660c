// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/bridge/config_bridge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/schema.h"

enum { AGEING_S_DEFAULT = 300, TABLE_SIZE_DEFAULT = 8192, VLAN_MAX = 4094 };

#define REFUSE(...) (snprintf(error, CONFIG_ERROR_MAX, __VA_ARGS__), -EINVAL)

// --- One port: {"access": 10}, or {"trunk": [10, 20] or "all", "native": 1}
// ----------------------------------

struct port_document {
	uint16_t access, native;
	struct vlan_set {
		bool given, any; // any: not empty
		uint64_t bits[CONFIG_VLAN_WORDS];
	} trunk;
};

static void add_vlan(struct vlan_set *set, unsigned vlan)
{
	set->bits[vlan / 64] |= UINT64_C(1) << vlan % 64;
	set->any = true;
}

static int decode_trunk(const json_t *value, void *out, const char *where, char *error)
{
	struct vlan_set *set = out;

	set->given = true;
	if (json_is_string(value) && strcmp(json_string_value(value), "all") == 0) {
		for (unsigned vlan = 1; vlan <= VLAN_MAX; vlan++)
			add_vlan(set, vlan);
		return 0;
	}
	if (!json_is_array(value))
		return REFUSE("%s: expected \"all\" or an array of VLAN numbers", where);
	for (size_t i = 0; i < json_array_size(value); i++) {
		json_int_t vlan = json_integer_value(json_array_get(value, i)); // 0 if it is none

		if (vlan < 1 || vlan > VLAN_MAX)
			return REFUSE("%s[%zu]: expected a VLAN number from 1 to %d", where, i, VLAN_MAX);
		add_vlan(set, (unsigned)vlan);
	}
	return 0;
}

static const struct field port_fields[] = {
        {.key = "access", FIELD(FIELD_UINT, struct port_document, access), .min = 1, .max = VLAN_MAX},
        {.key = "trunk", FIELD(FIELD_CUSTOM, struct port_document, trunk), .decode = decode_trunk},
        {.key = "native", FIELD(FIELD_UINT, struct port_document, native), .min = 1, .max = VLAN_MAX},
        {0},
};

static int decode_port(const json_t *value, struct config_bridge_port *port, const char *where, char *error)
{
	struct port_document document = {0};

	if (schema_decode(value, port_fields, &document, where, error))
		return -EINVAL;
	if ((document.access != 0) == document.trunk.given)
		return REFUSE("%s: one of the keys \"access\" and \"trunk\" is needed, not both", where);
	if (document.native && !document.trunk.given)
		return REFUSE("%s.native: only a port with \"trunk\" has one; leave it out", where);
	if (document.trunk.given && !document.trunk.any && !document.native)
		return REFUSE("%s.trunk: a port in no VLAN; name one, or a \"native\" one", where);
	port->trunk = document.trunk.given;
	port->untagged_vlan = document.trunk.given ? document.native : document.access;
	memcpy(port->tagged, document.trunk.bits, sizeof(port->tagged));
	return 0;
}

// --- The whole key
// -------------------------------------------------------------------------------------------

static int decode_ports(const json_t *value, void *out, const char *where, char *error)
{
	struct config_bridge *bridge = out;

	if (!json_is_array(value) || json_array_size(value) > CONFIG_BRIDGE_PORTS_MAX)
		return REFUSE("%s: expected an array of objects, one for each of \"ports\"", where);
	for (size_t i = 0; i < json_array_size(value); i++) {
		char which[80];

		snprintf(which, sizeof(which), "%s[%zu]", where, i);
		if (decode_port(json_array_get(value, i), &bridge->ports[i], which, error))
			return -EINVAL;
	}
	bridge->port_count = (unsigned)json_array_size(value);
	return 0;
}

static const struct field fields[] = {
        {.key = "ageing_s", FIELD(FIELD_UINT, struct config_bridge, ageing_s), .max = 1000000},
        {.key = "table_size", FIELD(FIELD_UINT, struct config_bridge, table_size), .min = 16, .max = 1 << 20},
        {.key = "table", FIELD(FIELD_NAME, struct config_bridge, table)},
        {.key = "vlan", FIELD(FIELD_BOOL, struct config_bridge, vlan)},
        {.key = "port_vlans", .type = FIELD_CUSTOM, .decode = decode_ports},
        {0},
};

void config_bridge_default(struct config_bridge *bridge)
{
	bridge->ageing_s = AGEING_S_DEFAULT;
	bridge->table_size = TABLE_SIZE_DEFAULT;
}

int config_bridge_decode(const json_t *value, void *out, const char *where, char *error)
{
	struct config_bridge *bridge = out;

	bridge->given = true;
	return schema_decode(value, fields, bridge, where, error);
}

// --- What the keys mean together
// -----------------------------------------------------------------------------

static int check_keys(const struct config_task *task, char *error)
{
	const struct config_bridge *bridge = &task->bridge;

	if (bridge->table_size & (bridge->table_size - 1))
		return REFUSE("task %s: bridge.table_size %u is not a power of two", task->name,
		              bridge->table_size);
	if (!bridge->vlan && bridge->port_count)
		return REFUSE("task %s: bridge.port_vlans needs \"vlan\": true", task->name);
	if (bridge->vlan && bridge->port_count != task->port_count)
		return REFUSE(
		        "task %s: bridge.port_vlans has %u items for %u ports; each of \"ports\" needs one",
		        task->name, bridge->port_count, task->port_count);
	for (unsigned i = 0; i < task->port_count; i++)
		for (unsigned j = 0; j < i; j++)
			if (strcmp(task->ports[i], task->ports[j]) == 0)
				return REFUSE("task %s: port %s is named twice; a bridge has it once",
				              task->name, task->ports[i]);
	return 0;
}

static bool agree(const struct config_task *a, const struct config_task *b)
{
	return memcmp(&a->bridge, &b->bridge, sizeof(a->bridge)) == 0 && a->port_count == b->port_count &&
	       memcmp(a->ports, b->ports, sizeof(a->ports)) == 0;
}

static int check_shared(const struct config *config, const struct config_task *task, char *error)
{
	for (const struct config_task *other = config->tasks; other < task; other++)
		if (strcmp(other->kind, task->kind) == 0 && task->bridge.table[0] &&
		    strcmp(other->bridge.table, task->bridge.table) == 0 && !agree(other, task))
			return REFUSE(
			        "tasks %s and %s share the table \"%s\": their \"ports\" and \"bridge\" "
			        "must be the same",
			        other->name, task->name, task->bridge.table);
	return 0;
}

int config_bridge_check(const struct config *config, const struct config_task *task, char *error)
{
	if (strcmp(task->kind, "bridge") != 0) {
		if (task->bridge.given)
			return REFUSE("task %s: kind %s has no \"bridge\"; leave it out, or use kind bridge",
			              task->name, task->kind);
		return 0;
	}
	if (check_keys(task, error))
		return -EINVAL;
	return check_shared(config, task, error);
}
