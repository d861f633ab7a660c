// SPDX-License-Identifier: BSD-3-Clause
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/l3fwd/l3fwd.h"
#include "lib/route_parse.h"
#include "lib/schema.h"

enum { PATH_BYTES = 1024, MTU_MIN = 68, MTU_MAX = 65535, WHERE_MAX = 48 };

#define REFUSE(...) (snprintf(error, CONFIG_ERROR_MAX, __VA_ARGS__), -EINVAL)

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

static const struct field fields[] = {
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
		return REFUSE("%s.next_hops: expected an array of objects {\"port\", \"mac\"}, not empty",
		              where);
	list->hops = calloc(list->via_count + 1, sizeof(*list->hops));
	if (!list->hops)
		return REFUSE("%s.next_hops: no memory for so many", where);
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
		return REFUSE("%s: there are \"routes\" and a \"routes_file\"; leave one of them out", where);
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
		return REFUSE("%s: host routes to more than %d next hops, which \"fib\": \"cuckoo\" cannot "
		              "tell apart; use \"lpm\"",
		              list->source, ROUTE_HOPS_MAX);
	return status ? REFUSE("%s: no memory for its next hops", list->source) : 0;
}

static int check_synthetic(const struct document *document, const char *where, char *error)
{
	if (document->synthetic && (document->routes || document->routes_file[0]))
		return REFUSE("%s: there are routes and \"synthetic\" ones; leave one of them out", where);
	if (document->synthetic && document->fib != FIB_CUCKOO)
		return REFUSE("%s: \"synthetic\" makes host routes; it needs \"fib\": \"cuckoo\"", where);
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
		return REFUSE("%s: no route; a router without routes forwards nothing", list->source);
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
				return REFUSE("task %s: port %s is named twice; a router has it once",
				              config->name, config->ports[i]);
	return 0;
}

int l3fwd_settings_read(const struct config_task *config, struct l3fwd_settings *out, char *error)
{
	struct document document = {0};
	char where[WHERE_MAX];

	snprintf(where, sizeof(where), "task %s: settings", config->name);
	*out = (struct l3fwd_settings){.list = {.port_count = config->port_count}};
	if (check_ports(config, error) ||
	    (config->settings && schema_decode(config->settings, fields, &document, where, error)))
		return -EINVAL;
	out->hosts_apart = document.fib == FIB_CUCKOO;
	out->own_mac_only = document.own_mac_only;
	out->mtu = document.mtu ? document.mtu : UINT32_MAX;
	return read_list(&document, &out->list, where, error);
}
