// SPDX-License-Identifier: BSD-3-Clause
// The methods of fib_offload and its report. Control thread, while workers run: with the FIB's lock, which they do
// without for a moment (a VNF is told to send again).
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "table/route_file.h"
#include "base/clock.h"
#include "base/schema.h"
#include "fib/fib_offload.h"

// What a method is given: each has some of it.
struct offload_params {
	uint32_t vnf, number, routes, hops, limit, vlan;
	uint64_t from;
	int kind;
	char wire[CONFIG_NAME_MAX], path[OFFLOAD_PATH_BYTES];
	uint8_t mac[RTE_ETHER_ADDR_LEN], source[RTE_ETHER_ADDR_LEN];
	struct fib_prefix prefix;
	unsigned member_count;
	struct fib_member members[FIB_MEMBERS_MAX];
};

#define VNF_FIELD                                                                                            \
	{                                                                                                    \
		UINT_FIELD("vnf", struct offload_params, vnf, 1, FIB_VNFS_MAX - 1), .required = true         \
	}

enum {
	LIMIT_DEFAULT = 1024,
	LIMIT_MAX = 4096,
	PAGE_BUCKETS = 1 << 16, // looked at for one page: 4 MiB
	SWEEP_BUCKETS = 1 << 16,
	SWEEPS_MAX = 1 << 16, // of 2^32 buckets: more than there are
};

static const char *const kinds[] = {
        [FIB_HOP_NONE] = "none",           [FIB_HOP_FORWARD] = "forward", [FIB_HOP_LOCAL] = "local",
        [FIB_HOP_BLACKHOLE] = "blackhole", [FIB_HOP_GROUP] = "group",     NULL};

// --- For all methods -------------------------------------------------------------------------------------

// The VNF that a method is about, which is offloaded; or NULL and a sentence in error.
static struct offload_vnf *find_vnf(struct offload *o, const struct offload_params *params, char *error)
{
	for (unsigned i = 0; i < o->vnf_count; i++)
		if (o->vnfs[i].number == params->vnf && o->vnfs[i].offload)
			return &o->vnfs[i];
	return config_error_null(error, "params.vnf: there is no VNF %u that is offloaded in this task",
	                         params->vnf);
}

// NULL, and what a status of the FIB means as a sentence in error.
static json_t *refusal(int status, char *error)
{
	switch (status) {
	case -ENOENT:
		return config_error_null(error,
		                         "there is no such route, or the operator has no such next hop; see "
		                         "fib_offload.routes, fib_offload.next_hop_set");
	case -EDQUOT:
		return config_error_null(
		        error, "the VNF's quota is used up; raise \"quota_routes\" or \"quota_next_hops\"");
	case -ENOSPC:
		return config_error_null(error, "the FIB has no room; raise \"routes4\" or \"routes6\"");
	case -EBUSY:
		return config_error_null(error, "routes or groups lead to this next hop; delete them first");
	case -EAGAIN:
		return config_error_null(error,
		                         "flushed routes are still in the table; ask again in a second");
	default:
		return config_error_null(error, "the FIB refuses it: %s", strerror(-status));
	}
}

// Until nothing that was flushed takes room any more; lets go of the lock again and again.
static void sweep_all(struct fib *fib)
{
	for (unsigned i = 0; i < SWEEPS_MAX && fib_is_dirty(fib); i++) {
		offload_fib_lock(fib);
		fib_sweep(fib, SWEEP_BUCKETS);
		fib_unlock(fib);
	}
}

static void add_hop(const struct offload *o, const struct fib_hop *hop, json_t *object)
{
	json_object_set_new(object, "kind", json_string(kinds[hop->kind % RTE_DIM(kinds)]));
	if (hop->kind != FIB_HOP_FORWARD)
		return;
	if (hop->port < o->settings.fib.wire_count)
		json_object_set_new(object, "wire", json_string(o->settings.fib.wires[hop->port]));
	if (hop->vlan)
		json_object_set_new(object, "vlan", json_integer(hop->vlan));
	json_object_set_new(object, "mac", schema_mac_json(hop->macs));
	json_object_set_new(object, "source", schema_mac_json(hop->macs + RTE_ETHER_ADDR_LEN));
}

// With the lock.
static json_t *members_json(const struct offload *o, const struct fib_hop *group)
{
	const struct fib_hop *hops[FIB_MEMBERS_MAX];
	struct fib_member members[FIB_MEMBERS_MAX];
	unsigned count = fib_group_read(o->fib->fib, group, members, hops);
	json_t *array = json_array();

	for (unsigned i = 0; i < count; i++) {
		json_t *object =
		        json_pack("{s:i, s:i}", "hop", members[i].number, "weight", members[i].weight);

		add_hop(o, hops[i], object);
		json_array_append_new(array, object);
	}
	return array;
}

// --- What a method is given ------------------------------------------------------------------------------

static int decode_member(const json_t *value, void *out, const char *where, char *error)
{
	struct member_document {
		uint32_t hop, weight;
	} document = {.weight = 1};
	static const struct field fields[] = {
	        {UINT_FIELD("hop", struct member_document, hop, 0, FIB_VNF_HOPS_MAX - 1), .required = true},
	        {UINT_FIELD("weight", struct member_document, weight, 1, UINT8_MAX)},
	        {0},
	};

	if (schema_decode(value, fields, &document, where, error))
		return -EINVAL;
	*(struct fib_member *)out = (struct fib_member){(uint16_t)document.hop, (uint8_t)document.weight};
	return 0;
}

static int decode_prefix(const json_t *value, void *out, const char *where, char *error)
{
	struct fib_prefix *prefix = out;
	char reason[ROUTE_REASON_MAX] = "expected a prefix like 192.0.2.0/24 or 2001:db8::/32, or an address";
	const char *text = json_string_value(value);
	struct route route = {0};

	if (!text || route_parse_prefix(&route, text, reason) != 0)
		return config_error(error, "%s: %s", where, reason);
	prefix->family = route.version;
	prefix->length = route.length;
	memcpy(prefix->address, route.address, sizeof(prefix->address));
	return 0;
}

#define HOP_FIELD                                                                                            \
	{                                                                                                    \
		UINT_FIELD("hop", struct offload_params, number, 0, FIB_VNF_HOPS_MAX - 1), .required = true  \
	}
#define PREFIX_FIELD                                                                                         \
	{                                                                                                    \
		CUSTOM_FIELD("prefix", struct offload_params, prefix, decode_prefix), .required = true       \
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
	return config_error(error, "%s: expected an IPv4 or IPv6 address like 192.0.2.1 or 2001:db8::1",
	                    where);
}

static const struct field lookup_fields[] = {
        VNF_FIELD,
        {CUSTOM_FIELD("address", struct offload_params, prefix, decode_address), .required = true},
        {0},
};

static json_t *call_lookup(struct task *task, const void *given, uint64_t now_tsc, char *error)
{
	const struct offload_params *params = given;
	struct offload *o = (struct offload *)task;
	const struct offload_vnf *v = find_vnf(o, params, error);
	struct fib_hop hop;
	json_t *object;

	if (!v)
		return NULL;
	offload_fib_lock(o->fib->fib);
	hop = *find(o->fib->fib, v->number, &params->prefix);
	if (hop.kind == FIB_HOP_NONE && v->routes_of) {
		hop = *find(o->fib->fib, v->routes_of, &params->prefix);
		if (hop.kind == FIB_HOP_FORWARD)
			memcpy(hop.macs + RTE_ETHER_ADDR_LEN, v->mac, RTE_ETHER_ADDR_LEN);
	}
	object = json_object();
	add_hop(o, &hop, object);
	if (hop.kind == FIB_HOP_GROUP)
		json_object_set_new(object, "members", members_json(o, &hop));
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

static const struct field routes_fields[] = {
        VNF_FIELD,
        {UINT_FIELD("from", struct offload_params, from, 0, 9e15)},
        {UINT_FIELD("limit", struct offload_params, limit, CUCKOO_WAYS, LIMIT_MAX)},
        {0},
};
static const struct offload_params routes_defaults = {.limit = LIMIT_DEFAULT};

static json_t *call_routes(struct task *task, const void *given, uint64_t now_tsc, char *error)
{
	static struct fib_route page[LIMIT_MAX];
	const struct offload_params *params = given;
	struct offload *o = (struct offload *)task;
	uint64_t from = params->from;
	json_t *routes;
	unsigned n;

	if (!find_vnf(o, params, error))
		return NULL;
	offload_fib_lock(o->fib->fib);
	n = fib_list(o->fib->fib, (uint16_t)params->vnf, &from, PAGE_BUCKETS, page, params->limit);
	fib_unlock(o->fib->fib);
	routes = json_array();
	for (unsigned i = 0; i < n; i++)
		json_array_append_new(routes, route_json(o, &page[i]));
	return task_page("routes", routes, from != 0, from);
}

// --- One route, one next hop -----------------------------------------------------------------------------

static const struct field route_set_fields[] = {VNF_FIELD, PREFIX_FIELD, HOP_FIELD, {0}};

static json_t *call_route_set(struct task *task, const void *given, uint64_t now_tsc, char *error)
{
	const struct offload_params *params = given;
	struct offload *o = (struct offload *)task;
	int status;

	if (!find_vnf(o, params, error))
		return NULL;
	offload_fib_lock(o->fib->fib);
	o->fib->edits++;
	status = fib_route_set(o->fib->fib, (uint16_t)params->vnf, FIB_OPERATOR, FIB_REPLACE, &params->prefix,
	                       (uint16_t)params->number);
	fib_unlock(o->fib->fib);
	return status ? refusal(status, error) : json_object();
}

static const struct field route_delete_fields[] = {VNF_FIELD, PREFIX_FIELD, {0}};

static json_t *call_route_delete(struct task *task, const void *given, uint64_t now_tsc, char *error)
{
	const struct offload_params *params = given;
	struct offload *o = (struct offload *)task;
	int status;

	if (!find_vnf(o, params, error))
		return NULL;
	offload_fib_lock(o->fib->fib);
	o->fib->edits++;
	status = fib_route_delete(o->fib->fib, (uint16_t)params->vnf, &params->prefix);
	fib_unlock(o->fib->fib);
	return status ? refusal(status, error) : json_object();
}

// A next hop that forwards. Returns 0, or -EINVAL with a sentence in error.
static int forwarding_hop(const struct offload *o, const struct offload_vnf *vnf,
                          const struct offload_params *params, struct fib_hop *hop, char *error)
{
	static const uint8_t none[RTE_ETHER_ADDR_LEN];

	*hop = (struct fib_hop){.kind = FIB_HOP_FORWARD, .vlan = (uint16_t)params->vlan};
	while (hop->port < o->settings.fib.wire_count &&
	       strcmp(o->settings.fib.wires[hop->port], params->wire) != 0)
		hop->port++;
	if (hop->port >= o->settings.fib.wire_count || !(vnf->wires >> hop->port & 1))
		return config_error(error, "params.wire: \"%s\" is not one of the VNF's wires", params->wire);
	if (hop->vlan && !vlans_have(offload_vlans(o, vnf), hop->vlan))
		return config_error(error, "params.vlan: %u is not one of the VNF's \"vlans\"", hop->vlan);
	if (memcmp(params->mac, none, sizeof(none)) == 0)
		return config_error(error, "params.mac: a next hop that forwards needs an address");
	memcpy(hop->macs, params->mac, RTE_ETHER_ADDR_LEN);
	memcpy(hop->macs + RTE_ETHER_ADDR_LEN,
	       memcmp(params->source, none, sizeof(none)) ? params->source : vnf->mac, RTE_ETHER_ADDR_LEN);
	return 0;
}

static const struct field next_hop_fields[] = {
        VNF_FIELD,
        HOP_FIELD,
        {CHOICE_FIELD("kind", struct offload_params, kind, kinds)},
        {.key = "wire", FIELD(FIELD_NAME, struct offload_params, wire)},
        {UINT_FIELD("vlan", struct offload_params, vlan, 1, VLAN_ID_MAX)},
        {.key = "mac", FIELD(FIELD_MAC, struct offload_params, mac)},
        {.key = "source", FIELD(FIELD_MAC, struct offload_params, source)},
        {ARRAY_FIELD("members", FIELD_CUSTOM, struct offload_params, members, member_count, 1,
                     FIB_MEMBERS_MAX),
         .decode = decode_member},
        {0},
};
static const struct offload_params next_hop_defaults = {.kind = FIB_HOP_FORWARD};

static json_t *call_next_hop_set(struct task *task, const void *given, uint64_t now_tsc, char *error)
{
	const struct offload_params *params = given;
	struct offload *o = (struct offload *)task;
	struct offload_vnf *v = find_vnf(o, params, error);
	struct fib_hop hop = {.kind = (uint8_t)params->kind};
	struct fib *fib = o->fib->fib;
	bool missing;
	int status;

	if (!v)
		return NULL;
	if (params->kind == FIB_HOP_FORWARD && forwarding_hop(o, v, params, &hop, error))
		return NULL;
	offload_fib_lock(fib);
	o->fib->edits++;
	if (params->kind == FIB_HOP_NONE)
		status = fib_hop_delete(fib, v->number, FIB_OPERATOR, (uint16_t)params->number);
	else if (params->kind == FIB_HOP_GROUP)
		status = fib_group_set(fib, v->number, FIB_OPERATOR, (uint16_t)params->number,
		                       params->members, params->member_count, &missing);
	else
		status = fib_hop_set(fib, v->number, FIB_OPERATOR, (uint16_t)params->number, &hop);
	fib_unlock(fib);
	if (status == -EINVAL)
		return config_error_null(
		        error,
		        "params.members: a group has 1 to %d next hops, each once, that are not groups themselves",
		        FIB_MEMBERS_MAX);
	return status ? refusal(status, error) : json_object();
}

// --- Very many routes ------------------------------------------------------------------------------------

// The methods of fib_offload that are about very many routes. Control thread, beside the workers, which
// forward meanwhile (while a snapshot is loaded, by no route). VNFs are told to send their messages again
// while a piece is put in, or all of it saved or loaded. Workers must run: load waits until each has had a
// tick.

enum {
	SYNTHETIC_MAX = 1 << 24, // addresses of 10.0.0.0/8
	PIECE = 1024,            // routes put in with the lock held once
	AHEAD = 16,
};
#define SYNTHETIC_FIRST UINT32_C(0x0a000000)

// --- load_synthetic --------------------------------------------------------------------------------------

static struct fib_prefix synthetic(uint32_t i)
{
	rte_be32_t address = rte_cpu_to_be_32(SYNTHETIC_FIRST + i);
	struct fib_prefix prefix = {.family = 4, .length = 32};

	memcpy(prefix.address, &address, sizeof(address));
	return prefix;
}

// The mac given, plus k in its lower three bytes.
static int set_hops(struct offload *o, const struct offload_vnf *v, const struct offload_params *params,
                    const struct fib_hop *first)
{
	uint32_t low = (uint32_t)(first->macs[3] << 16 | first->macs[4] << 8 | first->macs[5]);
	int status = 0;

	offload_fib_lock(o->fib->fib);
	for (uint32_t k = 0; k < params->hops && status == 0; k++) {
		struct fib_hop hop = *first;

		hop.macs[3] = (uint8_t)((low + k) >> 16);
		hop.macs[4] = (uint8_t)((low + k) >> 8);
		hop.macs[5] = (uint8_t)(low + k);
		status = fib_hop_set(o->fib->fib, v->number, FIB_OPERATOR, (uint16_t)k, &hop);
	}
	fib_unlock(o->fib->fib);
	return status;
}

// Routes from..to, with the lock held once.
static int set_piece(struct offload *o, uint16_t vnf, uint32_t hops, uint32_t from, uint32_t to)
{
	struct fib *fib = o->fib->fib;
	int status = 0;

	offload_fib_lock(fib);
	for (uint32_t i = from; i < to && status == 0; i++) {
		const struct fib_prefix prefix = synthetic(i), ahead = synthetic(i + AHEAD);

		fib_route_prefetch(fib, vnf, &ahead);
		status = fib_route_set(fib, vnf, FIB_OPERATOR, FIB_REPLACE, &prefix, (uint16_t)(i % hops));
	}
	fib_unlock(fib);
	return status;
}

static int set_routes(struct offload *o, uint16_t vnf, const struct offload_params *params)
{
	int status = 0;

	for (uint32_t from = 0; from < params->routes && status == 0; from += PIECE) {
		uint32_t to = RTE_MIN(from + PIECE, params->routes);

		status = set_piece(o, vnf, params->hops, from, to);
		if (status != -EAGAIN)
			continue;
		sweep_all(o->fib->fib);
		status = set_piece(o, vnf, params->hops, from, to);
	}
	return status;
}

static const struct field synthetic_fields[] = {
        VNF_FIELD,
        {UINT_FIELD("routes", struct offload_params, routes, 1, SYNTHETIC_MAX), .required = true},
        {UINT_FIELD("next_hops", struct offload_params, hops, 1, FIB_VNF_HOPS_MAX)},
        {.key = "wire", FIELD(FIELD_NAME, struct offload_params, wire), .required = true},
        {.key = "mac", FIELD(FIELD_MAC, struct offload_params, mac), .required = true},
        {0},
};
static const struct offload_params synthetic_defaults = {.hops = 1};

static json_t *call_load_synthetic(struct task *task, const void *given, uint64_t now_tsc, char *error)
{
	const struct offload_params *params = given;
	struct offload *o = (struct offload *)task;
	struct offload_vnf *v = find_vnf(o, params, error);
	struct fib_hop hop;
	int status;

	if (!v || forwarding_hop(o, v, params, &hop, error))
		return NULL;
	o->fib->edits++;
	status = set_hops(o, v, params, &hop);
	if (status == 0)
		status = set_routes(o, v->number, params);
	return status ? refusal(status, error) : json_pack("{s:I}", "routes", (json_int_t)params->routes);
}

// --- flush -----------------------------------------------------------------------------------------------

static const struct field flush_fields[] = {VNF_FIELD, {0}};

static json_t *call_flush(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	struct offload *o = (struct offload *)task;
	struct offload_vnf *v = find_vnf(o, params, error);
	struct fib_vnf_stats stats = {0};

	if (!v)
		return NULL;
	offload_fib_lock(o->fib->fib);
	o->fib->edits++;
	fib_vnf_read(o->fib->fib, v->number, &stats);
	fib_flush(o->fib->fib, v->number, FIB_FLUSH_ALL);
	offload_session_forget(v->session);
	fib_unlock(o->fib->fib);
	return json_pack("{s:I}", "flushed", (json_int_t)(stats.routes4 + stats.routes6));
}

// --- save, load ------------------------------------------------------------------------------------------

static const struct field path_fields[] = {{.key = "path", FIELD(FIELD_STRING, struct offload_params, path)},
                                           {0}};

static int load(struct offload_fib *fib, const char *path, char *reason)
{
	uint32_t forgotten;
	int status;

	fib->edits++;
	offload_fib_lock(fib->fib);
	forgotten = fib_forgotten(fib->fib);
	status = fib_load(fib->fib, path, reason);
	if (fib_forgotten(fib->fib) != forgotten) // a file that was refused has not ended any session
		offload_fib_loaded(fib);
	fib_unlock(fib->fib);
	return status;
}

// With the path given, or that of the settings.
static json_t *with_snapshot(struct task *task, const struct offload_params *params, bool save, char *error)
{
	struct offload *o = (struct offload *)task;
	const char *path = params->path[0] ? params->path : o->settings.fib.snapshot;
	char reason[CONFIG_ERROR_MAX] = "";
	int status;

	if (!path[0])
		return config_error_null(
		        error, "params.path: missing, and the task has no \"snapshot\"; give one of them");
	status = save ? fib_save(o->fib->fib, path, reason) : load(o->fib, path, reason);
	if (save && status == 0 && strcmp(path, o->settings.fib.snapshot) == 0)
		o->fib->is_foreign = false;
	return status ? config_error_null(error, "%.100s: %.140s", path, reason)
	              : json_pack("{s:s}", "path", path);
}

static json_t *call_save(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	return with_snapshot(task, params, true, error);
}

static json_t *call_load(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	return with_snapshot(task, params, false, error);
}

const struct task_method offload_methods[] = {
        {.name = "lookup", .call = call_lookup, .fields = lookup_fields},
        {.name = "routes", .call = call_routes, .fields = routes_fields, TASK_DEFAULTS(routes_defaults)},
        {.name = "route_set", .call = call_route_set, .fields = route_set_fields},
        {.name = "route_delete", .call = call_route_delete, .fields = route_delete_fields},
        {.name = "next_hop_set",
         .call = call_next_hop_set,
         .fields = next_hop_fields,
         TASK_DEFAULTS(next_hop_defaults)},
        {.name = "load_synthetic",
         .call = call_load_synthetic,
         .fields = synthetic_fields,
         TASK_DEFAULTS(synthetic_defaults)},
        {.name = "flush", .call = call_flush, .fields = flush_fields},
        {.name = "save", .call = call_save, .fields = path_fields},
        {.name = "load", .call = call_load, .fields = path_fields},
        {0},
};
_Static_assert(sizeof(struct offload_params) <= (size_t)TASK_PARAMS_MAX, "they fit");

// --- Report ----------------------------------------------------------------------------------------------

// What stats.get says of fib_offload. Control thread, worker parked.

const struct counter offload_counters[] = {
        COUNTER("copies", struct offload, copies),
        COUNTER("copies_lost", struct offload, copies_lost),
        {0},
};

const struct counter offload_vnf_counters[] = {
        COUNTER("forwarded", struct offload_vnf, forwarded),
        COUNTER("punted", struct offload_vnf, punted),
        COUNTER("punt_limited", struct offload_vnf, limited),
        COUNTER("no_route", struct offload_vnf, no_route),
        COUNTER("too_long", struct offload_vnf, too_long),
        COUNTER("sent", struct offload_vnf, sent),
        {0},
};

static const struct counter table_counters[] = {
        COUNTER("entries", struct cuckoo_stats, entries),
        COUNTER("room", struct cuckoo_stats, room),
        COUNTER("bytes", struct cuckoo_stats, bytes),
        COUNTER("moves", struct cuckoo_stats, moves),
        COUNTER("longest_path", struct cuckoo_stats, longest_path),
        {0},
};

static const struct counter fib_counters[] = {
        COUNTER("routes4", struct fib_vnf_stats, routes4),
        COUNTER("routes6", struct fib_vnf_stats, routes6),
        COUNTER("stale", struct fib_vnf_stats, stale),
        COUNTER("next_hops", struct fib_vnf_stats, hops),
        COUNTER("quota_routes", struct fib_vnf_stats, quota_routes),
        COUNTER("quota_next_hops", struct fib_vnf_stats, quota_hops),
        {0},
};

#define ANSWER(name_, code_) COUNTER("answers." name_, struct fib_session, codes[code_])

static const struct counter session_counters[] = {
        COUNTER("number", struct fib_session, number),
        COUNTER("messages", struct fib_session, messages),
        COUNTER("records", struct fib_session, records),
        COUNTER("malformed", struct fib_session, malformed),
        COUNTER("lost_peers", struct fib_session, lost_peers),
        COUNTER("flushed", struct fib_session, flushed),
        COUNTER("notices", struct fib_session, notices),
        ANSWER("ok", FIB_OK),
        ANSWER("busy", FIB_BUSY),
        ANSWER("sequence", FIB_SEQUENCE),
        ANSWER("malformed", FIB_MALFORMED),
        ANSWER("no_session", FIB_NO_SESSION),
        ANSWER("quota", FIB_QUOTA),
        ANSWER("full", FIB_FULL),
        ANSWER("no_next_hop", FIB_NO_NEXT_HOP),
        ANSWER("exists", FIB_EXISTS),
        ANSWER("absent", FIB_ABSENT),
        ANSWER("busy_hop", FIB_BUSY_HOP),
        ANSWER("version", FIB_VERSION),
        {0},
};

static json_t *table_json(const struct cuckoo_stats *stats)
{
	json_t *object = json_pack("{s:s}", "pages", hugepages_name(stats->pages));

	counters_report(table_counters, stats, NULL, object);
	return object;
}

static json_t *session_json(const struct fib_session *session, uint64_t now_tsc)
{
	static const char *const states[] = {
	        [FIB_SESSION_NONE] = "none", [FIB_SESSION_UP] = "up", [FIB_SESSION_STALE] = "stale"};
	json_t *object = json_pack("{s:s}", "state", states[session->state]);

	if (session->records)
		json_object_set_new(
		        object, "update_age_s",
		        json_integer((json_int_t)((now_tsc - RTE_MIN(session->updated_tsc, now_tsc)) /
		                                  clock_hz())));
	counters_report(session_counters, session, NULL, object);
	return object;
}

static json_t *vnf_json(const struct offload *o, const struct offload_vnf *v, uint64_t now_tsc)
{
	json_t *object = json_pack("{s:i, s:s, s:b}", "vnf", v->number, "port",
	                           o->vnf.task.ports[v->port]->config.name, "offload", v->offload);
	struct fib_vnf_stats stats = {0};

	if (v->routes_of)
		json_object_set_new(object, "routes_of", json_integer(v->routes_of));
	counters_report(offload_vnf_counters, v, NULL, object);
	if (v->session) {
		fib_vnf_read(o->fib->fib, v->number, &stats);
		// Until another session begins the FIB takes them for those of the present one.
		if (v->session->fib_session.state == FIB_SESSION_STALE)
			stats.stale = stats.announced;
		counters_report(fib_counters, &stats, NULL, object);
		json_object_set_new(object, "session", session_json(&v->session->fib_session, now_tsc));
	}
	return object;
}

void offload_report(const struct task *task, json_t *object, uint64_t now_tsc)
{
	const struct offload *o = (const struct offload *)task;
	struct cuckoo_stats narrow = {0}, wide = {0};
	json_t *vnfs = json_array();

	fib_read_stats(o->fib->fib, &narrow, &wide);
	for (unsigned i = 0; i < o->vnf_count; i++)
		json_array_append_new(vnfs, vnf_json(o, &o->vnfs[i], now_tsc));
	json_object_set_new(object, "fib", json_string(o->settings.fib.name));
	json_object_set_new(object, "table4", table_json(&narrow));
	json_object_set_new(object, "table6", table_json(&wide));
	json_object_set_new(object, "sweeping", json_boolean(fib_is_dirty(o->fib->fib)));
	json_object_set_new(object, "vnfs", vnfs);
}
