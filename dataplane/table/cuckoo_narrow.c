// SPDX-License-Identifier: BSD-3-Clause
// Narrow tables: what the writer does. An entry is one word.
#include <errno.h>

#include "table/cuckoo_table.h"

static uint64_t key_of(uint64_t entry)
{
	return entry >> CUCKOO_VALUE_BITS;
}

static bool is_empty(uint64_t entry)
{
	return (uint16_t)entry == CUCKOO_NONE;
}

static void set(struct cuckoo *table, struct cuckoo_place at, uint64_t entry)
{
	atomic_store_explicit(&table->narrow[at.bucket].entry[at.way], entry, memory_order_release);
}

static uint64_t get(const struct cuckoo *table, struct cuckoo_place at)
{
	return cuckoo_entry(&table->narrow[at.bucket], at.way);
}

static int free_way(const struct cuckoo *table, uint32_t bucket)
{
	for (unsigned way = 0; way < CUCKOO_WAYS; way++)
		if (is_empty(get(table, (struct cuckoo_place){bucket, way})))
			return (int)way;
	return -1;
}

static uint32_t other(const struct cuckoo *table, struct cuckoo_place at)
{
	uint64_t pair = cuckoo_pair(table, key_of(get(table, at)));

	return cuckoo_other(pair, at.bucket);
}

static void copy(struct cuckoo *table, struct cuckoo_place from, struct cuckoo_place to)
{
	set(table, to, get(table, from));
}

static bool find_in(const struct cuckoo *table, uint32_t bucket, uint64_t key, struct cuckoo_place *place)
{
	for (unsigned way = 0; way < CUCKOO_WAYS; way++) {
		uint64_t entry = get(table, (struct cuckoo_place){bucket, way});

		if (!is_empty(entry) && key_of(entry) == key) {
			*place = (struct cuckoo_place){bucket, way};
			return true;
		}
	}
	return false;
}

static uint64_t check(struct cuckoo *table, uint32_t bucket, bool *bad)
{
	uint64_t entries = 0;

	for (unsigned way = 0; way < CUCKOO_WAYS; way++) {
		uint64_t entry = get(table, (struct cuckoo_place){bucket, way});
		uint64_t pair = cuckoo_pair(table, key_of(entry));
		struct cuckoo_place first = {0};

		if (is_empty(entry)) {
			*bad |= entry != 0;
			continue;
		}
		find_in(table, bucket, key_of(entry), &first);
		*bad |= !cuckoo_belongs(pair, bucket) || first.way != way;
		entries++;
	}
	return entries;
}

void cuckoo_prefetch(const struct cuckoo *table, uint64_t key)
{
	uint64_t pair = cuckoo_pair(table, key);

	cuckoo_fetch(table, cuckoo_first(pair));
	cuckoo_fetch(table, cuckoo_second(pair));
}

static void prefetch_all(const struct cuckoo *table, const void *bucket)
{
	const uint64_t *entries = bucket;

	for (unsigned way = 0; way < CUCKOO_WAYS; way++)
		cuckoo_prefetch(table, key_of(entries[way]));
}

static uint64_t put_all(struct cuckoo *table, const void *bucket)
{
	const uint64_t *entries = bucket;
	uint64_t lost = 0;
	uint16_t old;

	for (unsigned way = 0; way < CUCKOO_WAYS; way++)
		if (!is_empty(entries[way]))
			lost += cuckoo_put(table, key_of(entries[way]), (uint16_t)entries[way], &old) != 0;
	return lost;
}

const struct cuckoo_shape cuckoo_narrow_shape = {CUCKOO_WAYS, free_way,     other,  copy,
                                                 check,       prefetch_all, put_all};

static bool find(const struct cuckoo *table, uint64_t pair, uint64_t key, struct cuckoo_place *place)
{
	return find_in(table, cuckoo_first(pair), key, place) ||
	       find_in(table, cuckoo_second(pair), key, place);
}

int cuckoo_put(struct cuckoo *table, uint64_t key, uint16_t value, uint16_t *old)
{
	uint64_t pair = cuckoo_pair(table, key);
	uint64_t entry = key << CUCKOO_VALUE_BITS | value;
	struct cuckoo_place place;
	int rc;

	*old = CUCKOO_NONE;
	if (find(table, pair, key, &place)) {
		*old = (uint16_t)get(table, place);
		set(table, place, entry);
		return 0;
	}
	rc = cuckoo_make_room(table, pair, &place);
	if (rc)
		return rc;
	set(table, place, entry);
	cuckoo_count(table, 1);
	return 0;
}

uint16_t cuckoo_delete(struct cuckoo *table, uint64_t key)
{
	struct cuckoo_place place;
	uint16_t old;

	if (!find(table, cuckoo_pair(table, key), key, &place))
		return CUCKOO_NONE;
	old = (uint16_t)get(table, place);
	set(table, place, 0);
	cuckoo_count(table, -1);
	return old;
}

uint64_t cuckoo_narrow_visit(struct cuckoo *table, uint32_t bucket, const struct cuckoo_visitor *visitor)
{
	uint64_t deleted = 0;

	for (unsigned way = 0; way < CUCKOO_WAYS; way++) {
		struct cuckoo_place at = {bucket, way};
		uint64_t entry = get(table, at);

		if (is_empty(entry) || visitor->keep(visitor->context, key_of(entry), (uint16_t)entry))
			continue;
		set(table, at, 0);
		deleted++;
	}
	cuckoo_count(table, -(int64_t)deleted);
	return deleted;
}
