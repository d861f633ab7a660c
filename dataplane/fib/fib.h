// SPDX-License-Identifier: BSD-3-Clause
// The union of the FIBs of many VNFs (ic16): for each, host routes and prefixes of IPv4 and IPv6 and the next
// hops they lead to. Address spaces may overlap: a VNF's number is part of every key.
//
// One narrow and one wide cuckoo table hold all routes of all VNFs. Owner of a host route: vnf << 1; of a
// prefix: vnf << 1 | 1, and its address is the prefix, then a bit 1, then zeros, which no two prefixes of
// different length share. A lookup asks for the host route first, then for the lengths that the VNF has
// prefixes of, longest first: no length, no cost.
//
// A route leads to a next hop, a record that all routes of a VNF's session to it share. So a VNF's routes are
// flushed at once, however many: its next hops are marked dead, lookups see nothing behind them, and the
// sweep (fib_sweep) takes the dead entries out of the table by and by. Sessions (fib_session.h) are marked
// and swept the same way: a route belongs to the session of its next hop.
//
// Threads: one writer at a time (fib_trylock); readers (fib_find4, _find6) are workers that announced
// themselves (fib_reader_*, rte_rcu_qsbr): a next hop's record is used again only after every reader has let
// go. All else on the control thread.
#pragma once

#include <rte_ether.h>
#include <stdbool.h>
#include <stdint.h>

#include "cuckoo.h"

enum {
	FIB_VNFS_MAX = 4096,       // numbers 1 .. 4095
	FIB_NEXT_HOPS_MAX = 65535, // of all VNFs together
	FIB_VNF_HOPS_MAX = 4096,   // of one: numbers 0 .. 4095, chosen by it
	FIB_NAME_MAX = 32,
};

enum fib_hop_kind {
	FIB_HOP_NONE,      // no route
	FIB_HOP_FORWARD,   // out by a port to a MAC
	FIB_HOP_LOCAL,     // the VNF's own address: punt
	FIB_HOP_BLACKHOLE, // drop
};

struct fib_hop {
	_Atomic uint8_t kind; // FIB_HOP_NONE: dead
	uint8_t port;         // of FORWARD: the VNF's wire, an index that the caller gives a meaning
	uint8_t macs[2 * RTE_ETHER_ADDR_LEN]; // destination, source: as they go into the frame
	uint16_t vnf;
	uint16_t number; // that the VNF knows it by
	uint32_t session;
	uint64_t routes; // that lead here; the writer's
} __attribute__((aligned(32)));

struct fib_vnf_config {
	uint16_t vnf; // 1 .. FIB_VNFS_MAX - 1
	uint64_t quota_routes;
	uint32_t quota_hops;
};

struct fib_config {
	uint64_t routes4, routes6; // room in the two tables; 0: no table of this family
	uint64_t seed;
	enum pages pages;
	bool hits; // count packets and note the time of the last one by route: 8 bytes more for each
};

struct fib_prefix {
	uint8_t family;      // 4 or 6
	uint8_t length;      // bits
	uint8_t address[16]; // network order; IPv4: the first four. Bits behind length are 0
};

struct fib_query4 {
	uint16_t vnf;
	uint32_t address; // host byte order
};

struct fib_query6 {
	uint16_t vnf;
	uint8_t address[16];
};

struct fib;

// Returns 0 and *out, or -errno after logging one line.
int fib_create(const struct fib_config *config, struct fib **out);
void fib_destroy(struct fib *fib);

// Announce a VNF, or change its quotas. Returns 0 or -EINVAL.
int fib_vnf_set(struct fib *fib, const struct fib_vnf_config *config);

// --- Readers -----------------------------------------------------------------------------------------------

// A worker that will look up. It says fib_reader_quiet() between bursts, when it holds no hop; offline while
// parked. Returns its number, or -ENOSPC.
int fib_reader_add(struct fib *fib);
void fib_reader_remove(struct fib *fib, int reader);
void fib_reader_online(struct fib *fib, int reader);
void fib_reader_offline(struct fib *fib, int reader);
void fib_reader_quiet(struct fib *fib, int reader);

// hops[i]: of queries[i]; never NULL: a hop of kind FIB_HOP_NONE without a route. n <= CUCKOO_BULK_MAX.
void fib_find4(const struct fib *fib, const struct fib_query4 *queries, unsigned n,
               const struct fib_hop **hops);
void fib_find6(const struct fib *fib, const struct fib_query6 *queries, unsigned n,
               const struct fib_hop **hops);

// --- The writer: all of these between fib_trylock() and fib_unlock() ------------------------------------

bool fib_trylock(struct fib *fib);
void fib_unlock(struct fib *fib);

// A next hop of a VNF's session, by the VNF's own number; with the same number again it changes (routes that
// lead to it follow at once). hop: kind, port, macs. Returns 0, -EINVAL (number), -EDQUOT, -ENOSPC.
int fib_hop_set(struct fib *fib, uint16_t vnf, uint32_t session, uint16_t number, const struct fib_hop *hop);
int fib_hop_delete(struct fib *fib, uint16_t vnf, uint32_t session,
                   uint16_t number); // -EBUSY: routes lead to it

// A route of a VNF to a next hop of this session. FIB_ADD: -EEXIST if this session has it; FIB_REPLACE:
// either way. Returns 0, -ENOENT (no such hop), -EDQUOT, -ENOSPC, -EEXIST.
enum fib_op { FIB_ADD = 1, FIB_REPLACE = 2, FIB_DELETE = 3 };
int fib_route_set(struct fib *fib, uint16_t vnf, uint32_t session, enum fib_op op,
                  const struct fib_prefix *prefix, uint16_t number);
int fib_route_delete(struct fib *fib, uint16_t vnf, const struct fib_prefix *prefix); // -ENOENT
void fib_route_prefetch(const struct fib *fib, uint16_t vnf, const struct fib_prefix *prefix);

// Everything that a VNF has from sessions other than keep (0: from all) is gone from lookups at once.
void fib_flush(struct fib *fib, uint16_t vnf, uint32_t keep);

// Take dead entries out of the tables: a bounded amount of work (buckets). Returns how many were removed; 0
// and !fib_is_dirty(): all clean.
uint64_t fib_sweep(struct fib *fib, unsigned buckets);
bool fib_is_dirty(const struct fib *fib);

// --- What is seen of it: any thread; a little stale ------------------------------------------------------

struct fib_vnf_stats {
	uint64_t routes4, routes6; // that lookups find
	uint32_t hops;
	uint64_t stale; // of routes: from sessions before this one
	uint64_t quota_routes;
	uint32_t quota_hops;
};
bool fib_vnf_read(const struct fib *fib, uint16_t vnf, struct fib_vnf_stats *stats); // false: no such VNF
void fib_read_stats(const struct fib *fib, struct cuckoo_stats *narrow, struct cuckoo_stats *wide);

// Snapshot of everything: routes, hops, sessions. As cuckoo_save(); locked meanwhile.
int fib_save(struct fib *fib, const char *path, char *error);
int fib_load(struct fib *fib, const char *path, char *error);
