// SPDX-License-Identifier: BSD-3-Clause
// DPDK's rte_hash with the same keys: 8 bytes each, values beside them, lock-free readers beside one writer
// (RW_CONCURRENCY_LF), bulk lookups. Its memory gets large pages as ours does.
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include <rte_errno.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_malloc.h>
#include <rte_memory.h>

#include "fib/fib_bench.h"

static int advise(const struct rte_memseg_list *list, void *argument)
{
	madvise(list->base_va, list->len, *(const bool *)argument ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return 0;
}

static uint64_t heap_bytes(void)
{
	struct rte_malloc_socket_stats stats;

	return rte_malloc_get_socket_stats(0, &stats) ? 0 : stats.heap_allocsz_bytes;
}

static void *data_of(uint64_t n)
{
	return (void *)(uintptr_t)bench_value(n); // an integer, kept as one
}

void bench_rte_build(struct bench *bench)
{
	struct rte_hash_parameters parameters = {.name = "fib_bench",
	                                         .entries = (uint32_t)bench->entries,
	                                         .key_len = sizeof(uint64_t),
	                                         .hash_func = rte_hash_crc,
	                                         .extra_flag = RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF};
	bool large = any_stats(&bench->any).pages != PAGES_4K;
	uint64_t before = heap_bytes(), begun, refused = 0, cycles;

	rte_memseg_list_walk(advise, &large);
	bench->hash = rte_hash_create(&parameters);
	if (bench->hash == NULL)
		bench_die("rte_hash of %lu entries cannot be made: error %d", bench->entries, rte_errno);
	begun = bench_cycles();
	for (uint64_t n = 0; n < bench->entries; n++) {
		uint64_t key = any_key(&bench->any, n);

		refused += rte_hash_add_key_data(bench->hash, &key, data_of(n)) != 0;
	}
	cycles = bench_cycles() - begun;
	printf("{\"case\": \"rte_build\", \"per_second\": %.0f, \"bytes\": %lu, \"refused\": %lu}\n",
	       (double)bench->entries * bench->tsc_hz / (double)cycles, heap_bytes() - before, refused);
	fflush(stdout);
}

static uint64_t find(struct bench *bench, unsigned bulk)
{
	const void *keys[RTE_HASH_LOOKUP_BULK_MAX];
	void *data[RTE_HASH_LOOKUP_BULK_MAX];
	uint64_t found;

	for (unsigned i = 0; i < BLOCK; i += bulk) {
		for (unsigned j = 0; j < bulk; j++)
			keys[j] = &bench->keys[i + j];
		rte_hash_lookup_bulk_data(bench->hash, keys, bulk, &found, data);
		for (unsigned j = 0; j < bulk; j++)
			bench->values[i + j] = found >> j & 1 ? (uint16_t)(uintptr_t)data[j] : CUCKOO_NONE;
	}
	return BLOCK;
}

static uint64_t find_32(struct bench *bench)
{
	return find(bench, 32);
}

static uint64_t find_64(struct bench *bench)
{
	return find(bench, 64);
}

static uint64_t replace(struct bench *bench)
{
	for (unsigned i = 0; i < BLOCK; i++)
		rte_hash_add_key_data(bench->hash, &bench->keys[i], data_of(bench->ns[i]));
	return BLOCK;
}

// With lock-free readers a deleted key's place is the caller's to give back.
static uint64_t delete_put(struct bench *bench)
{
	uint64_t operations = BLOCK;

	for (unsigned i = 0; i < BLOCK; i++) {
		int32_t at = rte_hash_del_key(bench->hash, &bench->keys[i]);

		if (at < 0)
			operations--;
		else
			rte_hash_free_key_with_position(bench->hash, at);
	}
	for (unsigned i = 0; i < BLOCK; i++)
		rte_hash_add_key_data(bench->hash, &bench->keys[i], data_of(bench->ns[i]));
	return operations + BLOCK;
}

const struct bench_case bench_rte_cases[] = {
        {"rte_find_32", false, true, find_32},       {"rte_find_64", false, true, find_64},
        {"rte_absent_64", true, true, find_64},      {"rte_replace", false, true, replace},
        {"rte_delete_put", false, true, delete_put},
};
const unsigned bench_rte_case_count = sizeof(bench_rte_cases) / sizeof(*bench_rte_cases);
