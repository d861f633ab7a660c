// SPDX-License-Identifier: BSD-3-Clause
// The methods of fib_offload that are about one route or one next hop, and pages of routes. Control thread,
// while workers run: with the FIB's lock, which they do without for a moment (a VNF is told to send again).
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "tasks/fib_offload/fib_offload_methods.h"
#include "lib/route_parse.h"

enum {
	LIMIT_DEFAULT = 1024,
	LIMIT_MAX = 4096,
	PAGE_BUCKETS = 1 << 16, // looked at for one page: 4 MiB
	SWEEP_BUCKETS = 1 << 16,
	SWEEPS_MAX = 1 << 16, // of 2^32 buckets: more than there are
	MAC_TEXT = 18,
};

#define REFUSE(...) (snprintf(error, CONFIG_ERROR_MAX, __VA_ARGS__), NULL)

static const char *const kinds[] = {[FIB_HOP_NONE] = "none",
                                    [FIB_HOP_FORWARD] = "forward",
                                    [FIB_HOP_LOCAL] = "local",
                                    [FIB_HOP_BLACKHOLE] = "blackhole",
                                    NULL};

// --- For all methods -------------------------------------------------------------------------------------

struct offload_vnf *offload_params_read(struct offload *o, const json_t *given, const struct field *fields,
                                        struct offload_params *params, char *error)
{
	if (schema_decode(given, fields, params, "params", error))
		return NULL;
	for (unsigned i = 0; i < o->vnf_count; i++)
		if (o->vnfs[i].number == params->vnf && o->vnfs[i].offload)
			return &o->vnfs[i];
	return REFUSE("params.vnf: there is no VNF %u that is offloaded in this task", params->vnf);
}

json_t *offload_refusal(int status, char *error)
{
	switch (status) {
	case -ENOENT:
		return REFUSE("there is no such route, or the operator has no such next hop; see "
		              "fib_offload.routes, fib_offload.next_hop_set");
	case -EDQUOT:
		return REFUSE("the VNF's quota is used up; raise \"quota_routes\" or \"quota_next_hops\"");
	case -ENOSPC:
		return REFUSE("the FIB has no room; raise \"routes4\" or \"routes6\"");
	case -EBUSY:
		return REFUSE("routes lead to this next hop; delete them first");
	case -EAGAIN:
		return REFUSE("flushed routes are still in the table; ask again in a second");
	default:
		return REFUSE("the FIB refuses it: %s", strerror(-status));
	}
}

void offload_sweep_all(struct fib *fib)
{
	for (unsigned i = 0; i < SWEEPS_MAX && fib_is_dirty(fib); i++) {
		offload_fib_lock(fib);
		fib_sweep(fib, SWEEP_BUCKETS);
		fib_unlock(fib);
	}
}

static json_t *mac_json(const uint8_t *mac)
{
	return json_sprintf("%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

static void add_hop(const struct offload *o, const struct fib_hop *hop, json_t *object)
{
	json_object_set_new(object, "kind", json_string(kinds[hop->kind % RTE_DIM(kinds)]));
	if (hop->kind != FIB_HOP_FORWARD)
		return;
	if (hop->port < o->settings.fib.wire_count)
		json_object_set_new(object, "wire", json_string(o->settings.fib.wires[hop->port]));
	json_object_set_new(object, "mac", mac_json(hop->macs));
	json_object_set_new(object, "source", mac_json(hop->macs + RTE_ETHER_ADDR_LEN));
}

// --- What a method is given ------------------------------------------------------------------------------

static int decode_prefix(const json_t *value, void *out, const char *where, char *error)
{
	struct fib_prefix *prefix = out;
	char reason[ROUTE_REASON_MAX] = "expected a prefix like 192.0.2.0/24 or 2001:db8::/32, or an address";
	const char *text = json_string_value(value);
	struct route route = {0};

	if (!text || route_parse_prefix(&route, text, reason) != 0) {
		snprintf(error, CONFIG_ERROR_MAX, "%s: %s", where, reason);
		return -EINVAL;
	}
	prefix->family = route.version;
	prefix->length = route.length;
	memcpy(prefix->address, route.address, sizeof(prefix->address));
	return 0;
}

#define HOP_FIELD                                                                                            \
	{                                                                                                    \
		.key = "hop", FIELD(FIELD_UINT, struct offload_params, number), .required = true,            \
		.max = FIB_VNF_HOPS_MAX - 1                                                                  \
	}
#define PREFIX_FIELD                                                                                         \
	{                                                                                                    \
		.key = "prefix", FIELD(FIELD_CUSTOM, struct offload_params, prefix), .required = true,       \
		.decode = decode_prefix                                                                      \
	}

// --- lookup ----------------------------------------------------------------------------------------------

static const struct fib_hop *find(const struct fib *fib, uint16_t vnf, const struct fib_prefix *to)
{
	struct fib_query6 v6 = {.vnf = vnf};
	struct fib_query4 v4 = {.vnf = vnf};
	const struct fib_hop *hop;

	if (to->family == 4) {
		memcpy(&v4.address, to->address, sizeof(v4.address));
		v4.address = rte_be_to_cpu_32(v4.address);
		fib_find4(fib, &v4, 1, &hop);
	} else {
		memcpy(v6.address, to->address, sizeof(v6.address));
		fib_find6(fib, &v6, 1, &hop);
	}
	return hop;
}

static int decode_address(const json_t *value, void *out, const char *where, char *error)
{
	struct fib_prefix *to = out;
	const char *text = json_string_value(value);

	to->family = text && strchr(text, ':') ? 6 : 4;
	if (text && inet_pton(to->family == 4 ? AF_INET : AF_INET6, text, to->address) == 1)
		return 0;
	snprintf(error, SCHEMA_ERROR_MAX,
	         "%s: expected an IPv4 or IPv6 address like 192.0.2.1 or 2001:db8::1", where);
	return -EINVAL;
}

static json_t *call_lookup(struct vnf *vnf, const json_t *given, uint64_t now_tsc, char *error)
{
	static const struct field fields[] = {
	        OFFLOAD_TASK_FIELD,
	        OFFLOAD_VNF_FIELD,
	        {.key = "address",
	         FIELD(FIELD_CUSTOM, struct offload_params, prefix),
	         .required = true,
	         .decode = decode_address},
	        {0},
	};
	struct offload *o = (struct offload *)vnf;
	struct offload_params params = {0};
	const struct fib_hop *hop;
	json_t *object;

	if (!offload_params_read(o, given, fields, &params, error))
		return NULL;
	offload_fib_lock(o->fib->fib);
	hop = find(o->fib->fib, (uint16_t)params.vnf, &params.prefix);
	object = json_object();
	add_hop(o, hop, object);
	fib_unlock(o->fib->fib);
	return json_pack("{s:o}", "hop", object);
}

// --- routes ----------------------------------------------------------------------------------------------

static json_t *route_json(const struct offload *o, const struct fib_route *route)
{
	char address[INET6_ADDRSTRLEN];
	json_t *object;

	inet_ntop(route->prefix.family == 4 ? AF_INET : AF_INET6, route->prefix.address, address,
	          sizeof(address));
	object = json_pack("{s:o, s:i, s:I, s:b}", "prefix",
	                   json_sprintf("%s/%u", address, route->prefix.length), "hop", route->number,
	                   "session", (json_int_t)route->session, "stale", route->stale);
	add_hop(o, &route->hop, object);
	return object;
}

static json_t *call_routes(struct vnf *vnf, const json_t *given, uint64_t now_tsc, char *error)
{
	static const struct field fields[] = {
	        OFFLOAD_TASK_FIELD,
	        OFFLOAD_VNF_FIELD,
	        {.key = "from", FIELD(FIELD_UINT, struct offload_params, from), .max = 9e15},
	        {.key = "limit",
	         FIELD(FIELD_UINT, struct offload_params, limit),
	         .min = CUCKOO_WAYS,
	         .max = LIMIT_MAX},
	        {0},
	};
	static struct fib_route page[LIMIT_MAX];
	struct offload *o = (struct offload *)vnf;
	struct offload_params params = {.limit = LIMIT_DEFAULT};
	unsigned n;
	json_t *routes;

	if (!offload_params_read(o, given, fields, &params, error))
		return NULL;
	offload_fib_lock(o->fib->fib);
	n = fib_list(o->fib->fib, (uint16_t)params.vnf, &params.from, PAGE_BUCKETS, page, params.limit);
	fib_unlock(o->fib->fib);
	routes = json_array();
	for (unsigned i = 0; i < n; i++)
		json_array_append_new(routes, route_json(o, &page[i]));
	return json_pack("{s:o, s:o}", "routes", routes, "next",
	                 params.from ? json_integer((json_int_t)params.from) : json_null());
}

// --- One route, one next hop -----------------------------------------------------------------------------

static json_t *call_route_set(struct vnf *vnf, const json_t *given, uint64_t now_tsc, char *error)
{
	static const struct field fields[] = {
	        OFFLOAD_TASK_FIELD, OFFLOAD_VNF_FIELD, PREFIX_FIELD, HOP_FIELD, {0}};
	struct offload *o = (struct offload *)vnf;
	struct offload_params params = {0};
	int status;

	if (!offload_params_read(o, given, fields, &params, error))
		return NULL;
	offload_fib_lock(o->fib->fib);
	status = fib_route_set(o->fib->fib, (uint16_t)params.vnf, FIB_OPERATOR, FIB_REPLACE, &params.prefix,
	                       (uint16_t)params.number);
	fib_unlock(o->fib->fib);
	return status ? offload_refusal(status, error) : json_object();
}

static json_t *call_route_delete(struct vnf *vnf, const json_t *given, uint64_t now_tsc, char *error)
{
	static const struct field fields[] = {OFFLOAD_TASK_FIELD, OFFLOAD_VNF_FIELD, PREFIX_FIELD, {0}};
	struct offload *o = (struct offload *)vnf;
	struct offload_params params = {0};
	int status;

	if (!offload_params_read(o, given, fields, &params, error))
		return NULL;
	offload_fib_lock(o->fib->fib);
	status = fib_route_delete(o->fib->fib, (uint16_t)params.vnf, &params.prefix);
	fib_unlock(o->fib->fib);
	return status ? offload_refusal(status, error) : json_object();
}

int offload_hop(const struct offload *o, const struct offload_vnf *vnf, const char *wire, const uint8_t *mac,
                const uint8_t *source, struct fib_hop *hop, char *error)
{
	static const uint8_t none[RTE_ETHER_ADDR_LEN];

	*hop = (struct fib_hop){.kind = FIB_HOP_FORWARD};
	while (hop->port < o->settings.fib.wire_count && strcmp(o->settings.fib.wires[hop->port], wire) != 0)
		hop->port++;
	if (hop->port >= o->settings.fib.wire_count || !(vnf->wires >> hop->port & 1)) {
		snprintf(error, CONFIG_ERROR_MAX, "params.wire: \"%s\" is not one of the VNF's wires", wire);
		return -EINVAL;
	}
	if (memcmp(mac, none, sizeof(none)) == 0) {
		snprintf(error, CONFIG_ERROR_MAX, "params.mac: a next hop that forwards needs an address");
		return -EINVAL;
	}
	memcpy(hop->macs, mac, RTE_ETHER_ADDR_LEN);
	memcpy(hop->macs + RTE_ETHER_ADDR_LEN, memcmp(source, none, sizeof(none)) ? source : vnf->mac,
	       RTE_ETHER_ADDR_LEN);
	return 0;
}

static json_t *call_next_hop_set(struct vnf *vnf, const json_t *given, uint64_t now_tsc, char *error)
{
	static const struct field fields[] = {
	        OFFLOAD_TASK_FIELD,
	        OFFLOAD_VNF_FIELD,
	        HOP_FIELD,
	        {.key = "kind", FIELD(FIELD_CHOICE, struct offload_params, kind), .choices = kinds},
	        {.key = "wire", FIELD(FIELD_NAME, struct offload_params, wire)},
	        {.key = "mac", FIELD(FIELD_MAC, struct offload_params, mac)},
	        {.key = "source", FIELD(FIELD_MAC, struct offload_params, source)},
	        {0},
	};
	struct offload *o = (struct offload *)vnf;
	struct offload_params params = {.kind = FIB_HOP_FORWARD};
	struct offload_vnf *v;
	struct fib_hop hop;
	int status;

	v = offload_params_read(o, given, fields, &params, error);
	if (!v)
		return NULL;
	hop = (struct fib_hop){.kind = (uint8_t)params.kind};
	if (params.kind == FIB_HOP_FORWARD &&
	    offload_hop(o, v, params.wire, params.mac, params.source, &hop, error))
		return NULL;
	offload_fib_lock(o->fib->fib);
	status = params.kind == FIB_HOP_NONE
	                 ? fib_hop_delete(o->fib->fib, v->number, FIB_OPERATOR, (uint16_t)params.number)
	                 : fib_hop_set(o->fib->fib, v->number, FIB_OPERATOR, (uint16_t)params.number, &hop);
	fib_unlock(o->fib->fib);
	return status ? offload_refusal(status, error) : json_object();
}

const struct vnf_method offload_methods[] = {
        {"lookup", call_lookup},
        {"routes", call_routes},
        {"route_set", call_route_set},
        {"route_delete", call_route_delete},
        {"next_hop_set", call_next_hop_set},
        {"load_synthetic", offload_load_synthetic},
        {"flush", offload_flush},
        {"save", offload_save},
        {"load", offload_load},
        {0},
};
