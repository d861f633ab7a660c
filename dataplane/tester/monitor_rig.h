// SPDX-License-Identifier: BSD-3-Clause
// What the tests of the monitor have in common: a monitor on a wire, and frames made for it.
#pragma once

#include "tester/frame.h"
#include "tester/monitor.h"
#include "test/unit.h"
#include "test/wire.h"

#include <rte_cycles.h>

enum { EPOCH = 40, FRAME_SIZE = 128, STREAM = 1 };

static struct config_task config = {.name = "mon", .kind = "monitor", .port_count = 1, .ports = {"p0"}};

struct bench {
	struct wire *w;
	struct task *task;
};

// A frame before it is sent.
struct sample {
	uint8_t data[FRAME_SIZE + 64];
	unsigned length;
};

static inline struct bench open_bench(void **state, uint32_t burst)
{
	struct bench b = {.w = *state};

	config.burst = burst;
	b.task = wire_task(b.w, &config);
	assert_non_null(b.task);
	monitor_start(b.task, EPOCH, 0);
	return b;
}

static uint64_t nonce; // of the frames that are made

// A frame of ours. flags: FRAME_FLAGS_TIMED, and its tsc; or 0.
static inline struct sample make_timed(uint8_t stream, uint16_t epoch, uint32_t sequence, uint64_t tsc,
                                       uint8_t flags)
{
	struct frame_flow flow = {.src_ip = 1,
	                          .dst_ip = 2,
	                          .stream = stream,
	                          .epoch = epoch,
	                          .frame_size_bytes = FRAME_SIZE,
	                          .nonce = nonce};
	struct frame_template t;
	struct sample s = {.length = FRAME_SIZE - FRAME_FCS_BYTES};

	assert_int_equal(frame_template_init(&t, &flow), 0);
	frame_fill_payload(s.data, s.length);
	if (flags)
		frame_write_timed(&t, s.data, sequence, tsc, flags);
	else
		frame_write(&t, s.data, sequence);
	return s;
}

// tsc 0: no probe.
static inline struct sample make(uint8_t stream, uint16_t epoch, uint32_t sequence, uint64_t tsc)
{
	return make_timed(stream, epoch, sequence, tsc, tsc ? FRAME_FLAG_PROBE : 0);
}

static inline void put(struct bench *b, struct sample s)
{
	assert_true(wire_inject(b->w, s.data, s.length, 0));
}

static inline void poll_all(struct bench *b)
{
	// A guest with frames in many pieces rests between them.
	for (unsigned idle = 0; idle < 16; idle++)
		if (b->task->ops->poll(b->task, 0))
			idle = 0;
}

static inline json_int_t number(struct bench *b, const char *path)
{
	json_t *report = fixture_report(b->task);
	json_int_t value = fixture_number(report, path);

	json_decref(report);
	return value;
}

// received == foreign + stale + corrupt + forwarded + duplicate, and equals what the worker counts.
static inline void assert_conserves(struct bench *b)
{
	json_int_t sum = number(b, "monitor.foreign_packets") + number(b, "monitor.stale_packets") +
	                 number(b, "monitor.corrupt_packets");
	char path[64];

	for (unsigned i = 0; i < FRAME_STREAMS; i++) {
		snprintf(path, sizeof(path), "monitor.streams.%u.forwarded_packets", i);
		sum += RTE_MAX(number(b, path), 0);
		snprintf(path, sizeof(path), "monitor.streams.%u.duplicate_packets", i);
		sum += RTE_MAX(number(b, path), 0);
	}
	assert_int_equal(number(b, "monitor.received_packets"), sum);
	assert_int_equal(b->task->counters.rx_packets, sum);
}

static inline void close_bench(struct bench *b)
{
	assert_conserves(b);
	task_destroy(b->task);
}

// --- Trials with a nonce ----------------------------------------------------------------------------------

enum { NONCE = 0x5eed };

static struct trial_offered offered[TRIAL_STREAMS];

// A trial with a nonce, in which so many frames of STREAM have been offered; nobody here knows of the others.
static inline struct bench open_secret(void **state, uint32_t burst, uint64_t packets)
{
	struct bench b = open_bench(state, burst);
	struct trial trial = {.epoch = EPOCH, .nonce = NONCE, .offered = offered};

	for (unsigned i = 0; i < TRIAL_STREAMS; i++)
		offered[i].packets = TRIAL_OFFERED_UNKNOWN;
	offered[STREAM].packets = packets;
	assert_int_equal(b.task->ops->begin(b.task, &trial), 0);
	nonce = NONCE;
	return b;
}

static inline void close_secret(struct bench *b)
{
	nonce = 0;
	close_bench(b);
}
