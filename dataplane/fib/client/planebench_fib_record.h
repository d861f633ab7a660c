// SPDX-License-Identifier: BSD-3-Clause
// Records of messages and what a client's user says, one from the other. Not installed.
#pragma once

#include "planebench_fib.h"

// false: no message may say so. A route of IPv4 is in the first 8 bytes.
bool fib_hop_write(const struct fib_client_hop *hop, struct fib_hop_record *record);
bool fib_route_write(enum fib_op op, const struct fib_client_route *route, struct fib_route_record6 *record);

// What a record says; refusal->type and route.family are known.
void fib_refusal_read(struct fib_client_refusal *refusal, const uint8_t *record);
