// SPDX-License-Identifier: BSD-3-Clause
// Many tables at once: DPDK has 32 heaps, one of them its own, and a configuration that is applied has its tables
// beside those of the one before.
#include <rte_malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "nf/l3fwd/route_table.h"
#include "test/fixture.h"
#include "test/unit.h"

enum { TABLES = 16, PREFIXES = 20000, LINE_MAX_BYTES = 64 };

static void table_open(struct route_table *table, const char *text, bool hosts_apart)
{
	struct route_list list = {.port_count = 2};
	char error[ROUTE_ERROR_MAX] = "";

	assert_int_equal(route_list_text(&list, text, strlen(text), error), 0);
	assert_int_equal(route_list_sort(&list, error), 0);
	assert_int_equal(route_table_open(table, &list, hosts_apart, "test"), 0);
}

static void table_make(struct route_table *table, unsigned number)
{
	char text[LINE_MAX_BYTES];

	snprintf(text, sizeof(text), "10.%u.0.0/16 port 1\n", number);
	table_open(table, text, false);
}

static void table_check(const struct route_table *table, unsigned number)
{
	uint32_t addresses[2] = {RTE_IPV4(10, number, 1, 1), RTE_IPV4(10, number + 1, 1, 1)};
	uint64_t entries[2];

	route_table_find4(table, addresses, entries, 2);
	assert_int_equal(entries[0], 1);
	assert_int_equal(entries[1], 0);
}

static void old_and_new_beside_each_other(void **state)
{
	struct route_table *tables = calloc(2 * TABLES, sizeof(*tables));
	struct rte_malloc_socket_stats stats;

	for (unsigned i = 0; i < TABLES; i++)
		table_make(&tables[i], i);
	for (unsigned round = 0; round < 2; round++) {
		struct route_table *old = tables + round % 2 * TABLES,
		                   *new = tables + (round + 1) % 2 * TABLES;

		for (unsigned i = 0; i < TABLES; i++)
			table_make(&new[i], i);
		// Each is sealed to the last byte.
		assert_null(rte_malloc_socket(NULL, 1, 0, new->memory.socket));
		for (unsigned i = 0; i < TABLES; i++)
			route_table_close(&old[(i * 7 + round) % TABLES]);
		for (unsigned i = 0; i < TABLES; i++)
			table_check(&new[i], i);
		// No table has allocated from another one's area: of all that are closed nothing is left.
		assert_int_equal(rte_malloc_get_socket_stats(new->memory.socket, &stats), 0);
		assert_true(stats.heap_totalsz_bytes <= TABLES * new->memory.pages.mapped);
	}
	for (unsigned i = 0; i < TABLES; i++)
		route_table_close(&tables[i]);
	assert_int_equal(rte_malloc_heap_get_socket("routes"), -1);
	free(tables);
}

// Memory is set aside before there is a table, so what DPDK takes for each route must fit (cache lines differ).
static void there_is_room_for_the_nodes_of_many_prefixes(void **state)
{
	char *text = malloc(2 * PREFIXES * LINE_MAX_BYTES), *end = text;
	struct route_table table;

	assert_non_null(text);
	for (unsigned i = 0; i < PREFIXES; i++) {
		end += sprintf(end, "10.%u.%u.0/24 port 1\n", i >> 8, i & 0xff);
		end += sprintf(end, "2001:%x::/32 port 1\n", i);
	}
	table_open(&table, text, false);
	assert_int_equal(route_table_entries(&table), 1 + 2 * PREFIXES);
	route_table_close(&table);
	free(text);
}

// The guess at DPDK's layout: the entries of 10.1.0.0/16 are one value, and what is beside them is another.
static void what_is_prefetched_is_the_entry(void **state)
{
	const uint8_t *first;
	struct route_table table;

	table_make(&table, 1);
	assert_int_equal(table.first4_shift, 0);
	first = (const uint8_t *)table.first4 + (RTE_IPV4(10, 1, 0, 0) >> 8);
	assert_int_not_equal(first[0], first[-1]);
	assert_memory_equal(first, first + 1, 255);
	assert_int_not_equal(first[255], first[256]);
	route_table_close(&table);
}

static void host_routes_do_without_huge_pages(void **state)
{
	struct route_table table;

	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	table_open(&table, "10.0.0.1/32 port 1\n", true);
	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	assert_int_equal(table.hosts.count4, 1);
	route_table_close(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(old_and_new_beside_each_other),
	        cmocka_unit_test(there_is_room_for_the_nodes_of_many_prefixes),
	        cmocka_unit_test(what_is_prefetched_is_the_entry),
	        cmocka_unit_test(host_routes_do_without_huge_pages),
	};

	return fixture_eal_init("route_table") ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
