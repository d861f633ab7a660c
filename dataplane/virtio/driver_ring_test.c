// SPDX-License-Identifier: BSD-3-Clause
// The driver's side of a ring against the device's (vring), in plain memory: every byte, wraps, partial and
// full rings, exchanged buffers.
#include "test/driver_pair.h"
#include "test/each_isa.h"

#include <rte_common.h>

static const uint16_t bursts[] = {0, 1, 3, 4, 5, 31, 32, 33, 64};
static const uint16_t sizes[] = {16, 64, 256, 1024};

// A packed ring need not be a power of two.
static uint16_t size_of(unsigned s)
{
	return pair_packed ? sizes[s] - 3 : sizes[s];
}

enum { ROUNDS = 300, RANDOM_STEPS = 100000, RANDOM_SIZE = 64 };

// --- Sending ---------------------------------------------------------------------------------------------

static void all_sizes_and_bursts(unsigned (*send)(struct pair *, unsigned))
{
	for (unsigned s = 0; s < RTE_DIM(sizes); s++)
		for (unsigned b = 0; b < RTE_DIM(bursts); b++) {
			struct pair p;

			pair_open(&p, size_of(s));
			for (unsigned round = 0; round < ROUNDS; round++) {
				unsigned n = RTE_MIN(bursts[b], size_of(s));

				assert_int_equal(send(&p, n), n);
				assert_int_equal(pair_device_take(&p, BURST_FRAMES_MAX), n);
			}
			assert_int_equal(p.transmit.device.fault, RING_OK);
			pair_close(&p);
		}
}

static void frames_that_are_written_in_place_go_out(void **state)
{
	all_sizes_and_bursts(pair_send_reserved);
}

static void frames_that_are_copied_go_out(void **state)
{
	all_sizes_and_bursts(pair_send_delivered);
}

static void a_full_ring_takes_what_fits(void **state)
{
	struct pair p;

	pair_open(&p, 64);
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned first = round % 64;

		assert_int_equal(pair_send_delivered(&p, first), first);
		assert_int_equal(pair_send_delivered(&p, 64), 64 - first);
		assert_int_equal(pair_send_delivered(&p, 1), 0);
		assert_int_equal(pair_send_reserved(&p, 1), 0);
		assert_int_equal(pair_device_take(&p, 5), 5);
		assert_int_equal(pair_send_reserved(&p, 64), 5);
		while (pair_device_take(&p, BURST_FRAMES_MAX))
			;
	}
	assert_int_equal(p.sent, p.came);
	pair_close(&p);
}

// A device that begins afresh between the two: nobody would know what is in its buffers.
static void what_was_reserved_before_a_reset_is_not_sent(void **state)
{
	const uint16_t lengths[4] = {60, 60, 60, 60};
	uint8_t *data[4];
	struct pair p;

	pair_open(&p, 16);
	assert_int_equal(driver_ring_reserve(&p.transmit.driver, lengths, data, 4), 4);
	driver_ring_reset(&p.transmit.driver, true, pair_packed);
	pair_device_reset(&p);
	assert_int_equal(driver_ring_publish(&p.transmit.driver, 4), 0);
	assert_int_equal(pair_device_take(&p, 4), 0);
	pair_close(&p);
}

static void device_takes_all(struct pair *p)
{
	while (pair_device_take(p, BURST_FRAMES_MAX))
		;
}

// Lengths that stay for laps of the ring and change, are reserved and not sent, or come with frames that are copied.
static void the_device_sees_the_length_of_each_frame(void **state)
{
	const uint16_t others[] = {1000, 61, 500}, lengths[] = {60, 100, 0};
	uint8_t *data[RTE_DIM(others)];
	unsigned seed = 11;
	struct pair p;

	pair_open(&p, 64);
	for (unsigned step = 0; step < RANDOM_STEPS / 100; step++) {
		unsigned what = (unsigned)rand_r(&seed) % 30, n = (unsigned)rand_r(&seed) % 65;

		if (what == 0) {
			device_takes_all(&p);
			p.length = lengths[(unsigned)rand_r(&seed) % RTE_DIM(lengths)];
		} else if (what == 1) {
			driver_ring_reserve(&p.transmit.driver, others, data, RTE_DIM(others));
		} else if (what == 2) {
			pair_send_delivered(&p, n);
		} else {
			pair_send_reserved(&p, n);
		}
		pair_device_take(&p, (unsigned)rand_r(&seed) % 65);
	}
	device_takes_all(&p);
	assert_true(p.came == p.sent && p.came > RANDOM_STEPS / 10);
	pair_close(&p);
}

static void a_frame_too_long_is_taken_and_counted(void **state)
{
	static uint8_t bytes[PAIR_ROOM + 1];
	struct piece piece = {bytes, sizeof(bytes)};
	struct frame frames[3] = {{{&piece, 0}, PAIR_ROOM + 1, 0},
	                          {{&piece, 0}, PAIR_ROOM, 0},
	                          {{&piece, 0}, PAIR_ROOM + 1, 0}};
	uint64_t too_long = 0;
	struct ring_batch batch;
	struct pair p;

	pair_open(&p, 16);
	assert_int_equal(driver_ring_deliver(&p.transmit.driver, frames, 3, &too_long), 3);
	assert_int_equal(too_long, 2);
	assert_int_equal(device_ring_peek(&p.transmit.device, &batch, 16), 1);
	assert_int_equal(batch.buffers[0].length, RING_HEADER + PAIR_ROOM);
	pair_close(&p);
}

// --- Receiving -------------------------------------------------------------------------------------------

static void frames_come_in(void **state)
{
	struct frame frames[BURST_FRAMES_MAX];

	for (unsigned s = 0; s < RTE_DIM(sizes); s++)
		for (unsigned b = 0; b < RTE_DIM(bursts); b++) {
			struct pair p;

			pair_open(&p, size_of(s));
			for (unsigned round = 0; round < ROUNDS; round++) {
				unsigned n = RTE_MIN(bursts[b], size_of(s));

				assert_int_equal(pair_device_give(&p, n), n);
				assert_int_equal(pair_look(&p, BURST_FRAMES_MAX, frames), n);
				assert_int_equal(pair_look(&p, BURST_FRAMES_MAX, frames),
				                 n); // nothing changed
				driver_ring_release(&p.receive.driver, n);
				p.came += n;
			}
			assert_int_equal(p.receive.driver.fault, DRIVER_OK);
			pair_close(&p);
		}
}

static void frames_of_one_length_come_in_as_spans(void **state)
{
	for (unsigned s = 0; s < RTE_DIM(sizes); s++)
		for (unsigned b = 0; b < RTE_DIM(bursts); b++) {
			struct pair p;

			pair_open(&p, size_of(s));
			p.length = 60;
			for (unsigned round = 0; round < ROUNDS / 10; round++) {
				unsigned n = RTE_MIN(bursts[b], size_of(s)), part = n / 3;

				assert_int_equal(pair_device_give(&p, n), n);
				assert_int_equal(pair_look_at_spans(&p, part), part);
				assert_int_equal(pair_look_at_spans(&p, BURST_FRAMES_MAX), n);
				assert_int_equal(driver_ring_peek_alike(&p.receive.driver, 60, part), part);
				assert_int_equal(
				        driver_ring_peek_alike(&p.receive.driver, 60, BURST_FRAMES_MAX), n);
				assert_int_equal(
				        driver_ring_peek_alike(&p.receive.driver, 61, BURST_FRAMES_MAX), 0);
				driver_ring_release(&p.receive.driver, part);
				p.came += part;
				assert_int_equal(pair_look_at_spans(&p, BURST_FRAMES_MAX), n - part);
				driver_ring_release(&p.receive.driver, n - part);
				p.came += n - part;
			}
			assert_int_equal(p.receive.driver.fault, DRIVER_OK);
			pair_close(&p);
		}
}

static void frames_of_several_lengths_are_no_spans(void **state)
{
	struct frame frames[BURST_FRAMES_MAX];
	struct pair p;

	pair_open(&p, 16);
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint32_t first = 1 + p.came * 37 % PAIR_FRAME_MAX;

		assert_int_equal(pair_device_give(&p, 5), 5);
		assert_int_equal(pair_look_at_spans(&p, BURST_FRAMES_MAX), 0);
		assert_int_equal(pair_look_at_spans(&p, 1), 1);
		assert_int_equal(driver_ring_peek_alike(&p.receive.driver, first, 1), 1);
		assert_int_equal(driver_ring_peek_alike(&p.receive.driver, first, 2), 0);
		assert_int_equal(pair_look(&p, BURST_FRAMES_MAX, frames), 5);
		driver_ring_release(&p.receive.driver, 5);
		p.came += 5;
	}
	pair_close(&p);
}

static void a_device_fills_the_ring_and_no_more(void **state)
{
	struct frame frames[BURST_FRAMES_MAX];
	struct pair p;

	pair_open(&p, 64);
	for (unsigned round = 0; round < ROUNDS; round++) {
		assert_int_equal(pair_device_give(&p, 64), round == 0 ? 64 : 7);
		assert_int_equal(pair_device_give(&p, 1), 0);
		assert_int_equal(pair_look(&p, 7, frames), 7);
		driver_ring_release(&p.receive.driver, 7);
		p.came += 7;
	}
	pair_close(&p);
}

static void buffers_without_a_frame_are_counted(void **state)
{
	struct frame frames[BURST_FRAMES_MAX];
	unsigned count, empty;
	struct ring_batch batch;
	struct pair p;

	pair_open(&p, 16);
	assert_int_equal(device_ring_peek(&p.receive.device, &batch, 3), 3);
	batch.buffers[0].written = batch.buffers[2].written = RING_HEADER;
	batch.buffers[1].written = RING_HEADER + 60;
	device_ring_commit(&p.receive.device, &batch, 3);
	assert_int_equal(driver_ring_peek(&p.receive.driver, 16, frames, &count, &empty), 3);
	assert_true(count == 1 && empty == 2 && frames[0].length == 60);
	pair_close(&p);
}

static void a_reset_ring_begins_anew(void **state)
{
	struct frame frames[BURST_FRAMES_MAX];
	struct pair p;

	pair_open(&p, 16);
	for (unsigned round = 0; round < 40; round++) {
		pair_device_give(&p, 1 + round % 16);
		pair_send_reserved(&p, round % 17);
		driver_ring_reset(&p.receive.driver, round % 2, pair_packed);
		driver_ring_reset(&p.transmit.driver, round % 2, pair_packed);
		pair_device_reset(&p);
		p.sent = p.came = round;
		assert_int_equal(pair_look(&p, 16, frames), 0);
		assert_int_equal(pair_send_reserved(&p, 16), 16);
		assert_int_equal(pair_device_take(&p, 16), 16);
	}
	pair_close(&p);
}

// --- Exchange --------------------------------------------------------------------------------------------

static int by_address(const void *a, const void *b)
{
	const uint8_t *x = *(uint8_t *const *)a, *y = *(uint8_t *const *)b;

	return x < y ? -1 : x > y;
}

// Each buffer is in one slot of one ring, and descriptors say the same.
static void check_buffers(const struct pair *p)
{
	uint8_t *found[2 * RANDOM_SIZE], *made[2 * RANDOM_SIZE];
	size_t stride = shm_pool_stride(PAIR_ROOM);

	for (unsigned i = 0; i < RANDOM_SIZE; i++) {
		found[2 * i] = p->receive.pieces[i].data;
		found[2 * i + 1] = p->transmit.pieces[i].data;
		made[2 * i] = p->receive.buffers + i * stride + DRIVER_LINE;
		made[2 * i + 1] = p->transmit.buffers + i * stride + DRIVER_LINE;
		if (pair_packed)
			continue; // addresses are written with the rest of a descriptor
		assert_int_equal(p->receive.driver.desc[i].addr, (uintptr_t)found[2 * i] - RING_HEADER);
		assert_int_equal(p->transmit.driver.desc[i].addr, (uintptr_t)found[2 * i + 1] - RING_HEADER);
	}
	qsort(found, RTE_DIM(found), sizeof(found[0]), by_address);
	qsort(made, RTE_DIM(made), sizeof(made[0]), by_address);
	assert_memory_equal(found, made, sizeof(made));
}

// An echo: what came goes out, small frames by copy, the others with their buffers. Any mix of steps keeps
// every frame that was taken, in order, and every buffer.
static void passing_on_keeps_frames_and_buffers(void **state)
{
	struct frame frames[BURST_FRAMES_MAX];
	unsigned seed = 7;
	struct pair p;

	pair_open(&p, RANDOM_SIZE);
	p.receive.driver.in_order = p.transmit.driver.in_order = false; // ids are checked too
	for (unsigned step = 0; step < RANDOM_STEPS; step++) {
		unsigned n = (unsigned)rand_r(&seed) % 65, what = (unsigned)rand_r(&seed) % 3, count, empty;

		if (what == 0) {
			pair_device_give(&p, n);
		} else if (what == 1) {
			pair_device_take(&p, n);
		} else {
			count = driver_ring_peek(&p.receive.driver, n, frames, &n, &empty);
			count = driver_ring_pass(&p.receive.driver, &p.transmit.driver, frames, count);
			driver_ring_release(&p.receive.driver, count); // the rest comes again
		}
		if (step % 1000 == 0)
			check_buffers(&p);
	}
	check_buffers(&p);
	assert_true(p.came > RANDOM_STEPS && p.receive.driver.fault == DRIVER_OK &&
	            p.transmit.driver.fault == DRIVER_OK);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(frames_that_are_written_in_place_go_out),
	        cmocka_unit_test(frames_that_are_copied_go_out),
	        cmocka_unit_test(a_full_ring_takes_what_fits),
	        cmocka_unit_test(what_was_reserved_before_a_reset_is_not_sent),
	        cmocka_unit_test(the_device_sees_the_length_of_each_frame),
	        cmocka_unit_test(a_frame_too_long_is_taken_and_counted),
	        cmocka_unit_test(frames_come_in),
	        cmocka_unit_test(frames_of_one_length_come_in_as_spans),
	        cmocka_unit_test(frames_of_several_lengths_are_no_spans),
	        cmocka_unit_test(a_device_fills_the_ring_and_no_more),
	        cmocka_unit_test(buffers_without_a_frame_are_counted),
	        cmocka_unit_test(a_reset_ring_begins_anew),
	        cmocka_unit_test(passing_on_keeps_frames_and_buffers),
	};

	int failed;

	pair_packed = true;
	failed = cmocka_run_group_tests_name("driver_ring, packed", tests, NULL, NULL);
	pair_packed = false;
	return failed + RUN_FOR_EACH_ISA("driver_ring", tests);
}
