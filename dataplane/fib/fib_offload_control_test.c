// SPDX-License-Identifier: BSD-3-Clause
// What the control thread does with fib_offload: methods, FIBs that several tasks share, snapshots, settings.
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "fib/fib_offload_speaker.h"

// --- The operator ----------------------------------------------------------------------------------------

static void synthetic_routes_are_where_the_formula_says(void **state)
{
	struct task *task = rig_open(state, RIG_PLAIN);
	struct rig_frame frame = rig_ipv4(1, HOST_OF_WIRE, 41), got;
	json_t *answer;

	rig_do(task, "load_synthetic",
	       "{'vnf': 1, 'routes': 500, 'next_hops': 3, 'wire': 'p1', 'mac': '02:00:00:00:09:fe'}");
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.routes4"), 500);
	rig_inject(state, WIRE0, &frame);
	rig_poll(task, 0);
	assert_true(rig_collect(state, WIRE1, &got));
	assert_memory_equal(got.bytes, ((uint8_t[]){2, 0, 0, 0, 0x0a, 0}), 6); // 41 % 3 = 2; fe + 2
	assert_int_equal(where(state, task, 1, 500 % 256, 0), 100);
	answer = rig_call(task, "flush", "{'vnf': 1}");
	assert_int_equal(fixture_number(answer, "flushed"), 500);
	json_decref(answer);
	assert_int_equal(where(state, task, 1, 41, 0), 0);
	for (unsigned i = 0; i < 20; i++) // ticks sweep
		rig_poll(task, (i + 1) * clock_hz() / 100);
	assert_int_equal(rig_number(task, "fib_offload.table4.entries"), 0);
	task_destroy(task);
}

// However many a VNF flushes, a tick takes out a few of them: frames wait meanwhile.
static void a_tick_sweeps_a_little(void **state)
{
	struct task *task = rig_open(state, RIG_PLAIN);
	json_int_t before = 900, now = before;

	rig_do(task, "load_synthetic",
	       "{'vnf': 1, 'routes': 900, 'next_hops': 3, 'wire': 'p1', 'mac': '02:00:00:00:09:fe'}");
	rig_do(task, "flush", "{'vnf': 1}");
	for (unsigned i = 0; i < 20 && now; i++) {
		rig_poll(task, (i + 1) * clock_hz() / 100);
		now = rig_number(task, "fib_offload.table4.entries");
		assert_in_range(before - now, i < 6 ? 128 : 0, 160);
		before = now;
	}
	assert_int_equal(now, 0);
	task_destroy(task);
}

static void a_vnf_that_is_flushed_begins_anew(void **state)
{
	struct task *task = rig_open(state, RIG_PLAIN);
	struct speaker one = announced(state, task, 1, 1, 7);

	rig_do(task, "flush", "{'vnf': 1}");
	assert_int_equal(where(state, task, 1, 1, 0), 0);
	assert_int_equal(tell_route(state, task, &one, FIB_ADD, 2, 0, 0), FIB_NO_SESSION);
	announced(state, task, 1, 1, 8);
	assert_int_equal(where(state, task, 1, 1, 0), 100);
	task_destroy(task);
}

static void routes_come_in_pages(void **state)
{
	struct task *task = rig_open(state, RIG_PLAIN);
	json_int_t from = 0;
	size_t seen = 0;

	rig_do(task, "load_synthetic", "{'vnf': 1, 'routes': 100, 'wire': 'p1', 'mac': '02:00:00:00:09:01'}");
	rig_do(task, "load_synthetic", "{'vnf': 2, 'routes': 100, 'wire': 'p0', 'mac': '02:00:00:00:09:02'}");
	do {
		char params[64];
		json_t *page;

		snprintf(params, sizeof(params), "{'vnf': 1, 'limit': 16, 'from': %lld}", (long long)from);
		page = rig_call(task, "routes", params);
		seen += json_array_size(json_object_get(page, "routes"));
		assert_true(json_array_size(json_object_get(page, "routes")) <= 16);
		from = json_is_null(json_object_get(page, "next")) ? 0 : fixture_number(page, "next");
		json_decref(page);
	} while (from);
	assert_int_equal(seen, 100);
	task_destroy(task);
}

static void methods_refuse_with_a_sentence(void **state)
{
	static const struct {
		const char *method, *params, *words;
	} cases[] = {
	        {"lookup", "{'vnf': 3, 'address': '10.0.0.1'}", "no VNF 3"},
	        {"lookup", "{'vnf': 1, 'address': '10.0.0'}", "IPv4 or IPv6 address"},
	        {"route_set", "{'vnf': 1, 'prefix': '10.0.0.1/8', 'hop': 0}", "10.0.0.0/8"},
	        {"route_set", "{'vnf': 1, 'prefix': '10.0.0.1', 'hop': 9}", "next_hop_set"},
	        {"route_delete", "{'vnf': 1, 'prefix': '10.0.0.9'}", "no such route"},
	        {"next_hop_set", "{'vnf': 1, 'hop': 0, 'wire': 'p2', 'mac': '02:00:00:00:09:01'}", "p2"},
	        {"next_hop_set", "{'vnf': 1, 'hop': 0, 'wire': 'p1'}", "params.mac"},
	        {"next_hop_set", "{'vnf': 1, 'hop': 4096}", "4096"},
	        {"load_synthetic", "{'vnf': 1, 'routes': 99999999, 'wire': 'p1', 'mac': '02:00:00:00:09:01'}",
	         "16777216"},
	        {"load_synthetic", "{'vnf': 1, 'routes': 100000, 'wire': 'p1', 'mac': '02:00:00:00:09:01'}",
	         "quota_routes"},
	        {"save", "{}", "snapshot"},
	        {"load", "{'path': '/nowhere/at/all'}", "/nowhere/at/all"},
	};
	struct task *task = rig_open(state, RIG_PLAIN);

	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		json_t *params = rig_json(cases[i].params);
		char error[CONFIG_ERROR_MAX] = "";

		assert_null(task_call(task, cases[i].method, params, 0, error));
		if (!strstr(error, cases[i].words))
			fail_msg("%s %s: %s", cases[i].method, cases[i].params, error);
		json_decref(params);
	}
	task_destroy(task);
}

// --- FIBs by name ----------------------------------------------------------------------------------------

static void a_new_task_of_the_same_fib_goes_on(void **state)
{
	struct task *old = rig_open(state, RIG_PLAIN), *new;
	struct speaker one = announced(state, old, 1, 1, 7);
	json_t *other =
	        rig_json(RIG_SETTINGS(", 'fib': 'another'", RIG_VNF(1, "p2", "") ", " RIG_VNF(2, "p3", "")));
	struct config_task config = rig_config(other);

	new = rig_open(state, RIG_PLAIN);
	new->ops->take_effect(new);
	task_destroy(old);
	assert_int_equal(where(state, new, 1, 1, 0), 100);
	assert_int_equal(tell_route(state, new, &one, FIB_ADD, 2, 0, 0), FIB_OK); // the session, too
	old = new;
	new = fixture_task(*state, &config);
	assert_non_null(new);
	task_destroy(old);
	assert_int_equal(where(state, new, 1, 1, 0), 0);
	task_destroy(new);
	json_decref(other);
}

// As on two workers, each with a queue of its own; here in turn.
static void tasks_that_share_a_fib_forward_alike(void **state)
{
	struct task *a = rig_open(state, RIG_PLAIN), *b = rig_open(state, RIG_PLAIN);
	struct speaker one = announced(state, a, 1, 1, 7);

	assert_int_equal(where(state, b, 1, 1, 0), 100);
	assert_int_equal(tell_route(state, b, &one, FIB_ADD, 2, 0, 0), FIB_OK); // a session of both
	assert_int_equal(where(state, a, 1, 2, 0), 100);
	task_destroy(a);
	assert_int_equal(where(state, b, 1, 2, 0), 100);
	task_destroy(b);
	a = rig_open(state, RIG_PLAIN);
	assert_int_equal(where(state, a, 1, 2, 0), 0); // the last one took it along
	task_destroy(a);
}

static struct task *replaced(void **state, struct task *old, const char *settings)
{
	struct task *new = rig_open(state, settings);

	new->ops->take_effect(new);
	task_destroy(old);
	return new;
}

// The question comes by one worker, the answer by another; a task that replaces both knows it too.
static void tasks_that_share_a_fib_know_neighbours_alike(void **state)
{
	struct task *a = rig_open(state, RIG_PLAIN), *b = rig_open(state, RIG_PLAIN);
	struct rig_frame question = rig_ether(1, HOST_OF_WIRE, RTE_ETHER_TYPE_ARP);
	struct rig_frame answer = rig_ether(HOST_OF_WIRE, 1, RTE_ETHER_TYPE_ARP);

	assert_int_equal(rig_send(state, a, WIRE0, &question, 1), 10);
	assert_int_equal(rig_send(state, b, PORT1, &answer, 1), 1000);
	task_destroy(b);
	b = replaced(state, a, RIG_PLAIN);
	assert_int_equal(rig_send(state, b, PORT1, &answer, 1), 1000);
	a = replaced(state, b,
	             RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'wires': ['p1']") ", " RIG_VNF(2, "p3", "")));
	assert_int_equal(rig_send(state, a, PORT1, &answer, 1), 100); // that wire is not the VNF's any more
	task_destroy(a);
}

static void a_vnf_that_is_taken_out_leaves_no_routes(void **state)
{
	static const char alone[] =
	        RIG_SETTINGS("", RIG_VNF(1, "p2", "") ", " RIG_VNF(2, "p3", ", 'offload': false"));
	struct task *old = rig_open(state, RIG_PLAIN), *new;

	announced(state, old, 1, 1, 7);
	announced(state, old, 2, 1, 7);
	new = rig_open(state, alone);
	task_destroy(old);
	assert_int_equal(where(state, new, 1, 1, 0), 100);
	old = new;
	new = rig_open(state, RIG_PLAIN);
	task_destroy(old);
	assert_int_equal(where(state, new, 2, 1, 0), 0);
	assert_int_equal(rig_number(new, "fib_offload.vnfs.1.quota_routes"), 1000); // its share
	task_destroy(new);
}

// A packet to 10.0.0.last of VNF 1, whose address ends in mac: by this wire, or none, with the address as its source.
static void assert_way(void **state, struct task *task, unsigned mac, unsigned last, int wire)
{
	struct rig_frame frame = rig_ipv4(mac, HOST_OF_WIRE, last), got;

	rig_inject(state, WIRE0, &frame);
	rig_poll(task, 0);
	if (wire >= 0) {
		assert_true(rig_collect(state, (unsigned)wire, &got));
		assert_memory_equal(got.bytes + 6, frame.bytes, 6);
	}
	assert_int_equal(rig_came(state), 0);
}

// What a VNF announced by its session 7: .1 by p1, .2 by p0, .3 by both; and the operator: .4, .5, .6.
static struct task *open_ways(void **state, struct speaker *one)
{
	struct task *task = rig_open(state, RIG_PLAIN);
	const struct fib_group_record group = {
	        .op = FIB_REPLACE,
	        .count = 2,
	        .number = RTE_BE16(2),
	        .members = {{RTE_BE16(0), 1, 0}, {RTE_BE16(1), 1, 0}},
	};

	*one = announced(state, task, 1, 1, 7);
	assert_int_equal(tell_hop(state, task, one, 1, 0, 1, 0), FIB_OK);
	assert_int_equal(tell(state, task, one, FIB_NEXT_HOP_GROUPS, &group, 1, sizeof(group), 0), FIB_OK);
	assert_int_equal(tell_route(state, task, one, FIB_ADD, 2, 1, 0), FIB_OK);
	assert_int_equal(tell_route(state, task, one, FIB_ADD, 3, 2, 0), FIB_OK);
	rig_do(task, "next_hop_set", "{'vnf': 1, 'hop': 0, 'wire': 'p1', 'mac': '02:00:00:00:09:01'}");
	rig_do(task, "next_hop_set", "{'vnf': 1, 'hop': 1, 'wire': 'p0', 'mac': '02:00:00:00:09:01'}");
	rig_do(task, "next_hop_set",
	       "{'vnf': 1, 'hop': 2, 'kind': 'group', 'members': [{'hop': 0}, {'hop': 1}]}");
	rig_do(task, "route_set", "{'vnf': 1, 'prefix': '10.0.0.4', 'hop': 0}");
	rig_do(task, "route_set", "{'vnf': 1, 'prefix': '10.0.0.5', 'hop': 1}");
	rig_do(task, "route_set", "{'vnf': 1, 'prefix': '10.0.0.6', 'hop': 2}");
	return task;
}

// Nothing leaves by it from then on; by others everything does until the VNF has announced it again.
static void a_wire_that_a_vnf_loses_is_not_used(void **state)
{
	static const int ways[] = {-1, WIRE0, WIRE0, -1, WIRE0, WIRE0};
	struct speaker one;
	struct task *task = open_ways(state, &one);
	struct rig_frame frame;

	task = replaced(state, task,
	                RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'wires': ['p0']") ", " RIG_VNF(2, "p3", "")));
	for (unsigned last = 1; last <= 6; last++)
		assert_way(state, task, 1, last, ways[last - 1]);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.stale"), 2);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.routes4"), 4);
	assert_int_equal(tell_route(state, task, &one, FIB_ADD, 9, 1, 0), FIB_NO_SESSION);
	one = announced(state, task, 1, 0, 8); // the only one it has
	assert_way(state, task, 1, 1, WIRE0);
	assert_int_equal(tell(state, task, &one, FIB_END_OF_RIB, NULL, 0, 0, 0), FIB_OK);
	assert_way(state, task, 1, 2, -1);
	assert_way(state, task, 1, 5, WIRE0);
	task = replaced(state, task,
	                RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'wires': ['p0']") ", " RIG_VNF(2, "p3", "")));
	frame = say(&one, FIB_KEEPALIVE, NULL, 0, 0); // the same settings: the session goes on
	assert_int_equal(answer_to(state, task, &one, &frame, 0), FIB_OK);
	for (unsigned i = 0; i < 20; i++) // ticks sweep
		rig_poll(task, (i + 1) * clock_hz() / 100);
	assert_int_equal(rig_number(task, "fib_offload.table4.entries"), 3);
	rig_conserves(task);
	task_destroy(task);
}

static void a_new_address_is_the_source_of_all_routes(void **state)
{
	static const int ways[] = {WIRE1, WIRE0, -2, WIRE1, WIRE0, -2};
	struct speaker one;
	struct task *task = open_ways(state, &one);

	rig_do(task, "next_hop_set",
	       "{'vnf': 1, 'hop': 3, 'wire': 'p1', 'mac': '02:00:00:00:09:01', 'source': '02:00:00:00:07:07'}");
	task = replaced(state, task,
	                RIG_SETTINGS("", "{'vnf': 1, 'port': 'p2', 'mac': '02:00:00:00:02:05'}, " RIG_VNF(
	                                         2, "p3", "")));
	for (unsigned last = 1; last <= 6; last++)
		if (ways[last - 1] >= 0)
			assert_way(state, task, 5, last, ways[last - 1]);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.stale"), 3);
	rig_do(task, "route_set", "{'vnf': 1, 'prefix': '10.0.0.1', 'hop': 3}");
	{
		json_t *answer = rig_call(task, "lookup", "{'vnf': 1, 'address': '10.0.0.1'}");
		const char *source;

		assert_int_equal(json_unpack(answer, "{s:{s:s}}", "hop", "source", &source), 0);
		assert_string_equal(source, "02:00:00:00:07:07"); // the operator's choice
		json_decref(answer);
	}
	one.vnf = 5;
	assert_int_equal(tell_route(state, task, &one, FIB_ADD, 9, 1, 0), FIB_NO_SESSION);
	rig_conserves(task);
	task_destroy(task);
}

static void tasks_with_one_fib_must_be_alike(void **state)
{
	json_t *settings = rig_json(RIG_PLAIN),
	       *more = rig_json(RIG_SETTINGS(", 'fib': 'sw', 'punt': {'burst': 9}",
	                                     RIG_VNF(1, "p2", "") ", " RIG_VNF(2, "p3", "")));
	struct config_task a = rig_config(settings), b = rig_config(more);
	char error[CONFIG_ERROR_MAX] = "";
	const struct task_ops *ops = task_ops_find("fib_offload");

	assert_int_equal(
	        task_settings_parse(ops, &a, "task", error) | task_settings_parse(ops, &b, "task", error), 0);
	assert_int_equal(ops->agree(&a, &a, error), 0);
	assert_int_not_equal(ops->agree(&a, &b, error), 0);
	task_settings_free(ops, a.settings);
	task_settings_free(ops, b.settings);
	assert_non_null(strstr(error, "share the FIB \"sw\""));
	json_decref(settings);
	json_decref(more);
}

// As a worker does.
struct poller {
	struct task *task;
	pthread_t thread;
	_Atomic bool end;
};

static void *poll_on(void *argument)
{
	struct poller *poller = argument;

	for (uint64_t now_tsc = 2 * clock_hz(); !poller->end; now_tsc += clock_hz() / 1000) {
		poller->task->ops->poll(poller->task, now_tsc);
		usleep(1000);
	}
	return NULL;
}

static void do_beside(struct task *task, const char *method, const char *params)
{
	struct poller poller = {.task = task};

	assert_int_equal(pthread_create(&poller.thread, NULL, poll_on, &poller), 0);
	rig_do(task, method, params);
	poller.end = true;
	pthread_join(poller.thread, NULL);
}

// A load that is refused.
static void load_beside(struct task *task, const json_t *given, char *error)
{
	struct poller poller = {.task = task};

	assert_int_equal(pthread_create(&poller.thread, NULL, poll_on, &poller), 0);
	assert_null(task_call(task, "load", given, 0, error));
	poller.end = true;
	pthread_join(poller.thread, NULL);
}

// Make a template that of a file which is not there.
static void take_free_path(char *path)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	unlink(path);
}

static void a_snapshot_is_there_at_the_next_start(void **state)
{
	char path[] = "/tmp/fib_offload_test.XXXXXX", settings[1024], params[128];
	struct task *task;

	take_free_path(path);
	snprintf(settings, sizeof(settings),
	         RIG_SETTINGS(", 'snapshot': '%s'", RIG_VNF(1, "p2", "") ", " RIG_VNF(2, "p3", "")), path);
	task = rig_open(state, settings);
	rig_routes(task);
	announced(state, task, 2, 1, 7);
	rig_do(task, "save", "{}");
	task_destroy(task);
	task = rig_open(state, settings);
	assert_int_equal(where(state, task, 1, 1, 1), 100); // the operator's
	assert_int_equal(where(state, task, 2, 1, 1), 100); // a session's, stale
	rig_do(task, "flush", "{'vnf': 1}");
	snprintf(params, sizeof(params), "{'path': '%s'}", path);
	do_beside(task, "load", params);
	assert_int_equal(where(state, task, 1, 1, 6 * clock_hz()), 100);
	assert_int_equal(where(state, task, 2, 1, 6 * clock_hz()),
	                 100); // 5 s from the first tick, at 2 s or later
	assert_int_equal(where(state, task, 2, 1, 13 * clock_hz()), 0);
	assert_int_equal(where(state, task, 1, 1, 13 * clock_hz()), 100);
	task_destroy(task);
	unlink(path);
}

#define WITH_SNAPSHOT(wires, routes6, vnfs)                                                                  \
	"{'wires': " wires ", 'routes4': 1000, 'routes6': " routes6                                          \
	", 'pages': '4K', 'fib': 'kept', 'snapshot': '%s', 'snapshot_s': 7, 'vnfs': [" vnfs "]}"
#define TWO_VNFS RIG_VNF(1, "p2", "") ", " RIG_VNF(2, "p3", "")

// Wires that have changed places, and a VNF that has lost one meanwhile: routes are by the wires that they named.
static void a_snapshot_knows_wires_by_their_names(void **state)
{
	char path[] = "/tmp/fib_offload_test.XXXXXX", settings[1024];
	struct task *task;

	take_free_path(path);
	snprintf(settings, sizeof(settings), WITH_SNAPSHOT("['p0', 'p1']", "1000", TWO_VNFS), path);
	task = rig_open(state, settings);
	rig_routes(task);
	announced(state, task, 2, 1, 7); // takes the operator's 10.0.0.1 over
	assert_int_equal(where(state, task, 1, 1, 0), 100);
	assert_int_equal(where(state, task, 2, 1, 0), 100);
	rig_do(task, "save", "{}");
	task_destroy(task);
	snprintf(settings, sizeof(settings), WITH_SNAPSHOT("['p1', 'p0']", "1000", TWO_VNFS), path);
	task = rig_open(state, settings);
	assert_int_equal(where(state, task, 1, 1, 0), 100);
	assert_int_equal(where(state, task, 2, 1, 0), 100);
	task_destroy(task);
	snprintf(settings, sizeof(settings),
	         WITH_SNAPSHOT("['p0', 'p1']", "1000",
	                       RIG_VNF(1, "p2", ", 'wires': ['p0']") ", " RIG_VNF(2, "p3", "")),
	         path);
	task = rig_open(state, settings);
	assert_int_equal(where(state, task, 1, 1, 0), 0);
	assert_int_equal(where(state, task, 2, 1, 0), 100);
	task_destroy(task);
	unlink(path);
}

// One with a table that is not here any more stays as it is; one without a table that is here now is taken.
static void a_snapshot_that_is_refused_is_not_written_over(void **state)
{
	char path[] = "/tmp/fib_offload_test.XXXXXX", both[1024], four[1024];
	struct task *task;

	take_free_path(path);
	snprintf(both, sizeof(both), WITH_SNAPSHOT("['p0', 'p1']", "1000", TWO_VNFS), path);
	snprintf(four, sizeof(four), WITH_SNAPSHOT("['p0', 'p1']", "0", TWO_VNFS), path);
	task = rig_open(state, both);
	rig_routes(task);
	rig_do(task, "save", "{}");
	task_destroy(task);

	task = rig_open(state, four);
	task->ops->take_effect(task);
	assert_int_equal(where(state, task, 1, 1, 0), 0);
	announced(state, task, 1, 1, 7);
	task->ops->keep(task, true);
	task_destroy(task);
	task = rig_open(state, both);
	assert_int_equal(where(state, task, 1, 1, 0), 100);
	assert_int_equal(rig_number(task, "fib_offload.vnfs.0.routes6"), 1);
	task_destroy(task);

	task = rig_open(state, four);
	announced(state, task, 2, 1, 7);
	rig_do(task, "save", "{}"); // the operator wants it
	task_destroy(task);
	task = rig_open(state, both);
	assert_int_equal(where(state, task, 2, 1, 0), 100);
	assert_int_equal(where(state, task, 1, 1, 0), 0);
	task_destroy(task);
	unlink(path);
}

// On a timer and at the end, but not without a change.
static void a_snapshot_is_kept(void **state)
{
	char path[] = "/tmp/fib_offload_test.XXXXXX", settings[1024];
	struct task *task;
	struct speaker two;
	int ms;

	take_free_path(path);
	snprintf(settings, sizeof(settings),
	         RIG_SETTINGS(", 'snapshot': '%s', 'snapshot_s': 7",
	                      RIG_VNF(1, "p2", "") ", " RIG_VNF(2, "p3", "")),
	         path);
	task = rig_open(state, settings);
	task->ops->take_effect(task);
	assert_int_equal(task->ops->keep(task, true), 7000);
	assert_int_equal(access(path, F_OK), -1); // nothing has changed
	two = announced(state, task, 2, 1, 7);
	ms = task->ops->keep(task, false);
	assert_true(ms > 0 && ms <= 7000);
	assert_int_equal(access(path, F_OK), -1); // it is not due
	assert_int_equal(task->ops->keep(task, true), 7000);
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
	task->ops->keep(task, true);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(tell_route(state, task, &two, FIB_ADD, 2, 0, 0), FIB_OK);
	task->ops->keep(task, true);
	assert_int_equal(access(path, F_OK), 0);
	task_destroy(task);
	unlink(path);
}

// What is refused leaves sessions as they are; a file that proves unusable on the way has emptied the FIB.
static void a_load_that_fails_ends_no_session(void **state)
{
	char path[] = "/tmp/fib_offload_test.XXXXXX", params[128];
	struct task *task = rig_open(state, RIG_PLAIN);
	struct speaker one = announced(state, task, 1, 1, 7);
	json_t *given = rig_json("{'path': '/nowhere/at/all'}");
	char error[CONFIG_ERROR_MAX] = "";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_null(task_call(task, "load", given, 0, error));
	assert_int_equal(tell_route(state, task, &one, FIB_ADD, 2, 0, 0), FIB_OK);
	json_decref(given);

	snprintf(params, sizeof(params), "{'path': '%s'}", path);
	rig_do(task, "save", params);
	close(fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_END) - 8), 0);
	close(fd);
	given = rig_json(params);
	load_beside(task, given, error);
	assert_int_equal(tell_route(state, task, &one, FIB_ADD, 3, 0, 0), FIB_NO_SESSION);
	json_decref(given);
	task_destroy(task);
	unlink(path);
}

// --- Settings --------------------------------------------------------------------------------------------

static void settings_are_refused_with_a_sentence(void **state)
{
	static const char *const cases[][2] = {
	        {"{'vnfs': []}", "\"wires\" is missing"},
	        {"{'wires': ['p0', 'p0'], 'vnfs': []}", "named twice"},
	        {"{'wires': ['p0'], 'vnfs': [], 'mtus': [{'wire': 'p1', 'mtu': 1500}]}",
	         "mtus[0].wire: \"p1\" is not one of \"wires\""},
	        {"{'wires': ['p0'], 'vnfs': [], 'mtus': [{'wire': 'p0', 'mtu': 67}]}", "mtus[0].mtu"},
	        {"{'wires': ['p9'], 'vnfs': []}", "\"p9\" is not one of the task's \"ports\""},
	        {"{'wires': ['p0', 'p1'], 'vnfs': []}", "port p2 is neither"},
	        {"{'wires': ['p0'], 'vnfs': [], 'routes4': 0}", "no route"},
	        {"{'wires': ['p0'], 'vnfs': 3}", "vnfs: expected an array"},
	        {"{'wires': ['p0'], 'vnfs': [], 'pages': '3M'}", "expected one of best 1G 2M thp 4K"},
	        {"{'wires': ['p0'], 'vnfs': [], 'punt': {'rate_pps': 0}}", "rate_pps"},
	        {"{'wires': ['p0'], 'vnfs': [], 'punt': {'also': [{'protocol': 'bgp'}]}}",
	         "punt.also[0].protocol"},
	        {"{'wires': ['p0'], 'vnfs': [], 'punt': {'also': [{'protocol': 89, 'port': 1}]}}",
	         "no ports"},
	        {RIG_SETTINGS("", RIG_VNF(0, "p2", "")), "vnfs[0].vnf: 0 is not valid"},
	        {RIG_SETTINGS("", RIG_VNF(1, "p0", "")), "is a wire"},
	        {RIG_SETTINGS("", RIG_VNF(1, "p2", "") ", " RIG_VNF(1, "p3", "")),
	         "vnfs[1].vnf: 1 is vnfs[0], too"},
	        {RIG_SETTINGS("", RIG_VNF(1, "p2", "") ", " RIG_VNF(2, "p2", "")), "vnfs[1].port"},
	        {RIG_SETTINGS("",
	                      RIG_VNF(1, "p2", "") ", {'vnf': 2, 'port': 'p3', 'mac': '02:00:00:00:02:01'}"),
	         "vnfs[1].mac"},
	        {RIG_SETTINGS("", "{'vnf': 2, 'port': 'p3', 'mac': '03:00:00:00:02:01'}"), "unicast"},
	        {RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'wires': ['p3']")), "\"p3\" is not one of \"wires\""},
	        {RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'wires': ['p0'], 'out': 'p1'")), "vnfs[0].out"},
	        {RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'vlans': [10, 4095]")),
	         "vnfs[0].vlans[1]: expected a VLAN number from 1 to 4094"},
	        {RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'reflect': '02:00:00:00:09:01'")), "vnfs[0].reflect"},
	        {RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'quota_next_hops': 5000")), "from 0 to 4096"},
	        {RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'routes_of': 2")),
	         "vnfs[0].routes_of: 2 is not a VNF here"},
	        {RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'routes_of': 1")), "has those of another, too"},
	        {RIG_SETTINGS(
	                 "", RIG_VNF(1, "p2", ", 'wires': ['p0'], 'routes_of': 2") ", " RIG_VNF(2, "p3", "")),
	         "vnfs[0].routes_of: 2 has wires that this VNF lacks"},
	        {RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'offload': false, 'routes_of': 2") ", " RIG_VNF(2, "p3",
	                                                                                              "")),
	         "for a VNF that is offloaded"},
	        {RIG_SETTINGS("", RIG_VNF(1, "p2", ", 'on_miss': 'flood'")), "expected one of drop punt"},
	};
	char error[CONFIG_ERROR_MAX];

	for (unsigned i = 0; i < RTE_DIM(cases); i++) {
		json_t *settings = rig_json(cases[i][0]);
		struct config_task config = rig_config(settings);

		assert_int_not_equal(
		        task_settings_parse(task_ops_find("fib_offload"), &config, "task", error), 0);
		if (!strstr(error, cases[i][1]))
			fail_msg("%s: %s", cases[i][0], error);
		json_decref(settings);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(synthetic_routes_are_where_the_formula_says),
	        TEST(a_tick_sweeps_a_little),
	        TEST(a_vnf_that_is_flushed_begins_anew),
	        TEST(routes_come_in_pages),
	        TEST(methods_refuse_with_a_sentence),
	        TEST(a_new_task_of_the_same_fib_goes_on),
	        TEST(tasks_that_share_a_fib_forward_alike),
	        TEST(tasks_that_share_a_fib_know_neighbours_alike),
	        TEST(a_vnf_that_is_taken_out_leaves_no_routes),
	        TEST(a_wire_that_a_vnf_loses_is_not_used),
	        TEST(a_new_address_is_the_source_of_all_routes),
	        TEST(tasks_with_one_fib_must_be_alike),
	        TEST(a_snapshot_is_there_at_the_next_start),
	        TEST(a_snapshot_is_kept),
	        TEST(a_snapshot_knows_wires_by_their_names),
	        TEST(a_snapshot_that_is_refused_is_not_written_over),
	        TEST(a_load_that_fails_ends_no_session),
	        TEST(settings_are_refused_with_a_sentence),
	};

	if (fixture_eal_init("fib_offload_control") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("fib_offload_control", tests, NULL, NULL);
}
