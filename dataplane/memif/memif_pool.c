// SPDX-License-Identifier: BSD-3-Clause
#include "memif/memif_pool.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>

// The least size of a shared pool: enough for 15 ports with rings of 256. The kernel makes a page when it is first used.
enum { SHARED_BUFFERS = 8192 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct memif_pool *shared_pools;

uint8_t *memif_memory(const char *name, size_t bytes, int flags, int *fd)
{
	void *at;

	*fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0 || ftruncate(*fd, (off_t)bytes) ||
	    fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return NULL;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, *fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	madvise(at, bytes, MADV_DONTDUMP);
	return at;
}

static void discard(struct memif_pool *pool)
{
	if (pool->at)
		munmap(pool->at, pool->bytes);
	if (pool->fd >= 0)
		close(pool->fd);
	free(pool);
}

// The first buffers are taken first.
static struct memif_pool *create(unsigned count)
{
	struct memif_pool *pool = calloc(1, sizeof(*pool) + count * sizeof(pool->idle[0]));

	if (pool == NULL)
		return NULL;
	pool->bytes = RTE_ALIGN_CEIL((size_t)count * MEMIF_BUFFER_STRIDE, (size_t)getpagesize());
	pool->at = memif_memory("memif buffers", pool->bytes, 0, &pool->fd);
	if (pool->at == NULL) {
		discard(pool);
		return NULL;
	}
	for (pool->total = 0; pool->total < count; pool->total++)
		pool->idle[pool->total] = pool->at + (size_t)(count - 1 - pool->total) * MEMIF_BUFFER_STRIDE;
	pool->idle_count = count;
	return pool;
}

// With the lock. One that has so many buffers left, or NULL.
static struct memif_pool *find_shared(unsigned count)
{
	struct memif_pool *pool = shared_pools;

	while (pool && pool->idle_count < count)
		pool = pool->next;
	return pool;
}

// With the lock.
static struct memif_pool *create_shared(unsigned count)
{
	struct memif_pool *pool = create(RTE_MAX(count, (unsigned)SHARED_BUFFERS));

	if (pool) {
		pool->next = shared_pools;
		shared_pools = pool;
	}
	return pool;
}

// No worker shall wait for a page.
static void touch(uint8_t *buffer)
{
	*(volatile uint8_t *)buffer = 0;
	*(volatile uint8_t *)(buffer + MEMIF_BUFFER_BYTES - 1) = 0;
}

struct memif_pool *memif_pool_take(bool shared, struct piece *pieces, unsigned count)
{
	struct memif_pool *pool;

	pthread_mutex_lock(&lock);
	pool = shared ? find_shared(count) : create(count);
	if (pool == NULL && shared)
		pool = create_shared(count);
	if (pool)
		pool->users++;
	for (unsigned i = 0; pool && i < count; i++) {
		pieces[i].data = pool->idle[--pool->idle_count];
		touch(pieces[i].data);
	}
	pthread_mutex_unlock(&lock);
	return pool;
}

void memif_pool_give_back(struct memif_pool *pool, const struct piece *pieces, unsigned count)
{
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < count; i++)
		pool->idle[pool->idle_count++] = pieces[i].data;
	if (--pool->users == 0) {
		for (struct memif_pool **at = &shared_pools; *at; at = &(*at)->next)
			if (*at == pool) {
				*at = pool->next;
				break;
			}
		discard(pool);
	}
	pthread_mutex_unlock(&lock);
}
