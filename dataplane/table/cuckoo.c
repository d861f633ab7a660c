// SPDX-License-Identifier: BSD-3-Clause
#include "table/cuckoo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "table/cuckoo_table.h"
#include "base/random.h"
#include "base/isa.h"
#include "base/log.h"

ISA_DECLARE(void, cuckoo_find_run,
            (const struct cuckoo *table, const uint64_t *keys, unsigned n, uint16_t *values));
ISA_DECLARE(void, cuckoo_wide_find_run,
            (const struct cuckoo *table, const struct cuckoo_wide_key *keys, unsigned n, uint16_t *values));

static const cuckoo_find_fn finds[ISA_COUNT] = ISA_TABLE(cuckoo_find_run);
static const cuckoo_wide_find_fn wide_finds[ISA_COUNT] = ISA_TABLE(cuckoo_wide_find_run);

// Entries a bucket when as many are there as were asked for, in thousandths: of 8, of 3. A billion narrow
// entries take just under 8 GiB, so 1 GiB pages waste nothing.
enum { NARROW_LOAD = 7480, WIDE_LOAD = 2640 };

// Small tables have more room: by chance many keys of few may have the same buckets.
enum { SPARE_BUCKETS = 8 };

static uint64_t buckets_for(enum cuckoo_width width, uint64_t entries)
{
	uint64_t load = width == CUCKOO_WIDE ? WIDE_LOAD : NARROW_LOAD;

	return (entries * 1000 + load - 1) / load + SPARE_BUCKETS;
}

uint64_t cuckoo_bytes(enum cuckoo_width width, uint64_t entries)
{
	return buckets_for(width, entries) * sizeof(struct cuckoo_bucket);
}

void cuckoo_set_seed(struct cuckoo *table, uint64_t seed)
{
	table->seed = seed;
	for (unsigned i = 0; i < CUCKOO_FACTORS; i++)
		table->factors[i] = random_mix(seed + i * UINT64_C(0x632be59bd9b4e019)) | 1;
}

int cuckoo_create(const struct cuckoo_config *config, struct cuckoo **out)
{
	struct cuckoo *table;

	if (config->entries == 0 || config->entries > CUCKOO_ENTRIES_MAX) {
		LOG_ERROR("a table for %" PRIu64 " entries: 1 to %" PRIu64 " can be", config->entries,
		          (uint64_t)CUCKOO_ENTRIES_MAX);
		return -EINVAL;
	}
	table = aligned_alloc(64, sizeof(*table));
	if (table == NULL)
		return -ENOMEM;
	*table = (struct cuckoo){.width = config->width,
	                         .bucket_count = buckets_for(config->width, config->entries),
	                         .find = finds[isa_current()],
	                         .wide_find = wide_finds[isa_current()]};
	cuckoo_set_seed(table, config->seed);
	if (hugepages_map(&table->memory, table->bucket_count * sizeof(struct cuckoo_bucket),
	                  config->pages)) {
		free(table);
		return -ENOMEM;
	}
	table->bytes = table->memory.base;
	*out = table;
	return 0;
}

void cuckoo_destroy(struct cuckoo *table)
{
	if (table == NULL)
		return;
	hugepages_unmap(&table->memory);
	free(table);
}

void cuckoo_find(const struct cuckoo *table, const uint64_t *keys, unsigned n, uint16_t *values)
{
	table->find(table, keys, n, values);
}

void cuckoo_wide_find(const struct cuckoo *table, const struct cuckoo_wide_key *keys, unsigned n,
                      uint16_t *values)
{
	table->wide_find(table, keys, n, values);
}

uint64_t cuckoo_visit(struct cuckoo *table, uint64_t *cursor, uint64_t buckets,
                      const struct cuckoo_visitor *visitor)
{
	uint64_t deleted = 0;

	for (; buckets && *cursor < table->bucket_count; buckets--, ++*cursor)
		deleted += table->width == CUCKOO_WIDE
		                   ? cuckoo_wide_visit(table, (uint32_t)*cursor, visitor)
		                   : cuckoo_narrow_visit(table, (uint32_t)*cursor, visitor);
	if (*cursor >= table->bucket_count)
		*cursor = 0;
	return deleted;
}

static bool keep_none(void *context, uint64_t key, uint16_t value)
{
	return false;
}

static bool keep_none_wide(void *context, const struct cuckoo_wide_key *key, uint16_t value)
{
	return false;
}

void cuckoo_clear(struct cuckoo *table)
{
	const struct cuckoo_visitor nobody = {keep_none, keep_none_wide, NULL};
	uint64_t cursor = 0;

	cuckoo_visit(table, &cursor, table->bucket_count, &nobody);
}

void cuckoo_read_stats(const struct cuckoo *table, struct cuckoo_stats *stats)
{
	unsigned ways = cuckoo_shape(table)->ways;

	*stats = (struct cuckoo_stats){
	        .entries = atomic_load_explicit(&table->entries, memory_order_relaxed),
	        .room = table->bucket_count * ways,
	        .bytes = table->memory.mapped,
	        .moves = atomic_load_explicit(&table->moves, memory_order_relaxed),
	        .longest_path = atomic_load_explicit(&table->longest_path, memory_order_relaxed),
	        .pages = table->memory.pages};
}

// --- Room for a key whose two buckets are full ----------------------------------------------------------

// Room for a key whose two buckets are full: a breadth-first search over the buckets that entries could move
// to, so that as few as possible move. Nothing changes before a whole path to an empty place is known.

// Buckets that are looked at. With 95 % of the ways of a narrow table in use a dozen are enough nearly
// always.
enum { NODES = 512 };

struct node {
	uint32_t bucket;
	int16_t parent; // node whose entry may move here, or -1
	uint16_t way;   // of that entry
};

struct search {
	struct node nodes[NODES];
	int count;
};

// A bucket comes once on a path: what moves from it is what was there when it was looked at.
static bool is_on_path(const struct search *search, int node, uint32_t bucket)
{
	for (; node >= 0; node = search->nodes[node].parent)
		if (search->nodes[node].bucket == bucket)
			return true;
	return false;
}

static void add(struct search *search, uint32_t bucket, int parent, unsigned way)
{
	if (search->count < NODES && !is_on_path(search, parent, bucket))
		search->nodes[search->count++] = (struct node){bucket, (int16_t)parent, (uint16_t)way};
}

// The buckets that the entries of a node could move to. Their cache misses overlap.
static void expand(const struct cuckoo *table, const struct cuckoo_shape *shape, struct search *search,
                   int node)
{
	for (unsigned way = 0; way < shape->ways && search->count < NODES; way++) {
		uint32_t bucket = shape->other(table, (struct cuckoo_place){search->nodes[node].bucket, way});

		cuckoo_fetch(table, bucket);
		add(search, bucket, node, way);
	}
}

// The nearest node with an empty way, or -1.
static int find_node(const struct cuckoo *table, const struct cuckoo_shape *shape, struct search *search,
                     int *way)
{
	int expanded = 0;

	for (int node = 0; node < search->count; node++) {
		*way = shape->free_way(table, search->nodes[node].bucket);
		if (*way >= 0)
			return node;
		// Those of one node are prefetched together, before the first of them is looked at.
		if (node == search->count - 1)
			while (expanded <= node && search->count == node + 1)
				expand(table, shape, search, expanded++);
	}
	return -1;
}

static uint32_t move_along(struct cuckoo *table, const struct cuckoo_shape *shape,
                           const struct search *search, int node, struct cuckoo_place *place)
{
	uint32_t length = 0;

	for (; search->nodes[node].parent >= 0; node = search->nodes[node].parent, length++) {
		struct cuckoo_place from = {search->nodes[search->nodes[node].parent].bucket,
		                            search->nodes[node].way};

		shape->copy(table, from, *place);
		// Whoever sees `from` overwritten sees this, and then the copy.
		atomic_store_explicit(&table->moves,
		                      atomic_load_explicit(&table->moves, memory_order_relaxed) + 1,
		                      memory_order_release);
		*place = from;
	}
	return length;
}

int cuckoo_make_room(struct cuckoo *table, uint64_t pair, struct cuckoo_place *place)
{
	const struct cuckoo_shape *shape = cuckoo_shape(table);
	struct search search;
	uint32_t length;
	int node, way;

	search.count = 0;
	add(&search, cuckoo_first(pair), -1, 0);
	if (cuckoo_second(pair) != cuckoo_first(pair))
		add(&search, cuckoo_second(pair), -1, 0);
	node = find_node(table, shape, &search, &way);
	if (node < 0)
		return -ENOSPC;
	*place = (struct cuckoo_place){search.nodes[node].bucket, (uint32_t)way};
	length = move_along(table, shape, &search, node, place);
	if (length > atomic_load_explicit(&table->longest_path, memory_order_relaxed))
		atomic_store_explicit(&table->longest_path, length, memory_order_relaxed);
	return 0;
}
