// SPDX-License-Identifier: BSD-3-Clause
#include "lib/cuckoo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lib/cuckoo_table.h"
#include "lib/isa.h"
#include "lib/log.h"

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

static uint64_t scramble(uint64_t x) // splitmix64
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

void cuckoo_set_seed(struct cuckoo *table, uint64_t seed)
{
	table->seed = seed;
	for (unsigned i = 0; i < CUCKOO_FACTORS; i++)
		table->factors[i] = scramble(seed + i * UINT64_C(0x632be59bd9b4e019)) | 1;
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
		LOG_ERROR("no memory for a table of %" PRIu64 " entries: %" PRIu64 " MB on pages \"%s\"",
		          config->entries, cuckoo_bytes(config->width, config->entries) >> 20,
		          hugepages_name(config->pages));
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
