// SPDX-License-Identifier: BSD-3-Clause
// The driver's end of a ring, as those who move frames through it use it: which slots are free, and how what
// is in them is shown to the device. For driver_ring.c and driver_run.c only.
#pragma once

#include <rte_common.h>
#include <rte_prefetch.h>

#include "virtio/driver_ring.h"

// The slot at a distance, at most the size, from the next one.
static inline uint16_t slot_at(const struct driver_ring *ring, unsigned distance)
{
	unsigned slot = ring->at + distance;

	return (uint16_t)(slot >= ring->size ? slot - ring->size : slot);
}

static inline uint16_t slot_after(const struct driver_ring *ring, uint16_t slot)
{
	return (uint16_t)(slot + 1u == ring->size ? 0 : slot + 1u);
}

// --- Packed: s2.8 -----------------------------------------------------------------------------------------

enum { PACKED_AVAIL = 1 << VRING_PACKED_DESC_F_AVAIL, PACKED_USED = 1 << VRING_PACKED_DESC_F_USED };

// The wrap counter of a slot from slot `at` on: beyond the end of the ring it is the other one.
static inline bool wrap_of(const struct driver_ring *ring, uint16_t slot)
{
	return ring->wrap != (slot < ring->at);
}

static inline ring_word *packed_half(const struct driver_ring *ring, uint16_t slot)
{
	return (ring_word *)(void *)&ring->desc_packed[slot].len;
}

// Length, id and flags of a descriptor, in one load. Returns whether the device has used it: both bits are the wrap counter.
static inline bool packed_is_used(const struct driver_ring *ring, uint16_t slot, bool wrap,
                                  struct vring_used_elem *used)
{
	uint64_t half = __atomic_load_n(packed_half(ring, slot), __ATOMIC_ACQUIRE);
	unsigned flags = (unsigned)(half >> 48) & (PACKED_AVAIL | PACKED_USED);

	*used = (struct vring_used_elem){half >> 32 & 0xffff, (uint32_t)half};
	return flags == (wrap ? PACKED_AVAIL | PACKED_USED : 0);
}

// All of a descriptor but the flags, which are still those of who has used it.
static inline void packed_describe(struct driver_ring *ring, uint16_t slot, uint32_t length)
{
	struct vring_packed_desc *desc = &ring->desc_packed[slot];

	desc->addr = (uintptr_t)(ring->pieces[slot].data - RING_HEADER);
	desc->len = RING_HEADER + length;
	desc->id = slot;
}

// Make n described slots available. wrap: of slot `at`. The device waits for the first, which shows all others.
static inline void packed_show(struct driver_ring *ring, unsigned n, bool wrap)
{
	const uint16_t write = ring->receive ? VRING_DESC_F_WRITE : 0;

	for (unsigned i = n; i-- > 0;) {
		uint16_t slot = slot_at(ring, i);
		bool now = wrap != (slot < ring->at);

		__atomic_store_n(&ring->desc_packed[slot].flags, write | (now ? PACKED_AVAIL : PACKED_USED),
		                 i ? __ATOMIC_RELAXED : __ATOMIC_RELEASE);
	}
}

// Transmit: how many of those under way the device has used, as it says; more than there are: the wrong ones. With IN_ORDER
// it may write one descriptor for many, with the id of the last (s2.8.9).
static inline unsigned packed_returned(const struct driver_ring *ring, unsigned flying)
{
	unsigned returned = 0;

	while (returned < flying) {
		uint16_t slot = slot_at(ring, ring->size - flying + returned);
		bool wrap = ring->wrap != (ring->at + returned < flying); // of the lap before
		struct vring_used_elem used;
		unsigned run;

		if (!packed_is_used(ring, slot, wrap, &used))
			break;
		if (used.id >= ring->size || (used.id != slot && !ring->in_order))
			return UINT16_MAX;
		run = (used.id >= slot ? used.id : used.id + ring->size) - slot + 1u;
		returned += run;
	}
	return returned;
}

// --- Both --------------------------------------------------------------------------------------------------

// The first n slots are done with.
static inline void move_on(struct driver_ring *ring, unsigned n)
{
	uint16_t slot = slot_at(ring, n);

	ring->wrap ^= ring->at + n >= ring->size;
	ring->at = slot;
	ring->head += (uint16_t)n;
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
static inline bool ids_in_order(const struct driver_ring *ring, unsigned flying, unsigned returned)
{
	for (unsigned i = 0; i < returned; i++) {
		uint16_t slot = slot_at(ring, ring->size - flying + i);

		if (used_element(ring, slot).id != slot)
			return false;
	}
	return true;
}

// Transmit: how many of those under way have come back since the last look; a fault: 0.
static inline unsigned returned_slots(struct driver_ring *ring, unsigned flying)
{
	unsigned returned;

	if (ring->packed)
		returned = packed_returned(ring, flying);
	else
		returned = (uint16_t)(__atomic_load_n(&ring->used->idx, __ATOMIC_ACQUIRE) - ring->used_seen);
	if (unlikely(returned > flying)) {
		ring->fault = ring->packed ? DRIVER_BAD_ORDER : DRIVER_BAD_INDEX;
		return 0;
	}
	if (unlikely(!ring->packed && !ring->in_order && !ids_in_order(ring, flying, returned))) {
		ring->fault = DRIVER_BAD_ORDER;
		return 0;
	}
	return returned;
}

// How many of n slots are free.
static inline unsigned free_slots(struct driver_ring *ring, unsigned n)
{
	unsigned flying = (uint16_t)(ring->head - ring->used_seen);

	if (unlikely(ring->fault != DRIVER_OK))
		return 0;
	if (ring->size - flying < n) {
		unsigned returned = returned_slots(ring, flying);

		if (unlikely(ring->fault != DRIVER_OK))
			return 0;
		ring->used_seen += (uint16_t)returned;
		flying -= returned;
	}
	return RTE_MIN(ring->size - flying, n);
}

static inline void set_length(struct driver_ring *ring, uint16_t slot, uint32_t length)
{
	uint32_t bytes = RING_HEADER + length;

	if (ring->packed)
		packed_describe(ring, slot, length);
	else if (ring->desc[slot].len != bytes) // the line stays shared
		ring->desc[slot].len = bytes;
}

static inline void publish(struct driver_ring *ring, unsigned n)
{
	if (n == 0)
		return;
	ring->alike = 0;
	if (ring->packed) {
		packed_show(ring, n, ring->wrap);
		move_on(ring, n);
		doorbell_owe(&ring->bell);
	} else {
		move_on(ring, n);
		make_available(ring, ring->head);
	}
}
