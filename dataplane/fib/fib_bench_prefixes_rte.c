// SPDX-License-Identifier: BSD-3-Clause
// DPDK's: rte_fib (DIR-24-8) and rte_lpm for IPv4, rte_fib6 (a trie of 24 and then 8 bits) for IPv6; values of 16 bits
// where that is enough: rte_fib6 then has no room for as many nodes. Bytes are all that they take of the heap: with rules, but without what a second VNF takes.
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_lpm.h>
#include <rte_malloc.h>
#include <rte_memory.h>
#include <string.h>
#include <sys/mman.h>

#include "fib/fib_bench_prefixes.h"

enum { TBL8S4 = 1 << 12, TBL8S6 = 1 << 19, BULK = CUCKOO_BULK_MAX };

static int advise(const struct rte_memseg_list *list, void *argument)
{
	madvise(list->base_va, list->len, MADV_HUGEPAGE);
	return 0;
}

// All of the heap, and of what lies in pools and outside of it.
static uint64_t heap_bytes(void)
{
	struct rte_malloc_socket_stats stats;

	rte_memseg_list_walk(advise, NULL);
	return rte_malloc_get_socket_stats(0, &stats) ? 0 : stats.heap_allocsz_bytes;
}

static uint32_t bits_of(const struct bench_route *route)
{
	uint32_t address;

	memcpy(&address, route->prefix.address, sizeof(address));
	return rte_be_to_cpu_32(address);
}

static void values_of(const uint64_t *hops, uint16_t *values)
{
	for (unsigned i = 0; i < BULK; i++)
		values[i] = (uint16_t)hops[i];
}

// --- rte_fib ------------------------------------------------------------------------------------------------

static struct rte_fib *dir24;
static uint64_t dir24_before;

static void dir24_open(const struct bench *bench)
{
	struct rte_fib_conf conf = {.type = RTE_FIB_DIR24_8,
	                            .max_routes = (int)bench->count + 1,
	                            .dir24_8 = {.nh_sz = RTE_FIB_DIR24_8_2B, .num_tbl8 = TBL8S4}};

	dir24_before = heap_bytes();
	dir24 = rte_fib_create("bench", 0, &conf);
	if (dir24 == NULL)
		bench_die("no rte_fib");
}

static bool dir24_put(const struct bench *bench, const struct bench_route *route, uint16_t value)
{
	return rte_fib_add(dir24, bits_of(route), route->prefix.length, value) == 0;
}

static void dir24_drop(const struct bench *bench, const struct bench_route *route)
{
	rte_fib_delete(dir24, bits_of(route), route->prefix.length);
}

static void dir24_find(const struct bench *bench, uint16_t *values)
{
	for (unsigned i = 0; i < BLOCK; i += BULK) {
		uint64_t hops[BULK];

		rte_fib_lookup_bulk(dir24, (uint32_t *)(uintptr_t)&bench->words[i], hops, BULK);
		values_of(hops, &values[i]);
	}
}

static uint64_t dir24_bytes(const struct bench *bench)
{
	return heap_bytes() - dir24_before;
}

const struct bench_table bench_dir24 = {"rte_fib",  4,          dir24_open, dir24_put,
                                        dir24_drop, dir24_find, dir24_bytes};

// --- rte_lpm ------------------------------------------------------------------------------------------------

static struct rte_lpm *lpm;
static uint64_t lpm_before;

static void lpm_open(const struct bench *bench)
{
	const struct rte_lpm_config config = {.max_rules = bench->count + 1, .number_tbl8s = TBL8S4};

	lpm_before = heap_bytes();
	lpm = rte_lpm_create("bench", 0, &config);
	if (lpm == NULL)
		bench_die("no rte_lpm");
}

static bool lpm_put(const struct bench *bench, const struct bench_route *route, uint16_t value)
{
	return rte_lpm_add(lpm, bits_of(route), route->prefix.length, value) == 0;
}

static void lpm_drop(const struct bench *bench, const struct bench_route *route)
{
	rte_lpm_delete(lpm, bits_of(route), route->prefix.length);
}

static void lpm_find(const struct bench *bench, uint16_t *values)
{
	for (unsigned i = 0; i < BLOCK; i += BULK) {
		uint32_t hops[BULK];

		rte_lpm_lookup_bulk(lpm, &bench->words[i], hops, BULK);
		for (unsigned j = 0; j < BULK; j++)
			values[i + j] = hops[j] & RTE_LPM_LOOKUP_SUCCESS ? (uint16_t)hops[j] : 0;
	}
}

static uint64_t lpm_bytes(const struct bench *bench)
{
	return heap_bytes() - lpm_before;
}

const struct bench_table bench_lpm = {"rte_lpm", 4, lpm_open, lpm_put, lpm_drop, lpm_find, lpm_bytes};

// --- rte_fib6 -----------------------------------------------------------------------------------------------

static struct rte_fib6 *fib6;
static uint64_t fib6_before;

static void fib6_open(const struct bench *bench)
{
	struct rte_fib6_conf conf = {.type = RTE_FIB6_TRIE,
	                             .max_routes = (int)bench->count + 1,
	                             .trie = {.nh_sz = RTE_FIB6_TRIE_4B, .num_tbl8 = TBL8S6}};

	fib6_before = heap_bytes();
	fib6 = rte_fib6_create("bench", 0, &conf);
	if (fib6 == NULL)
		bench_die("no rte_fib6");
}

static bool fib6_put(const struct bench *bench, const struct bench_route *route, uint16_t value)
{
	return rte_fib6_add(fib6, route->prefix.address, route->prefix.length, value) == 0;
}

static void fib6_drop(const struct bench *bench, const struct bench_route *route)
{
	rte_fib6_delete(fib6, route->prefix.address, route->prefix.length);
}

static void fib6_find(const struct bench *bench, uint16_t *values)
{
	for (unsigned i = 0; i < BLOCK; i += BULK) {
		uint64_t hops[BULK];

		rte_fib6_lookup_bulk(fib6, (uint8_t(*)[16])(uintptr_t)bench->bytes[i], hops, BULK);
		values_of(hops, &values[i]);
	}
}

static uint64_t fib6_bytes(const struct bench *bench)
{
	return heap_bytes() - fib6_before;
}

const struct bench_table bench_fib6 = {"rte_fib6", 6, fib6_open, fib6_put, fib6_drop, fib6_find, fib6_bytes};
