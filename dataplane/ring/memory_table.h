// SPDX-License-Identifier: BSD-3-Clause
// DPDK's memory as a vhost-user device is told of it: regions of address space, each with the file that is
// mapped there. Our virtual addresses serve as the guest physical ones. Any thread. The files of a table are
// EAL's, which closes them when it frees memory, but for those of memory_table_open().
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { MEMORY_TABLE_MAX = 8 }; // VHOST_MEMORY_BASELINE_NREGIONS of most devices

struct memory_region {
	uint64_t address, bytes;
	uint64_t offset; // in the file
	int fd;
};

struct memory_table {
	unsigned count;
	struct memory_region regions[MEMORY_TABLE_MAX];
};

// With rte_mcfg_mem_read_lock(). Returns 0; -E2BIG if it takes more regions than that; -ENOTSUP if some
// memory has no file.
int memory_table_read(struct memory_table *table);

// A copy with files of its own, to be closed. With that lock, since the table was read. Returns 0 or -errno.
int memory_table_open(struct memory_table *copy, const struct memory_table *table);
void memory_table_close(struct memory_table *copy);

bool memory_table_equal(const struct memory_table *a, const struct memory_table *b);
