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

// At once by a notice, and by every answer; each VNF of its own wires.
static void vnfs_are_told_of_wires_that_are_down(void **state)
{
	struct task *task = rig_open(
	        state, RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'wires': ['p1']") ", " RIG_VNF(2, "p3", "")));
	struct speaker one = announced(state, task, 1, 0, 7);
	const struct fib_ack *ack;
	const struct fib_message *message;
	struct rig_frame frame, got;
	uint64_t now_tsc = 0;

	for (unsigned up = 2; up-- > 0;) {
		uint16_t port_id = task->ports[WIRE1]->port_id;

		if (up == 0)
			assert_int_equal(rte_eth_dev_set_link_down(port_id), 0);
		for (unsigned i = 0; i < 4; i++)
			rig_poll(task, now_tsc += clock_hz() / 500);
		if (up == 0) {
			assert_true(rig_collect(state, PORT1, &got));
			message = (const struct fib_message *)(got.bytes + 14);
			assert_int_equal(got.length, 60);
			assert_int_equal(got.bytes[5], 1); // to the VNF
			assert_int_equal(message->type, FIB_ACK);
			assert_int_equal(rte_be_to_cpu_32(message->session), 7);
			assert_int_equal(((const struct fib_ack *)(message + 1))->wires_up, 0);
		}
		assert_int_equal(rig_came(state), 0); // the other has no session
		frame = say(&one, FIB_KEEPALIVE, NULL, 0, 0);
		rig_inject(state, PORT1, &frame);
		rig_poll(task, now_tsc);
		assert_true(rig_collect(state, PORT1, &got));
		ack = (const struct fib_ack *)(got.bytes + 14 + sizeof(*message));
		assert_int_equal(ack->wires_up, up);
	}
	frame = say(&(struct speaker){.vnf = 2, .port = PORT2, .session = 9}, FIB_HELLO, NULL, 0, 0);
	rig_inject(state, PORT2, &frame);
	rig_poll(task, now_tsc);
	assert_true(rig_collect(state, PORT2, &got));
	ack = (const struct fib_ack *)(got.bytes + 14 + sizeof(*message));
	assert_int_equal(ack->wires_up, 1); // p0, not p1
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.session.notices"), 1);
	assert_int_equal(rte_eth_dev_set_link_up(task->ports[WIRE1]->port_id), 0);
	rig_conserves(task);
	task_destroy(task);
}

// Two workers look at a wire that goes down at different times: whoever tells, it is told once.
static void tasks_that_share_a_fib_agree_on_its_wires(void **state)
{
	struct task *tasks[] = {rig_open(state, RIG_PLAIN), rig_open(state, RIG_PLAIN)};
	uint64_t now_tsc = 0;

	announced(state, tasks[0], 1, 0, 7);
	for (unsigned down = 0; down < 2; down++) {
		if (down)
			assert_int_equal(rte_eth_dev_set_link_down(tasks[0]->ports[WIRE1]->port_id), 0);
		for (unsigned i = 0; i < 20; i++)
			rig_poll(tasks[i % 2], now_tsc += clock_hz() / 500);
		assert_int_equal(rig_number(tasks[0], "fib_offload.vnfs.0.session.notices"), down);
	}
	assert_int_equal(rig_came(state), 10); // to VNF 1
	assert_int_equal(rte_eth_dev_set_link_up(tasks[0]->ports[WIRE1]->port_id), 0);
	for (unsigned i = 0; i < 2; i++)
		task_destroy(tasks[i]);
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
	        TEST(vnfs_are_told_of_wires_that_are_down),
	        TEST(tasks_that_share_a_fib_agree_on_its_wires),
	};

	if (fixture_eal_init("fib_offload_session") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("fib_offload_session", tests, NULL, NULL);
}
