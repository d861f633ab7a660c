// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/route_file.h"
#include "lib/schema.h"
#include "tasks/l3fwd/l3fwd.h"

// --- Settings --------------------------------------------------------------------------------------------

enum { PATH_BYTES = 1024, MTU_MIN = 68, MTU_MAX = 65535, WHERE_MAX = 48 };

// Ten of IPv4, as in the paper (can17), and one for the tester's IPv6. Its frames go to 198.19.STREAM.1 or
// into 2001:2::/48 (tasks/generator/generator.c); the networks are those of RFC 2544 appendix C, RFC 1918 and RFC 5180
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

enum { FIB_LPM, FIB_CUCKOO };
static const char *const fibs[] = {[FIB_LPM] = "lpm", [FIB_CUCKOO] = "cuckoo", NULL};

struct document {
	int fib;
	const json_t *routes;
	char routes_file[PATH_BYTES];
	uint32_t synthetic;
	const json_t *next_hops;
	bool own_mac_only;
	uint32_t mtu;
};

static int keep(const json_t *value, void *out, const char *where, char *error)
{
	*(const json_t **)out = value;
	return 0;
}

static const struct field settings_fields[] = {
        {.key = "fib", FIELD(FIELD_CHOICE, struct document, fib), .choices = fibs},
        {.key = "routes", FIELD(FIELD_CUSTOM, struct document, routes), .decode = keep},
        {.key = "routes_file", FIELD(FIELD_STRING, struct document, routes_file)},
        {.key = "synthetic",
         FIELD(FIELD_UINT, struct document, synthetic),
         .min = 1,
         .max = ROUTE_SYNTHETIC_MAX},
        {.key = "next_hops", FIELD(FIELD_CUSTOM, struct document, next_hops), .decode = keep},
        {.key = "own_mac_only", FIELD(FIELD_BOOL, struct document, own_mac_only)},
        {.key = "mtu", FIELD(FIELD_UINT, struct document, mtu), .min = MTU_MIN, .max = MTU_MAX},
        {0},
};

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

static int read_routes(const struct document *document, struct route_list *list, const char *where,
                       char *error)
{
	if (document->routes && document->routes_file[0])
		return config_error(error,
		                    "%s: there are \"routes\" and a \"routes_file\"; leave one of them out",
		                    where);
	if (document->routes_file[0])
		return route_list_file(list, document->routes_file, error);
	if (document->routes) {
		snprintf(list->source, sizeof(list->source), "%s.routes", where);
		return route_list_json(list, document->routes, error);
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

static int check_synthetic(const struct document *document, const char *where, char *error)
{
	if (document->synthetic && (document->routes || document->routes_file[0]))
		return config_error(
		        error, "%s: there are routes and \"synthetic\" ones; leave one of them out", where);
	if (document->synthetic && document->fib != FIB_CUCKOO)
		return config_error(
		        error, "%s: \"synthetic\" makes host routes; it needs \"fib\": \"cuckoo\"", where);
	return 0;
}

static int read_sorted(const struct document *document, struct route_list *list, const char *where,
                       char *error)
{
	if (document->synthetic) {
		snprintf(list->source, sizeof(list->source), "%s.synthetic", where);
		route_list_synthetic(list, document->synthetic);
		return 0;
	}
	if (read_routes(document, list, where, error))
		return -EINVAL;
	if (list->count == 0)
		return config_error(error, "%s: no route; a router without routes forwards nothing",
		                    list->source);
	resolve(list);
	return route_list_sort(list, error);
}

static int read_list(const struct document *document, struct route_list *list, const char *where, char *error)
{
	if (check_synthetic(document, where, error) || decode_hops(document->next_hops, list, where, error) ||
	    read_sorted(document, list, where, error))
		return -EINVAL;
	return document->fib == FIB_CUCKOO ? check_hosts(list, error) : 0;
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

int l3fwd_settings_parse(const struct config_task *config, const json_t *object, void *settings, char *error)
{
	struct l3fwd_settings *out = settings;
	struct document document = {0};
	char where[WHERE_MAX];

	snprintf(where, sizeof(where), "task %s: settings", config->name);
	*out = (struct l3fwd_settings){.list = {.port_count = config->port_count}};
	if (check_ports(config, error) ||
	    (object && schema_decode(object, settings_fields, &document, where, error)))
		return -EINVAL;
	out->hosts_apart = document.fib == FIB_CUCKOO;
	out->own_mac_only = document.own_mac_only;
	out->mtu = document.mtu ? document.mtu : UINT32_MAX;
	return read_list(&document, &out->list, where, error);
}

void l3fwd_settings_free(void *settings)
{
	route_list_free(&((struct l3fwd_settings *)settings)->list);
}

// --- Report and methods ----------------------------------------------------------------------------------

enum { TOP_MAX = 32, LIMIT_DEFAULT = 4096, LIMIT_MAX = 65536 };

static const char *const icmp_names[L3FWD_ICMP] = {
        [L3FWD_TIME_EXCEEDED] = "time_exceeded",
        [L3FWD_NET_UNREACHABLE] = "net_unreachable",
        [L3FWD_FRAGMENTATION_NEEDED] = "fragmentation_needed",
        [L3FWD_PACKET_TOO_BIG] = "packet_too_big",
        [L3FWD_PARAMETER_PROBLEM] = "parameter_problem",
        [L3FWD_BEYOND_SCOPE] = "beyond_scope",
        [L3FWD_SUPPRESSED] = "suppressed",
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

// Of some entries those with the most packets, at most TOP_MAX, in best; of as many, in their order. Returns
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

void l3fwd_report(const struct vnf *vnf, json_t *object)
{
	const struct l3fwd *l = (const struct l3fwd *)vnf;
	const struct route_table *table = &l->table;
	size_t count4 = table->prefixes4 + table->hosts.count4;
	json_t *icmp = json_object();

	for (unsigned i = 0; i < L3FWD_ICMP; i++)
		json_object_set_new(icmp, icmp_names[i], json_integer((json_int_t)l->icmp[i]));
	json_object_set_new(object, "routes", json_integer((json_int_t)count4));
	json_object_set_new(object, "routes_ipv6", json_integer((json_int_t)(table->list.count - count4)));
	json_object_set_new(object, "icmp", icmp);
	json_object_set_new(object, "top", top_prefixes(table));
	if (table->hosts_apart)
		report_hosts(table, object);
}

static json_t *call_routes(struct task *task, const json_t *params, uint64_t now_tsc, char *error)
{
	struct page {
		uint64_t from;
		uint32_t limit;
	} page = {.limit = LIMIT_DEFAULT};
	static const struct field fields[] = {
	        {.key = "task", .type = FIELD_ANY},
	        {.key = "from", FIELD(FIELD_UINT, struct page, from), .max = UINT32_MAX},
	        {.key = "limit", FIELD(FIELD_UINT, struct page, limit), .min = 1, .max = LIMIT_MAX},
	        {0},
	};
	const struct route_table *table = &((struct l3fwd *)task)->table;
	json_t *routes;
	size_t i;

	if (schema_decode(params, fields, &page, "params", error))
		return NULL;
	routes = json_array();
	for (i = page.from; i < table->list.count && i - page.from < page.limit; i++) {
		const struct route route = route_list_at(&table->list, i);

		json_array_append_new(routes, entry_object(table, route_table_entry(table, i), &route));
	}
	return json_pack("{s:o, s:o}", "routes", routes, "next",
	                 i < table->list.count ? json_integer((json_int_t)i) : json_null());
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
	return -1;
}

static json_t *call_lookup(struct task *task, const json_t *params, uint64_t now_tsc, char *error)
{
	static const struct field fields[] = {
	        {.key = "task", .type = FIELD_ANY},
	        {.key = "address", .type = FIELD_CUSTOM, .required = true, .decode = decode_address},
	        {0},
	};
	const struct route_table *table = &((struct l3fwd *)task)->table;
	struct route to = {0};
	uint64_t entry;

	if (schema_decode(params, fields, &to, "params", error))
		return NULL;
	entry = route_table_lookup(table, &to);
	return json_pack("{s:o}", "route", entry ? entry_object(table, entry, &to) : json_null());
}

const struct task_method l3fwd_methods[] = {{"routes", call_routes}, {"lookup", call_lookup}, {0}};
