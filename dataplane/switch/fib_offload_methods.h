// SPDX-License-Identifier: BSD-3-Clause
// What the methods of fib_offload share. Control thread.
#pragma once

#include "fib_offload.h"

// The VNF of a number, that is offloaded; NULL and a sentence in error.
struct offload_vnf *offload_find_vnf(struct offload *o, uint32_t number, char *error);

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
