// SPDX-License-Identifier: BSD-3-Clause
#include "table/flow_table.h"

#include <errno.h>
#include <rte_common.h>
#include <stdlib.h>

#include "base/random.h"

// --- Made and ended --------------------------------------------------------------------------------------

static void secret_make(struct flow_table *table)
{
	for (size_t i = 0; i < RTE_DIM(table->secret); i++)
		table->secret[i] = random_secret();
	table->secret[FLOW_KEY_WORDS] |= 1;
}

// Written once, so that no page is missing when the first packets come.
static void *zeroed(size_t bytes)
{
	void *memory = aligned_alloc(64, RTE_ALIGN_CEIL(bytes, 64));

	if (memory)
		memset(memory, 0, bytes);
	return memory;
}

int flow_table_open(struct flow_table *table, uint32_t capacity, uint64_t timeout_tsc)
{
	uint32_t slots = rte_align32pow2(capacity * 2);

	table->mask = slots - 1;
	table->capacity = capacity;
	table->timeout_tsc = timeout_tsc;
	table->slots = zeroed(slots * sizeof(*table->slots));
	table->flows = zeroed(capacity * sizeof(*table->flows));
	table->links = zeroed(((size_t)capacity + 1) * sizeof(*table->links));
	if (!table->slots || !table->flows || !table->links)
		return -ENOMEM;
	secret_make(table);
	table->links[capacity] = (struct flow_link){capacity, capacity};
	for (uint32_t i = 0; i < capacity; i++)
		table->links[i].newer = i + 1 < capacity ? i + 1 : FLOW_NONE;
	table->free = 0;
	table->count = 0;
	return 0;
}

void flow_table_close(struct flow_table *table)
{
	free(table->slots);
	free(table->flows);
	free(table->links);
	*table = (struct flow_table){0};
}

// --- In and out ------------------------------------------------------------------------------------------

static void slot_take(struct flow_table *table, uint32_t hash, uint32_t index)
{
	uint32_t at = hash & table->mask;

	while (table->slots[at])
		at = (at + 1) & table->mask;
	table->slots[at] = (uint64_t)hash << 32 | (index + 1);
}

// What was probed past the hole moves into it (Knuth, TAOCP vol. 3, 6.4, algorithm R).
static void slot_free(struct flow_table *table, uint32_t index)
{
	const uint32_t mask = table->mask;
	uint32_t hole = flow_table_hash(table, &table->flows[index].key) & mask;

	while ((uint32_t)table->slots[hole] != index + 1)
		hole = (hole + 1) & mask;
	for (uint32_t at = (hole + 1) & mask; table->slots[at]; at = (at + 1) & mask) {
		uint32_t home = (uint32_t)(table->slots[at] >> 32) & mask;

		if (((at - home) & mask) >= ((at - hole) & mask)) {
			table->slots[hole] = table->slots[at];
			hole = at;
		}
	}
	table->slots[hole] = 0;
}

uint32_t flow_table_oldest(const struct flow_table *table)
{
	uint32_t oldest = table->links[table->capacity].newer;

	return oldest == table->capacity ? FLOW_NONE : oldest;
}

static void forget(struct flow_table *table, uint32_t index)
{
	struct flow *flow = &table->flows[index];

	if (table->gone)
		table->gone(table->owner, flow);
	slot_free(table, index);
	flow_table_unlink(table, index);
	*flow = (struct flow){0};
	table->links[index].newer = table->free;
	table->free = index;
	table->count--;
}

static uint32_t add(struct flow_table *table, const struct flow_key *key, uint32_t hash, uint64_t now_tsc)
{
	uint32_t index = table->free;
	struct flow *flow = &table->flows[index];

	table->free = table->links[index].newer;
	table->count++;
	*flow = (struct flow){.key = *key, .last_tsc = now_tsc};
	slot_take(table, hash, index);
	flow_table_link_newest(table, index);
	return index;
}

uint32_t flow_table_add(struct flow_table *table, const struct flow_key *key, uint32_t hash, uint64_t now_tsc)
{
	if (table->count == table->capacity) {
		uint32_t oldest = flow_table_oldest(table);

		if (!flow_is_idle(table, oldest, now_tsc))
			return FLOW_NONE;
		forget(table, oldest);
	}
	return add(table, key, hash, now_tsc);
}

void flow_table_renew(struct flow_table *table, uint32_t index)
{
	struct flow *flow = &table->flows[index];

	if (table->gone)
		table->gone(table->owner, flow);
	memset(flow->value, 0, sizeof(flow->value));
}

void flow_table_expire(struct flow_table *table, uint64_t now_tsc, uint32_t max)
{
	table->now_tsc = now_tsc;
	for (uint32_t oldest; max && table->count; max--) {
		oldest = flow_table_oldest(table);
		if (!flow_is_idle(table, oldest, now_tsc))
			return;
		forget(table, oldest);
	}
}
