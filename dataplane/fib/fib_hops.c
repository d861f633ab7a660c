// SPDX-License-Identifier: BSD-3-Clause
// Next hops. An index (the value in the tables) leads by a slot to the record that readers see. A change is a
// new record in the slot. An index is used again only when no entry of a table leads to it and every reader
// has let go; a reader may then still hold its value, so the slot of a hop that merely has no routes left
// stays as it is: only a flush takes it away.
#include <errno.h>
#include <stdlib.h>

#include "fib/fib_state.h"

static void slot_set(struct fib *fib, uint16_t index, const struct fib_hop *hop)
{
	atomic_store_explicit(&fib->slots[index], hop, memory_order_release);
}

static void hops_add(struct fib_group *group, int change)
{
	uint32_t hops = atomic_load_explicit(&group->hops, memory_order_relaxed);

	atomic_store_explicit(&group->hops, hops + (uint32_t)change, memory_order_relaxed);
}

static uint32_t hops_of(const struct fib_vnf *vnf, unsigned group)
{
	return atomic_load_explicit(&vnf->groups[group].hops, memory_order_relaxed);
}

void fib_hop_link(struct fib *fib, struct fib_group *group, uint16_t index)
{
	struct fib_entry *entry = &fib->entries[index];

	entry->previous = 0;
	entry->next = group->first;
	if (group->first)
		fib->entries[group->first].previous = index;
	else
		group->last = index;
	group->first = index;
	hops_add(group, 1);
}

static void unlink(struct fib *fib, struct fib_group *group, uint16_t index)
{
	struct fib_entry *entry = &fib->entries[index];

	if (entry->next)
		fib->entries[entry->next].previous = entry->previous;
	else
		group->last = entry->previous;
	if (entry->previous)
		fib->entries[entry->previous].next = entry->next;
	else
		group->first = entry->next;
	hops_add(group, -1);
}

// Which map a session's hops are found by; -1: it is not the present one.
static int map_of(const struct fib_vnf *vnf, uint32_t session)
{
	if (session == FIB_OPERATOR)
		return GROUP_OPERATOR;
	return session == atomic_load_explicit(&vnf->session, memory_order_relaxed) ? GROUP_SESSION : -1;
}

// A number leads to an index that may have gone to someone else since.
uint16_t fib_hop_find(const struct fib *fib, const struct fib_vnf *vnf, uint16_t vnf_number, uint32_t session,
                      uint16_t number)
{
	int map = map_of(vnf, session);
	const struct fib_entry *entry;
	uint16_t index;

	if (map < 0 || number >= FIB_HOP_NUMBERS || vnf->numbers[map] == NULL)
		return 0;
	index = vnf->numbers[map][number];
	entry = &fib->entries[index];
	if (index == 0 || !entry->used || entry->dead || entry->vnf != vnf_number || entry->number != number)
		return 0;
	return fib_group_of(vnf, entry) == (unsigned)map ? index : 0;
}

// A record that holds the hop, or 0 and *rc.
static uint32_t record_take(struct fib *fib, const struct fib_hop *hop, int *rc)
{
	uint32_t record = fib_pool_take(&fib->records_free, fib->readers);

	*rc = record ? 0 : -EAGAIN; // there are two for each index: readers have not let go yet
	if (record)
		fib->records[record] = *hop;
	return record;
}

static uint16_t index_take(struct fib *fib, int *rc)
{
	uint32_t index = fib_pool_take(&fib->indices_free, fib->readers);

	*rc = index ? 0 : fib_pool_is_waiting(&fib->indices_free) || fib_is_dirty(fib) ? -EAGAIN : -ENOSPC;
	return (uint16_t)index;
}

// Stale ones are for a while beside those of the session, and dead ones until they are swept: three times the
// quota bounds what a VNF can take that begins again and again.
static int may_have_another(const struct fib_vnf *vnf)
{
	uint32_t quota = atomic_load_explicit(&vnf->quota_hops, memory_order_relaxed);

	if (hops_of(vnf, GROUP_OPERATOR) + hops_of(vnf, GROUP_SESSION) >= quota)
		return -EDQUOT;
	return vnf->indices < 3 * (uint64_t)quota ? 0 : -EAGAIN;
}

static int hop_change(struct fib *fib, uint16_t index, const struct fib_hop *hop)
{
	struct fib_entry *entry = &fib->entries[index];
	uint32_t record;
	int rc;

	if (memcmp(&fib->records[entry->record], hop, sizeof(*hop)) == 0)
		return 0;
	record = record_take(fib, hop, &rc);
	if (rc)
		return rc;
	slot_set(fib, index, &fib->records[record]);
	fib_pool_give(&fib->records_free, fib->readers, entry->record);
	entry->record = record;
	return 0;
}

static int hop_add(struct fib *fib, struct fib_vnf *vnf, const struct fib_entry *new, int map,
                   const struct fib_hop *hop)
{
	int rc = may_have_another(vnf);
	uint16_t index;
	uint32_t record;

	if (rc)
		return rc;
	record = record_take(fib, hop, &rc);
	if (rc)
		return rc;
	index = index_take(fib, &rc);
	if (rc) {
		fib_pool_give(&fib->records_free, fib->readers, record);
		return rc;
	}
	fib->entries[index] = *new;
	fib->entries[index].record = record;
	vnf->numbers[map][new->number] = index;
	vnf->indices++;
	fib_hop_link(fib, &vnf->groups[map], index);
	slot_set(fib, index, &fib->records[record]);
	return 0;
}

int fib_hop_set(struct fib *fib, uint16_t vnf, uint32_t session, uint16_t number, const struct fib_hop *given)
{
	struct fib_hop copy = *given, *hop = &copy;
	struct fib_vnf *v = fib_vnf_of(fib, vnf);
	struct fib_entry new = {.session = session, .vnf = vnf, .number = number, .used = true};
	uint16_t index;
	int map;

	if (v == NULL || number >= FIB_HOP_NUMBERS || hop->kind == FIB_HOP_NONE ||
	    hop->kind > FIB_HOP_BLACKHOLE)
		return -EINVAL;
	memset(copy.pad, 0, sizeof(copy.pad));
	map = map_of(v, session);
	if (map < 0)
		return -ENOENT;
	index = fib_hop_find(fib, v, vnf, session, number);
	if (index)
		return hop_change(fib, index, hop);
	new.generation = v->generation;
	return hop_add(fib, v, &new, map, hop);
}

int fib_hop_delete(struct fib *fib, uint16_t vnf, uint32_t session, uint16_t number)
{
	struct fib_vnf *v = fib_vnf_of(fib, vnf);
	uint16_t index = v ? fib_hop_find(fib, v, vnf, session, number) : 0;

	if (index == 0)
		return -ENOENT;
	if (fib->entries[index].routes[FIB_V4] || fib->entries[index].routes[FIB_V6])
		return -EBUSY;
	fib_hop_free(fib, v, index);
	return 0;
}

void fib_hop_free(struct fib *fib, struct fib_vnf *vnf, uint16_t index)
{
	struct fib_entry *entry = &fib->entries[index];

	if (!entry->dead) {
		unlink(fib, &vnf->groups[fib_group_of(vnf, entry)], index);
		fib_pool_give(&fib->records_free, fib->readers, entry->record);
	}
	entry->used = false;
	vnf->indices--;
	fib_pool_give(&fib->indices_free, fib->readers, index);
}

void fib_hop_kill(struct fib *fib, struct fib_vnf *vnf, uint16_t index)
{
	struct fib_entry *entry = &fib->entries[index];

	if (entry->routes[FIB_V4] + entry->routes[FIB_V6] == 0) {
		fib_hop_free(fib, vnf, index);
		return;
	}
	slot_set(fib, index, &fib->none);
	unlink(fib, &vnf->groups[fib_group_of(vnf, entry)], index);
	fib_pool_give(&fib->records_free, fib->readers, entry->record);
	entry->dead = true;
	for (unsigned family = 0; family < FIB_FAMILIES; family++)
		fib_add(&fib->dead[family], (int64_t)entry->routes[family]);
}

// --- Pools of indices and records -----------------------------------------------------------------------

int fib_pool_open(struct fib_pool *pool, uint32_t size)
{
	*pool = (struct fib_pool){.given = calloc(size, sizeof(*pool->given)), .size = size, .fresh = 1};
	return pool->given ? 0 : -ENOMEM;
}

void fib_pool_close(struct fib_pool *pool)
{
	free(pool->given);
	pool->given = NULL;
}

void fib_pool_reset(struct fib_pool *pool)
{
	pool->head = pool->count = 0;
	pool->fresh = 1;
}

// One that was used before is in the cache; those never used cost memory.
uint32_t fib_pool_take(struct fib_pool *pool, struct rte_rcu_qsbr *readers)
{
	struct fib_given *first = &pool->given[pool->head];

	if (pool->count && rte_rcu_qsbr_check(readers, first->token, false)) {
		pool->head = (pool->head + 1) % pool->size;
		pool->count--;
		return first->number;
	}
	return pool->fresh <= pool->size ? pool->fresh++ : 0;
}

void fib_pool_give(struct fib_pool *pool, struct rte_rcu_qsbr *readers, uint32_t number)
{
	pool->given[(pool->head + pool->count++) % pool->size] =
	        (struct fib_given){.token = rte_rcu_qsbr_start(readers), .number = number};
}
