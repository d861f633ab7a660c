// SPDX-License-Identifier: BSD-3-Clause
// The driver's end of a ring, as those who move frames through it use it: which slots are free, and how what
// is in them is shown to the device. For driver_ring.c and driver_run.c only.
#pragma once

#include <rte_common.h>
#include <rte_prefetch.h>

#include "virtio/driver_ring.h"

static inline uint16_t slot_of(const struct driver_ring *ring, unsigned index)
{
	return (uint16_t)(index & (ring->size - 1u));
}

// One load: the device may write it at any time.
static inline struct vring_used_elem used_element(const struct driver_ring *ring, uint16_t slot)
{
	uint64_t both =
	        __atomic_load_n((const ring_word *)(const void *)&ring->used->ring[slot], __ATOMIC_RELAXED);

	return (struct vring_used_elem){(uint32_t)both, (uint32_t)(both >> 32)};
}

static inline void make_available(struct driver_ring *ring, uint16_t index)
{
	__atomic_store_n(&ring->avail->idx, index, __ATOMIC_RELEASE); // s2.7.13.3
	doorbell_owe(&ring->bell);
	rte_prefetch0(&ring->used->idx); // for the next poll
}

// Without IN_ORDER each buffer has an element of its own, and only that says which it was; with it a device
// may write one for many (s2.7.9).
static inline bool ids_in_order(const struct driver_ring *ring, uint16_t from, uint16_t until)
{
	for (uint16_t index = from; index != until; index++)
		if (used_element(ring, slot_of(ring, index)).id != slot_of(ring, index))
			return false;
	return true;
}

// How many of n slots are free.
static inline unsigned free_slots(struct driver_ring *ring, unsigned n)
{
	uint16_t flying = ring->head - ring->used_seen;

	if (unlikely(ring->fault != DRIVER_OK))
		return 0;
	if (ring->size - flying < (int)n) {
		uint16_t used = __atomic_load_n(&ring->used->idx, __ATOMIC_ACQUIRE);
		uint16_t now = ring->head - used;

		if (unlikely(now > flying)) {
			ring->fault = DRIVER_BAD_INDEX;
			return 0;
		}
		if (unlikely(!ring->in_order && !ids_in_order(ring, ring->used_seen, used))) {
			ring->fault = DRIVER_BAD_ORDER;
			return 0;
		}
		ring->used_seen = used;
		flying = now;
	}
	return RTE_MIN((unsigned)(ring->size - flying), n);
}

static inline void set_length(struct driver_ring *ring, uint16_t slot, uint32_t length)
{
	uint32_t bytes = RING_HEADER + length;

	if (ring->desc[slot].len != bytes) // the line stays shared
		ring->desc[slot].len = bytes;
}

static inline void publish(struct driver_ring *ring, unsigned n)
{
	if (n == 0)
		return;
	ring->head += (uint16_t)n;
	ring->alike = 0;
	make_available(ring, ring->head);
}
