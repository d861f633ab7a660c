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
	if (fib_hop_is_idle(entry) && (entry->dead || group == GROUP_STALE))
		fib_hop_free(fib, vnf, index);
}

// Whether the VNF may have a route of this length: it has others, or may have one length more of this family.
static bool may_have_length(const struct fib *fib, uint16_t number, const struct fib_vnf *vnf,
                            const struct fib_prefix *prefix)
{
	const struct fib_lengths *lengths = &fib->lengths[number];
	uint32_t quota = atomic_load_explicit(&vnf->quota_lengths, memory_order_relaxed);
	bool four = prefix->family == 4;
	int there = four ? __builtin_popcountll(fib_get(&lengths->four))
	                 : __builtin_popcountll(fib_get(&lengths->six[0])) +
	                            __builtin_popcountll(fib_get(&lengths->six[1]));

	return quota == 0 || prefix->length == (four ? 32 : 128) || (uint32_t)there < quota ||
	       routes_of_length(vnf, four ? FIB_V4 : FIB_V6, prefix->length) > 0;
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
	if (!live && !may_have_length(fib, vnf, v, prefix))
		return -EDQUOT;
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

// --- Flush, sweep, list ---------------------------------------------------------------------------------

// Flush: hops are killed, however many routes lead to them. Sweep: their entries leave the tables, some
// buckets at a time. List: the routes of a VNF, the same way.

// --- Flush ----------------------------------------------------------------------------------------------

static void group_flush(struct fib *fib, struct fib_vnf *vnf, struct fib_group *group)
{
	while (group->first)
		fib_hop_kill(fib, vnf, group->first);
	for (unsigned family = 0; family < FIB_FAMILIES; family++)
		atomic_store_explicit(&group->routes[family], 0, memory_order_relaxed);
	memset(group->lengths, 0, sizeof(group->lengths));
}

void fib_flush(struct fib *fib, uint16_t vnf, enum fib_whose whose)
{
	struct fib_vnf *v = fib_vnf_of(fib, vnf);

	if (v == NULL)
		return;
	group_flush(fib, v, &v->groups[GROUP_STALE]);
	if (whose != FIB_FLUSH_STALE)
		group_flush(fib, v, &v->groups[GROUP_SESSION]);
	if (whose == FIB_FLUSH_ALL)
		group_flush(fib, v, &v->groups[GROUP_OPERATOR]);
	fib_lengths_renew(fib, vnf);
}

// --- Sweep ----------------------------------------------------------------------------------------------

bool fib_is_dirty(const struct fib *fib)
{
	return fib_get(&fib->dead[FIB_V4]) || fib_get(&fib->dead[FIB_V6]);
}

// The entry is deleted when this has returned: until then its index is not free.
static bool is_alive(struct fib *fib, uint16_t index, unsigned family)
{
	struct fib_entry *entry = &fib->entries[index];

	if (!entry->dead)
		return true;
	entry->routes[family]--;
	fib_vnf_of(fib, entry->vnf)->entries--;
	fib_add(&fib->dead[family], -1);
	if (entry->routes[FIB_V4] + entry->routes[FIB_V6] == 0) {
		entry->next = fib->emptied;
		fib->emptied = index;
	}
	return false;
}

static bool keep4(void *context, uint64_t key, uint16_t value)
{
	return is_alive(context, value, FIB_V4);
}

static bool keep6(void *context, const struct cuckoo_wide_key *key, uint16_t value)
{
	return is_alive(context, value, FIB_V6);
}

static void free_emptied(struct fib *fib)
{
	while (fib->emptied) {
		uint16_t index = fib->emptied;

		fib->emptied = fib->entries[index].next;
		fib_hop_free(fib, fib_vnf_of(fib, fib->entries[index].vnf), index);
	}
}

uint64_t fib_sweep(struct fib *fib, unsigned buckets)
{
	const struct cuckoo_visitor visitor = {.keep = keep4, .keep_wide = keep6, .context = fib};
	unsigned family = fib_get(&fib->dead[FIB_V4]) ? FIB_V4 : FIB_V6;
	uint64_t removed;

	if (!fib_is_dirty(fib))
		return 0;
	removed = cuckoo_visit(fib->tables[family], &fib->cursors[family], buckets, &visitor);
	free_emptied(fib);
	return removed;
}

// --- List -----------------------------------------------------------------------------------------------

struct listing {
	const struct fib *fib;
	uint16_t vnf;
	struct fib_route *routes;
	unsigned count;
};

static bool list_entry(void *context, uint16_t vnf, const struct fib_prefix *prefix, uint16_t index)
{
	struct listing *listing = context;
	const struct fib_entry *entry = &listing->fib->entries[index];

	if (vnf == listing->vnf && !entry->dead)
		listing->routes[listing->count++] = (struct fib_route){
		        .prefix = *prefix,
		        .hop = listing->fib->records[entry->record],
		        .number = entry->number,
		        .session = entry->session,
		        .stale = fib_group_of(fib_vnf_of(listing->fib, vnf), entry) == GROUP_STALE,
		};
	return true;
}

struct visit {
	fib_visit_entry *entry;
	void *context;
};

static bool visit4(void *context, uint64_t key, uint16_t value)
{
	const struct visit *visit = context;
	struct fib_prefix prefix;
	uint16_t vnf = fib_key4_read(key, &prefix);

	return visit->entry(visit->context, vnf, &prefix, value);
}

static bool visit6(void *context, const struct cuckoo_wide_key *key, uint16_t value)
{
	const struct visit *visit = context;
	struct fib_prefix prefix;
	uint16_t vnf = fib_key6_read(key, &prefix);

	return visit->entry(visit->context, vnf, &prefix, value);
}

void fib_visit(struct fib *fib, unsigned family, uint64_t *cursor, uint64_t buckets, fib_visit_entry *entry,
               void *context)
{
	struct visit visit = {.entry = entry, .context = context};
	const struct cuckoo_visitor visitor = {.keep = visit4, .keep_wide = visit6, .context = &visit};

	cuckoo_visit(fib->tables[family], cursor, buckets, &visitor);
}

// The lowest bit of the cursor is the family, above it the table's own cursor: 0 is the first table's begin.
unsigned fib_list(struct fib *fib, uint16_t vnf, uint64_t *cursor, unsigned buckets, struct fib_route *routes,
                  unsigned max)
{
	struct listing listing = {.fib = fib, .vnf = vnf, .routes = routes};
	unsigned family = *cursor & 1;
	uint64_t at = *cursor >> 1;

	if (family == FIB_V4 && fib->tables[FIB_V4] == NULL)
		family = FIB_V6;
	while (buckets-- && listing.count + CUCKOO_WAYS <= max) {
		if (fib->tables[family])
			fib_visit(fib, family, &at, 1, list_entry, &listing);
		if (at)
			continue;
		if (family == FIB_V6) {
			*cursor = 0;
			return listing.count;
		}
		family = FIB_V6;
	}
	*cursor = at << 1 | family;
	return listing.count;
}
