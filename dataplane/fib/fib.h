// SPDX-License-Identifier: BSD-3-Clause
// The union of the FIBs of many VNFs (ic16): for each, host routes and prefixes of IPv4 and IPv6 and the next
// hops they lead to. Address spaces may overlap: a VNF's number is part of every key.
//
// One narrow and one wide cuckoo table hold all routes of all VNFs. Owner of a host route: vnf << 1; of a
// prefix: vnf << 1 | 1, and its address is the prefix, then a bit 1, then zeros, which no two prefixes of
// different length share. Beside them is an index of the prefixes, and of a few hosts of each VNF (prefix_tree.h), which
// follows the tables and is in no snapshot. A lookup asks the tables for the host route, if any VNF has more hosts than
// the index, and then the index.
//
// A route leads to a next hop, a record that all routes of a VNF's session to it share. So a VNF's routes are
// flushed at once, however many: its next hops are taken away, lookups see nothing behind them, and the sweep
// (fib_sweep) takes the dead entries out of the table by and by. A route belongs to the session of its hop:
// the operator's (number 0), the present one of the VNF (fib_begin), or one before it: those are stale. Who
// sets a route last has it.
//
// Dead entries are not in any count or quota, but they take room until they are swept: no more of a VNF than
// its quota. Beyond, and where a table is full of them, the answer is -EAGAIN.
//
// Threads: one writer at a time (fib_trylock); readers (fib_find4, _find6) are workers that announced
// themselves (fib_reader_*, rte_rcu_qsbr), or whoever has the lock. What a reader sees of a hop never
// changes: a changed hop is a new record, and a record is used again only after every reader has let go. All
// else on the control thread.
#pragma once

#include <rte_ether.h>
#include <stdbool.h>
#include <stdint.h>

#include "table/cuckoo.h"
#include "fib/fib_message.h"

enum {
	FIB_VNFS_MAX = 4096,       // numbers 1 .. 4095
	FIB_NEXT_HOPS_MAX = 65535, // of all VNFs together
	FIB_VNF_HOPS_MAX = FIB_HOP_NUMBERS,
	FIB_PORTS_MAX = 32, // with names
	FIB_NAME_MAX = 32,  // of a port, with its end
};

// As a reader sees it, and as the writer gives it. Immutable once lookups find it.
struct fib_hop {
	uint8_t kind; // enum fib_hop_kind
	uint8_t port; // of FORWARD: an index that the caller gives a meaning, below 32 if it is a member of a group
	uint16_t vlan; // of FORWARD: of the tag that its frames leave with; 0: without
	union {
		uint8_t macs[2 * RTE_ETHER_ADDR_LEN]; // destination, source: as they go into the frame
		uint32_t spread;                      // of GROUP: the FIB's
	};
} __attribute__((aligned(16)));

_Static_assert(sizeof(struct fib_hop) == 16, "no padding: next hops are compared and saved as bytes");

enum { FIB_OPERATOR = 0 }; // session of what no VNF announced: never stale

struct fib_vnf_config {
	uint16_t vnf;          // 1 .. FIB_VNFS_MAX - 1
	uint64_t quota_routes; // of all that lookups find
	uint32_t quota_hops;   // stale ones not counted
};

struct fib_config {
	uint64_t routes4, routes6; // room in the two tables; 0: no table of this family
	uint64_t seed;
	enum pages pages;
	unsigned port_count;               // 0: ports have no names
	const char (*ports)[FIB_NAME_MAX]; // by which a snapshot knows them
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

// Announce a VNF, or change its quotas. Returns 0, -EINVAL (number) or -ENOMEM.
int fib_vnf_set(struct fib *fib, const struct fib_vnf_config *config);

// --- Readers --------------------------------------------------------------------------------------------

// A worker that will look up. It says fib_reader_quiet() between bursts, when it holds no hop; offline while
// parked. Returns its number, or -ENOSPC.
int fib_reader_add(struct fib *fib);
void fib_reader_remove(struct fib *fib, int reader);
void fib_reader_online(struct fib *fib, int reader);
void fib_reader_offline(struct fib *fib, int reader);
void fib_reader_quiet(struct fib *fib, int reader);

// hops[i]: of queries[i]; never NULL: a hop of kind FIB_HOP_NONE without a route. n <= CUCKOO_BULK_MAX. What
// they point to is good until fib_reader_quiet().
void fib_find4(const struct fib *fib, const struct fib_query4 *queries, unsigned n,
               const struct fib_hop **hops);
void fib_find6(const struct fib *fib, const struct fib_query6 *queries, unsigned n,
               const struct fib_hop **hops);

// What a packet of a flow takes that has found a hop of kind FIB_HOP_GROUP: never NULL, never a group. down: a bit for
// each port of FORWARD that cannot be used now: its flows take other members until it can, if there are any. Good as long
// as what lookups found.
const struct fib_hop *fib_hop_of_flow(const struct fib *fib, const struct fib_hop *group, uint32_t flow,
                                      uint32_t down);

// The same of what a lookup has found, group or not. A group whose members were flushed since is looked up again: the route
// may be another session's now.
const struct fib_hop *fib_of_flow4(const struct fib *fib, const struct fib_hop *found,
                                   const struct fib_query4 *query, uint32_t flow, uint32_t down);
const struct fib_hop *fib_of_flow6(const struct fib *fib, const struct fib_hop *found,
                                   const struct fib_query6 *query, uint32_t flow, uint32_t down);

// --- The writer: all of these between fib_trylock() and fib_unlock() ------------------------------------

bool fib_trylock(struct fib *fib);
void fib_unlock(struct fib *fib);

// From now on this is the session of the VNF, its number not 0: what it has of others is stale.
int fib_begin(struct fib *fib, uint16_t vnf, uint32_t session); // -EINVAL

// A next hop of a session (the present one, or FIB_OPERATOR), by the VNF's own number; with the same number
// again it changes (routes that lead to it follow at once). Returns 0, -EINVAL (VNF, number or kind), -ENOENT
// (no such session), -EDQUOT, -ENOSPC, -EAGAIN.
int fib_hop_set(struct fib *fib, uint16_t vnf, uint32_t session, uint16_t number, const struct fib_hop *hop);
int fib_hop_delete(struct fib *fib, uint16_t vnf, uint32_t session,
                   uint16_t number); // -ENOENT; -EBUSY: routes lead to it, or it is a member of a group

// A next hop that is a group: flows are spread over its members, other next hops of the session that are no groups, in
// proportion to their weights. With the same number again the group changes: only flows of members that are gone, or
// that have too many now, move. Returns as fib_hop_set(), and -ENOENT for a member that is not there (*missing), -EINVAL
// for one that is a group or named twice, and -EBUSY if the number is a member itself.
struct fib_member {
	uint16_t number;
	uint8_t weight; // 1 .. 255
};
int fib_group_set(struct fib *fib, uint16_t vnf, uint32_t session, uint16_t number,
                  const struct fib_member *members, unsigned count, bool *missing);

// Members of a hop that is a group, at most FIB_MEMBERS_MAX. Returns how many.
unsigned fib_group_read(const struct fib *fib, const struct fib_hop *group, struct fib_member *members,
                        const struct fib_hop **hops);

// Next hops of a VNF that forward, as they are from now on: the function may change one, and one that it returns false for
// is gone with what leads to it; groups go on with their other members. is_operators: it is of no session.
typedef bool fib_revise(void *context, bool is_operators, struct fib_hop *hop);
void fib_hops_revise(struct fib *fib, uint16_t vnf, fib_revise *revise, void *context);

// A route of a VNF to a next hop of this session. FIB_ADD: -EEXIST if this session has it; FIB_REPLACE:
// either way. Returns 0, -EINVAL (prefix or op), -ENOENT (no such hop), -EDQUOT, -ENOSPC, -EEXIST, -EAGAIN.
int fib_route_set(struct fib *fib, uint16_t vnf, uint32_t session, enum fib_op op,
                  const struct fib_prefix *prefix, uint16_t number);
int fib_route_delete(struct fib *fib, uint16_t vnf, const struct fib_prefix *prefix); // -ENOENT
void fib_route_prefetch(const struct fib *fib, uint16_t vnf, const struct fib_prefix *prefix);

// Gone from lookups at once, with their next hops: everything; what sessions announced; what is stale.
enum fib_whose { FIB_FLUSH_ALL, FIB_FLUSH_SESSIONS, FIB_FLUSH_STALE };
void fib_flush(struct fib *fib, uint16_t vnf, enum fib_whose whose);

// Take dead entries out of the tables: a bounded amount of work (buckets). Returns how many were removed.
uint64_t fib_sweep(struct fib *fib, unsigned buckets);
bool fib_is_dirty(const struct fib *fib); // any thread: there are dead entries

// Routes of a VNF, in no order: up to max of them, looking at a bounded number of buckets from *cursor on (0
// at first; 0 again at the end). max >= CUCKOO_WAYS. Routes that move meanwhile may be missed or told twice.
struct fib_route {
	struct fib_prefix prefix;
	struct fib_hop hop;
	uint16_t number;  // of the hop
	uint32_t session; // FIB_OPERATOR, or of whoever announced it
	bool stale;
};
unsigned fib_list(struct fib *fib, uint16_t vnf, uint64_t *cursor, unsigned buckets, struct fib_route *routes,
                  unsigned max);

// --- What is seen of it: any thread; a little stale -----------------------------------------------------

struct fib_vnf_stats {
	uint64_t routes4, routes6; // that lookups find
	uint32_t hops;
	uint32_t session;   // the present one; 0: none
	uint64_t stale;     // of routes: from sessions before this one
	uint64_t announced; // of routes: from any session, not the operator's
	uint64_t quota_routes;
	uint32_t quota_hops;
};
bool fib_vnf_read(const struct fib *fib, uint16_t vnf, struct fib_vnf_stats *stats); // false: no such VNF
void fib_read_stats(const struct fib *fib, struct cuckoo_stats *narrow, struct cuckoo_stats *wide);

// Snapshot of everything: VNFs with their quotas, routes, hops, sessions. As cuckoo_save(). fib_save() takes the lock while
// it copies to the file, and readers find all meanwhile; for fib_load() the caller has it. Loaded, what sessions announced is
// stale, and a VNF that this FIB knows keeps the quotas it has here. What forwards by a port that has no such name here any more is not taken, nor what a damaged file says of other
// VNFs' hops, or of none. A table that the file has not is empty. No reader finds anything while it is loaded.
// Returns 0, -EBADMSG (damaged), or another -errno: the file may be good for another FIB, so keep it.
int fib_save(struct fib *fib, const char *path, char *error);
int fib_load(struct fib *fib, const char *path, char *error);

// How often fib_load() has emptied the FIB: to fill it from a file, or because the rest of the file was unusable. A load
// that fails and leaves this number as it was has changed nothing.
uint32_t fib_forgotten(const struct fib *fib);
