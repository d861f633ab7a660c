// SPDX-License-Identifier: BSD-3-Clause
// Our driver and a malicious device: used rings with ids, lengths and indices that cannot be, or that change while they are read
// (test/turned.h). Whatever it says, the driver reads and writes its own buffers alone, each within its room, and no buffer
// is in two slots. The same seed does the same.
//
//     driver_race [ROUNDS [SEED]]
#include <stdio.h>
#include <stdlib.h>

#include "base/isa.h"
#include "shm/doorbell.h"
#include "virtio/device_frames.h"

// A copy, beside that of the library: all of its loads are from the shared memory.
#include "test/turned.h"
#define ISA_SUFFIX scalar
#include "virtio/driver_ring.c"
#include "virtio/driver_run.c"
#undef __atomic_load_n

enum { SIZE = 16, ROOM = 256, SLOTS = 2 * SIZE, STEPS = 400, LIE = 64 };

// A receive and a transmit ring, whose buffers may change places.
struct rings {
	struct driver_ring receive, transmit;
	struct piece pieces[SLOTS]; // those of receive come first
	uint8_t *memory[2], *buffers;
};

static unsigned long received, sent, passed, faults[DRIVER_FAULTS];

static void must(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "driver_race: not so: %s\n", what);
	abort();
}

static unsigned random_below(unsigned n)
{
	return (unsigned)((turned_random() >> 16) % n);
}

static void *take_memory(size_t bytes)
{
	void *at = aligned_alloc(DRIVER_LINE, RTE_ALIGN_CEIL(bytes, DRIVER_LINE));

	must(at != NULL, "there is memory");
	return memset(at, 0, bytes);
}

static void rings_open(struct rings *r)
{
	const size_t stride = shm_pool_stride(ROOM);

	r->buffers = take_memory(SLOTS * stride);
	for (unsigned i = 0; i < SLOTS; i++)
		r->pieces[i].data = r->buffers + i * stride + DRIVER_LINE;
	for (unsigned i = 0; i < 2; i++) {
		r->memory[i] = take_memory(driver_ring_bytes(SIZE));
		driver_ring_init(i ? &r->transmit : &r->receive, i == 0, SIZE, ROOM, r->memory[i],
		                 &r->pieces[i * SIZE]);
		driver_ring_reset(i ? &r->transmit : &r->receive, random_below(2), false);
	}
}

static void rings_close(struct rings *r)
{
	turned_forget(); // its memory goes
	free(r->memory[0]);
	free(r->memory[1]);
	free(r->buffers);
}

// --- What must hold --------------------------------------------------------------------------------------

static unsigned buffer_of(const struct rings *r, const uint8_t *data)
{
	const size_t stride = shm_pool_stride(ROOM), offset = (size_t)(data - r->buffers);

	must(offset < SLOTS * stride && offset % stride == DRIVER_LINE, "a buffer of ours");
	return (unsigned)(offset / stride);
}

static void check_frame(const struct rings *r, const uint8_t *data, uint32_t length)
{
	buffer_of(r, data);
	must(length > 0 && length <= ROOM, "a frame has bytes, and its buffer holds them");
}

static void check_buffers(const struct rings *r)
{
	uint32_t there = 0;

	for (unsigned i = 0; i < SLOTS; i++)
		there |= UINT32_C(1) << buffer_of(r, r->pieces[i].data);
	must(there == UINT32_MAX, "each buffer is in one slot");
}

// --- The device --------------------------------------------------------------------------------------------

// Use the next buffers of a ring as it should be done, but for a detail.
static void device_uses(struct driver_ring *ring, unsigned n)
{
	uint16_t index = ring->used->idx;
	const uint16_t available = (uint16_t)(ring->avail->idx - index);

	for (unsigned i = 0; i < n && i < available; i++, index++) {
		struct vring_used_elem *used = &ring->used->ring[index % SIZE];

		used->id = random_below(LIE) ? index % SIZE : random_below(70000);
		used->len = random_below(LIE) ? RING_HEADER + ROOM - random_below(ROOM / 4)
		                              : random_below(2 * ROOM);
		if (random_below(2))
			used->len = RING_HEADER + 100; // spans are of one length
	}
	ring->used->idx = random_below(LIE) ? index : (uint16_t)(index + random_below(40) - 20);
}

// --- The driver --------------------------------------------------------------------------------------------

static void receive(struct rings *r, unsigned n, bool pass)
{
	struct frame frames[BURST_FRAMES_MAX];
	unsigned count, empty, buffers = driver_ring_peek(&r->receive, n, frames, &count, &empty);

	must(buffers <= SIZE && count + empty == buffers, "each buffer makes a frame or none, once");
	for (unsigned i = 0; i < count; i++)
		check_frame(r, scatter_start(&frames[i].at), frames[i].length);
	received += count;
	if (pass && count)
		passed += driver_ring_pass(&r->receive, &r->transmit, frames, count);
	driver_ring_release(&r->receive, buffers);
}

static void receive_spans(struct rings *r, unsigned n)
{
	struct vnf_frame spans[BURST_FRAMES_MAX];

	n = driver_ring_peek_spans(&r->receive, spans, n);
	must(n <= SIZE, "no buffer twice");
	for (unsigned i = 0; i < n; i++)
		check_frame(r, spans[i].data, spans[i].length);
	received += n;
	driver_ring_release(&r->receive, n);
}

static void send_in_place(struct rings *r, unsigned n)
{
	uint16_t lengths[BURST_FRAMES_MAX];
	uint8_t *data[BURST_FRAMES_MAX];

	for (unsigned i = 0; i < n; i++)
		lengths[i] = (uint16_t)(1 + random_below(ROOM));
	n = driver_ring_reserve(&r->transmit, lengths, data, n);
	must(n <= SIZE, "no buffer twice");
	for (unsigned i = 0; i < n; i++) {
		check_frame(r, data[i], lengths[i]);
		memset(data[i], 0x5a, lengths[i]);
	}
	sent += driver_ring_publish(&r->transmit, n);
}

static void send_copies(struct rings *r, unsigned n)
{
	static uint8_t bytes[2 * ROOM];
	const struct piece piece = {bytes, 1 + random_below(ROOM + ROOM / 8)};
	struct frame frames[BURST_FRAMES_MAX];
	uint64_t too_long = 0;

	for (unsigned i = 0; i < n; i++)
		frames[i] = (struct frame){{&piece, 0}, piece.length, 0};
	sent += driver_ring_deliver(&r->transmit, frames, n, &too_long) - too_long;
}

static void driver_polls(struct rings *r)
{
	unsigned n = 1 + random_below(2 * SIZE); // more than there are

	switch (random_below(5)) {
	case 0:
		receive(r, n, false);
		break;
	case 1:
		receive(r, n, true);
		break;
	case 2:
		receive_spans(r, n);
		break;
	case 3:
		send_in_place(r, n);
		break;
	default:
		send_copies(r, n);
	}
	driver_ring_warm(&r->transmit);
}

// A ring that has stopped begins afresh, as with another device.
static void revive(struct driver_ring *ring)
{
	faults[ring->fault]++;
	if (ring->fault != DRIVER_OK)
		driver_ring_reset(ring, random_below(2), false);
}

static void one_round(void)
{
	struct rings r;

	rings_open(&r);
	for (unsigned step = 0; step < STEPS; step++) {
		device_uses(random_below(2) ? &r.receive : &r.transmit, 1 + random_below(SIZE));
		driver_polls(&r);
		check_buffers(&r);
		revive(&r.receive);
		revive(&r.transmit);
	}
	rings_close(&r);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000;

	turned_state = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	isa_force("scalar");
	for (unsigned long i = 0; i < rounds; i++)
		one_round();
	printf("%lu rounds: %lu frames received, %lu sent, %lu passed\n", rounds, received, sent, passed);
	for (unsigned i = DRIVER_OK + 1; i < DRIVER_FAULTS; i++)
		printf("%8lu times %s\n", faults[i], driver_fault_text(i));
	return 0;
}
