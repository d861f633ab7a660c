// SPDX-License-Identifier: BSD-3-Clause
#include "test/guest.h"

#include <stdlib.h>
#include <string.h>

enum {
	DESC_BYTES = 16,
	DRIVER_AREA = 8192,
	DEVICE_AREA = 12288,
	RING_AREA = 16384,
	TABLE_BYTES = GUEST_TABLE_ENTRIES * DESC_BYTES,
	PACKED_AVAIL = 1 << VRING_PACKED_DESC_F_AVAIL,
	PACKED_USED = 1 << VRING_PACKED_DESC_F_USED,
};

static size_t driver_bytes(void)
{
	return RING_AREA + (size_t)GUEST_SIZE_MAX * (TABLE_BYTES + GUEST_BUFFER_BYTES);
}

void *guest_at(struct guest *guest, uint64_t address)
{
	return guest->bytes + (address - GUEST_ADDRESS);
}

static void driver_open(struct driver *d, struct guest *guest, uint64_t features, size_t offset,
                        bool writable, bool reversed)
{
	struct device_ring_layout layout = {.desc = guest->bytes + offset,
	                                    .driver = guest->bytes + offset + DRIVER_AREA,
	                                    .device = guest->bytes + offset + DEVICE_AREA,
	                                    .size = d->size,
	                                    .base = features >> VIRTIO_F_RING_PACKED & 1 ? 0x8000 : 0,
	                                    .features = features,
	                                    .writable = writable};

	d->guest = guest;
	d->writable = writable;
	d->wrap = d->used_wrap = true;
	d->batch_end = -1;
	d->tables = GUEST_ADDRESS + offset + RING_AREA;
	d->buffers = d->tables + (uint64_t)GUEST_SIZE_MAX * TABLE_BYTES;
	d->free_count = d->free_slots = d->size;
	for (unsigned i = 0; i < d->size; i++) // a stack: the top is given out first
		d->free_ids[i] = (uint16_t)(reversed ? i : d->size - 1 - i);
	if (device_ring_init(&d->ring, &layout, &guest->memory))
		abort();
}

void guest_open(struct guest *guest, uint64_t features, uint16_t size, bool reversed)
{
	size_t half = driver_bytes();

	memset(guest, 0, sizeof(*guest));
	guest->size = 2 * half;
	guest->bytes = aligned_alloc(64, guest->size);
	if (guest->bytes == NULL)
		abort();
	memset(guest->bytes, 0, guest->size);
	guest->receive.size = guest->transmit.size = size;
	// Two regions that adjoin in the middle of the transmit ring's buffers, so that ranges can cross.
	if (guest_memory_add(&guest->memory, GUEST_ADDRESS, half * 3 / 2, guest->bytes) ||
	    guest_memory_add(&guest->memory, GUEST_ADDRESS + half * 3 / 2, half - half / 2,
	                     guest->bytes + half * 3 / 2))
		abort();
	driver_open(&guest->receive, guest, features, 0, true, reversed);
	driver_open(&guest->transmit, guest, features, half, false, reversed);
}

void guest_close(struct guest *guest)
{
	free(guest->bytes);
}

uint64_t driver_buffer(const struct driver *d, unsigned id)
{
	return d->buffers + (uint64_t)id * GUEST_BUFFER_BYTES;
}

unsigned driver_next_id(const struct driver *d)
{
	return d->free_count ? d->free_ids[d->free_count - 1] : 0;
}

uint8_t *driver_descriptor(struct driver *d, unsigned slot)
{
	return (uint8_t *)d->ring.desc + (size_t)slot * DESC_BYTES;
}

// A table of split descriptors, each linked to the next, at the entries that links says; or packed ones, in
// order.
static void write_table(const struct driver *d, uint8_t *table, const struct guest_range *ranges,
                        unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		uint16_t write = d->writable ? VRING_DESC_F_WRITE : 0;

		if (d->ring.packed) {
			const struct vring_packed_desc entry = {ranges[i].address, ranges[i].length, 0,
			                                        write};

			memcpy(table + i * DESC_BYTES, &entry, sizeof(entry));
		} else {
			const struct vring_desc entry = {
			        ranges[i].address, ranges[i].length,
			        (uint16_t)(write | (i + 1 < count ? VRING_DESC_F_NEXT : 0)),
			        (uint16_t)(i + 1)};

			memcpy(table + i * DESC_BYTES, &entry, sizeof(entry));
		}
	}
}

// The first of a split chain is the id, the others are ids too, taken from the same stack.
static void offer_split(struct driver *d, unsigned id, const struct guest_range *ranges, unsigned count,
                        uint16_t indirect)
{
	uint16_t at = (uint16_t)id;

	for (unsigned i = 0; i < count; i++) {
		bool last = i + 1 == count;
		uint16_t next = last ? 0 : d->free_ids[--d->free_count];

		d->ring.desc[at] = (struct vring_desc){
		        ranges[i].address, ranges[i].length,
		        (uint16_t)(indirect | (d->writable && !indirect ? VRING_DESC_F_WRITE : 0) |
		                   (last ? 0 : VRING_DESC_F_NEXT)),
		        next};
		at = next;
	}
	d->ring.avail->ring[d->next % d->size] = (uint16_t)id;
	d->next++;
	__atomic_store_n(&d->ring.avail->idx, d->next, __ATOMIC_RELEASE);
}

static void offer_packed(struct driver *d, unsigned id, const struct guest_range *ranges, unsigned count,
                         uint16_t indirect)
{
	uint16_t first_flags = 0, first = d->next;

	for (unsigned i = 0; i < count; i++) {
		uint16_t flags = (uint16_t)(indirect | (d->writable && !indirect ? VRING_DESC_F_WRITE : 0) |
		                            (i + 1 < count ? VRING_DESC_F_NEXT : 0) |
		                            (d->wrap ? PACKED_AVAIL : PACKED_USED));
		struct vring_packed_desc *desc = &d->ring.desc_packed[d->next];

		desc->addr = ranges[i].address;
		desc->len = ranges[i].length;
		desc->id = (uint16_t)id;
		if (i == 0)
			first_flags = flags;
		else
			desc->flags = flags;
		if (++d->next == d->size) {
			d->next = 0;
			d->wrap = !d->wrap;
		}
	}
	__atomic_store_n(&d->ring.desc_packed[first].flags, first_flags, __ATOMIC_RELEASE);
}

int driver_offer(struct driver *d, const struct guest_range *ranges, unsigned count, bool indirect)
{
	unsigned slots = indirect ? 1 : count;
	struct guest_range table;
	uint16_t id;

	if (d->free_count < slots || d->free_slots < slots)
		return -1;
	id = d->free_ids[--d->free_count];
	d->free_slots -= slots;
	d->slots[id] = (uint16_t)slots;
	if (indirect) {
		table = (struct guest_range){d->tables + (uint64_t)id * TABLE_BYTES, count * DESC_BYTES};
		write_table(d, guest_at(d->guest, table.address), ranges, count);
		ranges = &table;
	}
	d->offered[d->offered_end++ % GUEST_SIZE_MAX] = id;
	(d->ring.packed ? offer_packed : offer_split)(d, id, ranges, slots,
	                                              indirect ? VRING_DESC_F_INDIRECT : 0);
	return id;
}

unsigned driver_offer_own(struct driver *d, unsigned n, uint32_t length)
{
	unsigned done = 0;

	while (done < n && driver_offer(d, &(struct guest_range){driver_buffer(d, driver_next_id(d)), length},
	                                1, false) >= 0)
		done++;
	return done;
}

// The last of the buffers that the next used entry is for, or -1.
static int used_entry(const struct driver *d, uint32_t *written)
{
	const struct vring_used_elem *used;
	const struct vring_packed_desc *desc;
	uint16_t flags;

	if (!d->ring.packed) {
		used = &d->ring.used->ring[d->used_next % d->size];
		if (__atomic_load_n(&d->ring.used->idx, __ATOMIC_ACQUIRE) == d->used_next)
			return -1;
		*written = used->len;
		return (int)used->id;
	}
	desc = &d->ring.desc_packed[d->used_next];
	flags = __atomic_load_n(&desc->flags, __ATOMIC_ACQUIRE);
	if (!!(flags & PACKED_USED) != d->used_wrap || !!(flags & PACKED_AVAIL) != d->used_wrap)
		return -1;
	*written = flags & VRING_DESC_F_WRITE ? desc->len : 0;
	return desc->id;
}

// Past the used entry of a buffer, or past where it would be.
static void used_advance(struct driver *d, uint16_t id)
{
	if (!d->ring.packed) {
		d->used_next++;
		return;
	}
	d->used_next = (uint16_t)(d->used_next + d->slots[id]);
	if (d->used_next >= d->size) {
		d->used_next = (uint16_t)(d->used_next - d->size);
		d->used_wrap = !d->used_wrap;
	}
}

// Buffers come back in the order in which they were offered; under VIRTIO_F_IN_ORDER one entry may be for
// several (s2.7.9, s2.8.9).
static int collect_next(struct driver *d, uint32_t *written)
{
	uint16_t id = d->offered[d->offered_first % GUEST_SIZE_MAX];

	*written = 0;
	if (d->batch_end < 0)
		d->batch_end = used_entry(d, written);
	if (d->batch_end < 0)
		return -1;
	if (d->batch_end == id)
		d->batch_end = -1;
	else if (!d->ring.in_order || d->offered_first == d->offered_end)
		abort();
	d->offered_first++;
	used_advance(d, id);
	return id;
}

int driver_collect(struct driver *d, uint32_t *written)
{
	int id = collect_next(d, written);

	if (id < 0)
		return id;
	d->free_slots += d->slots[id];
	if (!d->ring.packed) // the rest of the chain
		for (uint16_t at = (uint16_t)id; d->ring.desc[at].flags & VRING_DESC_F_NEXT;) {
			at = d->ring.desc[at].next;
			d->free_ids[d->free_count++] = at;
		}
	d->free_ids[d->free_count++] = (uint16_t)id;
	return id;
}
