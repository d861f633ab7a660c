// SPDX-License-Identifier: BSD-3-Clause
#include "virtio/vhost_memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_common.h>

#include "shm/guest_fault.h"

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
	return a - b < b_bytes ||
	       b - a < a_bytes; // none runs past the end: the difference wraps if it is before
}

// By itself, and with those before it.
static enum vhost_refusal check_addresses(const struct vhost_memory *memory,
                                          const struct vhost_region *region)
{
	if (region->bytes == 0)
		return VHOST_REFUSED_MEMORY_END;
	if (region->guest_address > UINT64_MAX - region->bytes ||
	    region->user_address > UINT64_MAX - region->bytes)
		return VHOST_REFUSED_MEMORY_OVERLAP;
	for (unsigned i = 0; i < memory->guest.count; i++) {
		const struct guest_region *other = &memory->guest.regions[i];

		if (overlap(region->guest_address, region->bytes, other->address, other->size) ||
		    overlap(region->user_address, region->bytes, memory->maps[i].user_address, other->size))
			return VHOST_REFUSED_MEMORY_OVERLAP;
	}
	return VHOST_ACCEPTED;
}

static enum vhost_refusal check_file(const struct vhost_region *region, int fd, struct stat *file)
{
	if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, file) || !S_ISREG(file->st_mode))
		return VHOST_REFUSED_MEMORY_FILE;
	if (region->offset > (uint64_t)file->st_size ||
	    region->bytes > (uint64_t)file->st_size - region->offset)
		return VHOST_REFUSED_MEMORY_END;
	return VHOST_ACCEPTED;
}

// Whole pages of the file's own size (st_blksize: hugepages cannot be mapped otherwise). The region lies in the file,
// so nothing here overflows.
static enum vhost_refusal map(struct vhost_memory *memory, const struct vhost_region *region, int fd,
                              const struct stat *file)
{
	uint64_t page = (uint64_t)file->st_blksize;
	uint64_t before = region->offset % page, bytes = (before + region->bytes + page - 1) / page * page;
	unsigned n = memory->guest.count;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
	                (off_t)(region->offset - before));

	if (at == MAP_FAILED)
		return VHOST_REFUSED_MEMORY_MAP;
	madvise(at, bytes, MADV_DONTDUMP);
	memory->maps[n].watched = guest_fault_watch(at, bytes, page);
	if (memory->maps[n].watched < 0) {
		munmap(at, bytes);
		return VHOST_REFUSED_MEMORY_LIMIT;
	}
	if (guest_memory_add(&memory->guest, region->guest_address, region->bytes, (uint8_t *)at + before)) {
		guest_fault_forget(memory->maps[n].watched);
		munmap(at, bytes);
		return VHOST_REFUSED_MEMORY_OVERLAP;
	}
	memory->maps[n].at = at;
	memory->maps[n].bytes = bytes;
	memory->maps[n].fd = fd;
	memory->maps[n].page = (uint32_t)page;
	memory->maps[n].blocks = file->st_blocks;
	memory->maps[n].user_address = region->user_address;
	return VHOST_ACCEPTED;
}

enum vhost_refusal vhost_memory_add(struct vhost_memory *memory, const struct vhost_region *region, int fd,
                                    uint64_t most)
{
	enum vhost_refusal why = check_addresses(memory, region);
	struct stat file;

	if (memory->guest.count == GUEST_REGIONS_MAX)
		return VHOST_REFUSED_MEMORY_LIMIT;
	if (why == VHOST_ACCEPTED)
		why = check_file(region, fd, &file);
	if (why == VHOST_ACCEPTED && region->bytes > most)
		why = VHOST_REFUSED_MEMORY_LIMIT;
	return why ? why : map(memory, region, fd, &file);
}

enum vhost_refusal vhost_memory_open(struct vhost_memory *memory, const struct vhost_message *table,
                                     struct vhost_files *files, uint64_t most)
{
	enum vhost_refusal why = VHOST_ACCEPTED;

	*memory = (struct vhost_memory){0};
	for (unsigned i = 0; i < files->count && why == VHOST_ACCEPTED; i++) {
		struct vhost_region region =
		        table->memory.regions[i]; // aligned, which that of the message is not

		why = vhost_memory_add(memory, &region, files->fds[i], most);
		most -= region.bytes;
	}
	if (why) {
		for (unsigned i = 0; i < memory->guest.count; i++)
			memory->maps[i].fd = -1; // the caller's
		vhost_memory_close(memory);
		return why;
	}
	files->count = 0;
	return VHOST_ACCEPTED;
}

void vhost_memory_close(struct vhost_memory *memory)
{
	for (unsigned i = 0; i < memory->guest.count; i++) {
		guest_fault_forget(memory->maps[i].watched);
		munmap(memory->maps[i].at, memory->maps[i].bytes);
		if (memory->maps[i].fd >= 0)
			close(memory->maps[i].fd);
	}
	*memory = (struct vhost_memory){0};
}

// One more or less is the kernel's own: of a table of pages.
enum { HOLE_PAGES = 2, BLOCK_BYTES = 512 };

uint32_t vhost_memory_punched(struct vhost_memory *memory)
{
	uint32_t page = 0;
	struct stat file;

	for (unsigned i = 0; i < memory->guest.count; i++) {
		int64_t least = (int64_t)memory->maps[i].page / BLOCK_BYTES;

		if (memory->maps[i].page <= 4096)
			least *= HOLE_PAGES;
		if (memory->maps[i].fd < 0 || fstat(memory->maps[i].fd, &file))
			continue;
		if (file.st_blocks <= memory->maps[i].blocks - least && memory->maps[i].rose)
			page = RTE_MAX(page, memory->maps[i].page);
		if (labs(file.st_blocks - memory->maps[i].blocks) >= least) {
			memory->maps[i].rose = file.st_blocks > memory->maps[i].blocks;
			memory->maps[i].blocks = file.st_blocks;
		}
	}
	return page;
}

bool vhost_memory_gone(const struct vhost_memory *memory)
{
	for (unsigned i = 0; i < memory->guest.count; i++)
		if (guest_fault_seen(memory->maps[i].watched))
			return true;
	return false;
}

void *vhost_memory_at(const struct vhost_memory *memory, uint64_t user_address)
{
	for (unsigned i = 0; i < memory->guest.count; i++) {
		const struct guest_region *region = &memory->guest.regions[i];
		uint64_t offset = user_address - memory->maps[i].user_address;

		if (offset < region->size)
			return region->host + offset;
	}
	return NULL;
}
