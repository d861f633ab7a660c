// SPDX-License-Identifier: BSD-3-Clause
// For tests and benches: a table of either width by one set of calls. Entries have numbers, and the kind says
// which keys these are.
#pragma once

#include <stdlib.h>

#include "table/cuckoo.h"
#include "base/random.h"

enum any_kind {
	ANY_COUNTED,   // 0, 1, 2 ...: 0 is a key, too
	ANY_OWNER_LOW, // in a row, in the upper bits
	ANY_OVERLAP,   // the same addresses of 63 owners
	ANY_NETWORKS,  // in a row, downwards
	ANY_RANDOM,
	ANY_KINDS,
};

struct any {
	struct cuckoo *table;
	enum cuckoo_width width;
	enum any_kind kind;
};

static inline uint64_t any_key(const struct any *any, uint64_t n)
{
	switch (any->kind) {
	case ANY_COUNTED:
		return n;
	case ANY_OWNER_LOW:
		return n << 16;
	case ANY_OVERLAP:
		return (n % 63 + 1) << 32 | (UINT64_C(0x0a000000) + n / 63);
	case ANY_NETWORKS:
		return UINT64_C(0xffffffffffff) - (n << 8);
	default:
		return n * RANDOM_GOLDEN >> 16;
	}
}

static inline struct cuckoo_wide_key any_wide_key(const struct any *any, uint64_t n)
{
	switch (any->kind) {
	case ANY_COUNTED:
		return (struct cuckoo_wide_key){0, n, 0};
	case ANY_OWNER_LOW:
		return (struct cuckoo_wide_key){n << 56 | n >> 8, 0, 0};
	case ANY_OVERLAP:
		return (struct cuckoo_wide_key){UINT64_C(0xb80d0120), n / 63, (uint16_t)(n % 63 + 1)};
	case ANY_NETWORKS:
		return (struct cuckoo_wide_key){n << 32, UINT64_MAX, UINT16_MAX};
	default:
		return (struct cuckoo_wide_key){n * RANDOM_GOLDEN, ~n, (uint16_t)n};
	}
}

// Returns what cuckoo_create does.
static inline int any_create(struct any *any, enum cuckoo_width width, uint64_t entries, uint64_t seed,
                             enum pages pages)
{
	const struct cuckoo_config config = {width, entries, seed, pages};

	any->width = width;
	return cuckoo_create(&config, &any->table);
}

static inline void any_prefetch(const struct any *any, uint64_t n)
{
	struct cuckoo_wide_key key = any_wide_key(any, n);

	if (any->width == CUCKOO_WIDE)
		cuckoo_wide_prefetch(any->table, &key);
	else
		cuckoo_prefetch(any->table, any_key(any, n));
}

static inline int any_put(const struct any *any, uint64_t n, uint16_t value, uint16_t *old)
{
	struct cuckoo_wide_key key = any_wide_key(any, n);

	return any->width == CUCKOO_WIDE ? cuckoo_wide_put(any->table, &key, value, old)
	                                 : cuckoo_put(any->table, any_key(any, n), value, old);
}

static inline uint16_t any_delete(const struct any *any, uint64_t n)
{
	struct cuckoo_wide_key key = any_wide_key(any, n);

	return any->width == CUCKOO_WIDE ? cuckoo_wide_delete(any->table, &key)
	                                 : cuckoo_delete(any->table, any_key(any, n));
}

static inline void any_find(const struct any *any, const uint64_t *ns, unsigned n, uint16_t *values)
{
	struct cuckoo_wide_key wide[CUCKOO_BULK_MAX];
	uint64_t narrow[CUCKOO_BULK_MAX];

	if (any->width == CUCKOO_WIDE) {
		for (unsigned i = 0; i < n; i++)
			wide[i] = any_wide_key(any, ns[i]);
		cuckoo_wide_find(any->table, wide, n, values);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		narrow[i] = any_key(any, ns[i]);
	cuckoo_find(any->table, narrow, n, values);
}

static inline struct cuckoo_stats any_stats(const struct any *any)
{
	struct cuckoo_stats stats;

	cuckoo_read_stats(any->table, &stats);
	return stats;
}

static inline uint64_t any_random(uint64_t *state) // xorshift64
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static inline uint64_t any_below(uint64_t *state, uint64_t n)
{
	return (uint64_t)((unsigned __int128)any_random(state) * n >> 64);
}
