// SPDX-License-Identifier: BSD-3-Clause
#include "virtio/driver_ring.h"

#include <string.h>

#include <rte_common.h>
#include <rte_prefetch.h>

#include "virtio/driver_ends.h"
#include "shm/copy.h"

// flags and idx are alone in their lines: what follows them in s2.7.6 and s2.7.8, the entries, begins the
// next.
enum { INDEX_BYTES = 4, INDEX_OFFSET = DRIVER_LINE - INDEX_BYTES };
_Static_assert(offsetof(struct vring_avail, ring) == INDEX_BYTES, "s2.7.6");
_Static_assert(offsetof(struct vring_used, ring) == INDEX_BYTES, "s2.7.8");

static size_t desc_bytes(uint16_t size)
{
	return RTE_ALIGN_CEIL(sizeof(struct vring_desc) * size, DRIVER_LINE);
}

static size_t avail_bytes(uint16_t size)
{
	return RTE_ALIGN_CEIL(sizeof(uint16_t) * size, DRIVER_LINE) + DRIVER_LINE;
}

static size_t used_bytes(uint16_t size)
{
	return RTE_ALIGN_CEIL(sizeof(struct vring_used_elem) * size, DRIVER_LINE) + DRIVER_LINE;
}

size_t driver_ring_bytes(uint16_t size)
{
	return desc_bytes(size) + avail_bytes(size) + used_bytes(size);
}

void driver_ring_init(struct driver_ring *ring, bool receive, uint16_t size, uint32_t room, void *memory,
                      struct piece *pieces)
{
	uint8_t *at = memory;

	*ring = (struct driver_ring){.receive = receive,
	                             .isa = (uint8_t)isa_current(),
	                             .size = size,
	                             .room = room,
	                             .pieces = pieces};
	ring->desc = (struct vring_desc *)at;
	ring->avail = (struct vring_avail *)(at + desc_bytes(size) + INDEX_OFFSET);
	ring->used = (struct vring_used *)(at + desc_bytes(size) + avail_bytes(size) + INDEX_OFFSET);
	for (unsigned i = 0; i < size; i++)
		pieces[i].length = room;
}

static void split_reset(struct driver_ring *ring)
{
	ring->bell.word = &ring->used->flags;
	ring->used->flags = 0;
	ring->used->idx = 0;
	for (unsigned i = 0; i < ring->size; i++) {
		ring->desc[i] = (struct vring_desc){(uintptr_t)(ring->pieces[i].data - RING_HEADER),
		                                    RING_HEADER + ring->room,
		                                    ring->receive ? VRING_DESC_F_WRITE : 0, 0};
		ring->avail->ring[i] = (uint16_t)i;
	}
	ring->avail->flags = VRING_AVAIL_F_NO_INTERRUPT; // we poll
	__atomic_store_n(&ring->avail->idx, ring->receive ? ring->size : 0, __ATOMIC_RELEASE);
}

// Flags of zeros are those of no slot that is available in the first lap, whose wrap counter is 1 (s2.8.1).
static void packed_reset(struct driver_ring *ring)
{
	ring->bell.word = &ring->device_event->flags;
	*ring->device_event = (struct vring_packed_desc_event){0};
	*ring->driver_event = (struct vring_packed_desc_event){0, VRING_PACKED_EVENT_FLAG_DISABLE}; // we poll
	memset(ring->desc_packed, 0, ring->size * sizeof(ring->desc_packed[0]));
	if (!ring->receive)
		return;
	for (unsigned i = 0; i < ring->size; i++)
		packed_describe(ring, (uint16_t)i, ring->room);
	packed_show(ring, ring->size, true);
}

void driver_ring_reset(struct driver_ring *ring, bool in_order, bool packed)
{
	ring->in_order = in_order;
	ring->packed = packed;
	ring->wrap = true;
	ring->head = ring->at = ring->used_seen = ring->lent = 0;
	ring->alike = ring->fetched = 0;
	ring->bell.owed = ring->receive;
	ring->fault = DRIVER_OK;
	for (unsigned i = 0; i < ring->size; i++)
		memset(ring->pieces[i].data - RING_HEADER, 0, RING_HEADER);
	(packed ? packed_reset : split_reset)(ring);
}

const char *driver_fault_text(unsigned fault)
{
	static const char *const texts[DRIVER_FAULTS] = {
	        [DRIVER_OK] = "no fault",
	        [DRIVER_BAD_INDEX] = "it has used more buffers than it was given",
	        [DRIVER_BAD_ORDER] =
	                "it does not use buffers in order; \"backend\": \"dpdk\" can do with that",
	        [DRIVER_BAD_LENGTH] = "a frame is longer than its buffer, or shorter than its header",
	};

	return texts[fault < DRIVER_FAULTS ? fault : DRIVER_OK];
}

// --- Receive ---------------------------------------------------------------------------------------------

// How many have come, as far as we know. The device's index is looked at only when these are fewer than n: its cache line
// travels between the cores each time.
static inline unsigned arrived(struct driver_ring *ring, unsigned n)
{
	uint16_t ready = ring->used_seen - ring->head;

	if (ready < n) {
		uint16_t used = __atomic_load_n(&ring->used->idx, __ATOMIC_ACQUIRE);
		uint16_t now = used - ring->head;

		if (unlikely(now < ready || now > ring->size)) {
			ring->fault = DRIVER_BAD_INDEX;
			return 0;
		}
		ring->used_seen = used;
		ready = now;
	}
	return ready;
}

// Compiled once for each layout: a test for each frame costs a fifth of a peek.
static __rte_always_inline unsigned peek_frames(struct driver_ring *ring, unsigned n, struct frame *frames,
                                                unsigned *count, const bool packed)
{
	const struct piece *const pieces = ring->pieces;
	const uint32_t room = ring->room;
	unsigned i, kept = 0;
	uint16_t slot = ring->at;

	for (i = 0; i < n; i++) {
		struct vring_used_elem used;
		uint32_t length;

		if (!packed)
			used = used_element(ring, slot);
		else if (!packed_is_used(ring, slot, wrap_of(ring, slot), &used))
			break;
		length = used.len - RING_HEADER; // wraps below it: then it is > room
		if (unlikely(used.id != slot || length > room)) {
			if (i == 0) // what came before is good
				ring->fault = used.id != slot ? DRIVER_BAD_ORDER : DRIVER_BAD_LENGTH;
			break;
		}
		rte_prefetch0(pieces[slot].data);
		frames[kept] = (struct frame){{&pieces[slot], 0}, length, 0};
		kept += length != 0;
		if (unlikely(++slot == ring->size))
			slot = 0;
	}
	*count = kept;
	return i;
}

unsigned driver_ring_peek(struct driver_ring *ring, unsigned n, struct frame *frames, unsigned *count,
                          unsigned *empty)
{
	unsigned taken;

	*count = *empty = 0;
	if (unlikely(ring->fault != DRIVER_OK))
		return 0;
	n = RTE_MIN(n, (unsigned)BURST_FRAMES_MAX);
	if (likely(!ring->packed))
		taken = peek_frames(ring, RTE_MIN(arrived(ring, n), n), frames, count, false);
	else
		taken = peek_frames(ring, RTE_MIN(n, (unsigned)ring->size), frames, count, true);
	*empty = taken - *count;
	return taken;
}

// Frames in slots that follow one another: their first lines are asked for.
static inline void fetch_slots(const struct driver_ring *ring, unsigned slot, unsigned n)
{
	const struct piece *pieces = &ring->pieces[slot];

#pragma GCC unroll 4
	for (unsigned i = 0; i < n; i++)
		rte_prefetch0(pieces[i].data);
}

// The same of the n frames from head on, each once: those of a burst travel while the one before is looked at.
static inline void fetch_frames(struct driver_ring *ring, unsigned n)
{
	unsigned slot = slot_at(ring, ring->fetched), more, straight;

	if (ring->fetched >= n)
		return;
	more = n - ring->fetched;
	straight = RTE_MIN(more, ring->size - slot);
	fetch_slots(ring, slot, straight);
	fetch_slots(ring, 0, more - straight);
	ring->fetched = (uint16_t)n;
}

static inline const ring_word *used_words(const struct driver_ring *ring, unsigned slot)
{
	return (const ring_word *)(const void *)&ring->used->ring[slot];
}

// The element of a frame of this length: the length, and the slot's id.
static inline uint64_t used_due(unsigned slot, uint32_t length)
{
	return (uint64_t)(RING_HEADER + length) << 32 | slot;
}

// Where the frames in slots that follow one another lie. Returns how many: those before the first that is not of this length.
static inline unsigned spans_of(const struct driver_ring *ring, unsigned slot, unsigned n, uint32_t length,
                                struct vnf_frame *spans)
{
	const ring_word *used = used_words(ring, slot);
	const struct piece *pieces = &ring->pieces[slot];
	uint64_t due = used_due(slot, length);
	unsigned i;

#pragma GCC unroll 4
	for (i = 0; i < n; i++) {
		if (unlikely(__atomic_load_n(&used[i], __ATOMIC_RELAXED) != due + i))
			break;
		spans[i] = (struct vnf_frame){pieces[i].data, length, length};
	}
	return i;
}

// The first that has not come ends them; one that has, and is of another length, is for driver_ring_peek(). spans NULL: frames
// of this length, which nobody reads; else they are all as long as the first.
static unsigned packed_spans(const struct driver_ring *ring, struct vnf_frame *spans, uint32_t length,
                             unsigned n)
{
	unsigned i;

	n = RTE_MIN(n, (unsigned)ring->size);
	for (i = 0; i < n; i++) {
		uint16_t slot = slot_at(ring, i);
		struct vring_used_elem used;

		if (!packed_is_used(ring, slot, wrap_of(ring, slot), &used))
			break;
		if (spans && i == 0)
			length = used.len - RING_HEADER;
		if (unlikely(used.id != slot || used.len != RING_HEADER + length || length - 1 >= ring->room))
			return 0;
		if (!spans)
			continue;
		rte_prefetch0(ring->pieces[slot].data);
		spans[i] = (struct vnf_frame){ring->pieces[slot].data, length, length};
	}
	return i;
}

unsigned driver_ring_peek_spans(struct driver_ring *ring, struct vnf_frame *spans, unsigned n)
{
	unsigned slot = ring->at, ready, straight;
	uint32_t length;

	if (unlikely(ring->fault != DRIVER_OK))
		return 0;
	n = RTE_MIN(n, (unsigned)BURST_FRAMES_MAX);
	if (ring->packed)
		return packed_spans(ring, spans, 0, n);
	ready = arrived(ring, n);
	n = RTE_MIN(ready, n);
	if (n == 0)
		return 0;
	fetch_frames(ring, RTE_MIN(ready, 2 * n));
	length = used_element(ring, (uint16_t)slot).len - RING_HEADER;
	if (unlikely(length - 1 >= ring->room))
		return 0;
	straight = RTE_MIN(n, ring->size - slot);
	if (unlikely(spans_of(ring, slot, straight, length, spans) < straight))
		return 0;
	if (unlikely(spans_of(ring, 0, n - straight, length, &spans[straight]) < n - straight))
		return 0;
	return n;
}

// Whether the frames in slots that follow one another are of this length. The elements are read by the vector, each once.
static inline bool are_alike(const struct driver_ring *ring, unsigned slot, unsigned n, uint32_t length)
{
	const ring_word *used = used_words(ring, slot);
	uint64_t due = used_due(slot, length), differ = 0;

	for (unsigned i = 0; i < n; i++)
		differ |= used[i] ^ (due + i);
	return differ == 0;
}

unsigned driver_ring_peek_alike(struct driver_ring *ring, uint32_t length, unsigned n)
{
	unsigned slot = slot_at(ring, 0), straight;

	if (unlikely(ring->fault != DRIVER_OK))
		return 0;
	n = RTE_MIN(n, (unsigned)BURST_FRAMES_MAX);
	if (ring->packed)
		return packed_spans(ring, NULL, length, n);
	n = RTE_MIN(arrived(ring, n), n);
	straight = RTE_MIN(n, ring->size - slot);
	return are_alike(ring, slot, straight, length) && are_alike(ring, 0, n - straight, length) ? n : 0;
}

void driver_ring_release(struct driver_ring *ring, unsigned buffers)
{
	if (ring->packed) {
		for (unsigned i = 0; i < buffers; i++)
			packed_describe(ring, slot_at(ring, i), ring->room);
		packed_show(ring, buffers, !ring->wrap);
		move_on(ring, buffers);
		doorbell_owe(&ring->bell);
		return;
	}
	ring->fetched -= (uint16_t)RTE_MIN((unsigned)ring->fetched, buffers);
	move_on(ring, buffers);
	make_available(ring, (uint16_t)(ring->head + ring->size));
}

// --- Transmit --------------------------------------------------------------------------------------------

// The descriptors of the n slots that are next say these lengths. Frames of one length are the rule: once they have been all
// round the ring, every descriptor says it, and none is looked at.
static inline void set_lengths(struct driver_ring *ring, const uint16_t *lengths, unsigned n)
{
	unsigned differ = 0;

	for (unsigned i = 0; i < n; i++)
		differ |= lengths[i] ^ ring->length;
	ring->lent_alike = differ == 0;
	if (likely(ring->lent_alike && ring->alike == ring->size && !ring->packed))
		return;
	for (unsigned i = 0; i < n; i++)
		set_length(ring, slot_at(ring, i), lengths[i]);
	if (differ) {
		ring->length = lengths[0];
		ring->alike = 0;
	}
}

unsigned driver_ring_reserve(struct driver_ring *ring, const uint16_t *lengths, uint8_t **data, unsigned n)
{
	const struct piece *pieces = ring->pieces;
	unsigned slot = ring->at, straight, i;

	n = free_slots(ring, RTE_MIN(n, (unsigned)BURST_FRAMES_MAX));
	set_lengths(ring, lengths, n);
	straight = RTE_MIN(n, ring->size - slot);
	for (i = 0; i < straight; i++)
		data[i] = pieces[slot + i].data;
	for (; i < n; i++)
		data[i] = pieces[i - straight].data;
	ring->lent = (uint16_t)n;
	return n;
}

unsigned driver_ring_publish(struct driver_ring *ring, unsigned n)
{
	unsigned alike;

	n = RTE_MIN(n, (unsigned)ring->lent);
	alike = ring->lent_alike ? ring->alike + n : 0;
	ring->lent = 0;
	publish(ring, n);
	ring->alike = (uint16_t)RTE_MIN(alike, (unsigned)ring->size);
	return n;
}

void driver_ring_warm(const struct driver_ring *ring)
{
	uint16_t slot = ring->at;

	if ((uint16_t)(ring->head - ring->used_seen) < ring->size)
		prefetch_to_write(ring->pieces[slot].data);
	rte_prefetch0(&ring->desc[slot]);
}
