// SPDX-License-Identifier: BSD-3-Clause
// The methods of fib_offload that are about one route or one next hop, and pages of routes. Control thread,
// while workers run: with the FIB's lock, which they do without for a moment (a VNF is told to send again).
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "lib/route_file.h"
#include "lib/schema.h"
#include "tasks/fib_offload/fib_offload.h"

// What the methods of fib_offload share. Control thread.

// What a method is given: each has some of it.
struct offload_params {
	uint32_t vnf, number, routes, hops, limit;
	uint64_t from;
	int kind;
	char wire[CONFIG_NAME_MAX], path[OFFLOAD_PATH_BYTES];
	uint8_t mac[RTE_ETHER_ADDR_LEN], source[RTE_ETHER_ADDR_LEN];
	struct fib_prefix prefix;
};

#define OFFLOAD_TASK_FIELD                                                                                   \
	{                                                                                                    \
		.key = "task", .type = FIELD_ANY                                                             \
	}
#define OFFLOAD_VNF_FIELD                                                                                    \
	{                                                                                                    \
		.key = "vnf", FIELD(FIELD_UINT, struct offload_params, vnf), .required = true, .min = 1,     \
		.max = FIB_VNFS_MAX - 1                                                                      \
	}

// Read params of a method that is about a VNF. Returns the VNF, which is offloaded; or NULL and a sentence in
// error.
struct offload_vnf *offload_params_read(struct offload *o, const json_t *given, const struct field *fields,
                                        struct offload_params *params, char *error);

// NULL, and what a status of the FIB means as a sentence in error.
json_t *offload_refusal(int status, char *error);

// A next hop that forwards. Returns 0, or -EINVAL with a sentence in error.
int offload_hop(const struct offload *o, const struct offload_vnf *vnf, const char *wire, const uint8_t *mac,
                const uint8_t *source, struct fib_hop *hop, char *error);

// Until nothing that was flushed takes room any more; lets go of the lock again and again.
void offload_sweep_all(struct fib *fib);

// As in struct task_method.
json_t *offload_load_synthetic(struct task *task, const json_t *given, uint64_t now_tsc, char *error);
json_t *offload_flush(struct task *task, const json_t *given, uint64_t now_tsc, char *error);
json_t *offload_save(struct task *task, const json_t *given, uint64_t now_tsc, char *error);
json_t *offload_load(struct task *task, const json_t *given, uint64_t now_tsc, char *error);

enum {
	LIMIT_DEFAULT = 1024,
	LIMIT_MAX = 4096,
	PAGE_BUCKETS = 1 << 16, // looked at for one page: 4 MiB
	SWEEP_BUCKETS = 1 << 16,
	SWEEPS_MAX = 1 << 16, // of 2^32 buckets: more than there are
	MAC_TEXT = 18,
};

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
	return config_error_null(error, "params.vnf: there is no VNF %u that is offloaded in this task",
	                         params->vnf);
}

json_t *offload_refusal(int status, char *error)
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
		return config_error_null(error, "routes lead to this next hop; delete them first");
	case -EAGAIN:
		return config_error_null(error,
		                         "flushed routes are still in the table; ask again in a second");
	default:
		return config_error_null(error, "the FIB refuses it: %s", strerror(-status));
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

static void add_hop(const struct offload *o, const struct fib_hop *hop, json_t *object)
{
	json_object_set_new(object, "kind", json_string(kinds[hop->kind % RTE_DIM(kinds)]));
	if (hop->kind != FIB_HOP_FORWARD)
		return;
	if (hop->port < o->settings.fib.wire_count)
		json_object_set_new(object, "wire", json_string(o->settings.fib.wires[hop->port]));
	json_object_set_new(object, "mac", schema_mac_json(hop->macs));
	json_object_set_new(object, "source", schema_mac_json(hop->macs + RTE_ETHER_ADDR_LEN));
}

// --- What a method is given ------------------------------------------------------------------------------

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
	return config_error(error, "%s: expected an IPv4 or IPv6 address like 192.0.2.1 or 2001:db8::1",
	                    where);
}

static json_t *call_lookup(struct task *task, const json_t *given, uint64_t now_tsc, char *error)
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
	struct offload *o = (struct offload *)task;
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

static json_t *call_routes(struct task *task, const json_t *given, uint64_t now_tsc, char *error)
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
	struct offload *o = (struct offload *)task;
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

static json_t *call_route_set(struct task *task, const json_t *given, uint64_t now_tsc, char *error)
{
	static const struct field fields[] = {
	        OFFLOAD_TASK_FIELD, OFFLOAD_VNF_FIELD, PREFIX_FIELD, HOP_FIELD, {0}};
	struct offload *o = (struct offload *)task;
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

static json_t *call_route_delete(struct task *task, const json_t *given, uint64_t now_tsc, char *error)
{
	static const struct field fields[] = {OFFLOAD_TASK_FIELD, OFFLOAD_VNF_FIELD, PREFIX_FIELD, {0}};
	struct offload *o = (struct offload *)task;
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
	if (hop->port >= o->settings.fib.wire_count || !(vnf->wires >> hop->port & 1))
		return config_error(error, "params.wire: \"%s\" is not one of the VNF's wires", wire);
	if (memcmp(mac, none, sizeof(none)) == 0)
		return config_error(error, "params.mac: a next hop that forwards needs an address");
	memcpy(hop->macs, mac, RTE_ETHER_ADDR_LEN);
	memcpy(hop->macs + RTE_ETHER_ADDR_LEN, memcmp(source, none, sizeof(none)) ? source : vnf->mac,
	       RTE_ETHER_ADDR_LEN);
	return 0;
}

static json_t *call_next_hop_set(struct task *task, const json_t *given, uint64_t now_tsc, char *error)
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
	struct offload *o = (struct offload *)task;
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

const struct task_method offload_methods[] = {
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
		offload_sweep_all(o->fib->fib);
		status = set_piece(o, vnf, params->hops, from, to);
	}
	return status;
}

json_t *offload_load_synthetic(struct task *task, const json_t *given, uint64_t now_tsc, char *error)
{
	static const struct field fields[] = {
	        OFFLOAD_TASK_FIELD,
	        OFFLOAD_VNF_FIELD,
	        {.key = "routes",
	         FIELD(FIELD_UINT, struct offload_params, routes),
	         .required = true,
	         .min = 1,
	         .max = SYNTHETIC_MAX},
	        {.key = "next_hops",
	         FIELD(FIELD_UINT, struct offload_params, hops),
	         .min = 1,
	         .max = FIB_VNF_HOPS_MAX},
	        {.key = "wire", FIELD(FIELD_NAME, struct offload_params, wire), .required = true},
	        {.key = "mac", FIELD(FIELD_MAC, struct offload_params, mac), .required = true},
	        {0},
	};
	static const uint8_t own[RTE_ETHER_ADDR_LEN]; // the VNF's
	struct offload *o = (struct offload *)task;
	struct offload_params params = {.hops = 1};
	struct offload_vnf *v;
	struct fib_hop hop;
	int status;

	v = offload_params_read(o, given, fields, &params, error);
	if (!v || offload_hop(o, v, params.wire, params.mac, own, &hop, error))
		return NULL;
	status = set_hops(o, v, &params, &hop);
	if (status == 0)
		status = set_routes(o, v->number, &params);
	return status ? offload_refusal(status, error)
	              : json_pack("{s:I}", "routes", (json_int_t)params.routes);
}

// --- flush -----------------------------------------------------------------------------------------------

json_t *offload_flush(struct task *task, const json_t *given, uint64_t now_tsc, char *error)
{
	static const struct field fields[] = {OFFLOAD_TASK_FIELD, OFFLOAD_VNF_FIELD, {0}};
	struct offload *o = (struct offload *)task;
	struct fib_vnf_stats stats = {0};
	struct offload_params params = {0};
	struct offload_vnf *v;

	v = offload_params_read(o, given, fields, &params, error);
	if (!v)
		return NULL;
	offload_fib_lock(o->fib->fib);
	fib_vnf_read(o->fib->fib, v->number, &stats);
	fib_flush(o->fib->fib, v->number, FIB_FLUSH_ALL);
	offload_session_forget(v->session);
	fib_unlock(o->fib->fib);
	return json_pack("{s:I}", "flushed", (json_int_t)(stats.routes4 + stats.routes6));
}

// --- save, load ------------------------------------------------------------------------------------------

// As fib_save(), _load().
typedef int snapshot_action(struct fib *fib, const char *path, char *error);

// With the path given, or that of the settings.
static json_t *with_snapshot(struct offload *o, const json_t *given, snapshot_action *act, char *error)
{
	static const struct field fields[] = {
	        OFFLOAD_TASK_FIELD, {.key = "path", FIELD(FIELD_STRING, struct offload_params, path)}, {0}};
	struct offload_params params = {0};
	char reason[CONFIG_ERROR_MAX] = "";
	const char *path = params.path;
	uint32_t forgotten;
	int status;

	if (schema_decode(given, fields, &params, "params", error))
		return NULL;
	if (!path[0])
		path = o->settings.fib.snapshot;
	if (!path[0])
		return config_error_null(
		        error, "params.path: missing, and the task has no \"snapshot\"; give one of them");
	offload_fib_lock(o->fib->fib);
	forgotten = fib_forgotten(o->fib->fib);
	status = act(o->fib->fib, path, reason);
	if (fib_forgotten(o->fib->fib) != forgotten) // a file that was refused has not ended any session
		offload_fib_loaded(o->fib);
	fib_unlock(o->fib->fib);
	return status ? config_error_null(error, "%.100s: %.140s", path, reason)
	              : json_pack("{s:s}", "path", path);
}

json_t *offload_save(struct task *task, const json_t *given, uint64_t now_tsc, char *error)
{
	return with_snapshot((struct offload *)task, given, fib_save, error);
}

json_t *offload_load(struct task *task, const json_t *given, uint64_t now_tsc, char *error)
{
	return with_snapshot((struct offload *)task, given, fib_load, error);
}

// --- Report ----------------------------------------------------------------------------------------------

// What stats.get says of fib_offload. Control thread, worker parked.

static json_t *count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static const char *const codes[FIB_CODES] = {
        [FIB_OK] = "ok",
        [FIB_BUSY] = "busy",
        [FIB_SEQUENCE] = "sequence",
        [FIB_MALFORMED] = "malformed",
        [FIB_NO_SESSION] = "no_session",
        [FIB_QUOTA] = "quota",
        [FIB_FULL] = "full",
        [FIB_NO_NEXT_HOP] = "no_next_hop",
        [FIB_EXISTS] = "exists",
        [FIB_ABSENT] = "absent",
        [FIB_BUSY_HOP] = "busy_hop",
        [FIB_VERSION] = "version",
};

static json_t *table_json(const struct cuckoo_stats *stats)
{
	return json_pack("{s:o, s:o, s:o, s:s, s:o, s:o}", "entries", count(stats->entries), "room",
	                 count(stats->room), "bytes", count(stats->bytes), "pages",
	                 hugepages_name(stats->pages), "moves", count(stats->moves), "longest_path",
	                 count(stats->longest_path));
}

// Answers, by code.
static json_t *codes_json(const struct fib_session *session)
{
	json_t *object = json_object();

	for (unsigned i = 0; i < FIB_CODES; i++)
		json_object_set_new(object, codes[i], count(session->codes[i]));
	return object;
}

static json_t *session_json(const struct fib_session *session)
{
	static const char *const states[] = {
	        [FIB_SESSION_NONE] = "none", [FIB_SESSION_UP] = "up", [FIB_SESSION_STALE] = "stale"};

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "state", states[session->state],
	                 "number", count(session->number), "messages", count(session->messages), "records",
	                 count(session->records), "malformed", count(session->malformed), "lost_peers",
	                 count(session->lost_peers), "flushed", count(session->flushed), "answers",
	                 codes_json(session));
}

static void add_fib(const struct fib *fib, const struct offload_vnf *v, json_t *object)
{
	struct fib_vnf_stats stats = {0};

	fib_vnf_read(fib, v->number, &stats);
	json_object_set_new(object, "routes4", count(stats.routes4));
	json_object_set_new(object, "routes6", count(stats.routes6));
	json_object_set_new(object, "stale", count(stats.stale));
	json_object_set_new(object, "next_hops", count(stats.hops));
	json_object_set_new(object, "quota_routes", count(stats.quota_routes));
	json_object_set_new(object, "quota_next_hops", count(stats.quota_hops));
	json_object_set_new(object, "session", session_json(&v->session->fib_session));
}

static json_t *vnf_json(const struct offload *o, const struct offload_vnf *v)
{
	json_t *object =
	        json_pack("{s:i, s:s, s:b, s:o, s:o, s:o, s:o, s:o}", "vnf", v->number, "port",
	                  o->vnf.task.ports[v->port]->config.name, "offload", v->offload, "forwarded",
	                  count(v->forwarded), "punted", count(v->punted), "punt_limited", count(v->limited),
	                  "no_route", count(v->no_route), "sent", count(v->sent));

	if (v->session)
		add_fib(o->fib->fib, v, object);
	return object;
}

void offload_report(const struct vnf *vnf, json_t *object)
{
	const struct offload *o = (const struct offload *)vnf;
	struct cuckoo_stats narrow = {0}, wide = {0};
	json_t *vnfs = json_array();

	fib_read_stats(o->fib->fib, &narrow, &wide);
	for (unsigned i = 0; i < o->vnf_count; i++)
		json_array_append_new(vnfs, vnf_json(o, &o->vnfs[i]));
	json_object_set_new(object, "fib", json_string(o->settings.fib.name));
	json_object_set_new(object, "table4", table_json(&narrow));
	json_object_set_new(object, "table6", table_json(&wide));
	json_object_set_new(object, "sweeping", json_boolean(fib_is_dirty(o->fib->fib)));
	json_object_set_new(object, "copies", count(o->copies));
	json_object_set_new(object, "copies_lost", count(o->copies_lost));
	json_object_set_new(object, "vnfs", vnfs);
}
