// SPDX-License-Identifier: BSD-3-Clause
// Runs: buffers of one descriptor and one piece each, which is what drivers make nearly always. They are read
// straight from descriptor to address and length, without the lists that chains need; whatever is not plain
// ends the run, and device_ring_peek() has it. The rules are the same: a descriptor is read once, address and length
// are checked against the guest's memory, and nothing changes before the commit. Compiled for each
// instruction set (isa.h): an ISA source.
#include <rte_common.h>

#include "shm/copy.h"
#include "virtio/device_frames.h"
#include "virtio/device_read.h"

struct ring_run {
	unsigned count;
	bool odd; // ended by a buffer that is not plain, or that is none: device_ring_peek() says which
	uint8_t *data[BURST_FRAMES_MAX];
	uint32_t length[BURST_FRAMES_MAX]; // > 0
	uint16_t id[BURST_FRAMES_MAX];
};

enum { RING_RUN_FLAGS = VRING_DESC_F_NEXT | VRING_DESC_F_WRITE | VRING_DESC_F_INDIRECT };

// A descriptor's place in our memory, NULL if it is not plain. region: the one that was hit last.
static __rte_always_inline uint8_t *
ring_run_place(struct device_ring *ring, const struct guest_region **region, const struct ring_descriptor *d)
{
	uint64_t offset = d->address - (*region)->address;
	uint32_t run = d->length;
	uint8_t *data;

	if (likely(offset < (*region)->size && run <= (*region)->size - offset))
		return (*region)->host + offset;
	data = guest_memory_run(ring->memory, &ring->last_region, d->address, &run);
	*region = &ring->memory->regions[ring->last_region];
	return run == d->length ? data : NULL;
}

static __rte_always_inline bool ring_run_add(struct device_ring *ring, struct ring_run *run,
                                             const struct guest_region **region,
                                             const struct ring_descriptor *d, bool writable, bool fetch)
{
	uint8_t *data = ring_run_place(ring, region, d);

	if (unlikely((d->flags & RING_RUN_FLAGS) != (writable ? VRING_DESC_F_WRITE : 0) || !d->length ||
	             !data)) {
		run->odd = true;
		return false;
	}
	run->data[run->count] = data;
	run->length[run->count] = d->length;
	// A driver's usual layout has the header at the end of one cache line and the frame in the next.
	if (writable) {
		prefetch_to_write(data);
		prefetch_to_write(data + ring->header_bytes);
	} else if (fetch) {
		rte_prefetch0(data + ring->header_bytes);
	}
	run->count++;
	return true;
}

static __rte_always_inline void ring_run_split(struct device_ring *ring, struct ring_run *run, unsigned n,
                                               bool writable, bool fetch)
{
	const struct guest_region *region = &ring->memory->regions[ring->last_region];
	uint16_t mask = ring->size - 1;

	n = ring_split_available(ring, n);
	for (unsigned i = 0; i < n; i++) {
		uint16_t head =
		        __atomic_load_n(&ring->avail->ring[(ring->next + i) & mask], __ATOMIC_RELAXED);
		struct ring_descriptor d;

		if (unlikely(head >= ring->size)) {
			run->odd = true;
			break;
		}
		d = ring_read_split(&ring->desc[head]);
		run->id[i] = head;
		if (!ring_run_add(ring, run, &region, &d, writable, fetch))
			break;
	}
}

static __rte_always_inline void ring_run_packed(struct device_ring *ring, struct ring_run *run, unsigned n,
                                                bool writable, bool fetch)
{
	const struct guest_region *region = &ring->memory->regions[ring->last_region];
	uint16_t slot = ring->next;
	bool wrap = ring->wrap;

	n = RTE_MIN(n, ring->size);
	for (unsigned i = 0; i < n; i++) {
		// The flags decide about the rest (s2.8.21.1): they come first, in the same load as length
		// and id.
		uint64_t rest = __atomic_load_n(ring_packed_half(ring, slot), __ATOMIC_ACQUIRE);
		struct ring_descriptor d = ring_packed_from(ring_load_once(&ring->desc_packed[slot]), rest);

		if (!ring_packed_is_available(d.flags, wrap))
			break;
		run->id[i] = d.link;
		if (!ring_run_add(ring, run, &region, &d, writable, fetch))
			break;
		if (++slot == ring->size) {
			slot = 0;
			wrap = !wrap;
		}
	}
}

// Read ahead a run of up to n (at most BURST_FRAMES_MAX) buffers. writable: what the ring is, for the compiler. fetch: the
// frames are going to be read.
static __rte_always_inline unsigned ring_run_peek(struct device_ring *ring, struct ring_run *run, unsigned n,
                                                  bool writable, bool fetch)
{
	run->count = 0;
	run->odd = false;
	if (unlikely(ring->fault != RING_OK))
		return 0;
	if (ring->packed)
		ring_run_packed(ring, run, n, writable, fetch);
	else
		ring_run_split(ring, run, n, writable, fetch);
	return run->count;
}

// Fetch the lines of receive buffer i that a frame of length will be written to.
static inline void ring_run_fetch(const struct ring_run *run, unsigned i, uint32_t header, uint32_t length)
{
	if (likely(run->length[i] > header))
		copy_fetch(run->data[i] + header, RTE_MIN(length, run->length[i] - header));
}

// Ask again for the lines of receive buffer i, and for what will be copied to it.
static inline void ring_run_fetch_again(const struct ring_run *run, unsigned i, uint32_t header,
                                        const uint8_t *from)
{
	prefetch_to_write(run->data[i]);
	copy_fetch_again(run->data[i] + header, from);
}

// What was written into the buffers of a run, header and frame: a length of each, stride bytes apart, and what is added to it.
// lengths is NULL where nothing was. The copies keep no list of it, as each store takes its turn behind those of the frames.
struct ring_written {
	const void *lengths;
	size_t stride;
	uint32_t header; // may wrap
};

static __rte_always_inline uint32_t ring_written_at(const struct ring_written *written, unsigned i)
{
	uint32_t length;

	if (written->lengths == NULL)
		return 0;
	memcpy(&length, (const char *)written->lengths + i * written->stride, sizeof(length));
	return length + written->header;
}

// Under VIRTIO_F_IN_ORDER the last of a batch stands for all of it where nothing was written (s2.7.9): where
// something was, each has its length to tell.
static __rte_always_inline void ring_run_commit_split(struct device_ring *ring, const uint16_t *ids,
                                                      unsigned n, const struct ring_written *written)
{
	uint16_t mask = ring->size - 1;

	if (!written->lengths && ring->in_order) {
		ring_split_use(ring, ring->next & mask, ids[n - 1], 0);
	} else {
		for (unsigned i = 0; i < n; i++)
			ring_split_use(ring, (ring->next + i) & mask, ids[i], ring_written_at(written, i));
	}
	ring->next += (uint16_t)n;
	__atomic_store_n(&ring->used->idx, ring->next, __ATOMIC_RELEASE); // s2.7.8.2: the index last
}

// As above, s2.8.9. The guest waits for the first: it is written last and shows all others with it.
static __rte_always_inline void ring_run_commit_packed(struct device_ring *ring, const uint16_t *ids,
                                                       unsigned n, const struct ring_written *written)
{
	uint16_t first = ring->next, slot = first;
	bool wrap = ring->wrap, all = written->lengths || !ring->in_order;
	uint64_t half = ring_packed_used(ids[all ? 0 : n - 1], ring_written_at(written, 0), wrap);

	for (unsigned i = 0; i < n; i++) {
		if (i > 0 && all)
			__atomic_store_n(ring_packed_half(ring, slot),
			                 ring_packed_used(ids[i], ring_written_at(written, i), wrap),
			                 __ATOMIC_RELAXED);
		if (++slot == ring->size) {
			slot = 0;
			wrap = !wrap;
		}
	}
	__atomic_store_n(ring_packed_half(ring, first), half, __ATOMIC_RELEASE);
	ring->next = slot;
	ring->wrap = wrap;
}

// Hand the first n buffers of a run, of these ids, back.
static __rte_always_inline void ring_run_commit(struct device_ring *ring, const uint16_t *ids, unsigned n,
                                                const struct ring_written *written)
{
	if (n == 0)
		return;
	if (ring->packed)
		ring_run_commit_packed(ring, ids, n, written);
	else
		ring_run_commit_split(ring, ids, n, written);
}

// --- deliver(), ring_place() -----------------------------------------------------------------------------

// Copy frames into plain buffers: one of any number of pieces goes straight into a buffer of one. The first frame that
// does not fit its buffer, or a buffer that is not plain, ends it. placed: where they are then, or NULL.
static __rte_always_inline unsigned copy_frames(const struct ring_run *rx, const struct frame *frames,
                                                unsigned n, uint32_t header, struct placed *placed)
{
	unsigned i;

	n = RTE_MIN(n, rx->count);
	for (i = 0; i < n; i++) {
		const struct frame *frame = &frames[i];
		uint8_t *data = rx->data[i]; // kept: for the compiler, what is copied could be either of them
		uint32_t length = frame->length;

		if (unlikely(length > COPY_SMALL)) {
			if (i + COPY_AHEAD < n)
				ring_run_fetch(rx, i + COPY_AHEAD, header, frame[COPY_AHEAD].length);
		} else if (i + COPY_AGAIN < n) {
			ring_run_fetch_again(rx, i + COPY_AGAIN, header,
			                     scatter_start(&frame[COPY_AGAIN].at));
		}
		if (unlikely(rx->length[i] < header + length))
			break;
		header_write(data, header);
		copy_scattered(data + header, &frame->at, length);
		if (placed)
			placed->frames[i] = (struct vnf_frame){data + header, length, length};
	}
	return i;
}

unsigned ISA_NAME(deliver)(struct device_ring *to, const struct frame *frames, unsigned n, uint64_t *too_long)
{
	struct ring_run rx;
	unsigned done;

	n = RTE_MIN(n, (unsigned)BURST_FRAMES_MAX);
	if (device_ring_skips_poll(to))
		return 0;
	ring_run_peek(to, &rx, n, true, true);
	if (likely(to->header_bytes == RING_HEADER))
		done = copy_frames(&rx, frames, n, RING_HEADER, NULL);
	else
		done = copy_frames(&rx, frames, n, to->header_bytes, NULL);
	ring_run_commit(to, rx.id, done,
	                &(struct ring_written){&frames->length, sizeof(*frames), to->header_bytes});
	if (likely(done == n || (done == rx.count && !rx.odd)))
		return done;
	return done + deliver_any(to, &frames[done], n - done, too_long);
}

unsigned ISA_NAME(ring_place)(struct device_ring *to, const struct frame *frames, unsigned n,
                              struct placed *placed)
{
	struct ring_run rx;
	unsigned done;

	placed->full = true;
	n = RTE_MIN(n, (unsigned)BURST_FRAMES_MAX);
	if (device_ring_skips_poll(to))
		return 0;
	ring_run_peek(to, &rx, n, true, true);
	if (likely(to->header_bytes == RING_HEADER))
		done = copy_frames(&rx, frames, n, RING_HEADER, placed);
	else
		done = copy_frames(&rx, frames, n, to->header_bytes, placed);
	memcpy(placed->ids, rx.id, done * sizeof(rx.id[0]));
	placed->full = done == rx.count && !rx.odd;
	return done;
}

void ISA_NAME(ring_send_placed)(struct device_ring *to, const struct placed *placed, unsigned n)
{
	ring_run_commit(
	        to, placed->ids, n,
	        &(struct ring_written){&placed->frames->total, sizeof(placed->frames[0]), to->header_bytes});
}

// --- xconnect() -----------------------------------------------------------------------------------------------

// How many frames of a run a poll may move: the first one, and as many more as have POLL_BYTES_MAX
// together. Counted before they are copied: counting in the loop that copies costs a fifth of the time of 1024 B.
static inline unsigned poll_affordable(const struct ring_run *tx)
{
	uint64_t bytes = 0;
	unsigned n;

	for (unsigned i = 0; i < tx->count; i++)
		bytes += tx->length[i];
	if (likely(bytes <= POLL_BYTES_MAX))
		return tx->count;
	bytes = tx->length[0];
	for (n = 1; n < tx->count; n++) {
		bytes += tx->length[n];
		if (bytes > POLL_BYTES_MAX)
			break;
	}
	return n;
}

// Copy up to n frames, of tx from first on, until one does not fit its buffer, or is none. header: of the sender.
// Returns how many.
static __rte_always_inline unsigned xconnect_plain(const struct ring_run *tx, unsigned first,
                                                   const struct ring_run *rx, unsigned n, uint32_t header,
                                                   uint32_t header_to)
{
	uint8_t *const *data = &tx->data[first];
	const uint32_t *bytes = &tx->length[first];
	unsigned i;

	n = RTE_MIN(n, rx->count);
	for (i = 0; i < n; i++) {
		uint32_t length = bytes[i] - header; // wraps: too long

		if (unlikely(length - 1 >= FRAME_LENGTH_MAX || rx->length[i] < header_to + length))
			break;
		if (unlikely(length > COPY_SMALL)) {
			if (i + COPY_AHEAD < n)
				ring_run_fetch(rx, i + COPY_AHEAD, header_to, bytes[i + COPY_AHEAD] - header);
		} else if (i + COPY_AGAIN < n) {
			ring_run_fetch_again(rx, i + COPY_AGAIN, header_to, data[i + COPY_AGAIN] + header);
		}
		header_write(rx->data[i], header_to);
		copy_bytes(rx->data[i] + header_to, data[i] + header, length);
	}
	return i;
}

// Hand n filled buffers over. bytes: of the sender's.
static __rte_always_inline void xconnect_commit(struct device_ring *to, const struct ring_run *rx, unsigned n,
                                                const struct device_ring *from, const uint32_t *bytes)
{
	ring_run_commit(to, rx->id, n,
	                &(struct ring_written){bytes, sizeof(*bytes), to->header_bytes - from->header_bytes});
}

// The receiver had buffers, but fewer than there are frames: look once more, since it may have given some while the first
// ones were filled. A drop of what a moment later fits costs the sender's work: a fifth of the throughput of 64 B on
// packed rings. Hands frames from first on to it. Returns how many; *full: it has no more plain buffers, nor another kind.
static __attribute__((noinline)) unsigned xconnect_more(const struct device_ring *from,
                                                        const struct ring_run *tx, unsigned first,
                                                        struct device_ring *to, unsigned n, bool *full)
{
	struct ring_run rx;
	unsigned done;

	ring_run_peek(to, &rx, n, true, true);
	done = xconnect_plain(tx, first, &rx, n, from->header_bytes, to->header_bytes);
	xconnect_commit(to, &rx, done, from, &tx->length[first]);
	*full = done == rx.count && !rx.odd;
	return done;
}

// The receiver has no more buffers: give the frames from first on back to the sender. Their descriptors were read, not
// their bytes.
static inline void hop_drop(const struct ring_run *tx, unsigned first, uint32_t header,
                            struct xconnect_counts *counts)
{
	for (unsigned i = first; i < tx->count; i++) {
		if (unlikely(tx->length[i] <= header))
			counts->lost.bad++;
		else if (unlikely(tx->length[i] - header > FRAME_LENGTH_MAX))
			counts->lost.oversize++;
		else
			counts->received++;
	}
}

// xconnect() for plain buffers, which is nearly all there is: from descriptors to copy without a list in between.
// Both rings are read ahead first, so that the lines of all frames are on their way while the first is
// copied. The first buffer that is not plain is left to xconnect_any(), with all that follows in this poll.
struct xconnect_counts ISA_NAME(xconnect)(struct device_ring *from, struct device_ring *to, unsigned n)
{
	struct ring_run tx, rx = {.count = 0};
	struct xconnect_counts counts = {0};
	unsigned done = 0, taken, affordable;
	bool full, enough;

	n = RTE_MIN(n, (unsigned)BURST_FRAMES_MAX);
	if (device_ring_skips_poll(from))
		return counts;
	if (ring_run_peek(from, &tx, n, false, to && !to->starved) == 0 && !tx.odd)
		return counts;
	if (likely(to) && device_ring_skips_poll(to))
		to = NULL; // as if it had no buffers
	affordable = poll_affordable(&tx);
	if (likely(to)) {
		to->starved = ring_run_peek(to, &rx, affordable, true, true) == 0;
		if (likely(from->header_bytes == RING_HEADER && to->header_bytes == RING_HEADER))
			done = xconnect_plain(&tx, 0, &rx, affordable, RING_HEADER, RING_HEADER);
		else
			done = xconnect_plain(&tx, 0, &rx, affordable, from->header_bytes, to->header_bytes);
		xconnect_commit(to, &rx, done, from, tx.length);
	}
	full = done == rx.count && !rx.odd;
	if (unlikely(full && done < affordable) && done)
		done += xconnect_more(from, &tx, done, to, affordable - done, &full);
	counts.received = counts.forwarded = taken = done;
	enough = done == affordable && affordable < tx.count;
	if (unlikely(full && done < affordable)) {
		hop_drop(&tx, done, from->header_bytes, &counts);
		taken = tx.count;
	}
	ring_run_commit(from, tx.id, taken, &(struct ring_written){NULL, 0, 0});
	if (unlikely((tx.odd || taken < tx.count) && !enough))
		xconnect_any(from, to, n - taken, &counts);
	return counts;
}

// --- view_peek() -----------------------------------------------------------------------------------------

static inline void view_add(struct view *view, unsigned i, const struct ring_run *run, uint32_t header)
{
	struct piece *piece = &view->batch.pieces[i];
	struct ring_buffer *buffer = &view->batch.buffers[i]; // of which no more is asked
	uint32_t length = run->length[i] - header;

	*piece = (struct piece){run->data[i] + header, length};
	view->frames[i] = (struct frame){{piece, 0}, length, 0};
	buffer->id = run->id[i];
	buffer->slots = 1;
	buffer->written = 0;
}

unsigned ISA_NAME(view_peek)(struct device_ring *from, struct view *view, unsigned n,
                             struct frames_lost *lost)
{
	uint32_t header = from->header_bytes;
	struct ring_run run;
	unsigned i, count;

	view->count = 0;
	if (device_ring_skips_poll(from))
		return 0;
	ring_run_peek(from, &run, RTE_MIN(n, (unsigned)BURST_FRAMES_MAX), false, true);
	count = poll_affordable(&run);
	for (i = 0; i < count; i++) {
		if (unlikely(run.length[i] - header - 1 >= FRAME_LENGTH_MAX)) // wraps below it
			break;
		view_add(view, i, &run, header);
	}
	if (unlikely(i == 0 && (count || run.odd)))
		return view_peek_any(from, view, n, lost);
	view->count = view->batch.count = i;
	return i;
}
