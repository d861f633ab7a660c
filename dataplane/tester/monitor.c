// SPDX-License-Identifier: BSD-3-Clause
// Monitor task. Of a burst, the frames that are just what their stream sends next are checked and counted by the run (frame_run.h); probes, gaps, strangers and
// damage one by one. The frames come from another core's cache as a rule, so they are prefetched a few ahead.
#include "tester/monitor.h"
#include "tester/monitor_queues.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tester/histogram.h"
#include "base/log.h"
#include "base/random.h"
#include "tester/sequence.h"
#include "port/port.h"
#include "tester/stamps.h"
#include "task/task.h"
#include "tester/frame.h"
#include "tester/frame_run.h"

enum {
	MONITOR_NS_SHIFT = 32,
	TENTHS = 10,
	STALL_FRAMES = 10, // that would have come meanwhile, at the least
	LOOKS_MAX = 64,    // intact frames that were not as the one before; then no other is learned from
};

// Between two bursts with frames of a stream, by the times at which the monitor was polled for them.
struct silence {
	uint64_t first_tsc;          // of the first burst
	uint64_t begin_tsc, end_tsc; // of the longest
};

_Static_assert((int)TRIAL_STREAMS == (int)FRAME_STREAMS, "one bound each");

struct stream {
	struct histogram *latency[PROBE_MEETINGS];
	uint64_t stalls, stall_ticks, stall_end_tsc; // of the last
	bool mostly_gaps;                            // the silence of the last stall
	uint64_t longest_silence;                    // ticks
	uint32_t looks;                              // learned, or tried to
	uint64_t corrupt, probes;
	uint64_t tenths[TENTHS]; // forwarded when each tenth of the sending time was over
	struct silence longest;
	// From here to the first counts of sequence: what every burst touches.
	uint64_t last_tsc; // of the last burst; 0: none yet
	uint64_t silence;  // ticks: one that is longer is looked at
	uint64_t *sizes;   // frames counted as forwarded, by length in memory: FRAME_TAGGED_MAX + 1 of them
	uint64_t forwarded_bytes;
	uint64_t bound; // numbers from here on, extended as in sequence, were not offered when we last looked
	struct sequence sequence;
	struct jitter jitter; // last: not of every frame
	uint64_t stamped;     // frames of a load that stamps all
	uint64_t unchecked;   // of sequence.unique
};

struct monitor {
	struct task task;
	uint16_t burst;
	uint16_t epoch;
	uint64_t ns_per_tick; // times 2^32: one multiplication for a latency, no division
	unsigned tenth;       // of the sending time: how many are over
	uint64_t tenth_end_tsc;
	uint64_t received, foreign, stale, corrupt, bursts, full_bursts;
	uint64_t burst_tsc;     // when this burst was there; known with stamps only
	uint64_t empty_tsc;     // of the last poll that found nothing, with stamps only
	uint32_t stamped;       // bit n: this burst holds a stamped frame of stream n
	uint64_t arrived_tsc;   // when this burst was there, if one of its frames has a time stamp; else 0
	uint32_t heard;         // bit n: this burst holds a frame of stream n that counts as forwarded
	struct stream *streams; // FRAME_STREAMS of them
	unsigned (*run)(const struct frame_signature *look, const struct vnf_frame *frames, unsigned n,
	                uint32_t sequence);
	unsigned (*receive)(struct monitor *m);      // mbufs, or frames in place
	struct frame_signature looks[FRAME_STREAMS]; // of this epoch, and with the stream's number
	uint64_t nonce;                              // of its frames, or 0
	const struct trial_offered *offered;         // or NULL
	uint64_t start_tsc, sending_tsc;             // of the trial; how long it sends
	struct monitor_queue counted;                // among those of the port
	bool sampled;
	uint8_t drawn; // of MONITOR_SAMPLED bursts: which is looked into
	uint32_t came; // bit n: frames of stream n have come in this trial
};

static inline uint64_t monitor_ns(const struct monitor *m, uint64_t ticks)
{
	return (uint64_t)((unsigned __int128)ticks * m->ns_per_tick >> MONITOR_NS_SHIFT);
}

// --- Report ----------------------------------------------------------------------------------------------

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

// Since the trial's start; null: no frame, or only one burst. The first may have come in a poll that began before.
static json_t *since_start(const struct monitor *m, uint64_t tsc)
{
	uint64_t ticks = tsc > m->start_tsc ? tsc - m->start_tsc : 0;

	return tsc ? json_integer((json_int_t)monitor_ns(m, ticks)) : json_null();
}

static void silence_report(const struct monitor *m, const struct stream *s, json_t *object)
{
	json_object_update_new(object,
	                       json_pack("{sI so so so so sI}", "longest_silence_ns",
	                                 (json_int_t)monitor_ns(m, s->longest_silence),
	                                 "longest_silence_begin_ns", since_start(m, s->longest.begin_tsc),
	                                 "longest_silence_end_ns", since_start(m, s->longest.end_tsc),
	                                 "first_ns", since_start(m, s->longest.first_tsc), "last_ns",
	                                 since_start(m, s->last_tsc), "stall_sum_ns",
	                                 (json_int_t)monitor_ns(m, s->stall_ticks)));
}

static const struct counter counters[] = {
        COUNTER("received_packets", struct monitor, received),
        COUNTER("foreign_packets", struct monitor, foreign),
        COUNTER("stale_packets", struct monitor, stale),
        COUNTER("corrupt_packets", struct monitor, corrupt),
        COUNTER("bursts", struct monitor, bursts),
        COUNTER("full_bursts", struct monitor, full_bursts),
        {0},
};

static const struct counter stream_counters[] = {
        COUNTER("forwarded_bytes", struct stream, forwarded_bytes),
        COUNTER("corrupt_packets", struct stream, corrupt),
        COUNTER("probes_received", struct stream, probes),
        COUNTER("stamped_packets", struct stream, stamped),
        COUNTER("unchecked_packets", struct stream, unchecked),
        COUNTER("stalls", struct stream, stalls),
        {0},
};

static const struct counter sequence_counters[] = {
        COUNTER("forwarded_packets", struct sequence, unique),
        COUNTER("duplicate_packets", struct sequence, duplicate),
        COUNTER("reordered_packets", struct sequence, reordered),
        {0},
};

// Frames of each tenth of the sending time, as far as it is over. Those of a drained ring come after the last.
static json_t *tenths_report(const struct monitor *m, const struct stream *s)
{
	json_t *tenths = json_array();

	for (unsigned i = 0; i < m->tenth; i++)
		json_array_append_new(tenths,
		                      json_integer((json_int_t)(s->tenths[i] - (i ? s->tenths[i - 1] : 0))));
	return tenths;
}

static const char *const met_keys[] = {[MET_GAP] = "latency_gap", [MET_STALL] = "latency_stall"};

static json_t *stream_report(const struct stream *s, unsigned index)
{
	json_t *object = json_pack("{si so so so*}", "stream", (int)index, "latency",
	                           histogram_report(s->latency[MET_NOTHING]), "ipdv",
	                           histogram_report(s->jitter.ipdv), "sizes", sizes_report(s));

	for (unsigned i = MET_NOTHING + 1; i < PROBE_MEETINGS; i++)
		if (s->latency[i]->total || s->latency[i]->overflow)
			json_object_set_new(object, met_keys[i], histogram_report(s->latency[i]));
	if (s->stamped) {
		json_object_set_new(object, "burst_rises", histogram_report(s->jitter.rises));
		json_object_set_new(object, "burst_falls", histogram_report(s->jitter.falls));
	}
	counters_report(stream_counters, s, NULL, object);
	counters_report(sequence_counters, &s->sequence, NULL, object);
	return object;
}

static void monitor_report(const struct task *task, json_t *object, uint64_t now_tsc)
{
	const struct monitor *m = (const struct monitor *)task;
	json_t *streams = json_array();

	for (unsigned i = 0; i < FRAME_STREAMS; i++) {
		const struct stream *s = &m->streams[i];

		if (s->sequence.unique || s->sequence.duplicate || s->corrupt) {
			json_t *stream = stream_report(s, i);

			silence_report(m, s, stream);
			json_object_set_new(
			        stream, "elsewhere_packets",
			        json_integer((json_int_t)monitor_queue_elsewhere(&m->counted, i)));
			json_object_set_new(stream, "forwarded_by_tenth", tenths_report(m, s));
			json_array_append_new(streams, stream);
		}
	}
	json_object_set_new(object, "streams", streams);
}

static void streams_free(struct stream *streams)
{
	for (unsigned i = 0; streams && i < FRAME_STREAMS; i++) {
		for (unsigned met = 0; met < PROBE_MEETINGS; met++)
			free(streams[i].latency[met]);
		free(streams[i].sizes);
		jitter_release(&streams[i].jitter);
	}
	free(streams);
}

static struct stream *streams_create(void)
{
	struct stream *streams = calloc(FRAME_STREAMS, sizeof(*streams));
	bool complete = true;

	for (unsigned i = 0; streams && i < FRAME_STREAMS; i++) {
		sequence_reset(&streams[i].sequence, 0);
		streams[i].sizes = calloc(FRAME_TAGGED_MAX + 1, sizeof(*streams[i].sizes));
		for (unsigned met = 0; met < PROBE_MEETINGS; met++)
			complete &= (streams[i].latency[met] = histogram_create()) != NULL;
		complete &= jitter_init(&streams[i].jitter) == 0 && streams[i].sizes;
		if (!complete) {
			streams_free(streams);
			return NULL;
		}
	}
	return streams;
}

// A silence ends with this turn of the worker. It is a stall if the workers polled for longer than a gap in it, and frames
// would have come meanwhile at the rate so far: of a stream that is sent seldom any silence is long.
static void note_stall(struct stream *s)
{
	uint64_t end = poll_turn.begin_tsc, silent, gaps;

	if (!poll_turn.gap_ticks || end <= s->last_tsc)
		return;
	silent = end - s->last_tsc;
	gaps = poll_gap_ticks(s->last_tsc, end);
	if (silent <= gaps + poll_turn.gap_ticks ||
	    silent < STALL_FRAMES * (end - s->longest.first_tsc) / s->sequence.unique)
		return;
	s->stalls++;
	s->stall_ticks += silent - gaps;
	s->stall_end_tsc = end;
	s->mostly_gaps = gaps > silent / 2;
}

static __attribute__((noinline, cold)) void silence_ends(struct stream *s, uint64_t now_tsc)
{
	if (s->last_tsc == 0) {
		s->longest.first_tsc = now_tsc;
		return;
	}
	note_stall(s);
	if (now_tsc - s->last_tsc > s->longest_silence) {
		s->longest.begin_tsc = s->last_tsc;
		s->longest.end_tsc = now_tsc;
		s->longest_silence = now_tsc - s->last_tsc;
	}
	s->silence =
	        poll_turn.gap_ticks ? RTE_MIN(s->longest_silence, poll_turn.gap_ticks) : s->longest_silence;
}

static bool ends_silence(const struct stream *s, uint64_t now_tsc)
{
	return now_tsc - s->last_tsc > s->silence;
}

// Once a burst, for the streams that it had: one, as a rule.
static inline void note_silences(struct monitor *m, uint64_t now_tsc)
{
	m->came |= m->heard;
	for (; m->heard; m->heard &= m->heard - 1) {
		struct stream *s = &m->streams[__builtin_ctz(m->heard)];

		if (unlikely(ends_silence(s, now_tsc)))
			silence_ends(s, now_tsc);
		s->last_tsc = now_tsc;
	}
}

// What a probe met that was sent then. That its burst ends a silence is to be known now.
static enum probe_met probe_met(struct stream *s, uint64_t sent_tsc, uint64_t now_tsc)
{
	if (poll_turn.gap_ticks && ends_silence(s, poll_turn.begin_tsc)) {
		silence_ends(s, poll_turn.begin_tsc);
		s->last_tsc = poll_turn.begin_tsc;
	}
	if (s->stall_end_tsc > sent_tsc && !(s->mostly_gaps && poll_gap_met(sent_tsc, now_tsc)))
		return MET_STALL;
	return poll_gap_met(sent_tsc, now_tsc) ? MET_GAP : MET_NOTHING;
}

static __attribute__((noinline, cold)) void probe_note(struct monitor *m, const struct frame_fields *fields,
                                                       uint64_t now_tsc, enum probe_met met)
{
	struct stamp *stamp = stamps_next(m->task.stamps);

	if (stamp)
		*stamp = (struct stamp){.in_tsc = m->burst_tsc,
		                        .out_tsc = now_tsc,
		                        .sequence = fields->sequence,
		                        .stream = fields->stream,
		                        .met = (uint8_t)met,
		                        .empty_tsc = m->empty_tsc};
}

static __attribute__((noinline)) void probe_record(struct monitor *m, const struct frame_fields *fields,
                                                   uint64_t now_tsc)
{
	struct stream *s = &m->streams[fields->stream];
	uint64_t sent_tsc = frame_stamp(m->nonce, fields->stamp);
	uint64_t latency_ns = monitor_ns(m, now_tsc - sent_tsc);
	enum probe_met met = probe_met(s, sent_tsc, now_tsc);

	if (unlikely(m->task.stamps))
		probe_note(m, fields, now_tsc, met);
	s->probes++;
	histogram_record(s->latency[met], latency_ns);
	jitter_probe(&s->jitter, fields->sequence, latency_ns);
}

// Frames of a load that stamps all. Their burst was there as a whole when the first of them was looked at.
static inline void stamps_record(struct monitor *m, unsigned stream, const uint64_t *stamps, unsigned n)
{
	struct stream *s = &m->streams[stream];

	s->stamped += n;
	m->stamped |= UINT32_C(1) << stream;
	for (unsigned i = 0; i < n; i++)
		jitter_frame(&s->jitter, monitor_ns(m, m->arrived_tsc - frame_stamp(m->nonce, stamps[i])));
}

static __attribute__((noinline, cold)) void timed_burst_end(struct monitor *m)
{
	for (; m->stamped; m->stamped &= m->stamped - 1)
		jitter_burst_end(&m->streams[__builtin_ctz(m->stamped)].jitter);
	m->arrived_tsc = 0;
}

// Look again what is offered. Returns how many numbers, from the next expected one on, may come.
static __attribute__((noinline)) uint64_t numbers_offered(const struct monitor *m, struct stream *s)
{
	uint64_t packets = TRIAL_OFFERED_UNKNOWN;

	if (m->offered)
		packets = atomic_load_explicit(&m->offered[s - m->streams].packets, memory_order_relaxed);
	s->bound = packets == TRIAL_OFFERED_UNKNOWN ? packets : SEQUENCE_FIRST + packets;
	return s->bound > s->sequence.next ? s->bound - s->sequence.next : 0;
}

// Whether the generator has sent this number already: a forged one beyond those would make all that follow look late.
static inline bool is_offered(const struct monitor *m, struct stream *s, uint32_t number)
{
	int32_t distance = (int32_t)(number - (uint32_t)s->sequence.next);

	if (distance < 0 || likely(s->sequence.next + (uint32_t)distance < s->bound))
		return true;
	return (uint32_t)distance < numbers_offered(m, s);
}

// A unique frame or another one of its stream.
static inline bool count_number(struct monitor *m, unsigned stream, uint32_t number, uint32_t length)
{
	struct stream *s = &m->streams[stream];

	if (unlikely(!is_offered(m, s, number))) {
		m->foreign++;
		return false;
	}
	if (unlikely(sequence_track(&s->sequence, number) == SEQUENCE_DUPLICATE))
		return false;
	m->heard |= UINT32_C(1) << stream;
	s->forwarded_bytes += length + FRAME_FCS_BYTES;
	s->sizes[length]++;
	return true;
}

// A plain frame that the run did not know shows it the next ones; but not in a stream of mixed frames.
static void learn(struct monitor *m, const struct vnf_frame *frame, uint8_t stream)
{
	struct frame_signature *look = &m->looks[stream];
	struct frame_fields fields;

	if (m->streams[stream].looks == LOOKS_MAX)
		return;
	m->streams[stream].looks++;
	if (!frame_signature_learn(look, frame->data, frame->length))
		return;
	frame_fields_read(look->image + FRAME_OFFSET_MAGIC, &fields);
	if (fields.stream != stream || (m->nonce && fields.stamp != m->nonce) ||
	    m->streams[stream].looks == LOOKS_MAX)
		look->length = 0; // changed under our eyes; or mixed
}

// Count a frame that is intact.
static void count_intact(struct monitor *m, const struct vnf_frame *frame, const struct frame_fields *fields,
                         uint64_t now_tsc)
{
	if (unlikely(!frame_has_nonce(m->nonce, fields->stamp, fields->flags & FRAME_FLAGS_TIMED, now_tsc))) {
		m->foreign++;
		return;
	}
	if (unlikely(fields->epoch != m->epoch)) {
		m->stale++;
		return;
	}
	if (!(fields->flags & FRAME_FLAGS_TIMED))
		learn(m, frame, fields->stream);
	if (!count_number(m, fields->stream, fields->sequence, frame->length))
		return;
	if (fields->flags & FRAME_FLAG_STAMPED)
		stamps_record(m, fields->stream, &fields->stamp, 1);
	if (fields->flags & FRAME_FLAG_PROBE)
		probe_record(m, fields, now_tsc);
}

// Any frame, by its sums. The time is taken before them: what they cost must not depend on the frame size.
// The flag is not checked yet: a clock reading that nobody needs, in a damaged frame, at worst.
static void count_any(struct monitor *m, const struct vnf_frame *frame)
{
	struct frame_fields fields;
	bool found = frame_find(frame->data, frame->length, &fields);
	bool timed = found && (fields.flags & FRAME_FLAGS_TIMED);
	uint64_t now_tsc = timed ? rte_rdtsc() : 0;
	enum frame_class class =
	        (found ? frame_classify : frame_classify_any)(frame->data, frame->length, &fields);

	if (timed && m->arrived_tsc == 0)
		m->arrived_tsc = now_tsc;
	if (class == FRAME_CORRUPT) {
		m->corrupt++;
		if (fields.stream < FRAME_STREAMS)
			m->streams[fields.stream].corrupt++;
	} else if (class == FRAME_FOREIGN || fields.stream >= FRAME_STREAMS)
		m->foreign++;
	else
		count_intact(m, frame, &fields, now_tsc);
}

// Track a run of frames with the next numbers of a stream. Returns how many of them the generator has sent; where it has
// sent none, all are foreign.
static inline unsigned run_track(struct monitor *m, struct stream *s, unsigned run)
{
	unsigned count = run;

	if (unlikely(s->sequence.next + run > s->bound))
		count = (unsigned)RTE_MIN(numbers_offered(m, s), (uint64_t)run);
	if (unlikely(count == 0))
		m->foreign += run;
	else
		sequence_track_run(&s->sequence, count);
	return count;
}

// Count the first frames of n of a stream whose frames are not alike: each has other addresses, another length or a
// time stamp, or headers that no run compares. flags: of the first. Returns how many; 0: the first has to be looked at by
// itself. A stream of which frames may still be alike is none of these.
static __attribute__((noinline)) unsigned count_mixed(struct monitor *m, const struct vnf_frame *frames,
                                                      unsigned n, unsigned stream, uint8_t flags)
{
	struct stream *s = &m->streams[stream];
	uint64_t stamps[CONFIG_BURST_MAX];
	struct frame_own own;
	unsigned intact, count;

	if (flags != FRAME_FLAG_STAMPED && (flags || s->looks < LOOKS_MAX))
		return 0;
	if (flags && m->arrived_tsc == 0)
		m->arrived_tsc = rte_rdtsc();
	own = frame_own_make((uint8_t)stream, flags, m->epoch, m->nonce, m->arrived_tsc);
	intact = frame_run_sums(&own, frames, n, (uint32_t)s->sequence.next, stamps);
	if (intact == 0)
		return 0;
	count = run_track(m, s, intact);
	if (unlikely(count == 0))
		return intact;
	m->heard |= UINT32_C(1) << stream;
	for (unsigned i = 0; i < count; i++) {
		s->forwarded_bytes += frames[i].length + FRAME_FCS_BYTES;
		s->sizes[frames[i].length]++;
	}
	if (flags)
		stamps_record(m, stream, stamps, count);
	return count;
}

// The same where the magic of the first is not where a plain frame has it.
static __attribute__((noinline)) unsigned count_other(struct monitor *m, const struct vnf_frame *frames,
                                                      unsigned n)
{
	struct frame_fields fields;

	if (!frame_find(frames->data, frames->length, &fields) || fields.stream >= FRAME_STREAMS ||
	    fields.sequence != (uint32_t)m->streams[fields.stream].sequence.next)
		return 0;
	return count_mixed(m, frames, n, fields.stream, fields.flags);
}

// Count the first frames of n; returns how many, at least 1. heard: bits as of struct monitor, kept in a
// register: a store for each run costs 1024 B frames a thirtieth.
static inline unsigned count_some(struct monitor *m, const struct vnf_frame *frames, unsigned n,
                                  uint32_t *heard)
{
	unsigned stream, alike, count;
	uint32_t number;
	struct stream *s;

	if (likely(frames->length >= FRAME_HEADER_BYTES)) {
		stream = frames->data[FRAME_OFFSET_STREAM] % FRAME_STREAMS;
		number = rte_be_to_cpu_32(load32(frames->data + FRAME_OFFSET_SEQUENCE));
		s = &m->streams[stream];
		if (unlikely(number != (uint32_t)s->sequence.next)) {
			if (m->run(&m->looks[stream], frames, 1, number)) {
				count_number(m, stream, number, frames->length);
				return 1;
			}
			if (load16(frames->data + FRAME_OFFSET_MAGIC) != RTE_BE16(FRAME_MAGIC) &&
			    (count = count_other(m, frames, n)))
				return count;
		} else if (likely((alike = m->run(&m->looks[stream], frames, n, number)))) {
			count = run_track(m, s, alike);
			if (unlikely(count == 0))
				return alike;
			*heard |= UINT32_C(1) << stream;
			s->forwarded_bytes += (uint64_t)count * (frames->length + FRAME_FCS_BYTES);
			s->sizes[frames->length] += count;
			return count;
		} else if ((count = count_mixed(m, frames, n, stream, frames->data[FRAME_OFFSET_FLAGS]))) {
			return count;
		}
	}
	count = frame_run_foreign(frames, n, m->nonce);
	m->foreign += count;
	if (count)
		return count;
	count_any(m, frames);
	return 1;
}

// Check and count n frames. Behind them are FRAME_AHEAD entries for the run.
static inline void count_frames(struct monitor *m, struct vnf_frame *frames, unsigned n)
{
	uint32_t heard = 0;

	for (unsigned i = 0; i < FRAME_AHEAD; i++)
		frames[n + i] = (struct vnf_frame){(uint8_t *)(uintptr_t)frame_pattern(), 0,
		                                   0}; // NULL + 0 is undefined in C17
	for (unsigned i = 0; i < FRAME_AHEAD; i++)
		frame_prefetch(&frames[i]);
	for (unsigned done = 0; done < n;)
		done += count_some(m, &frames[done], n - done, &heard);
	m->heard |= heard;
}

// Frames in pieces are copied, as far as any of ours is long.
static __attribute__((noinline, cold)) void count_scattered(struct monitor *m, const struct view *view,
                                                            const struct vnf_frame *spans)
{
	uint8_t copy[FRAME_TAGGED_MAX];

	for (unsigned i = 0; i < view->count; i++) {
		struct vnf_frame frames[1 + FRAME_AHEAD] = {spans[i]};

		if (spans[i].length < spans[i].total) {
			view_copy(view, i, copy, sizeof(copy));
			frames[0] = (struct vnf_frame){copy, spans[i].total, spans[i].total};
		}
		count_frames(m, frames, 1);
	}
}

// The stamps of the device for the probes of a burst, to their entries in the log: those from number from on.
static __attribute__((noinline, cold)) void stamps_take(struct monitor *m, const struct view *view,
                                                        uint32_t from)
{
	const struct port *port = m->task.ports[0];
	struct stamps *stamps = m->task.stamps;
	struct frame_fields fields;
	uint64_t ns;

	for (unsigned i = 0; i < view->count; i++) {
		const struct rte_mbuf *pkt = view->pkts[i];

		if (!port->ops->stamp_received(port, pkt, &ns) ||
		    !frame_is_probe(rte_pktmbuf_mtod(pkt, const uint8_t *), pkt->data_len, &fields))
			continue;
		for (uint32_t at = from; at < stamps->count; at++)
			if (stamps->log[at].sequence == fields.sequence &&
			    stamps->log[at].stream == fields.stream)
				stamps->log[at].port_ns = ns;
	}
}

// The length of the frames that are counted without a look into the next burst, or 0: it is looked into.
static inline uint32_t unchecked_length(const struct monitor *m)
{
	if (likely(!m->sampled) || m->bursts % MONITOR_SAMPLED == m->drawn || !rte_is_power_of_2(m->came))
		return 0;
	return m->looks[__builtin_ctz(m->came)].length;
}

static void count_unchecked(struct monitor *m, uint32_t length, unsigned n)
{
	struct stream *s = &m->streams[__builtin_ctz(m->came)];

	m->heard |= m->came;
	s->sequence.unique += n;
	s->unchecked += n;
	s->forwarded_bytes += (uint64_t)n * (length + FRAME_FCS_BYTES);
	s->sizes[length] += n;
}

static unsigned receive(struct monitor *m)
{
	struct vnf_frame spans[CONFIG_BURST_MAX + FRAME_AHEAD];
	const struct port *port = m->task.ports[0];
	uint32_t stamped = m->task.stamps ? m->task.stamps->count : 0, length = unchecked_length(m);
	struct view view;
	bool whole = true, alike = length;
	unsigned n = alike ? port_peek_alike(port, m->task.queue, &view, length, m->burst) : 0;

	if (n == 0) {
		n = port_peek_spans(port, m->task.queue, &view, spans, m->burst, &whole);
		alike = alike && spans_alike(spans, n, length);
	}
	if (n == 0)
		return 0;
	if (unlikely(m->task.stamps))
		m->burst_tsc = rte_rdtsc();
	if (alike)
		count_unchecked(m, length, n);
	else if (likely(whole))
		count_frames(m, spans, n);
	else
		count_scattered(m, &view, spans);
	if (unlikely(m->task.stamps && port->clock == PORT_CLOCK_HARDWARE))
		stamps_take(m, &view, stamped);
	port_release(port, m->task.queue, &view);
	return n;
}

static void tenth_next(struct monitor *m)
{
	m->tenth_end_tsc =
	        m->tenth < TENTHS ? m->start_tsc + m->sending_tsc * (m->tenth + 1) / TENTHS : UINT64_MAX;
}

static __attribute__((noinline, cold)) void tenths_end(struct monitor *m, uint64_t now_tsc)
{
	while (now_tsc > m->tenth_end_tsc) {
		for (unsigned i = 0; i < FRAME_STREAMS; i++)
			m->streams[i].tenths[m->tenth] = m->streams[i].sequence.unique;
		m->tenth++;
		tenth_next(m);
	}
}

static unsigned monitor_poll(struct task *task, uint64_t now_tsc)
{
	struct monitor *m = (struct monitor *)task;
	unsigned n;

	if (unlikely(now_tsc > m->tenth_end_tsc))
		tenths_end(m, now_tsc);
	n = receive(m);
	if (n == 0) {
		if (unlikely(task->stamps))
			m->empty_tsc = now_tsc;
		return 0;
	}
	note_silences(m, now_tsc);
	if (unlikely(m->arrived_tsc)) // once a burst: frames without a time stamp cost nothing
		timed_burst_end(m);
	counter_add(&task->counters.rx_packets, n);
	m->received += n;
	m->bursts++;
	if (unlikely(m->bursts % MONITOR_SAMPLED == 0))
		m->drawn = draw_hash(m->nonce ^ m->start_tsc, m->bursts) % MONITOR_SAMPLED;
	m->full_bursts += n == m->burst;
	return n;
}

static const struct task_ops monitor_ops;

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
	m->burst = (uint16_t)config->burst;
	m->ns_per_tick = clock_ns(UINT64_C(1) << MONITOR_NS_SHIFT);
	m->streams = streams;
	m->run = frame_run_current()->check;
	m->counted.port = ports[0];
	for (unsigned i = 0; i < FRAME_STREAMS; i++)
		m->counted.streams[i] = &streams[i].sequence;
	monitor_queue_add(&m->counted);
	*out = &m->task;
	return 0;
}

static void monitor_destroy(struct task *task)
{
	struct monitor *m = (struct monitor *)task;

	monitor_queue_remove(&m->counted);
	streams_free(m->streams);
	free(m);
}

static void monitor_clear(struct task *task)
{
	struct monitor *m = (struct monitor *)task;

	for (unsigned i = 0; i < FRAME_STREAMS; i++) {
		struct stream *s = &m->streams[i];

		counters_clear(stream_counters, s);
		s->longest = (struct silence){0};
		s->last_tsc = s->longest_silence = s->silence = s->stall_ticks = s->stall_end_tsc = 0;
		// Else nothing was seen: a megabyte need not be touched.
		if (s->sequence.unique || s->sequence.duplicate) {
			memset(s->sizes, 0, (FRAME_TAGGED_MAX + 1) * sizeof(*s->sizes));
			sequence_reset(&s->sequence, 0);
		}
		for (unsigned met = 0; met < PROBE_MEETINGS; met++)
			histogram_reset(s->latency[met]);
		jitter_reset(&s->jitter);
	}
}

void monitor_start(struct task *task, uint16_t epoch, uint64_t start_tsc)
{
	struct monitor *m = (struct monitor *)task;

	task_clear(task);
	m->epoch = epoch;
	m->start_tsc = start_tsc;
	m->ns_per_tick = clock_ns(UINT64_C(1) << MONITOR_NS_SHIFT);
	m->nonce = m->drawn = m->came = 0;
	m->offered = NULL;
	m->sampled = false;
	m->tenth = TENTHS;
	tenth_next(m); // of a sending of unknown length nothing is kept apart
	memset(m->looks, 0, sizeof(m->looks));
	for (unsigned i = 0; i < FRAME_STREAMS; i++) {
		m->streams[i].looks = 0;
		m->streams[i].bound = 0;
	}
}

static int monitor_begin(struct task *task, const struct trial *trial)
{
	struct monitor *m = (struct monitor *)task;

	monitor_start(task, trial->epoch, trial->start_tsc);
	m->nonce = trial->nonce;
	m->offered = trial->offered;
	m->sampled = trial->sampled;
	m->sending_tsc = clock_ticks(trial->duration_ns);
	m->tenth = 0;
	tenth_next(m);
	return 0;
}

static const struct task_ops monitor_ops = {
        .kind = "monitor",
        .burst = CONFIG_BURST_MAX,
        .ports_min = 1,
        .ports_max = 1,
        .stamps = true,
        .receives = true,
        .create = monitor_create,
        .destroy = monitor_destroy,
        .poll = monitor_poll,
        .counters = counters,
        .clear = monitor_clear,
        .report = monitor_report,
        .report_parks = true, // histograms
        .begin = monitor_begin,
};
TASK_KIND(monitor_ops)
