// SPDX-License-Identifier: BSD-3-Clause
#include "ring/ring_io.h"

#include <rte_common.h>

#include "ring/ring_chain.h"
#include "ring/ring_ends.h"

// A place in the ring.
struct place {
	uint16_t slot;
	bool wrap;
};

static inline struct place place_after(const struct ring *ring, struct place at, unsigned slots)
{
	unsigned slot = at.slot + slots;

	if (slot >= ring->size)
		return (struct place){(uint16_t)(slot - ring->size), !at.wrap};
	return (struct place){(uint16_t)slot, at.wrap};
}

// The entries of an indirect table lie in order; of their flags only WRITE has a meaning (s2.8.7).
static unsigned read_indirect(struct ring *ring, struct ring_batch *batch, struct ring_buffer *buffer,
                              const struct ring_descriptor *d)
{
	unsigned entries, fault;
	const char *table = ring_indirect_table(ring, d, &entries, &fault);

	if (table == NULL)
		return fault;
	if (entries > RING_CHAIN_MAX)
		return RING_BAD_CHAIN;
	for (unsigned i = 0; i < entries; i++) {
		struct ring_descriptor entry = ring_read_packed(table + (size_t)i * RING_DESCRIPTOR_BYTES);

		fault = ring_buffer_add(ring, batch, buffer, &entry);
		if (fault != RING_OK)
			return fault;
	}
	return RING_OK;
}

// A chain of several descriptors: successive slots, the id in the last (s2.8.6). left: slots that this batch
// may still take, and so the bound of the loop: nothing is read twice in one turn around the ring.
static __attribute__((noinline)) unsigned read_chain(struct ring *ring, struct ring_batch *batch,
                                                     struct ring_buffer *buffer, struct ring_descriptor d,
                                                     struct place at, unsigned left)
{
	unsigned max = ring_chain_max(ring), most = RTE_MIN(left, max);

	for (unsigned slots = 1; slots <= most; slots++) {
		bool indirect = d.flags & VRING_DESC_F_INDIRECT;
		unsigned fault;

		if (indirect && slots > 1) // s2.8.7: not within a chain
			return RING_BAD_INDIRECT;
		fault = indirect ? read_indirect(ring, batch, buffer, &d)
		                 : ring_buffer_add(ring, batch, buffer, &d);
		if (fault != RING_OK)
			return fault;
		if (!(d.flags & VRING_DESC_F_NEXT)) {
			buffer->id = d.link;
			buffer->slots = (uint16_t)slots;
			return RING_OK;
		}
		at = place_after(ring, at, 1);
		d = ring_read_packed(&ring->desc_packed[at.slot]);
	}
	return most == max ? (unsigned)RING_BAD_CHAIN : (unsigned)RING_NO_ROOM;
}

unsigned ring_packed_peek(struct ring *ring, struct ring_batch *batch, unsigned n)
{
	struct place at = {ring->next, ring->wrap};
	unsigned left = ring->size;

	batch->count = batch->piece_count = batch->descriptor_count = 0;
	batch->limited = false;
	if (unlikely(ring->fault != RING_OK))
		return 0;
	n = RTE_MIN(n, (unsigned)RING_BATCH_MAX);
	while (batch->count < n && left) {
		// The flags decide about the rest (s2.8.21.1): they come first, in the same load as length
		// and id.
		uint64_t rest = __atomic_load_n(ring_packed_half(ring, at.slot), __ATOMIC_ACQUIRE);
		struct ring_descriptor d =
		        ring_packed_from(ring_load_once(&ring->desc_packed[at.slot]), rest);
		struct ring_buffer *buffer = ring_buffer_begin(batch);
		unsigned fault;

		if (!ring_packed_is_available(d.flags, at.wrap))
			break;
		if (likely(!(d.flags & (VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT)))) {
			buffer->id = d.link;
			fault = ring_buffer_add(ring, batch, buffer, &d);
		} else {
			fault = read_chain(ring, batch, buffer, d, at, left);
		}
		if (!ring_buffer_end(ring, batch, fault))
			break;
		left -= buffer->slots;
		at = place_after(ring, at, buffer->slots);
	}
	return batch->count;
}

static inline uint64_t used_half(const struct ring_buffer *buffer, bool wrap)
{
	return ring_packed_used(buffer->id, buffer->written, wrap);
}

void ring_packed_commit(struct ring *ring, const struct ring_batch *batch, unsigned n)
{
	struct place first = {ring->next, ring->wrap}, at = first;
	bool one = ring->in_order && !ring->writable; // for all (s2.8.9), as ring_run_commit_packed()

	if (n == 0)
		return;
	// The guest waits for the first: it is written last and shows all others with it.
	for (unsigned i = 0; i < n; i++) {
		if (i > 0 && !one)
			__atomic_store_n(ring_packed_half(ring, at.slot),
			                 used_half(&batch->buffers[i], at.wrap), __ATOMIC_RELAXED);
		at = place_after(ring, at, batch->buffers[i].slots);
	}
	__atomic_store_n(ring_packed_half(ring, first.slot),
	                 used_half(&batch->buffers[one ? n - 1 : 0], first.wrap), __ATOMIC_RELEASE);
	ring->next = at.slot;
	ring->wrap = at.wrap;
}
