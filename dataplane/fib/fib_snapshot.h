// SPDX-License-Identifier: BSD-3-Clause
// What is in a snapshot of a FIB before its tables.
#pragma once

#include "fib/fib.h"

#define FIB_SNAPSHOT_MAGIC UINT64_C(0x424946656e616c70) // "planeFIB"
enum { FIB_SNAPSHOT_VERSION = 2 };

struct fib_snapshot_head {
	uint64_t magic;
	uint32_t version, tables; // a bit each: IPv4, IPv6
	uint32_t vnfs, hops, spreads, pad;
	uint64_t sum; // of all before it, VNFs and hops
};

struct fib_snapshot_vnf {
	uint64_t quota_routes;
	uint32_t quota_hops, vnf;
};

struct fib_snapshot_hop {   // in the order of their indices
	struct fib_hop hop; // a group's spread: the next one of those that there are
	uint32_t session;
	uint16_t index, vnf, number, pad[3];
};

struct fib_snapshot {
	struct fib_snapshot_head head;
	struct fib_snapshot_vnf *vnfs;
	struct fib_snapshot_hop *hops;
	struct fib_spread *spreads;
};

_Static_assert(sizeof(struct fib_snapshot_head) == 40 && sizeof(struct fib_snapshot_vnf) == 16 &&
                       sizeof(struct fib_snapshot_hop) == 32,
               "no padding that nobody wrote");
