// SPDX-License-Identifier: BSD-3-Clause
// What the methods of fib_offload share. Control thread.
#pragma once

#include "tasks/fib_offload/fib_offload.h"
#include "lib/schema.h"

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

// As in struct vnf_method.
json_t *offload_load_synthetic(struct vnf *vnf, const json_t *given, uint64_t now_tsc, char *error);
json_t *offload_flush(struct vnf *vnf, const json_t *given, uint64_t now_tsc, char *error);
json_t *offload_save(struct vnf *vnf, const json_t *given, uint64_t now_tsc, char *error);
json_t *offload_load(struct vnf *vnf, const json_t *given, uint64_t now_tsc, char *error);
