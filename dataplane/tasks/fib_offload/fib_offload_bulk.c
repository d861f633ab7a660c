// SPDX-License-Identifier: BSD-3-Clause
// The methods of fib_offload that are about very many routes. Control thread, beside the workers, which
// forward meanwhile (while a snapshot is loaded, by no route). VNFs are told to send their messages again
// while a piece is put in, or all of it saved or loaded. Workers must run: load waits until each has had a
// tick.
#include <errno.h>
#include <stdio.h>

#include "tasks/fib_offload/fib_offload_methods.h"

enum {
	SYNTHETIC_MAX = 1 << 24, // addresses of 10.0.0.0/8
	PIECE = 1024,            // routes put in with the lock held once
	AHEAD = 16,
};
#define SYNTHETIC_FIRST UINT32_C(0x0a000000)

#define REFUSE(...) (snprintf(error, CONFIG_ERROR_MAX, __VA_ARGS__), NULL)

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

json_t *offload_load_synthetic(struct vnf *vnf, const json_t *given, uint64_t now_tsc, char *error)
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
	struct offload *o = (struct offload *)vnf;
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

json_t *offload_flush(struct vnf *vnf, const json_t *given, uint64_t now_tsc, char *error)
{
	static const struct field fields[] = {OFFLOAD_TASK_FIELD, OFFLOAD_VNF_FIELD, {0}};
	struct offload *o = (struct offload *)vnf;
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
	int status;

	if (schema_decode(given, fields, &params, "params", error))
		return NULL;
	if (!path[0])
		path = o->settings.fib.snapshot;
	if (!path[0])
		return REFUSE("params.path: missing, and the task has no \"snapshot\"; give one of them");
	offload_fib_lock(o->fib->fib);
	status = act(o->fib->fib, path, reason);
	if (act == fib_load)
		offload_fib_loaded(o->fib);
	fib_unlock(o->fib->fib);
	return status ? REFUSE("%.100s: %.140s", path, reason) : json_pack("{s:s}", "path", path);
}

json_t *offload_save(struct vnf *vnf, const json_t *given, uint64_t now_tsc, char *error)
{
	return with_snapshot((struct offload *)vnf, given, fib_save, error);
}

json_t *offload_load(struct vnf *vnf, const json_t *given, uint64_t now_tsc, char *error)
{
	return with_snapshot((struct offload *)vnf, given, fib_load, error);
}
