// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table/route_file.h"
#include "base/schema.h"
#include "nf/l3fwd/l3fwd.h"

// --- Settings --------------------------------------------------------------------------------------------

enum { MTU_MIN = 68, MTU_MAX = 65535 };

// Ten of IPv4, as in the paper (can17), and one for the tester's IPv6. Its frames go to 198.19.STREAM.1 or
// into 2001:2::/48 (tester/generator.c); the networks are those of RFC 2544 appendix C, RFC 1918 and RFC 5180
// section 8.
static const char default_routes[] = "10.0.0.0/8\n"
                                     "172.16.0.0/12\n"
                                     "192.168.0.0/16\n"
                                     "198.18.0.0/15\n"
                                     "198.18.0.0/16\n"
                                     "198.19.0.0/16\n"
                                     "198.19.0.0/24\n"
                                     "198.19.1.0/24\n"
                                     "198.19.2.0/24\n"
                                     "198.19.3.0/24\n"
                                     "2001:2::/48\n";

static const char *const fibs[] = {[L3FWD_LPM] = "lpm", [L3FWD_CUCKOO] = "cuckoo", NULL};

const struct field l3fwd_fields[] = {
        {CHOICE_FIELD("fib", struct l3fwd_settings, fib, fibs)},
        {.key = "routes", .type = FIELD_ANY},
        {.key = "routes_file", FIELD(FIELD_STRING, struct l3fwd_settings, routes_file)},
        {UINT_FIELD("synthetic", struct l3fwd_settings, synthetic, 1, ROUTE_SYNTHETIC_MAX)},
        {.key = "next_hops", .type = FIELD_ANY},
        {.key = "own_mac_only", FIELD(FIELD_BOOL, struct l3fwd_settings, own_mac_only)},
        {UINT_FIELD("mtu", struct l3fwd_settings, mtu, MTU_MIN, MTU_MAX)},
        {0},
};

const struct l3fwd_settings l3fwd_defaults = {.mtu = UINT32_MAX};

// --- Next hops -------------------------------------------------------------------------------------------

static int decode_hops(const json_t *value, struct route_list *list, const char *where, char *error)
{
	list->via_count = json_array_size(value);
	if (value && list->via_count == 0)
		return config_error(
		        error, "%s.next_hops: expected an array of objects {\"port\", \"mac\"}, not empty",
		        where);
	list->hops = calloc(list->via_count + 1, sizeof(*list->hops));
	if (!list->hops)
		return config_error(error, "%s.next_hops: no memory for so many", where);
	for (size_t i = 0; i < list->via_count; i++) {
		char which[80];

		snprintf(which, sizeof(which), "%s.next_hops[%zu]", where, i);
		list->hops[i] = (struct route){.port = ROUTE_UNSET, .via = UINT32_MAX};
		if (route_parse_hop(list, &list->hops[i], json_array_get(value, i), which, error))
			return -EINVAL;
	}
	return 0;
}

// What a route says by "via", or does not say: then the hops take turns.
static void resolve(struct route_list *list)
{
	size_t turn = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct route *route = &list->routes[i];
		const struct route *hop;

		if (list->via_count == 0 || route->drop || route->has_mac || route->port != ROUTE_UNSET)
			continue;
		hop = &list->hops[route->via != UINT32_MAX ? route->via : turn++ % list->via_count];
		route->port = hop->port;
		route->has_mac = hop->has_mac;
		memcpy(route->mac, hop->mac, sizeof(route->mac));
	}
}

// --- Routes ----------------------------------------------------------------------------------------------

static int read_routes(struct l3fwd_settings *settings, const json_t *routes, const char *where, char *error)
{
	struct route_list *list = &settings->list;

	if (routes && settings->routes_file[0])
		return config_error(error,
		                    "%s: there are \"routes\" and a \"routes_file\"; leave one of them out",
		                    where);
	if (settings->routes_file[0])
		return route_list_file(list, settings->routes_file, error);
	if (routes) {
		snprintf(list->source, sizeof(list->source), "%s.routes", where);
		return route_list_json(list, routes, error);
	}
	snprintf(list->source, sizeof(list->source), "default routes");
	return route_list_text(list, default_routes, sizeof(default_routes) - 1, error);
}

static int check_hosts(const struct route_list *list, char *error)
{
	int status = route_hosts_check(list);

	if (status == -ENOSPC)
		return config_error(
		        error,
		        "%s: host routes to more than %d next hops, which \"fib\": \"cuckoo\" cannot "
		        "tell apart; use \"lpm\"",
		        list->source, ROUTE_HOPS_MAX);
	return status ? config_error(error, "%s: no memory for its next hops", list->source) : 0;
}

static int check_synthetic(const struct l3fwd_settings *settings, const json_t *routes, const char *where,
                           char *error)
{
	if (settings->synthetic && (routes || settings->routes_file[0]))
		return config_error(
		        error, "%s: there are routes and \"synthetic\" ones; leave one of them out", where);
	if (settings->synthetic && settings->fib != L3FWD_CUCKOO)
		return config_error(
		        error, "%s: \"synthetic\" makes host routes; it needs \"fib\": \"cuckoo\"", where);
	return 0;
}

static int read_sorted(struct l3fwd_settings *settings, const json_t *routes, const char *where, char *error)
{
	struct route_list *list = &settings->list;

	if (settings->synthetic) {
		snprintf(list->source, sizeof(list->source), "%s.synthetic", where);
		route_list_synthetic(list, settings->synthetic);
		return 0;
	}
	if (read_routes(settings, routes, where, error))
		return -EINVAL;
	if (list->count == 0)
		return config_error(error, "%s: no route; a router without routes forwards nothing",
		                    list->source);
	resolve(list);
	return route_list_sort(list, error);
}

// --- All of it -------------------------------------------------------------------------------------------

static int check_ports(const struct config_task *config, char *error)
{
	for (unsigned i = 0; i < config->port_count; i++)
		for (unsigned j = 0; j < i; j++)
			if (strcmp(config->ports[i], config->ports[j]) == 0)
				return config_error(error,
				                    "task %s: port %s is named twice; a router has it once",
				                    config->name, config->ports[i]);
	return 0;
}

int l3fwd_settings_check(const struct config_task *config, const json_t *object, void *out, const char *where,
                         char *error)
{
	const json_t *routes = json_object_get(object, "routes");
	struct l3fwd_settings *settings = out;

	settings->list.port_count = config->port_count;
	if (check_ports(config, error) || check_synthetic(settings, routes, where, error) ||
	    decode_hops(json_object_get(object, "next_hops"), &settings->list, where, error) ||
	    read_sorted(settings, routes, where, error))
		return -EINVAL;
	return settings->fib == L3FWD_CUCKOO ? check_hosts(&settings->list, error) : 0;
}

void l3fwd_settings_free(void *settings)
{
	route_list_free(&((struct l3fwd_settings *)settings)->list);
}

static json_t *prefixes_of(const struct route_list *list)
{
	json_t *prefixes = json_array();

	for (size_t i = 0; list->routes && i < list->count; i++) {
		char text[ROUTE_TEXT_MAX];

		if (list->routes[i].drop)
			continue;
		route_text(&list->routes[i], text);
		json_array_append_new(prefixes, json_string(text));
	}
	return prefixes;
}

json_t *l3fwd_facts(const json_t *object, char *error)
{
	struct config_task config = {.name = "l3fwd", .port_count = L3FWD_PORTS_MAX};
	struct l3fwd_settings settings = l3fwd_defaults;
	json_t *facts = NULL;

	for (unsigned i = 0; i < L3FWD_PORTS_MAX; i++)
		snprintf(config.ports[i], sizeof(config.ports[i]), "%u", i);
	if (schema_decode(object, l3fwd_fields, &settings, "settings", error) == 0 &&
	    l3fwd_settings_check(&config, object, &settings, "settings", error) == 0)
		facts = json_pack("{so}", "prefixes", prefixes_of(&settings.list));
	l3fwd_settings_free(&settings);
	return facts;
}

// --- Report and methods ----------------------------------------------------------------------------------

enum { TOP_MAX = 32, LIMIT_DEFAULT = 4096, LIMIT_MAX = 65536 };

const struct counter l3fwd_counters[] = {
        COUNTER("icmp.time_exceeded", struct l3fwd, icmp[L3FWD_TIME_EXCEEDED]),
        COUNTER("icmp.net_unreachable", struct l3fwd, icmp[L3FWD_NET_UNREACHABLE]),
        COUNTER("icmp.fragmentation_needed", struct l3fwd, icmp[L3FWD_FRAGMENTATION_NEEDED]),
        COUNTER("icmp.packet_too_big", struct l3fwd, icmp[L3FWD_PACKET_TOO_BIG]),
        COUNTER("icmp.parameter_problem", struct l3fwd, icmp[L3FWD_PARAMETER_PROBLEM]),
        COUNTER("icmp.beyond_scope", struct l3fwd, icmp[L3FWD_BEYOND_SCOPE]),
        COUNTER("icmp.suppressed", struct l3fwd, icmp[L3FWD_SUPPRESSED]),
        {0},
};

// An entry: its next hop and count, and which route it is if prefix is not NULL. An entry of host routes has
// a number. Without "port" it is the other one, without "mac" that of the port's peer.
static json_t *entry_object(const struct route_table *table, size_t i, const struct route *prefix)
{
	const struct route_entry *entry = &table->entries[i];
	json_t *object = json_object();
	char text[ROUTE_TEXT_MAX];

	if (prefix) {
		route_text(prefix, text);
		json_object_set_new(object, "prefix", json_string(text));
	}
	if (i > table->prefix_count)
		json_object_set_new(object, "next_hop", json_integer((json_int_t)(i - table->prefix_count)));
	if (i <= table->prefix_count || !prefix)
		json_object_set_new(object, "packets", json_integer((json_int_t)entry->packets));
	if (entry->out == ROUTE_OUT_DROP)
		json_object_set_new(object, "drop", json_true());
	else if (entry->out != ROUTE_OUT_OTHER)
		json_object_set_new(object, "port", json_integer(entry->out));
	if (entry->has_mac)
		json_object_set_new(object, "mac", schema_mac_json(entry->mac));
	return object;
}

// Put the entries with the most packets, at most TOP_MAX, into best; equal ones keep their order. Returns
// how many.
static size_t top(const struct route_table *table, size_t from, size_t to, size_t best[static TOP_MAX])
{
	size_t count = 0;

	for (size_t i = from; i < to; i++) {
		size_t at = count;

		while (at > 0 && table->entries[i].packets > table->entries[best[at - 1]].packets)
			at--;
		if (at == TOP_MAX)
			continue;
		count += count < TOP_MAX;
		memmove(best + at + 1, best + at, (count - at - 1) * sizeof(best[0]));
		best[at] = i;
	}
	return count;
}

static json_t *top_prefixes(const struct route_table *table)
{
	size_t best[TOP_MAX], count = top(table, 1, table->prefix_count + 1, best);
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++) {
		const struct route *prefix = &table->list.routes[table->prefixes[best[i] - 1]];

		json_array_append_new(array, entry_object(table, best[i], prefix));
	}
	return array;
}

static void report_hosts(const struct route_table *table, json_t *object)
{
	size_t best[TOP_MAX];
	size_t count = top(table, table->prefix_count + 1, route_table_entries(table), best);
	json_t *hops = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(hops, entry_object(table, best[i], NULL));
	json_object_set_new(object, "host_routes", json_integer((json_int_t)table->hosts.count4));
	json_object_set_new(object, "host_routes_ipv6", json_integer((json_int_t)table->hosts.count6));
	json_object_set_new(object, "next_hops", json_integer(table->hosts.hops));
	json_object_set_new(object, "top_next_hops", hops);
}

void l3fwd_report(const struct task *task, json_t *object, uint64_t now_tsc)
{
	const struct route_table *table = &((const struct l3fwd *)task)->table;
	size_t count4 = table->prefixes4 + table->hosts.count4;

	json_object_set_new(object, "routes", json_integer((json_int_t)count4));
	json_object_set_new(object, "routes_ipv6", json_integer((json_int_t)(table->list.count - count4)));
	json_object_set_new(object, "top", top_prefixes(table));
	if (table->hosts_apart)
		report_hosts(table, object);
}

static const struct task_page page_defaults = {.limit = LIMIT_DEFAULT};
static const struct field page_fields[] = {TASK_PAGE_FIELDS(1, LIMIT_MAX), {0}};

static json_t *call_routes(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	const struct route_table *table = &((struct l3fwd *)task)->table;
	const struct task_page *page = params;
	json_t *routes = json_array();
	size_t i;

	for (i = page->from; i < table->list.count && i - page->from < page->limit; i++) {
		const struct route route = route_list_at(&table->list, i);

		json_array_append_new(routes, entry_object(table, route_table_entry(table, i), &route));
	}
	return task_page("routes", routes, i < table->list.count, i);
}

static int decode_address(const json_t *value, void *out, const char *where, char *error)
{
	struct route *route = out;
	const char *text = json_string_value(value);

	route->version = text && strchr(text, ':') ? 6 : 4;
	if (text && inet_pton(route->version == 4 ? AF_INET : AF_INET6, text, route->address) == 1)
		return 0;
	snprintf(error, CONFIG_ERROR_MAX,
	         "%s: expected an IPv4 or IPv6 address like 192.0.2.1 or 2001:db8::1", where);
	return -EINVAL;
}

static const struct field lookup_fields[] = {
        {.key = "address", .type = FIELD_CUSTOM, .required = true, .decode = decode_address},
        {0},
};

static json_t *call_lookup(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	const struct route_table *table = &((struct l3fwd *)task)->table;
	struct route to = *(const struct route *)params;
	uint64_t entry = route_table_lookup(table, &to);

	return json_pack("{s:o}", "route", entry ? entry_object(table, entry, &to) : json_null());
}

const struct task_method l3fwd_methods[] = {
        {.name = "routes", .call = call_routes, .fields = page_fields, TASK_DEFAULTS(page_defaults)},
        {.name = "lookup", .call = call_lookup, .fields = lookup_fields},
        {0},
};
