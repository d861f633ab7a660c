// SPDX-License-Identifier: BSD-3-Clause
// What a monitor counts. For monitor.c, which writes it, and monitor_report.c, which tells it. Control
// thread, worker parked; but for the worker itself.
#pragma once

#include "tasks/tester/frame.h"
#include "tasks/tester/frame_run.h"
#include "lib/histogram.h"
#include "lib/jitter.h"
#include "lib/sequence.h"
#include "tasks/task.h"

enum { MONITOR_NS_SHIFT = 32 };

// Between two bursts with frames of a stream, by the times at which the monitor was polled for them.
struct silence {
	uint64_t first_tsc;          // of the first burst
	uint64_t begin_tsc, end_tsc; // of the longest
};

struct stream {
	struct histogram *latency;
	uint32_t looks; // learned, or tried to
	uint64_t corrupt, probes;
	struct silence silence;
	// From here to the first counts of sequence: what every burst touches.
	uint64_t last_tsc;        // of the last burst; 0: none yet
	uint64_t longest_silence; // ticks
	uint64_t *sizes; // frames counted as forwarded, by length in memory: FRAME_TAGGED_MAX + 1 of them
	uint64_t forwarded_bytes;
	struct sequence sequence;
	struct jitter jitter; // last: not of every frame
};

struct monitor {
	struct task task;
	uint16_t burst;
	uint16_t epoch;
	uint64_t ns_per_tick; // times 2^32: one multiplication for a latency, no division
	uint64_t received, foreign, stale, corrupt, bursts, full_bursts;
	uint64_t burst_tsc;     // when this burst was there; known with stamps only
	uint32_t probed;        // bit n: this burst holds a probe of stream n
	uint32_t heard;         // bit n: this burst holds a frame of stream n that counts as forwarded
	struct stream *streams; // CONFIG_STREAMS of them
	unsigned (*run)(const struct frame_look *look, const struct frame_bytes *frames, unsigned n,
	                uint32_t sequence);
	unsigned (*receive)(struct monitor *m);  // mbufs, or frames in place
	struct frame_look looks[CONFIG_STREAMS]; // of this epoch, and with the stream's number
	uint64_t start_tsc;                      // of the trial
};

static inline uint64_t monitor_ns(const struct monitor *m, uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * m->ns_per_tick >> MONITOR_NS_SHIFT);
}

// struct task_ops.report
void monitor_report(const struct task *task, json_t *object);
