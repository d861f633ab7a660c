// SPDX-License-Identifier: BSD-3-Clause
// Frames from one guest to another, in plain memory: every byte, every drop, each layout of buffers.
#include "virtio/device_frames.h"
#include "test/pair.h"
#include "test/each_isa.h"

static const uint16_t bursts[] = {0, 1, 3, 4, 5, 31, 32, 33, 64};

static void every_burst_between_all_layouts(void **state)
{
	for (unsigned la = 0; la < COUNT(layouts); la++)
		for (unsigned lb = 0; lb < COUNT(layouts); lb++) {
			struct pair p;

			pair_open(&p, layouts[la], layouts[lb], 256);
			for (unsigned i = 0; i < 60; i++) {
				unsigned n = bursts[i % COUNT(bursts)], length = 1 + (i * 97) % 760;
				struct xconnect_counts done;

				for (unsigned k = 0; k < n; k++)
					assert_true(offer_frame(&p, length, 0));
				assert_int_equal(driver_offer_own(&p.b.receive, n, 2048), n);
				done = xconnect(&p.a.transmit.ring, &p.b.receive.ring, BURST_FRAMES_MAX);
				assert_int_equal(done.received, n);
				assert_int_equal(done.forwarded, n);
				assert_true(done.lost.bad + done.lost.oversize + done.too_long == 0);
				assert_int_equal(collect_sent(&p), n);
				for (unsigned k = 0; k < n; k++)
					collect_frame(&p, length, 1);
			}
			pair_close(&p);
		}
}

static void frames_in_pieces_arrive_whole(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++)
		for (unsigned shape = 0; shape < 4; shape++) {
			struct pair p;

			pair_open(&p, layouts[l], layouts[l], 64);
			for (unsigned length = 1; length < 1600; length += 53) {
				assert_true(offer_frame(&p, length, shape));
				assert_int_equal(driver_offer_own(&p.b.receive, 1, 1612), 1);
				assert_int_equal(
				        xconnect(&p.a.transmit.ring, &p.b.receive.ring, 32).forwarded, 1);
				assert_int_equal(collect_sent(&p), 1);
				collect_frame(&p, length, 1);
			}
			pair_close(&p);
		}
}

// Receive buffers of 100 bytes: a frame takes as many as it needs, and the header says how many.
static void a_frame_takes_several_buffers(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++) {
		struct pair p;

		if (!(layouts[l] & BIT(MERGE)))
			continue;
		pair_open(&p, layouts[l], layouts[l], 256);
		for (unsigned round = 0; round < 50; round++) {
			unsigned lengths[] = {88, 89, 60, 1488, 1, 187, 188, 189};
			struct xconnect_counts done;

			for (unsigned i = 0; i < COUNT(lengths); i++)
				assert_true(offer_frame(&p, lengths[i], i % 4));
			driver_offer_own(&p.b.receive, 40, 100);
			p.b.receive.ring.debt = 0; // so many buffers are dear
			done = xconnect(&p.a.transmit.ring, &p.b.receive.ring, 32);
			assert_int_equal(done.forwarded, COUNT(lengths));
			for (unsigned i = 0; i < COUNT(lengths); i++)
				collect_frame(&p, lengths[i], (12 + lengths[i] + 99) / 100);
			collect_sent(&p);
			for (struct ring_batch batch; device_ring_peek(&p.b.receive.ring, &batch, 64);) {
				uint32_t written; // give back what is left, for the next round

				for (unsigned i = 0; i < batch.count; i++)
					batch.buffers[i].written = 0;
				device_ring_commit(&p.b.receive.ring, &batch, batch.count);
				while (driver_collect(&p.b.receive, &written) >= 0)
					;
			}
		}
		pair_close(&p);
	}
}

// 20 frames, 12 buffers: 8 are dropped, none stays in A's ring.
static void what_does_not_fit_is_dropped(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++) {
		struct xconnect_counts done;
		struct pair p;

		pair_open(&p, layouts[l], layouts[l], 64);
		for (unsigned i = 0; i < 20; i++)
			assert_true(offer_frame(&p, 60, 0));
		driver_offer_own(&p.b.receive, 12, 2048);
		done = xconnect(&p.a.transmit.ring, &p.b.receive.ring, 32);
		assert_int_equal(done.received, 20);
		assert_int_equal(done.forwarded, 12);
		assert_int_equal(collect_sent(&p), 20);
		for (unsigned i = 0; i < 12; i++)
			collect_frame(&p, 60, 1);
		assert_int_equal(driver_collect(&p.b.receive, &(uint32_t){0}), -1);
		pair_close(&p);
	}
}

static void without_a_receiver_all_is_dropped(void **state)
{
	struct xconnect_counts done;
	struct pair p;

	pair_open(&p, layouts[3], layouts[3], 64);
	for (unsigned i = 0; i < 5; i++)
		assert_true(offer_frame(&p, 60, 0));
	done = xconnect(&p.a.transmit.ring, NULL, 32);
	assert_int_equal(done.received, 5);
	assert_int_equal(done.forwarded, 0);
	assert_int_equal(collect_sent(&p), 5);
	pair_close(&p);
}

// One that can never fit is lost; the one behind it is not.
static void a_frame_too_long_for_any_buffer_blocks_nothing(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++) {
		struct xconnect_counts done;
		struct pair p;

		pair_open(&p, layouts[l], layouts[l], 16);
		assert_true(offer_frame(&p, 1500, 0));
		assert_true(offer_frame(&p, 20, 0));
		driver_offer_own(&p.b.receive, 16, 80); // 16 * 80 < 1512
		done = xconnect(&p.a.transmit.ring, &p.b.receive.ring, 32);
		assert_int_equal(done.received, 2);
		assert_int_equal(done.forwarded, 2);
		assert_int_equal(done.too_long, 1);
		p.came = 1;
		collect_frame(&p, 20, 1);
		pair_close(&p);
	}
}

// Nothing behind the header, or more than a frame can be: freed and counted, not passed on.
static void buffers_without_a_frame_are_counted(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++) {
		struct guest_range many[GUEST_TABLE_ENTRIES];
		struct xconnect_counts done;
		struct driver *d;
		struct pair p;

		pair_open(&p, layouts[l], layouts[l], 64);
		d = &p.a.transmit;
		driver_offer_own(d, 1, d->ring.header_bytes);
		driver_offer_own(d, 1, 1);
		for (unsigned i = 0; i < 26; i++) // more than POLL_BYTES_MAX
			many[i] = (struct guest_range){driver_buffer(d, 20), GUEST_BUFFER_BYTES};
		assert_true(driver_offer(d, many, 26, true) >= 0);
		assert_true(offer_frame(&p, 60, 0));
		driver_offer_own(&p.b.receive, 64, 2048);
		done = xconnect(&p.a.transmit.ring, &p.b.receive.ring, 32);
		assert_int_equal(done.lost.bad, 2);
		assert_int_equal(done.received + done.lost.oversize, 0);
		assert_int_equal(p.a.transmit.ring.debt, 2); // of 28 descriptors, for two buffers
		p.a.transmit.ring.debt = 0;
		done = xconnect(&p.a.transmit.ring, &p.b.receive.ring, 32);
		assert_int_equal(done.lost.oversize, 1); // as long as this, it is all that a poll takes
		done = xconnect(&p.a.transmit.ring, &p.b.receive.ring, 32);
		assert_int_equal(done.received, 1);
		assert_int_equal(done.forwarded, 1);
		assert_int_equal(collect_sent(&p), 4);
		collect_frame(&p, 60, 1);
		pair_close(&p);
	}
}

// A lies and stops; what it sent before arrives. B lies and stops; A's frames are dropped.
static void a_liar_harms_itself_only(void **state)
{
	struct xconnect_counts done;
	struct pair p;

	pair_open(&p, layouts[2], layouts[2], 64);
	assert_true(offer_frame(&p, 60, 0) && offer_frame(&p, 60, 0));
	p.a.transmit.ring.desc[1].addr = 0;
	driver_offer_own(&p.b.receive, 2, 2048);
	assert_int_equal(xconnect(&p.a.transmit.ring, &p.b.receive.ring, 32).forwarded, 1);
	assert_int_equal(xconnect(&p.a.transmit.ring, &p.b.receive.ring, 32).received, 0);
	assert_int_equal(p.a.transmit.ring.fault, RING_BAD_ADDRESS);
	assert_int_equal(p.b.receive.ring.fault, RING_OK);
	pair_close(&p);

	pair_open(&p, layouts[2], layouts[2], 64);
	assert_true(offer_frame(&p, 60, 0));
	p.b.receive.ring.avail->idx = 65;
	done = xconnect(&p.a.transmit.ring, &p.b.receive.ring, 32);
	assert_true(done.received == 1 && done.forwarded == 0);
	assert_int_equal(p.b.receive.ring.fault, RING_BAD_INDEX);
	assert_int_equal(p.a.transmit.ring.fault, RING_OK);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_burst_between_all_layouts),
	        cmocka_unit_test(frames_in_pieces_arrive_whole),
	        cmocka_unit_test(a_frame_takes_several_buffers),
	        cmocka_unit_test(what_does_not_fit_is_dropped),
	        cmocka_unit_test(without_a_receiver_all_is_dropped),
	        cmocka_unit_test(a_frame_too_long_for_any_buffer_blocks_nothing),
	        cmocka_unit_test(buffers_without_a_frame_are_counted),
	        cmocka_unit_test(a_liar_harms_itself_only),
	};

	return RUN_FOR_EACH_ISA("xconnect", tests);
}
