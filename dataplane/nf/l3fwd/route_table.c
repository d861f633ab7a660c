// SPDX-License-Identifier: BSD-3-Clause
#define ALLOW_EXPERIMENTAL_API // rte_vect_set_max_simd_bitwidth(), stable since DPDK 23
#include "nf/l3fwd/route_table.h"

#include <errno.h>
#include <rte_byteorder.h>
#include <rte_common.h>
#include <rte_errno.h>
#include <rte_random.h>
#include <rte_vect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hugepages.h"
#include "base/isa.h"
#include "base/log.h"

// --- Host routes -----------------------------------------------------------------------------------------

// --- Keys ------------------------------------------------------------------------------------------------

static uint64_t key4(const uint8_t address[static 4])
{
	uint32_t key;

	memcpy(&key, address, sizeof(key));
	return rte_be_to_cpu_32(key);
}

static struct cuckoo_wide_key key6(const uint8_t address[static 16])
{
	struct cuckoo_wide_key key = {0};

	memcpy(&key.high, address, sizeof(key.high));
	memcpy(&key.low, address + 8, sizeof(key.low));
	return key;
}

// Equal for host routes that do the same.
static struct cuckoo_wide_key hop_key(const struct route *route)
{
	struct cuckoo_wide_key key = {.low = (uint64_t)route->port << 2 | (unsigned)route->drop << 1 |
	                                     (unsigned)route->has_mac};

	memcpy(&key.high, route->mac, sizeof(route->mac));
	return key;
}

// --- Next hops -------------------------------------------------------------------------------------------

// Not of hugetlbfs: a VNF's table is no larger than some megabytes, which a page of 1 GiB would be wasted on.
static int table_make(enum cuckoo_width width, size_t entries, struct cuckoo **out)
{
	struct cuckoo_config config = {
	        .width = width, .entries = entries, .seed = rte_rand(), .pages = PAGES_THP};
	int status = entries ? cuckoo_create(&config, out) : 0;

	if (status == -ENOMEM) { // transparent huge pages are off, or there are none
		config.pages = PAGES_4K;
		status = cuckoo_create(&config, out);
	}
	return status;
}

// The number of a route's next hop; numbers has those before it. Returns 0 if there is no number left.
static uint16_t hop_of(struct cuckoo *numbers, unsigned *count, const struct route *route)
{
	const struct cuckoo_wide_key key = hop_key(route);
	uint16_t hop, old;

	cuckoo_wide_find(numbers, &key, 1, &hop);
	if (hop != CUCKOO_NONE)
		return hop;
	if (*count == ROUTE_HOPS_MAX || cuckoo_wide_put(numbers, &key, (uint16_t)(*count + 1), &old) != 0)
		return 0;
	return (uint16_t)++ * count;
}

int route_hosts_check(const struct route_list *list)
{
	struct cuckoo *numbers;
	unsigned count = 0;
	// The hops of synthetic routes take turns: a billion of them have no others than the first ones.
	size_t synthetic = RTE_MAX(list->via_count, (size_t)1);
	size_t different = list->routes ? list->count : RTE_MIN(list->count, synthetic);
	int status = table_make(CUCKOO_WIDE, ROUTE_HOPS_MAX, &numbers);

	if (status)
		return status;
	for (size_t i = 0; i < different && status == 0; i++) {
		const struct route route = route_list_at(list, i);

		if (route_is_host(&route) && hop_of(numbers, &count, &route) == 0)
			status = -ENOSPC;
	}
	cuckoo_destroy(numbers);
	return status;
}

enum { FETCH_AHEAD = 16 };

// --- Tables ----------------------------------------------------------------------------------------------

static int put(struct route_hosts *hosts, const struct route *route, uint16_t hop)
{
	const struct cuckoo_wide_key key = key6(route->address);
	uint16_t old;

	return route->version == 4 ? cuckoo_put(hosts->v4, key4(route->address), hop, &old)
	                           : cuckoo_wide_put(hosts->v6, &key, hop, &old);
}

static int add(struct route_hosts *hosts, struct cuckoo *numbers, const struct route *route, size_t index)
{
	unsigned before = hosts->hops;
	uint16_t hop = hop_of(numbers, &hosts->hops, route);

	if (hosts->hops > before)
		hosts->first[before] = (uint32_t)index;
	return hop ? put(hosts, route, hop) : -ENOSPC;
}

// Have the buckets of route i in the cache soon.
static void fetch(const struct route_hosts *hosts, const struct route_list *list, size_t i)
{
	const struct route route = i < list->count ? route_list_at(list, i) : (struct route){0};

	if (route.version == 4 && route_is_host(&route))
		cuckoo_prefetch(hosts->v4, key4(route.address));
}

static int fill(struct route_hosts *hosts, const struct route_list *list, struct cuckoo *numbers)
{
	int status = 0;

	for (size_t i = 0; i < list->count && status == 0; i++) {
		const struct route route = route_list_at(list, i);

		fetch(hosts, list, i + FETCH_AHEAD);
		if (route_is_host(&route))
			status = add(hosts, numbers, &route, i);
	}
	return status;
}

static void count(struct route_hosts *hosts, const struct route_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct route route = route_list_at(list, i);

		hosts->count4 += route.version == 4 && route_is_host(&route);
		hosts->count6 += route.version == 6 && route_is_host(&route);
	}
}

int route_hosts_open(struct route_hosts *hosts, const struct route_list *list)
{
	struct cuckoo *numbers = NULL;
	int status;

	*hosts = (struct route_hosts){.first = calloc(ROUTE_HOPS_MAX, sizeof(*hosts->first))};
	count(hosts, list);
	status = hosts->first ? table_make(CUCKOO_WIDE, ROUTE_HOPS_MAX, &numbers) : -ENOMEM;
	if (status == 0)
		status = table_make(CUCKOO_NARROW, hosts->count4, &hosts->v4);
	if (status == 0)
		status = table_make(CUCKOO_WIDE, hosts->count6, &hosts->v6);
	if (status == 0)
		status = fill(hosts, list, numbers);
	cuckoo_destroy(numbers);
	return status;
}

void route_hosts_close(struct route_hosts *hosts)
{
	cuckoo_destroy(hosts->v4);
	cuckoo_destroy(hosts->v6);
	free(hosts->first);
}

// --- Lookups ---------------------------------------------------------------------------------------------

void route_hosts_prefetch6(const struct route_hosts *hosts, const uint8_t address[static 16])
{
	const struct cuckoo_wide_key key = key6(address);

	cuckoo_wide_prefetch(hosts->v6, &key);
}

void route_hosts_find4(const struct route_hosts *hosts, const uint32_t *addresses, uint16_t *hops, unsigned n)
{
	uint64_t keys[CUCKOO_BULK_MAX];

	for (unsigned i = 0; i < n; i++)
		keys[i] = addresses[i];
	cuckoo_find(hosts->v4, keys, n, hops);
}

void route_hosts_find6(const struct route_hosts *hosts, uint8_t (*addresses)[16], uint16_t *hops, unsigned n)
{
	struct cuckoo_wide_key keys[CUCKOO_BULK_MAX];

	for (unsigned i = 0; i < n; i++)
		keys[i] = key6(addresses[i]);
	cuckoo_wide_find(hosts->v6, keys, n, hops);
}

enum {
	FIRST_BITS = 24, // of an address, that the first table of both kinds is indexed by
	// Set aside for DPDK's own tree, by route, and beside the entries of a second table. More than is used costs
	// addresses, not memory.
	ROUTE_BYTES = 640,
	GROUP_BYTES = 64,
	GROUPS_SPARE = 2,   // DIR24_8 wants room for two before it takes one
	GROUPS6_SPARE = 16, // a trie takes one for each byte of a prefix before it gives back what is uniform
	FIRST_OFFSET =
	        RTE_CACHE_LINE_SIZE, // of the first table in what rte_fib_get_dp() returns: a guess (route_table.h)
	SLACK_BYTES = 1 << 20,       // heads of blocks, and what aligning them costs
	NAME_MAX_BYTES = 20,         // of a table: that of its memory pool has "MP_" and must fit in 26
};

// Prefixes of one version: count and size of its tables.
struct shape {
	const struct route *routes; // of the list
	const uint32_t *prefixes;   // of them: sorted, without /0
	size_t count;
	size_t first;         // entry of the first one
	uint32_t groups;      // second tables, of 256 entries
	unsigned entry_shift; // an entry has 1 << shift bytes
};

static const struct route *prefix_of(const struct shape *shape, size_t i)
{
	return &shape->routes[shape->prefixes[i]];
}

// --- How large it is -------------------------------------------------------------------------------------

static uint32_t first_bits(const struct route *route)
{
	return (uint32_t)(route->address[0] << 16 | route->address[1] << 8 | route->address[2]);
}

static uint32_t groups4(const struct shape *shape)
{
	uint32_t groups = 0, last = UINT32_MAX;

	for (size_t i = 0; i < shape->count; i++)
		if (prefix_of(shape, i)->length > FIRST_BITS && first_bits(prefix_of(shape, i)) != last) {
			last = first_bits(prefix_of(shape, i));
			groups++;
		}
	return groups + GROUPS_SPARE;
}

// What the trie sets aside: one for each byte of a prefix, whether others share it or not.
static uint32_t groups6(const struct shape *shape)
{
	uint32_t groups = 0;

	for (size_t i = 0; i < shape->count; i++)
		if (prefix_of(shape, i)->length > FIRST_BITS)
			groups += (prefix_of(shape, i)->length - FIRST_BITS + 7u) / 8;
	return groups + GROUPS6_SPARE;
}

// An entry holds the number of a route or of a group, and one bit.
static unsigned entry_shift(size_t largest, unsigned least)
{
	unsigned shift = least;

	while (shift < 2 && largest >= UINT64_C(1) << (8 * (1 << shift) - 1))
		shift++;
	return shift;
}

// The shape that the prefixes [from, to) ask for; they are all of one version.
static struct shape shape_of(const struct route_table *table, size_t from, size_t to)
{
	struct shape shape = {.routes = table->list.routes,
	                      .prefixes = table->prefixes + from,
	                      .count = to - from,
	                      .first = from + 1};
	bool v6 = shape.count && prefix_of(&shape, 0)->version == 6;

	if (shape.count && prefix_of(&shape, 0)->length == 0) {
		shape.prefixes++;
		shape.count--;
		shape.first++;
	}
	shape.groups = v6 ? groups6(&shape) : groups4(&shape);
	shape.entry_shift = entry_shift(RTE_MAX(to, (size_t)shape.groups), v6 ? RTE_FIB6_TRIE_2B : 0);
	return shape;
}

static size_t shape_bytes(const struct shape *shape)
{
	size_t entry = 1u << shape->entry_shift;

	if (shape->count == 0)
		return 0;
	return (entry << FIRST_BITS) + (256 * entry + GROUP_BYTES) * (shape->groups + 64) +
	       ROUTE_BYTES * shape->count;
}

// --- DPDK's tables ---------------------------------------------------------------------------------------

static void name_next(char name[NAME_MAX_BYTES])
{
	static unsigned tables; // control thread

	snprintf(name, NAME_MAX_BYTES, "l3fwd%u", tables++);
}

// With 512-bit vectors where we use them; DPDK does not unless it is told to, and is told for this only.
static void choose_lookup(struct route_table *table)
{
	uint16_t bits = rte_vect_get_max_simd_bitwidth();

	if (isa_current() != ISA_AVX512 || rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_512) != 0)
		return;
	if (table->fib4)
		rte_fib_select_lookup(table->fib4, RTE_FIB_LOOKUP_DEFAULT);
	if (table->fib6)
		rte_fib6_select_lookup(table->fib6, RTE_FIB6_LOOKUP_DEFAULT);
	rte_vect_set_max_simd_bitwidth(bits);
}

static uint32_t address4(const struct route *route)
{
	uint32_t address;

	memcpy(&address, route->address, sizeof(address));
	return rte_be_to_cpu_32(address);
}

static int build4(struct route_table *table, const struct shape *shape)
{
	struct rte_fib_conf conf = {.type = RTE_FIB_DIR24_8,
	                            .default_nh = table->default4,
	                            .max_routes = (int)shape->count,
	                            .dir24_8 = {.nh_sz = (enum rte_fib_dir24_8_nh_sz)shape->entry_shift,
	                                        .num_tbl8 = shape->groups}};
	char name[NAME_MAX_BYTES];
	int status = 0;

	if (shape->count == 0)
		return 0;
	name_next(name);
	table->fib4 = rte_fib_create(name, table->memory.socket, &conf);
	if (!table->fib4)
		return -rte_errno;
	table->first4 = (uintptr_t)rte_fib_get_dp(table->fib4) + FIRST_OFFSET;
	table->first4_shift = shape->entry_shift;
	for (size_t i = 0; i < shape->count && status == 0; i++)
		status = rte_fib_add(table->fib4, address4(prefix_of(shape, i)), prefix_of(shape, i)->length,
		                     shape->first + i);
	return status;
}

static int build6(struct route_table *table, const struct shape *shape)
{
	struct rte_fib6_conf conf = {
	        .type = RTE_FIB6_TRIE,
	        .default_nh = table->default6,
	        .max_routes = (int)shape->count,
	        .trie = {.nh_sz = (enum rte_fib_trie_nh_sz)shape->entry_shift, .num_tbl8 = shape->groups}};
	char name[NAME_MAX_BYTES];
	int status = 0;

	if (shape->count == 0)
		return 0;
	name_next(name);
	table->fib6 = rte_fib6_create(name, table->memory.socket, &conf);
	if (!table->fib6)
		return -rte_errno;
	for (size_t i = 0; i < shape->count && status == 0; i++)
		status = fib6_add(table->fib6, prefix_of(shape, i)->address, prefix_of(shape, i)->length,
		                  shape->first + i);
	return status;
}

// --- Entries ---------------------------------------------------------------------------------------------

static struct route_entry entry_of(const struct route route)
{
	struct route_entry entry = {.out = route.drop                  ? ROUTE_OUT_DROP
	                                   : route.port == ROUTE_UNSET ? ROUTE_OUT_OTHER
	                                                               : route.port,
	                            .has_mac = route.has_mac};

	memcpy(entry.mac, route.mac, sizeof(entry.mac));
	return entry;
}

static int entries_make(struct route_table *table)
{
	struct route_entry *entry = hugepages_alloc(route_table_entries(table) * sizeof(*entry));

	table->entries = entry;
	if (!entry)
		return -ENOMEM;
	*entry++ = (struct route_entry){.out = ROUTE_OUT_NONE};
	for (size_t i = 0; i < table->prefix_count; i++)
		*entry++ = entry_of(route_list_at(&table->list, table->prefixes[i]));
	for (unsigned i = 0; i < table->hosts.hops; i++)
		*entry++ = entry_of(route_list_at(&table->list, table->hosts.first[i]));
	return 0;
}

static uint64_t default_of(const struct route_table *table, size_t from, size_t to)
{
	return from < to && table->list.routes[table->prefixes[from]].length == 0 ? from + 1 : 0;
}

static bool is_prefix(const struct route_table *table, const struct route *route)
{
	return !(table->hosts_apart && route_is_host(route));
}

static int prefixes_make(struct route_table *table)
{
	const struct route_list *list = &table->list;

	for (size_t i = 0; list->routes && i < list->count; i++)
		table->prefix_count += is_prefix(table, &list->routes[i]);
	table->prefixes = malloc((table->prefix_count + 1) * sizeof(*table->prefixes));
	if (!table->prefixes)
		return -ENOMEM;
	for (size_t i = 0, n = 0; n < table->prefix_count; i++)
		if (is_prefix(table, &list->routes[i])) {
			table->prefixes[n++] = (uint32_t)i;
			table->prefixes4 += list->routes[i].version == 4;
		}
	table->default4 = default_of(table, 0, table->prefixes4);
	table->default6 = default_of(table, table->prefixes4, table->prefix_count);
	return 0;
}

// --- All of it -------------------------------------------------------------------------------------------

static int build_prefixes(struct route_table *table)
{
	struct shape shape4 = shape_of(table, 0, table->prefixes4);
	struct shape shape6 = shape_of(table, table->prefixes4, table->prefix_count);
	size_t bytes = shape_bytes(&shape4) + shape_bytes(&shape6);
	int status = bytes ? route_memory_open(&table->memory, bytes + SLACK_BYTES) : 0;

	if (status == 0)
		status = build4(table, &shape4);
	if (status == 0)
		status = build6(table, &shape6);
	route_memory_seal(&table->memory);
	return status;
}

static int build(struct route_table *table)
{
	int status = prefixes_make(table);

	if (status == 0 && table->hosts_apart)
		status = route_hosts_open(&table->hosts, &table->list);
	if (status == 0)
		status = entries_make(table);
	return status == 0 ? build_prefixes(table) : status;
}

int route_table_open(struct route_table *table, struct route_list *list, bool hosts_apart, const char *who)
{
	int status;

	*table = (struct route_table){.list = *list, .hosts_apart = hosts_apart};
	*list = (struct route_list){0};
	status = build(table);
	if (status == 0)
		choose_lookup(table);
	else
		LOG_ERROR("task %s: no room for %zu routes: %s; the tables of %zu prefixes take %zu MB", who,
		          table->list.count, strerror(-status), table->prefix_count,
		          table->memory.pages.bytes >> 20);
	return status;
}

void route_table_close(struct route_table *table)
{
	rte_fib_free(table->fib4);
	rte_fib6_free(table->fib6);
	route_memory_close(&table->memory);
	route_hosts_close(&table->hosts);
	free(table->prefixes);
	free(table->entries);
	route_list_free(&table->list);
}

// --- Lookups ---------------------------------------------------------------------------------------------

// What is found in a table of routes: host routes before prefixes, and which route of the list an entry is.

// --- Host routes and prefixes ----------------------------------------------------------------------------

// What has no host route is gathered, looked up at once and spread again.
void route_both_find4(const struct route_table *table, const uint32_t *addresses, uint64_t *entries,
                      unsigned n)
{
	uint32_t rest[CUCKOO_BULK_MAX];
	uint64_t found[CUCKOO_BULK_MAX];
	uint16_t hops[CUCKOO_BULK_MAX];
	uint8_t at[CUCKOO_BULK_MAX];
	unsigned left = 0;

	route_hosts_find4(&table->hosts, addresses, hops, n);
	for (unsigned i = 0; i < n; i++) {
		entries[i] = table->prefix_count + hops[i];
		rest[left] = addresses[i];
		at[left] = (uint8_t)i;
		left += hops[i] == CUCKOO_NONE;
	}
	if (left == 0)
		return;
	route_prefixes_find4(table, rest, found, left);
	for (unsigned i = 0; i < left; i++)
		entries[at[i]] = found[i];
}

void route_both_find6(const struct route_table *table, uint8_t (*addresses)[16], uint64_t *entries,
                      unsigned n)
{
	uint8_t rest[CUCKOO_BULK_MAX][16], at[CUCKOO_BULK_MAX];
	uint64_t found[CUCKOO_BULK_MAX];
	uint16_t hops[CUCKOO_BULK_MAX];
	unsigned left = 0;

	route_hosts_find6(&table->hosts, addresses, hops, n);
	for (unsigned i = 0; i < n; i++) {
		entries[i] = table->prefix_count + hops[i];
		memcpy(rest[left], addresses[i], sizeof(rest[left]));
		at[left] = (uint8_t)i;
		left += hops[i] == CUCKOO_NONE;
	}
	if (left == 0)
		return;
	route_prefixes_find6(table, rest, found, left);
	for (unsigned i = 0; i < left; i++)
		entries[at[i]] = found[i];
}

// --- Routes of the list ----------------------------------------------------------------------------------

static uint64_t entry_of_address(const struct route_table *table, const struct route *to)
{
	uint8_t address6[1][16];
	uint32_t address4;
	uint64_t entry;

	memcpy(address6, to->address, sizeof(address6));
	memcpy(&address4, to->address, sizeof(address4));
	address4 = rte_be_to_cpu_32(address4);
	if (to->version == 4)
		route_table_find4(table, &address4, &entry, 1);
	else
		route_table_find6(table, address6, &entry, 1);
	return entry;
}

static int compare_indexes(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

uint64_t route_table_entry(const struct route_table *table, size_t i)
{
	const struct route route = route_list_at(&table->list, i);
	uint32_t index = (uint32_t)i, *prefix;

	if (table->hosts_apart && route_is_host(&route))
		return entry_of_address(table, &route);
	prefix = bsearch(&index, table->prefixes, table->prefix_count, sizeof(index), compare_indexes);
	return (uint64_t)(prefix - table->prefixes) + 1;
}

uint64_t route_table_lookup(const struct route_table *table, struct route *to)
{
	uint64_t entry = entry_of_address(table, to);

	if (entry > table->prefix_count)
		to->length = to->version == 4 ? 32 : 128;
	else if (entry)
		*to = table->list.routes[table->prefixes[entry - 1]];
	return entry;
}
