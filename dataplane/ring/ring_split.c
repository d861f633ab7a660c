// SPDX-License-Identifier: BSD-3-Clause
#include "ring/ring_io.h"

#include <rte_common.h>

#include "ring/ring_chain.h"
#include "ring/ring_ends.h"

// A chain of several descriptors: direct ones, then at most one that is indirect (s2.7.5.3.2). Its length
// bounds the loop: a chain has at most as many descriptors as the ring (s2.7.5.3.1), here
// RING_CHAIN_MAX.
static __attribute__((noinline)) unsigned read_chain(struct ring *ring, struct ring_batch *batch,
                                                     struct ring_buffer *buffer, struct ring_descriptor d)
{
	const char *table = (const char *)ring->desc;
	unsigned entries = ring->size, fault;
	bool indirect = false;

	for (unsigned length = 0; length < ring_chain_max(ring); length++) {
		if (d.flags & VRING_DESC_F_INDIRECT) {
			if (indirect)
				return RING_BAD_INDIRECT;
			table = ring_indirect_table(ring, &d, &entries, &fault);
			if (table == NULL)
				return fault;
			indirect = true;
			d = ring_read_split(table);
			if (d.flags & VRING_DESC_F_INDIRECT)
				return RING_BAD_INDIRECT;
		}
		fault = ring_buffer_add(ring, batch, buffer, &d);
		if (fault != RING_OK || !(d.flags & VRING_DESC_F_NEXT))
			return fault;
		if (d.link >= entries)
			return RING_BAD_HEAD;
		d = ring_read_split(table + (size_t)d.link * RING_DESCRIPTOR_BYTES);
	}
	return RING_BAD_CHAIN;
}

static inline unsigned read_buffer(struct ring *ring, struct ring_batch *batch, uint16_t head)
{
	struct ring_buffer *buffer = ring_buffer_begin(batch);
	struct ring_descriptor d;

	if (unlikely(head >= ring->size))
		return RING_BAD_HEAD;
	buffer->id = head;
	d = ring_read_split(&ring->desc[head]);
	if (likely(!(d.flags & (VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT))))
		return ring_buffer_add(ring, batch, buffer, &d);
	return read_chain(ring, batch, buffer, d);
}

unsigned ring_split_peek(struct ring *ring, struct ring_batch *batch, unsigned n)
{
	uint16_t heads[RING_BATCH_MAX], mask = ring->size - 1;

	batch->count = batch->piece_count = batch->descriptor_count = 0;
	batch->limited = false;
	if (unlikely(ring->fault != RING_OK))
		return 0;
	n = ring_split_available(ring, RTE_MIN(n, (unsigned)RING_BATCH_MAX));
	// All heads first: the descriptors come while the next ones are looked up.
	for (unsigned i = 0; i < n; i++) {
		heads[i] = __atomic_load_n(&ring->avail->ring[(ring->next + i) & mask], __ATOMIC_RELAXED);
		rte_prefetch0(&ring->desc[heads[i] & mask]);
	}
	for (unsigned i = 0; i < n; i++)
		if (!ring_buffer_end(ring, batch, read_buffer(ring, batch, heads[i])))
			break;
	return batch->count;
}

void ring_split_commit(struct ring *ring, const struct ring_batch *batch, unsigned n)
{
	uint16_t mask = ring->size - 1;

	if (n == 0)
		return;
	if (ring->in_order && !ring->writable) // one for all (s2.7.9), as ring_run_commit_split()
		ring_split_use(ring, ring->next & mask, batch->buffers[n - 1].id, 0);
	else
		for (unsigned i = 0; i < n; i++)
			ring_split_use(ring, (ring->next + i) & mask, batch->buffers[i].id,
			               batch->buffers[i].written);
	ring->next += (uint16_t)n;
	__atomic_store_n(&ring->used->idx, ring->next, __ATOMIC_RELEASE); // s2.7.8.2: the index last
}
