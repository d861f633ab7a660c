// SPDX-License-Identifier: BSD-3-Clause
// Flush: hops are killed, however many routes lead to them. Sweep: their entries leave the tables, some
// buckets at a time. List: the routes of a VNF, the same way.
#include "fib/fib_state.h"

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

static bool list_entry(struct listing *listing, uint16_t vnf, const struct fib_prefix *prefix, uint16_t index)
{
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

static bool list4(void *context, uint64_t key, uint16_t value)
{
	struct fib_prefix prefix;
	uint16_t vnf = fib_key4_read(key, &prefix);

	return list_entry(context, vnf, &prefix, value);
}

static bool list6(void *context, const struct cuckoo_wide_key *key, uint16_t value)
{
	struct fib_prefix prefix;
	uint16_t vnf = fib_key6_read(key, &prefix);

	return list_entry(context, vnf, &prefix, value);
}

// The lowest bit of the cursor is the family, above it the table's own cursor: 0 is the first table's begin.
unsigned fib_list(struct fib *fib, uint16_t vnf, uint64_t *cursor, unsigned buckets, struct fib_route *routes,
                  unsigned max)
{
	struct listing listing = {.fib = fib, .vnf = vnf, .routes = routes};
	const struct cuckoo_visitor visitor = {.keep = list4, .keep_wide = list6, .context = &listing};
	unsigned family = *cursor & 1;
	uint64_t at = *cursor >> 1;

	if (family == FIB_V4 && fib->tables[FIB_V4] == NULL)
		family = FIB_V6;
	while (buckets-- && listing.count + CUCKOO_WAYS <= max) {
		if (fib->tables[family])
			cuckoo_visit(fib->tables[family], &at, 1, &visitor);
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
