// SPDX-License-Identifier: BSD-3-Clause
// Routes: entries of the tables, counted for their VNF and group.
#include <errno.h>

#include "fib/fib_state.h"

// --- Counts, and the lengths that readers ask for -------------------------------------------------------

static uint64_t routes_of_length(const struct fib_vnf *vnf, unsigned family, unsigned length)
{
	uint64_t sum = 0;

	for (unsigned group = 0; group < FIB_GROUPS; group++)
		sum += vnf->groups[group].lengths[family][length];
	return sum;
}

static void length_set(struct fib *fib, uint16_t vnf, unsigned family, unsigned length, bool is)
{
	struct fib_lengths *lengths = &fib->lengths[vnf];
	_Atomic uint64_t *word = family == FIB_V4 ? &lengths->four : &lengths->six[length / 64 % 2];
	uint64_t bit = UINT64_C(1) << length % 64, old = fib_get(word);

	atomic_store_explicit(word, is ? old | bit : old & ~bit, memory_order_release);
}

void fib_count(struct fib *fib, uint16_t vnf, struct fib_group *group, const struct fib_prefix *prefix,
               int change)
{
	unsigned family = prefix->family == 4 ? FIB_V4 : FIB_V6, length = prefix->length;
	const struct fib_vnf *v = fib_vnf_of(fib, vnf);

	fib_add(&group->routes[family], change);
	group->lengths[family][length] += (uint64_t)(int64_t)change;
	if (length < (family == FIB_V4 ? 32 : 128))
		length_set(fib, vnf, family, length, routes_of_length(v, family, length) > 0);
}

void fib_lengths_renew(struct fib *fib, uint16_t vnf)
{
	const struct fib_vnf *v = fib_vnf_of(fib, vnf);
	uint64_t words[3] = {0};

	for (unsigned length = 0; length < 128; length++) {
		if (length < 32 && routes_of_length(v, FIB_V4, length))
			words[0] |= UINT64_C(1) << length;
		if (routes_of_length(v, FIB_V6, length))
			words[1 + length / 64] |= UINT64_C(1) << length % 64;
	}
	atomic_store_explicit(&fib->lengths[vnf].four, words[0], memory_order_release);
	atomic_store_explicit(&fib->lengths[vnf].six[0], words[1], memory_order_release);
	atomic_store_explicit(&fib->lengths[vnf].six[1], words[2], memory_order_release);
}

static uint64_t live_routes(const struct fib_vnf *vnf)
{
	uint64_t sum = 0;

	for (unsigned group = 0; group < FIB_GROUPS; group++)
		sum += fib_get(&vnf->groups[group].routes[FIB_V4]) +
		       fib_get(&vnf->groups[group].routes[FIB_V6]);
	return sum;
}

// --- One key of either family ---------------------------------------------------------------------------

static uint16_t table_find(const struct fib *fib, const struct fib_key *key)
{
	uint16_t value;

	if (key->family == FIB_V4)
		cuckoo_find(fib->tables[FIB_V4], &key->four, 1, &value);
	else
		cuckoo_wide_find(fib->tables[FIB_V6], &key->six, 1, &value);
	return value;
}

static int table_put(struct fib *fib, const struct fib_key *key, uint16_t value, uint16_t *old)
{
	if (key->family == FIB_V4)
		return cuckoo_put(fib->tables[FIB_V4], key->four, value, old);
	return cuckoo_wide_put(fib->tables[FIB_V6], &key->six, value, old);
}

static void table_delete(struct fib *fib, const struct fib_key *key)
{
	if (key->family == FIB_V4)
		cuckoo_delete(fib->tables[FIB_V4], key->four);
	else
		cuckoo_wide_delete(fib->tables[FIB_V6], &key->six);
}

void fib_route_prefetch(const struct fib *fib, uint16_t vnf, const struct fib_prefix *prefix)
{
	struct fib_key key = fib_key_of(vnf, prefix);

	if (fib->tables[key.family] == NULL)
		return;
	if (key.family == FIB_V4)
		cuckoo_prefetch(fib->tables[FIB_V4], key.four);
	else
		cuckoo_wide_prefetch(fib->tables[FIB_V6], &key.six);
}

// --- The writer -----------------------------------------------------------------------------------------

// An entry for the prefix does not lead to this hop any more. A hop that nobody can name is gone with its
// last route.
static void let_go(struct fib *fib, struct fib_vnf *vnf, uint16_t index, const struct fib_prefix *prefix)
{
	struct fib_entry *entry = &fib->entries[index];
	unsigned family = prefix->family == 4 ? FIB_V4 : FIB_V6, group = fib_group_of(vnf, entry);

	entry->routes[family]--;
	if (entry->dead)
		fib_add(&fib->dead[family], -1);
	else
		fib_count(fib, entry->vnf, &vnf->groups[group], prefix, -1);
	if (entry->routes[FIB_V4] + entry->routes[FIB_V6] == 0 && (entry->dead || group == GROUP_STALE))
		fib_hop_free(fib, vnf, index);
}

// Whether the VNF may have a route more. Dead entries: no more than the quota, or one that flushes again and
// again would fill the table.
static int may_have_another(const struct fib_vnf *vnf, bool is_entry)
{
	uint64_t quota = fib_get(&vnf->quota_routes);

	if (live_routes(vnf) >= quota)
		return -EDQUOT;
	return is_entry || vnf->entries < 2 * quota ? 0 : -EAGAIN;
}

// Lead the key to the hop; was: where it led until now, or CUCKOO_NONE. The length is there before the entry.
static int lead_to(struct fib *fib, struct fib_vnf *vnf, const struct fib_prefix *prefix, uint16_t index,
                   uint16_t was)
{
	struct fib_entry *entry = &fib->entries[index];
	struct fib_key key = fib_key_of(entry->vnf, prefix);
	struct fib_group *group = &vnf->groups[fib_group_of(vnf, entry)];
	int rc;

	fib_count(fib, entry->vnf, group, prefix, 1);
	rc = table_put(fib, &key, index, &was);
	if (rc) {
		fib_count(fib, entry->vnf, group, prefix, -1);
		return fib_is_dirty(fib) ? -EAGAIN : rc;
	}
	entry->routes[key.family]++;
	if (was != CUCKOO_NONE)
		let_go(fib, vnf, was, prefix);
	else
		vnf->entries++;
	return 0;
}

int fib_route_set(struct fib *fib, uint16_t vnf, uint32_t session, enum fib_op op,
                  const struct fib_prefix *prefix, uint16_t number)
{
	struct fib_vnf *v = fib_vnf_of(fib, vnf);
	uint16_t index, was;
	struct fib_key key;
	bool live;
	int rc;

	if (v == NULL || !fib_prefix_is_sound(prefix) || (op != FIB_ADD && op != FIB_REPLACE))
		return -EINVAL;
	index = fib_hop_find(fib, v, vnf, session, number);
	if (index == 0)
		return -ENOENT;
	key = fib_key_of(vnf, prefix);
	if (fib->tables[key.family] == NULL)
		return -ENOSPC;
	was = table_find(fib, &key);
	live = was != CUCKOO_NONE && !fib->entries[was].dead;
	if (live && op == FIB_ADD &&
	    fib_group_of(v, &fib->entries[was]) == fib_group_of(v, &fib->entries[index]))
		return -EEXIST;
	if (was == index)
		return 0;
	rc = live ? 0 : may_have_another(v, was != CUCKOO_NONE);
	return rc ? rc : lead_to(fib, v, prefix, index, was);
}

int fib_route_delete(struct fib *fib, uint16_t vnf, const struct fib_prefix *prefix)
{
	struct fib_vnf *v = fib_vnf_of(fib, vnf);
	struct fib_key key;
	uint16_t was;

	if (v == NULL || !fib_prefix_is_sound(prefix))
		return -EINVAL;
	key = fib_key_of(vnf, prefix);
	was = fib->tables[key.family] ? table_find(fib, &key) : CUCKOO_NONE;
	if (was == CUCKOO_NONE || fib->entries[was].dead)
		return -ENOENT;
	table_delete(fib, &key);
	v->entries--;
	let_go(fib, v, was, prefix);
	return 0;
}
