// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/l3fwd/route_hosts.h"

#include <errno.h>
#include <rte_byteorder.h>
#include <rte_random.h>
#include <stdlib.h>
#include <string.h>

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
	const struct cuckoo_config config = {
	        .width = width, .entries = entries, .seed = rte_rand(), .pages = PAGES_THP};

	return entries ? cuckoo_create(&config, out) : 0;
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
	int status = table_make(CUCKOO_WIDE, ROUTE_HOPS_MAX, &numbers);

	if (status)
		return status;
	for (size_t i = 0; i < list->count && status == 0; i++) {
		const struct route route = route_list_at(list, i);

		if (route_is_host(&route) && hop_of(numbers, &count, &route) == 0)
			status = -ENOSPC;
	}
	cuckoo_destroy(numbers);
	return status;
}

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

static int fill(struct route_hosts *hosts, const struct route_list *list, struct cuckoo *numbers)
{
	int status = 0;

	for (size_t i = 0; i < list->count && status == 0; i++) {
		const struct route route = route_list_at(list, i);

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
