// SPDX-License-Identifier: BSD-3-Clause
#include "ring/deliver.h"

#include <rte_common.h>
#include <rte_memcpy.h>

#include "ring/deliver_header.h"
#include "ring/prefetch.h"

// How many buffers from first on hold bytes; 0 if the batch has not enough.
static inline unsigned buffers_for(const struct ring *ring, const struct ring_batch *batch, unsigned first,
                                   uint64_t bytes)
{
	uint64_t room = 0;

	for (unsigned i = first; i < batch->count; i++) {
		room += batch->buffers[i].length;
		if (likely(room >= bytes))
			return i + 1 - first;
		if (!ring->mergeable)
			break;
	}
	return 0;
}

// A frame that does not fit the first buffers of a batch never will, if these are all that one can have.
static inline bool never_fits(const struct ring *ring, const struct ring_batch *batch, unsigned first)
{
	if (first == batch->count)
		return false; // no buffer at all: the ring is merely full
	if (!ring->mergeable)
		return true;
	return first == 0 && (batch->limited || batch->count == RING_BATCH_MAX || batch->count == ring->size);
}

// Header and frame in pieces of any sizes.
static __attribute__((noinline)) void place_scattered(const struct ring *ring, struct ring_batch *batch,
                                                      struct ring_buffer *buffers, unsigned count,
                                                      const struct frame *frame)
{
	struct virtio_net_hdr_mrg_rxbuf header = {.num_buffers = (uint16_t)count};
	const struct ring_piece piece = {(uint8_t *)&header, sizeof(header)};
	struct scatter to = {&batch->pieces[buffers->first_piece], 0}, from = {&piece, 0}, at = frame->at;
	uint32_t left = ring->header_bytes + frame->length;

	scatter_copy(&to, &from, ring->header_bytes);
	scatter_copy(&to, &at, frame->length);
	for (unsigned i = 0; i < count; i++) {
		buffers[i].written = RTE_MIN(left, buffers[i].length);
		left -= buffers[i].written;
	}
}

static inline void place(const struct ring *ring, struct ring_batch *batch, unsigned first, unsigned count,
                         const struct frame *frame)
{
	struct ring_buffer *buffer = &batch->buffers[first];
	const struct ring_piece *to = &batch->pieces[buffer->first_piece], *from = frame->at.piece;
	uint32_t bytes = ring->header_bytes + frame->length;

	if (unlikely(count > 1 || to->length < bytes || from->length - frame->at.offset < frame->length)) {
		place_scattered(ring, batch, buffer, count, frame);
		return;
	}
	header_write(to->data, ring->header_bytes);
	rte_memcpy(to->data + ring->header_bytes, from->data + frame->at.offset, frame->length);
	buffer->written = bytes;
}

static inline void prefetch_buffers(const struct ring *ring, const struct ring_batch *batch)
{
	for (unsigned i = 0; i < batch->count; i++) {
		uint8_t *data = batch->pieces[batch->buffers[i].first_piece].data;

		// A driver's usual layout has the header at the end of one cache line and the frame in the
		// next.
		prefetch_to_write(data);
		prefetch_to_write(data + ring->header_bytes);
	}
}

// From one batch. Returns the frames taken, and in *used the buffers.
static unsigned fill(const struct ring *ring, struct ring_batch *batch, const struct frame *frames,
                     unsigned n, unsigned *used, uint64_t *too_long)
{
	unsigned taken = 0, first = 0;

	for (; taken < n; taken++) {
		const struct frame *frame = &frames[taken];
		unsigned count =
		        buffers_for(ring, batch, first, (uint64_t)ring->header_bytes + frame->length);

		if (likely(count)) {
			place(ring, batch, first, count, frame);
			first += count;
		} else if (never_fits(ring, batch, first)) {
			++*too_long;
		} else {
			break;
		}
	}
	*used = first;
	return taken;
}

// Descriptors that one call may read: a guest whose buffers are mostly empty descriptors must not hold the worker.
// An honest one needs two a buffer, and 64 frames of 9000 bytes fill 448 buffers.
enum { DELIVER_DESCRIPTORS_MAX = 1024 };

unsigned deliver_any(struct ring *to, const struct frame *frames, unsigned n, uint64_t *too_long)
{
	struct ring_batch batch;
	unsigned taken = 0, wanted = n, descriptors = 0, used;

	while (taken < n && ring_peek(to, &batch, wanted)) {
		bool more = batch.limited || batch.count == wanted;

		prefetch_buffers(to, &batch);
		taken += fill(to, &batch, &frames[taken], n - taken, &used, too_long);
		ring_commit(to, &batch, used);
		descriptors += batch.descriptor_count;
		if (!more || descriptors >= DELIVER_DESCRIPTORS_MAX)
			break;
		wanted = RING_BATCH_MAX; // frames that take several buffers each
	}
	return taken;
}
