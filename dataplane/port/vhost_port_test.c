// SPDX-License-Identifier: BSD-3-Clause
// A port's views and passes, with rings in plain memory and no library: what a view holds and gives back, and
// when a guest is called.
#include <rte_cycles.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "test/each_isa.h"
#include "test/pair.h"
#include "port/shm_port.h"

enum { SIZE = 64, FRAME = 60 };

// The port of guest A: frames come from its transmit ring, and are passed to its receive ring.
struct rig {
	struct pair guests;
	struct shm_port *own;
	struct port port;
};

static void queue_open(struct ring_queue *queue, const struct device_ring *ring)
{
	queue->ring = *ring;
	queue->call_fd = queue->bell.fd = eventfd(0, EFD_NONBLOCK);
	gate_open(&queue->gate);
}

static void rig_open(struct rig *r, uint64_t features)
{
	pair_open(&r->guests, features, features, SIZE);
	r->own = aligned_alloc(64, sizeof(*r->own));
	memset(r->own, 0, sizeof(*r->own));
	r->port = (struct port){.ops = &vhost_port_ops, .own = r->own, .port_id = RTE_MAX_ETHPORTS};
	r->own->pairs = 1;
	queue_open(&r->own->queues[GUEST_TRANSMITQ], &r->guests.a.transmit.ring);
	queue_open(&r->own->queues[GUEST_RECEIVEQ], &r->guests.a.receive.ring);
}

static void rig_close(struct rig *r)
{
	close(r->own->queues[GUEST_TRANSMITQ].call_fd);
	close(r->own->queues[GUEST_RECEIVEQ].call_fd);
	free(r->own);
	pair_close(&r->guests);
}

static unsigned calls(const struct rig *r, unsigned ring)
{
	eventfd_t count;

	return eventfd_read(r->own->queues[ring].call_fd, &count) == 0 ? (unsigned)count : 0;
}

static bool called(const struct rig *r)
{
	return calls(r, GUEST_RECEIVEQ);
}

// How long a call is owed after one: MUCH, more than a test takes and less than has passed since time began, or nothing.
#define MUCH rte_rdtsc()
static void set_gap(struct rig *r, uint64_t gap_tsc)
{
	for (unsigned i = 0; i < PAIR_RINGS; i++)
		r->own->queues[i].call_gap_tsc = gap_tsc;
}

// What the guest says of its receive ring.
static void want_calls(struct rig *r, bool want)
{
	const struct device_ring *ring = &r->own->queues[GUEST_RECEIVEQ].ring;

	*(ring->packed ? &ring->driver_event->flags : &ring->avail->flags) = !want;
}

static void look(const struct rig *r, const struct view *view, uint32_t first)
{
	for (unsigned i = 0; i < view->count; i++) {
		struct scatter at = view->frames[i].at, to;
		uint8_t bytes[FRAME];
		struct piece piece = {bytes, FRAME};

		to = (struct scatter){&piece, 0};
		assert_int_equal(view->frames[i].length, FRAME);
		scatter_copy(&to, &at, FRAME);
		for (unsigned k = 0; k < FRAME; k++)
			assert_int_equal(bytes[k], byte_of(first + i, k));
	}
}

// A buffer of each shape at each place among plain ones: all frames come, in order, over as many views as it
// takes, and each buffer goes back once.
static void views_of_any_buffers(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++)
		for (unsigned odd = 0; odd < 9; odd++)
			for (unsigned shape = 0; shape < 4; shape++) {
				unsigned came = 0, n;
				struct view view;
				struct rig r;

				rig_open(&r, layouts[l]);
				for (unsigned i = 0; i < 9; i++)
					assert_true(offer_frame(&r.guests, FRAME, i == odd ? shape : 0));
				for (; (n = port_peek(&r.port, 0, &view, 32)) > 0; came += n) {
					assert_int_equal(n, view.count);
					look(&r, &view, came);
					view.count = 0; // the task may leave out what it likes
					port_release(&r.port, 0, &view);
				}
				assert_int_equal(came, 9);
				assert_int_equal(collect_sent(&r.guests), 9);
				assert_int_equal(r.own->queues[GUEST_TRANSMITQ].packets, 9);
				rig_close(&r);
			}
}

// Buffers without a frame go back, are counted, and are in no view.
static void empty_buffers_are_counted(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++)
		for (unsigned bad = 0; bad < 5; bad++) {
			unsigned came = 0, n;
			struct view view;
			struct rig r;

			rig_open(&r, layouts[l]);
			for (unsigned i = 0; i < 5; i++)
				assert_true(offer_frame(&r.guests, i == bad ? 0 : FRAME, 0));
			for (unsigned poll = 0; poll < 5; poll++)
				if ((n = port_peek(&r.port, 0, &view, 32)) > 0) {
					came += n;
					port_release(&r.port, 0, &view);
				}
			assert_int_equal(came, 4);
			assert_int_equal(r.own->queues[GUEST_TRANSMITQ].none.bad, 1);
			assert_int_equal(collect_sent(&r.guests), 5);
			rig_close(&r);
		}
}

static unsigned pass_one(struct rig *r)
{
	static uint8_t bytes[FRAME];
	struct piece pieces[2] = {{bytes, 20}, {bytes + 20, FRAME - 20}};
	struct view view = {.count = 1, .held = VIEW_IN_PIECES, .frames = {{{pieces, 0}, FRAME, 0}}};

	driver_offer_own(&r->guests.a.receive, 1, 2048);
	return port_pass(&r->port, &r->port, 0, &view);
}

static void guest_peeks(struct rig *r, bool must_call)
{
	struct view view;

	assert_int_equal(port_peek(&r->port, 0, &view, 32), 0);
	assert_int_equal(called(r), must_call);
}

// The guest falls asleep behind a pass that has looked too early: it is called once, by the second poll at
// the latest.
static void a_guest_that_falls_asleep_is_called_once(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++) {
		struct rig r;

		rig_open(&r, layouts[l]);
		want_calls(&r, false);
		assert_int_equal(pass_one(&r), 1);
		assert_false(called(&r));
		want_calls(&r, true);
		guest_peeks(&r, false);
		guest_peeks(&r, true);
		guest_peeks(&r, false);
		guest_peeks(&r, false);
		assert_int_equal(pass_one(&r), 1);
		assert_true(called(&r)); // it sleeps, and is seen to
		guest_peeks(&r, false);
		guest_peeks(&r, false);
		rig_close(&r);
	}
}

// A pass that goes on, with a poll in between, looks itself; the end of the polls pays what is left.
static void passes_and_the_end_pay_what_is_owed(void **state)
{
	struct rig r;

	rig_open(&r, layouts[3]);
	want_calls(&r, false);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(pass_one(&r), 1);
		guest_peeks(&r, false);
	}
	want_calls(&r, true);
	assert_int_equal(pass_one(&r), 1);
	assert_true(called(&r));
	want_calls(&r, false);
	assert_int_equal(pass_one(&r), 1);
	want_calls(&r, true);
	port_flush_all(&r.port);
	assert_int_equal(r.own->queues[GUEST_TRANSMITQ].pay_polls, 0);
	assert_true(called(&r));
	guest_peeks(&r, false);
	guest_peeks(&r, false);
	rig_close(&r);
}

static void poll_all(struct rig *r)
{
	struct view view;

	while (port_peek(&r->port, 0, &view, 32) > 0)
		port_release(&r->port, 0, &view);
}

// A guest that always wants to be called is called by the first poll, not by the next hundred, and once more when the gap
// is over, though nothing comes any more.
static void a_storm_of_calls_is_bounded_and_the_last_call_comes(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++) {
		struct rig r;

		rig_open(&r, layouts[l]);
		set_gap(&r, MUCH);
		for (unsigned i = 0; i < 100; i++) {
			assert_int_equal(pass_one(&r), 1);
			assert_true(offer_frame(&r.guests, FRAME, 0));
			poll_all(&r);
			while (driver_collect(&r.guests.a.receive, &(uint32_t){0}) >= 0)
				;
			collect_sent(&r.guests);
		}
		for (unsigned i = 0; i < 10; i++)
			poll_all(&r);
		assert_int_equal(calls(&r, GUEST_RECEIVEQ), 1);
		assert_int_equal(calls(&r, GUEST_TRANSMITQ), 1);
		set_gap(&r, 0);
		for (unsigned i = 0; i < 10; i++)
			poll_all(&r);
		assert_int_equal(calls(&r, GUEST_RECEIVEQ), 1);
		assert_int_equal(calls(&r, GUEST_TRANSMITQ), 1);
		rig_close(&r);
	}
}

// The same of a patch between two of our ports; what is owed in the gap is not paid to a guest that is awake meanwhile.
static void a_hop_owes_calls_too(void **state)
{
	for (unsigned l = 0; l < COUNT(layouts); l++) {
		struct rig r;

		rig_open(&r, layouts[l]);
		set_gap(&r, MUCH);
		for (unsigned i = 0; i < 20; i++) {
			driver_offer_own(&r.guests.a.receive, 1, 2048);
			assert_true(offer_frame(&r.guests, FRAME, 0));
			assert_int_equal(port_xconnect(&r.port, &r.port, 0, 32).received, 1);
		}
		assert_int_equal(calls(&r, GUEST_RECEIVEQ), 1);
		assert_int_equal(calls(&r, GUEST_TRANSMITQ), 1);
		want_calls(&r, false);
		port_xconnect(&r.port, &r.port, 0, 32);
		set_gap(&r, 0);
		want_calls(&r, true);
		for (unsigned i = 0; i < 3; i++)
			port_xconnect(&r.port, &r.port, 0, 32);
		assert_int_equal(calls(&r, GUEST_RECEIVEQ), 0);
		assert_int_equal(calls(&r, GUEST_TRANSMITQ), 1);
		rig_close(&r);
	}
}

// When the polls end, a call that is owed does not wait for the gap.
static void the_end_of_the_polls_does_not_wait(void **state)
{
	struct rig r;

	rig_open(&r, layouts[3]);
	set_gap(&r, MUCH);
	assert_int_equal(pass_one(&r), 1);
	assert_int_equal(pass_one(&r), 1);
	assert_int_equal(calls(&r, GUEST_RECEIVEQ), 1);
	port_flush_all(&r.port);
	assert_int_equal(calls(&r, GUEST_RECEIVEQ), 1);
	port_flush_all(&r.port);
	assert_int_equal(calls(&r, GUEST_RECEIVEQ), 0);
	rig_close(&r);
}

// A worker may ask whether the link is up (fib_offload does): that says nothing of a stopped ring, since who says
// it writes to the log.
static void asking_for_the_link_logs_nothing(void **state)
{
	struct shm_port virtio = {.pairs = 1, .link_up = true, .name = "v"};
	const struct port port = {.ops = &virtio_port_ops, .own = &virtio, .port_id = RTE_MAX_ETHPORTS};

	assert_true(port_link_up(&port));
	fault_note(&virtio.queues[1].fault, DRIVER_BAD_INDEX);
	assert_false(port_link_up(&port));
	assert_int_equal(virtio.broken, 0);
	assert_int_equal(fault_take(&virtio.queues[1].fault), DRIVER_BAD_INDEX);
}

static void log_lines_have_a_rate(void **state)
{
	char unsaid[LOG_UNSAID_BYTES];
	struct log_rate rate;

	log_rate_init(&rate, 3, 60, 1000);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(log_rate_take(&rate, 1000, unsaid), i < 3);
		assert_string_equal(unsaid, "");
	}
	assert_false(log_rate_take(&rate, 1999, unsaid));
	assert_true(log_rate_take(&rate, 2000, unsaid));
	assert_string_equal(unsaid, " (8 such lines were left out)");
	assert_false(log_rate_take(&rate, 2000, unsaid));
	assert_true(log_rate_take(&rate, 3001, unsaid));
	assert_string_equal(unsaid, " (1 such lines were left out)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(views_of_any_buffers),
	        cmocka_unit_test(empty_buffers_are_counted),
	        cmocka_unit_test(a_guest_that_falls_asleep_is_called_once),
	        cmocka_unit_test(passes_and_the_end_pay_what_is_owed),
	        cmocka_unit_test(a_storm_of_calls_is_bounded_and_the_last_call_comes),
	        cmocka_unit_test(a_hop_owes_calls_too),
	        cmocka_unit_test(the_end_of_the_polls_does_not_wait),
	        cmocka_unit_test(asking_for_the_link_logs_nothing),
	        cmocka_unit_test(log_lines_have_a_rate),
	};

	return RUN_FOR_EACH_ISA("vhost_port", tests);
}
