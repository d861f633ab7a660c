// SPDX-License-Identifier: BSD-3-Clause
// A generator with a profile on a wire that often refuses: what comes out is frame after frame just what the
// profile says, byte by byte, and the counts are of what came out.
#include "tester/generator_rig.h"
#include "tester/profile.h"

#define MIX                                                                                                  \
	"{\"sizes\": [[96, 3], [97, 2], [1000, 1]], \"ip\": 6, \"transport\": \"tcp\", \"seed\": 4, "        \
	"\"dst_mac_count\": 3, \"flows\": {\"count\": 5000, \"draw\": \"zipf\"}}"

static json_t *parse(const char *text)
{
	json_t *source = json_loads(text, 0, NULL);

	assert_non_null(source);
	return source;
}

static void start_profile(struct task *task, const char *text, double probe_rate_pps)
{
	const struct generator_load load = {.epoch = EPOCH,
	                                    .start_tsc = START,
	                                    .duration_ns = 1000000,
	                                    .flat_out = true,
	                                    .frame_size_bytes = 64,
	                                    .probe_rate_pps = probe_rate_pps};
	json_t *source = parse(text);
	char error[CONFIG_ERROR_MAX];

	assert_int_equal(generator_prepare(task, source, &load, "load", error), 0);
	assert_int_equal(generator_start(task, &load), 0);
	json_decref(source);
}

// The same profile, made apart from the generator.
static struct profile *model(const char *text)
{
	const struct frame_flow flow = {.src_mac = {2, 0, 0, 0, 0, 2},
	                                .dst_mac = {2, 0, 0, 0, 1, 2},
	                                .src_ip = 0xc6120201,
	                                .dst_ip = 0xc6130201,
	                                .stream = 2,
	                                .epoch = EPOCH,
	                                .frame_size_bytes = 64};
	json_t *source = parse(text);
	char error[CONFIG_ERROR_MAX];
	struct profile *p = profile_make(source, &flow, 2048, "model", error);

	assert_non_null(p);
	profile_begin(p, &flow);
	json_decref(source);
	return p;
}

// The next frame on the wire is frame k; false when there is none.
static bool next_is(struct wire *w, struct profile *p, uint64_t k)
{
	static uint8_t data[WIRE_FRAME_MAX + PROFILE_STORE_MAX], wanted[4096];
	unsigned length = wire_collect(w, data);
	struct frame_fields fields;
	uint8_t *at = wanted;

	if (length == 0)
		return false;
	frame_fill_payload(wanted, sizeof(wanted));
	profile_draw(p, k, 1);
	assert_int_equal(frame_classify(data, length, &fields), FRAME_INTACT);
	profile_write(p, &at, k, 1);
	if (fields.flags)
		profile_stamp(p, at, k, fields.stamp, fields.flags);
	assert_int_equal(length, profile_drawn(p, k)->length);
	assert_memory_equal(data, wanted, length);
	profile_count(p, k, 1);
	return true;
}

static void assert_counts(struct task *task, struct profile *p)
{
	json_t *report = fixture_report(task), *wanted = profile_report(p, true);
	json_t *sent = json_object_get(json_object_get(report, "generator"), "profile");

	assert_true(json_equal(sent, wanted));
	assert_int_equal(number(task, "offered_bytes"), p->ledger.bytes);
	json_decref(report);
	json_decref(wanted);
	assert_int_equal(number(task, "attempted_packets"),
	                 number(task, "offered_packets") + number(task, "refused_packets"));
}

// A ring of 15, collected a few at a time.
static void refused_frames_are_made_again(void **state)
{
	struct wire *w = *state;
	struct task *task = create(w, 8);
	struct profile *p = model(MIX);
	uint64_t k = 0;

	start_profile(task, MIX, 1e5);
	for (unsigned i = 0; i < 500; i++) {
		task->ops->poll(task, after_us(i));
		for (unsigned n = 0; n < i % 7 && next_is(w, p, k); n++)
			k++;
	}
	generator_stop(task);
	while (next_is(w, p, k))
		k++;
	assert_true(k > 1000);
	assert_int_equal(number(task, "offered_packets"), k);
	assert_true(number(task, "refused_packets") > 500);
	assert_true(number(task, "probes_sent") > 5);
	assert_counts(task, p);
	profile_free(p);
	task_destroy(task);
}

static void run_some(struct wire *w, struct task *task, const char *text, unsigned polls)
{
	struct profile *p = model(text);
	uint64_t k = 0;

	start_profile(task, text, 0);
	for (unsigned i = 0; i < polls; i++) {
		task->ops->poll(task, after_us(i));
		while (next_is(w, p, k))
			k++;
	}
	generator_stop(task);
	assert_true(k > 0);
	assert_counts(task, p);
	profile_free(p);
}

// One after the other, deep heads and plain ones, each with a whole pattern; and the same one twice.
static void profiles_take_turns(void **state)
{
	static const char *const texts[] = {
	        MIX, "{}", "{\"sizes\": [[1500, 1], [64, 2]]}",
	        MIX, MIX,  "{\"sizes\": [[1000, 1]], \"ip\": 6, \"transport\": \"tcp\"}",
	        "{}"};
	struct wire *w = *state;
	struct task *task = create(w, 32);

	for (size_t i = 0; i < RTE_DIM(texts); i++) {
		run_some(w, task, texts[i], 40);
		start(task, 0, 1000, 0); // without a profile
		task->ops->poll(task, after_us(1));
		assert_int_equal(collect(w, 0, NULL), 32);
		generator_stop(task);
		assert_int_equal(number(task, "offered_bytes"), 32 * 64);
	}
	task_destroy(task);
}

static void what_cannot_be_sent_is_said(void **state)
{
	struct wire *w = *state;
	struct task *task = create(w, 32);
	const struct generator_load load = {.flat_out = true, .frame_size_bytes = 64, .duration_ns = 1};
	json_t *source = parse("{\"arrival\": {\"process\": \"poisson\"}}");
	char error[CONFIG_ERROR_MAX];

	assert_true(generator_prepare(task, source, &load, "load", error) < 0);
	assert_non_null(strstr(error, "load.profile: flat_out leaves no room"));
	json_object_set_new(source, "seed", json_string("x"));
	assert_true(generator_prepare(task, source, &load, "load", error) < 0);
	assert_non_null(strstr(error, "load.profile.seed: \"x\" is not valid"));
	json_decref(source);
	run_some(w, task, "{}", 3); // nothing of it is left
	task_destroy(task);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        WIRE_TEST_SMALL(refused_frames_are_made_again),
	        WIRE_TEST(profiles_take_turns),
	        WIRE_TEST(what_cannot_be_sent_is_said),
	};

	if (fixture_eal_init("generator_profile") != 0)
		return 99; // for meson: could not be run
	return cmocka_run_group_tests_name("generator_profile", tests, NULL, NULL);
}
