// SPDX-License-Identifier: BSD-3-Clause
// What the files of the FIB (fib*.c) know of each other. Nobody else includes it.
#pragma once

#include <stdint.h>
#include <stdbool.h>
#include <rte_byteorder.h>
#include <rte_rcu_qsbr.h>
#include <stdatomic.h>
#include <string.h>

#include "fib/fib.h"
#include "fib/prefix_tree.h"

// Numbers 1 .. size of things that readers may still look at when they are given back: taken again only after
// every reader has passed a quiescent state since. First in, first out: the first is the one to ask about.
//
// The writer of the FIB.

struct fib_pool {
	struct fib_given {
		uint64_t token;
		uint32_t number;
	} * given;            // a ring of size
	uint32_t head, count; // of it
	uint32_t size, fresh; // numbers from fresh on were never taken
};

int fib_pool_open(struct fib_pool *pool, uint32_t size); // -ENOMEM
void fib_pool_close(struct fib_pool *pool);
void fib_pool_reset(struct fib_pool *pool); // all are free; no reader holds any

// 0: there is none. fib_pool_is_waiting(): there will be, when readers have let go.
uint32_t fib_pool_take(struct fib_pool *pool, struct rte_rcu_qsbr *readers);
void fib_pool_give(struct fib_pool *pool, struct rte_rcu_qsbr *readers, uint32_t number);

static inline bool fib_pool_is_waiting(const struct fib_pool *pool)
{
	return pool->count > 0;
}

enum {
	FIB_READERS_MAX = 128,
	FIB_RECORDS = 2 * (FIB_NEXT_HOPS_MAX + 1), // of hops, and of what they were a moment ago
	FIB_SPREADS = 1 << 15,                     // the same, of groups
	FIB_SPREAD_SLOTS = 64,
	// Of the index of prefixes: what there is for each route of the tables, and what any VNF may take besides.
	FIB_BLOCKS_PER_ROUTE = 4,
	FIB_BLOCKS_FREE = 256,
	FIB_HOSTS_INDEXED = 32, // of a VNF and family
};

enum { FIB_V4, FIB_V6, FIB_FAMILIES };
enum { GROUP_OPERATOR, GROUP_SESSION, GROUP_STALE, FIB_GROUPS };

// Hops of a VNF that live and die together, and what leads to them. Counts: the writer's; read by any thread.
struct fib_group {
	_Atomic uint64_t routes[FIB_FAMILIES];
	_Atomic uint32_t hops;
	uint16_t first, last; // of the list of hops; 0: none
};

struct fib_vnf {
	_Atomic uint64_t quota_routes;
	_Atomic uint32_t quota_hops, session;
	uint64_t generation;            // of sessions: numbers may come again
	uint64_t entries;               // in the tables, dead ones too
	uint64_t hosts[FIB_FAMILIES];   // of these
	uint32_t indexed[FIB_FAMILIES]; // of the hosts: in the index as well
	bool is_hosted[FIB_FAMILIES];   // not all of them
	uint32_t indices;               // of hops, dead ones too
	uint16_t *numbers[2];           // GROUP_OPERATOR, GROUP_SESSION: a hop's number -> index; a hint
	struct fib_group groups[FIB_GROUPS];
};

// Where a group's flows go: a slot for each of 64 parts of them, which says whose it is. Immutable once lookups find it.
struct fib_spread {
	uint8_t slots[FIB_SPREAD_SLOTS];   // place of the member
	uint16_t members[FIB_MEMBERS_MAX]; // indices
	uint8_t weights[FIB_MEMBERS_MAX], count, pad[15];
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct fib_spread) == 128, "two cache lines; saved as bytes");

// The writer's side of a hop; its index is the value in the tables.
struct fib_entry {
	uint64_t generation;
	uint64_t routes[FIB_FAMILIES]; // entries of the tables that lead here
	uint32_t session, record;
	uint32_t groups;                      // it is a member of
	uint16_t vnf, number, next, previous; // of the group; next also of the emptied
	bool used, dead;
};

// Nothing leads to it.
static inline bool fib_hop_is_idle(const struct fib_entry *entry)
{
	return entry->routes[FIB_V4] + entry->routes[FIB_V6] + entry->groups == 0;
}

struct fib {
	// What readers use. A table is NULL for them while it is loaded.
	struct cuckoo *_Atomic found_in[FIB_FAMILIES];
	const struct fib_hop *_Atomic slots[FIB_NEXT_HOPS_MAX + 1]; // by index; none of them NULL
	_Atomic uint32_t hosted[FIB_FAMILIES];                  // VNFs that have more hosts than the index
	struct prefix_space spaces[FIB_VNFS_MAX][FIB_FAMILIES]; // its prefixes
	struct prefix_tree *prefixes;
	uint64_t routes; // that the tables were made for
	unsigned port_count;
	char ports[FIB_PORTS_MAX][FIB_NAME_MAX]; // the rest of each is 0
	struct fib_hop none;
	struct rte_rcu_qsbr *readers;
	// The writer's.
	atomic_bool locked;
	atomic_bool reader_used[FIB_READERS_MAX];
	struct cuckoo *tables[FIB_FAMILIES];
	struct fib_hop *records;
	struct fib_spread *spreads;
	struct fib_pool indices_free, records_free, spreads_free;
	struct fib_vnf *_Atomic vnfs[FIB_VNFS_MAX];
	_Atomic uint64_t dead[FIB_FAMILIES]; // entries that the sweep has to take out
	uint64_t cursors[FIB_FAMILIES];      // of the sweep
	unsigned swept;                      // the family that was last
	uint32_t forgotten;                  // times that all was replaced or given up (fib_load())
	uint16_t emptied; // indices that no entry leads to any more, while a table is visited
	struct fib_entry entries[FIB_NEXT_HOPS_MAX + 1];
};

// --- Counts: one writer, so no atomic addition ----------------------------------------------------------

static inline void fib_add(_Atomic uint64_t *count, int64_t change)
{
	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + (uint64_t)change,
	                      memory_order_relaxed);
}

static inline uint64_t fib_get(const _Atomic uint64_t *count)
{
	return atomic_load_explicit(count, memory_order_relaxed);
}

static inline struct fib_vnf *fib_vnf_of(const struct fib *fib, uint16_t vnf)
{
	return vnf < FIB_VNFS_MAX ? atomic_load_explicit(&fib->vnfs[vnf], memory_order_acquire) : NULL;
}

static inline unsigned fib_group_of(const struct fib_vnf *vnf, const struct fib_entry *entry)
{
	if (entry->session == FIB_OPERATOR)
		return GROUP_OPERATOR;
	return entry->generation == vnf->generation ? GROUP_SESSION : GROUP_STALE;
}

// --- Keys -----------------------------------------------------------------------------------------------

static inline uint16_t fib_owner(uint16_t vnf, bool is_prefix)
{
	return (uint16_t)(vnf << 1 | is_prefix);
}

// The prefix of so many bits, and the bit 1 behind it; length < 32.
static inline uint64_t fib_key4(uint16_t vnf, uint32_t address, unsigned length)
{
	uint32_t end = UINT32_C(1) << (31 - length);

	return (uint64_t)fib_owner(vnf, true) << 32 | (address & ~(end - 1)) | end;
}

static inline uint64_t fib_host_key4(uint16_t vnf, uint32_t address)
{
	return (uint64_t)fib_owner(vnf, false) << 32 | address;
}

static inline struct cuckoo_wide_key fib_host_key6(uint16_t vnf, const uint8_t *address)
{
	struct cuckoo_wide_key key = {.owner = fib_owner(vnf, false)};

	memcpy(&key.high, address, sizeof(key.high));
	memcpy(&key.low, address + sizeof(key.high), sizeof(key.low));
	key.high = rte_be_to_cpu_64(key.high);
	key.low = rte_be_to_cpu_64(key.low);
	return key;
}

// Return the key of the prefix of length bits that the host is in; length < 128.
static inline struct cuckoo_wide_key fib_key6(const struct cuckoo_wide_key *host, unsigned length)
{
	uint64_t end = UINT64_C(1) << (63 - length % 64);
	struct cuckoo_wide_key key = {.owner = host->owner | 1, .high = host->high};

	if (length < 64)
		key.high = (host->high & ~(end - 1)) | end;
	else
		key.low = (host->low & ~(end - 1)) | end;
	return key;
}

// A key of either family, for the writer.
struct fib_key {
	unsigned family; // FIB_V4, FIB_V6
	uint64_t four;
	struct cuckoo_wide_key six;
};

bool fib_prefix_is_sound(const struct fib_prefix *prefix);
struct fib_key fib_key_of(uint16_t vnf, const struct fib_prefix *prefix); // sound

// What a key in a table says. Returns its VNF, or 0: no route has such a key.
uint16_t fib_key4_read(uint64_t key, struct fib_prefix *prefix);
uint16_t fib_key6_read(const struct cuckoo_wide_key *key, struct fib_prefix *prefix);

// Call entry() for what is in some buckets of a family's table, as cuckoo_visit(): what it returns false for is deleted.
// Returns how many were.
typedef bool fib_visit_entry(void *context, uint16_t vnf, const struct fib_prefix *prefix, uint16_t index);
uint64_t fib_visit(struct fib *fib, unsigned family, uint64_t *cursor, uint64_t buckets,
                   fib_visit_entry *entry, void *context);

// --- Hops -----------------------------------------------------------------------------------------------

// Index of a hop of a session, or 0.
uint16_t fib_hop_find(const struct fib *fib, const struct fib_vnf *vnf, uint16_t vnf_number, uint32_t session,
                      uint16_t number);
// No lookup finds what is behind it. Its index is free when no entry leads to it any more.
void fib_hop_kill(struct fib *fib, struct fib_vnf *vnf, uint16_t index);
void fib_hop_free(struct fib *fib, struct fib_vnf *vnf, uint16_t index);
void fib_hop_link(struct fib *fib, struct fib_group *group, uint16_t index);

// --- Routes ---------------------------------------------------------------------------------------------

// What readers ask beside the tables: a VNF's prefixes and a few of its hosts, and whether it has more of these. _add: when
// the entry is in the table; -ENOSPC or -EAGAIN, of a prefix that is new. _remove: when it has left, or does now.
int fib_index_add(struct fib *fib, uint16_t vnf, const struct fib_prefix *prefix, uint16_t index,
                  bool is_new);
void fib_index_remove(struct fib *fib, uint16_t vnf, const struct fib_prefix *prefix);
void fib_index_clear(struct fib *fib); // no reader is in it

// --- What is in a snapshot before its tables ------------------------------------------------------------

#define FIB_SNAPSHOT_MAGIC UINT64_C(0x424946656e616c70) // "planeFIB"
enum { FIB_SNAPSHOT_VERSION = 3 };                      // 2 had no names of ports

struct fib_snapshot_head {
	uint64_t magic;
	uint32_t version, tables; // a bit each: IPv4, IPv6
	uint32_t vnfs, hops, spreads, ports;
	uint64_t sum; // of all before it and all before the tables
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
	char ports[FIB_PORTS_MAX][FIB_NAME_MAX];
};

_Static_assert(sizeof(struct fib_snapshot_head) == 40 && sizeof(struct fib_snapshot_vnf) == 16 &&
                       sizeof(struct fib_snapshot_hop) == 32,
               "no padding that nobody wrote");
