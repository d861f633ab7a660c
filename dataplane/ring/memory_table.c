// SPDX-License-Identifier: BSD-3-Clause
#include "ring/memory_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#include <rte_memory.h>

// Add a page to the last region, or begin another.
static int add_page(struct memory_table *table, uint64_t address, uint64_t bytes, uint64_t offset, int fd)
{
	struct memory_region *last = table->count ? &table->regions[table->count - 1] : NULL;

	if (last && last->fd == fd && address == last->address + last->bytes &&
	    offset == last->offset + last->bytes) {
		last->bytes += bytes;
		return 0;
	}
	if (table->count == MEMORY_TABLE_MAX)
		return -E2BIG;
	table->regions[table->count++] = (struct memory_region){address, bytes, offset, fd};
	return 0;
}

static int visit(const struct rte_memseg_list *list, const struct rte_memseg *page, void *argument)
{
	size_t offset;
	int fd;

	if (list->external)
		return 0;
	fd = rte_memseg_get_fd_thread_unsafe(page); // the caller has the lock
	if (fd < 0 || rte_memseg_get_fd_offset_thread_unsafe(page, &offset))
		return -ENOTSUP;
	return add_page(argument, (uintptr_t)page->addr, page->len, offset, fd);
}

int memory_table_read(struct memory_table *table)
{
	table->count = 0;
	return rte_memseg_walk_thread_unsafe(visit, table);
}

int memory_table_open(struct memory_table *copy, const struct memory_table *table)
{
	*copy = *table;
	for (copy->count = 0; copy->count < table->count; copy->count++) {
		int fd = fcntl(table->regions[copy->count].fd, F_DUPFD_CLOEXEC, 0);

		if (fd < 0) {
			int rc = -errno;

			memory_table_close(copy);
			return rc;
		}
		copy->regions[copy->count].fd = fd;
	}
	return 0;
}

void memory_table_close(struct memory_table *copy)
{
	for (unsigned i = 0; i < copy->count; i++)
		close(copy->regions[i].fd);
	copy->count = 0;
}

bool memory_table_equal(const struct memory_table *a, const struct memory_table *b)
{
	bool equal = a->count == b->count;

	for (unsigned i = 0; equal && i < a->count; i++) {
		const struct memory_region *x = &a->regions[i], *y = &b->regions[i];

		equal = x->address == y->address && x->bytes == y->bytes && x->offset == y->offset &&
		        x->fd == y->fd;
	}
	return equal;
}
