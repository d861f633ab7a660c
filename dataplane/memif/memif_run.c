// SPDX-License-Identifier: BSD-3-Clause
// The copies into a ring of a memif, compiled for each instruction set (isa.h): an ISA source.
#include "shm/copy.h"
#include "memif/memif_ring.h"

// Buffers that were looked up ahead: their first lines are on their way while others are written.
struct rooms {
	unsigned count;
	uint8_t *data[BURST_FRAMES_MAX];
	uint64_t half[BURST_FRAMES_MAX]; // of a server, what the slot said: a client knows its own
};

static __rte_always_inline void look_up_own(const struct memif_ring *ring, struct rooms *rooms, unsigned n)
{
	const struct memif_ring own = *ring;

	for (unsigned i = 0; i < n; i++) {
		rooms->data[i] = memif_buffer(&own, i);
		prefetch_to_write(rooms->data[i]);
	}
	rooms->count = n;
}

static __rte_always_inline void look_up(struct memif_ring *ring, struct rooms *rooms, unsigned n)
{
	const struct memif_ring own = *ring;
	struct guest_region near = memif_region_near(ring);
	unsigned i;

	memif_take_lines(&own, n);
	for (i = 0; i < n; i++) {
		uint64_t half = memif_half(memif_slot(&own, i));
		uint8_t *data = memif_place_near(&near, &own, i, half);

		if (unlikely(data == NULL)) {
			data = memif_room(ring, i, half);
			if (data == NULL)
				break;
			near = memif_region_near(ring);
		}
		rooms->data[i] = data;
		rooms->half[i] = half;
		prefetch_to_write(data);
	}
	rooms->count = i;
}

// The frames of which each fits its buffer. Returns how many. placed: where they are then, for who sends them later; NULL:
// what the descriptors say of them is written.
static __rte_always_inline unsigned copy_plain(const struct memif_ring *ring, const struct rooms *rooms,
                                               const struct frame *frames, unsigned n, bool client,
                                               struct placed *placed)
{
	const struct memif_ring own = *ring;
	unsigned i;

	n = RTE_MIN(n, rooms->count);
	for (i = 0; i < n; i++) {
		const struct frame *frame = &frames[i];
		uint64_t length =
		        frame->length; // 32 bits GCC 12 widens in memory, where they are read before
		                       // the cache has them: after all stores that wait for a line

		if (unlikely(length > (client ? MEMIF_BUFFER_BYTES : rooms->half[i] >> 32)))
			break;
		if (unlikely(length > COPY_SMALL)) {
			if (i + COPY_AHEAD < n)
				copy_fetch(rooms->data[i + COPY_AHEAD],
				           (uint32_t)RTE_MIN((uint64_t)frame[COPY_AHEAD].length,
				                             client ? MEMIF_BUFFER_BYTES
				                                    : rooms->half[i + COPY_AHEAD] >> 32));
		} else if (i + COPY_AGAIN < n) {
			copy_fetch_again(rooms->data[i + COPY_AGAIN], scatter_start(&frame[COPY_AGAIN].at));
		}
		copy_scattered(rooms->data[i], &frame->at, (uint32_t)length);
		if (placed)
			placed->frames[i] =
			        (struct vnf_frame){rooms->data[i], (uint32_t)length, (uint32_t)length};
		else
			memif_say_length(&own, i, client ? 0 : rooms->half[i], (uint32_t)length, client);
	}
	return i;
}

static __rte_always_inline unsigned deliver_plain(struct memif_ring *ring, struct rooms *rooms,
                                                  const struct frame *frames, unsigned n, bool client,
                                                  struct placed *placed)
{
	unsigned ready = RTE_MIN(memif_ready(ring, n), n);

	if (client)
		look_up_own(ring, rooms, ready);
	else
		look_up(ring, rooms, ready);
	return copy_plain(ring, rooms, frames, n, client, placed);
}

unsigned ISA_NAME(memif_deliver)(struct memif_ring *ring, const struct frame *frames, unsigned n,
                                 uint64_t *too_long)
{
	unsigned taken = 0;

	n = RTE_MIN(n, (unsigned)BURST_FRAMES_MAX);
	while (taken < n) {
		struct rooms rooms;
		unsigned placed, chained = 0;

		if (ring->client)
			placed = deliver_plain(ring, &rooms, &frames[taken], n - taken, true, NULL);
		else
			placed = deliver_plain(ring, &rooms, &frames[taken], n - taken, false, NULL);
		taken += placed;
		if (unlikely(taken < n && placed < rooms.count)) // it is longer than its buffer
			chained = memif_deliver_chain(ring, placed, &frames[taken]);
		if (unlikely(chained > MEMIF_CHAIN_MAX))
			++*too_long;
		taken += chained != 0;
		if (chained <= MEMIF_CHAIN_MAX)
			placed += chained;
		if (placed) {
			memif_advance(ring, placed);
			doorbell_owe(&ring->bell);
		}
		if (likely(chained == 0))
			break;
	}
	return taken;
}

unsigned ISA_NAME(memif_place_frames)(struct memif_ring *ring, const struct frame *frames, unsigned n,
                                      struct placed *placed)
{
	struct rooms rooms;
	unsigned done;

	n = RTE_MIN(n, (unsigned)BURST_FRAMES_MAX);
	if (ring->client)
		done = deliver_plain(ring, &rooms, frames, n, true, placed);
	else
		done = deliver_plain(ring, &rooms, frames, n, false, placed);
	placed->full = done == rooms.count;
	return done;
}
