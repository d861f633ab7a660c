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

struct hugepages {
	void *base;       // NULL: none
	size_t bytes;     // asked for
	size_t mapped;    // rounded up to whole pages
	enum pages pages; // that it got
};

// Map and touch bytes of memory (every page is there afterwards). wanted other than PAGES_BEST: these or
// none. Returns 0 or -ENOMEM.
int hugepages_map(struct hugepages *memory, size_t bytes, enum pages wanted);

// Map bytes of memory, aligned to 2 MiB, without touching it: the kernel gives pages, large ones where it can, on first
// use. Returns 0 or -ENOMEM.
int hugepages_reserve(struct hugepages *memory, size_t bytes);

void hugepages_unmap(struct hugepages *memory); // nothing if there is none

// Allocate zeroed memory on the heap, to be freed with free(): aligned to a cache line; from 2 MiB on aligned to 2 MiB,
// and the kernel is asked for large pages. It takes hugepages_alloc_bytes(bytes).
void *hugepages_alloc(size_t bytes);
size_t hugepages_alloc_bytes(size_t bytes);

const char *hugepages_name(enum pages pages);               // "best", "1G", "2M", "thp", "4K"
int hugepages_from_name(const char *name, enum pages *out); // -EINVAL: none of these
