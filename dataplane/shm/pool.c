// SPDX-License-Identifier: BSD-3-Clause
#include "shm/pool.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>

// The least size of a shared pool. The kernel makes a page when it is first used, but a huge one is reserved: enough for 15
// ports with rings of 256.
enum { SHARED_BUFFERS = 65536, SHARED_BUFFERS_HUGE = 8192, HUGE_BYTES = 2 << 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shm_pool *shared_pools;

static uint8_t *memory_make(const char *name, size_t bytes, unsigned kind, int flags, int *fd)
{
	void *at;

	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | kind);
	if (*fd < 0 || ftruncate(*fd, (off_t)bytes) ||
	    fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return NULL;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, *fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	madvise(at, bytes, MADV_DONTDUMP);
	return at;
}

uint8_t *shm_memory(const char *name, size_t bytes, int flags, int *fd)
{
	return memory_make(name, bytes, 0, flags, fd);
}

static void discard(struct shm_pool *pool)
{
	if (pool->at)
		munmap(pool->at, pool->bytes);
	if (pool->fd >= 0)
		close(pool->fd);
	free(pool);
}

// The first buffers are taken first.
static struct shm_pool *create(unsigned count, uint32_t room, bool huge)
{
	struct shm_pool *pool = calloc(1, sizeof(*pool) + count * sizeof(pool->idle[0]));
	const size_t stride = shm_pool_stride(room), page = huge ? HUGE_BYTES : (size_t)getpagesize();

	if (pool == NULL)
		return NULL;
	pool->room = room;
	pool->bytes = RTE_ALIGN_CEIL(count * stride, page);
	pool->at = memory_make("buffers", pool->bytes, huge ? MFD_HUGETLB | MFD_HUGE_2MB : 0, 0, &pool->fd);
	if (pool->at == NULL) {
		discard(pool);
		return NULL;
	}
	for (pool->total = 0; pool->total < count; pool->total++)
		pool->idle[pool->total] = pool->at + (count - 1 - pool->total) * stride + POOL_LINE;
	pool->idle_count = count;
	return pool;
}

// In huge pages, as DPDK's memory, where there are such.
static struct shm_pool *create_best(bool shared, unsigned count, uint32_t room)
{
	struct shm_pool *pool = NULL;

	if (rte_eal_has_hugepages())
		pool = create(shared ? RTE_MAX(count, (unsigned)SHARED_BUFFERS_HUGE) : count, room, true);
	return pool ? pool : create(shared ? RTE_MAX(count, (unsigned)SHARED_BUFFERS) : count, room, false);
}

// With the lock. One that has so many buffers left, or NULL.
static struct shm_pool *find_shared(unsigned count, uint32_t room)
{
	struct shm_pool *pool = shared_pools;

	while (pool && (pool->room != room || pool->idle_count < count))
		pool = pool->next;
	return pool;
}

// No worker shall wait for a page.
static void touch(uint8_t *buffer, uint32_t room)
{
	const size_t page = (size_t)getpagesize();

	for (size_t i = 0; i < room; i += page)
		*(volatile uint8_t *)(buffer + i) = 0;
	*(volatile uint8_t *)(buffer - POOL_LINE) = 0;
	*(volatile uint8_t *)(buffer + room - 1) = 0;
}

struct shm_pool *shm_pool_take(bool shared, uint32_t room, struct piece *pieces, unsigned count)
{
	struct shm_pool *pool;

	pthread_mutex_lock(&lock);
	pool = shared ? find_shared(count, room) : NULL;
	if (pool == NULL) {
		pool = create_best(shared, count, room);
		if (pool && shared) {
			pool->next = shared_pools;
			shared_pools = pool;
		}
	}
	if (pool)
		pool->users++;
	for (unsigned i = 0; pool && i < count; i++) {
		pieces[i].data = pool->idle[--pool->idle_count];
		touch(pieces[i].data, room);
	}
	pthread_mutex_unlock(&lock);
	return pool;
}

void shm_pool_give_back(struct shm_pool *pool, const struct piece *pieces, unsigned count)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < count; i++)
		pool->idle[pool->idle_count++] = pieces[i].data;
	if (--pool->users == 0) {
		for (struct shm_pool **at = &shared_pools; *at; at = &(*at)->next)
			if (*at == pool) {
				*at = pool->next;
				break;
			}
		discard(pool);
	}
	pthread_mutex_unlock(&lock);
}
