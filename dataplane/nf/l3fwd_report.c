// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "l3fwd.h"
#include "schema.h"

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

// A route with its count. Without "port" it is the other one, without "mac" that of the port's peer.
static json_t *route_object(const struct route_table *table, size_t i)
{
	const struct route *route = &table->list.routes[i];
	char text[ROUTE_TEXT_MAX];
	json_t *object;

	route_text(route, text);
	object =
	        json_pack("{s:s, s:I}", "prefix", text, "packets", (json_int_t)table->entries[i + 1].packets);
	if (route->drop)
		json_object_set_new(object, "drop", json_true());
	if (route->port != ROUTE_UNSET)
		json_object_set_new(object, "port", json_integer(route->port));
	if (route->has_mac) {
		snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", route->mac[0], route->mac[1],
		         route->mac[2], route->mac[3], route->mac[4], route->mac[5]);
		json_object_set_new(object, "mac", json_string(text));
	}
	return object;
}

// The routes with the most packets, at most TOP_MAX; of as many, in the order of the table.
static json_t *top(const struct route_table *table)
{
	size_t best[TOP_MAX], count = 0;
	json_t *array = json_array();

	for (size_t i = 0; i < table->list.count; i++) {
		size_t at = count;

		while (at > 0 && table->entries[i + 1].packets > table->entries[best[at - 1] + 1].packets)
			at--;
		if (at == TOP_MAX)
			continue;
		count += count < TOP_MAX;
		memmove(best + at + 1, best + at, (count - at - 1) * sizeof(best[0]));
		best[at] = i;
	}
	for (size_t i = 0; i < count; i++)
		json_array_append_new(array, route_object(table, best[i]));
	return array;
}

void l3fwd_report(const struct vnf *vnf, json_t *object)
{
	const struct l3fwd *l = (const struct l3fwd *)vnf;
	const struct route_table *table = &l->table;
	json_t *icmp = json_object();

	for (unsigned i = 0; i < L3FWD_ICMP; i++)
		json_object_set_new(icmp, icmp_names[i], json_integer((json_int_t)l->icmp[i]));
	json_object_set_new(object, "routes", json_integer((json_int_t)table->count4));
	json_object_set_new(object, "routes_ipv6",
	                    json_integer((json_int_t)(table->list.count - table->count4)));
	json_object_set_new(object, "icmp", icmp);
	json_object_set_new(object, "top", top(table));
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
	for (i = page.from; i < table->list.count && i - page.from < page.limit; i++)
		json_array_append_new(routes, route_object(table, i));
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
	uint32_t host;

	if (schema_decode(params, fields, &to, "params", error))
		return NULL;
	memcpy(&host, to.address, sizeof(host));
	host = rte_be_to_cpu_32(host);
	if (to.version == 4)
		route_table_find4(table, &host, &entry, 1);
	else
		route_table_find6(table, &to.address, &entry, 1);
	return json_pack("{s:o}", "route", entry ? route_object(table, entry - 1) : json_null());
}

const struct vnf_method l3fwd_methods[] = {{"routes", call_routes}, {"lookup", call_lookup}, {0}};
