// SPDX-License-Identifier: BSD-3-Clause
// The example in docs/design/adding.md: a kind of task in one file. A sink drops what it receives, and counts
// by length: {"kind": "sink", "ports": ["a"], "long_bytes": 512}.
#include <errno.h>
#include <stdlib.h>

#include "port/port.h"
#include "task/task.h"

struct sink_settings {
	uint32_t long_bytes;
};

static const struct sink_settings defaults = {.long_bytes = 1024};

static const struct field settings_keys[] = {
        {UINT_FIELD("long_bytes", struct sink_settings, long_bytes, 1, 65535)},
        {0},
};

struct sink {
	struct task task;
	uint16_t burst;
	uint64_t long_frames, short_frames;
};

static const struct counter counters[] = {
        COUNTER("long_frames", struct sink, long_frames),
        COUNTER("short_frames", struct sink, short_frames),
        {0},
};

static const struct task_ops sink_ops;

static int sink_create(const struct config_task *config, struct port *const *ports, struct task **out)
{
	struct sink *sink = task_alloc(sizeof(*sink), &sink_ops, config, ports);

	if (!sink)
		return -ENOMEM;
	sink->burst = (uint16_t)config->burst;
	*out = &sink->task;
	return 0;
}

static void sink_destroy(struct task *task)
{
	free(task);
}

static unsigned sink_poll(struct task *task, uint64_t now_tsc)
{
	const struct sink_settings *settings = task->settings;
	struct sink *sink = (struct sink *)task;
	const struct port *port = task->ports[0];
	struct view view;
	unsigned n = port_peek(port, task->queue, &view, sink->burst);

	if (n == 0)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		uint32_t bytes = view_in_mbufs(&view) ? view.pkts[i]->pkt_len : view.frames[i].length;

		if (bytes >= settings->long_bytes)
			sink->long_frames++;
		else
			sink->short_frames++;
	}
	port_release(port, task->queue, &view);
	task_received(&task->counters, n, sink->burst);
	return n;
}

// How many frames of each kind there would be in n, going by those so far: {"task": NAME, "frames": n}.
struct share {
	uint32_t frames;
};

static const struct field share_fields[] = {{UINT_FIELD("frames", struct share, frames, 1, 1e6)}, {0}};
static const struct share share_defaults = {.frames = 100};

static json_t *call_share(struct task *task, const void *params, uint64_t now_tsc, char *error)
{
	const struct sink *sink = (const struct sink *)task;
	uint64_t all = sink->long_frames + sink->short_frames;

	if (all == 0)
		return config_error_null(error, "task %s: no frame came yet", task->name);
	return json_pack("{s:I}", "long_frames",
	                 (json_int_t)(((const struct share *)params)->frames * sink->long_frames / all));
}

static const struct task_method methods[] = {
        {.name = "share", .call = call_share, .fields = share_fields, TASK_DEFAULTS(share_defaults)},
        {0},
};

static const struct task_ops sink_ops = {
        .kind = "sink",
        .ports_min = 1,
        .ports_max = 1,
        .receives = true,
        .bursts = true,
        .burst = CONFIG_BURST_MAX,
        .settings_keys = settings_keys,
        .settings_defaults = &defaults,
        .settings_size = sizeof(struct sink_settings),
        .create = sink_create,
        .destroy = sink_destroy,
        .poll = sink_poll,
        .counters = counters,
        .methods = methods,
};
TASK_KIND(sink_ops)
