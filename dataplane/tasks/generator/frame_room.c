// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/generator/frame_room.h"

#include <rte_bitops.h>
#include <rte_common.h>
#include <stdlib.h>
#include <string.h>

// Open addressing, never more than half full: nearly all buffers are found where they are looked for first.
// No entry is removed but by forgetting all.
struct frame_room {
	unsigned known, shift, mask; // entries: mask + 1, a power of two
	const uint8_t *filled[];
};

struct frame_room *frame_room_create(unsigned buffers)
{
	unsigned entries = rte_align32pow2(4 * RTE_MAX(buffers, 16u));
	struct frame_room *room = calloc(1, sizeof(*room) + entries * sizeof(room->filled[0]));

	if (room) {
		room->mask = entries - 1;
		room->shift = 64 - rte_log2_u32(entries);
	}
	return room;
}

void frame_room_free(struct frame_room *room)
{
	free(room);
}

void frame_room_forget(struct frame_room *room)
{
	memset(room->filled, 0, (room->mask + 1) * sizeof(room->filled[0]));
	room->known = 0;
}

// Fibonacci hashing: buffers are a constant distance apart, which this spreads evenly.
static inline unsigned entry_of(const struct frame_room *room, const uint8_t *data)
{
	return (unsigned)(((uintptr_t)data * UINT64_C(0x9e3779b97f4a7c15)) >> room->shift);
}

static __attribute__((noinline)) void fill(struct frame_room *room, uint8_t *data, uint32_t length)
{
	unsigned at;

	if (room->known > room->mask / 2) // more buffers than were announced: begin anew
		frame_room_forget(room);
	for (at = entry_of(room, data); room->filled[at]; at = (at + 1) & room->mask)
		;
	room->filled[at] = data;
	room->known++;
	memcpy(data + FRAME_STORE_BYTES, frame_pattern() + FRAME_STORE_BYTES, length - FRAME_STORE_BYTES);
}

static inline bool is_filled(const struct frame_room *room, const uint8_t *data)
{
	unsigned at = entry_of(room, data);

	while (room->filled[at] && room->filled[at] != data)
		at = (at + 1) & room->mask;
	return room->filled[at];
}

unsigned frame_room_prepare(struct frame_room *room, struct frame *frames, unsigned n, uint32_t length,
                            uint8_t **data)
{
	const uint32_t needed = RTE_MAX(length, (uint32_t)FRAME_STORE_BYTES);

	for (unsigned i = 0; i < n; i++) {
		const struct scatter *at = &frames[i].at;

		if (unlikely(frames[i].length < needed || at->piece->length - at->offset < needed))
			return i;
		data[i] = at->piece->data + at->offset;
		frames[i].length = length;
		if (length > FRAME_STORE_BYTES && unlikely(!is_filled(room, data[i])))
			fill(room, data[i], length);
	}
	return n;
}

unsigned frame_room_prepare_mixed(struct frame_room *room, struct frame *frames, unsigned n,
                                  const uint16_t *lengths, uint32_t store, uint32_t longest, uint8_t **data)
{
	for (unsigned i = 0; i < n; i++) {
		const struct scatter *at = &frames[i].at;
		uint32_t needed = RTE_MAX((uint32_t)lengths[i], store);
		uint32_t whole = RTE_MIN(frames[i].length, at->piece->length - at->offset);

		if (unlikely(whole < needed))
			return i;
		data[i] = at->piece->data + at->offset;
		frames[i].length = lengths[i];
		if (longest > FRAME_STORE_BYTES && unlikely(!is_filled(room, data[i])))
			fill(room, data[i], RTE_MIN(whole, longest));
	}
	return n;
}
