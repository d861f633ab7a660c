// SPDX-License-Identifier: BSD-3-Clause
// A kind of task that is one file (test/sink_task.c): a document has it with its settings, it counts, clears, reports and
// answers.
#include <string.h>

#include "runtime/config.h"
#include "test/fixture.h"
#include "test/unit.h"

static struct task *create(void **state, const char *more)
{
	struct config_task config = {.name = "s", .kind = "sink", .port_count = 1, .ports = {"p0"}};
	json_t *object = json_loads(more, 0, NULL);
	struct task *task;

	config.object = object;
	task = fixture_task(*state, &config);
	json_decref(object);
	return task;
}

static json_int_t reported(const struct task *task, const char *path)
{
	json_t *report = fixture_report(task);
	json_int_t n = fixture_number(report, path);

	json_decref(report);
	return n;
}

static void it_counts_and_clears(void **state)
{
	struct task *task = create(state, "{\"long_bytes\": 100}");

	assert_non_null(task);
	assert_int_equal(fixture_inject(*state, 0, 3, 60) + fixture_inject(*state, 0, 2, 100), 5);
	assert_int_equal(task->ops->poll(task, 0), 5);
	assert_int_equal(reported(task, "sink.short_frames"), 3);
	assert_int_equal(reported(task, "sink.long_frames"), 2);
	assert_int_equal(reported(task, "rx_packets"), 5);
	assert_int_equal(reported(task, "rx_bursts"), 1);
	task_clear(task);
	assert_int_equal(reported(task, "sink.short_frames") + reported(task, "rx_packets"), 0);
	task_destroy(task);
}

static void methods_take_what_they_say(void **state)
{
	struct task *task = create(state, "{}");
	char error[CONFIG_ERROR_MAX] = "";
	json_t *params = json_pack("{s:s, s:i}", "task", "s", "frames", 10), *answer;

	assert_null(task_call(task, "share", params, 0, error));
	assert_string_equal(error, "task s: no frame came yet");
	assert_int_equal(fixture_inject(*state, 0, 1, 60) + fixture_inject(*state, 0, 1, 1500), 2);
	task->ops->poll(task, 0);
	answer = task_call(task, "share", params, 0, error);
	assert_int_equal(fixture_number(answer, "long_frames"), 5);
	json_decref(answer);
	json_object_set_new(params, "of", json_true());
	assert_null(task_call(task, "share", params, 0, error));
	assert_non_null(strstr(error, "params: unknown key \"of\"; valid keys: task frames"));
	json_decref(params);
	task_destroy(task);
}

static void settings_are_refused(void **state)
{
	struct config_task config = {.name = "s", .kind = "sink"};
	json_t *object = json_pack("{s:i}", "long_bytes", 0);
	char error[CONFIG_ERROR_MAX] = "";

	config.object = object;
	assert_int_equal(task_settings_parse(task_ops_find("sink"), &config, "tasks[0]", error), -EINVAL);
	assert_string_equal(error,
	                    "tasks[0].long_bytes: 0 is not valid: expected a whole number from 1 to 65535");
	assert_null(config.settings);
	json_decref(object);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(it_counts_and_clears),
	        TEST(methods_take_what_they_say),
	        TEST(settings_are_refused),
	};

	return fixture_eal_init("task_kind") ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
