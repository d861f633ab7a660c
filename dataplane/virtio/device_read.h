// SPDX-License-Identifier: BSD-3-Clause
// Reading the entries of a ring of either kind, and marking them as used. For ring.c and device_run.c only.
#pragma once

#include <string.h>

#include <rte_common.h>
#include <rte_prefetch.h>

#include "virtio/device_ring.h"

// --- Descriptors and chains ------------------------------------------------------------------------------

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "virtio 1 is little endian (s1.4), and so are we");
_Static_assert(sizeof(struct vring_desc) == 16 && sizeof(struct vring_packed_desc) == 16, "s2.7.5, s2.8.13");

enum { RING_DESCRIPTOR_BYTES = 16 };

// Not a fault: the batch has no room for the chain.
enum { RING_NO_ROOM = RING_FAULTS };

// How many descriptors a chain may have.
static inline unsigned ring_chain_max(const struct device_ring *ring)
{
	return ring->size < RING_CHAIN_MAX ? ring->size : RING_CHAIN_MAX;
}

// A descriptor of either kind, in our own memory.
struct ring_descriptor {
	uint64_t address;
	uint32_t length;
	uint16_t flags;
	uint16_t link; // split: next; packed: id
};

// One load, whatever the compiler would like to do and however it is aligned: what the guest changes after it
// is not seen.
static inline uint64_t ring_load_once(const void *at)
{
	struct __attribute__((packed, may_alias)) unaligned {
		uint64_t value;
	};

	return ((const volatile struct unaligned *)at)->value;
}

static inline struct ring_descriptor ring_read_split(const void *at)
{
	uint64_t address = ring_load_once(at), rest = ring_load_once((const char *)at + 8);

	return (struct ring_descriptor){address, (uint32_t)rest, (uint16_t)(rest >> 32),
	                                (uint16_t)(rest >> 48)};
}

static inline struct ring_descriptor ring_packed_from(uint64_t address, uint64_t rest)
{
	return (struct ring_descriptor){address, (uint32_t)rest, (uint16_t)(rest >> 48),
	                                (uint16_t)(rest >> 32)};
}

static inline struct ring_descriptor ring_read_packed(const void *at)
{
	return ring_packed_from(ring_load_once(at), ring_load_once((const char *)at + 8));
}

// Begin the next buffer of the batch.
static inline struct ring_buffer *ring_buffer_begin(struct ring_batch *batch)
{
	struct ring_buffer *buffer = &batch->buffers[batch->count];

	*buffer = (struct ring_buffer){.slots = 1, .first_piece = (uint16_t)batch->piece_count};
	return buffer;
}

// Add what a descriptor describes to a buffer: one piece, or several where regions meet. Returns RING_OK, a
// fault or RING_NO_ROOM.
static inline unsigned ring_buffer_add(struct device_ring *ring, struct ring_batch *batch,
                                       struct ring_buffer *buffer, const struct ring_descriptor *d)
{
	uint64_t address = d->address;
	uint32_t left = d->length;

	// A descriptor without a byte adds no piece, but takes as long to read.
	if (unlikely(batch->descriptor_count == PIECES_MAX))
		return RING_NO_ROOM;
	batch->descriptor_count++;
	if (unlikely(((d->flags & VRING_DESC_F_WRITE) != 0) != ring->writable))
		return RING_BAD_DIRECTION;
	if (unlikely(buffer->length > UINT32_MAX - left)) // s2.7.5.2: less than 2^32 bytes in total
		return RING_BAD_CHAIN;
	buffer->length += left;
	while (left) {
		uint32_t run = left;
		uint8_t *data = guest_memory_run(ring->memory, &ring->last_region, address, &run);

		if (unlikely(data == NULL))
			return RING_BAD_ADDRESS;
		if (unlikely(batch->piece_count == PIECES_MAX))
			return RING_NO_ROOM;
		batch->pieces[batch->piece_count++] = (struct piece){data, run};
		buffer->piece_count++;
		address += run;
		left -= run;
	}
	return RING_OK;
}

// The table of an indirect descriptor: where it is and how many entries it has. NULL: *fault says why not.
// It must not break at a region's end: it is one array to the guest's device too (s2.7.5.3).
static inline const char *ring_indirect_table(struct device_ring *ring, const struct ring_descriptor *d,
                                              unsigned *entries, unsigned *fault)
{
	uint32_t run = d->length;
	const char *table;

	*fault = RING_BAD_INDIRECT;
	*entries = d->length / RING_DESCRIPTOR_BYTES;
	if ((d->flags & VRING_DESC_F_NEXT) || d->length % RING_DESCRIPTOR_BYTES || *entries == 0 ||
	    *entries > ring->size)
		return NULL;
	*fault = RING_BAD_ADDRESS;
	table = (const char *)guest_memory_run(ring->memory, &ring->last_region, d->address, &run);
	return table && run == d->length ? table : NULL;
}

// The buffer is read, or cannot be: keep it, or end the batch. Returns whether it is kept.
static inline bool ring_buffer_end(struct device_ring *ring, struct ring_batch *batch, unsigned fault)
{
	struct ring_buffer *buffer = &batch->buffers[batch->count];

	if (fault == RING_OK && unlikely(buffer->length == 0))
		fault = RING_EMPTY_CHAIN;
	if (likely(fault == RING_OK)) {
		batch->bytes += buffer->length;
		if (likely(ring->writable || batch->bytes <= POLL_BYTES_MAX || batch->count == 0)) {
			batch->count++;
			return true;
		}
		batch->bytes -= buffer->length;
	}
	batch->limited = true;
	batch->piece_count = buffer->first_piece;
	if (batch->count == 0) // it had the whole batch to itself
		ring->fault = fault == RING_NO_ROOM ? RING_BAD_CHAIN : (enum ring_fault)fault;
	return false;
}

// --- What is available, and what is used -----------------------------------------------------------------

enum {
	RING_FLAG_AVAIL = 1 << VRING_PACKED_DESC_F_AVAIL,
	RING_FLAG_USED = 1 << VRING_PACKED_DESC_F_USED,
};

// Split: how many of n are available. The guest's index is looked at only when what we know is not enough:
// its cache line travels between the cores each time.
static inline unsigned ring_split_available(struct device_ring *ring, unsigned n)
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

// An element that says what it said the last time round is not written: its line stays in both caches.
static inline void ring_split_use(struct device_ring *ring, uint16_t slot, uint16_t id, uint32_t written)
{
	const struct vring_used_elem element = {id, written};

	if (memcmp(&ring->used->ring[slot], &element, sizeof(element)) != 0)
		ring->used->ring[slot] = element;
}

// Packed: length, id and flags of a descriptor: its second half, written and read as one.
static inline ring_word *ring_packed_half(const struct device_ring *ring, uint16_t slot)
{
	return (ring_word *)(void *)&ring->desc_packed[slot].len;
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
