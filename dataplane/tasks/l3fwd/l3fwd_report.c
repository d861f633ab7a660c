// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "tasks/l3fwd/l3fwd.h"
#include "lib/schema.h"

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
	if (entry->has_mac) {
		snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", entry->mac[0], entry->mac[1],
		         entry->mac[2], entry->mac[3], entry->mac[4], entry->mac[5]);
		json_object_set_new(object, "mac", json_string(text));
	}
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

static json_t *call_routes(struct vnf *vnf, const json_t *params, uint64_t now_tsc, char *error)
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
	const struct route_table *table = &((struct l3fwd *)vnf)->table;
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
	snprintf(error, SCHEMA_ERROR_MAX,
	         "%s: expected an IPv4 or IPv6 address like 192.0.2.1 or 2001:db8::1", where);
	return -1;
}

static json_t *call_lookup(struct vnf *vnf, const json_t *params, uint64_t now_tsc, char *error)
{
	static const struct field fields[] = {
	        {.key = "task", .type = FIELD_ANY},
	        {.key = "address", .type = FIELD_CUSTOM, .required = true, .decode = decode_address},
	        {0},
	};
	const struct route_table *table = &((struct l3fwd *)vnf)->table;
	struct route to = {0};
	uint64_t entry;

	if (schema_decode(params, fields, &to, "params", error))
		return NULL;
	entry = route_table_lookup(table, &to);
	return json_pack("{s:o}", "route", entry ? entry_object(table, entry, &to) : json_null());
}

const struct vnf_method l3fwd_methods[] = {{"routes", call_routes}, {"lookup", call_lookup}, {0}};
