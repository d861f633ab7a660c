// SPDX-License-Identifier: BSD-3-Clause
#include "ring/ring.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>

#include "lib/isa.h"
#include "ring/prefetch.h"
#include "ring/ring_chain.h"

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
static bool split_valid(const struct ring_layout *layout, const struct guest_memory *memory)
{
	uint64_t size = layout->size;

	return (size & (size - 1)) == 0 && aligned(layout->driver, 2) && aligned(layout->device, 4) &&
	       guest_memory_holds(memory, layout->driver, sizeof(struct vring_avail) + 2 * size) &&
	       guest_memory_holds(memory, layout->device,
	                          sizeof(struct vring_used) + size * sizeof(struct vring_used_elem));
}

static bool packed_valid(const struct ring_layout *layout, const struct guest_memory *memory)
{
	const uint64_t bytes = sizeof(struct vring_packed_desc_event);

	return (layout->base & 0x7fff) < layout->size && aligned(layout->driver, 4) &&
	       aligned(layout->device, 4) && guest_memory_holds(memory, layout->driver, bytes) &&
	       guest_memory_holds(memory, layout->device, bytes);
}

static bool layout_valid(const struct ring_layout *layout, const struct guest_memory *memory, bool packed)
{
	return layout->size > 0 && layout->size <= RING_SIZE_MAX && aligned(layout->desc, 16) &&
	       guest_memory_holds(memory, layout->desc, UINT64_C(16) * layout->size) &&
	       (packed ? packed_valid : split_valid)(layout, memory);
}

int ring_init(struct ring *ring, const struct ring_layout *layout, const struct guest_memory *memory)
{
	bool packed = has(layout->features, VIRTIO_F_RING_PACKED);
	bool mergeable = has(layout->features, VIRTIO_NET_F_MRG_RXBUF);

	if (!layout_valid(layout, memory, packed))
		return -EINVAL;
	*ring = (struct ring){
	        .packed = packed,
	        .writable = layout->writable,
	        .mergeable = mergeable,
	        .in_order = has(layout->features, VIRTIO_F_IN_ORDER),
	        .isa = (uint8_t)isa_current(),
	        .wrap = layout->base >> 15,
	        // s5.1.6.1: a legacy device's header has no num_buffers, unless buffers are merged.
	        .header_bytes = mergeable || has(layout->features, VIRTIO_F_VERSION_1) ? RING_HEADER
	                                                                               : RING_HEADER_LEGACY,
	        .size = layout->size,
	        .next = packed ? layout->base & 0x7fff : layout->base,
	        .avail_seen = layout->base,
	        .memory = memory,
	        .desc = layout->desc,
	        .avail = layout->driver,
	        .used = layout->device,
	};
	if (packed)
		__atomic_store_n(&ring->device_event->flags, VRING_PACKED_EVENT_FLAG_DISABLE,
		                 __ATOMIC_RELAXED); // s2.8.10
	else
		__atomic_store_n(&ring->used->flags, VRING_USED_F_NO_NOTIFY, __ATOMIC_RELAXED); // s2.7.10
	return 0;
}

uint16_t ring_base(const struct ring *ring)
{
	return ring->packed ? (uint16_t)(ring->next | ring->wrap << 15) : ring->next;
}

// The buffer of a descriptor that may be any: what is next, or what was there the last time round. To read or
// to write are not the same to a cache: a line that the guest will write is left to it.
static void warm_buffer(struct ring *ring, const struct ring_descriptor *d)
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

void ring_warm(struct ring *ring)
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

const char *ring_fault_text(enum ring_fault fault)
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

bool ring_wants_call(const struct ring *ring)
{
	// The guest first says that it wants calls, then looks whether there is something; we the reverse.
	atomic_thread_fence(memory_order_seq_cst);
	return ring_call_flag(ring);
}
