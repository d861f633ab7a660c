// SPDX-License-Identifier: BSD-3-Clause
// Many tables at once: DPDK has 32 heaps, one of them its own, and a configuration that is applied has its tables
// beside those of the one before.
#include <rte_malloc.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/l3fwd/route_table.h"
#include "test/fixture.h"
#include "test/unit.h"

enum { TABLES = 16 };

static void table_make(struct route_table *table, unsigned number)
{
	struct route_list list = {.port_count = 2};
	char text[64], error[ROUTE_ERROR_MAX] = "";

	snprintf(text, sizeof(text), "10.%u.0.0/16 port 1\n", number);
	assert_int_equal(route_list_text(&list, text, strlen(text), error), 0);
	assert_int_equal(route_list_sort(&list, error), 0);
	assert_int_equal(route_table_open(table, &list, false, "test"), 0);
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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(old_and_new_beside_each_other)};

	return fixture_eal_init("route_table") ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
