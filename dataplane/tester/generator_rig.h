// SPDX-License-Identifier: BSD-3-Clause
// What the tests of the generator have in common: a generator on a wire, in simulated time. Included once in
// each.
#pragma once

#include "base/clock.h"
#include "tester/frame.h"
#include "tester/generator.h"
#include "test/unit.h"
#include "test/wire.h"

enum { EPOCH = 17, PACKETS_MAX = 4096 };
#define START UINT64_C(1000000000)

static struct config_task config = {.name = "gen", .kind = "generator", .port_count = 1, .ports = {"p0"}};

static inline uint64_t after_us(double us)
{
	return START + (uint64_t)(us * (double)clock_hz() / 1e6);
}

static inline struct task *create(struct wire *w, uint32_t burst)
{
	struct task *task;
	json_t *object = json_pack("{s:i}", "stream", 2);

	config.burst = burst;
	config.object = object;
	task = wire_task(w, &config);
	json_decref(object);
	assert_non_null(task);
	return task;
}

static inline void start(struct task *task, double rate_pps, uint64_t duration_us, double probe_rate_pps)
{
	struct generator_load load = {
	        .epoch = EPOCH,
	        .start_tsc = START,
	        .duration_ns = duration_us * 1000,
	        .frame_size_bytes = 64,
	        .rate_pps = rate_pps,
	        .flat_out = rate_pps == 0,
	        .probe_rate_pps = probe_rate_pps,
	};

	assert_int_equal(generator_start(task, &load), 0);
	assert_true(generator_running(task));
}

static inline json_int_t number(const struct task *task, const char *key)
{
	json_t *report = fixture_report(task);
	char path[64];
	json_int_t value;

	snprintf(path, sizeof(path), "generator.%s", key);
	value = fixture_number(report, path);
	json_decref(report);
	return value;
}

static inline void assert_conserves(const struct task *task)
{
	assert_int_equal(number(task, "intended_packets"), number(task, "offered_packets") +
	                                                           number(task, "unsent_late_packets") +
	                                                           number(task, "unsent_ring_full_packets"));
	assert_int_equal(number(task, "attempted_packets"),
	                 number(task, "offered_packets") + number(task, "refused_packets"));
	assert_int_equal(number(task, "offered_packets"), task->counters.tx_packets);
	assert_int_equal(number(task, "probes_stamped"), number(task, "probes_sent"));
}

// The next frame, checked; false without one.
static inline bool collect_one(struct wire *w, uint32_t sequence, struct frame_fields *fields)
{
	uint8_t data[WIRE_FRAME_MAX];
	unsigned length = wire_collect(w, data);

	if (length == 0)
		return false;
	assert_int_equal(frame_classify(data, length, fields), FRAME_INTACT);
	assert_int_equal(fields->sequence, sequence);
	assert_int_equal(fields->stream, 2);
	assert_int_equal(fields->epoch, EPOCH);
	assert_true((fields->flags == 0) == (fields->stamp == 0));
	return true;
}

// Collect all, check that they are intact frames numbered from first; returns how many, and the probes.
static inline unsigned collect(struct wire *w, uint32_t first, unsigned *probes)
{
	struct frame_fields fields;
	unsigned n = 0;

	for (; collect_one(w, first + n, &fields); n++)
		if (probes)
			*probes += fields.flags;
	return n;
}

static inline void in_use_add(struct rte_mempool *pool, void *sum)
{
	*(unsigned *)sum += rte_mempool_in_use_count(pool);
}

static inline unsigned mbufs_in_use(void)
{
	unsigned sum = 0;

	rte_mempool_walk(in_use_add, &sum);
	return sum;
}
