// SPDX-License-Identifier: BSD-3-Clause
// What xconnect() does for plain buffers: copies that keep to their bytes, what is not plain among them, and
// giving a batch back by one entry, or by those that differ from the last time round.
#include <sys/mman.h>

#include "test/each_isa.h"
#include "virtio/device_frames.h"
#include "test/pair.h"

// A region of one page before one that must not be touched.
struct guarded {
	uint8_t *bytes;
	uint64_t address;
};

enum { PAGE = 4096, GUARDED_ADDRESS = 0x10000000 };

static void guarded_open(struct guarded *g, struct guest *guest)
{
	g->bytes = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(g->bytes != MAP_FAILED);
	assert_int_equal(mprotect(g->bytes + PAGE, PAGE, PROT_NONE), 0);
	g->address = GUARDED_ADDRESS;
	assert_int_equal(guest_memory_add(&guest->memory, g->address, PAGE, g->bytes), 0);
}

// Both pieces end where the memory ends, and the receiver's is of the frame's exact size: nothing before it
// or behind it is touched, of any length.
static void copies_keep_to_their_bytes(void **state)
{
	struct guarded from, to;
	struct pair p;

	pair_open(&p, layouts[3], layouts[3], 64);
	guarded_open(&from, &p.a);
	guarded_open(&to, &p.b);
	for (uint32_t length = 1; length < 1600; length += length < 300 ? 1 : 61) {
		uint32_t bytes = RING_HEADER + length, written;
		const uint8_t *frame = to.bytes + PAGE - length;

		for (uint32_t i = 0; i < length; i++)
			from.bytes[PAGE - length + i] = byte_of(length, i);
		memset(to.bytes, 0xee, PAGE);
		driver_offer(&p.a.transmit, &(struct guest_range){from.address + PAGE - bytes, bytes}, 1,
		             false);
		driver_offer(&p.b.receive, &(struct guest_range){to.address + PAGE - bytes, bytes}, 1, false);
		assert_int_equal(xconnect(&p.a.transmit.ring, &p.b.receive.ring, 32).forwarded, 1);
		assert_true(driver_collect(&p.b.receive, &written) >= 0 && written == bytes);
		assert_true(driver_collect(&p.a.transmit, &written) >= 0 && written == 0);
		assert_int_equal(to.bytes[PAGE - bytes - 1], 0xee);
		for (uint32_t i = 0; i < length; i++)
			assert_int_equal(frame[i], byte_of(length, i));
	}
	munmap(from.bytes, 2 * PAGE);
	munmap(to.bytes, 2 * PAGE);
	pair_close(&p);
}

// A buffer of several pieces between plain ones, at each place of a burst: order is kept, nothing is lost.
static void odd_ones_among_plain_ones(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++)
		for (unsigned odd = 0; odd < 9; odd++) {
			struct pair p;

			pair_open(&p, layouts[l], layouts[l], 64);
			for (unsigned i = 0; i < 9; i++)
				assert_true(offer_frame(&p, 60, i == odd ? 1 : 0));
			assert_int_equal(driver_offer_own(&p.b.receive, 9, 2048), 9);
			assert_int_equal(xconnect(&p.a.transmit.ring, &p.b.receive.ring, 32).forwarded, 9);
			assert_int_equal(collect_sent(&p), 9);
			for (unsigned i = 0; i < 9; i++)
				collect_frame(&p, 60, 1);
			pair_close(&p);
		}
}

// With VIRTIO_F_IN_ORDER one used entry is for all that were taken of the sender, none for more.
static void one_entry_returns_a_batch(void **state)
{
	for (unsigned l = COUNT(layouts) - 2; l < COUNT(layouts); l++) {
		const struct device_ring *ring;
		uint32_t written;
		struct pair p;

		pair_open(&p, layouts[l], layouts[l], 64);
		ring = &p.a.transmit.ring;
		for (unsigned i = 0; i < 40; i++)
			assert_true(offer_frame(&p, 60, 0));
		assert_int_equal(driver_offer_own(&p.b.receive, 40, 2048), 40);
		assert_int_equal(xconnect(&p.a.transmit.ring, &p.b.receive.ring, 32).forwarded, 32);
		if (ring->packed)
			assert_int_equal(ring->desc_packed[0].id, 31);
		else
			assert_int_equal(ring->used->ring[0].id, 31);
		for (unsigned i = 0; i < 32; i++)
			assert_int_equal(driver_collect(&p.a.transmit, &written), i);
		assert_int_equal(driver_collect(&p.a.transmit, &written), -1);
		for (unsigned i = 0; i < 32; i++)
			collect_frame(&p, 60, 1);
		pair_close(&p);
	}
}

// Twenty frames for a receiver of twelve buffers: what is dropped is given back with what was forwarded, in one
// commit. It is not read a second time.
static void a_full_receiver_costs_no_second_look(void **state)
{
	for (unsigned l = COUNT(layouts) - 2; l < COUNT(layouts); l++) {
		struct xconnect_counts done;
		const struct device_ring *ring;
		uint32_t written;
		struct pair p;

		pair_open(&p, layouts[l], layouts[l], 64);
		ring = &p.a.transmit.ring;
		for (unsigned i = 0; i < 19; i++)
			assert_true(offer_frame(&p, 60, 0));
		driver_offer_own(&p.a.transmit, 1, ring->header_bytes); // no frame in it
		assert_int_equal(driver_offer_own(&p.b.receive, 12, 2048), 12);
		done = xconnect(&p.a.transmit.ring, &p.b.receive.ring, 32);
		assert_int_equal(done.received, 19);
		assert_int_equal(done.forwarded, 12);
		assert_int_equal(done.lost.bad, 1);
		assert_int_equal(ring->packed ? ring->desc_packed[0].id : ring->used->ring[0].id, 19);
		for (unsigned i = 0; i < 20; i++)
			assert_int_equal(driver_collect(&p.a.transmit, &written), i);
		for (unsigned i = 0; i < 12; i++)
			collect_frame(&p, 60, 1);
		pair_close(&p);
	}
}

// A receiver without a buffer: all are dropped, and counted; it is remembered until it has one again, and then gets all.
static void a_receiver_without_buffers_is_remembered(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++) {
		const struct device_ring *to;
		struct pair p;

		pair_open(&p, layouts[l], layouts[l], 64);
		to = &p.b.receive.ring;
		for (unsigned round = 0; round < 3; round++) {
			bool room = round == 2;

			for (unsigned i = 0; i < 8; i++)
				assert_true(offer_frame(&p, 60, 0));
			assert_int_equal(driver_offer_own(&p.b.receive, room ? 8 : 0, 2048), room ? 8 : 0);
			assert_int_equal(xconnect(&p.a.transmit.ring, &p.b.receive.ring, 32).forwarded,
			                 room ? 8 : 0);
			assert_int_equal(to->starved, !room);
			assert_int_equal(collect_sent(&p), 8);
		}
		p.came = 16;
		for (unsigned i = 0; i < 8; i++)
			collect_frame(&p, 60, 1);
		pair_close(&p);
	}
}

enum { USED_SIZE = 8, USED_BUFFER_BYTES = 256 };

// One frame of this length into each buffer of the ring.
static void deliver_round(struct device_ring *ring, uint32_t length)
{
	static uint8_t bytes[USED_BUFFER_BYTES];
	struct piece piece = {bytes, length};
	struct frame frames[USED_SIZE];
	uint64_t too_long = 0;

	for (unsigned i = 0; i < USED_SIZE; i++)
		frames[i] = (struct frame){{&piece, 0}, length, 0};
	ring->avail->idx = (uint16_t)(ring->avail->idx + USED_SIZE);
	assert_int_equal(deliver(ring, frames, USED_SIZE, &too_long), USED_SIZE);
	assert_int_equal(ring->used->idx, ring->avail->idx);
	for (unsigned i = 0; i < USED_SIZE; i++) {
		assert_int_equal(ring->used->ring[i].id, i);
		assert_int_equal(ring->used->ring[i].len, RING_HEADER + length);
	}
}

// The elements begin a page of their own, which cannot be written while they would only say the same again.
static void a_used_element_is_written_where_it_differs(void **state)
{
	enum { RINGS, INDEX, ELEMENTS, BUFFERS, PAGES };
	uint8_t *bytes = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct device_ring_layout layout = {.desc = bytes + RINGS * PAGE,
	                                    .driver = bytes + RINGS * PAGE + PAGE / 2,
	                                    .device = bytes + ELEMENTS * PAGE -
	                                              offsetof(struct vring_used, ring),
	                                    .size = USED_SIZE,
	                                    .features = BIT(VERSION_1),
	                                    .writable = true};
	struct guest_memory memory = {0};
	struct device_ring ring;

	assert_true(bytes != MAP_FAILED);
	assert_int_equal(guest_memory_add(&memory, GUARDED_ADDRESS, PAGES * PAGE, bytes), 0);
	assert_int_equal(device_ring_init(&ring, &layout, &memory), 0);
	for (uint16_t i = 0; i < USED_SIZE; i++) {
		ring.desc[i] = (struct vring_desc){GUARDED_ADDRESS + BUFFERS * PAGE + i * USED_BUFFER_BYTES,
		                                   USED_BUFFER_BYTES, VRING_DESC_F_WRITE, 0};
		ring.avail->ring[i] = i;
	}
	deliver_round(&ring, 60);
	assert_int_equal(mprotect(bytes + ELEMENTS * PAGE, PAGE, PROT_READ), 0);
	for (unsigned round = 0; round < 3; round++)
		deliver_round(&ring, 60);
	assert_int_equal(mprotect(bytes + ELEMENTS * PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	deliver_round(&ring, 61);
	munmap(bytes, PAGES * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(copies_keep_to_their_bytes),
	        cmocka_unit_test(odd_ones_among_plain_ones),
	        cmocka_unit_test(one_entry_returns_a_batch),
	        cmocka_unit_test(a_full_receiver_costs_no_second_look),
	        cmocka_unit_test(a_receiver_without_buffers_is_remembered),
	        cmocka_unit_test(a_used_element_is_written_where_it_differs),
	};

	return RUN_FOR_EACH_ISA("hop_run", tests);
}
