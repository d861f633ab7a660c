// SPDX-License-Identifier: BSD-3-Clause
#include "shm/peer_memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_common.h>

#include "shm/guest_fault.h"

enum { BLOCK_BYTES = 512 };

static uint64_t bytes_of(const struct stat *file)
{
	return (uint64_t)file->st_blocks * BLOCK_BYTES;
}

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
	return a - b < b_bytes ||
	       b - a < a_bytes; // none runs past the end: the difference wraps if it is before
}

// By itself, and with those before it.
static enum peer_refusal check_addresses(const struct peer_memory *memory, const struct peer_region *region)
{
	if (region->bytes == 0)
		return PEER_REFUSED_MEMORY_END;
	if (region->guest_address > UINT64_MAX - region->bytes ||
	    region->user_address > UINT64_MAX - region->bytes)
		return PEER_REFUSED_MEMORY_OVERLAP;
	for (unsigned i = 0; i < memory->guest.count; i++) {
		const struct guest_region *other = &memory->guest.regions[i];

		if (overlap(region->guest_address, region->bytes, other->address, other->size) ||
		    overlap(region->user_address, region->bytes, memory->maps[i].user_address, other->size))
			return PEER_REFUSED_MEMORY_OVERLAP;
	}
	return PEER_ACCEPTED;
}

static enum peer_refusal check_file(const struct peer_region *region, int fd, struct stat *file)
{
	if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, file) || !S_ISREG(file->st_mode))
		return PEER_REFUSED_MEMORY_FILE;
	if (region->offset > (uint64_t)file->st_size ||
	    region->bytes > (uint64_t)file->st_size - region->offset)
		return PEER_REFUSED_MEMORY_END;
	return PEER_ACCEPTED;
}

// Whole pages of the file's own size (st_blksize: hugepages cannot be mapped otherwise). The region lies in the file,
// so nothing here overflows.
static bool is_mapped(const struct peer_memory *memory, const struct stat *file)
{
	for (unsigned i = 0; i < memory->guest.count; i++)
		if (memory->maps[i].device == file->st_dev && memory->maps[i].inode == file->st_ino)
			return true;
	return false;
}

static enum peer_refusal map(struct peer_memory *memory, const struct peer_region *region, int fd,
                             const struct stat *file, struct guest_charge *charge)
{
	uint64_t page = (uint64_t)file->st_blksize;
	uint64_t before = region->offset % page, bytes = (before + region->bytes + page - 1) / page * page;
	unsigned n = memory->guest.count;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
	                (off_t)(region->offset - before));

	if (at == MAP_FAILED)
		return PEER_REFUSED_MEMORY_MAP;
	madvise(at, bytes, MADV_DONTDUMP);
	memory->maps[n].watched = guest_fault_watch(at, bytes, page);
	if (memory->maps[n].watched < 0) {
		munmap(at, bytes);
		return PEER_REFUSED_MEMORY_LIMIT;
	}
	if (charge)
		guest_fault_charge(memory->maps[n].watched, charge,
		                   is_mapped(memory, file) ? UINT64_MAX : bytes_of(file));
	if (guest_memory_add(&memory->guest, region->guest_address, region->bytes, (uint8_t *)at + before)) {
		guest_fault_forget(memory->maps[n].watched);
		munmap(at, bytes);
		return PEER_REFUSED_MEMORY_OVERLAP;
	}
	memory->maps[n].at = at;
	memory->maps[n].bytes = bytes;
	memory->maps[n].fd = fd;
	memory->maps[n].page = (uint32_t)page;
	memory->maps[n].blocks = file->st_blocks;
	memory->maps[n].device = file->st_dev;
	memory->maps[n].inode = file->st_ino;
	memory->maps[n].user_address = region->user_address;
	return PEER_ACCEPTED;
}

enum peer_refusal peer_memory_add(struct peer_memory *memory, const struct peer_region *region, int fd,
                                  uint64_t most, struct guest_charge *charge)
{
	enum peer_refusal why = check_addresses(memory, region);
	struct stat file;

	if (memory->guest.count == GUEST_REGIONS_MAX)
		return PEER_REFUSED_MEMORY_LIMIT;
	if (why == PEER_ACCEPTED)
		why = check_file(region, fd, &file);
	if (why == PEER_ACCEPTED && region->bytes > most)
		why = PEER_REFUSED_MEMORY_LIMIT;
	return why ? why : map(memory, region, fd, &file, charge);
}

enum peer_refusal peer_memory_open(struct peer_memory *memory, const struct peer_region *regions,
                                   struct peer_files *files, uint64_t most, struct guest_charge *charge)
{
	enum peer_refusal why = PEER_ACCEPTED;

	*memory = (struct peer_memory){0};
	for (unsigned i = 0; i < files->count && why == PEER_ACCEPTED; i++) {
		why = peer_memory_add(memory, &regions[i], files->fds[i], most, charge);
		most -= regions[i].bytes;
	}
	if (why) {
		for (unsigned i = 0; i < memory->guest.count; i++)
			memory->maps[i].fd = -1; // the caller's
		peer_memory_close(memory);
		return why;
	}
	files->count = 0;
	return PEER_ACCEPTED;
}

void peer_memory_close(struct peer_memory *memory)
{
	for (unsigned i = 0; i < memory->guest.count; i++) {
		guest_fault_forget(memory->maps[i].watched);
		munmap(memory->maps[i].at, memory->maps[i].bytes);
		if (memory->maps[i].fd >= 0)
			close(memory->maps[i].fd);
	}
	*memory = (struct peer_memory){0};
}

// One more or less is the kernel's own: of a table of pages.
enum { HOLE_PAGES = 2 };

uint32_t peer_memory_measure(struct peer_memory *memory)
{
	uint32_t page = 0;
	struct stat file;

	for (unsigned i = 0; i < memory->guest.count; i++) {
		int64_t least = (int64_t)memory->maps[i].page / BLOCK_BYTES;

		if (memory->maps[i].page <= 4096)
			least *= HOLE_PAGES;
		if (memory->maps[i].fd < 0 || fstat(memory->maps[i].fd, &file))
			continue;
		guest_fault_measured(memory->maps[i].watched, bytes_of(&file));
		if (file.st_blocks <= memory->maps[i].blocks - least && memory->maps[i].rose)
			page = RTE_MAX(page, memory->maps[i].page);
		if (labs(file.st_blocks - memory->maps[i].blocks) >= least) {
			memory->maps[i].rose = file.st_blocks > memory->maps[i].blocks;
			memory->maps[i].blocks = file.st_blocks;
		}
	}
	return page;
}

enum peer_refusal peer_memory_fault(const struct peer_memory *memory)
{
	static const enum peer_refusal refusals[] = {[GUEST_FAULT_NONE] = PEER_ACCEPTED,
	                                             [GUEST_FAULT_GONE] = PEER_REFUSED_MEMORY_GONE,
	                                             [GUEST_FAULT_CHARGED] = PEER_REFUSED_CHARGED};
	enum peer_refusal why = PEER_ACCEPTED;

	for (unsigned i = 0; i < memory->guest.count && why == PEER_ACCEPTED; i++)
		why = refusals[guest_fault_seen(memory->maps[i].watched)];
	return why;
}

void *peer_memory_at(const struct peer_memory *memory, uint64_t user_address)
{
	for (unsigned i = 0; i < memory->guest.count; i++) {
		const struct guest_region *region = &memory->guest.regions[i];
		uint64_t offset = user_address - memory->maps[i].user_address;

		if (offset < region->size)
			return region->host + offset;
	}
	return NULL;
}
