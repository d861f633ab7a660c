// SPDX-License-Identifier: BSD-3-Clause
// DPDK's memory as a vhost-user device is told of it: regions of address space, each with the file that is
// mapped there. Our virtual addresses serve as the guest physical ones. Any thread; the files are EAL's.
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

// Returns 0; -E2BIG if it takes more regions than that; -ENOTSUP if some memory has no file.
int memory_table_read(struct memory_table *table);

bool memory_table_equal(const struct memory_table *a, const struct memory_table *b);
