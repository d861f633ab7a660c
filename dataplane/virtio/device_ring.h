// SPDX-License-Identifier: BSD-3-Clause
// One virtqueue as its device sees it (virtio 1.2 s2.6 to s2.8), on raw memory: whose memory it is, and who
// told us where, is not known here. Used by one worker; set up and torn down while that worker is elsewhere.
//
// The guest is hostile by assumption. What it wrote is read once, into a local copy, and checked there: every
// address against its memory, every index against the ring, every chain against the ring's size. A ring that
// breaks a rule stops, with its fault, until it is set up anew; nothing else is touched.
//
// The cycle is peek, copy, commit. device_ring_peek() reads ahead what the guest has made available and changes
// nothing, so that what is not used is simply peeked again; device_ring_commit() hands back the first n buffers, in
// order, with one release store for all. Buffers are never kept from one poll to the next. Thus one index is
// enough for both sides of the ring, and VIRTIO_F_IN_ORDER is kept without doing anything for it.
#pragma once

#include <linux/virtio_ring.h>
#include <stdbool.h>
#include <stdint.h>

#include "shm/doorbell.h"
#include "shm/frames.h"
#include "shm/guest_memory.h"

enum {
	RING_CHAIN_MAX = 256,    // descriptors of one chain: bounds the time that one buffer can take
	RING_SIZE_MAX = 32768,   // virtio 1.2 s2.7, s2.8
	RING_HEADER_LEGACY = 10, // struct virtio_net_hdr without num_buffers (s5.1.6)
	RING_HEADER = 12,
};

// Why a ring has stopped.
enum ring_fault {
	RING_OK,
	RING_BAD_INDEX,     // more available than the ring has entries
	RING_BAD_HEAD,      // a descriptor number beyond the table
	RING_BAD_ADDRESS,   // not the guest's memory
	RING_BAD_CHAIN,     // a loop, or longer than the ring or RING_CHAIN_MAX
	RING_BAD_INDIRECT,  // an indirect table that is empty, odd, nested, too long or chained
	RING_BAD_DIRECTION, // read-only where we write, or writable where we read
	RING_EMPTY_CHAIN,   // no byte in it
	RING_BAD_LAYOUT,    // refused by device_ring_init()
	RING_FAULTS,
};

struct device_ring {
	struct doorbell bell; // first, as in all rings
	bool packed;
	bool writable;  // we write: the guest's receive ring
	bool mergeable; // a frame may take several buffers (VIRTIO_NET_F_MRG_RXBUF)
	bool in_order;  // VIRTIO_F_IN_ORDER
	bool wrap;      // packed: our wrap counter, s2.8.1
	uint8_t debt;   // polls in which nothing is read: see device_ring_skips_poll()
	bool starved; // had no buffer for the last cross-connect: the frames of the next one are not fetched ahead
	uint8_t isa; // enum isa: whose code moves the frames
	uint8_t header_bytes;
	uint8_t offloads; // that were negotiated for frames in this ring: enum offload_bits (virtio/offload.h)
	uint16_t size;
	uint16_t next;       // split: index of the next buffer, free running; packed: slot of it
	uint16_t avail_seen; // split: the guest's index when we last looked
	unsigned last_region;
	enum ring_fault fault;
	const struct guest_memory *memory;
	union {
		struct vring_desc *desc;
		struct vring_packed_desc *desc_packed;
	};
	union {
		struct vring_avail *avail;
		struct vring_packed_desc_event *driver_event;
	};
	union {
		struct vring_used *used;
		struct vring_packed_desc_event *device_event;
	};
};

// Where a ring's parts are and what was negotiated. base: where to go on, as in VHOST_USER_SET_VRING_BASE;
// packed rings have their wrap counter in bit 15.
struct device_ring_layout {
	void *desc, *driver, *device;
	uint16_t size, base;
	uint64_t features; // negotiated
	bool writable;
};

// A poll of a ring takes a bounded time, and a guest that makes it a long one is polled less often: what its descriptors
// cost beyond those of an honest driver is paid in polls without work, one for each RING_DEBT_EACH. So it takes no more of
// its worker's time than others. An honest driver sends a frame in two descriptors (the header apart), receives it in one
// buffer, and has one more for each 256 bytes. Without merged buffers, whoever accepts frames of 64 KB has a buffer of that size
// for each frame: header, and pages, one more since they may not begin at one.
enum {
	RING_HONEST_SENT = 2,
	RING_HONEST_RECEIVED = 1,
	RING_HONEST_LONG = 19,
	RING_HONEST_BYTES = 256,
	RING_DEBT_EACH = 12,
};

// Descriptors of an honest driver's frame, as short as it may be.
static inline unsigned device_ring_honest(const struct device_ring *ring)
{
	if (!ring->writable)
		return RING_HONEST_SENT;
	return ring->offloads && !ring->mergeable ? RING_HONEST_LONG : RING_HONEST_RECEIVED;
}

// So many descriptors were read for these frames, of bytes in all.
static inline void device_ring_charge(struct device_ring *ring, unsigned descriptors, unsigned frames,
                                      uint64_t bytes)
{
	uint64_t honest = (uint64_t)device_ring_honest(ring) * frames + bytes / RING_HONEST_BYTES;

	if (descriptors > honest)
		ring->debt = (uint8_t)((descriptors - honest) / RING_DEBT_EACH);
}

// Whether this poll is one of those.
static inline bool device_ring_skips_poll(struct device_ring *ring)
{
	if (likely(ring->debt == 0))
		return false;
	ring->debt--;
	return true;
}

// Set a ring up and tell the guest that it need not notify us: we poll. memory stays the caller's and must
// outlive the ring. Returns 0, or -EINVAL for a ring that no rule allows: missing, misaligned, of a size
// that cannot be, or not wholly in the guest's memory.
int device_ring_init(struct device_ring *ring, const struct device_ring_layout *layout,
                     const struct guest_memory *memory);

// The position to go on from, in the form of device_ring_layout.base.
uint16_t device_ring_base(const struct device_ring *ring);

// Nothing has come: have in this core's cache what the next buffer needs. Between frames that are
// milliseconds apart all of it is forgotten, and each line would be waited for in turn. Changes nothing,
// reports nothing.
void device_ring_warm(struct device_ring *ring);

// A fault in words: what the guest did.
const char *ring_fault_text(unsigned fault);

// --- The data path, of a ring of either kind -------------------------------------------------------------

// Split virtqueues, virtio 1.2 s2.7: a descriptor table, a ring of what is available, a ring of what is used. As
// device_ring_peek() and device_ring_commit().
unsigned ring_split_peek(struct device_ring *ring, struct ring_batch *batch, unsigned n);
void ring_split_commit(struct device_ring *ring, const struct ring_batch *batch, unsigned n);

// Packed virtqueues, s2.8: one ring of descriptors, each either the driver's or the device's by two bits that change
// their meaning each time around.
unsigned ring_packed_peek(struct device_ring *ring, struct ring_batch *batch, unsigned n);
void ring_packed_commit(struct device_ring *ring, const struct ring_batch *batch, unsigned n);

// Read ahead up to n (at most BURST_FRAMES_MAX) buffers that the guest has made available. Returns how many, in
// batch. A chain that cannot be read ends the batch; if it is the first one it stops the ring, and the fault
// says why.
static inline unsigned device_ring_peek(struct device_ring *ring, struct ring_batch *batch, unsigned n)
{
	return ring->packed ? ring_packed_peek(ring, batch, n) : ring_split_peek(ring, batch, n);
}

// Hand the first n buffers of a batch back to the guest, each with the bytes written to it. The batch must be
// of the last peek, and is spent.
static inline void device_ring_commit(struct device_ring *ring, const struct ring_batch *batch, unsigned n)
{
	if (ring->packed)
		ring_packed_commit(ring, batch, n);
	else
		ring_split_commit(ring, batch, n);
}
