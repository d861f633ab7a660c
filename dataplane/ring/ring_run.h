// SPDX-License-Identifier: BSD-3-Clause
// Runs: buffers of one descriptor and one piece each, which is what drivers make nearly always. They are read
// straight from descriptor to address and length, without the lists that chains need; whatever is not plain
// ends the run, and ring_peek() has it. The rules are the same: a descriptor is read once, address and length
// are checked against the guest's memory, and nothing changes before the commit. Compiled for each
// instruction set (isa.h): for isa_sources only.
#pragma once

#include <rte_common.h>

#include "ring/copy.h"
#include "ring/ring_chain.h"
#include "ring/ring_ends.h"

struct ring_run {
	unsigned count;
	bool odd; // ended by a buffer that is not plain, or that is none: ring_peek() says which
	uint8_t *data[RING_BATCH_MAX];
	uint32_t length[RING_BATCH_MAX]; // > 0
	uint16_t id[RING_BATCH_MAX];
};

enum { RING_RUN_FLAGS = VRING_DESC_F_NEXT | VRING_DESC_F_WRITE | VRING_DESC_F_INDIRECT };

// A descriptor's place in our memory, NULL if it is not plain. region: the one that was hit last.
static inline uint8_t *ring_run_place(struct ring *ring, const struct guest_region **region,
                                      const struct ring_descriptor *d)
{
	uint64_t offset = d->address - (*region)->address;
	uint32_t run = d->length;
	uint8_t *data;

	if (likely(offset < (*region)->size && run <= (*region)->size - offset))
		return (*region)->host + offset;
	data = guest_memory_run(ring->memory, &ring->last_region, d->address, &run);
	*region = &ring->memory->regions[ring->last_region];
	return run == d->length ? data : NULL;
}

static inline bool ring_run_add(struct ring *ring, struct ring_run *run, const struct guest_region **region,
                                const struct ring_descriptor *d, bool writable)
{
	uint8_t *data = ring_run_place(ring, region, d);

	if (unlikely((d->flags & RING_RUN_FLAGS) != (writable ? VRING_DESC_F_WRITE : 0) || !d->length ||
	             !data)) {
		run->odd = true;
		return false;
	}
	run->data[run->count] = data;
	run->length[run->count] = d->length;
	// A driver's usual layout has the header at the end of one cache line and the frame in the next.
	if (writable) {
		prefetch_to_write(data);
		prefetch_to_write(data + ring->header_bytes);
	} else {
		rte_prefetch0(data + ring->header_bytes);
	}
	run->count++;
	return true;
}

static inline void ring_run_split(struct ring *ring, struct ring_run *run, unsigned n, bool writable)
{
	const struct guest_region *region = &ring->memory->regions[ring->last_region];
	uint16_t mask = ring->size - 1;

	n = ring_split_available(ring, n);
	for (unsigned i = 0; i < n; i++) {
		uint16_t head =
		        __atomic_load_n(&ring->avail->ring[(ring->next + i) & mask], __ATOMIC_RELAXED);
		struct ring_descriptor d;

		if (unlikely(head >= ring->size)) {
			run->odd = true;
			break;
		}
		d = ring_read_split(&ring->desc[head]);
		run->id[i] = head;
		if (!ring_run_add(ring, run, &region, &d, writable))
			break;
	}
}

static inline void ring_run_packed(struct ring *ring, struct ring_run *run, unsigned n, bool writable)
{
	const struct guest_region *region = &ring->memory->regions[ring->last_region];
	uint16_t slot = ring->next;
	bool wrap = ring->wrap;

	n = RTE_MIN(n, ring->size);
	for (unsigned i = 0; i < n; i++) {
		// The flags decide about the rest (s2.8.21.1): they come first, in the same load as length
		// and id.
		uint64_t rest = __atomic_load_n(ring_packed_half(ring, slot), __ATOMIC_ACQUIRE);
		struct ring_descriptor d = ring_packed_from(ring_load_once(&ring->desc_packed[slot]), rest);

		if (!ring_packed_is_available(d.flags, wrap))
			break;
		run->id[i] = d.link;
		if (!ring_run_add(ring, run, &region, &d, writable))
			break;
		if (++slot == ring->size) {
			slot = 0;
			wrap = !wrap;
		}
	}
}

// Read ahead a run of up to n (at most RING_BATCH_MAX) buffers. writable: what the ring is, for the compiler.
static inline unsigned ring_run_peek(struct ring *ring, struct ring_run *run, unsigned n, bool writable)
{
	run->count = 0;
	run->odd = false;
	if (unlikely(ring->fault != RING_OK))
		return 0;
	if (ring->packed)
		ring_run_packed(ring, run, n, writable);
	else
		ring_run_split(ring, run, n, writable);
	return run->count;
}

// Fetch the lines of receive buffer i that a frame of length will be written to.
static inline void ring_run_fetch(const struct ring_run *run, unsigned i, uint32_t header, uint32_t length)
{
	if (likely(run->length[i] > header))
		copy_fetch(run->data[i] + header, RTE_MIN(length, run->length[i] - header));
}

// Under VIRTIO_F_IN_ORDER the last of a batch stands for all of it where nothing was written (s2.7.9): where
// something was, each has its length to tell.
static inline void ring_run_commit_split(struct ring *ring, const struct ring_run *run, unsigned n,
                                         const uint32_t *written)
{
	uint16_t mask = ring->size - 1;

	if (!written && ring->in_order) {
		ring_split_use(ring, ring->next & mask, run->id[n - 1], 0);
	} else {
		for (unsigned i = 0; i < n; i++)
			ring_split_use(ring, (ring->next + i) & mask, run->id[i], written ? written[i] : 0);
	}
	ring->next += (uint16_t)n;
	__atomic_store_n(&ring->used->idx, ring->next, __ATOMIC_RELEASE); // s2.7.8.2: the index last
}

// As above, s2.8.9. The guest waits for the first: it is written last and shows all others with it.
static inline void ring_run_commit_packed(struct ring *ring, const struct ring_run *run, unsigned n,
                                          const uint32_t *written)
{
	uint16_t first = ring->next, slot = first;
	bool wrap = ring->wrap, all = written || !ring->in_order;
	uint64_t half = ring_packed_used(run->id[all ? 0 : n - 1], written ? written[0] : 0, wrap);

	for (unsigned i = 0; i < n; i++) {
		if (i > 0 && all)
			__atomic_store_n(ring_packed_half(ring, slot),
			                 ring_packed_used(run->id[i], written ? written[i] : 0, wrap),
			                 __ATOMIC_RELAXED);
		if (++slot == ring->size) {
			slot = 0;
			wrap = !wrap;
		}
	}
	__atomic_store_n(ring_packed_half(ring, first), half, __ATOMIC_RELEASE);
	ring->next = slot;
	ring->wrap = wrap;
}

// Hand the first n buffers of a run back. written: bytes in each, NULL where we only read.
static inline void ring_run_commit(struct ring *ring, const struct ring_run *run, unsigned n,
                                   const uint32_t *written)
{
	if (n == 0)
		return;
	if (ring->packed)
		ring_run_commit_packed(ring, run, n, written);
	else
		ring_run_commit_split(ring, run, n, written);
}
