// SPDX-License-Identifier: BSD-3-Clause
// Lookups of readers, a burst at a time: the host routes of all, then for those that have none the longest
// prefix: cache misses of a round overlap. A dead hop is a miss: it must not hide a shorter prefix that lives.
#include "fib/fib_state.h"

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
