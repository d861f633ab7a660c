// SPDX-License-Identifier: BSD-3-Clause
// The copies of a transmit ring, compiled for each instruction set (isa.h), and passing on, which is part
// copy.
#include <string.h>

#include "shm/copy.h"
#include "virtio/driver_ends.h"

static inline void copy_frame(struct driver_ring *ring, uint16_t slot, const struct frame *frame)
{
	copy_scattered(ring->pieces[slot].data, &frame->at, frame->length);
	set_length(ring, slot, frame->length);
}

// For the frame that is copied to the slot at this distance from head.
static inline void fetch_slot(const struct driver_ring *ring, unsigned distance, uint32_t length)
{
	copy_fetch(ring->pieces[slot_at(ring, distance)].data, RTE_MIN(length, ring->room));
}

unsigned ISA_NAME(driver_ring_deliver)(struct driver_ring *ring, const struct frame *frames, unsigned n,
                                       uint64_t *too_long)
{
	unsigned slots = free_slots(ring, n), placed = 0, taken = 0;

	for (unsigned i = 0; i < slots; i++)
		prefetch_to_write(ring->pieces[slot_at(ring, i)].data);
	for (; taken < n; taken++) {
		if (unlikely(frames[taken].length > ring->room)) {
			++*too_long; // however empty the ring: what comes after it must not wait for it
			continue;
		}
		if (unlikely(placed == slots))
			break;
		if (unlikely(frames[taken].length > COPY_SMALL) && placed + COPY_AHEAD < slots &&
		    taken + COPY_AHEAD < n)
			fetch_slot(ring, placed + COPY_AHEAD, frames[taken + COPY_AHEAD].length);
		copy_frame(ring, slot_at(ring, placed), &frames[taken]);
		placed++;
	}
	publish(ring, placed);
	return taken;
}

// The buffer that came goes out; the empty one takes its place among those to receive into. Header and frame
// stay together: the header is the sending device's, and must be zero for the other (s5.1.6.2).
static inline void exchange(struct driver_ring *from, struct driver_ring *to, uint16_t slot,
                            const struct frame *frame)
{
	uint16_t came = (uint16_t)(frame->at.piece - from->pieces);
	uint8_t *full = from->pieces[came].data, *empty = to->pieces[slot].data;

	memset(full - RING_HEADER, 0, RING_HEADER);
	to->pieces[slot].data = full;
	from->pieces[came].data = empty;
	if (!to->packed)
		to->desc[slot].addr = (uintptr_t)(full - RING_HEADER);
	if (!from->packed)
		from->desc[came].addr = (uintptr_t)(empty - RING_HEADER);
	set_length(to, slot, frame->length);
}

unsigned ISA_NAME(driver_ring_pass)(struct driver_ring *from, struct driver_ring *to,
                                    const struct frame *frames, unsigned n)
{
	uint16_t slot;
	unsigned i;

	n = free_slots(to, n);
	for (i = 0, slot = to->at; i < n; i++, slot = slot_after(to, slot))
		if (frames[i].length <= DRIVER_COPY_MAX)
			prefetch_to_write(to->pieces[slot].data);
		else
			prefetch_to_write(frames[i].at.piece->data - DRIVER_LINE);
	for (i = 0, slot = to->at; i < n; i++, slot = slot_after(to, slot)) {
		if (frames[i].length <= DRIVER_COPY_MAX || unlikely(frames[i].at.offset))
			copy_frame(to, slot, &frames[i]);
		else
			exchange(from, to, slot, &frames[i]);
	}
	publish(to, n);
	return n;
}
