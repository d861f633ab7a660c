// SPDX-License-Identifier: BSD-3-Clause
// A device that lies to our driver, each lie and its fault; and one that sleeps. In plain memory.
#include "test/driver_pair.h"
#include "test/each_isa.h"

static void receive_lie(void (*lie)(struct pair *), enum driver_fault fault)
{
	struct frame frames[BURST_FRAMES_MAX];
	unsigned count, empty;
	struct pair p;

	pair_open(&p, 16);
	pair_device_give(&p, 3);
	assert_int_equal(pair_look(&p, 16, frames), 3);
	driver_ring_release(&p.receive.driver, 3);
	lie(&p);
	assert_int_equal(pair_look_at_spans(&p, 16), 0);
	assert_int_equal(driver_ring_peek(&p.receive.driver, 16, frames, &count, &empty), 0);
	assert_int_equal(count + empty, 0);
	assert_int_equal(p.receive.driver.fault, fault);
	assert_int_equal(driver_ring_peek(&p.receive.driver, 16, frames, &count, &empty), 0);
	pair_close(&p);
}

static void lie_far(struct pair *p)
{
	p->receive.driver.used->idx = 3 + 17;
}

static void lie_back(struct pair *p)
{
	p->receive.driver.used->idx = 2;
}

static void used(struct pair *p, uint32_t id, uint32_t length)
{
	p->receive.driver.used->ring[3] = (struct vring_used_elem){id, length};
	p->receive.driver.used->idx = 4;
}

static void lie_id(struct pair *p)
{
	used(p, 4, 72);
}

static void lie_big_id(struct pair *p)
{
	used(p, 3 + 65536, 72);
}

static void lie_long(struct pair *p)
{
	used(p, 3, RING_HEADER + PAIR_ROOM + 1);
}

static void lie_short(struct pair *p)
{
	used(p, 3, RING_HEADER - 1);
}

static void lie_none(struct pair *p)
{
	used(p, 3, 0);
}

static void a_device_that_lies_stops_its_receive_ring(void **state)
{
	receive_lie(lie_far, DRIVER_BAD_INDEX);
	receive_lie(lie_back, DRIVER_BAD_INDEX);
	receive_lie(lie_id, DRIVER_BAD_ORDER);
	receive_lie(lie_big_id, DRIVER_BAD_ORDER);
	receive_lie(lie_long, DRIVER_BAD_LENGTH);
	receive_lie(lie_short, DRIVER_BAD_LENGTH);
	receive_lie(lie_none, DRIVER_BAD_LENGTH);
}

static void what_came_before_a_lie_is_received(void **state)
{
	struct frame frames[BURST_FRAMES_MAX];
	struct pair p;

	pair_open(&p, 16);
	pair_device_give(&p, 5);
	p.receive.driver.used->ring[3].len = 1;
	assert_int_equal(pair_look(&p, 16, frames), 3);
	assert_int_equal(p.receive.driver.fault, DRIVER_OK);
	driver_ring_release(&p.receive.driver, 3);
	p.came += 3;
	assert_int_equal(pair_look(&p, 16, frames), 0);
	assert_int_equal(p.receive.driver.fault, DRIVER_BAD_LENGTH);
	pair_close(&p);
}

static void transmit_lie(uint16_t index, uint32_t id, bool in_order, enum driver_fault fault)
{
	struct pair p;

	pair_open(&p, 16);
	p.transmit.driver.in_order = in_order;
	assert_int_equal(pair_send_reserved(&p, 16), 16);
	p.transmit.driver.used->ring[0].id = 0;
	p.transmit.driver.used->ring[1].id = id;
	p.transmit.driver.used->idx = index;
	assert_int_equal(pair_send_reserved(&p, 16), fault == DRIVER_OK ? index : 0);
	assert_int_equal(p.transmit.driver.fault, fault);
	assert_int_equal(pair_send_delivered(&p, 1), 0);
	pair_close(&p);
}

static void a_device_that_lies_stops_its_transmit_ring(void **state)
{
	transmit_lie(17, 1, true, DRIVER_BAD_INDEX);
	transmit_lie(0xffff, 1, true, DRIVER_BAD_INDEX);
	transmit_lie(2, 5, false, DRIVER_BAD_ORDER);
	transmit_lie(2, 1, false, DRIVER_OK);
	transmit_lie(2, 5, true, DRIVER_OK); // one element for a whole batch (s2.7.9): not even read
}

// --- Packed ----------------------------------------------------------------------------------------------

// What the device says of a descriptor: flags of both bits are those of a used one in the first lap.
enum { USED = 1 << VRING_PACKED_DESC_F_AVAIL | 1 << VRING_PACKED_DESC_F_USED };

static void say(struct driver_ring *ring, unsigned slot, uint16_t id, uint32_t length, unsigned flags)
{
	struct vring_packed_desc *desc = &ring->desc_packed[slot];

	desc->addr = UINT64_C(0xdead) << 48; // a device may write it: it is not read
	desc->len = length;
	desc->id = id;
	desc->flags = (uint16_t)flags;
}

static void a_device_that_lies_stops_its_packed_receive_ring(void **state)
{
	static const struct {
		uint16_t id;
		uint32_t length;
		unsigned flags;
		enum driver_fault fault;
	} lies[] = {
	        {4, 72, USED, DRIVER_BAD_ORDER},
	        {UINT16_MAX, 72, USED, DRIVER_BAD_ORDER},
	        {3, RING_HEADER + PAIR_ROOM + 1, USED, DRIVER_BAD_LENGTH},
	        {3, RING_HEADER - 1, USED, DRIVER_BAD_LENGTH},
	        {3, 0, USED, DRIVER_BAD_LENGTH},
	        {3, UINT32_MAX, USED, DRIVER_BAD_LENGTH},
	        {3, 72, 0, DRIVER_OK}, // of another lap: not used yet
	        {3, 72, 1 << VRING_PACKED_DESC_F_USED, DRIVER_OK},
	};

	pair_packed = true;
	for (unsigned i = 0; i < RTE_DIM(lies); i++) {
		struct frame frames[BURST_FRAMES_MAX];
		unsigned count, empty;
		struct pair p;

		pair_open(&p, 15);
		pair_device_give(&p, 3);
		assert_int_equal(pair_look(&p, 15, frames), 3);
		say(&p.receive.driver, 3, lies[i].id, lies[i].length, lies[i].flags);
		assert_int_equal(pair_look(&p, 15, frames), 3); // what came before a lie is good
		driver_ring_release(&p.receive.driver, 3);
		assert_int_equal(pair_look_at_spans(&p, 15), 0);
		assert_int_equal(driver_ring_peek(&p.receive.driver, 15, frames, &count, &empty), 0);
		assert_int_equal(count + empty, 0);
		assert_int_equal(p.receive.driver.fault, lies[i].fault);
		pair_close(&p);
	}
	pair_packed = false;
}

static void packed_transmit_lie(uint16_t first, uint16_t second, bool in_order, unsigned free)
{
	struct pair p;

	pair_open(&p, 15);
	p.transmit.driver.in_order = in_order;
	assert_int_equal(pair_send_reserved(&p, 15), 15);
	say(&p.transmit.driver, 0, first, 0, USED);
	if (!in_order)
		say(&p.transmit.driver, 1, second, 0, USED);
	else if (first < 14)
		say(&p.transmit.driver, first + 1u, second, 0, USED);
	assert_int_equal(pair_send_reserved(&p, 15), free);
	assert_int_equal(p.transmit.driver.fault, free ? DRIVER_OK : DRIVER_BAD_ORDER);
	pair_close(&p);
}

static void a_device_that_lies_stops_its_packed_transmit_ring(void **state)
{
	pair_packed = true;
	packed_transmit_lie(0, 1, false, 2);
	packed_transmit_lie(0, 2, false, 0);
	packed_transmit_lie(1, 1, false, 0);
	packed_transmit_lie(UINT16_MAX, 1, false, 0);
	packed_transmit_lie(3, 8, true, 9); // one descriptor for many (s2.8.9)
	packed_transmit_lie(14, 0, true, 15);
	packed_transmit_lie(3, 2, true, 0);  // once around the ring and further
	packed_transmit_lie(15, 0, true, 0); // beyond the ring
	packed_transmit_lie(3, UINT16_MAX, true, 0);
	pair_packed = false;
}

static void a_sleeping_device_is_kicked_once(void **state)
{
	struct pair p;
	struct doorbell *bell = &p.transmit.driver.bell;

	pair_open(&p, 16);
	assert_false(doorbell_look(bell));
	pair_send_reserved(&p, 2);
	assert_false(doorbell_look(bell)); // the device polls (device_ring_init())
	p.transmit.driver.used->flags = 0;
	assert_true(doorbell_look(bell)); // the first look may have come too early
	assert_false(doorbell_look(bell));
	pair_send_reserved(&p, 2);
	assert_true(doorbell_pay(bell));
	assert_false(doorbell_pay(bell));
	pair_send_reserved(&p, 2);
	p.transmit.driver.used->flags = VRING_USED_F_NO_NOTIFY;
	assert_false(doorbell_pay(bell)); // behind a fence: whoever goes to sleep from now on has seen it
	p.transmit.driver.used->flags = 0;
	assert_false(doorbell_look(bell));
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_device_that_lies_stops_its_receive_ring),
	        cmocka_unit_test(what_came_before_a_lie_is_received),
	        cmocka_unit_test(a_device_that_lies_stops_its_transmit_ring),
	        cmocka_unit_test(a_device_that_lies_stops_its_packed_receive_ring),
	        cmocka_unit_test(a_device_that_lies_stops_its_packed_transmit_ring),
	        cmocka_unit_test(a_sleeping_device_is_kicked_once),
	};

	return RUN_FOR_EACH_ISA("driver_lies", tests);
}
