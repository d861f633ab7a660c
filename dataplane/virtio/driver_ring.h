// SPDX-License-Identifier: BSD-3-Clause
// A virtqueue, split or packed (virtio 1.2 s2.7, s2.8), as its driver sees it, on raw memory: no sockets, no mbufs. Used by
// one worker; set up and torn down while that worker is elsewhere. Ring, buffers and pieces are the caller's.
//
// What costs is cache lines that travel between cores. So slot i always is descriptor i, and avail->ring[i]
// is i, written once: descriptors and avail entries stay in both caches. A frame that is sent is its bytes
// and one store of avail->idx for the whole burst; desc.len is written only if it changes. That needs a
// device that uses buffers in order: VIRTIO_F_IN_ORDER, or one that does so anyway, which is checked.
//
// In a packed ring slot i is descriptor i, too, and its id. It is written each time, since the device writes there that it
// has used it: one line for four frames, and none for indices.
//
// Before a frame's first byte, at the end of the cache line before, is its virtio-net header. Transmit: zero,
// and never touched again. Receive: the device's, and never looked at, since no offload is negotiated.
//
// The device is not believed: an index, an id or a length that cannot be stops the ring, with its fault,
// until driver_ring_reset(). Not covered: chains, indirect tables, EVENT_IDX.
#pragma once

#include "base/isa.h"
#include "shm/doorbell.h"
#include "shm/pool.h"
#include "virtio/device_frames.h"

enum {
	DRIVER_LINE = 64,
	DRIVER_COPY_MAX = 64, // bytes up to which a copy is cheaper than an exchange of buffers
};

// Why a ring has stopped.
enum driver_fault {
	DRIVER_OK,
	DRIVER_BAD_INDEX,  // more used than was available, or fewer than before
	DRIVER_BAD_ORDER,  // not the buffer whose turn it is
	DRIVER_BAD_LENGTH, // more than the buffer, or less than a header
	DRIVER_FAULTS,
};

struct driver_ring {
	struct doorbell bell; // first, as in all rings
	bool receive;
	bool in_order; // negotiated
	bool packed;   // the same
	bool wrap;     // packed: the wrap counter of slot `at`. Receive: with which the device uses it
	uint8_t isa;   // enum isa: whose code copies the frames
	uint16_t size;
	uint16_t head;      // free running. Transmit: the buffer to send next. Receive: the one to come next
	uint16_t at;        // its slot
	uint16_t used_seen; // the device's index when we last looked; packed: free running, transmit only
	uint16_t lent;      // transmit: slots from head on that were reserved since the last reset
	uint16_t length;    // transmit: of the frames that were reserved last, if they were of one length
	uint16_t alike;     // transmit: so many slots before head say this length; all do, if it is size
	bool lent_alike;    // transmit: those that are lent say it too
	uint16_t fetched;   // receive: frames from head on whose first lines were asked for
	uint32_t room;      // bytes of a frame that a buffer holds
	enum driver_fault fault;
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
	struct piece *pieces; // of each slot: its frame's first byte, and the room
};

// Bytes of memory that a ring needs for what it shares with the device.
size_t driver_ring_bytes(uint16_t size);

// Give a ring its memory: driver_ring_bytes(size), aligned to a line, and size pieces, whose data points to
// buffers as those of shm/pool.h. size: of a split ring a power of two. Not running yet.
void driver_ring_init(struct driver_ring *ring, bool receive, uint16_t size, uint32_t room, void *memory,
                      struct piece *pieces);

// Begin afresh at index 0, with the buffers that the pieces say: no device may use the ring.
void driver_ring_reset(struct driver_ring *ring, bool in_order, bool packed);

// A fault in words: what the device did.
const char *driver_fault_text(unsigned fault);

// Receive: describe up to n (at most BURST_FRAMES_MAX) frames that have come, in *count; *empty counts buffers
// without a byte, which make none. Returns how many buffers these are; the ring is unchanged until
// driver_ring_release() gives that many back.
unsigned driver_ring_peek(struct driver_ring *ring, unsigned n, struct frame *frames, unsigned *count,
                          unsigned *empty);
void driver_ring_release(struct driver_ring *ring, unsigned buffers);

// The same of up to n frames that are all of one length, with nothing but where they lie, in spans. Returns how many: as
// many as have come, at most n; or 0: none, or driver_ring_peek() has to look at them. Their lines are asked for, and of a
// split ring those of the frames behind them.
unsigned driver_ring_peek_spans(struct driver_ring *ring, struct vnf_frame *spans, unsigned n);

// How many frames have come, at most n, if all of these are of this length; else 0. Nothing of them is looked at or asked for
// but the device's elements.
unsigned driver_ring_peek_alike(struct driver_ring *ring, uint32_t length, unsigned n);

// Transmit: lend up to n empty buffers for frames of these lengths, as port_reserve(); send the first n of these.
// Returns how many, 0 if the ring was reset meanwhile.
unsigned driver_ring_reserve(struct driver_ring *ring, const uint16_t *lengths, uint8_t **data, unsigned n);
unsigned driver_ring_publish(struct driver_ring *ring, unsigned n);

// Transmit: copy up to n frames (at most BURST_FRAMES_MAX). Returns how many were taken; one longer than the
// room is taken and counted in *too_long.
ISA_DECLARE(unsigned, driver_ring_deliver,
            (struct driver_ring * ring, const struct frame *frames, unsigned n, uint64_t *too_long));

static inline unsigned driver_ring_deliver(struct driver_ring *ring, const struct frame *frames, unsigned n,
                                           uint64_t *too_long)
{
	static unsigned (*const table[])(struct driver_ring *, const struct frame *, unsigned, uint64_t *) =
	        ISA_TABLE(driver_ring_deliver);

	return table[ring->isa](ring, frames, n, too_long);
}

// Transmit frames of a receive ring's batch, before it is released, by exchanging buffers; small ones by
// copy. Each device must know the memory of the other's buffers. Returns how many were taken.
ISA_DECLARE(unsigned, driver_ring_pass,
            (struct driver_ring * from, struct driver_ring *to, const struct frame *frames, unsigned n));

static inline unsigned driver_ring_pass(struct driver_ring *from, struct driver_ring *to,
                                        const struct frame *frames, unsigned n)
{
	static unsigned (*const table[])(struct driver_ring *, struct driver_ring *, const struct frame *,
	                                 unsigned) = ISA_TABLE(driver_ring_pass);

	return table[to->isa](from, to, frames, n);
}

// Transmit, nothing to send: have in this core's cache what the next frame needs. As device_ring_warm().
void driver_ring_warm(const struct driver_ring *ring);
