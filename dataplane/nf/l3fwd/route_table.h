// SPDX-License-Identifier: BSD-3-Clause
// Longest-prefix match of many addresses at once: DPDK's rte_fib (DIR24_8) and rte_fib6 (trie), and behind
// them an entry for each route with its next hop and its count, so that a packet touches two cache lines.
// On request host routes are apart, and only what they do not match is looked up in those.
//
// The tables lie in memory of their own (route_memory.h), the rest on the heap: memory.size_mb is not
// touched, and there is no bound but the machine's memory. Lookups on one worker; everything else on the
// control thread while that worker is parked. A table does not change: a new one is built beside it.
//
// Bytes that a table takes, of n routes of a version without /0, which costs nothing; t: of IPv4 the different /24 that
// have a longer prefix in them, of IPv6 the sum of ceil(length / 8) - 3 of those longer than /24; e: 1 (IPv4 only), 2
// or 4, the least with 2^(8 e - 1) above routes and t:
//
//     2^24 e + 256 e t + about 400 n, for each version that has routes; IPv6: and 60 for each route on the heap
//
// Ten routes: 17 MB. A million of IPv4: about 540 MB. While a document is applied, old and new are there.
// The list takes 36 bytes a route, an entry 16. Host routes that are apart do not count above and have no
// entries: 8.6 bytes each, of IPv6 24.
#pragma once

#include <rte_branch_prediction.h>
#include <rte_fib.h>
#include <stdbool.h>

#include "table/cuckoo.h"
#include "base/dpdk_compat.h"
#include "table/route_file.h"
#include "nf/l3fwd/route_memory.h"

// Host routes (/32, /128) by exact match: cuckoo tables of IPv4 and IPv6, asked before the prefixes are
// (route_table.h). A host route takes 9 bytes there, of IPv6 24; in DIR24_8 it takes 400 and, alone in its
// /24, another 1024.
//
// A value of the tables is the number of a next hop, from 1: routes with the same port and MAC share one, and
// its count. So there are 65535 different ones at most, and packets are counted by next hop, not by route.
//
// Lookups on one worker; everything else on the control thread while that worker is parked. Nothing changes
// once it is there.

enum { ROUTE_HOPS_MAX = UINT16_MAX };

struct route_hosts {
	struct cuckoo *v4, *v6; // NULL: no host route of this version
	size_t count4, count6;
	unsigned hops;
	uint32_t *first; // of hops: first[n - 1] is the list's first route to hop n
};

static inline bool route_is_host(const struct route *route)
{
	return route->length == (route->version == 4 ? 32 : 128);
}

// Whether the host routes of a list have no more next hops than there are numbers: 0, -ENOSPC or -ENOMEM.
int route_hosts_check(const struct route_list *list);

// The tables of a list's host routes. Returns 0 or -errno; close all the same.
int route_hosts_open(struct route_hosts *hosts, const struct route_list *list);
void route_hosts_close(struct route_hosts *hosts);

// Say early that an address will be looked up. There is a table of this version.
void route_hosts_prefetch6(const struct route_hosts *hosts, const uint8_t address[static 16]);

// The hops of n addresses (1 .. CUCKOO_BULK_MAX); 0: no host route. There is a table of this version.
void route_hosts_find4(const struct route_hosts *hosts, const uint32_t *addresses, uint16_t *hops,
                       unsigned n);
void route_hosts_find6(const struct route_hosts *hosts, uint8_t (*addresses)[16], uint16_t *hops, unsigned n);

enum {
	ROUTE_OUT_OTHER = 8, // of an entry: the port that is not the one it came in by
	ROUTE_OUT_DROP,
	ROUTE_OUT_NONE, // no route
	ROUTE_OUTS = 16,
};

struct route_entry {
	uint64_t packets;
	uint8_t mac[6]; // of the next hop
	uint8_t out;    // port, or ROUTE_OUT_...
	bool has_mac;   // else the port's peer
} __attribute__((aligned(16)));

struct route_table {
	// [0]: no route; [i + 1]: prefixes[i]; then the next hops of hosts, from number 1.
	struct route_entry *entries;
	struct route_list list;         // sorted
	uint32_t *prefixes;             // of the list, in its order: the routes that are not in hosts
	size_t prefix_count, prefixes4; // all; of them IPv4, which come first
	struct route_hosts hosts;       // empty unless hosts_apart
	bool hosts_apart;
	struct route_memory memory; // of the two below
	struct rte_fib *fib4;       // or NULL: all is default4
	struct rte_fib6 *fib6;
	uint64_t default4, default6; // entry of /0, or 0
	uintptr_t first4;            // where DIR24_8 has the entry of 0.0.0.0, to prefetch from
	unsigned first4_shift;       // of the size of its entries
};

// Build a table of a sorted list, which it takes over, errors or not. Returns 0, or -errno after logging one
// line; close all the same. who names the task.
int route_table_open(struct route_table *table, struct route_list *list, bool hosts_apart, const char *who);
void route_table_close(struct route_table *table);

// How many entries there are.
static inline size_t route_table_entries(const struct route_table *table)
{
	return 1 + table->prefix_count + table->hosts.hops;
}

// The entry that counts for a route of the list: its own, or that of its next hop.
uint64_t route_table_entry(const struct route_table *table, size_t i);

// The entry of the route that to's address and version match; *to becomes its prefix. 0: none.
uint64_t route_table_lookup(const struct route_table *table, struct route *to);

// Say early that an address will be looked up. What is prefetched is a guess at DPDK's layout: with another
// one lookups are as right, and slower.
static inline void route_table_prefetch4(const struct route_table *table, uint32_t address)
{
	if (table->hosts.v4)
		cuckoo_prefetch(table->hosts.v4, address);
	else
		__builtin_prefetch(
		        (const void *)(table->first4 + ((uintptr_t)(address >> 8) << table->first4_shift)));
}

static inline void route_table_prefetch6(const struct route_table *table, const uint8_t address[static 16])
{
	if (table->hosts.v6)
		route_hosts_prefetch6(&table->hosts, address);
}

// As the two below, of prefixes alone.
static inline void route_prefixes_find4(const struct route_table *table, uint32_t *addresses,
                                        uint64_t *entries, unsigned n)
{
	if (likely(table->fib4 != NULL))
		rte_fib_lookup_bulk(table->fib4, addresses, entries, (int)n);
	else
		for (unsigned i = 0; i < n; i++)
			entries[i] = table->default4;
}

static inline void route_prefixes_find6(const struct route_table *table, uint8_t (*addresses)[16],
                                        uint64_t *entries, unsigned n)
{
	if (likely(table->fib6 != NULL))
		fib6_lookup(table->fib6, addresses, entries, (int)n);
	else
		for (unsigned i = 0; i < n; i++)
			entries[i] = table->default6;
}

// As the two below, of hosts and prefixes.
void route_both_find4(const struct route_table *table, const uint32_t *addresses, uint64_t *entries,
                      unsigned n);
void route_both_find6(const struct route_table *table, uint8_t (*addresses)[16], uint64_t *entries,
                      unsigned n);

// The entries of n addresses (1 .. 64).
static inline void route_table_find4(const struct route_table *table, uint32_t *addresses, uint64_t *entries,
                                     unsigned n)
{
	if (table->hosts.v4)
		route_both_find4(table, addresses, entries, n);
	else
		route_prefixes_find4(table, addresses, entries, n);
}

static inline void route_table_find6(const struct route_table *table, uint8_t (*addresses)[16],
                                     uint64_t *entries, unsigned n)
{
	if (table->hosts.v6)
		route_both_find6(table, addresses, entries, n);
	else
		route_prefixes_find6(table, addresses, entries, n);
}
