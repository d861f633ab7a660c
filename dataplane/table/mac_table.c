// SPDX-License-Identifier: BSD-3-Clause
#include "table/mac_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"

_Static_assert(sizeof(struct mac_bucket) == 64, "one cache line a bucket");
_Static_assert(47 + 12 + MAC_TABLE_PORT_BITS == 64, "address, VLAN and port fill an entry");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the group bit of a loaded address is bit 0");

struct mac_table *mac_table_create(uint32_t size, uint64_t ageing_cycles, uint64_t tsc_hz, uint64_t seed)
{
	struct mac_table *table = calloc(1, sizeof(*table));
	uint32_t count = size / MAC_TABLE_WAYS;
	struct mac_bucket *buckets = table ? aligned_alloc(64, count * sizeof(*buckets)) : NULL;

	if (buckets == NULL) {
		free(table);
		return NULL;
	}
	memset(buckets, 0, count * sizeof(*buckets));
	table->buckets = buckets;
	table->bucket_count = count;
	table->shift = 64 - (unsigned)__builtin_ctz(count);
	table->multipliers[0] = random_mix(seed) | 1;
	table->multipliers[1] = random_mix(~seed) | 1;
	table->ageing_cycles = (int64_t)ageing_cycles;
	table->refresh_cycles = (int64_t)(tsc_hz / MAC_TABLE_REFRESH_HZ);
	return table;
}

void mac_table_destroy(struct mac_table *table)
{
	if (table == NULL)
		return;
	free(table->buckets);
	free(table);
}

// Where a new entry goes: an empty way, one that is too old, the oldest. *old: what is there now.
static int choose_way(const struct mac_table *table, struct mac_bucket *bucket, uint64_t now_tsc,
                      uint64_t *old, bool *too_old)
{
	int64_t greatest_age = INT64_MIN;
	int chosen = 0;

	for (int way = 0; way < MAC_TABLE_WAYS; way++) {
		uint64_t entry = atomic_load_explicit(&bucket->entry[way], memory_order_relaxed);
		uint64_t seen = atomic_load_explicit(&bucket->seen_tsc[way], memory_order_relaxed);

		if (entry == 0) {
			*old = 0;
			return way;
		}
		if ((int64_t)(now_tsc - seen) > greatest_age) {
			greatest_age = (int64_t)(now_tsc - seen);
			chosen = way;
			*old = entry;
		}
	}
	*too_old = table->ageing_cycles && greatest_age >= table->ageing_cycles;
	return chosen;
}

static void insert(const struct mac_table *table, struct mac_bucket *bucket, uint64_t wanted,
                   uint64_t now_tsc, struct mac_counts *counts)
{
	bool too_old = false;
	uint64_t old = 0;
	int way = choose_way(table, bucket, now_tsc, &old, &too_old);

	// Another worker may have been faster: the next frame of the station tries again.
	if (!atomic_compare_exchange_strong(&bucket->entry[way], &old, wanted))
		return;
	atomic_store_explicit(&bucket->seen_tsc[way], now_tsc, memory_order_relaxed);
	counts->learned++;
	if (old && too_old)
		counts->aged++;
	else if (old)
		counts->replaced++;
}

void mac_table_learn_slow(const struct mac_table *table, struct mac_bucket *bucket, int way, uint64_t key,
                          unsigned port, uint64_t now_tsc, struct mac_counts *counts)
{
	uint64_t wanted = key << MAC_TABLE_PORT_BITS | port, old, seen;

	counts->slow++;
	if (way < 0) {
		insert(table, bucket, wanted, now_tsc, counts);
		return;
	}
	seen = atomic_load_explicit(&bucket->seen_tsc[way], memory_order_relaxed);
	old = atomic_load_explicit(&bucket->entry[way], memory_order_relaxed);
	if (old >> MAC_TABLE_PORT_BITS != key ||
	    !atomic_compare_exchange_strong(&bucket->entry[way], &old, wanted))
		return; // as above
	atomic_store_explicit(&bucket->seen_tsc[way], now_tsc, memory_order_relaxed);
	if (mac_table_is_old(table, seen, now_tsc)) {
		counts->aged++;
		counts->learned++;
	} else if (old != wanted) {
		counts->moved++;
	}
}

// Two workers that learned a station at once may each have made an entry: the first is the one that is used.
static bool is_shadowed(struct mac_bucket *bucket, int way, uint64_t entry)
{
	uint64_t first;

	return mac_bucket_find(bucket, entry >> MAC_TABLE_PORT_BITS, &first) < way;
}

static bool read_entry(const struct mac_table *table, struct mac_bucket *bucket, int way, uint64_t now_tsc,
                       struct mac_entry *out)
{
	uint64_t entry = atomic_load_explicit(&bucket->entry[way], memory_order_relaxed);
	uint64_t seen = atomic_load_explicit(&bucket->seen_tsc[way], memory_order_relaxed);
	uint64_t mac = entry >> MAC_TABLE_PORT_BITS << 1 & MAC_BITS;

	if (entry == 0 || mac_table_is_old(table, seen, now_tsc) || is_shadowed(bucket, way, entry))
		return false;
	memcpy(out->mac, &mac, sizeof(out->mac));
	out->vlan = (uint16_t)(entry >> (47 + MAC_TABLE_PORT_BITS));
	out->port = entry & (MAC_TABLE_PORTS - 1);
	out->age_cycles = (int64_t)(now_tsc - seen) > 0 ? now_tsc - seen : 0;
	return true;
}

unsigned mac_table_list(const struct mac_table *table, unsigned *bucket, struct mac_entry *entries,
                        unsigned max, uint64_t now_tsc)
{
	unsigned count = 0;

	for (; *bucket < table->bucket_count && count + MAC_TABLE_WAYS <= max; ++*bucket)
		for (int way = 0; way < MAC_TABLE_WAYS; way++)
			count += read_entry(table, &table->buckets[*bucket], way, now_tsc, &entries[count]);
	return count;
}

unsigned mac_table_count(const struct mac_table *table, uint64_t now_tsc)
{
	struct mac_entry ignored;
	unsigned count = 0;

	for (unsigned i = 0; i < table->bucket_count; i++)
		for (int way = 0; way < MAC_TABLE_WAYS; way++)
			count += read_entry(table, &table->buckets[i], way, now_tsc, &ignored);
	return count;
}

unsigned mac_table_flush(struct mac_table *table, uint64_t now_tsc)
{
	unsigned count = mac_table_count(table, now_tsc);

	for (unsigned i = 0; i < table->bucket_count; i++)
		for (int way = 0; way < MAC_TABLE_WAYS; way++)
			atomic_store_explicit(&table->buckets[i].entry[way], 0, memory_order_relaxed);
	return count;
}
