// SPDX-License-Identifier: BSD-3-Clause
// Monitor task. The frames come from another core's cache as a rule, so the burst is prefetched a few packets
// ahead of the one that is being summed.
#include <errno.h>
#include <rte_cycles.h>
#include <rte_prefetch.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "histogram.h"
#include "jitter.h"
#include "log.h"
#include "monitor.h"
#include "port.h"
#include "sequence.h"
#include "task.h"
#include "task_alloc.h"

enum {
	BURST_DEFAULT = 64,
	PREFETCH_AHEAD = 2,    // packets; measured with the sender on another core
	PREFETCH_BYTES = 1536, // of each
	NS_SHIFT = 32,
};

struct stream {
	struct histogram *latency;
	uint64_t forwarded_bytes, corrupt, probes;
	struct sequence sequence;
	struct jitter jitter; // last: the cache line of the others is that of every frame
};

struct monitor {
	struct task task;
	uint16_t burst;
	uint16_t epoch;
	uint64_t ns_per_tick; // times 2^NS_SHIFT: one multiplication for a latency, no division
	uint64_t received, foreign, stale, corrupt, bursts, full_bursts;
	uint32_t probed;        // bit n: this burst holds a probe of stream n
	struct stream *streams; // CONFIG_STREAMS of them
	struct frame_checker checker;
};

static void streams_free(struct stream *streams)
{
	for (unsigned i = 0; streams && i < CONFIG_STREAMS; i++) {
		free(streams[i].latency);
		jitter_release(&streams[i].jitter);
	}
	free(streams);
}

static struct stream *streams_create(void)
{
	struct stream *streams = calloc(CONFIG_STREAMS, sizeof(*streams));

	for (unsigned i = 0; streams && i < CONFIG_STREAMS; i++) {
		sequence_reset(&streams[i].sequence, 0);
		streams[i].latency = histogram_create();
		if (jitter_init(&streams[i].jitter) != 0 || !streams[i].latency) {
			streams_free(streams);
			return NULL;
		}
	}
	return streams;
}

static int monitor_create(const struct config_task *config, struct port *const *ports, struct task **out)
{
	struct monitor *m = task_alloc(sizeof(*m), &monitor_ops, config, ports);
	struct stream *streams = streams_create();

	if (!m || !streams) {
		LOG_ERROR("task %s: no memory for its streams", config->name);
		streams_free(streams);
		free(m);
		return -ENOMEM;
	}
	m->burst = config->burst ? (uint16_t)config->burst : BURST_DEFAULT;
	m->ns_per_tick = (uint64_t)(((unsigned __int128)1000000000 << NS_SHIFT) / rte_get_tsc_hz());
	m->streams = streams;
	*out = &m->task;
	return 0;
}

static void monitor_destroy(struct task *task)
{
	struct monitor *m = (struct monitor *)task;

	streams_free(m->streams);
	free(m);
}

static __attribute__((noinline)) void probe_record(struct monitor *m, const struct frame_fields *fields,
                                                   uint64_t now_tsc)
{
	struct stream *s = &m->streams[fields->stream];
	uint64_t latency_tsc = now_tsc - fields->tsc;
	uint64_t latency_ns = (uint64_t)((unsigned __int128)latency_tsc * m->ns_per_tick >> NS_SHIFT);

	s->probes++;
	histogram_record(s->latency, latency_ns);
	jitter_probe(&s->jitter, fields->sequence, latency_ns);
	m->probed |= UINT32_C(1) << fields->stream;
}

static __attribute__((noinline, cold)) void probed_burst_end(struct monitor *m)
{
	for (unsigned i = 0; i < CONFIG_STREAMS; i++)
		if (m->probed & UINT32_C(1) << i)
			jitter_burst_end(&m->streams[i].jitter);
	m->probed = 0;
}

static __attribute__((noinline, cold)) void count_corrupt(struct monitor *m, uint8_t stream)
{
	m->corrupt++;
	if (stream < CONFIG_STREAMS)
		m->streams[stream].corrupt++;
}

// Count one frame of length bytes that was looked at at now_tsc.
static inline void count(struct monitor *m, enum frame_class class, const struct frame_fields *fields,
                         uint32_t length, uint64_t now_tsc)
{
	struct stream *s;

	if (unlikely(class == FRAME_CORRUPT)) {
		count_corrupt(m, fields->stream);
		return;
	}
	if (unlikely(class == FRAME_FOREIGN || fields->stream >= CONFIG_STREAMS)) {
		m->foreign++;
		return;
	}
	if (unlikely(fields->epoch != m->epoch)) {
		m->stale++;
		return;
	}
	s = &m->streams[fields->stream];
	if (unlikely(sequence_track(&s->sequence, fields->sequence) == SEQUENCE_DUPLICATE))
		return;
	s->forwarded_bytes += length + FRAME_FCS_BYTES;
	if (unlikely(fields->flags & FRAME_FLAG_PROBE))
		probe_record(m, fields, now_tsc);
}

// Every line of the frame: leaving the later ones to the hardware's prefetcher costs a seventh at 1024 B.
static inline void prefetch(const struct rte_mbuf *m)
{
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t length = RTE_MIN(m->data_len, PREFETCH_BYTES);

	for (uint32_t at = 0; at < length; at += RTE_CACHE_LINE_SIZE)
		rte_prefetch0(data + at);
}

// The time is taken before the sums: what they cost must not depend on the frame size. The flag is not
// checked yet, which costs a needless clock reading in some foreign frame at worst.
static inline void monitor_packet(struct monitor *m, const struct rte_mbuf *pkt)
{
	const uint8_t *data = rte_pktmbuf_mtod(pkt, const uint8_t *);
	bool probe = pkt->data_len > FRAME_OFFSET_FLAGS && (data[FRAME_OFFSET_FLAGS] & FRAME_FLAG_PROBE);
	uint64_t now_tsc = unlikely(probe) ? rte_rdtsc() : 0;
	struct frame_fields fields;
	enum frame_class class = frame_classify(&m->checker, pkt, &fields);

	count(m, class, &fields, pkt->pkt_len, now_tsc);
}

static unsigned monitor_poll(struct task *task, uint64_t now_tsc)
{
	struct monitor *m = (struct monitor *)task;
	struct rte_mbuf *pkts[CONFIG_BURST_MAX];
	uint16_t n = port_receive(task->ports[0], task->queue, pkts, m->burst);

	if (n == 0)
		return 0;
	for (uint16_t i = 0; i < n && i < PREFETCH_AHEAD; i++)
		prefetch(pkts[i]);
	for (uint16_t i = 0; i < n; i++) {
		if (i + PREFETCH_AHEAD < n)
			prefetch(pkts[i + PREFETCH_AHEAD]);
		monitor_packet(m, pkts[i]);
	}
	if (unlikely(m->probed)) // once a burst: frames that are no probes cost nothing
		probed_burst_end(m);
	rte_pktmbuf_free_bulk(pkts, n);
	task->counters.rx_packets += n;
	m->received += n;
	m->bursts++;
	m->full_bursts += n == m->burst;
	return n;
}

static void monitor_clear(struct task *task)
{
	struct monitor *m = (struct monitor *)task;

	m->received = m->foreign = m->stale = m->corrupt = m->bursts = m->full_bursts = 0;
	for (unsigned i = 0; i < CONFIG_STREAMS; i++) {
		struct stream *s = &m->streams[i];

		s->forwarded_bytes = s->corrupt = s->probes = 0;
		sequence_reset(&s->sequence, 0);
		histogram_reset(s->latency);
		jitter_reset(&s->jitter);
	}
}

void monitor_start(struct task *task, uint16_t epoch)
{
	monitor_clear(task);
	((struct monitor *)task)->epoch = epoch;
}

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

static json_t *stream_report(const struct stream *s, unsigned index)
{
	const struct sequence *q = &s->sequence;

	return json_pack("{si sI sI sI sI sI sI so so so}", "stream", (int)index, "forwarded_packets",
	                 (json_int_t)q->unique, "forwarded_bytes", (json_int_t)s->forwarded_bytes,
	                 "duplicate_packets", (json_int_t)q->duplicate, "reordered_packets",
	                 (json_int_t)q->reordered, "corrupt_packets", (json_int_t)s->corrupt,
	                 "probes_received", (json_int_t)s->probes, "latency", histogram_report(s->latency),
	                 "ipdv", histogram_report(s->jitter.ipdv), "burst_jitter",
	                 histogram_report(s->jitter.burst));
}

static void monitor_report(const struct task *task, json_t *object)
{
	const struct monitor *m = (const struct monitor *)task;
	json_t *streams = json_array();

	for (unsigned i = 0; i < CONFIG_STREAMS; i++) {
		const struct stream *s = &m->streams[i];

		if (s->sequence.unique || s->sequence.duplicate || s->corrupt)
			json_array_append_new(streams, stream_report(s, i));
	}
	json_object_set_new(object, "monitor",
	                    json_pack("{sI sI sI sI sI sI so}", "received_packets", (json_int_t)m->received,
	                              "foreign_packets", (json_int_t)m->foreign, "stale_packets",
	                              (json_int_t)m->stale, "corrupt_packets", (json_int_t)m->corrupt,
	                              "bursts", (json_int_t)m->bursts, "full_bursts",
	                              (json_int_t)m->full_bursts, "streams", streams));
}

const struct task_ops monitor_ops = {
        .kind = "monitor",
        .ports_min = 1,
        .ports_max = 1,
        .receives = true,
        .create = monitor_create,
        .destroy = monitor_destroy,
        .poll = monitor_poll,
        .clear = monitor_clear,
        .report = monitor_report,
};
