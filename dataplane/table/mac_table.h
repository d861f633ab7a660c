// SPDX-License-Identifier: BSD-3-Clause
// Where stations are: (VLAN, MAC) -> port, of a fixed size, 4-way set-associative, one cache line a bucket.
//
// Threads: any number of workers look up and learn in one table without locks; the control thread lists and
// flushes meanwhile. An entry is one 64-bit word, so nobody sees half of one, and what is written over
// another is exchanged for it: a race is lost, never mixed up. When a station was last heard is a word of its
// own beside it; with the wrong entry it is at most a little too young. Counters belong to the caller: one
// worker each.
//
// A table that is full forgets: the oldest of a bucket makes room. Created and destroyed on the control
// thread.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

enum {
	MAC_TABLE_WAYS = 4,
	MAC_TABLE_PORT_BITS = 5,
	MAC_TABLE_PORTS = 1 << MAC_TABLE_PORT_BITS,
	MAC_TABLE_NONE = MAC_TABLE_PORTS, // not a port: nothing is known
	MAC_TABLE_SIZE_MIN = 16,
	MAC_TABLE_REFRESH_HZ =
	        8, // how often a station that talks is noted: rarely, for the line may be shared
};

#define MAC_BITS UINT64_C(0xffffffffffff)

// entry: 47 bits of the address (the group bit of a station is 0 and left out), 12 of the VLAN, 5 of the
// port:
// 64. An entry of 0 is none: the address 0 is nobody's.
struct mac_bucket {
	_Atomic uint64_t entry[MAC_TABLE_WAYS];
	_Atomic uint64_t seen_tsc[MAC_TABLE_WAYS];
} __attribute__((aligned(64)));

struct mac_table {
	struct mac_bucket *buckets;
	uint64_t multipliers[2]; // odd and secret: guests choose addresses
	unsigned shift;
	unsigned bucket_count;
	int64_t ageing_cycles; // 0: entries do not age
	int64_t refresh_cycles;
};

// What one worker counts. Entries that are gone: aged + replaced + flushed, and those that aged and were not met
// since.
struct mac_counts {
	uint64_t slow; // what took longer than one that is known: all below, and what was noted again
	uint64_t learned;
	uint64_t moved;    // heard on another port: the newest counts
	uint64_t aged;     // met when they were too old
	uint64_t replaced; // the oldest of a full bucket
};

// An entry as it is listed.
struct mac_entry {
	uint8_t mac[6];
	uint16_t vlan;
	uint16_t port;
	uint64_t age_cycles;
};

// size: entries, a power of two of MAC_TABLE_SIZE_MIN to _MAX. seed: what the hash is made of; the same gives
// the same. ageing_cycles: 0 = never. Returns NULL without memory.
struct mac_table *mac_table_create(uint32_t size, uint64_t ageing_cycles, uint64_t tsc_hz, uint64_t seed);
void mac_table_destroy(struct mac_table *table); // NULL is nothing

// The first six bytes of a word in memory order, as they are loaded from a frame.
static inline bool mac_is_group(uint64_t mac)
{
	return mac & 1; // IEEE 802 s8.2.2: the first bit on the wire
}

static inline uint64_t mac_key(uint64_t mac, uint16_t vlan)
{
	return (mac & MAC_BITS) >> 1 | (uint64_t)vlan << 47;
}

// Multiply, fold, multiply: no chooser of addresses can aim at a bucket while the factors are secret. One
// multiplication alone keeps two keys apart, not a hundred: addresses handed out in a row, as hypervisors do,
// fell into a few buckets with one factor in thirty, and a table a tenth full lost most of them. The second
// costs 4 cycles of latency, hidden in a burst.
static inline struct mac_bucket *mac_table_bucket(const struct mac_table *table, uint64_t key)
{
	uint64_t hash = key * table->multipliers[0];

	return &table->buckets[((hash ^ hash >> 32) * table->multipliers[1]) >> table->shift];
}

// Time may come from another CPU and be a little ahead of ours.
static inline bool mac_table_is_old(const struct mac_table *table, uint64_t seen_tsc, uint64_t now_tsc)
{
	return table->ageing_cycles && (int64_t)(now_tsc - seen_tsc) >= table->ageing_cycles;
}

static inline int mac_bucket_find(struct mac_bucket *bucket, uint64_t key, uint64_t *entry)
{
	for (int way = 0; way < MAC_TABLE_WAYS; way++) {
		*entry = atomic_load_explicit(&bucket->entry[way], memory_order_relaxed);
		if (*entry >> MAC_TABLE_PORT_BITS == key)
			return way;
	}
	return -1;
}

// The port of a station, or MAC_TABLE_NONE. bucket: that of the key. Not for groups.
static inline unsigned mac_table_lookup(const struct mac_table *table, struct mac_bucket *bucket,
                                        uint64_t key, uint64_t now_tsc, struct mac_counts *counts)
{
	uint64_t entry, seen;
	int way = mac_bucket_find(bucket, key, &entry);

	if (way < 0 || unlikely(entry == 0)) // the key 0 is like no entry
		return MAC_TABLE_NONE;
	seen = atomic_load_explicit(&bucket->seen_tsc[way], memory_order_relaxed);
	if (unlikely(mac_table_is_old(table, seen, now_tsc))) {
		if (atomic_compare_exchange_strong(&bucket->entry[way], &entry, 0))
			counts->aged++;
		return MAC_TABLE_NONE;
	}
	return entry & (MAC_TABLE_PORTS - 1);
}

// What is new, moved or old; way: where the key was found, or -1.
void mac_table_learn_slow(const struct mac_table *table, struct mac_bucket *bucket, int way, uint64_t key,
                          unsigned port, uint64_t now_tsc, struct mac_counts *counts);

// A frame of this station has come by this port. Not for groups, nor for the address 0.
static inline void mac_table_learn(const struct mac_table *table, struct mac_bucket *bucket, uint64_t key,
                                   unsigned port, uint64_t now_tsc, struct mac_counts *counts)
{
	uint64_t entry;
	int way = mac_bucket_find(bucket, key, &entry);

	if (likely(way >= 0 && (entry & (MAC_TABLE_PORTS - 1)) == port)) {
		uint64_t seen = atomic_load_explicit(&bucket->seen_tsc[way], memory_order_relaxed);

		if (likely((int64_t)(now_tsc - seen) < table->refresh_cycles))
			return;
	}
	mac_table_learn_slow(table, bucket, way, key, port, now_tsc, counts);
}

// Entries that are not too old: up to max of them into entries, beginning with bucket *bucket, which is moved
// on; whole buckets, so max is at least MAC_TABLE_WAYS. Returns how many; *bucket == bucket_count: that was
// all.
unsigned mac_table_list(const struct mac_table *table, unsigned *bucket, struct mac_entry *entries,
                        unsigned max, uint64_t now_tsc);

unsigned mac_table_count(const struct mac_table *table, uint64_t now_tsc);

// Forget everything. Returns how many entries there were that were not too old.
unsigned mac_table_flush(struct mac_table *table, uint64_t now_tsc);
