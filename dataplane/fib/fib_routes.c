// SPDX-License-Identifier: BSD-3-Clause
// Routes: how readers look them up, and entries of the tables and of the index, counted for their VNF and group.
#include <errno.h>

#include "fib/fib_state.h"

// --- Keys -----------------------------------------------------------------------------------------------

bool fib_prefix_is_sound(const struct fib_prefix *prefix)
{
	unsigned bits = prefix->family == 4 ? 32 : 128, length = prefix->length;

	if ((prefix->family != 4 && prefix->family != 6) || length > bits)
		return false;
	if (length % 8 && prefix->address[length / 8] & 0xff >> length % 8)
		return false;
	for (unsigned byte = (length + 7) / 8; byte < bits / 8; byte++)
		if (prefix->address[byte])
			return false;
	return true;
}

struct fib_key fib_key_of(uint16_t vnf, const struct fib_prefix *prefix)
{
	struct fib_key key = {.family = prefix->family == 4 ? FIB_V4 : FIB_V6};
	uint32_t address;

	if (key.family == FIB_V4) {
		memcpy(&address, prefix->address, sizeof(address));
		address = rte_be_to_cpu_32(address);
		key.four = prefix->length == 32 ? fib_host_key4(vnf, address)
		                                : fib_key4(vnf, address, prefix->length);
		return key;
	}
	key.six = fib_host_key6(vnf, prefix->address);
	if (prefix->length < 128)
		key.six = fib_key6(&key.six, prefix->length);
	return key;
}

uint16_t fib_key4_read(uint64_t key, struct fib_prefix *prefix)
{
	uint32_t address = (uint32_t)key;
	uint64_t owner = key >> 32;

	*prefix = (struct fib_prefix){.family = 4, .length = 32};
	if (owner >= 2 * FIB_VNFS_MAX || (owner & 1 && address == 0))
		return 0;
	if (owner & 1) {
		prefix->length = (uint8_t)(31 - __builtin_ctz(address));
		address &= address - 1;
	}
	address = rte_cpu_to_be_32(address);
	memcpy(prefix->address, &address, sizeof(address));
	return (uint16_t)(owner >> 1);
}

uint16_t fib_key6_read(const struct cuckoo_wide_key *key, struct fib_prefix *prefix)
{
	uint64_t high = key->high, low = key->low;

	*prefix = (struct fib_prefix){.family = 6, .length = 128};
	if (key->owner >= 2 * FIB_VNFS_MAX || (key->owner & 1 && (high | low) == 0))
		return 0;
	if (key->owner & 1 && low) {
		prefix->length = (uint8_t)(127 - __builtin_ctzll(low));
		low &= low - 1;
	} else if (key->owner & 1) {
		prefix->length = (uint8_t)(63 - __builtin_ctzll(high));
		high &= high - 1;
	}
	high = rte_cpu_to_be_64(high);
	low = rte_cpu_to_be_64(low);
	memcpy(prefix->address, &high, sizeof(high));
	memcpy(prefix->address + sizeof(high), &low, sizeof(low));
	return (uint16_t)(key->owner >> 1);
}

// --- Lookups of readers ---------------------------------------------------------------------------------

// A burst at a time: the host routes of all, if any VNF has more than the index, then for those that have none the longest
// prefix: cache misses of a round overlap. A dead hop is a miss: it must not hide a shorter prefix that lives.

// Hop of a value from a table; CUCKOO_NONE is index 0, which leads nowhere.
static inline const struct fib_hop *hop_of(const struct fib *fib, uint16_t value)
{
	return atomic_load_explicit(&fib->slots[value], memory_order_acquire);
}

static inline struct cuckoo *table_of(const struct fib *fib, unsigned family)
{
	return atomic_load_explicit(&fib->found_in[family], memory_order_acquire);
}

static inline void find_nothing(const struct fib *fib, unsigned n, const struct fib_hop **hops)
{
	for (unsigned i = 0; i < n; i++)
		hops[i] = &fib->none;
}

static inline void all_pending(uint8_t *pending, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		pending[i] = (uint8_t)i;
}

// The hop of a value is dead: so is the route, unless it has moved to another hop since the value was read.
static const struct fib_hop *again4(const struct fib *fib, const struct cuckoo *table, uint64_t key,
                                    uint16_t value)
{
	const struct fib_hop *hop = &fib->none;
	uint16_t now;

	for (; hop == &fib->none; hop = hop_of(fib, now), value = now) {
		cuckoo_find(table, &key, 1, &now);
		if (now == value || now == CUCKOO_NONE)
			break;
	}
	return hop;
}

static const struct fib_hop *again6(const struct fib *fib, const struct cuckoo *table,
                                    const struct cuckoo_wide_key *key, uint16_t value)
{
	const struct fib_hop *hop = &fib->none;
	uint16_t now;

	for (; hop == &fib->none; hop = hop_of(fib, now), value = now) {
		cuckoo_wide_find(table, key, 1, &now);
		if (now == value || now == CUCKOO_NONE)
			break;
	}
	return hop;
}

// Hops of the queries whose numbers are in pending; those that have none stay there. Returns how many.
static unsigned find_round4(const struct fib *fib, const struct cuckoo *table, const uint64_t *keys,
                            uint8_t *pending, unsigned n, const struct fib_hop **hops)
{
	uint16_t values[CUCKOO_BULK_MAX];
	unsigned left = 0;

	cuckoo_find(table, keys, n, values);
	for (unsigned i = 0; i < n; i++) {
		const struct fib_hop *hop = hop_of(fib, values[i]);

		if (unlikely(hop == &fib->none && values[i] != CUCKOO_NONE))
			hop = again4(fib, table, keys[i], values[i]);
		hops[pending[i]] = hop;
		pending[left] = pending[i];
		left += hop == &fib->none;
	}
	return left;
}

static unsigned find_round6(const struct fib *fib, const struct cuckoo *table,
                            const struct cuckoo_wide_key *keys, uint8_t *pending, unsigned n,
                            const struct fib_hop **hops)
{
	uint16_t values[CUCKOO_BULK_MAX];
	unsigned left = 0;

	cuckoo_wide_find(table, keys, n, values);
	for (unsigned i = 0; i < n; i++) {
		const struct fib_hop *hop = hop_of(fib, values[i]);

		if (unlikely(hop == &fib->none && values[i] != CUCKOO_NONE))
			hop = again6(fib, table, &keys[i], values[i]);
		hops[pending[i]] = hop;
		pending[left] = pending[i];
		left += hop == &fib->none;
	}
	return left;
}

// The longest prefix whose hop lives, where the longest of all leads to a dead one. A dead hop is no proof: the route may
// have moved to another before that hop died. It is one if the prefixes still lead where they led when their hops
// were already seen dead.
static const struct fib_hop *find_living(const struct fib *fib, const struct prefix_space *space,
                                         struct prefix_key key)
{
	uint16_t values[2][PREFIX_MATCHES_MAX];
	unsigned counts[2] = {0, 0};

	for (unsigned turn = 0;; turn ^= 1) {
		const struct fib_hop *hop = &fib->none;
		unsigned count = prefix_tree_matches(fib->prefixes, space, key, values[turn]), at = count;

		while (at && hop == &fib->none)
			hop = hop_of(fib, values[turn][--at]);
		if (counts[turn ^ 1] == count &&
		    memcmp(values[turn], values[turn ^ 1], count * sizeof(**values)) == 0)
			return hop;
		counts[turn] = count;
	}
}

// By the prefixes of each VNF, for the queries in pending: those that no host route has.
static void find_by_prefix(const struct fib *fib, unsigned family, const struct prefix_key *keys,
                           const uint16_t *vnfs, const uint8_t *pending, unsigned n,
                           const struct fib_hop **hops)
{
	const struct prefix_space *spaces[CUCKOO_BULK_MAX] = {0};
	uint16_t values[CUCKOO_BULK_MAX];

	for (unsigned i = 0; i < n; i++)
		spaces[i] = &fib->spaces[vnfs[i] % FIB_VNFS_MAX][family];
	prefix_tree_find(fib->prefixes, spaces, keys, n, values);
	for (unsigned i = 0; i < n; i++) {
		const struct fib_hop *hop = hop_of(fib, values[i]);

		if (unlikely(hop == &fib->none && values[i] != PREFIX_NONE))
			hop = find_living(fib, spaces[i], keys[i]);
		hops[pending[i]] = hop;
	}
}

// Whether any VNF has host routes that are in the table alone.
static inline bool has_hosts(const struct fib *fib, unsigned family)
{
	return atomic_load_explicit(&fib->hosted[family], memory_order_acquire) > 0;
}

void fib_find4(const struct fib *fib, const struct fib_query4 *queries, unsigned n,
               const struct fib_hop **hops)
{
	struct cuckoo *table = table_of(fib, FIB_V4);
	struct prefix_key prefixes[CUCKOO_BULK_MAX];
	uint8_t pending[CUCKOO_BULK_MAX];
	uint16_t vnfs[CUCKOO_BULK_MAX];
	uint64_t keys[CUCKOO_BULK_MAX];

	if (table == NULL || n == 0) {
		find_nothing(fib, n, hops);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		keys[i] = fib_host_key4(queries[i].vnf, queries[i].address);
	all_pending(pending, n);
	if (has_hosts(fib, FIB_V4))
		n = find_round4(fib, table, keys, pending, n, hops);
	if (n == 0)
		return;
	for (unsigned i = 0; i < n; i++) {
		prefixes[i] = (struct prefix_key){.high = (uint64_t)queries[pending[i]].address << 32};
		vnfs[i] = queries[pending[i]].vnf;
	}
	find_by_prefix(fib, FIB_V4, prefixes, vnfs, pending, n, hops);
}

void fib_find6(const struct fib *fib, const struct fib_query6 *queries, unsigned n,
               const struct fib_hop **hops)
{
	struct cuckoo *table = table_of(fib, FIB_V6);
	struct cuckoo_wide_key keys[CUCKOO_BULK_MAX];
	struct prefix_key prefixes[CUCKOO_BULK_MAX];
	uint8_t pending[CUCKOO_BULK_MAX];
	uint16_t vnfs[CUCKOO_BULK_MAX];

	if (table == NULL || n == 0) {
		find_nothing(fib, n, hops);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		keys[i] = fib_host_key6(queries[i].vnf, queries[i].address);
	all_pending(pending, n);
	if (has_hosts(fib, FIB_V6))
		n = find_round6(fib, table, keys, pending, n, hops);
	if (n == 0)
		return;
	for (unsigned i = 0; i < n; i++) {
		const struct cuckoo_wide_key *key = &keys[pending[i]];

		prefixes[i] = (struct prefix_key){.high = key->high, .low = key->low};
		vnfs[i] = queries[pending[i]].vnf;
	}
	find_by_prefix(fib, FIB_V6, prefixes, vnfs, pending, n, hops);
}

// --- What readers ask beside the tables ------------------------------------------------------------------

static unsigned family_of(const struct fib_prefix *prefix)
{
	return prefix->family == 4 ? FIB_V4 : FIB_V6;
}

static bool is_host(const struct fib_prefix *prefix)
{
	return prefix->length == (prefix->family == 4 ? 32 : 128);
}

// An address as the index has it, and the key of an entry has it too.
static struct prefix_key bits_of(const struct fib_prefix *prefix)
{
	struct cuckoo_wide_key key = fib_host_key6(0, prefix->address);

	return (struct prefix_key){.high = key.high, .low = key.low};
}

// Whether the index has room for prefixes of this VNF: it may take the share that its quota has of all routes. Prefixes
// that have nothing in common (random ones of IPv6) may come to it before they come to their number.
static bool has_index(const struct fib *fib, uint16_t vnf)
{
	const struct prefix_space *spaces = fib->spaces[vnf];
	uint64_t quota = fib_get(&fib_vnf_of(fib, vnf)->quota_routes);
	uint64_t share = prefix_tree_room(fib->prefixes) / PREFIX_BLOCK_BYTES * RTE_MIN(quota, fib->routes) /
	                 fib->routes;

	return (uint64_t)spaces[FIB_V4].blocks + spaces[FIB_V6].blocks < FIB_BLOCKS_FREE + share;
}

static void hosts_changed(struct fib *fib, uint16_t vnf, unsigned family)
{
	struct fib_vnf *v = fib_vnf_of(fib, vnf);
	bool is_more = v->hosts[family] > v->indexed[family];

	if (is_more != v->is_hosted[family])
		atomic_fetch_add(&fib->hosted[family], is_more ? 1 : -1);
	v->is_hosted[family] = is_more;
}

// A router's own few addresses are in the index too: then no lookup need ask the table first.
static void host_add(struct fib *fib, uint16_t vnf, const struct fib_prefix *prefix, uint16_t index,
                     bool is_new)
{
	unsigned family = family_of(prefix);
	struct prefix_space *space = &fib->spaces[vnf][family];
	struct fib_vnf *v = fib_vnf_of(fib, vnf);

	v->hosts[family] += is_new;
	if (is_new ? v->indexed[family] < FIB_HOSTS_INDEXED && has_index(fib, vnf)
	           : v->indexed[family] &&
	                     prefix_tree_has(fib->prefixes, space, bits_of(prefix), prefix->length))
		v->indexed[family] +=
		        prefix_tree_put(fib->prefixes, space, bits_of(prefix), prefix->length, index) == 0 &&
		        is_new;
	hosts_changed(fib, vnf, family);
}

static void host_remove(struct fib *fib, uint16_t vnf, const struct fib_prefix *prefix)
{
	unsigned family = family_of(prefix);
	struct prefix_space *space = &fib->spaces[vnf][family];
	struct fib_vnf *v = fib_vnf_of(fib, vnf);

	v->hosts[family]--;
	if (v->indexed[family] && prefix_tree_has(fib->prefixes, space, bits_of(prefix), prefix->length)) {
		prefix_tree_delete(fib->prefixes, space, bits_of(prefix), prefix->length);
		v->indexed[family]--;
	}
	hosts_changed(fib, vnf, family);
}

int fib_index_add(struct fib *fib, uint16_t vnf, const struct fib_prefix *prefix, uint16_t index, bool is_new)
{
	if (!is_host(prefix))
		return prefix_tree_put(fib->prefixes, &fib->spaces[vnf][family_of(prefix)], bits_of(prefix),
		                       prefix->length, index);
	host_add(fib, vnf, prefix, index, is_new);
	return 0;
}

void fib_index_remove(struct fib *fib, uint16_t vnf, const struct fib_prefix *prefix)
{
	if (is_host(prefix))
		host_remove(fib, vnf, prefix);
	else
		prefix_tree_delete(fib->prefixes, &fib->spaces[vnf][family_of(prefix)], bits_of(prefix),
		                   prefix->length);
}

void fib_index_clear(struct fib *fib)
{
	for (uint16_t vnf = 1; vnf < FIB_VNFS_MAX; vnf++)
		for (unsigned family = 0; family < FIB_FAMILIES && fib_vnf_of(fib, vnf); family++) {
			struct fib_vnf *v = fib_vnf_of(fib, vnf);

			v->hosts[family] = v->indexed[family] = 0;
			hosts_changed(fib, vnf, family);
			prefix_space_clear(&fib->spaces[vnf][family]);
		}
	prefix_tree_clear(fib->prefixes);
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
	unsigned family = family_of(prefix), group = fib_group_of(vnf, entry);

	entry->routes[family]--;
	if (entry->dead)
		fib_add(&fib->dead[family], -1);
	else
		fib_add(&vnf->groups[group].routes[family], -1);
	if (fib_hop_is_idle(entry) && (entry->dead || group == GROUP_STALE))
		fib_hop_free(fib, vnf, index);
}

// Whether the VNF may have a route more. Dead entries: no more than the quota, or one that flushes again and
// again would fill the table. Its share of the index is its own: only its own dead entries make room there.
static int may_have_another(const struct fib *fib, uint16_t number, const struct fib_vnf *vnf,
                            const struct fib_prefix *prefix, bool is_entry)
{
	uint64_t quota = fib_get(&vnf->quota_routes), live = live_routes(vnf);

	if (live >= quota)
		return -EDQUOT;
	if (!is_host(prefix) && !has_index(fib, number))
		return vnf->entries > live ? -EAGAIN : -EDQUOT;
	return is_entry || vnf->entries < 2 * quota ? 0 : -EAGAIN;
}

// Lead the key to the hop; was: where it led until now, or CUCKOO_NONE.
static int lead_to(struct fib *fib, struct fib_vnf *vnf, const struct fib_prefix *prefix, uint16_t index,
                   uint16_t was)
{
	struct fib_entry *entry = &fib->entries[index];
	struct fib_key key = fib_key_of(entry->vnf, prefix);
	int rc;

	rc = table_put(fib, &key, index, &was);
	if (rc == 0) {
		rc = fib_index_add(fib, entry->vnf, prefix, index, was == CUCKOO_NONE);
		if (rc)
			table_delete(fib, &key); // it was not there
	}
	if (rc)
		return fib_is_dirty(fib) ? -EAGAIN : rc;
	fib_add(&vnf->groups[fib_group_of(vnf, entry)].routes[key.family], 1);
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
	rc = live ? 0 : may_have_another(fib, vnf, v, prefix, was != CUCKOO_NONE);
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
	fib_index_remove(fib, vnf, prefix);
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
}

// --- Visit ----------------------------------------------------------------------------------------------

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

uint64_t fib_visit(struct fib *fib, unsigned family, uint64_t *cursor, uint64_t buckets,
                   fib_visit_entry *entry, void *context)
{
	struct visit visit = {.entry = entry, .context = context};
	const struct cuckoo_visitor visitor = {.keep = visit4, .keep_wide = visit6, .context = &visit};

	return cuckoo_visit(fib->tables[family], cursor, buckets, &visitor);
}

// --- Sweep ----------------------------------------------------------------------------------------------

bool fib_is_dirty(const struct fib *fib)
{
	return fib_get(&fib->dead[FIB_V4]) || fib_get(&fib->dead[FIB_V6]);
}

// The entry is deleted when this has returned: until then its index is not free.
static bool is_alive(void *context, uint16_t vnf, const struct fib_prefix *prefix, uint16_t index)
{
	struct fib *fib = context;
	struct fib_entry *entry = &fib->entries[index];
	unsigned family = family_of(prefix);

	if (!entry->dead)
		return true;
	fib_index_remove(fib, vnf, prefix);
	entry->routes[family]--;
	fib_vnf_of(fib, entry->vnf)->entries--;
	fib_add(&fib->dead[family], -1);
	if (entry->routes[FIB_V4] + entry->routes[FIB_V6] == 0) {
		entry->next = fib->emptied;
		fib->emptied = index;
	}
	return false;
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
	uint64_t removed;

	if (!fib_is_dirty(fib))
		return 0;
	fib->swept ^= 1; // in turn: one that a VNF fills again and again holds up no other
	if (fib_get(&fib->dead[fib->swept]) == 0)
		fib->swept ^= 1;
	removed = fib_visit(fib, fib->swept, &fib->cursors[fib->swept], buckets, is_alive, fib);
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
