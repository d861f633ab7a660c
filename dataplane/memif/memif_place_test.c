// SPDX-License-Identifier: BSD-3-Clause
// A memif's server that writes and reads frames where they lie, as the tester does: every length byte by byte, full rings,
// chains, and a client that lies. Both ends in one process: memif/memif_rig.h.
#include "memif/memif_rig.h"

static uint8_t spare[MEMIF_SPARE_BYTES];

// Returns how many were sent: a frame that takes more than one buffer is alone.
static unsigned write_frames(struct memif_ring *ring, unsigned first, unsigned n, uint16_t length)
{
	uint16_t lengths[BATCH];
	uint8_t *data[BATCH];
	uint64_t too_long = 0;

	for (unsigned f = 0; f < n; f++)
		lengths[f] = length;
	ring->spare = spare;
	n = memif_ring_reserve(ring, lengths, data, n);
	for (unsigned f = 0; f < n; f++)
		for (uint32_t i = 0; i < length; i++)
			data[f][i] = bytes_of(first + f, i);
	n = n ? memif_ring_publish(ring, n, &too_long) : 0;
	assert_int_equal(too_long, 0);
	return n;
}

static void every_length_is_written_in_place(void **state)
{
	unsigned number = 0;
	struct rig r;

	rig_open(&r);
	for (uint32_t length = 1; length <= LONGEST; length = length * 5 / 4 + 1)
		for (unsigned n = 1; n <= BATCH; n += 5) {
			unsigned slots = (length + MEMIF_BUFFER_BYTES - 1) / MEMIF_BUFFER_BYTES,
			         sent = slots == 1 ? n : 1;

			assert_int_equal(write_frames(&r.back, number, n, (uint16_t)length), sent);
			assert_int_equal(take_frames(&r.home, number, sent, length), sent * slots);
			number += sent;
		}
	rig_close(&r);
}

// A burst of mixed lengths ends before the first that takes a chain, which is the next one; one that was not published
// is lent again, whole.
static void a_long_frame_ends_a_loan(void **state)
{
	const uint16_t lengths[] = {60, 2048, 3000, 60}, one = 60;
	uint8_t *data[4], *again[4];
	uint64_t too_long = 0;
	struct rig r;

	rig_open(&r);
	r.back.spare = spare;
	assert_int_equal(memif_ring_reserve(&r.back, lengths, data, 4), 2);
	assert_int_equal(memif_ring_reserve(&r.back, &lengths[1], again, 3), 1);
	assert_ptr_equal(again[0], data[0]);
	assert_int_equal(memif_ring_reserve(&r.back, &lengths[2], again, 2), 1);
	assert_ptr_equal(again[0], spare);
	assert_int_equal(memif_ring_reserve(&r.back, &one, again, 1), 1);
	assert_ptr_equal(again[0], data[0]);
	assert_int_equal(memif_ring_publish(&r.back, 1, &too_long), 1);
	rig_close(&r);
}

static void a_full_ring_lends_nothing(void **state)
{
	struct rig r;

	rig_open(&r);
	assert_int_equal(write_frames(&r.back, 0, BATCH, 60), BATCH);
	assert_int_equal(write_frames(&r.back, BATCH, BATCH, 60), BATCH);
	assert_int_equal(write_frames(&r.back, 0, BATCH, 60), 0);
	take_frames(&r.home, 0, 1, 60);
	assert_int_equal(write_frames(&r.back, 2 * BATCH, 1, 3000), 0); // takes two
	assert_int_equal(write_frames(&r.back, 2 * BATCH, BATCH, 60), 1);
	take_frames(&r.home, 1, BATCH, 60);
	take_frames(&r.home, 1 + BATCH, BATCH, 60);
	rig_close(&r);
}

static void frames_are_read_where_they_lie(void **state)
{
	struct vnf_frame spans[BATCH];
	struct view view;
	unsigned number = 0;
	struct rig r;

	rig_open(&r);
	for (uint32_t length = 1; length <= MEMIF_BUFFER_BYTES; length = length * 5 / 4 + 1)
		for (unsigned n = 1; n <= BATCH; n += 5) {
			send_frames(&r.out, number, n, length);
			assert_int_equal(memif_ring_peek_spans(&r.in, &view, spans, BATCH), n);
			assert_int_equal(view.count, n);
			assert_int_equal(view.batch.count, n);
			for (unsigned f = 0; f < n; f++, number++) {
				assert_int_equal(spans[f].length, length);
				assert_int_equal(spans[f].total, length);
				for (uint32_t i = 0; i < length; i++)
					assert_int_equal(spans[f].data[i], bytes_of(number, i));
			}
			memif_ring_release(&r.in, n);
		}
	rig_close(&r);
}

// Chains, and what is no frame, end what is read in this way: memif_ring_peek() goes on.
static void what_is_not_plain_is_no_span(void **state)
{
	struct frames_lost lost = {0};
	struct vnf_frame spans[BATCH];
	struct view view;
	struct rig r;

	rig_open(&r);
	send_frames(&r.out, 0, 2, 60);
	send_frames(&r.out, 2, 1, 3000);
	send_frames(&r.out, 3, 2, 60);
	r.in.shared->descriptors[5].length = 0;
	assert_int_equal(memif_ring_peek_spans(&r.in, &view, spans, BATCH), 2);
	memif_ring_release(&r.in, 2);
	assert_int_equal(memif_ring_peek_spans(&r.in, &view, spans, BATCH), 0);
	take_frames(&r.in, 2, 1, 3000);
	assert_int_equal(memif_ring_peek_spans(&r.in, &view, spans, BATCH), 1);
	memif_ring_release(&r.in, 1);
	assert_int_equal(memif_ring_peek_spans(&r.in, &view, spans, BATCH), 0);
	assert_int_equal(memif_ring_peek(&r.in, &view, BATCH, &lost), 1);
	assert_int_equal(lost.bad, 1);
	memif_ring_release(&r.in, 1);
	r.in.shared->descriptors[6].region = 7;
	send_frames(&r.out, 5, 1, 60);
	r.in.shared->descriptors[6].region = 7;
	assert_int_equal(memif_ring_peek_spans(&r.in, &view, spans, BATCH), 0);
	assert_int_equal(r.in.fault, MEMIF_OK); // that is for memif_ring_peek() to say
	rig_close(&r);
}

static unsigned write_long(struct memif_ring *ring, uint64_t *too_long)
{
	const uint16_t length = UINT16_MAX;
	uint8_t *data;

	ring->spare = spare;
	assert_int_equal(memif_ring_reserve(ring, &length, &data, 1), 1);
	memset(data, 0, length);
	return memif_ring_publish(ring, 1, too_long);
}

static void a_frame_that_no_chain_holds_blocks_nothing(void **state)
{
	uint64_t too_long = 0;
	struct rig r;

	rig_open(&r);
	for (unsigned i = 0; i < SIZE; i++)
		r.back.shared->descriptors[i].length = 1000;
	assert_int_equal(write_long(&r.back, &too_long), 1);
	assert_int_equal(too_long, 1);
	assert_int_equal(write_frames(&r.back, 0, 1, 60), 1);
	take_frames(&r.home, 0, 1, 60);
	rig_close(&r);
}

static void buffers_outside_of_the_regions(void **state)
{
	const struct lie lies[] = {
	        {2, 0, 128}, {0, UINT32_MAX - 10, 128}, {0, 4096, UINT32_MAX}, {0xffff, 0, 128}};

	for (unsigned i = 0; i < RTE_DIM(lies); i++) {
		struct rig r;

		rig_open(&r);
		lie_tell(&lies[i], &r.back, 0);
		assert_int_equal(write_frames(&r.back, 0, 1, 60), 0);
		assert_int_equal(r.back.fault, MEMIF_BAD_ADDRESS);
		rig_close(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_length_is_written_in_place),
	        cmocka_unit_test(a_long_frame_ends_a_loan),
	        cmocka_unit_test(a_full_ring_lends_nothing),
	        cmocka_unit_test(frames_are_read_where_they_lie),
	        cmocka_unit_test(what_is_not_plain_is_no_span),
	        cmocka_unit_test(a_frame_that_no_chain_holds_blocks_nothing),
	        cmocka_unit_test(buffers_outside_of_the_regions),
	};

	return cmocka_run_group_tests_name("memif_place", tests, NULL, NULL);
}
