// SPDX-License-Identifier: BSD-3-Clause
#include "virtio/device_ring.h"

#include <errno.h>
#include <stddef.h>

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>

#include <rte_common.h>

#include "base/isa.h"
#include "shm/copy.h"
#include "virtio/features.h"
#include "virtio/device_read.h"

static bool has(uint64_t features, unsigned bit)
{
	return features >> bit & 1;
}

static bool aligned(const void *at, uintptr_t bytes)
{
	return at && (uintptr_t)at % bytes == 0;
}

// Sizes and alignment: s2.7 and s2.8.10. A split ring is a power of two (s2.7), a packed one need not be. Who
// told us where the ring is may have looked when it was smaller: all of it must be the guest's memory.
static bool split_valid(const struct device_ring_layout *layout, const struct guest_memory *memory)
{
	uint64_t size = layout->size;

	return (size & (size - 1)) == 0 && aligned(layout->driver, 2) && aligned(layout->device, 4) &&
	       guest_memory_holds(memory, layout->driver, sizeof(struct vring_avail) + 2 * size) &&
	       guest_memory_holds(memory, layout->device,
	                          sizeof(struct vring_used) + size * sizeof(struct vring_used_elem));
}

static bool packed_valid(const struct device_ring_layout *layout, const struct guest_memory *memory)
{
	const uint64_t bytes = sizeof(struct vring_packed_desc_event);

	return (layout->base & 0x7fff) < layout->size && aligned(layout->driver, 4) &&
	       aligned(layout->device, 4) && guest_memory_holds(memory, layout->driver, bytes) &&
	       guest_memory_holds(memory, layout->device, bytes);
}

static bool layout_valid(const struct device_ring_layout *layout, const struct guest_memory *memory,
                         bool packed)
{
	return layout->size > 0 && layout->size <= RING_SIZE_MAX && aligned(layout->desc, 16) &&
	       guest_memory_holds(memory, layout->desc, UINT64_C(16) * layout->size) &&
	       (packed ? packed_valid : split_valid)(layout, memory);
}

int device_ring_init(struct device_ring *ring, const struct device_ring_layout *layout,
                     const struct guest_memory *memory)
{
	bool packed = has(layout->features, VIRTIO_F_RING_PACKED);
	bool mergeable = has(layout->features, VIRTIO_NET_F_MRG_RXBUF);

	if (!layout_valid(layout, memory, packed))
		return -EINVAL;
	*ring = (struct device_ring){
	        .packed = packed,
	        .writable = layout->writable,
	        .mergeable = mergeable,
	        .in_order = has(layout->features, VIRTIO_F_IN_ORDER),
	        .isa = (uint8_t)isa_current(),
	        .wrap = layout->base >> 15,
	        // s5.1.6.1: a legacy device's header has no num_buffers, unless buffers are merged.
	        .header_bytes = mergeable || has(layout->features, VIRTIO_F_VERSION_1) ? RING_HEADER
	                                                                               : RING_HEADER_LEGACY,
	        .offloads = offload_negotiated(layout->features, layout->writable),
	        .size = layout->size,
	        .next = packed ? layout->base & 0x7fff : layout->base,
	        .avail_seen = layout->base,
	        .memory = memory,
	        .desc = layout->desc,
	        .avail = layout->driver,
	        .used = layout->device,
	};
	ring->bell.word = packed ? &ring->driver_event->flags : &ring->avail->flags;
	if (packed)
		__atomic_store_n(&ring->device_event->flags, VRING_PACKED_EVENT_FLAG_DISABLE,
		                 __ATOMIC_RELAXED); // s2.8.10
	else
		__atomic_store_n(&ring->used->flags, VRING_USED_F_NO_NOTIFY, __ATOMIC_RELAXED); // s2.7.10
	return 0;
}

uint16_t device_ring_base(const struct device_ring *ring)
{
	return ring->packed ? (uint16_t)(ring->next | ring->wrap << 15) : ring->next;
}

// The buffer of a descriptor that may be any: what is next, or what was there the last time round. To read or
// to write are not the same to a cache: a line that the guest will write is left to it.
static void warm_buffer(struct device_ring *ring, const struct ring_descriptor *d)
{
	uint32_t run = d->length;
	uint8_t *data;

	if (!ring->writable || run < ring->header_bytes)
		return;
	data = guest_memory_run(ring->memory, &ring->last_region, d->address, &run);
	if (data == NULL)
		return;
	prefetch_to_write(data);
	if (run > ring->header_bytes)
		prefetch_to_write(data + ring->header_bytes);
}

void device_ring_warm(struct device_ring *ring)
{
	struct ring_descriptor d;

	if (ring->packed) {
		d = ring_read_packed(&ring->desc_packed[ring->next]);
	} else {
		uint16_t slot = ring->next & (ring->size - 1);
		uint16_t head = __atomic_load_n(&ring->avail->ring[slot], __ATOMIC_RELAXED);

		prefetch_to_write(&ring->used->ring[slot]);
		if (head >= ring->size)
			return;
		d = ring_read_split(&ring->desc[head]);
	}
	warm_buffer(ring, &d);
}

const char *ring_fault_text(unsigned fault)
{
	static const char *const texts[RING_FAULTS] = {
	        [RING_OK] = "no fault",
	        [RING_BAD_INDEX] = "it has made more buffers available than the ring has entries",
	        [RING_BAD_HEAD] = "a descriptor number is beyond the table",
	        [RING_BAD_ADDRESS] = "a descriptor points outside of the shared memory",
	        [RING_BAD_CHAIN] = "a chain of descriptors loops or is too long",
	        [RING_BAD_INDIRECT] = "an indirect table is empty, odd, nested, too long or chained",
	        [RING_BAD_DIRECTION] = "a buffer is writable where it must be read-only, or the reverse",
	        [RING_EMPTY_CHAIN] = "a chain of descriptors has no bytes",
	        [RING_BAD_LAYOUT] =
	                "the ring is misaligned, of a size that cannot be, or not in the shared memory",
	};

	return texts[fault < RING_FAULTS ? fault : RING_OK];
}

// --- Split rings: virtio 1.2 s2.7 ------------------------------------------------------------------------

// A chain of several descriptors: direct ones, then at most one that is indirect (s2.7.5.3.2). Its length
// bounds the loop: a chain has at most as many descriptors as the ring (s2.7.5.3.1), here
// RING_CHAIN_MAX.
static __attribute__((noinline)) unsigned split_chain(struct device_ring *ring, struct ring_batch *batch,
                                                      struct ring_buffer *buffer, struct ring_descriptor d)
{
	const char *table = (const char *)ring->desc;
	unsigned entries = ring->size, fault;
	bool indirect = false;

	for (unsigned length = 0; length < ring_chain_max(ring); length++) {
		if (d.flags & VRING_DESC_F_INDIRECT) {
			if (indirect)
				return RING_BAD_INDIRECT;
			table = ring_indirect_table(ring, &d, &entries, &fault);
			if (table == NULL)
				return fault;
			indirect = true;
			d = ring_read_split(table);
			if (d.flags & VRING_DESC_F_INDIRECT)
				return RING_BAD_INDIRECT;
		}
		fault = ring_buffer_add(ring, batch, buffer, &d);
		if (fault != RING_OK || !(d.flags & VRING_DESC_F_NEXT))
			return fault;
		if (d.link >= entries)
			return RING_BAD_HEAD;
		d = ring_read_split(table + (size_t)d.link * RING_DESCRIPTOR_BYTES);
	}
	return RING_BAD_CHAIN;
}

static inline unsigned split_buffer(struct device_ring *ring, struct ring_batch *batch, uint16_t head)
{
	struct ring_buffer *buffer = ring_buffer_begin(batch);
	struct ring_descriptor d;

	if (unlikely(head >= ring->size))
		return RING_BAD_HEAD;
	buffer->id = head;
	d = ring_read_split(&ring->desc[head]);
	if (likely(!(d.flags & (VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT))))
		return ring_buffer_add(ring, batch, buffer, &d);
	return split_chain(ring, batch, buffer, d);
}

unsigned ring_split_peek(struct device_ring *ring, struct ring_batch *batch, unsigned n)
{
	uint16_t heads[BURST_FRAMES_MAX], mask = ring->size - 1;

	batch->count = batch->piece_count = batch->descriptor_count = 0;
	batch->bytes = 0;
	batch->limited = false;
	if (unlikely(ring->fault != RING_OK))
		return 0;
	n = ring_split_available(ring, RTE_MIN(n, (unsigned)BURST_FRAMES_MAX));
	// All heads first: the descriptors come while the next ones are looked up.
	for (unsigned i = 0; i < n; i++) {
		heads[i] = __atomic_load_n(&ring->avail->ring[(ring->next + i) & mask], __ATOMIC_RELAXED);
		rte_prefetch0(&ring->desc[heads[i] & mask]);
	}
	for (unsigned i = 0; i < n; i++)
		if (!ring_buffer_end(ring, batch, split_buffer(ring, batch, heads[i])))
			break;
	return batch->count;
}

void ring_split_commit(struct device_ring *ring, const struct ring_batch *batch, unsigned n)
{
	uint16_t mask = ring->size - 1;

	if (n == 0)
		return;
	if (ring->in_order && !ring->writable) // one for all (s2.7.9), as ring_run_commit_split()
		ring_split_use(ring, ring->next & mask, batch->buffers[n - 1].id, 0);
	else
		for (unsigned i = 0; i < n; i++)
			ring_split_use(ring, (ring->next + i) & mask, batch->buffers[i].id,
			               batch->buffers[i].written);
	ring->next += (uint16_t)n;
	__atomic_store_n(&ring->used->idx, ring->next, __ATOMIC_RELEASE); // s2.7.8.2: the index last
}

// --- Packed rings: virtio 1.2 s2.8 -----------------------------------------------------------------------

// A place in the ring.
struct place {
	uint16_t slot;
	bool wrap;
};

static inline struct place place_after(const struct device_ring *ring, struct place at, unsigned slots)
{
	unsigned slot = at.slot + slots;

	if (slot >= ring->size)
		return (struct place){(uint16_t)(slot - ring->size), !at.wrap};
	return (struct place){(uint16_t)slot, at.wrap};
}

// The entries of an indirect table lie in order; of their flags only WRITE has a meaning (s2.8.7).
static unsigned packed_indirect(struct device_ring *ring, struct ring_batch *batch,
                                struct ring_buffer *buffer, const struct ring_descriptor *d)
{
	unsigned entries, fault;
	const char *table = ring_indirect_table(ring, d, &entries, &fault);

	if (table == NULL)
		return fault;
	if (entries > RING_CHAIN_MAX)
		return RING_BAD_CHAIN;
	for (unsigned i = 0; i < entries; i++) {
		struct ring_descriptor entry = ring_read_packed(table + (size_t)i * RING_DESCRIPTOR_BYTES);

		fault = ring_buffer_add(ring, batch, buffer, &entry);
		if (fault != RING_OK)
			return fault;
	}
	return RING_OK;
}

// A chain of several descriptors: successive slots, the id in the last (s2.8.6). left: slots that this batch
// may still take, and so the bound of the loop: nothing is read twice in one turn around the ring.
static __attribute__((noinline)) unsigned packed_chain(struct device_ring *ring, struct ring_batch *batch,
                                                       struct ring_buffer *buffer, struct ring_descriptor d,
                                                       struct place at, unsigned left)
{
	unsigned max = ring_chain_max(ring), most = RTE_MIN(left, max);

	for (unsigned slots = 1; slots <= most; slots++) {
		bool indirect = d.flags & VRING_DESC_F_INDIRECT;
		unsigned fault;

		if (indirect && slots > 1) // s2.8.7: not within a chain
			return RING_BAD_INDIRECT;
		fault = indirect ? packed_indirect(ring, batch, buffer, &d)
		                 : ring_buffer_add(ring, batch, buffer, &d);
		if (fault != RING_OK)
			return fault;
		if (!(d.flags & VRING_DESC_F_NEXT)) {
			buffer->id = d.link;
			buffer->slots = (uint16_t)slots;
			return RING_OK;
		}
		at = place_after(ring, at, 1);
		d = ring_read_packed(&ring->desc_packed[at.slot]);
	}
	return most == max ? (unsigned)RING_BAD_CHAIN : (unsigned)RING_NO_ROOM;
}

unsigned ring_packed_peek(struct device_ring *ring, struct ring_batch *batch, unsigned n)
{
	struct place at = {ring->next, ring->wrap};
	unsigned left = ring->size;

	batch->count = batch->piece_count = batch->descriptor_count = 0;
	batch->bytes = 0;
	batch->limited = false;
	if (unlikely(ring->fault != RING_OK))
		return 0;
	n = RTE_MIN(n, (unsigned)BURST_FRAMES_MAX);
	while (batch->count < n && left) {
		// The flags decide about the rest (s2.8.21.1): they come first, in the same load as length
		// and id.
		uint64_t rest = __atomic_load_n(ring_packed_half(ring, at.slot), __ATOMIC_ACQUIRE);
		struct ring_descriptor d =
		        ring_packed_from(ring_load_once(&ring->desc_packed[at.slot]), rest);
		struct ring_buffer *buffer = ring_buffer_begin(batch);
		unsigned fault;

		if (!ring_packed_is_available(d.flags, at.wrap))
			break;
		if (likely(!(d.flags & (VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT)))) {
			buffer->id = d.link;
			fault = ring_buffer_add(ring, batch, buffer, &d);
		} else {
			fault = packed_chain(ring, batch, buffer, d, at, left);
		}
		if (!ring_buffer_end(ring, batch, fault))
			break;
		left -= buffer->slots;
		at = place_after(ring, at, buffer->slots);
	}
	return batch->count;
}

static inline uint64_t used_half(const struct ring_buffer *buffer, bool wrap)
{
	return ring_packed_used(buffer->id, buffer->written, wrap);
}

void ring_packed_commit(struct device_ring *ring, const struct ring_batch *batch, unsigned n)
{
	struct place first = {ring->next, ring->wrap}, at = first;
	bool one = ring->in_order && !ring->writable; // for all (s2.8.9), as ring_run_commit_packed()

	if (n == 0)
		return;
	// The guest waits for the first: it is written last and shows all others with it.
	for (unsigned i = 0; i < n; i++) {
		if (i > 0 && !one)
			__atomic_store_n(ring_packed_half(ring, at.slot),
			                 used_half(&batch->buffers[i], at.wrap), __ATOMIC_RELAXED);
		at = place_after(ring, at, batch->buffers[i].slots);
	}
	__atomic_store_n(ring_packed_half(ring, first.slot),
	                 used_half(&batch->buffers[one ? n - 1 : 0], first.wrap), __ATOMIC_RELEASE);
	ring->next = at.slot;
	ring->wrap = at.wrap;
}
