// SPDX-License-Identifier: BSD-3-Clause
#include "memif/memif_ring.h"

#include <errno.h>

#include "base/counters.h"
#include "shm/copy.h"

// --- Set up ----------------------------------------------------------------------------------------------

void memif_ring_make(struct memif_ring *ring, bool receives, unsigned size, void *shared,
                     struct piece *pieces, const uint8_t *base)
{
	*ring = (struct memif_ring){.client = true,
	                            .receives = receives,
	                            .isa = (uint8_t)isa_current(),
	                            .size = (uint16_t)size,
	                            .bell.word = &((struct memif_shared *)shared)->flags,
	                            .shared = shared,
	                            .pieces = pieces,
	                            .base = base};
	ring->shared->cookie = MEMIF_COOKIE;
	for (unsigned i = 0; i < size; i++)
		ring->shared->descriptors[i] =
		        (struct memif_descriptor){.region = MEMIF_BUFFER_REGION,
		                                  .length = MEMIF_BUFFER_BYTES,
		                                  .offset = (uint32_t)(pieces[i].data - base)};
}

// We poll. A server may have set both indices to 0 until now.
void memif_ring_start(struct memif_ring *ring)
{
	if (ring->receives)
		__atomic_store_n(&ring->shared->flags, MEMIF_MASK_DOORBELL, __ATOMIC_RELAXED);
	memif_advance(ring, 0);
}

int memif_ring_attach(struct memif_ring *ring, bool receives, unsigned log2_size, uint16_t region,
                      uint32_t offset, const struct guest_memory *memory)
{
	unsigned size = 1u << log2_size, last = 0;
	uint32_t bytes = (uint32_t)(sizeof(struct memif_shared) + size * sizeof(struct memif_descriptor)),
	         run = bytes;
	void *shared = guest_memory_run(memory, &last, (uint64_t)region << 32 | offset, &run);

	if (shared == NULL || run != bytes || (uintptr_t)shared % sizeof(struct memif_descriptor))
		return -EINVAL;
	*ring = (struct memif_ring){.receives = receives,
	                            .isa = (uint8_t)isa_current(),
	                            .size = (uint16_t)size,
	                            .bell.word = &((struct memif_shared *)shared)->flags,
	                            .shared = shared,
	                            .memory = memory};
	if (__atomic_load_n(&ring->shared->cookie, __ATOMIC_RELAXED) != MEMIF_COOKIE)
		return -EINVAL;
	if (receives)
		__atomic_store_n(&ring->shared->flags, MEMIF_MASK_DOORBELL, __ATOMIC_RELAXED);
	memif_advance(ring, 0);
	return 0;
}

const char *memif_fault_text(unsigned fault)
{
	static const char *const texts[MEMIF_FAULTS] = {
	        [MEMIF_OK] = "no fault",
	        [MEMIF_BAD_INDEX] = "it has used more slots than the ring has, or fewer than before",
	        [MEMIF_BAD_ADDRESS] = "a descriptor points outside of the regions",
	        [MEMIF_BAD_LENGTH] = "a frame is longer than its buffer",
	        [MEMIF_BAD_CHAIN] = "a chain of descriptors loops or is too long",
	};

	return texts[fault < MEMIF_FAULTS ? fault : MEMIF_OK];
}

// --- Receive ---------------------------------------------------------------------------------------------

// A frame whose descriptors are not at hand ends the view; if it is the first one, that is a fault.
static bool stop(struct memif_ring *ring, const struct view *view, enum memif_fault fault)
{
	if (view->batch.count == 0)
		ring->fault = fault;
	return false;
}

// Where a frame of one descriptor is, at this distance: a client's ring knows it as long as the view lasts.
static inline struct piece *hold(struct memif_ring *ring, struct view *view, unsigned distance, uint8_t *data,
                                 uint32_t length)
{
	struct piece *piece = ring->client ? &ring->pieces[(ring->at + distance) & (ring->size - 1u)]
	                                   : &view->batch.pieces[view->batch.piece_count++];

	*piece = (struct piece){data, length};
	return piece;
}

static void keep(struct view *view, struct piece *piece, uint64_t length, struct frames_lost *lost)
{
	if (unlikely(length == 0))
		counter_add(&lost->bad, 1);
	else if (unlikely(length > FRAME_LENGTH_MAX))
		counter_add(&lost->oversize, 1);
	else
		view->frames[view->count++] = (struct frame){{piece, 0}, (uint32_t)length, 0};
}

// A frame of several descriptors. Returns whether the view goes on behind it.
static __attribute__((noinline)) bool add_chain(struct memif_ring *ring, struct view *view,
                                                struct frames_lost *lost)
{
	struct ring_batch *batch = &view->batch;
	unsigned first = batch->count, pieces = batch->piece_count, slots = 0;
	enum memif_fault fault;
	uint64_t length = 0, half;

	do {
		unsigned distance = first + slots;
		uint8_t *data;

		if (slots == RTE_MIN((unsigned)MEMIF_CHAIN_MAX, (unsigned)ring->size))
			return stop(ring, view, MEMIF_BAD_CHAIN);
		if (memif_ready(ring, distance + 1) <= distance || pieces == PIECES_MAX)
			return false; // the rest has not come, or the view is full: next time
		half = memif_half(memif_slot(ring, distance));
		data = memif_place(ring, distance, half, &fault);
		if (data == NULL)
			return stop(ring, view, fault);
		if (half >> 32)
			batch->pieces[pieces++] = (struct piece){data, half >> 32};
		length += half >> 32;
		slots++;
	} while (half & MEMIF_NEXT);
	keep(view, &batch->pieces[batch->piece_count], length, lost);
	view->held = VIEW_IN_PIECES;
	batch->piece_count = pieces;
	batch->count += slots;
	batch->bytes += length;
	return true;
}

// The first frames, of one descriptor each, as nearly all are. What is not plain is left to who looks at each.
static __rte_always_inline void add_plain(struct memif_ring *ring, struct view *view, unsigned n, bool client,
                                          bool read)
{
	const struct memif_ring own = *ring; // what is written to the view does not change it
	const uint32_t longest = client ? MEMIF_BUFFER_BYTES : FRAME_LENGTH_MAX;
	struct guest_region near = client ? (struct guest_region){0} : memif_region_near(ring);
	struct ring_batch *batch = &view->batch;
	uint32_t bytes = 0;
	unsigned i;

	if (client)
		memif_take_lines(&own, n);
	for (i = 0; i < n && bytes < POLL_BYTES_MAX; i++) {
		uint64_t half = memif_half(memif_slot(&own, i));
		uint32_t length = half >> 32;
		struct piece *piece;
		enum memif_fault fault;
		uint8_t *data;

		if (unlikely((half & MEMIF_NEXT) || length - 1 >= longest))
			break;
		data = client ? memif_buffer(&own, i) : memif_place_near(&near, &own, i, half);
		if (unlikely(data == NULL)) {
			data = memif_place(ring, i, half, &fault);
			if (data == NULL)
				break;
			near = memif_region_near(ring);
		}
		if (read)
			rte_prefetch0(data);
		piece = client ? &own.pieces[(own.at + i) & (own.size - 1u)] : &batch->pieces[i];
		*piece = (struct piece){data, length};
		view->frames[i] = (struct frame){{piece, 0}, length, 0};
		bytes += length;
	}
	view->count = batch->count = i;
	batch->piece_count = client ? 0 : i;
	batch->bytes = bytes;
}

static __rte_always_inline unsigned peek(struct memif_ring *ring, struct view *view, unsigned n,
                                         struct frames_lost *lost, bool read)
{
	struct ring_batch *batch = &view->batch;
	enum memif_fault fault;
	unsigned ready;

	view->held = VIEW_IN_RING;
	n = RTE_MIN(n, (unsigned)BURST_FRAMES_MAX);
	if (!ring->client)
		memif_fetch_lines(ring, RTE_MIN(ring->found, n));
	ready = memif_ready(ring, n);
	ready = RTE_MIN(ready, (unsigned)PIECES_MAX); // chains of empty descriptors take time, too
	if (likely(ring->client))
		add_plain(ring, view, RTE_MIN(n, ready), true, read);
	else
		add_plain(ring, view, RTE_MIN(n, ready), false, read);
	for (unsigned i = batch->count; i < n && batch->count < ready && batch->bytes < POLL_BYTES_MAX; i++) {
		uint64_t half = memif_half(memif_slot(ring, batch->count));
		uint8_t *data;

		if (unlikely(half & MEMIF_NEXT)) {
			if (!add_chain(ring, view, lost))
				break;
			continue;
		}
		data = memif_place(ring, batch->count, half, &fault);
		if (unlikely(data == NULL || batch->piece_count == PIECES_MAX)) {
			if (data == NULL)
				stop(ring, view, fault);
			break;
		}
		if (read)
			rte_prefetch0(data);
		keep(view, hold(ring, view, batch->count, data, half >> 32), half >> 32, lost);
		batch->bytes += half >> 32;
		batch->count++;
	}
	ring->found = (uint16_t)batch->count;
	return batch->count;
}

unsigned memif_ring_peek(struct memif_ring *ring, struct view *view, unsigned n, struct frames_lost *lost)
{
	return peek(ring, view, n, lost, true);
}

unsigned memif_ring_peek_unread(struct memif_ring *ring, struct view *view, unsigned n,
                                struct frames_lost *lost)
{
	return peek(ring, view, n, lost, false);
}

// Frames in n slots that follow one another. Returns how many: those before the first that is not plain.
static inline unsigned spans_of(const struct memif_ring *ring, unsigned distance, unsigned n,
                                struct memif_alike *alike, uint32_t *bytes, struct vnf_frame *spans)
{
	const struct memif_descriptor *d = memif_slot(ring, distance);
	unsigned i;

	for (i = 0; i < n && *bytes < POLL_BYTES_MAX; i++) {
		uint64_t half = memif_half(&d[i]), offset = memif_offset(&d[i]);
		uint8_t *data;

		if (unlikely(half != alike->half)) {
			if ((half & MEMIF_NEXT) || (uint32_t)(half >> 32) - 1 >= FRAME_LENGTH_MAX)
				break;
			*alike = memif_alike_of(ring, half);
		}
		if (unlikely(offset >= alike->offsets))
			break;
		data = alike->host + offset;
		rte_prefetch0(data);
		spans[i] = (struct vnf_frame){data, alike->length, alike->length};
		*bytes += alike->length;
	}
	return i;
}

unsigned memif_ring_peek_spans(struct memif_ring *ring, struct view *view, struct vnf_frame *spans,
                               unsigned n)
{
	struct memif_alike alike = {0};
	uint32_t bytes = 0;
	unsigned straight, count;

	n = RTE_MIN(n, (unsigned)BURST_FRAMES_MAX);
	memif_fetch_lines(ring, RTE_MIN(ring->found, n));
	n = RTE_MIN(memif_ready(ring, n), n);
	straight = memif_straight(ring, 0, n);
	count = spans_of(ring, 0, straight, &alike, &bytes, spans);
	if (count == straight)
		count += spans_of(ring, straight, n - straight, &alike, &bytes, &spans[straight]);
	ring->found = (uint16_t)count;
	view->held = VIEW_IN_RING;
	view->count = view->batch.count = count;
	return count;
}

void memif_ring_release(struct memif_ring *ring, unsigned slots)
{
	const struct memif_ring own = *ring;

	for (unsigned i = 0; own.client && i < slots; i++)
		memif_set_half(memif_slot(&own, i), memif_own_half(MEMIF_BUFFER_BYTES));
	memif_advance(ring, slots);
}

// --- Send ------------------------------------------------------------------------------------------------

unsigned memif_deliver_chain(struct memif_ring *ring, unsigned first, const struct frame *frame)
{
	unsigned ready = memif_ready(ring, first + MEMIF_CHAIN_MAX), slots = 0;
	struct scatter from = frame->at;
	uint32_t left = frame->length;

	while (left && slots < MEMIF_CHAIN_MAX && first + slots < ready) {
		unsigned distance = first + slots;
		uint64_t room = memif_room_half(ring, distance);
		struct piece piece = {memif_room(ring, distance, room),
		                      RTE_MIN((uint32_t)(room >> 32), left)};
		struct scatter to = {&piece, 0};

		if (piece.data == NULL)
			return 0;
		if (piece.length)
			scatter_copy(&to, &from, piece.length);
		left -= piece.length;
		memif_set_half(memif_slot(ring, distance),
		               memif_half_of(room, piece.length, left ? MEMIF_NEXT : 0));
		slots++;
	}
	if (left == 0)
		return slots;
	return slots == MEMIF_CHAIN_MAX || (first == 0 && ready == ring->size) ? MEMIF_CHAIN_MAX + 1 : 0;
}

// The buffer that came goes out; the empty one takes its place among those to receive into.
static inline void exchange(const struct memif_ring *from, const struct memif_ring *to, unsigned distance,
                            const struct frame *frame)
{
	const size_t came = (size_t)(frame->at.piece - from->pieces),
	             slot = (to->at + distance) & (to->size - 1u);
	uint8_t *full = from->pieces[came].data, *empty = to->pieces[slot].data;
	struct memif_descriptor *d = &to->shared->descriptors[slot];

	to->pieces[slot].data = full;
	from->pieces[came].data = empty;
	memif_set_place(to, d, full);
	memif_set_half(d, memif_own_half(frame->length));
	memif_set_place(from, &from->shared->descriptors[came], empty);
}

unsigned memif_ring_pass(struct memif_ring *from, struct memif_ring *to, const struct frame *frames,
                         unsigned n)
{
	const struct memif_ring *const source = from, sink = *to;
	unsigned i;

	n = RTE_MIN(n, memif_ready(to, n));
	memif_take_lines(to, n);
	for (i = 0; i < n; i++) {
		const struct frame *frame = &frames[i];

		if (unlikely((uintptr_t)frame->at.piece - (uintptr_t)source->pieces >=
		                     source->size * sizeof(source->pieces[0]) ||
		             frame->at.offset || frame->length != frame->at.piece->length))
			break;
		exchange(source, &sink, i, frame);
	}
	if (i == 0)
		return 0;
	memif_advance(to, i);
	doorbell_owe(&to->bell);
	return i;
}

// A frame that is longer than its buffer is written elsewhere, and copied into a chain.
static __attribute__((noinline)) unsigned lend_spare(struct memif_ring *ring, uint8_t **data)
{
	ring->spare_lent = true;
	data[0] = ring->spare;
	return 1;
}

// Buffers of n slots that follow one another. Returns how many: those before the first that cannot be lent.
static inline unsigned lend(const struct memif_ring *ring, unsigned distance, unsigned n,
                            struct memif_alike *alike, const uint16_t *lengths, uint8_t **data)
{
	const struct memif_descriptor *d = memif_slot(ring, distance);
	unsigned i;

	for (i = 0; i < n; i++) {
		uint64_t half = memif_half(&d[i]), offset = memif_offset(&d[i]);

		if (unlikely(half != alike->half)) {
			if (half >> 32 < MEMIF_LEND_MIN)
				break;
			*alike = memif_alike_of(ring, half);
		}
		if (unlikely(lengths[i] > alike->length || offset >= alike->offsets))
			break;
		data[i] = alike->host + offset;
		prefetch_to_write(data[i]);
	}
	return i;
}

unsigned memif_ring_reserve(struct memif_ring *ring, const uint16_t *lengths, uint8_t **data, unsigned n)
{
	struct memif_alike alike = {0};
	unsigned straight, count;

	n = RTE_MIN(n, (unsigned)BURST_FRAMES_MAX);
	n = RTE_MIN(n, memif_ready(ring, n));
	memif_take_lines(ring, n);
	straight = memif_straight(ring, 0, n);
	count = lend(ring, 0, straight, &alike, lengths, data);
	if (count == straight)
		count += lend(ring, straight, n - straight, &alike, &lengths[straight], &data[straight]);
	ring->lent = lengths;
	ring->spare_lent = false;
	if (likely(count || n == 0))
		return count;
	memif_room(ring, 0, memif_half(memif_slot(ring, 0))); // sets the fault, if there is one
	return ring->fault == MEMIF_OK ? lend_spare(ring, data) : 0;
}

static __attribute__((noinline)) unsigned publish_spare(struct memif_ring *ring, uint64_t *too_long)
{
	struct piece piece = {ring->spare, ring->lent[0]};
	const struct frame frame = {{&piece, 0}, piece.length, 0};
	unsigned slots = memif_deliver_chain(ring, 0, &frame);

	if (slots > MEMIF_CHAIN_MAX) {
		++*too_long;
		return 1;
	}
	if (slots == 0)
		return 0;
	memif_advance(ring, slots);
	doorbell_owe(&ring->bell);
	return 1;
}

// Write the lengths of slots that follow one another; their regions stay.
static inline void say_lengths(struct memif_descriptor *d, const uint16_t *lengths, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		memif_set_half(&d[i], memif_half_of(memif_half(&d[i]), lengths[i], 0));
}

unsigned memif_ring_publish(struct memif_ring *ring, unsigned n, uint64_t *too_long)
{
	unsigned straight = memif_straight(ring, 0, n);

	if (unlikely(ring->spare_lent))
		return publish_spare(ring, too_long);
	say_lengths(memif_slot(ring, 0), ring->lent, straight);
	say_lengths(memif_slot(ring, straight), &ring->lent[straight], n - straight);
	memif_advance(ring, n);
	doorbell_owe(&ring->bell);
	return n;
}

static __rte_always_inline void say_placed_lengths(const struct memif_ring *ring, const struct placed *placed,
                                                   unsigned n, bool client)
{
	for (unsigned i = 0; i < n; i++)
		memif_say_length(ring, i, client ? 0 : memif_half(memif_slot(ring, i)),
		                 placed->frames[i].total, client);
}

void memif_send_placed(struct memif_ring *ring, const struct placed *placed, unsigned n)
{
	const struct memif_ring own = *ring;

	if (n == 0)
		return;
	if (own.client)
		say_placed_lengths(&own, placed, n, true);
	else
		say_placed_lengths(&own, placed, n, false);
	memif_advance(ring, n);
	doorbell_owe(&ring->bell);
}

void memif_ring_warm(struct memif_ring *ring)
{
	uint8_t *data;

	if (memif_ready(ring, 0) == 0)
		return;
	data = memif_room(ring, 0, memif_room_half(ring, 0));
	if (data)
		prefetch_to_write(data);
	prefetch_to_write(memif_slot(ring, 0));
}
