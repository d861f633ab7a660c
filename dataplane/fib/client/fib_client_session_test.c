// SPDX-License-Identifier: BSD-3-Clause
// The client where the forwarder is busy, starts anew, or is not there; what it does not let itself say.
#include "fib/client/fib_client_rig.h"

static void a_busy_forwarder(void **state)
{
	say_hop(1, 0);
	settle();
	assert_true(fib_trylock(rig.session.fib));
	say_route(FIB_ADD, 1, 1);
	for (unsigned i = 0; i < 100; i++)
		tick();
	assert_int_equal(status().unanswered, 1);
	assert_true(rig.session.codes[FIB_BUSY] > 1 && rig.session.codes[FIB_BUSY] < 10); // not all the time
	fib_unlock(rig.session.fib);
	settle();
	assert_int_equal(port_to(1), 1);
	assert_int_equal(status().refused, 0);
}

// The sweep has to make room first: the records behind it wait, and come in their order.
static void busy_in_mid_message(void **state)
{
	vnf_of(rig.session.fib, VNF, 100, 8);
	for (unsigned turn = 0; turn < 5; turn++) {
		if (turn)
			assert_int_equal(fib_client_flush(rig.client), 0);
		say_hop(1, 0);
		for (unsigned i = 0; i < 100; i++)
			say_route(FIB_ADD, turn * 100 + i, 1);
		settle();
	}
	assert_true(rig.session.codes[FIB_BUSY] > 0);
	assert_int_equal(status().refused, 0);
	assert_int_equal(status().routes, 100);
	for (unsigned i = 0; i < 500; i++)
		assert_int_equal(port_to(i), i >= 400);
}

static void a_forwarder_that_starts_anew(void **state)
{
	say_hop(1, 0);
	say_route(FIB_ADD, 1, 1);
	settle();
	rig.session.state = FIB_SESSION_NONE;
	say_route(FIB_ADD, 2, 1);
	settle();
	assert_int_equal(rig.lost, 1);
	assert_int_equal(status().session, 101);
	assert_int_equal(port_to(2), 0);
	assert_int_equal(stats_of(rig.session.fib, VNF).stale, 1);
	say_hop(1, 1);
	say_route(FIB_ADD, 2, 1);
	assert_int_equal(fib_client_end_of_rib(rig.client), 0);
	settle();
	assert_int_equal(port_to(1), 0);
	assert_int_equal(port_to(2), 2);
}

// Each HELLO ends the session of the other.
static void another_speaker_of_the_vnf(void **state)
{
	for (unsigned i = 0; i < 10000; i++) {
		if (status().unanswered == 0)
			say_hop(1, 0);
		tick();
		rig.session.state = FIB_SESSION_NONE;
	}
	assert_in_range(rig.lost, 5, 20); // at most once a second, but for the first few
	say_hop(1, 0);
	settle(); // it is lost once more
	say_hop(1, 0);
	say_route(FIB_ADD, 1, 1);
	settle();
	assert_int_equal(port_to(1), 1);
}

static void a_number_that_is_in_use(void **state)
{
	const struct fib_client_config config = {.session = 100, .send = send_frame};

	say_hop(1, 0);
	settle();
	fib_client_destroy(rig.client);
	rig.client = fib_client_create(&config, rig.now_ns);
	settle();
	assert_int_equal(status().session, 101);
	assert_true(status().up);
}

static void signs_of_life(void **state)
{
	settle();
	for (unsigned i = 0; i < 10000; i++)
		tick();
	assert_int_equal(rig.session.state, FIB_SESSION_UP);
	assert_int_equal(rig.session.lost_peers, 0);
	assert_int_equal(rig.session.messages, 1 + 10);
}

static void nothing_to_say_it_to(void **state)
{
	struct fib_client_route route = route_of(1, 1);
	unsigned said = 0;

	rig.loss = 100;
	while (fib_client_set_route(rig.client, FIB_ADD, &route) == 0)
		said++;
	assert_int_equal(said, 63 * ((FRAME_MAX - 30) / 8)); // HELLO is the 64th
	for (unsigned i = 0; i < 10000; i++)
		tick();
	assert_true(status().retransmitted < 20); // ever less often
	rig.loss = 0;
	settle();
	assert_int_equal(status().refused, said); // no hop was announced
}

static void what_no_message_may_say(void **state)
{
	struct fib_client_route route = route_of(1, 1);
	struct fib_client_hop hop = {.number = 4096, .kind = FIB_HOP_LOCAL};

	assert_int_equal(fib_client_set_hop(rig.client, &hop), -EINVAL);
	hop = (struct fib_client_hop){.kind = FIB_HOP_NONE};
	assert_int_equal(fib_client_set_hop(rig.client, &hop), -EINVAL);
	assert_int_equal(fib_client_delete_hop(rig.client, 4096), -EINVAL);
	route.length = 33;
	assert_int_equal(fib_client_set_route(rig.client, FIB_ADD, &route), -EINVAL);
	route = route_of(1, 4096);
	assert_int_equal(fib_client_set_route(rig.client, FIB_ADD, &route), -EINVAL);
	route = route_of(1, 1);
	assert_int_equal(fib_client_set_route(rig.client, 0, &route), -EINVAL);
	route.family = 5;
	assert_int_equal(fib_client_set_route(rig.client, FIB_ADD, &route), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(a_busy_forwarder),
	        TEST(busy_in_mid_message),
	        TEST(a_forwarder_that_starts_anew),
	        TEST(a_number_that_is_in_use),
	        TEST(signs_of_life),
	        TEST(nothing_to_say_it_to),
	        TEST(what_no_message_may_say),
	        TEST(another_speaker_of_the_vnf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
