// SPDX-License-Identifier: BSD-3-Clause
// The key "bridge" of a task: what it decodes to, and a table of what is refused, in which words.
#include <stdio.h>

#include "runtime/config.h"
#include "switch/bridge.h"
#include "test/unit.h"

// A document whose tasks are these, on ports p0 to p4; ' stands for ".
static struct config *decode(const char *tasks, char *error)
{
	char text[4096];
	json_error_t where;
	struct config *config;
	json_t *json;
	int used = snprintf(text, sizeof(text), "{'version': 1, 'name': 'a', 'ports': [");

	for (int i = 0; i < 5; i++)
		used += snprintf(text + used, sizeof(text) - (size_t)used,
		                 "%s{'name': 'p%d', 'kind': 'ethdev', 'device': 'net_null%d'}", i ? "," : "",
		                 i, i);
	snprintf(text + used, sizeof(text) - (size_t)used,
	         "], 'tasks': [%s], 'workers': [{'name': 'w', 'cpu': 0, 'tasks': ['br']}]}", tasks);
	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	json = json_loads(text, 0, &where);
	if (json == NULL)
		fail_msg("%s: %s", where.text, text);
	config = config_decode(json, error);
	json_decref(json);
	return config;
}

static bool in_trunk(const struct bridge_port_settings *port, unsigned vlan)
{
	return port->tagged[vlan / 64] >> vlan % 64 & 1;
}

static void a_whole_bridge_decodes(void **state)
{
	char error[CONFIG_ERROR_MAX] = "";
	struct config *config =
	        decode("{'name': 'br', 'kind': 'bridge', 'ports': ['p0', 'p1', 'p2', 'p3'],"
	               " 'bridge': {'ageing_s': 0, 'table_size': 16, 'table': 't', 'vlan': true,"
	               "  'port_vlans': [{'access': 4094}, {'trunk': [1, 4094]},"
	               "                 {'trunk': 'all', 'native': 7}, {'trunk': [], 'native': 9}]}}",
	               error);
	const struct bridge_settings *bridge;

	if (config == NULL)
		fail_msg("%s", error);
	bridge = config->tasks[0].settings;
	assert_true(bridge->vlan && bridge->ageing_s == 0 && bridge->table_size == 16);
	assert_string_equal(bridge->table, "t");
	assert_true(!bridge->ports[0].trunk && bridge->ports[0].untagged_vlan == 4094);
	assert_true(bridge->ports[1].trunk && bridge->ports[1].untagged_vlan == 0);
	for (unsigned vlan = 0; vlan < 4096; vlan++) {
		assert_false(in_trunk(&bridge->ports[0], vlan) || in_trunk(&bridge->ports[3], vlan));
		assert_int_equal(in_trunk(&bridge->ports[1], vlan), vlan == 1 || vlan == 4094);
		assert_int_equal(in_trunk(&bridge->ports[2], vlan), vlan >= 1 && vlan <= 4094);
	}
	assert_int_equal(bridge->ports[2].untagged_vlan, 7);
	assert_true(bridge->ports[3].trunk && bridge->ports[3].untagged_vlan == 9);
	config_free(config);
}

static void a_small_bridge_gets_the_defaults(void **state)
{
	static const char *const tasks[] = {
	        "{'name': 'br', 'kind': 'bridge', 'ports': ['p0', 'p1']}",
	        "{'name': 'br', 'kind': 'bridge', 'ports': ['p0', 'p1'], 'bridge': {}}"};

	for (unsigned i = 0; i < 2; i++) {
		char error[CONFIG_ERROR_MAX] = "";
		struct config *config = decode(tasks[i], error);
		const struct bridge_settings *bridge;

		if (config == NULL)
			fail_msg("%s", error);
		bridge = config->tasks[0].settings;
		assert_int_equal(bridge->ageing_s, 300);
		assert_int_equal(bridge->table_size, 8192);
		assert_string_equal(bridge->table, "");
		assert_false(bridge->vlan);
		config_free(config);
	}
}

#define TWO_PORTS  "{'name': 'br', 'kind': 'bridge', 'ports': ['p0', 'p1'], 'bridge': "
#define VLAN_PORTS TWO_PORTS "{'vlan': true, 'port_vlans': "
#define SECOND     "{'name': 'br2', 'kind': 'bridge', 'bridge': "

static const struct {
	const char *tasks, *words;
} refusals[] = {
        {"{'name': 'br', 'kind': 'bridge', 'ports': ['p0']}", "kind bridge takes 2 to 32 ports, not 1"},
        {"{'name': 'br', 'kind': 'bridge', 'ports': ['p0', 'p1', 'p0']}",
         "task br: port p0 is named twice; a bridge has it once"},
        {"{'name': 'br', 'kind': 'patch', 'ports': ['p0', 'p1'], 'bridge': {}}",
         "task br: kind patch has no \"bridge\"; leave it out"},
        {TWO_PORTS "7}", "tasks[0].bridge: expected an object"},
        {TWO_PORTS "{'aging_s': 1}}",
         "tasks[0].bridge: unknown key \"aging_s\"; valid keys: ageing_s table_size table vlan port_vlans"},
        {TWO_PORTS "{'ageing_s': -1}}", "tasks[0].bridge.ageing_s: -1 is not valid"},
        {TWO_PORTS "{'ageing_s': 1000001}}", "from 0 to 1000000"},
        {TWO_PORTS "{'table_size': 8}}", "tasks[0].bridge.table_size: 8 is not valid"},
        {TWO_PORTS "{'table_size': 2097152}}", "from 16 to 1048576"},
        {TWO_PORTS "{'table_size': 1000}}", "task br: bridge.table_size 1000 is not a power of two"},
        {TWO_PORTS "{'table': 'A'}}", "tasks[0].bridge.table: \"A\" is not valid"},
        {TWO_PORTS "{'vlan': 1}}", "tasks[0].bridge.vlan: 1 is not valid: expected true or false"},
        {TWO_PORTS "{'vlan': true}}",
         "task br: bridge.port_vlans has 0 items for 2 ports; each of \"ports\" needs one"},
        {VLAN_PORTS "[{'access': 1}]}}", "bridge.port_vlans has 1 items for 2 ports"},
        {TWO_PORTS "{'port_vlans': [{'access': 1}, {'access': 1}]}}",
         "task br: bridge.port_vlans needs \"vlan\": true"},
        {VLAN_PORTS "{'p0': 1}}}", "tasks[0].bridge.port_vlans: expected an array of 0 to 32 items"},
        {VLAN_PORTS "[{'access': 1}, 2]}}", "tasks[0].bridge.port_vlans[1]: expected an object"},
        {VLAN_PORTS "[{'acess': 1}]}}", "tasks[0].bridge.port_vlans[0]: unknown key \"acess\""},
        {VLAN_PORTS "[{'access': 0}]}}", "tasks[0].bridge.port_vlans[0].access: 0 is not valid"},
        {VLAN_PORTS "[{'access': 4095}]}}", "from 1 to 4094"},
        {VLAN_PORTS "[{}]}}", "one of the keys \"access\" and \"trunk\" is needed, not both"},
        {VLAN_PORTS "[{'access': 1, 'trunk': []}]}}", "is needed, not both"},
        {VLAN_PORTS "[{'trunk': []}]}}",
         "tasks[0].bridge.port_vlans[0].trunk: a port in no VLAN; name one, or a \"native\" one"},
        {VLAN_PORTS "[{'access': 1, 'native': 2}]}}",
         "tasks[0].bridge.port_vlans[0].native: only a port with \"trunk\" has one"},
        {VLAN_PORTS "[{'trunk': 5}]}}",
         "tasks[0].bridge.port_vlans[0].trunk: expected \"all\" or an array of VLAN numbers"},
        {VLAN_PORTS "[{'trunk': 'none'}]}}", "expected \"all\" or an array of VLAN numbers"},
        {VLAN_PORTS "[{'trunk': [1, 4095]}]}}",
         "tasks[0].bridge.port_vlans[0].trunk[1]: expected a VLAN number from 1 to 4094"},
        {VLAN_PORTS "[{'trunk': ['1']}]}}", "trunk[0]: expected a VLAN number from 1 to 4094"},
        {TWO_PORTS "{'port_security': [{}]}}", "bridge.port_security has 1 items for 2 ports"},
        {TWO_PORTS "{'port_security': [{'max_stations': 65}, {}]}}", "from 1 to 64"},
        {TWO_PORTS "{'port_security': [{'locked': true}, {}]}}",
         "\"locked\": true and \"stations\" need each other"},
        {TWO_PORTS "{'port_security': [{'stations': ['02:00:00:00:00:01']}, {}]}}", "need each other"},
        {TWO_PORTS
         "{'port_security': [{'locked': true, 'stations': ['02:00:00:00:00:01'], 'max_stations': 3}, {}]}}",
         "a locked port has just its \"stations\""},
        {TWO_PORTS "{'port_security': [{'locked': true, 'stations': ['02:00:00:00:00:01']}, "
                   "{'locked': true, 'stations': ['02:00:00:00:00:02', '02:00:00:00:00:01']}]}}",
         "bridge.port_security[0] and [1] have the same station"},
        {TWO_PORTS "{'table': 't'}}, " SECOND "{'table': 't'}, 'ports': ['p1', 'p0']}",
         "tasks br and br2 share the table \"t\": their \"ports\" and \"bridge\" must be the same"},
        {TWO_PORTS "{'table': 't'}}, " SECOND "{'table': 't', 'ageing_s': 5}, 'ports': ['p0', 'p1']}",
         "tasks br and br2 share the table \"t\""},
        {TWO_PORTS "{'table': 't'}}, " SECOND "{'table': 't'}, 'ports': ['p0', 'p1', 'p2']}",
         "tasks br and br2 share the table \"t\""},
};

static void what_is_refused(void **state)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		char error[CONFIG_ERROR_MAX];
		struct config *config;

		memset(error, 'x', sizeof(error));
		config = decode(refusals[i].tasks, error);
		if (config)
			fail_msg("accepted: %s", refusals[i].tasks);
		assert_non_null(memchr(error, '\0', sizeof(error)));
		if (strstr(error, refusals[i].words) == NULL)
			fail_msg("%s\n  gave:    %s\n  without: %s", refusals[i].tasks, error,
			         refusals[i].words);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_whole_bridge_decodes),
	        cmocka_unit_test(a_small_bridge_gets_the_defaults),
	        cmocka_unit_test(what_is_refused),
	};

	return cmocka_run_group_tests_name("config_bridge", tests, NULL, NULL);
}
