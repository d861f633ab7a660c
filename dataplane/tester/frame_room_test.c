// SPDX-License-Identifier: BSD-3-Clause
// Lent buffers: each is filled once, in whatever order and number they come, and anew after forgetting.
#include "tester/generator_tx.h"
#include "test/unit.h"

#include <rte_common.h>

enum { STRIDE = 2176, BURST = 32, LENGTH = 1020 };

// What a port lends.
struct lender {
	unsigned buffers;
	uint8_t *memory;
	uint8_t *data[BURST];
};

static struct lender lender_open(unsigned buffers)
{
	return (struct lender){.buffers = buffers, .memory = calloc(buffers, STRIDE)};
}

static void lend(struct lender *l, unsigned at, unsigned buffer)
{
	l->data[at] = l->memory + (size_t)buffer * STRIDE;
}

static void assert_filled(const struct lender *l, unsigned n, uint32_t length)
{
	for (unsigned i = 0; i < n; i++)
		assert_memory_equal(l->data[i] + FRAME_STORE_BYTES, frame_pattern() + FRAME_STORE_BYTES,
		                    length - FRAME_STORE_BYTES);
}

// A mark in the pattern shows whether a buffer is filled again. Returns how many were.
static unsigned refilled(struct lender *l, struct frame_room *room, unsigned rounds)
{
	unsigned count = 0, next = 0;

	for (unsigned i = 0; i < rounds; i++) {
		for (unsigned k = 0; k < BURST; k++, next = (next + 7) % l->buffers) // not in order
			lend(l, k, next);
		for (unsigned k = 0; k < BURST; k++)
			l->data[k][500] = 0;
		frame_room_fill(room, l->data, BURST, LENGTH);
		for (unsigned k = 0; k < BURST; k++)
			count += l->data[k][500] == frame_pattern()[500];
	}
	return count;
}

static void each_is_filled_once(void **state)
{
	static const unsigned sizes[] = {32, 255, 256, 1024};

	for (size_t i = 0; i < RTE_DIM(sizes); i++) {
		struct lender l = lender_open(sizes[i]);
		struct frame_room *room = frame_room_create(sizes[i]);

		assert_int_equal(refilled(&l, room, 100), sizes[i]);
		assert_int_equal(refilled(&l, room, 100), 0);
		frame_room_forget(room);
		assert_int_equal(refilled(&l, room, 100), sizes[i]);
		frame_room_free(room);
		free(l.memory);
	}
}

// More buffers than were announced: filled more often than needed, never less.
static void too_many_are_still_filled(void **state)
{
	struct lender l = lender_open(1000);
	struct frame_room *room = frame_room_create(64);

	for (unsigned i = 0; i < 3000; i++) {
		lend(&l, 0, i * 7 % 1000);
		frame_room_fill(room, l.data, 1, LENGTH);
		assert_filled(&l, 1, LENGTH);
	}
	frame_room_free(room);
	free(l.memory);
}

static void bursts_and_lengths(void **state)
{
	static const unsigned bursts[] = {0, 1, 3, 4, 5, 31, 32};
	static const uint32_t lengths[] = {64, 65, 96, 1514, STRIDE};

	for (size_t i = 0; i < RTE_DIM(bursts); i++)
		for (size_t k = 0; k < RTE_DIM(lengths); k++) {
			struct lender l = lender_open(64);
			struct frame_room *room = frame_room_create(64);

			for (unsigned at = 0; at < bursts[i]; at++)
				lend(&l, at, at);
			frame_room_fill(room, l.data, bursts[i], lengths[k]);
			assert_filled(&l, bursts[i], lengths[k]);
			frame_room_free(room);
			free(l.memory);
		}
}

// A frame without pattern asks for nothing, and does not make the buffer known.
static void smallest_frames_leave_buffers_alone(void **state)
{
	struct lender l = lender_open(32);
	struct frame_room *room = frame_room_create(32);

	lend(&l, 0, 0);
	frame_room_fill(room, l.data, 1, FRAME_HEADER_BYTES);
	assert_int_equal(l.data[0][FRAME_STORE_BYTES], 0);
	assert_int_equal(refilled(&l, room, 10), 32);
	frame_room_free(room);
	free(l.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(each_is_filled_once),
	        cmocka_unit_test(too_many_are_still_filled),
	        cmocka_unit_test(bursts_and_lengths),
	        cmocka_unit_test(smallest_frames_leave_buffers_alone),
	};

	return cmocka_run_group_tests_name("frame_room", tests, NULL, NULL);
}
