// SPDX-License-Identifier: BSD-3-Clause
// Both ends of a ring, of either kind: what is available, and how one entry is marked as used. For the code
// that reads and commits batches (ring_split.c, ring_packed.c, ring_run.h).
#pragma once

#include <rte_common.h>

#include "ring/ring.h"

enum {
	RING_FLAG_AVAIL = 1 << VRING_PACKED_DESC_F_AVAIL,
	RING_FLAG_USED = 1 << VRING_PACKED_DESC_F_USED,
};

// Split: how many of n are available. The guest's index is looked at only when what we know is not enough:
// its cache line travels between the cores each time.
static inline unsigned ring_split_available(struct ring *ring, unsigned n)
{
	uint16_t ready = ring->avail_seen - ring->next;

	if (ready < n) {
		ring->avail_seen = __atomic_load_n(&ring->avail->idx, __ATOMIC_ACQUIRE); // s2.7.13.3
		ready = ring->avail_seen - ring->next;
		if (unlikely(ready > ring->size)) {
			ring->fault = RING_BAD_INDEX;
			return 0;
		}
	}
	return RTE_MIN(ready, n);
}

static inline void ring_split_use(struct ring *ring, uint16_t slot, uint16_t id, uint32_t written)
{
	ring->used->ring[slot].id = id;
	ring->used->ring[slot].len = written;
}

// Packed: length, id and flags of a descriptor: its second half, written and read as one.
static inline uint64_t *ring_packed_half(const struct ring *ring, uint16_t slot)
{
	return (uint64_t *)(void *)&ring->desc_packed[slot].len;
}

// s2.8.1: available if the avail bit is the wrap counter and the used bit is not.
static inline bool ring_packed_is_available(uint16_t flags, bool wrap)
{
	return ((flags & RING_FLAG_AVAIL) != 0) == wrap && ((flags & RING_FLAG_USED) != 0) != wrap;
}

// s2.8.8: both bits are the wrap counter; WRITE says that the length means something.
static inline uint64_t ring_packed_used(uint16_t id, uint32_t written, bool wrap)
{
	uint64_t flags = (wrap ? RING_FLAG_AVAIL | RING_FLAG_USED : 0) | (written ? VRING_DESC_F_WRITE : 0);

	return flags << 48 | (uint64_t)id << 32 | written;
}
