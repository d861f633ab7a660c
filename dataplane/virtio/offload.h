// SPDX-License-Identifier: BSD-3-Clause
// Checksum and segmentation offloads of guests (virtio 1.2 s5.1.6; USO: 1.3): what a sender asks for in its virtio-net
// header is checked, passed on to a receiver that accepts it, and done here for all others. docs/design/ports.md
//
// The header and the headers of the frame that it speaks of are read once, into our memory. They are checked there, and
// sent from there: what the guest changes afterwards reaches nobody but in the payload.
#pragma once

#include "shm/frames.h"
#include "virtio/features.h"

struct device_ring;

// Why a frame is dropped for what its header asks: X(name, key of the port's counters).
#define FOR_EACH_OFFLOAD_REFUSAL(X)                                                                          \
	X(TYPE, "gso_type")     /* none that was negotiated, or without NEEDS_CSUM */                        \
	X(CHECKSUM, "checksum") /* csum_start or csum_offset: not in the frame, or not behind its headers */ \
	X(HEADERS, "headers")   /* the frame is no whole datagram of the type, or not of that transport */   \
	X(SIZE, "gso_size")     /* 0, or more than OFFLOAD_SEGMENTS_MAX segments */
#define OFFLOAD_REFUSAL_NAME(name, key) OFFLOAD_REFUSED_##name,
enum offload_refusal {
	FOR_EACH_OFFLOAD_REFUSAL(OFFLOAD_REFUSAL_NAME) OFFLOAD_REFUSALS,
	OFFLOAD_FINE = OFFLOAD_REFUSALS
};

enum {
	OFFLOAD_HEAD_BYTES = 256,   // read of a frame with an offload: all headers lie in them
	OFFLOAD_SEGMENTS_MAX = 256, // of one frame: bounds the time that it takes
	OFFLOAD_LENGTH_MAX = 65557, // a datagram of 65535 bytes, Ethernet header and two tags
	OFFLOAD_OUT_PIECES = 3 * PIECES_MAX,
	OFFLOAD_TAG_BYTES = 8, // that a bridge may add
};

// A frame's offload, checked.
struct frame_offload {
	struct virtio_net_hdr header; // to be passed on: nothing in it was not checked
	uint8_t needs;                // enum offload_bits, of a receiver that gets the frame as it is
	bool udp;
	uint16_t l3, segments; // segments: 0 if only a checksum is missing
	uint32_t length; // of the frame that this speaks of: a bridge makes it longer or shorter before l3
};

// Frames as they leave, gathered for one call of the receiver.
struct offload_out {
	unsigned count, piece_count;
	bool headers_needed;
	struct frame frames[BURST_FRAMES_MAX];
	struct virtio_net_hdr headers[BURST_FRAMES_MAX];
	uint8_t heads[BURST_FRAMES_MAX][OFFLOAD_HEAD_BYTES + OFFLOAD_TAG_BYTES];
	struct piece pieces[OFFLOAD_OUT_PIECES];
};

// What a queue of a sender has beside its ring. One worker; one view at a time.
struct offload_room {
	unsigned used; // offloads of the view that was peeked last
	uint64_t refused[OFFLOAD_REFUSALS];
	struct frame_offload offloads[BURST_FRAMES_MAX];
	uint8_t heads[BURST_FRAMES_MAX][OFFLOAD_HEAD_BYTES];
	struct piece pieces[PIECES_MAX + BURST_FRAMES_MAX];
	struct offload_out out;
} __attribute__((aligned(64)));

// view_peek() of a sender with offloads: frame.offload says which of them a frame has. What is refused is counted in room,
// and is in no view.
unsigned offload_peek(struct device_ring *from, struct view *view, unsigned n, struct frames_lost *lost,
                      struct offload_room *room);

// Hands n frames on, with their headers or NULL; returns how many were taken.
typedef unsigned offload_sink(void *to, const struct frame *frames, const struct virtio_net_hdr *headers,
                              unsigned n);

// offered: frames after segmentation.
struct offload_sent {
	unsigned offered, taken;
};

// Send frames of the last view to a receiver that accepts these bits: in order; the first that is not taken ends it.
struct offload_sent offload_send(struct offload_room *room, const struct frame *frames, unsigned n,
                                 uint8_t accepts, offload_sink *sink, void *to);
