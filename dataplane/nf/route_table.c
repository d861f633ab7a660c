// SPDX-License-Identifier: BSD-3-Clause
#define ALLOW_EXPERIMENTAL_API // rte_vect_set_max_simd_bitwidth(), stable since DPDK 23
#include "route_table.h"

#include <errno.h>
#include <rte_byteorder.h>
#include <rte_errno.h>
#include <rte_vect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "isa.h"
#include "log.h"

enum {
	FIRST_BITS = 24,  // of an address, that the first table of both kinds is indexed by
	NODE_BYTES = 192, // of DPDK's own tree, two a route at most, with the header of its pool
	NODE6_BYTES = 192,
	GROUPS_SPARE = 2,   // DIR24_8 wants room for two before it takes one
	GROUPS6_SPARE = 16, // a trie takes one for each byte of a prefix before it gives back what is uniform
	HUGE_PAGE = 2 << 20,
	FIRST_OFFSET = 64,     // of the first table in what rte_fib_get_dp() returns (DPDK 22.11)
	SLACK_BYTES = 1 << 20, // heads of blocks, and what aligning them costs
	NAME_MAX_BYTES = 20,   // of a table: that of its memory pool has "MP_" and must fit in 26
};

// Routes of one version: count and size of its tables.
struct shape {
	const struct route *routes; // sorted, without /0
	size_t count;
	uint32_t groups;      // second tables, of 256 entries
	unsigned entry_shift; // an entry has 1 << shift bytes
};

// --- How large it is -------------------------------------------------------------------------------------

static uint32_t first_bits(const struct route *route)
{
	return (uint32_t)(route->address[0] << 16 | route->address[1] << 8 | route->address[2]);
}

static uint32_t groups4(const struct shape *shape)
{
	uint32_t groups = 0, last = UINT32_MAX;

	for (size_t i = 0; i < shape->count; i++)
		if (shape->routes[i].length > FIRST_BITS && first_bits(&shape->routes[i]) != last) {
			last = first_bits(&shape->routes[i]);
			groups++;
		}
	return groups + GROUPS_SPARE;
}

// What the trie sets aside: one for each byte of a prefix, whether others share it or not.
static uint32_t groups6(const struct shape *shape)
{
	uint32_t groups = 0;

	for (size_t i = 0; i < shape->count; i++)
		if (shape->routes[i].length > FIRST_BITS)
			groups += (shape->routes[i].length - FIRST_BITS + 7u) / 8;
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

static struct shape shape_of(const struct route_list *list, size_t from, size_t to)
{
	struct shape shape = {.routes = list->routes + from, .count = to - from};
	bool v6 = shape.count && shape.routes->version == 6;

	if (shape.count && shape.routes->length == 0) {
		shape.routes++;
		shape.count--;
	}
	shape.groups = v6 ? groups6(&shape) : groups4(&shape);
	shape.entry_shift = entry_shift(RTE_MAX(to, (size_t)shape.groups), v6 ? RTE_FIB6_TRIE_2B : 0);
	return shape;
}

static size_t count_version4(const struct route_list *list)
{
	size_t n = 0;

	while (n < list->count && list->routes[n].version == 4)
		n++;
	return n;
}

static size_t shape_bytes(const struct shape *shape, size_t node_bytes, uint32_t groups, size_t of_group)
{
	size_t nodes = shape->count * 2, entry = 1u << shape->entry_shift;

	if (shape->count == 0)
		return 0;
	return (entry << FIRST_BITS) + (256 * entry + of_group) * groups + nodes * node_bytes +
	       8 * rte_align64pow2(nodes + 1);
}

size_t route_table_bytes(const struct route_list *list)
{
	size_t count4 = count_version4(list);
	struct shape shape4 = shape_of(list, 0, count4), shape6 = shape_of(list, count4, list->count);

	return shape_bytes(&shape4, NODE_BYTES, shape4.groups + 64, 0) +
	       shape_bytes(&shape6, NODE6_BYTES, shape6.groups + 1, sizeof(uint32_t));
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
		status = rte_fib_add(table->fib4, address4(&shape->routes[i]), shape->routes[i].length,
		                     (uint64_t)(shape->routes + i - table->list.routes) + 1);
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
		status = rte_fib6_add(table->fib6, shape->routes[i].address, shape->routes[i].length,
		                      (uint64_t)(shape->routes + i - table->list.routes) + 1);
	return status;
}

// --- Entries ---------------------------------------------------------------------------------------------

static struct route_entry entry_of(const struct route *route)
{
	struct route_entry entry = {.out = route->drop                  ? ROUTE_OUT_DROP
	                                   : route->port == ROUTE_UNSET ? ROUTE_OUT_OTHER
	                                                                : route->port,
	                            .has_mac = route->has_mac};

	memcpy(entry.mac, route->mac, sizeof(entry.mac));
	return entry;
}

static int entries_make(struct route_table *table)
{
	size_t bytes = (table->list.count + 1) * sizeof(*table->entries);
	size_t align = bytes < HUGE_PAGE ? 64 : HUGE_PAGE;

	bytes = RTE_ALIGN_CEIL(bytes, align);
	table->entries = aligned_alloc(align, bytes);
	if (!table->entries)
		return -ENOMEM;
	if (align == HUGE_PAGE)
		madvise(table->entries, bytes, MADV_HUGEPAGE); // one TLB entry for 131072 routes; or not
	table->entries[0] = (struct route_entry){.out = ROUTE_OUT_NONE};
	for (size_t i = 0; i < table->list.count; i++)
		table->entries[i + 1] = entry_of(&table->list.routes[i]);
	return 0;
}

static uint64_t default_of(const struct route_list *list, size_t from, size_t to)
{
	return from < to && list->routes[from].length == 0 ? from + 1 : 0;
}

// --- All of it -------------------------------------------------------------------------------------------

static int build(struct route_table *table)
{
	const struct route_list *list = &table->list;
	struct shape shape4 = shape_of(list, 0, table->count4);
	struct shape shape6 = shape_of(list, table->count4, list->count);
	size_t bytes = route_table_bytes(list);
	int status = entries_make(table);

	if (status == 0 && bytes)
		status = route_memory_open(&table->memory, bytes + SLACK_BYTES);
	if (status == 0)
		status = build4(table, &shape4);
	return status == 0 ? build6(table, &shape6) : status;
}

int route_table_open(struct route_table *table, struct route_list *list, const char *who)
{
	int status;

	*table = (struct route_table){.list = *list, .count4 = count_version4(list)};
	*list = (struct route_list){0};
	table->default4 = default_of(&table->list, 0, table->count4);
	table->default6 = default_of(&table->list, table->count4, table->list.count);
	status = build(table);
	if (status == 0)
		choose_lookup(table);
	else
		LOG_ERROR("task %s: no room for %zu routes: %s; they take %zu MB", who, table->list.count,
		          strerror(-status), (route_table_bytes(&table->list) >> 20) + 1);
	return status;
}

void route_table_close(struct route_table *table)
{
	rte_fib_free(table->fib4);
	rte_fib6_free(table->fib6);
	route_memory_close(&table->memory);
	free(table->entries);
	route_list_free(&table->list);
}
