// SPDX-License-Identifier: BSD-3-Clause
#include "virtio/device_frames.h"

#include <rte_common.h>
#include <rte_memcpy.h>
#include <rte_prefetch.h>

#include "base/counters.h"
#include "shm/copy.h"

// --- Into a guest ----------------------------------------------------------------------------------------

// How many buffers from first on hold bytes; 0 if the batch has not enough.
static inline unsigned buffers_for(const struct device_ring *ring, const struct ring_batch *batch,
                                   unsigned first, uint64_t bytes)
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
static inline bool never_fits(const struct device_ring *ring, const struct ring_batch *batch, unsigned first)
{
	if (first == batch->count)
		return false; // no buffer at all: the ring is merely full
	if (!ring->mergeable)
		return true;
	return first == 0 &&
	       (batch->limited || batch->count == BURST_FRAMES_MAX || batch->count == ring->size);
}

// Header and frame in pieces of any sizes.
static __attribute__((noinline)) void place_scattered(const struct device_ring *ring,
                                                      struct ring_batch *batch, struct ring_buffer *buffers,
                                                      unsigned count, const struct frame *frame,
                                                      const struct virtio_net_hdr *offload)
{
	struct virtio_net_hdr_mrg_rxbuf header = {.num_buffers = (uint16_t)count};
	const struct piece piece = {(uint8_t *)&header, sizeof(header)};
	struct scatter to = {&batch->pieces[buffers->first_piece], 0}, from = {&piece, 0}, at = frame->at;
	uint32_t left = ring->header_bytes + frame->length;

	if (offload)
		header.hdr = *offload;
	scatter_copy(&to, &from, ring->header_bytes);
	scatter_copy(&to, &at, frame->length);
	for (unsigned i = 0; i < count; i++) {
		buffers[i].written = RTE_MIN(left, buffers[i].length);
		left -= buffers[i].written;
	}
}

static __rte_always_inline void place(const struct device_ring *ring, struct ring_batch *batch,
                                      unsigned first, unsigned count, const struct frame *frame,
                                      const struct virtio_net_hdr *offload)
{
	struct ring_buffer *buffer = &batch->buffers[first];
	const struct piece *to = &batch->pieces[buffer->first_piece], *from = frame->at.piece;
	uint32_t bytes = ring->header_bytes + frame->length;

	if (unlikely(offload || count > 1 || to->length < bytes ||
	             from->length - frame->at.offset < frame->length)) {
		place_scattered(ring, batch, buffer, count, frame, offload);
		return;
	}
	header_write(to->data, ring->header_bytes);
	rte_memcpy(to->data + ring->header_bytes, from->data + frame->at.offset, frame->length);
	buffer->written = bytes;
}

static inline void prefetch_buffers(const struct device_ring *ring, const struct ring_batch *batch)
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
static __rte_always_inline unsigned fill(const struct device_ring *ring, struct ring_batch *batch,
                                         const struct frame *frames, const struct virtio_net_hdr *offloads,
                                         unsigned n, unsigned *used, uint64_t *too_long)
{
	unsigned taken = 0, first = 0;
	uint64_t room =
	        0; // of all buffers that are left: not looked at one by one for each frame that is too long

	for (unsigned i = 0; i < batch->count; i++)
		room += batch->buffers[i].length;
	for (; taken < n; taken++) {
		const struct frame *frame = &frames[taken];
		uint64_t bytes = (uint64_t)ring->header_bytes + frame->length;
		unsigned count = room >= bytes ? buffers_for(ring, batch, first, bytes) : 0;

		if (likely(count)) {
			place(ring, batch, first, count, frame, offloads ? &offloads[taken] : NULL);
			while (count--)
				room -= batch->buffers[first++].length;
		} else if (never_fits(ring, batch, first)) {
			++*too_long;
		} else {
			break;
		}
	}
	*used = first;
	return taken;
}

// Descriptors from which on no more are read: a guest whose buffers are mostly empty descriptors must not hold the
// worker. An honest one needs two a buffer, and POLL_BYTES_MAX fill about a hundred of 1500 bytes; or more (device_ring_honest()).
enum { DELIVER_DESCRIPTORS_MAX = 256 };

// Buffers for the frames that are left, if all are as long as the first one.
static unsigned buffers_wanted(const struct device_ring *to, const struct ring_batch *batch,
                               const struct frame *frames, unsigned n)
{
	uint64_t wanted = n;

	for (unsigned i = 0; i < n; i++)
		wanted += (to->header_bytes + frames[i].length) / batch->buffers[0].length;
	return (unsigned)RTE_MIN(wanted, (uint64_t)BURST_FRAMES_MAX);
}

static __rte_always_inline unsigned deliver_with(struct device_ring *to, const struct frame *frames,
                                                 const struct virtio_net_hdr *offloads, unsigned n,
                                                 uint64_t *too_long)
{
	struct ring_batch batch;
	uint64_t bytes = 0;
	unsigned taken = 0, wanted = n, descriptors = 0, used;
	const unsigned most = RTE_MAX((unsigned)DELIVER_DESCRIPTORS_MAX, n * device_ring_honest(to));
	bool first = true;

	while (taken < n && device_ring_peek(to, &batch, wanted)) {
		bool more = batch.limited || batch.count == wanted;

		prefetch_buffers(to, &batch);
		taken += fill(to, &batch, &frames[taken], offloads ? &offloads[taken] : NULL, n - taken,
		              &used, too_long);
		device_ring_commit(to, &batch, used);
		descriptors += batch.descriptor_count;
		if (!more || descriptors >= most)
			break;
		// Frames take several buffers each. What is read and not needed costs its guest polls.
		wanted = first ? buffers_wanted(to, &batch, &frames[taken], n - taken) : BURST_FRAMES_MAX;
		first = false;
	}
	for (unsigned i = 0; i < n; i++)
		bytes += frames[i].length;
	device_ring_charge(to, descriptors, n, bytes);
	return taken;
}

unsigned deliver_any(struct device_ring *to, const struct frame *frames, unsigned n, uint64_t *too_long)
{
	return deliver_with(to, frames, NULL, n, too_long);
}

unsigned deliver_offloads(struct device_ring *to, const struct frame *frames,
                          const struct virtio_net_hdr *headers, unsigned n, uint64_t *too_long)
{
	return device_ring_skips_poll(to) ? 0 : deliver_with(to, frames, headers, n, too_long);
}

// --- Where they lie --------------------------------------------------------------------------------------

unsigned view_peek_any(struct device_ring *from, struct view *view, unsigned n, struct frames_lost *lost)
{
	struct ring_batch *batch = &view->batch;

	view->count = 0;
	view->held = VIEW_IN_PIECES;
	if (device_ring_peek(from, batch, n) == 0)
		return 0;
	device_ring_charge(from, batch->descriptor_count, batch->count, batch->bytes);
	for (unsigned i = 0; i < batch->count; i++)
		batch->buffers[i].written = 0;
	view->count = xconnect_frames(from, batch, view->frames, lost);
	return batch->count;
}

void view_commit(struct device_ring *from, const struct view *view)
{
	device_ring_commit(from, &view->batch, view->batch.count);
}

// --- From guest to guest ---------------------------------------------------------------------------------

unsigned xconnect_frames(const struct device_ring *from, const struct ring_batch *batch,
                         struct frame frames[static BURST_FRAMES_MAX], struct frames_lost *lost)
{
	unsigned count = 0;

	for (unsigned i = 0; i < batch->count; i++) {
		const struct ring_buffer *buffer = &batch->buffers[i];
		struct frame *frame = &frames[count];

		if (unlikely(buffer->length <= from->header_bytes)) {
			counter_add(&lost->bad, 1);
			continue;
		}
		if (unlikely(buffer->length - from->header_bytes > FRAME_LENGTH_MAX)) {
			counter_add(&lost->oversize, 1);
			continue;
		}
		// The header is not even looked at: with no offload negotiated it says nothing.
		frame->at = scatter_skip(&batch->pieces[buffer->first_piece], from->header_bytes);
		frame->length = buffer->length - from->header_bytes;
		rte_prefetch0(scatter_start(&frame->at));
		count++;
	}
	return count;
}

void xconnect_any(struct device_ring *from, struct device_ring *to, unsigned n,
                  struct xconnect_counts *counts)
{
	struct view view;

	if (view_peek_any(from, &view, n, &counts->lost) == 0)
		return;
	counts->received += view.count;
	if (likely(to))
		counts->forwarded += deliver(to, view.frames, view.count, &counts->too_long);
	view_commit(from, &view);
}
