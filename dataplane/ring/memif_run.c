// SPDX-License-Identifier: BSD-3-Clause
// The copies into a ring of a memif, compiled for each instruction set (isa.h): an ISA source.
#include "ring/copy.h"
#include "ring/memif_ring.h"

// Buffers that were looked up ahead: their first lines are on their way while others are written.
struct rooms {
	unsigned count;
	uint8_t *data[RING_BATCH_MAX];
	uint64_t half[RING_BATCH_MAX]; // of a server, what the slot said: a client knows its own
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

// The frames of which each fits its buffer. Returns how many. A descriptor of a client that says the same as the last time
// round is not written: its line stays in both caches.
static __rte_always_inline unsigned place_plain(const struct memif_ring *ring, const struct rooms *rooms,
                                                const struct frame *frames, unsigned n, bool client)
{
	const struct memif_ring own = *ring;
	unsigned i;

	n = RTE_MIN(n, rooms->count);
	for (i = 0; i < n; i++) {
		const struct frame *frame = &frames[i];
		struct memif_descriptor *d = memif_slot(&own, i);
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
		if (!client)
			memif_set_half(d, memif_half_of(rooms->half[i], (uint32_t)length, 0));
		else if (memif_half(d) != memif_own_half((uint32_t)length))
			memif_set_half(d, memif_own_half((uint32_t)length));
	}
	return i;
}

static __rte_always_inline unsigned deliver_plain(struct memif_ring *ring, struct rooms *rooms,
                                                  const struct frame *frames, unsigned n, bool client)
{
	unsigned ready = RTE_MIN(memif_ready(ring, n), n);

	if (client)
		look_up_own(ring, rooms, ready);
	else
		look_up(ring, rooms, ready);
	return place_plain(ring, rooms, frames, n, client);
}

unsigned ISA_NAME(memif_deliver)(struct memif_ring *ring, const struct frame *frames, unsigned n,
                                 uint64_t *too_long)
{
	unsigned taken = 0;

	n = RTE_MIN(n, (unsigned)RING_BATCH_MAX);
	while (taken < n) {
		struct rooms rooms;
		unsigned placed, chained = 0;

		if (ring->client)
			placed = deliver_plain(ring, &rooms, &frames[taken], n - taken, true);
		else
			placed = deliver_plain(ring, &rooms, &frames[taken], n - taken, false);
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
