// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/monitor/monitor_counts.h"

static json_t *histogram_report(const struct histogram *h)
{
	json_t *counts = json_array();
	uint64_t value_ns, n;

	for (uint32_t i = 0; histogram_next(h, &i, &value_ns, &n);)
		json_array_append_new(counts, json_pack("[I, I]", (json_int_t)value_ns, (json_int_t)n));
	return json_pack("{sI sI si sI so}", "lowest_ns", (json_int_t)HISTOGRAM_LOWEST_NS, "highest_ns",
	                 (json_int_t)HISTOGRAM_HIGHEST_NS, "significant_digits", HISTOGRAM_SIGNIFICANT_DIGITS,
	                 "overflow", (json_int_t)h->overflow, "counts", counts);
}

// [[frame size, packets], ...], or NULL when all had one size.
static json_t *sizes_report(const struct stream *s)
{
	json_t *sizes = json_array();

	for (uint32_t length = 0; length <= FRAME_TAGGED_MAX; length++)
		if (s->sizes[length])
			json_array_append_new(sizes, json_pack("[i, I]", (int)(length + FRAME_FCS_BYTES),
			                                       (json_int_t)s->sizes[length]));
	if (json_array_size(sizes) > 1)
		return sizes;
	json_decref(sizes);
	return NULL;
}

// From the start of the trial; null: there was no frame, or only one burst of them. The first may have come
// in a poll that began before.
static json_t *since_start(const struct monitor *m, uint64_t tsc)
{
	uint64_t ticks = tsc > m->start_tsc ? tsc - m->start_tsc : 0;

	return tsc ? json_integer((json_int_t)monitor_ns(m, ticks)) : json_null();
}

static void silence_report(const struct monitor *m, const struct stream *s, json_t *object)
{
	json_object_set_new(object, "longest_silence_ns",
	                    json_integer((json_int_t)monitor_ns(m, s->longest_silence)));
	json_object_set_new(object, "longest_silence_begin_ns", since_start(m, s->silence.begin_tsc));
	json_object_set_new(object, "longest_silence_end_ns", since_start(m, s->silence.end_tsc));
	json_object_set_new(object, "first_ns", since_start(m, s->silence.first_tsc));
	json_object_set_new(object, "last_ns", since_start(m, s->last_tsc));
}

static json_t *stream_report(const struct stream *s, unsigned index)
{
	const struct sequence *q = &s->sequence;

	return json_pack("{si sI sI sI sI sI sI so so so so*}", "stream", (int)index, "forwarded_packets",
	                 (json_int_t)q->unique, "forwarded_bytes", (json_int_t)s->forwarded_bytes,
	                 "duplicate_packets", (json_int_t)q->duplicate, "reordered_packets",
	                 (json_int_t)q->reordered, "corrupt_packets", (json_int_t)s->corrupt,
	                 "probes_received", (json_int_t)s->probes, "latency", histogram_report(s->latency),
	                 "ipdv", histogram_report(s->jitter.ipdv), "burst_jitter",
	                 histogram_report(s->jitter.burst), "sizes", sizes_report(s));
}

void monitor_report(const struct task *task, json_t *object)
{
	const struct monitor *m = (const struct monitor *)task;
	json_t *streams = json_array();

	for (unsigned i = 0; i < CONFIG_STREAMS; i++) {
		const struct stream *s = &m->streams[i];

		if (s->sequence.unique || s->sequence.duplicate || s->corrupt) {
			json_t *stream = stream_report(s, i);

			silence_report(m, s, stream);
			json_array_append_new(streams, stream);
		}
	}
	json_object_set_new(object, "monitor",
	                    json_pack("{sI sI sI sI sI sI so}", "received_packets", (json_int_t)m->received,
	                              "foreign_packets", (json_int_t)m->foreign, "stale_packets",
	                              (json_int_t)m->stale, "corrupt_packets", (json_int_t)m->corrupt,
	                              "bursts", (json_int_t)m->bursts, "full_bursts",
	                              (json_int_t)m->full_bursts, "streams", streams));
}
