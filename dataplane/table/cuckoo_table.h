// SPDX-License-Identifier: BSD-3-Clause
// What a cuckoo table is made of, for the files cuckoo*.c.
//
// A key has two buckets that its hash gives; it is put into the first if there is room, so most lookups read
// one cache line. Whoever changes an entry stores with release, whoever reads loads with acquire: `moves` is
// counted between the copy of an entry and what overwrites the place where it was.
#pragma once

#include "table/cuckoo.h"

struct cuckoo_bucket { // an entry: key << 16 | value; a value of 0: none
	_Atomic uint64_t entry[CUCKOO_WAYS];
} __attribute__((aligned(64)));

struct cuckoo_wide_bucket {
	_Atomic uint64_t high[CUCKOO_WIDE_WAYS], low[CUCKOO_WIDE_WAYS];
	_Atomic uint16_t owner[CUCKOO_WIDE_WAYS], value[CUCKOO_WIDE_WAYS]; // value 0: none
	_Atomic uint32_t version;                                          // odd: being changed
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct cuckoo_bucket) == 64 && sizeof(struct cuckoo_wide_bucket) == 64,
               "a cache line each");

enum {
	CUCKOO_VALUE_BITS = 16,
	CUCKOO_FACTORS = 4,
};

typedef void (*cuckoo_find_fn)(const struct cuckoo *, const uint64_t *, unsigned, uint16_t *);
typedef void (*cuckoo_wide_find_fn)(const struct cuckoo *, const struct cuckoo_wide_key *, unsigned,
                                    uint16_t *);

struct cuckoo {
	union {
		struct cuckoo_bucket *narrow;
		struct cuckoo_wide_bucket *wide;
		uint8_t *bytes;
	};
	uint64_t bucket_count; // at most UINT32_MAX
	uint64_t factors[CUCKOO_FACTORS];
	uint64_t seed;
	cuckoo_find_fn find;
	cuckoo_wide_find_fn wide_find;
	enum cuckoo_width width;
	struct hugepages memory;
	// The writer's. Every lookup reads moves: what changes with each update is not in its cache line.
	_Atomic uint64_t moves __attribute__((aligned(64)));
	_Atomic uint64_t entries __attribute__((aligned(64)));
	_Atomic uint32_t longest_path;
};

struct cuckoo_place {
	uint32_t bucket;
	uint32_t way;
};

// The two buckets of a key: the first in the lower half of a word, the second in the upper, so that several
// are calculated at once where there are vectors.
static inline uint64_t cuckoo_pair_of(const struct cuckoo *table, uint64_t hash)
{
	uint64_t folded = hash ^ hash >> 32;
	uint64_t first = (hash >> 32) * table->bucket_count,
	         second = (folded & UINT32_MAX) * table->bucket_count;

	return first >> 32 | (second & ~(uint64_t)UINT32_MAX);
}

static inline uint32_t cuckoo_first(uint64_t pair)
{
	return (uint32_t)pair;
}

static inline uint32_t cuckoo_second(uint64_t pair)
{
	return (uint32_t)(pair >> 32);
}

// Multiply, fold, multiply (table/mac_table.h says why twice).
static inline uint64_t cuckoo_pair(const struct cuckoo *table, uint64_t key)
{
	uint64_t hash = key * table->factors[0];

	return cuckoo_pair_of(table, (hash ^ hash >> 32) * table->factors[1]);
}

static inline uint64_t cuckoo_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t cuckoo_wide_pair(const struct cuckoo *table, const struct cuckoo_wide_key *key)
{
	uint64_t hash = cuckoo_fold(key->high ^ table->factors[0], key->low ^ table->factors[1]);

	return cuckoo_pair_of(table, cuckoo_fold(hash ^ key->owner ^ table->factors[2], table->factors[3]));
}

// The other bucket of a key that has `bucket`.
static inline uint32_t cuckoo_other(uint64_t pair, uint32_t bucket)
{
	return cuckoo_first(pair) == bucket ? cuckoo_second(pair) : cuckoo_first(pair);
}

static inline bool cuckoo_belongs(uint64_t pair, uint32_t bucket)
{
	return cuckoo_first(pair) == bucket || cuckoo_second(pair) == bucket;
}

// Into the second-level cache: more of these can be under way at once than of those into the first (measured
// on Zen 4: 16 cycles a line of a gigabyte, not 23), and it is near enough.
static inline void cuckoo_fetch(const struct cuckoo *table, uint32_t bucket)
{
	__builtin_prefetch(table->bytes + (uint64_t)bucket * sizeof(struct cuckoo_bucket), 0, 2);
}

static inline uint64_t cuckoo_entry(const struct cuckoo_bucket *bucket, unsigned way)
{
	return atomic_load_explicit(&bucket->entry[way], memory_order_acquire);
}

// The value of a key in a bucket, or CUCKOO_NONE. An entry of the key is larger than key << 16 by its value:
// by 1 to 0xffff, so an empty one is not like the key 0.
static inline uint16_t cuckoo_bucket_find(const struct cuckoo_bucket *bucket, uint64_t key)
{
	uint64_t least = key << CUCKOO_VALUE_BITS | 1;
	uint16_t value = CUCKOO_NONE;

	for (unsigned way = 0; way < CUCKOO_WAYS; way++) {
		uint64_t entry = cuckoo_entry(bucket, way);

		if (entry - least < UINT16_MAX)
			value = (uint16_t)entry;
	}
	return value;
}

static inline uint16_t cuckoo_wide_value(const struct cuckoo_wide_bucket *bucket, unsigned way)
{
	return atomic_load_explicit(&bucket->value[way], memory_order_acquire);
}

// All three are compared, whatever the first says: a branch that nobody can foresee costs more.
static inline bool cuckoo_wide_is(const struct cuckoo_wide_bucket *bucket, unsigned way,
                                  const struct cuckoo_wide_key *key)
{
	uint64_t low = atomic_load_explicit(&bucket->low[way], memory_order_acquire) ^ key->low;
	uint64_t high = atomic_load_explicit(&bucket->high[way], memory_order_acquire) ^ key->high;
	uint16_t owner = atomic_load_explicit(&bucket->owner[way], memory_order_acquire) ^ key->owner;

	return (low | high | owner) == 0;
}

static inline uint16_t cuckoo_wide_bucket_find(const struct cuckoo_wide_bucket *bucket,
                                               const struct cuckoo_wide_key *key)
{
	uint32_t before, after;
	uint16_t value;

	do {
		value = CUCKOO_NONE;
		before = atomic_load_explicit(&bucket->version, memory_order_acquire);
		for (unsigned way = 0; way < CUCKOO_WIDE_WAYS; way++)
			value |= cuckoo_wide_value(bucket, way) &
			         -(uint16_t)cuckoo_wide_is(bucket, way, key); // 0 in an empty one
		after = atomic_load_explicit(&bucket->version, memory_order_relaxed);
	} while (before != after || before & 1);
	return value;
}

// What the search for room and the rest that is common needs to know of a width.
struct cuckoo_shape {
	unsigned ways;
	int (*free_way)(const struct cuckoo *table, uint32_t bucket);          // -1: none
	uint32_t (*other)(const struct cuckoo *table, struct cuckoo_place at); // bucket of the entry there
	void (*copy)(struct cuckoo *table, struct cuckoo_place from, struct cuckoo_place to);
	uint64_t (*check)(struct cuckoo *table, uint32_t bucket,
	                  bool *bad); // what was loaded, no key twice; entries
	void (*prefetch_all)(const struct cuckoo *table, const void *bucket);
	uint64_t (*put_all)(struct cuckoo *table, const void *bucket); // entries that found no room
};

extern const struct cuckoo_shape cuckoo_narrow_shape, cuckoo_wide_shape;

static inline const struct cuckoo_shape *cuckoo_shape(const struct cuckoo *table)
{
	return table->width == CUCKOO_WIDE ? &cuckoo_wide_shape : &cuckoo_narrow_shape;
}

// Find an empty place for a key with these buckets, moving entries if there is none. Returns 0 or -ENOSPC.
int cuckoo_make_room(struct cuckoo *table, uint64_t pair, struct cuckoo_place *place);

void cuckoo_set_seed(struct cuckoo *table, uint64_t seed);

// The writer's count of entries: nobody else stores.
static inline void cuckoo_count(struct cuckoo *table, int64_t more)
{
	uint64_t entries = atomic_load_explicit(&table->entries, memory_order_relaxed);

	atomic_store_explicit(&table->entries, entries + (uint64_t)more, memory_order_relaxed);
}

// One bucket of cuckoo_visit().
uint64_t cuckoo_narrow_visit(struct cuckoo *table, uint32_t bucket, const struct cuckoo_visitor *visitor);
uint64_t cuckoo_wide_visit(struct cuckoo *table, uint32_t bucket, const struct cuckoo_visitor *visitor);
