// SPDX-License-Identifier: BSD-3-Clause
// A guest for tests: its memory, a receive and a transmit ring in it, split or packed, and the driver's half
// of virtio 1.2 s2.7 and s2.8, plainly. What the driver writes can be changed by hand afterwards: that is how
// a guest lies. Needs no EAL; memory is of its exact size, so that a sanitizer sees the first byte beyond it.
#pragma once

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>

#include "virtio/device_ring.h"

enum {
	GUEST_SIZE_MAX = 256,       // ring entries
	GUEST_BUFFER_BYTES = 4096,  // each id has a buffer of its own
	GUEST_TABLE_ENTRIES = 64,   // and an indirect table
	GUEST_ADDRESS = 0x40000000, // guest physical, of the first of two adjoining regions
};

struct guest_range {
	uint64_t address;
	uint32_t length;
};

// The driver's side of one ring.
struct driver {
	struct device_ring ring; // the device's side, as under test
	uint16_t size;
	bool writable;
	uint16_t next, used_next; // split: index; packed: slot
	bool wrap, used_wrap;
	unsigned free_count;
	uint16_t free_ids[GUEST_SIZE_MAX], slots[GUEST_SIZE_MAX]; // slots: descriptors that an id takes
	unsigned free_slots;
	uint16_t offered[GUEST_SIZE_MAX]; // ids in the order in which they were
	uint16_t offered_first, offered_end;
	int batch_end;            // VIRTIO_F_IN_ORDER: the id up to which all are used by one entry, or -1
	uint64_t tables, buffers; // addresses of entry 0
	struct guest *guest;
};

struct guest {
	struct guest_memory memory;
	uint8_t *bytes;
	size_t size;
	struct driver receive, transmit;
};

// features: of device_ring_layout; size: of both rings. reversed: ids are given out from the last to the first, so
// that descriptors of a split ring are not in order. Aborts without memory.
void guest_open(struct guest *guest, uint64_t features, uint16_t size, bool reversed);
void guest_close(struct guest *guest);

// The byte at a guest physical address.
void *guest_at(struct guest *guest, uint64_t address);

// The address of an id's own buffer.
uint64_t driver_buffer(const struct driver *driver, unsigned id);

// The id that the next offer gets; the caller puts data there first.
unsigned driver_next_id(const struct driver *driver);

// Make a buffer of count ranges available, as a chain or by an indirect table. Returns its id, -1 if the ring
// is full.
int driver_offer(struct driver *driver, const struct guest_range *ranges, unsigned count, bool indirect);

// The next n buffers, each the first length bytes of its own. Returns how many were offered.
unsigned driver_offer_own(struct driver *driver, unsigned n, uint32_t length);

// The next used buffer: its id, and the bytes (of the last one, where one entry stands for several) that the
// device says it wrote. -1: none.
int driver_collect(struct driver *driver, uint32_t *written);

// The descriptor that the next offer begins with, for lies: its flags are 16 bits at the returned offset.
uint8_t *driver_descriptor(struct driver *driver, unsigned slot);
