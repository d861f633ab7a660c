// SPDX-License-Identifier: BSD-3-Clause
// Wide tables: what the writer does. A bucket has a version, which is odd while an entry changes.
#include <errno.h>

#include "table/cuckoo_table.h"

static struct cuckoo_wide_key key_at(const struct cuckoo *table, struct cuckoo_place at)
{
	const struct cuckoo_wide_bucket *bucket = &table->wide[at.bucket];

	return (struct cuckoo_wide_key){
	        .high = atomic_load_explicit(&bucket->high[at.way], memory_order_relaxed),
	        .low = atomic_load_explicit(&bucket->low[at.way], memory_order_relaxed),
	        .owner = atomic_load_explicit(&bucket->owner[at.way], memory_order_relaxed)};
}

static uint16_t value_at(const struct cuckoo *table, struct cuckoo_place at)
{
	return cuckoo_wide_value(&table->wide[at.bucket], at.way);
}

// A release is never before what was stored earlier: the fields not before the odd version, the even one not
// before the fields.
static void set(struct cuckoo *table, struct cuckoo_place at, const struct cuckoo_wide_key *key,
                uint16_t value)
{
	struct cuckoo_wide_bucket *bucket = &table->wide[at.bucket];
	uint32_t version = atomic_load_explicit(&bucket->version, memory_order_relaxed);

	atomic_store_explicit(&bucket->version, version + 1, memory_order_release);
	atomic_store_explicit(&bucket->high[at.way], key->high, memory_order_release);
	atomic_store_explicit(&bucket->low[at.way], key->low, memory_order_release);
	atomic_store_explicit(&bucket->owner[at.way], key->owner, memory_order_release);
	atomic_store_explicit(&bucket->value[at.way], value, memory_order_release);
	atomic_store_explicit(&bucket->version, version + 2, memory_order_release);
}

static void set_value(struct cuckoo *table, struct cuckoo_place at, uint16_t value)
{
	atomic_store_explicit(&table->wide[at.bucket].value[at.way], value, memory_order_release);
}

static int free_way(const struct cuckoo *table, uint32_t bucket)
{
	for (unsigned way = 0; way < CUCKOO_WIDE_WAYS; way++)
		if (value_at(table, (struct cuckoo_place){bucket, way}) == CUCKOO_NONE)
			return (int)way;
	return -1;
}

static uint32_t other(const struct cuckoo *table, struct cuckoo_place at)
{
	struct cuckoo_wide_key key = key_at(table, at);
	uint64_t pair = cuckoo_wide_pair(table, &key);

	return cuckoo_other(pair, at.bucket);
}

static void copy(struct cuckoo *table, struct cuckoo_place from, struct cuckoo_place to)
{
	struct cuckoo_wide_key key = key_at(table, from);

	set(table, to, &key, value_at(table, from));
}

static bool find_in(const struct cuckoo *table, uint32_t bucket, const struct cuckoo_wide_key *key,
                    struct cuckoo_place *place)
{
	for (unsigned way = 0; way < CUCKOO_WIDE_WAYS; way++) {
		*place = (struct cuckoo_place){bucket, way};
		if (cuckoo_wide_is(&table->wide[bucket], way, key) && value_at(table, *place) != CUCKOO_NONE)
			return true;
	}
	return false;
}

static uint64_t check(struct cuckoo *table, uint32_t bucket, bool *bad)
{
	uint64_t entries = 0;

	*bad |= atomic_load_explicit(&table->wide[bucket].version, memory_order_relaxed) & 1;
	for (unsigned way = 0; way < CUCKOO_WIDE_WAYS; way++) {
		struct cuckoo_place at = {bucket, way}, first;
		struct cuckoo_wide_key key = key_at(table, at);
		uint64_t pair = cuckoo_wide_pair(table, &key);

		if (value_at(table, at) == CUCKOO_NONE)
			continue;
		find_in(table, bucket, &key, &first);
		*bad |= !cuckoo_belongs(pair, bucket) || first.way != way;
		entries++;
	}
	return entries;
}

void cuckoo_wide_prefetch(const struct cuckoo *table, const struct cuckoo_wide_key *key)
{
	uint64_t pair = cuckoo_wide_pair(table, key);

	cuckoo_fetch(table, cuckoo_first(pair));
	cuckoo_fetch(table, cuckoo_second(pair));
}

static void prefetch_all(const struct cuckoo *table, const void *bucket)
{
	const struct cuckoo_wide_bucket *from = bucket;

	for (unsigned way = 0; way < CUCKOO_WIDE_WAYS; way++) {
		struct cuckoo_wide_key key = {from->high[way], from->low[way], from->owner[way]};

		cuckoo_wide_prefetch(table, &key);
	}
}

static uint64_t put_all(struct cuckoo *table, const void *bucket)
{
	const struct cuckoo_wide_bucket *from = bucket;
	uint64_t lost = 0;
	uint16_t old;

	for (unsigned way = 0; way < CUCKOO_WIDE_WAYS; way++) {
		struct cuckoo_wide_key key = {from->high[way], from->low[way], from->owner[way]};

		if (from->value[way] != CUCKOO_NONE)
			lost += cuckoo_wide_put(table, &key, from->value[way], &old) != 0;
	}
	return lost;
}

const struct cuckoo_shape cuckoo_wide_shape = {CUCKOO_WIDE_WAYS, free_way, other, copy, check,
                                               prefetch_all,     put_all};

static bool find(const struct cuckoo *table, uint64_t pair, const struct cuckoo_wide_key *key,
                 struct cuckoo_place *place)
{
	return find_in(table, cuckoo_first(pair), key, place) ||
	       find_in(table, cuckoo_second(pair), key, place);
}

int cuckoo_wide_put(struct cuckoo *table, const struct cuckoo_wide_key *key, uint16_t value, uint16_t *old)
{
	uint64_t pair = cuckoo_wide_pair(table, key);
	struct cuckoo_place place;
	int rc;

	*old = CUCKOO_NONE;
	if (find(table, pair, key, &place)) {
		*old = value_at(table, place);
		set_value(table, place, value);
		return 0;
	}
	rc = cuckoo_make_room(table, pair, &place);
	if (rc)
		return rc;
	set(table, place, key, value);
	cuckoo_count(table, 1);
	return 0;
}

uint16_t cuckoo_wide_delete(struct cuckoo *table, const struct cuckoo_wide_key *key)
{
	struct cuckoo_place place;
	uint16_t old;

	if (!find(table, cuckoo_wide_pair(table, key), key, &place))
		return CUCKOO_NONE;
	old = value_at(table, place);
	set_value(table, place, CUCKOO_NONE);
	cuckoo_count(table, -1);
	return old;
}

uint64_t cuckoo_wide_visit(struct cuckoo *table, uint32_t bucket, const struct cuckoo_visitor *visitor)
{
	uint64_t deleted = 0;

	for (unsigned way = 0; way < CUCKOO_WIDE_WAYS; way++) {
		struct cuckoo_place at = {bucket, way};
		struct cuckoo_wide_key key = key_at(table, at);
		uint16_t value = value_at(table, at);

		if (value == CUCKOO_NONE || visitor->keep_wide(visitor->context, &key, value))
			continue;
		set_value(table, at, CUCKOO_NONE);
		deleted++;
	}
	cuckoo_count(table, -(int64_t)deleted);
	return deleted;
}
