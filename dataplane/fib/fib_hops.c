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

// Members that nobody can name any more go with the last group that they were in.
static void spread_give(struct fib *fib, struct fib_vnf *vnf, uint32_t number)
{
	const struct fib_spread *spread = &fib->spreads[number];

	for (unsigned i = 0; i < spread->count; i++) {
		struct fib_entry *member = &fib->entries[spread->members[i]];

		member->groups--;
		if (fib_hop_is_idle(member) && (member->dead || fib_group_of(vnf, member) == GROUP_STALE))
			fib_hop_free(fib, vnf, spread->members[i]);
	}
	fib_pool_give(&fib->spreads_free, fib->readers, number);
}

static void record_give(struct fib *fib, struct fib_vnf *vnf, uint32_t record)
{
	fib_pool_give(&fib->records_free, fib->readers, record);
	if (fib->records[record].kind == FIB_HOP_GROUP)
		spread_give(fib, vnf, fib->records[record].spread);
}

static int hop_change(struct fib *fib, struct fib_vnf *vnf, uint16_t index, const struct fib_hop *hop)
{
	struct fib_entry *entry = &fib->entries[index];
	uint32_t record, old = entry->record;
	int rc;

	if (memcmp(&fib->records[old], hop, sizeof(*hop)) == 0)
		return 0;
	record = record_take(fib, hop, &rc);
	if (rc)
		return rc;
	slot_set(fib, index, &fib->records[record]);
	entry->record = record;
	record_give(fib, vnf, old);
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

static int hop_put(struct fib *fib, uint16_t vnf, uint32_t session, uint16_t number,
                   const struct fib_hop *hop)
{
	struct fib_vnf *v = fib_vnf_of(fib, vnf);
	const struct fib_entry new = {
	        .generation = v->generation, .session = session, .vnf = vnf, .number = number, .used = true};
	uint16_t index = fib_hop_find(fib, v, vnf, session, number);
	int map = map_of(v, session);

	if (map < 0)
		return -ENOENT;
	return index ? hop_change(fib, v, index, hop) : hop_add(fib, v, &new, map, hop);
}

int fib_hop_set(struct fib *fib, uint16_t vnf, uint32_t session, uint16_t number, const struct fib_hop *hop)
{
	if (fib_vnf_of(fib, vnf) == NULL || number >= FIB_HOP_NUMBERS || hop->kind == FIB_HOP_NONE ||
	    hop->kind > FIB_HOP_BLACKHOLE)
		return -EINVAL;
	return hop_put(fib, vnf, session, number, hop);
}

int fib_hop_delete(struct fib *fib, uint16_t vnf, uint32_t session, uint16_t number)
{
	struct fib_vnf *v = fib_vnf_of(fib, vnf);
	uint16_t index = v ? fib_hop_find(fib, v, vnf, session, number) : 0;

	if (index == 0)
		return -ENOENT;
	if (!fib_hop_is_idle(&fib->entries[index]))
		return -EBUSY;
	fib_hop_free(fib, v, index);
	return 0;
}

void fib_hop_free(struct fib *fib, struct fib_vnf *vnf, uint16_t index)
{
	struct fib_entry *entry = &fib->entries[index];

	if (!entry->dead) {
		unlink(fib, &vnf->groups[fib_group_of(vnf, entry)], index);
		record_give(fib, vnf, entry->record);
	}
	entry->used = false;
	vnf->indices--;
	fib_pool_give(&fib->indices_free, fib->readers, index);
}

void fib_hop_kill(struct fib *fib, struct fib_vnf *vnf, uint16_t index)
{
	struct fib_entry *entry = &fib->entries[index];

	if (fib_hop_is_idle(entry)) {
		fib_hop_free(fib, vnf, index);
		return;
	}
	slot_set(fib, index, &fib->none);
	unlink(fib, &vnf->groups[fib_group_of(vnf, entry)], index);
	entry->dead = true;
	record_give(fib, vnf, entry->record);
	for (unsigned family = 0; family < FIB_FAMILIES; family++)
		fib_add(&fib->dead[family], (int64_t)entry->routes[family]);
}

// --- Groups ---------------------------------------------------------------------------------------------

// Slots of each member: one, and the rest in proportion to the weights by D'Hondt's method: when a member goes, no other
// has fewer than before.
static void shares_set(const struct fib_spread *spread, uint8_t *shares)
{
	memset(shares, 1, spread->count);
	for (unsigned left = FIB_SPREAD_SLOTS - spread->count; left; left--) {
		unsigned best = 0;

		for (unsigned i = 1; i < spread->count; i++)
			if (spread->weights[i] * (shares[best] + 1u) >
			    spread->weights[best] * (shares[i] + 1u))
				best = i;
		shares[best]++;
	}
}

// A slot stays with its member of before, if that has no more than its share.
static void slots_set(struct fib_spread *spread, const struct fib_spread *old)
{
	uint8_t shares[FIB_MEMBERS_MAX];
	unsigned next = 0;

	shares_set(spread, shares);
	memset(spread->slots, FIB_MEMBERS_MAX, sizeof(spread->slots));
	for (unsigned slot = 0; old && slot < FIB_SPREAD_SLOTS; slot++)
		for (uint8_t i = 0; i < spread->count; i++)
			if (spread->members[i] == old->members[old->slots[slot]] && shares[i]) {
				spread->slots[slot] = i;
				shares[i]--;
			}
	for (unsigned slot = 0; slot < FIB_SPREAD_SLOTS; slot++) {
		if (spread->slots[slot] < FIB_MEMBERS_MAX)
			continue;
		while (!shares[next])
			next = (next + 1) % spread->count;
		spread->slots[slot] = (uint8_t)next;
		shares[next]--;
		next = (next + 1) % spread->count;
	}
}

static int members_read(const struct fib *fib, uint16_t vnf, uint32_t session, uint16_t number,
                        const struct fib_member *members, unsigned count, struct fib_spread *spread)
{
	const struct fib_vnf *v = fib_vnf_of(fib, vnf);

	*spread = (struct fib_spread){.count = (uint8_t)count};
	for (unsigned i = 0; i < count; i++) {
		uint16_t index = fib_hop_find(fib, v, vnf, session, members[i].number);

		if (index == 0)
			return -ENOENT;
		if (members[i].weight == 0 || members[i].number == number ||
		    fib->records[fib->entries[index].record].kind == FIB_HOP_GROUP)
			return -EINVAL;
		for (unsigned before = 0; before < i; before++)
			if (spread->members[before] == index)
				return -EINVAL;
		spread->members[i] = index;
		spread->weights[i] = members[i].weight;
	}
	return 0;
}

static bool is_same(const struct fib_spread *a, const struct fib_spread *b)
{
	return a->count == b->count && memcmp(a->members, b->members, sizeof(a->members)) == 0 &&
	       memcmp(a->weights, b->weights, sizeof(a->weights)) == 0;
}

static void members_count(struct fib *fib, const struct fib_spread *spread, uint32_t change)
{
	for (unsigned i = 0; i < spread->count; i++)
		fib->entries[spread->members[i]].groups += change;
}

// Where the spread is from now on, with its slots: as many as can be lead where they led in the old one. Or 0 and *rc.
static uint32_t spread_take(struct fib *fib, struct fib_spread *spread, const struct fib_spread *old, int *rc)
{
	uint32_t number = fib_pool_take(&fib->spreads_free, fib->readers);

	*rc = number ? 0 : fib_pool_is_waiting(&fib->spreads_free) ? -EAGAIN : -ENOSPC;
	if (number == 0)
		return 0;
	slots_set(spread, old);
	fib->spreads[number] = *spread;
	members_count(fib, spread, 1);
	return number;
}

// Nobody has seen it.
static void spread_take_back(struct fib *fib, uint32_t number)
{
	members_count(fib, &fib->spreads[number], UINT32_MAX);
	fib_pool_give(&fib->spreads_free, fib->readers, number);
}

int fib_group_set(struct fib *fib, uint16_t vnf, uint32_t session, uint16_t number,
                  const struct fib_member *members, unsigned count, bool *missing)
{
	const struct fib_vnf *v = fib_vnf_of(fib, vnf);
	struct fib_hop hop = {.kind = FIB_HOP_GROUP};
	const struct fib_spread *old = NULL;
	struct fib_spread spread;
	uint16_t index;
	int rc;

	*missing = false;
	if (v == NULL || number >= FIB_HOP_NUMBERS || count == 0 || count > FIB_MEMBERS_MAX)
		return -EINVAL;
	if (map_of(v, session) < 0)
		return -ENOENT;
	rc = members_read(fib, vnf, session, number, members, count, &spread);
	*missing = rc == -ENOENT;
	if (rc)
		return rc;
	index = fib_hop_find(fib, v, vnf, session, number);
	if (index && fib->entries[index].groups)
		return -EBUSY;
	if (index && fib->records[fib->entries[index].record].kind == FIB_HOP_GROUP)
		old = &fib->spreads[fib->records[fib->entries[index].record].spread];
	if (old && is_same(old, &spread))
		return 0;
	hop.spread = spread_take(fib, &spread, old, &rc);
	if (rc == 0) {
		rc = hop_put(fib, vnf, session, number, &hop);
		if (rc)
			spread_take_back(fib, hop.spread);
	}
	return rc;
}

unsigned fib_group_read(const struct fib *fib, const struct fib_hop *group, struct fib_member *members,
                        const struct fib_hop **hops)
{
	const struct fib_spread *spread = &fib->spreads[group->spread];

	for (unsigned i = 0; i < spread->count; i++) {
		const struct fib_entry *entry = &fib->entries[spread->members[i]];

		members[i] = (struct fib_member){entry->number, spread->weights[i]};
		hops[i] = atomic_load_explicit(&fib->slots[spread->members[i]], memory_order_acquire);
	}
	return spread->count;
}

// --- Revision -------------------------------------------------------------------------------------------

// Whatever leads to it.
static void hop_drop(struct fib *fib, struct fib_vnf *vnf, uint16_t index)
{
	const struct fib_entry *entry = &fib->entries[index];
	struct fib_group *group = &vnf->groups[fib_group_of(vnf, entry)];

	for (unsigned family = 0; family < FIB_FAMILIES; family++)
		fib_add(&group->routes[family], -(int64_t)entry->routes[family]);
	fib_hop_kill(fib, vnf, index);
}

// Without the members that are dead. Returns false: there is no other, or no memory.
static bool group_shrink(struct fib *fib, struct fib_vnf *vnf, uint16_t index)
{
	uint32_t number = fib->records[fib->entries[index].record].spread;
	const struct fib_spread *old = &fib->spreads[number];
	struct fib_hop hop = {.kind = FIB_HOP_GROUP};
	struct fib_spread spread = {.count = 0};
	int rc;

	for (unsigned i = 0; i < old->count; i++) {
		if (fib->entries[old->members[i]].dead)
			continue;
		spread.members[spread.count] = old->members[i];
		spread.weights[spread.count++] = old->weights[i];
	}
	if (spread.count == old->count || spread.count == 0)
		return spread.count > 0;
	hop.spread = spread_take(fib, &spread, old, &rc);
	if (rc)
		return false;
	rc = hop_change(fib, vnf, index, &hop);
	if (rc)
		spread_take_back(fib, hop.spread);
	return rc == 0;
}

// A group that goes or changes may take members along that are next in the list: they are not used then, and lead on.
static void groups_revise(struct fib *fib, struct fib_vnf *vnf, const struct fib_group *group)
{
	uint16_t next;

	for (uint16_t index = group->first; index; index = next) {
		const struct fib_entry *entry = &fib->entries[index];

		next = entry->next;
		if (entry->used && fib->records[entry->record].kind == FIB_HOP_GROUP &&
		    !group_shrink(fib, vnf, index))
			hop_drop(fib, vnf, index);
	}
}

void fib_hops_revise(struct fib *fib, uint16_t vnf, fib_revise *revise, void *context)
{
	struct fib_vnf *v = fib_vnf_of(fib, vnf);
	uint16_t next;

	for (unsigned group = 0; v && group < FIB_GROUPS; group++) {
		for (uint16_t index = v->groups[group].first; index; index = next) {
			struct fib_hop hop = fib->records[fib->entries[index].record];

			next = fib->entries[index].next;
			if (hop.kind == FIB_HOP_FORWARD && (!revise(context, group == GROUP_OPERATOR, &hop) ||
			                                    hop_change(fib, v, index, &hop)))
				hop_drop(fib, v, index);
		}
		groups_revise(fib, v, &v->groups[group]);
	}
}

// --- What the packets of a flow take --------------------------------------------------------------------

static bool is_down(const struct fib_hop *hop, uint32_t down)
{
	return hop->kind == FIB_HOP_FORWARD && down >> hop->port % 32 & 1;
}

// Of the members that can be used the same for all packets of the flow; the first choice if there is none.
static __attribute__((noinline)) const struct fib_hop *other_member(const struct fib *fib,
                                                                    const struct fib_spread *spread,
                                                                    const struct fib_hop *hop, uint32_t flow,
                                                                    uint32_t down)
{
	const struct fib_hop *hops[FIB_MEMBERS_MAX];
	unsigned weights[FIB_MEMBERS_MAX], count = 0, sum = 0, at;

	for (unsigned i = 0; i < spread->count; i++) {
		hops[count] = atomic_load_explicit(&fib->slots[spread->members[i]], memory_order_acquire);
		weights[count] = spread->weights[i];
		if (is_down(hops[count], down))
			continue;
		sum += weights[count++];
	}
	if (count == 0)
		return hop;
	at = flow / FIB_SPREAD_SLOTS % sum;
	for (count = 0; at >= weights[count]; count++)
		at -= weights[count];
	return hops[count];
}

const struct fib_hop *fib_hop_of_flow(const struct fib *fib, const struct fib_hop *group, uint32_t flow,
                                      uint32_t down)
{
	const struct fib_spread *spread = &fib->spreads[group->spread];
	uint16_t index = spread->members[spread->slots[flow % FIB_SPREAD_SLOTS]];
	const struct fib_hop *hop = atomic_load_explicit(&fib->slots[index], memory_order_acquire);

	return likely(!is_down(hop, down)) ? hop : other_member(fib, spread, hop, flow, down);
}

// By the query of either family. Ends: a group that is found twice is being flushed, and each other one is a change of the
// writer's.
static const struct fib_hop *of_flow(const struct fib *fib, const struct fib_hop *found,
                                     const struct fib_query4 *four, const struct fib_query6 *six,
                                     uint32_t flow, uint32_t down)
{
	const struct fib_hop *before = NULL, *hop;

	while (found->kind == FIB_HOP_GROUP) {
		if (found == before)
			return &fib->none;
		hop = fib_hop_of_flow(fib, found, flow, down);
		if (hop->kind != FIB_HOP_NONE)
			return hop;
		before = found;
		if (four)
			fib_find4(fib, four, 1, &found);
		else
			fib_find6(fib, six, 1, &found);
	}
	return found;
}

const struct fib_hop *fib_of_flow4(const struct fib *fib, const struct fib_hop *found,
                                   const struct fib_query4 *query, uint32_t flow, uint32_t down)
{
	return of_flow(fib, found, query, NULL, flow, down);
}

const struct fib_hop *fib_of_flow6(const struct fib *fib, const struct fib_hop *found,
                                   const struct fib_query6 *query, uint32_t flow, uint32_t down)
{
	return of_flow(fib, found, NULL, query, flow, down);
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
