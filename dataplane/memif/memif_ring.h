// SPDX-License-Identifier: BSD-3-Clause
// One ring of a memif as one of its ends sees it, on raw memory: no sockets, no mbufs. Used by one worker; set up and
// torn down while that worker is elsewhere.
//
// The other end is hostile by assumption, whichever it is: it can write to all of the shared memory. An index or a
// descriptor is read once and checked: against the ring, against the regions (the server's end), against our own buffers,
// whose places are never read from the ring (the client's end). A ring that breaks a rule stops, with its fault, until
// it is set up anew.
//
// A client knows the buffer of each slot by itself: the same all the time, but for those that it exchanges with another ring
// of its pool (memif_ring_pass()). A frame takes one descriptor where its buffer holds it, else a chain.
#pragma once

#include "base/isa.h"
#include "base/packet.h"
#include "shm/copy.h"
#include "shm/doorbell.h"
#include "shm/frames.h"
#include "shm/guest_memory.h"
#include "shm/pool.h"
#include "memif/memif_message.h"

enum {
	MEMIF_CHAIN_MAX = 64,         // descriptors of a frame
	MEMIF_RING_REGION = 0,        // of a client: its rings,
	MEMIF_BUFFER_REGION = 1,      // and its pool of buffers
	MEMIF_BUFFER_BYTES = 2048,    // of a client: what DPDK's server takes for given
	MEMIF_LEND_MIN = 128,         // bytes of a buffer that is lent, however short its frame
	MEMIF_SPARE_BYTES = 64 << 10, // a frame's, of any length
};

// Why a ring has stopped.
enum memif_fault {
	MEMIF_OK,
	MEMIF_BAD_INDEX,   // more than the ring has slots, or fewer than before
	MEMIF_BAD_ADDRESS, // a buffer that is not in the regions
	MEMIF_BAD_LENGTH,  // more than our buffer holds
	MEMIF_BAD_CHAIN,   // longer than the ring or MEMIF_CHAIN_MAX
	MEMIF_FAULTS,
};

struct memif_ring {
	struct doorbell bell;  // first, as in all rings
	bool client, receives; // which end we are
	bool looked; // at the other end's index since the last look at its word, which is in the same line: it is near
	uint8_t sends;  // free running
	uint8_t isa;    // enum isa: whose code copies the frames
	uint16_t size;  // a power of two
	uint16_t at;    // free running: the slot that is next
	uint16_t seen;  // the other end's index when we last looked
	uint16_t found; // slots that the last view had
	unsigned last_region;
	enum memif_fault fault;
	struct memif_shared *shared;
	const struct guest_memory *memory; // server: region i begins at address i << 32
	struct piece *pieces;              // client: of each slot its buffer, and the frame that came in it
	const uint8_t *base;               // client: where the region of the buffers begins
	const uint16_t *lent;              // server: the lengths of the frames that were reserved
	uint8_t *spare; // server that lends: MEMIF_SPARE_BYTES, for a frame that takes more than one buffer
	bool spare_lent;
};

// Bytes of memory that a ring takes, a multiple of a line.
static inline size_t memif_ring_bytes(unsigned size)
{
	return RTE_ALIGN_CEIL(sizeof(struct memif_shared) + size * sizeof(struct memif_descriptor),
	                      (size_t)64);
}

// Set up the client's end in memory of ours, which holds zeros: data of size pieces are buffers of MEMIF_BUFFER_BYTES in the
// region that begins at base. The pieces stay the caller's. The server may look at it; memif_ring_start() begins, once the
// server is connected.
void memif_ring_make(struct memif_ring *ring, bool receives, unsigned size, void *shared,
                     struct piece *pieces, const uint8_t *base);
void memif_ring_start(struct memif_ring *ring);

// Set up the server's end of a ring of a client at an offset of its region. memory stays the caller's and must outlive the
// ring. Returns 0, or -EINVAL for one that is misaligned, not wholly in the region, or has no cookie.
int memif_ring_attach(struct memif_ring *ring, bool receives, unsigned log2_size, uint16_t region,
                      uint32_t offset, const struct guest_memory *memory);

// A fault in words: what the other end did.
const char *memif_fault_text(unsigned fault);

// Describe up to n (at most BURST_FRAMES_MAX) frames that have come, where they lie, in view. Returns how many slots these
// are, in view->batch.count; *lost counts those that make no frame. The ring is unchanged until memif_ring_release() gives that
// many slots back.
unsigned memif_ring_peek(struct memif_ring *ring, struct view *view, unsigned n, struct frames_lost *lost);
void memif_ring_release(struct memif_ring *ring, unsigned slots);

// The same for who does not look at the frames: nothing of them is fetched.
unsigned memif_ring_peek_unread(struct memif_ring *ring, struct view *view, unsigned n,
                                struct frames_lost *lost);

// The same of the first frames that are in one piece each, of a server: where they lie in spans, and in view only how many
// slots to release. 0: there are none, or the next one is for memif_ring_peek().
unsigned memif_ring_peek_spans(struct memif_ring *ring, struct view *view, struct vnf_frame *spans,
                               unsigned n);

// Whether both are rings of clients that have one pool.
static inline bool memif_ring_can_pass(const struct memif_ring *from, const struct memif_ring *to)
{
	return to->client && from->base == to->base;
}

// Send frames of a ring's view, each of them once and before it is released, by exchanging buffers with one that can
// (memif_ring_can_pass()). Returns how many, in order: fewer than n if the ring is full, or at a frame that is not in one
// buffer as it came.
unsigned memif_ring_pass(struct memif_ring *from, struct memif_ring *to, const struct frame *frames,
                         unsigned n);

// Copy up to n frames (at most BURST_FRAMES_MAX), in order. Returns how many were taken: a frame that no chain holds is taken
// and counted in *too_long.
ISA_DECLARE(unsigned, memif_deliver,
            (struct memif_ring * ring, const struct frame *frames, unsigned n, uint64_t *too_long));

static inline unsigned memif_deliver(struct memif_ring *ring, const struct frame *frames, unsigned n,
                                     uint64_t *too_long)
{
	static unsigned (*const table[])(struct memif_ring *, const struct frame *, unsigned, uint64_t *) =
	        ISA_TABLE(memif_deliver);

	return table[ring->isa](ring, frames, n, too_long);
}

// The same in two steps, as ring_place() and ring_send_placed().
ISA_DECLARE(unsigned, memif_place_frames,
            (struct memif_ring * ring, const struct frame *frames, unsigned n, struct placed *placed));

static inline unsigned memif_place_frames(struct memif_ring *ring, const struct frame *frames, unsigned n,
                                          struct placed *placed)
{
	static unsigned (*const table[])(struct memif_ring *, const struct frame *, unsigned,
	                                 struct placed *) = ISA_TABLE(memif_place_frames);

	return table[ring->isa](ring, frames, n, placed);
}

void memif_send_placed(struct memif_ring *ring, const struct placed *placed, unsigned n);

// Lend up to n (at most BURST_FRAMES_MAX) buffers of the client for frames of these lengths, as port_reserve(); send the first n
// of these, or none if the ring has no chain for a long one now. A server that has a spare buffer. lengths stays the
// caller's until then. A frame that no chain holds is taken and counted in *too_long.
unsigned memif_ring_reserve(struct memif_ring *ring, const uint16_t *lengths, uint8_t **data, unsigned n);
unsigned memif_ring_publish(struct memif_ring *ring, unsigned n, uint64_t *too_long);

// Nothing to send: have in this core's cache what the next frame needs.
void memif_ring_warm(struct memif_ring *ring);

// Before something is sent: whether the other end is to be woken for what was sent before, as far as can be seen. Its word
// travels between the cores each time: who sends again and again looks when the line has come anyway, and at every
// MEMIF_LOOK_EACH.
enum { MEMIF_LOOK_EACH = 8 };
static inline bool memif_ring_look(struct memif_ring *ring)
{
	if (likely(!ring->looked) && ++ring->sends % MEMIF_LOOK_EACH)
		return false;
	ring->looked = false;
	return doorbell_look(&ring->bell);
}

enum { MEMIF_LINE_SLOTS = 64 / sizeof(struct memif_descriptor) };

// --- For memif_ring.c and memif_run.c --------------------------------------------------------------------

static inline struct memif_descriptor *memif_slot(const struct memif_ring *ring, unsigned distance)
{
	return &ring->shared->descriptors[(ring->at + distance) & (ring->size - 1u)];
}

// How many of n slots from a distance on follow one another: the others begin the ring again.
static inline unsigned memif_straight(const struct memif_ring *ring, unsigned distance, unsigned n)
{
	return RTE_MIN(n, ring->size - ((ring->at + distance) & (ring->size - 1u)));
}

// One load, and one store: flags, region and length.
static inline uint64_t memif_half(const struct memif_descriptor *d)
{
	return __atomic_load_n((const ring_word *)(const void *)d, __ATOMIC_RELAXED);
}

static inline void memif_set_half(struct memif_descriptor *d, uint64_t half)
{
	__atomic_store_n((ring_word *)(void *)d, half, __ATOMIC_RELAXED);
}

static inline uint32_t memif_offset(const struct memif_descriptor *d)
{
	return __atomic_load_n(&d->offset, __ATOMIC_RELAXED);
}

// That of a frame in the buffer of a half: its region stays.
static inline uint64_t memif_half_of(uint64_t room, uint32_t length, uint16_t flags)
{
	return (uint64_t)length << 32 | (room & 0xffff0000) | flags;
}

// What a client says of a buffer of its own.
static inline uint64_t memif_own_half(uint32_t length)
{
	return memif_half_of(MEMIF_BUFFER_REGION << 16, length, 0);
}

// A slot, whose half says of which region it is, has a frame of this length. A descriptor of a client that says the same as
// the last time round is not written: its line stays in both caches.
static __rte_always_inline void memif_say_length(const struct memif_ring *ring, unsigned distance,
                                                 uint64_t room, uint32_t length, bool client)
{
	struct memif_descriptor *d = memif_slot(ring, distance);
	uint64_t half = client ? memif_own_half(length) : memif_half_of(room, length, 0);

	if (!client || memif_half(d) != half)
		memif_set_half(d, half);
}

static inline void memif_set_place(const struct memif_ring *ring, struct memif_descriptor *d,
                                   const uint8_t *data)
{
	__atomic_store_n(&d->offset, (uint32_t)(data - ring->base), __ATOMIC_RELAXED);
}

// Both ends write each descriptor of a ring on which the server sends: take the lines of the next slots for writing before they
// are read, so that each comes once and not twice, and all at a time.
static __rte_always_inline void memif_take_lines(const struct memif_ring *ring, unsigned slots)
{
	for (unsigned i = 0; i < slots; i += MEMIF_LINE_SLOTS)
		prefetch_to_write(memif_slot(ring, i));
	if (slots)
		prefetch_to_write(memif_slot(ring, slots - 1));
}

// A server only reads the descriptors of what comes. After a view that had some, those of the next come while the index is read:
// one wait for both.
static __rte_always_inline void memif_fetch_lines(const struct memif_ring *ring, unsigned slots)
{
	for (unsigned i = 0; i < slots; i += MEMIF_LINE_SLOTS)
		rte_prefetch0(memif_slot(ring, i));
}

// How many slots are ours to use, if they are fewer than wanted when we last looked: then the other end's index is looked at;
// its line travels between the cores each time.
static inline unsigned memif_ready(struct memif_ring *ring, unsigned wanted)
{
	const uint16_t more = ring->client && !ring->receives ? ring->size : 0;
	uint16_t ready = (uint16_t)(ring->seen + more - ring->at);

	if (unlikely(ring->fault != MEMIF_OK))
		return 0;
	if (ready < wanted) {
		struct memif_shared *shared = ring->shared;

		const uint16_t known = ready;

		ring->looked = true;
		ring->seen = __atomic_load_n(ring->client ? &shared->tail : &shared->head, __ATOMIC_ACQUIRE);
		ready = (uint16_t)(ring->seen + more - ring->at);
		if (unlikely(ready > ring->size || ready < known)) {
			ring->fault = MEMIF_BAD_INDEX;
			return 0;
		}
	}
	return ready;
}

// The first slots are done with: the other end sees it.
static inline void memif_advance(struct memif_ring *ring, unsigned slots)
{
	struct memif_shared *shared = ring->shared;

	ring->at += (uint16_t)slots;
	if (ring->client)
		__atomic_store_n(&shared->head, (uint16_t)(ring->at + (ring->receives ? ring->size : 0)),
		                 __ATOMIC_RELEASE);
	else
		__atomic_store_n(&shared->tail, ring->at, __ATOMIC_RELEASE);
}

static inline uint8_t *memif_buffer(const struct memif_ring *ring, unsigned distance)
{
	return ring->pieces[(ring->at + distance) & (ring->size - 1u)].data;
}

// The address that a slot gives for its bytes. For servers.
static inline uint64_t memif_address(const struct memif_ring *ring, unsigned distance, uint64_t half)
{
	return (half << 16 & 0xffff00000000) | memif_offset(memif_slot(ring, distance));
}

// Where the bytes of a slot are: of a frame that came, or of an empty buffer. NULL: *fault says why not.
static inline uint8_t *memif_place(struct memif_ring *ring, unsigned distance, uint64_t half,
                                   enum memif_fault *fault)
{
	uint32_t length = half >> 32, run = length;
	uint8_t *data;

	if (ring->client) {
		*fault = MEMIF_BAD_LENGTH;
		return length > MEMIF_BUFFER_BYTES ? NULL : memif_buffer(ring, distance);
	}
	*fault = MEMIF_BAD_ADDRESS;
	data = guest_memory_run(ring->memory, &ring->last_region, memif_address(ring, distance, half), &run);
	return run == length ? data : NULL;
}

// The same of a server for slot after slot, as far as they are in one region, near: nearly all are, and a copy of it stays in
// registers. NULL: look by memif_place().
static __rte_always_inline uint8_t *memif_place_near(const struct guest_region *near,
                                                     const struct memif_ring *ring, unsigned distance,
                                                     uint64_t half)
{
	uint64_t offset = memif_address(ring, distance, half) - near->address, length = half >> 32;

	return likely(offset < near->size && length <= near->size - offset) ? near->host + offset : NULL;
}

// What slot after slot of a client says is the same, as a rule, but for the offset: flags, region and length. Then what was
// found of one of them is true of the next one.
struct memif_alike {
	uint64_t half; // what they say
	uint32_t length;
	uint64_t offsets; // they may be below this one; 0: their region is none
	uint8_t *host;    // where the region begins
};

static inline struct memif_alike memif_alike_of(const struct memif_ring *ring, uint64_t half)
{
	const uint64_t address = half << 16 & 0xffff00000000;
	const uint32_t length = half >> 32;
	const unsigned found = guest_memory_find(ring->memory, address);
	const struct guest_region *region = &ring->memory->regions[found];

	if (unlikely(found == ring->memory->count || region->address != address || length > region->size))
		return (struct memif_alike){half, length, 0, NULL};
	return (struct memif_alike){half, length, region->size - length + 1, region->host};
}

static inline struct guest_region memif_region_near(const struct memif_ring *ring)
{
	return ring->memory->regions[ring->last_region];
}

// An empty buffer to fill: what its slot says of it, and its place. A client knows both.
static inline uint64_t memif_room_half(const struct memif_ring *ring, unsigned distance)
{
	return ring->client ? memif_own_half(MEMIF_BUFFER_BYTES) : memif_half(memif_slot(ring, distance));
}

static inline uint8_t *memif_room(struct memif_ring *ring, unsigned distance, uint64_t half)
{
	enum memif_fault fault;
	uint8_t *data = memif_place(ring, distance, half, &fault);

	if (unlikely(data == NULL && distance == 0)) // what comes before it is good
		ring->fault = fault;
	return data;
}

// Copy a frame into a chain of buffers that begins at this distance. Returns how many; 0 if there are not enough now; more than
// MEMIF_CHAIN_MAX if there never will be.
unsigned memif_deliver_chain(struct memif_ring *ring, unsigned first, const struct frame *frame);
