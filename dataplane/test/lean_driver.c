// SPDX-License-Identifier: BSD-3-Clause
#include "test/lean_driver.h"

#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>

#include <linux/virtio_config.h>
#include <rte_common.h>

enum {
	LINE = 64,
	BURST = 32,
	BUFFER_BYTES = 37 * LINE, // an odd number of lines: buffers spread over the sets of a cache
	HEAD_ROOM = 256,          // struct rte_mbuf and its headroom
	ROOM = 2048,              // of a frame
	DRIVER_AREA = 8192,       // offsets of a ring's parts
	DEVICE_AREA = 12288,
	BUFFER_AREA = 16384,
	ADDRESS = 0x40000000, // guest physical
	PACKED_AVAIL = 1 << VRING_PACKED_DESC_F_AVAIL,
	PACKED_USED = 1 << VRING_PACKED_DESC_F_USED,
};

static uint16_t packed_flags(const struct lean_driver *d, bool wrap)
{
	return (uint16_t)(d->send_flags | (wrap ? PACKED_AVAIL : PACKED_USED));
}

static inline uint64_t address_of(const struct lean_driver *d, uint16_t slot)
{
	return d->addresses + (uint64_t)slot * BUFFER_BYTES;
}

static inline void write_split(struct lean_driver *d, uint16_t slot)
{
	d->ring.desc[slot] = (struct vring_desc){address_of(d, slot), d->length, d->send_flags, 0};
	d->ring.avail->ring[slot] = slot;
}

static void write_descriptors(struct lean_driver *d)
{
	for (uint16_t i = 0; i < d->size; i++)
		if (d->ring.packed)
			d->ring.desc_packed[i] = (struct vring_packed_desc){address_of(d, i), d->length, i,
			                                                    packed_flags(d, true)};
		else
			write_split(d, i);
	if (d->ring.packed) {
		d->ring.driver_event->flags = VRING_PACKED_EVENT_FLAG_DISABLE;
	} else {
		d->ring.avail->flags = VRING_AVAIL_F_NO_INTERRUPT;
		d->ring.avail->idx = d->size;
	}
}

static void driver_open(struct lean_driver *d, struct lean_end *end, size_t offset, uint64_t features)
{
	struct device_ring_layout layout = {.desc = end->bytes + offset,
	                                    .driver = end->bytes + offset + DRIVER_AREA,
	                                    .device = end->bytes + offset + DEVICE_AREA,
	                                    .size = d->size,
	                                    .base = features >> VIRTIO_F_RING_PACKED & 1 ? 0x8000 : 0,
	                                    .features = features,
	                                    .writable = d->send_flags};

	d->wrap = true;
	if (device_ring_init(&d->ring, &layout, &end->memory))
		abort();
	d->buffers = end->bytes + offset + BUFFER_AREA + HEAD_ROOM - d->ring.header_bytes;
	d->length += d->ring.header_bytes;
	d->addresses = ADDRESS + (uint64_t)(d->buffers - end->bytes);
	write_descriptors(d);
}

void lean_open(struct lean_end *end, uint64_t features, uint16_t size, uint32_t frame_bytes,
               enum lean_touch touch, bool rewrite)
{
	size_t half = BUFFER_AREA + (size_t)size * BUFFER_BYTES;

	memset(end, 0, sizeof(*end));
	end->size = 2 * half;
	end->bytes = mmap(NULL, end->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE,
	                  -1, 0);
	if (end->bytes == MAP_FAILED || size * 16 > DRIVER_AREA ||
	    guest_memory_add(&end->memory, ADDRESS, end->size, end->bytes))
		abort();
	end->receive = (struct lean_driver){
	        .size = size, .send_flags = VRING_DESC_F_WRITE, .length = ROOM, .touch = touch};
	end->transmit = (struct lean_driver){.size = size, .length = frame_bytes, .touch = touch};
	driver_open(&end->receive, end, 0, features);
	driver_open(&end->transmit, end, half, features);
	end->receive.rewrite = end->transmit.rewrite = rewrite;
}

void lean_close(struct lean_end *end)
{
	munmap(end->bytes, end->size);
}

// A sender writes its next frame, a receiver reads the one that came.
static inline void touch_frame(struct lean_driver *d, uint16_t slot, uint32_t length)
{
	uint8_t *frame = d->buffers + (size_t)slot * BUFFER_BYTES + d->ring.header_bytes;
	bool all = d->touch == LEAN_ALL || (d->touch == LEAN_TEST && d->send_flags);
	uint32_t bytes = all ? length - d->ring.header_bytes : 8;

	d->frames++;
	d->bytes += length - d->ring.header_bytes;
	if (d->touch == LEAN_NONE)
		return;
	for (uint32_t i = 0; i < bytes; i += LINE) {
		uint64_t *word = (uint64_t *)(void *)(frame + i);

		if (d->send_flags)
			d->seen += *(volatile uint64_t *)word;
		else
			*word = d->frames;
	}
}

static unsigned drive_split(struct lean_driver *d)
{
	uint16_t mask = d->size - 1, used = __atomic_load_n(&d->ring.used->idx, __ATOMIC_ACQUIRE);
	uint16_t n = RTE_MIN((uint16_t)(used - d->next), BURST);

	if (n == 0)
		return 0;
	for (uint16_t i = 0; i < n; i++) {
		uint16_t slot = (d->next + i) & mask;

		touch_frame(d, slot, d->send_flags ? d->ring.used->ring[slot].len : d->length);
		if (d->rewrite)
			write_split(d, slot);
	}
	d->next += n;
	__atomic_store_n(&d->ring.avail->idx, (uint16_t)(d->next + d->size), __ATOMIC_RELEASE);
	return n;
}

static inline bool is_used(const struct lean_driver *d, uint16_t slot, bool wrap)
{
	uint16_t flags = __atomic_load_n(&d->ring.desc_packed[slot].flags, __ATOMIC_ACQUIRE);

	return !!(flags & PACKED_USED) == wrap && !!(flags & PACKED_AVAIL) == wrap;
}

// The place of slot n behind next, and which wrap counter it has.
static inline uint16_t slot_after(const struct lean_driver *d, unsigned n, bool *wrap)
{
	unsigned slot = d->next + n;

	*wrap = slot < d->size ? d->wrap : !d->wrap;
	return (uint16_t)(slot < d->size ? slot : slot - d->size);
}

// How many are used. Where the device writes nothing, one used descriptor may stand for all before it, by its
// id (s2.8.9): ids are slots.
static unsigned packed_ready(const struct lean_driver *d)
{
	unsigned n = 0;

	while (n < BURST) {
		bool wrap;
		uint16_t slot = slot_after(d, n, &wrap);

		if (!is_used(d, slot, wrap))
			break;
		n += d->send_flags ? 1u
		                   : (unsigned)(d->ring.desc_packed[slot].id - slot + d->size) % d->size + 1;
	}
	return n;
}

// All are read before the first is written: as a driver that receives a burst, then refills.
static unsigned drive_packed(struct lean_driver *d)
{
	unsigned n = packed_ready(d);
	bool wrap;

	for (unsigned i = 0; i < n; i++) {
		uint16_t slot = slot_after(d, i, &wrap);

		touch_frame(d, slot, d->send_flags ? d->ring.desc_packed[slot].len : d->length);
	}
	for (unsigned i = 0; i < n; i++) {
		uint16_t slot = slot_after(d, i, &wrap);
		struct vring_packed_desc *desc = &d->ring.desc_packed[slot];

		if (d->rewrite)
			desc->addr = address_of(d, slot);
		desc->len = d->length;
		desc->id = slot;
		__atomic_store_n(&desc->flags, packed_flags(d, !wrap), __ATOMIC_RELEASE);
	}
	if (n)
		d->next = slot_after(d, n, &d->wrap);
	return n;
}

unsigned lean_drive(struct lean_driver *driver)
{
	return driver->ring.packed ? drive_packed(driver) : drive_split(driver);
}
