// SPDX-License-Identifier: BSD-3-Clause
// Memory for large tables: on 1 GiB pages, 2 MiB pages, 4 KiB pages, whatever the machine gives. Zeroed; not
// part of DPDK's memory. A lookup in gigabytes costs a TLB miss for each page it has not seen lately.
//
// Control thread.
#pragma once

#include <stddef.h>

enum pages {
	PAGES_BEST, // the first of these that can be had
	PAGES_1G,   // hugetlbfs
	PAGES_2M,   // hugetlbfs
	PAGES_THP,  // transparent huge pages: madvise(); as many as the kernel finds
	PAGES_4K,
	PAGES_COUNT,
};

struct pages_memory {
	void *base;       // NULL: none
	size_t bytes;     // asked for
	size_t mapped;    // rounded up to whole pages
	enum pages pages; // that it got
};

// Map and touch bytes of memory (every page is there afterwards). wanted other than PAGES_BEST: these or
// none. Returns 0 or -ENOMEM.
int pages_map(struct pages_memory *memory, size_t bytes, enum pages wanted);
void pages_unmap(struct pages_memory *memory); // nothing if there is none

const char *pages_name(enum pages pages);               // "best", "1G", "2M", "thp", "4K"
int pages_from_name(const char *name, enum pages *out); // -EINVAL: none of these
