// SPDX-License-Identifier: BSD-3-Clause
// What VNFs change in fib_offload by messages through their ports, and sessions that end.

#include "base/clock.h"
#include "fib/fib_offload_speaker.h"

static void traffic_follows_what_a_vnf_announces(void **state)
{
	struct task *task = rig_open(state, RIG_PLAIN);
	struct speaker one = announced(state, task, 1, 1, 7), two = announced(state, task, 2, 0, 7);

	assert_int_equal(where(state, task, 1, 1, 0), 100);
	assert_int_equal(where(state, task, 2, 1, 0), 1000);
	assert_int_equal(tell_hop(state, task, &one, 0, 0, 5, 0), FIB_OK); // the same hop, elsewhere
	assert_int_equal(where(state, task, 1, 1, 0), 1000);
	assert_int_equal(tell_route(state, task, &one, FIB_DELETE, 1, 0, 0), FIB_OK);
	assert_int_equal(where(state, task, 1, 1, 0), 0);
	assert_int_equal(tell_route(state, task, &one, FIB_DELETE, 1, 0, 0), FIB_ABSENT);
	assert_int_equal(where(state, task, 2, 1, 0), 1000); // another VNF's is its own
	assert_int_equal(tell(state, task, &two, FIB_FLUSH, NULL, 0, 0, 0), FIB_OK);
	assert_int_equal(where(state, task, 2, 1, 0), 0);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.session.answers.absent"), 1);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.session.messages"), 6);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.1.routes4"), 0);
	rig_conserves(task);
	task_destroy(task);
}

static void a_vnf_has_no_wire_of_others(void **state)
{
	struct task *task = rig_open(
	        state, RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'wires': ['p1']") ", " RIG_VNF(2, "p3", "")));
	struct speaker one = {.vnf = 1, .port = PORT1, .session = 1};
	struct rig_frame frame = rig_ipv4(1, HOST_OF_WIRE, 1);

	assert_int_equal(tell(state, task, &one, FIB_HELLO, NULL, 0, 0, 0), FIB_OK);
	assert_int_equal(tell_hop(state, task, &one, 0, 1, 1, 0), FIB_MALFORMED);
	one = announced(state, task, 1, 0, 2); // the first of its wires is p1
	assert_int_equal(rig_send(state, task, WIRE1, &frame, 0), 100);
	rig_conserves(task);
	task_destroy(task);
}

static void the_quota_is_the_vnfs(void **state)
{
	struct task *task = rig_open(
	        state, RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'quota_routes': 2") ", " RIG_VNF(2, "p3", "")));
	struct speaker one = announced(state, task, 1, 1, 1);

	assert_int_equal(tell_route(state, task, &one, FIB_ADD, 2, 0, 0), FIB_OK);
	assert_int_equal(tell_route(state, task, &one, FIB_ADD, 3, 0, 0), FIB_QUOTA);
	assert_int_equal(where(state, task, 1, 2, 0), 100);
	assert_int_equal(where(state, task, 1, 3, 0), 0);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.routes4"), 2);
	task_destroy(task);
}

static void a_silent_vnf_is_flushed_after_its_grace(void **state)
{
	struct task *task = rig_open(state, RIG_PLAIN);
	uint64_t s = clock_hz();
	struct speaker one = announced(state, task, 1, 1, 7), two = announced(state, task, 2, 0, 7);

	rig_do(task, "next_hop_set", "{'vnf': 1, 'hop': 0, 'wire': 'p1', 'mac': '02:00:00:00:09:01'}");
	rig_do(task, "route_set", "{'vnf': 1, 'prefix': '10.0.0.8', 'hop': 0}");
	for (uint64_t now = 0; now < 12 * s; now += s) { // 3 s until it is missed, 5 s of grace
		assert_int_equal(tell(state, task, &two, FIB_KEEPALIVE, NULL, 0, 0, now), FIB_OK);
		assert_int_equal(where(state, task, 1, 1, now), now < 10 * s ? 100 : 0);
		assert_int_equal(where(state, task, 2, 1, now), 1000);
		if (now == 6 * s) { // all that it announced, without the operator's
			assert_int_equal(rig_number(task, "fib_offload.vnfs.0.stale"), 1);
			assert_int_equal(rig_number(task, "fib_offload.vnfs.0.routes4"), 2);
			assert_int_equal(rig_number(task, "fib_offload.vnfs.1.stale"), 0);
		}
	}
	assert_int_equal(where(state, task, 1, 8, 12 * s), 100); // the operator's stays
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.routes4"), 1);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.session.lost_peers"), 1);
	assert_int_equal(tell_route(state, task, &one, FIB_ADD, 1, 0, 12 * s), FIB_NO_SESSION);
	rig_conserves(task);
	task_destroy(task);
}

static void a_vnf_that_comes_back_keeps_forwarding(void **state)
{
	struct task *task = rig_open(state, RIG_PLAIN);
	struct speaker one = announced(state, task, 1, 1, 7), again = {.vnf = 1, .port = PORT1, .session = 8};

	assert_int_equal(tell_route(state, task, &one, FIB_ADD, 2, 0, 0), FIB_OK);
	assert_int_equal(tell(state, task, &again, FIB_HELLO, NULL, 0, 0, 0), FIB_OK);
	assert_int_equal(where(state, task, 1, 1, 0), 100);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.stale"), 2);
	assert_int_equal(tell_route(state, task, &one, FIB_ADD, 3, 0, 0), FIB_NO_SESSION);
	assert_int_equal(tell_hop(state, task, &again, 3, 0, 1, 0), FIB_OK);
	assert_int_equal(tell_route(state, task, &again, FIB_ADD, 1, 3, 0), FIB_OK);
	assert_int_equal(where(state, task, 1, 1, 0), 1000);
	assert_int_equal(where(state, task, 1, 2, 0), 100); // stale
	assert_int_equal(tell(state, task, &again, FIB_END_OF_RIB, NULL, 0, 0, 0), FIB_OK);
	assert_int_equal(where(state, task, 1, 1, 0), 1000);
	assert_int_equal(where(state, task, 1, 2, 0), 0);
	rig_conserves(task);
	task_destroy(task);
}

static void messages_wait_while_others_have_the_fib(void **state)
{
	struct task *task = rig_open(state, RIG_PLAIN);
	struct speaker one = announced(state, task, 1, 1, 7);
	struct offload *o = (struct offload *)task;
	struct rig_frame frame;

	assert_true(fib_trylock(o->fib->fib));
	assert_int_equal(tell_route(state, task, &one, FIB_ADD, 2, 0, 0), FIB_BUSY);
	fib_unlock(o->fib->fib);
	one.sequence--; // the same again
	frame = say(&one, FIB_KEEPALIVE, NULL, 0, 0);
	rte_spinlock_lock(&o->vnfs[0].session->lock);
	assert_int_equal(rig_send(state, task, PORT1, &frame, 0), 0);
	rte_spinlock_unlock(&o->vnfs[0].session->lock);
	assert_int_equal(rig_number(task, "drops.busy_message"), 1);
	assert_int_equal(answer_to(state, task, &one, &frame, 0), FIB_OK);
	rig_conserves(task);
	task_destroy(task);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(traffic_follows_what_a_vnf_announces),
	        TEST(a_vnf_has_no_wire_of_others),
	        TEST(the_quota_is_the_vnfs),
	        TEST(a_silent_vnf_is_flushed_after_its_grace),
	        TEST(a_vnf_that_comes_back_keeps_forwarding),
	        TEST(messages_wait_while_others_have_the_fib),
	};

	if (fixture_eal_init("fib_offload_session") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("fib_offload_session", tests, NULL, NULL);
}
