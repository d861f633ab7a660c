// SPDX-License-Identifier: BSD-3-Clause
#define ALLOW_EXPERIMENTAL_API // rte_vect_set_max_simd_bitwidth(), stable since DPDK 23
#include "tasks/l3fwd/route_table.h"

#include <errno.h>
#include <rte_byteorder.h>
#include <rte_errno.h>
#include <rte_vect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hugepages.h"
#include "lib/isa.h"
#include "lib/log.h"

enum {
	FIRST_BITS = 24,  // of an address, that the first table of both kinds is indexed by
	NODE_BYTES = 192, // of DPDK's own tree, two a route at most, with the header of its pool
	NODE6_BYTES = 192,
	GROUPS_SPARE = 2,   // DIR24_8 wants room for two before it takes one
	GROUPS6_SPARE = 16, // a trie takes one for each byte of a prefix before it gives back what is uniform
	FIRST_OFFSET = 64,  // of the first table in what rte_fib_get_dp() returns (DPDK 22.11)
	SLACK_BYTES = 1 << 20, // heads of blocks, and what aligning them costs
	NAME_MAX_BYTES = 20,   // of a table: that of its memory pool has "MP_" and must fit in 26
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

// Of the prefixes from one to another, all of one version.
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

static size_t shape_bytes(const struct shape *shape, size_t node_bytes, uint32_t groups, size_t of_group)
{
	size_t nodes = shape->count * 2, entry = 1u << shape->entry_shift;

	if (shape->count == 0)
		return 0;
	return (entry << FIRST_BITS) + (256 * entry + of_group) * groups + nodes * node_bytes +
	       8 * rte_align64pow2(nodes + 1);
}

static size_t table_bytes(const struct shape *shape4, const struct shape *shape6)
{
	return shape_bytes(shape4, NODE_BYTES, shape4->groups + 64, 0) +
	       shape_bytes(shape6, NODE6_BYTES, shape6->groups + 1, sizeof(uint32_t));
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
	size_t bytes = table_bytes(&shape4, &shape6);
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
