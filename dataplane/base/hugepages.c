// SPDX-License-Identifier: BSD-3-Clause
#include "base/hugepages.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <linux/mman.h>

enum { BASE_PAGE = 4096, CACHE_LINE = 64 };

#define HUGE_2M (UINT64_C(1) << 21)
#define HUGE_1G (UINT64_C(1) << 30)

static const char *const names[PAGES_COUNT] = {"best", "1G", "2M", "thp", "4K"};

const char *hugepages_name(enum pages pages)
{
	return names[pages];
}

int hugepages_from_name(const char *name, enum pages *out)
{
	for (unsigned i = 0; i < PAGES_COUNT; i++)
		if (strcmp(names[i], name) == 0) {
			*out = (enum pages)i;
			return 0;
		}
	return -EINVAL;
}

static uint64_t page_bytes(enum pages pages)
{
	return pages == PAGES_1G ? HUGE_1G : pages == PAGES_4K ? BASE_PAGE : HUGE_2M;
}

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

// Hugetlb pages are set aside by mmap() or it fails; MAP_POPULATE zeroes them now.
static int map_hugetlb(struct hugepages *memory, enum pages pages)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE | MAP_HUGETLB |
	            (pages == PAGES_1G ? MAP_HUGE_1GB : MAP_HUGE_2MB);
	size_t mapped = round_up(memory->bytes, page_bytes(pages));
	void *base = mmap(NULL, mapped, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (base == MAP_FAILED)
		return -ENOMEM;
	memory->base = base;
	memory->mapped = mapped;
	memory->pages = pages;
	return 0;
}

static void touch(void *base, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += BASE_PAGE)
		((volatile char *)base)[at] = 0;
}

// The kernel would kill somebody rather than refuse.
static bool is_available(size_t bytes)
{
	FILE *file = fopen("/proc/meminfo", "re");
	uint64_t kb = UINT64_MAX / 1024;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %" SCNu64, &kb) == 1)
			break;
	if (file)
		fclose(file);
	return bytes / 1024 <= kb;
}

// A mapping that begins at a multiple of 2 MiB.
static void *map_aligned(size_t mapped)
{
	size_t more = mapped + HUGE_2M;
	char *base = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t skip;

	if (base == MAP_FAILED)
		return NULL;
	skip = round_up((uintptr_t)base, HUGE_2M) - (uintptr_t)base;
	if (skip)
		munmap(base, skip);
	munmap(base + skip + mapped, HUGE_2M - skip);
	return base + skip;
}

// Whether at least half of the mapping that base lies in has become large pages. (The kernel may have made
// one of it and what lies beside it.)
static bool is_huge(const void *base)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	uint64_t from, to, kb, size = 0; // of that mapping, once it is there
	bool huge = false;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &from, &to) == 2 && from <= (uintptr_t)base &&
		    (uintptr_t)base < to)
			size = to - from;
		if (size && sscanf(line, "AnonHugePages: %" SCNu64, &kb) == 1) {
			huge = kb * 1024 >= size / 2;
			break;
		}
	}
	if (file)
		fclose(file);
	return huge;
}

static int map_anonymous(struct hugepages *memory, enum pages pages)
{
	size_t mapped = round_up(memory->bytes, page_bytes(pages));
	void *base = is_available(mapped) ? map_aligned(mapped) : NULL;

	if (base == NULL)
		return -ENOMEM;
	madvise(base, mapped, pages == PAGES_THP ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	touch(base, mapped);
	if (pages == PAGES_THP && !is_huge(base)) {
		munmap(base, mapped);
		return -ENOMEM;
	}
	memory->base = base;
	memory->mapped = mapped;
	memory->pages = pages;
	return 0;
}

static int map(struct hugepages *memory, enum pages pages)
{
	return pages == PAGES_1G || pages == PAGES_2M ? map_hugetlb(memory, pages)
	                                              : map_anonymous(memory, pages);
}

int hugepages_map(struct hugepages *memory, size_t bytes, enum pages wanted)
{
	*memory = (struct hugepages){.bytes = bytes};
	if (bytes == 0 || bytes > SIZE_MAX - 2 * HUGE_1G)
		return -ENOMEM;
	if (wanted != PAGES_BEST)
		return map(memory, wanted);
	for (unsigned pages = PAGES_1G; pages <= PAGES_4K; pages++) {
		// Not a page that would stay empty for more than a third.
		if (pages != PAGES_4K && bytes < page_bytes((enum pages)pages) / 3 * 2)
			continue;
		if (map(memory, (enum pages)pages) == 0)
			return 0;
	}
	return -ENOMEM;
}

int hugepages_reserve(struct hugepages *memory, size_t bytes)
{
	size_t mapped = round_up(bytes, HUGE_2M);
	void *base = map_aligned(mapped);

	*memory = (struct hugepages){.base = base, .bytes = bytes, .mapped = mapped, .pages = PAGES_THP};
	if (base == NULL)
		return -ENOMEM;
	madvise(base, mapped, MADV_HUGEPAGE);
	return 0;
}

size_t hugepages_alloc_bytes(size_t bytes)
{
	return round_up(bytes, bytes < HUGE_2M ? CACHE_LINE : HUGE_2M);
}

void *hugepages_alloc(size_t bytes)
{
	size_t size = hugepages_alloc_bytes(bytes);
	void *memory = aligned_alloc(bytes < HUGE_2M ? CACHE_LINE : HUGE_2M, size);

	if (memory == NULL)
		return NULL;
	if (bytes >= HUGE_2M)
		madvise(memory, size, MADV_HUGEPAGE); // without, it works all the same
	return memset(memory, 0, size);
}

void hugepages_unmap(struct hugepages *memory)
{
	if (memory->base)
		munmap(memory->base, memory->mapped);
	*memory = (struct hugepages){0};
}
