// SPDX-License-Identifier: BSD-3-Clause
// Generator task. A poll asks the pacer for slots, fills as many frames, stamps a probe if one is due and
// hands all to the port at once. Frames that the port refused stay filled in held[] in sequence order and are
// the first of the next burst.
#include <errno.h>
#include <math.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "frame_pool.h"
#include "generator.h"
#include "log.h"
#include "pacer.h"
#include "port.h"
#include "task.h"
#include "task_alloc.h"

enum {
	BURST_DEFAULT = 32,
	PROBE_NONE = -1,
};

enum state { STATE_IDLE, STATE_RUNNING, STATE_DONE };
static const char *const state_names[] = {"idle", "running", "done"};

struct generator {
	struct task task;

	// Read or written at every poll.
	_Atomic int state; // written by the worker only to go from running to done
	uint16_t burst;
	uint16_t held_count;
	int16_t probe_index;    // of held[]: the frame that becomes a probe, or PROBE_NONE
	uint32_t next_sequence; // of the frame after held[]
	struct rte_mempool *pool;
	struct pacer pacer;
	uint64_t probe_interval_tsc; // 0 = no probes
	uint64_t probe_due_tsc;
	uint64_t offered, attempted, refused, ring_full, no_mbuf, probes;
	struct frame_template template;
	struct rte_mbuf
	        *held[CONFIG_BURST_MAX]; // filled, numbers next_sequence - held_count .. next_sequence - 1

	// Control thread.
	struct frame_flow flow;
	uint64_t duration_ns;
	uint64_t last_poll_tsc;
};

static bool mac_is_zero(const uint8_t mac[6])
{
	return !(mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5]);
}

// Locally administered MAC addresses, and addresses of the benchmarking network 198.18.0.0/15 (RFC 2544
// appendix C).
static void flow_set(struct frame_flow *flow, const struct config_task *config)
{
	const uint8_t stream = (uint8_t)config->stream;
	const uint8_t src_mac[6] = {2, 0, 0, 0, 0, stream}, dst_mac[6] = {2, 0, 0, 0, 1, stream};

	flow->stream = stream;
	memcpy(flow->src_mac, mac_is_zero(config->src_mac) ? src_mac : config->src_mac, sizeof(src_mac));
	memcpy(flow->dst_mac, mac_is_zero(config->dst_mac) ? dst_mac : config->dst_mac, sizeof(dst_mac));
	flow->src_ip = config->src_ip ? config->src_ip : (UINT32_C(0xc6120001) | (uint32_t)stream << 8);
	flow->dst_ip = config->dst_ip ? config->dst_ip : (UINT32_C(0xc6130001) | (uint32_t)stream << 8);
}

static int generator_create(const struct config_task *config, struct port *const *ports, struct task **out)
{
	struct generator *g;

	if (rte_pktmbuf_data_room_size(ports[0]->rx_pool) < RTE_PKTMBUF_HEADROOM + FRAME_STORE_BYTES) {
		LOG_ERROR("task %s: memory.mbuf_data_bytes must be at least %u", config->name,
		          RTE_PKTMBUF_HEADROOM + FRAME_STORE_BYTES);
		return -EINVAL;
	}
	g = task_alloc(sizeof(*g), &generator_ops, config, ports);
	if (!g)
		return -ENOMEM;
	g->burst = config->burst ? (uint16_t)config->burst : BURST_DEFAULT;
	g->probe_index = PROBE_NONE;
	flow_set(&g->flow, config);
	g->pool = frame_pool_create(ports[0]);
	if (!g->pool) {
		LOG_ERROR("task %s: no memory for its packet pool: %s; raise memory.size_mb", config->name,
		          rte_strerror(rte_errno));
		free(g);
		return -ENOMEM;
	}
	*out = &g->task;
	return 0;
}

static void held_release(struct generator *g)
{
	if (g->held_count)
		rte_pktmbuf_free_bulk(g->held, g->held_count);
	g->held_count = 0;
	g->probe_index = PROBE_NONE;
}

static void generator_destroy(struct task *task)
{
	struct generator *g = (struct generator *)task;

	held_release(g);
	if (!rte_mempool_full(g->pool))
		port_reclaim(task->ports[0]);
	frame_pool_retire(g->pool);
	free(g);
}

// One at a time, when the pool has less than the whole bulk.
static __attribute__((noinline, cold)) uint16_t alloc_rest(struct generator *g, uint16_t n)
{
	uint16_t got = 0;

	while (got < n && (g->held[g->held_count + got] = rte_pktmbuf_alloc(g->pool)))
		got++;
	g->no_mbuf += n - got;
	return got;
}

// Fill up held[] to n frames; returns how many are there.
static inline uint16_t held_fill(struct generator *g, uint16_t n)
{
	uint16_t want = n - g->held_count;
	struct rte_mbuf **pkts = &g->held[g->held_count];

	if (n <= g->held_count)
		return n;
	if (unlikely(rte_pktmbuf_alloc_bulk(g->pool, pkts, want) != 0))
		want = alloc_rest(g, want);
	for (uint16_t i = 0; i < want; i++) {
		struct rte_mbuf *m = pkts[i];

		m->data_len = g->template.length;
		m->pkt_len = g->template.length;
		frame_write(&g->template, rte_pktmbuf_mtod(m, uint8_t *), g->next_sequence + i);
	}
	g->next_sequence += want;
	g->held_count += want;
	return g->held_count;
}

// Choose the frame that becomes a probe, if one is due: its place in the burst rotates, since the first frame
// of every burst would not be a fair sample. Due times that went by unused are not caught up.
static inline void probe_choose(struct generator *g, uint16_t n, uint64_t now_tsc)
{
	if (g->probe_interval_tsc == 0 || now_tsc < g->probe_due_tsc)
		return;
	g->probe_due_tsc += g->probe_interval_tsc;
	if (g->probe_due_tsc <= now_tsc)
		g->probe_due_tsc = now_tsc + g->probe_interval_tsc;
	if (g->probe_index == PROBE_NONE)
		g->probe_index = (int16_t)(g->probes % n);
}

// As late as possible: nothing but the hand-over comes after the time stamp.
static inline void probe_stamp(struct generator *g, uint16_t n)
{
	uint32_t sequence = g->next_sequence - g->held_count + (uint32_t)g->probe_index;

	if (g->probe_index == PROBE_NONE || g->probe_index >= n)
		return;
	frame_write_probe(&g->template, rte_pktmbuf_mtod(g->held[g->probe_index], uint8_t *), sequence,
	                  rte_rdtsc());
}

// The first sent frames of held[] are gone.
static inline void held_advance(struct generator *g, uint16_t sent)
{
	g->held_count -= sent;
	if (unlikely(g->held_count))
		memmove(g->held, &g->held[sent], g->held_count * sizeof(g->held[0]));
	if (g->probe_index == PROBE_NONE)
		return;
	if (g->probe_index < sent) {
		g->probes++;
		g->probe_index = PROBE_NONE;
	} else {
		g->probe_index -= (int16_t)sent;
	}
}

static inline uint16_t slots_send(struct generator *g, uint16_t slots, uint64_t now_tsc)
{
	uint16_t n = held_fill(g, slots), sent = 0;

	if (likely(n)) {
		probe_choose(g, n, now_tsc);
		probe_stamp(g, n);
		sent = port_send(g->task.ports[0], g->task.queue, g->held, n);
		held_advance(g, sent);
	}
	g->offered += sent;
	g->attempted += n;
	g->refused += n - sent;
	g->ring_full += slots - sent; // no mbuf, too: then all of them are in the port's ring
	g->task.counters.tx_packets += sent;
	return sent;
}

static void generator_end(struct generator *g)
{
	held_release(g);
	atomic_store_explicit(&g->state, STATE_DONE, memory_order_release);
}

static unsigned generator_poll(struct task *task, uint64_t now_tsc)
{
	struct generator *g = (struct generator *)task;
	uint16_t slots, sent = 0;

	if (atomic_load_explicit(&g->state, memory_order_relaxed) != STATE_RUNNING)
		return 0;
	slots = pacer_poll(&g->pacer, now_tsc);
	g->last_poll_tsc = now_tsc;
	if (slots)
		sent = slots_send(g, slots, now_tsc);
	else if (pacer_done(&g->pacer, now_tsc))
		generator_end(g);
	return sent;
}

static void counters_reset(struct generator *g)
{
	g->offered = g->attempted = g->refused = g->ring_full = g->no_mbuf = g->probes = 0;
	memset(&g->pacer, 0, sizeof(g->pacer));
	g->pacer.flat_out = true; // nothing intended
	g->duration_ns = 0;
}

static void generator_clear(struct task *task)
{
	struct generator *g = (struct generator *)task;

	if (generator_running(task))
		return; // its counts and its plan belong together; generator_start() resets both
	counters_reset(g);
	g->state = STATE_IDLE;
}

static int refuse(const struct task *task, const char *why)
{
	LOG_ERROR("task %s: %s", task->name, why);
	return -EINVAL;
}

// Frame size against what exists and what the buffers hold.
static int size_check(const struct task *task, uint16_t frame_size_bytes)
{
	const struct generator *g = (const struct generator *)task;
	unsigned room = rte_pktmbuf_data_room_size(g->pool) - RTE_PKTMBUF_HEADROOM + FRAME_FCS_BYTES;

	if (frame_size_bytes >= FRAME_SIZE_MIN && frame_size_bytes <= RTE_MIN(room, (unsigned)FRAME_SIZE_MAX))
		return 0;
	LOG_ERROR("task %s: frame_size_bytes %u is not in %u..%u (a buffer of memory.mbuf_data_bytes %u "
	          "holds %u)",
	          task->name, frame_size_bytes, FRAME_SIZE_MIN, RTE_MIN(room, (unsigned)FRAME_SIZE_MAX),
	          rte_pktmbuf_data_room_size(g->pool), room);
	return -EINVAL;
}

// Slots per second, 0 for flat out, negative when the load does not say exactly one.
static double load_rate_pps(const struct task *task, const struct generator_load *load)
{
	double line_pps = (double)task->ports[0]->config.line_rate_bps /
	                  ((load->frame_size_bytes + FRAME_L1_OVERHEAD_BYTES) * 8.0);

	if ((load->rate_pps != 0) + (load->line_share != 0) + load->flat_out != 1)
		return -1;
	return load->line_share != 0 ? load->line_share * line_pps : load->rate_pps;
}

static int load_check(const struct task *task, const struct generator_load *load)
{
	double rate_pps = load_rate_pps(task, load);

	if (!isfinite(rate_pps) || rate_pps < 0 || rate_pps >= (double)rte_get_tsc_hz())
		return refuse(
		        task,
		        "give exactly one of rate_pps, line_share and flat_out, above 0 and below tsc_hz");
	if (load->line_share > 1)
		return refuse(task, "line_share must be in (0, 1]; raise the port's line_rate_bps for more");
	if (!(load->probe_rate_pps >= 0 && load->probe_rate_pps < (double)rte_get_tsc_hz()))
		return refuse(task, "probe_rate_pps must be 0 (no probes) or above, and below tsc_hz");
	if (load->duration_ns == 0)
		return refuse(task, "duration_ns must be above 0");
	return size_check(task, load->frame_size_bytes);
}

// Interval in ticks; a rate so low that it does not fit means no probes in any trial's time.
static uint64_t interval_tsc(double rate_pps)
{
	double ticks = rate_pps > 0 ? (double)rte_get_tsc_hz() / rate_pps : 0;

	return ticks < 0x1p62 ? (uint64_t)ticks : UINT64_C(1) << 62;
}

int generator_start(struct task *task, const struct generator_load *load)
{
	struct generator *g = (struct generator *)task;
	struct pacer_load pace = {
	        .start_tsc = load->start_tsc, .duration_ns = load->duration_ns, .burst = g->burst};

	if (load_check(task, load) != 0)
		return -EINVAL;
	held_release(g);
	counters_reset(g);
	pace.rate_pps = load_rate_pps(task, load);
	if (pacer_start(&g->pacer, &pace, rte_get_tsc_hz()) != 0)
		return refuse(task, "the rate cannot be paced");
	g->flow.epoch = load->epoch;
	g->flow.frame_size_bytes = load->frame_size_bytes;
	frame_template_init(&g->template, &g->flow);
	g->next_sequence = 0;
	g->probe_interval_tsc = interval_tsc(load->probe_rate_pps);
	g->probe_due_tsc = load->start_tsc;
	g->duration_ns = load->duration_ns;
	g->last_poll_tsc = load->start_tsc;
	atomic_store_explicit(&g->state, STATE_RUNNING, memory_order_release);
	return 0;
}

void generator_stop(struct task *task)
{
	struct generator *g = (struct generator *)task;

	if (!generator_running(task))
		return;
	pacer_cut(&g->pacer);
	g->duration_ns = (uint64_t)((unsigned __int128)(g->last_poll_tsc - g->pacer.start_tsc) * 1000000000 /
	                            rte_get_tsc_hz());
	generator_end(g);
}

bool generator_running(const struct task *task)
{
	const struct generator *g = (const struct generator *)task;

	return atomic_load_explicit(&g->state, memory_order_acquire) == STATE_RUNNING;
}

static void generator_report(const struct task *task, json_t *object)
{
	const struct generator *g = (const struct generator *)task;
	const struct pacer *p = &g->pacer;
	json_t *intended = p->flat_out ? json_null() : json_integer((json_int_t)p->intended);

	json_object_set_new(object, "generator",
	                    json_pack("{si ss si si so sI sI sI sI sI sI sI sI sI}", "stream", g->flow.stream,
	                              "state", state_names[g->state], "epoch", g->flow.epoch,
	                              "frame_size_bytes", g->flow.frame_size_bytes, "intended_packets",
	                              intended, "offered_packets", (json_int_t)g->offered,
	                              "unsent_late_packets", (json_int_t)p->late, "unsent_ring_full_packets",
	                              (json_int_t)(p->flat_out ? 0 : g->ring_full), "attempted_packets",
	                              (json_int_t)g->attempted, "refused_packets", (json_int_t)g->refused,
	                              "no_mbuf", (json_int_t)g->no_mbuf, "probes_sent", (json_int_t)g->probes,
	                              "probes_stamped", (json_int_t)g->probes, // by software: each
	                              "duration_ns", (json_int_t)g->duration_ns));
}

const struct task_ops generator_ops = {
        .kind = "generator",
        .ports_min = 1,
        .ports_max = 1,
        .sends = true,
        .create = generator_create,
        .destroy = generator_destroy,
        .poll = generator_poll,
        .clear = generator_clear,
        .report = generator_report,
};
