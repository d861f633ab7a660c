// SPDX-License-Identifier: BSD-3-Clause
// What is found in a table of routes: host routes before prefixes, and which route of the list an entry is.
#include <rte_byteorder.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/l3fwd/route_table.h"

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
