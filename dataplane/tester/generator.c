// SPDX-License-Identifier: BSD-3-Clause
// Generator task: load, pace and counts. A poll asks the pacer for slots and has the generator's way
// (generator_tx.h) send as many frames.
#include "tester/generator.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "tester/generator_tx.h"
#include "task/task.h"

// --- Report ----------------------------------------------------------------------------------------------

static const char *const state_names[] = {"idle", "running", "done"};

// Cleared when a load begins, not while it runs: they belong together with its plan.
static const struct counter load_counters[] = {
        COUNTER("offered_packets", struct generator, offered),
        COUNTER("attempted_packets", struct generator, attempted),
        COUNTER("refused_packets", struct generator, refused),
        COUNTER("no_mbuf", struct generator, no_mbuf),
        COUNTER("probes_sent", struct generator, probes),
        COUNTER("probes_stamped", struct generator, probes), // by software: each
        {0},
};

static void generator_report(const struct task *task, json_t *object, uint64_t now_tsc)
{
	const struct generator *g = (const struct generator *)task;
	uint64_t bytes = g->profile ? g->profile->ledger.bytes : g->offered * g->flow.frame_size_bytes;
	const struct pacer *p = &g->pacer;
	json_t *plan = json_pack(
	        "{si ss si si so sI sI sI sI so*}", "stream", g->flow.stream, "state", state_names[g->state],
	        "epoch", g->flow.epoch, "frame_size_bytes", g->flow.frame_size_bytes, "intended_packets",
	        p->flat_out ? json_null() : json_integer((json_int_t)p->intended), "offered_bytes",
	        (json_int_t)bytes, "unsent_late_packets", (json_int_t)p->late, "unsent_ring_full_packets",
	        (json_int_t)(p->flat_out ? 0 : g->ring_full), "duration_ns",
	        (json_int_t)clock_ns(g->duration_tsc), "profile",
	        g->profile ? profile_report(g->profile, !generator_running(task)) : NULL);

	json_object_update_new(object, plan);
	counters_report(load_counters, g, NULL, object);
}

static bool mac_is_zero(const uint8_t mac[6])
{
	return !(mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5]);
}

struct generator_settings {
	uint32_t stream;
	uint8_t src_mac[6], dst_mac[6]; // all zero: the default
	uint32_t src_ip, dst_ip;        // host byte order; 0: the default
};

static const struct field settings_keys[] = {
        {UINT_FIELD("stream", struct generator_settings, stream, 0, FRAME_STREAMS - 1)},
        {.key = "src_mac", FIELD(FIELD_MAC, struct generator_settings, src_mac)},
        {.key = "dst_mac", FIELD(FIELD_MAC, struct generator_settings, dst_mac)},
        {.key = "src_ip", FIELD(FIELD_IPV4, struct generator_settings, src_ip)},
        {.key = "dst_ip", FIELD(FIELD_IPV4, struct generator_settings, dst_ip)},
        {0},
};

// Locally administered MAC addresses, and addresses of the benchmarking network 198.18.0.0/15 (RFC 2544
// appendix C).
static void flow_set(struct frame_flow *flow, const struct generator_settings *config)
{
	const uint8_t stream = (uint8_t)config->stream;
	const uint8_t src_mac[6] = {2, 0, 0, 0, 0, stream}, dst_mac[6] = {2, 0, 0, 0, 1, stream};

	flow->stream = stream;
	memcpy(flow->src_mac, mac_is_zero(config->src_mac) ? src_mac : config->src_mac, sizeof(src_mac));
	memcpy(flow->dst_mac, mac_is_zero(config->dst_mac) ? dst_mac : config->dst_mac, sizeof(dst_mac));
	flow->src_ip = config->src_ip ? config->src_ip : (UINT32_C(0xc6120001) | (uint32_t)stream << 8);
	flow->dst_ip = config->dst_ip ? config->dst_ip : (UINT32_C(0xc6130001) | (uint32_t)stream << 8);
}

static const struct task_ops generator_ops;

static int generator_create(const struct config_task *config, struct port *const *ports, struct task **out)
{
	struct generator *g;

	int rc;

	if (rte_pktmbuf_data_room_size(ports[0]->rx_pool) < RTE_PKTMBUF_HEADROOM + FRAME_STORE_BYTES) {
		LOG_ERROR("task %s: memory.mbuf_data_bytes must be at least %u", config->name,
		          RTE_PKTMBUF_HEADROOM + FRAME_STORE_BYTES);
		return -EINVAL;
	}
	g = task_alloc(sizeof(*g), &generator_ops, config, ports);
	if (!g)
		return -ENOMEM;
	g->burst = (uint16_t)config->burst;
	g->probe_index = PROBE_NONE;
	g->write = frame_run_current()->write;
	g->way = port_lends(ports[0]) ? &generator_tx_in_place : &generator_tx_copy;
	g->send = g->way->send;
	flow_set(&g->flow, config->settings);
	rc = g->way->open(g);
	if (rc != 0) {
		free(g);
		return rc;
	}
	*out = &g->task;
	return 0;
}

static void generator_destroy(struct task *task)
{
	struct generator *g = (struct generator *)task;

	g->way->close(g);
	if (g->next != g->kept)
		profile_free(g->next);
	profile_free(g->kept);
	free(g);
}

static void generator_end(struct generator *g)
{
	g->probe_index = PROBE_NONE;
	port_flush(g->task.ports[0], g->task.queue);
	atomic_store_explicit(&g->state, STATE_DONE, memory_order_release);
}

// A frame that came later than its period counts as one of the next: the periods are those in which the port
// took something.
static void period_count(struct generator *g, uint64_t now_tsc)
{
	uint64_t period_tsc = g->pacer.period_tsc;

	if (now_tsc < g->burst_end_tsc)
		return;
	g->profile->ledger.bursts++;
	g->burst_end_tsc = now_tsc + period_tsc - (now_tsc - g->pacer.start_tsc) % period_tsc;
}

static void profile_sent(struct generator *g, uint16_t sent, uint64_t now_tsc)
{
	if (sent == 0)
		return;
	profile_count(g->profile, g->offered, sent);
	if (g->pacer.period_tsc)
		period_count(g, now_tsc);
}

static inline uint16_t slots_send(struct generator *g, uint16_t slots, uint64_t now_tsc)
{
	uint16_t sent;

	atomic_store_explicit(&g->told->packets, g->offered + slots, memory_order_release);
	sent = g->send(g, slots, now_tsc);
	if (unlikely(g->profile))
		profile_sent(g, sent, now_tsc);
	g->offered += sent;
	atomic_store_explicit(&g->told->packets, g->offered, memory_order_relaxed);
	g->ring_full += slots - sent; // no mbuf, too: then all of them are in the port's ring
	counter_add(&g->task.counters.tx_packets, sent);
	return sent;
}

// The device stamps the frame when it leaves: after some polls, or never.
static __attribute__((noinline, cold)) void stamp_take(struct generator *g, uint64_t now_tsc)
{
	const struct port *port = g->task.ports[0];

	if (port->ops->stamp_sent(port, &g->marked->port_ns) || now_tsc > g->marked_until_tsc)
		g->marked = NULL;
}

static unsigned generator_poll(struct task *task, uint64_t now_tsc)
{
	struct generator *g = (struct generator *)task;
	uint16_t slots, sent = 0;
	bool warms;

	if (atomic_load_explicit(&g->state, memory_order_relaxed) != STATE_RUNNING)
		return 0;
	if (unlikely(g->marked))
		stamp_take(g, now_tsc);
	slots = pacer_poll(&g->pacer, now_tsc);
	g->last_poll_tsc = now_tsc;
	warms = task_warms(task, slots);
	if (slots)
		sent = slots_send(g, slots, now_tsc);
	else if (pacer_done(&g->pacer, now_tsc))
		generator_end(g);
	else if (warms)
		port_warm(task->ports[0], task->queue);
	return sent;
}

static void counters_reset(struct generator *g)
{
	if (g->profile)
		profile_clear(g->profile);
	g->burst_end_tsc = 0;
	counters_clear(load_counters, g);
	g->ring_full = g->duration_tsc = 0;
	memset(&g->pacer, 0, sizeof(g->pacer));
	g->pacer.flat_out = true; // nothing intended
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

// The longest frame that the buffers hold, in memory.
static uint32_t room(const struct task *task)
{
	return rte_pktmbuf_data_room_size(task->ports[0]->rx_pool) - RTE_PKTMBUF_HEADROOM;
}

// Frame size against what exists and what the buffers hold.
static int size_check(const struct task *task, uint16_t frame_size_bytes)
{
	unsigned most = RTE_MIN(room(task) + FRAME_FCS_BYTES, (unsigned)FRAME_SIZE_MAX);

	if (frame_size_bytes >= FRAME_SIZE_MIN && frame_size_bytes <= most)
		return 0;
	LOG_ERROR("task %s: frame_size_bytes %u is not in %u..%u (a buffer of memory.mbuf_data_bytes %u "
	          "holds %u)",
	          task->name, frame_size_bytes, FRAME_SIZE_MIN, most,
	          rte_pktmbuf_data_room_size(task->ports[0]->rx_pool), room(task) + FRAME_FCS_BYTES);
	return -EINVAL;
}

static bool is_recorded(const struct profile *profile)
{
	return profile && profile->arrival.process == PACER_RECORDED;
}

// Slots per second, 0 for flat out and for recorded times, negative when the load does not say exactly one.
static double load_rate_pps(const struct task *task, const struct generator_load *load,
                            const struct profile *profile)
{
	double mean_bytes = profile ? profile->mean_frame_bytes : load->frame_size_bytes;
	double line_pps =
	        (double)task->ports[0]->config.line_rate_bps / ((mean_bytes + FRAME_L1_OVERHEAD_BYTES) * 8.0);

	if ((load->rate_pps != 0) + (load->line_share != 0) + load->flat_out != !is_recorded(profile))
		return -1;
	return load->line_share != 0 ? load->line_share * line_pps : load->rate_pps;
}

static int load_check(const struct task *task, const struct generator_load *load,
                      const struct profile *profile)
{
	double rate_pps = load_rate_pps(task, load, profile);

	if (!isfinite(rate_pps) || rate_pps < 0 || rate_pps >= (double)clock_hz())
		return refuse(
		        task,
		        "give exactly one of rate_pps, line_share and flat_out, above 0 and below tsc_hz");
	if (load->line_share > 1)
		return refuse(task, "line_share must be in (0, 1]; raise the port's line_rate_bps for more");
	if (!(load->probe_rate_pps >= 0 && load->probe_rate_pps < (double)clock_hz()))
		return refuse(task, "probe_rate_pps must be 0 (no probes) or above, and below tsc_hz");
	if (load->duration_ns == 0)
		return refuse(task, "duration_ns must be above 0");
	return profile ? 0 : size_check(task, load->frame_size_bytes);
}

// Interval in ticks; a rate so low that it does not fit means no probes in any trial's time.
static uint64_t interval_tsc(double rate_pps)
{
	double ticks = rate_pps > 0 ? (double)clock_hz() / rate_pps : 0;

	return ticks < 0x1p62 ? (uint64_t)ticks : UINT64_C(1) << 62;
}

static int pace(struct generator *g, const struct generator_load *load)
{
	struct pacer_load pace = {
	        .start_tsc = load->start_tsc, .duration_ns = load->duration_ns, .burst = g->burst};

	if (g->profile)
		pace.arrival = g->profile->arrival;
	pace.rate_pps = load_rate_pps(&g->task, load, g->profile);
	return pacer_start(&g->pacer, &pace, clock_hz()) == 0
	               ? 0
	               : refuse(&g->task, "the rate cannot be paced, or not in bursts that short");
}

// The next load's frames: the prepared profile, or the plain ones.
static void frames_set(struct generator *g, const struct generator_load *load)
{
	if (g->next && g->next != g->kept) {
		profile_free(g->kept);
		g->kept = g->next;
	}
	g->profile = g->next;
	g->next = NULL;
	g->send = g->profile ? g->way->send_profile : g->way->send;
	g->flow.epoch = load->epoch;
	g->flow.nonce = load->nonce;
	g->flow.frame_size_bytes =
	        g->profile ? (uint16_t)lround(g->profile->mean_frame_bytes) : load->frame_size_bytes;
	frame_template_init(&g->template, &g->flow);
	(load->ptp_probes ? frame_template_init_ptp : frame_template_init)(&g->marked_template, &g->flow);
	if (g->profile)
		profile_begin(g->profile, &g->flow);
}

int generator_prepare(struct task *task, const json_t *profile, const struct generator_load *load,
                      const char *where, char *error)
{
	struct generator *g = (struct generator *)task;
	struct frame_flow flow = g->flow;
	char place[64];

	if (g->next != g->kept)
		profile_free(g->next);
	g->next = NULL;
	if (!profile)
		return 0;
	flow.frame_size_bytes = load->frame_size_bytes;
	snprintf(place, sizeof(place), "%.40s.profile", where);
	g->next = g->kept && profile_is(g->kept, profile, flow.frame_size_bytes)
	                  ? g->kept
	                  : profile_make(profile, &flow, room(task), place, error);
	if (g->next && g->next->arrival.process != PACER_CONSTANT && load->flat_out)
		snprintf(error, CONFIG_ERROR_MAX, "%s: flat_out leaves no room for arrivals; give a rate",
		         place);
	else if (g->next && is_recorded(g->next) && (load->rate_pps != 0 || load->line_share != 0))
		snprintf(error, CONFIG_ERROR_MAX,
		         "%s.pcap.timing: recorded times are the rate; take out rate_pps or line_share",
		         place);
	else if (g->next)
		return 0;
	return -EINVAL;
}

// Say to the monitors what is offered, from 0 on. Two generators of one stream cannot both.
static int tell(struct generator *g, struct trial_offered *offered)
{
	struct trial_offered *told = offered ? &offered[g->flow.stream] : &g->nobody;

	if (offered && atomic_load_explicit(&told->packets, memory_order_relaxed) != TRIAL_OFFERED_UNKNOWN)
		return refuse(&g->task, "another generator sends its stream; give another, or no nonce");
	atomic_store_explicit(&told->packets, 0, memory_order_relaxed);
	g->told = told;
	return 0;
}

int generator_start(struct task *task, const struct generator_load *load)
{
	struct generator *g = (struct generator *)task;

	if (load_check(task, load, g->next) != 0)
		return -EINVAL;
	g->probe_index = PROBE_NONE;
	frames_set(g, load);
	counters_reset(g);
	if (pace(g, load) != 0)
		return -EINVAL;
	if (tell(g, load->offered) != 0)
		return -EINVAL;
	if (g->way->begin(g) != 0)
		return -ENOMEM;
	g->next_sequence = 0;
	g->stamp_all = load->stamp_all;
	g->probe_interval_tsc = interval_tsc(load->probe_rate_pps);
	g->probe_slot_tsc = load->start_tsc;
	probe_schedule(g);
	g->marked = NULL;
	// The register of the stamps that a device has is one for all queues.
	g->marks = task->stamps && task->ports[0]->clock == PORT_CLOCK_HARDWARE && task->queue == 0;
	g->duration_tsc = g->pacer.duration_tsc;
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
	g->duration_tsc = RTE_MAX(g->last_poll_tsc, g->pacer.start_tsc) - g->pacer.start_tsc;
	generator_end(g);
}

bool generator_running(const struct task *task)
{
	const struct generator *g = (const struct generator *)task;

	return atomic_load_explicit(&g->state, memory_order_acquire) == STATE_RUNNING;
}

static const struct field load_fields[] = {
        {.key = "task", .type = FIELD_ANY, .required = true},
        {UINT_FIELD("frame_size_bytes", struct generator_load, frame_size_bytes, 64, 9018)},
        {REAL_FIELD("rate_pps", struct generator_load, rate_pps, 0.01, 1e9)},
        {REAL_FIELD("line_share", struct generator_load, line_share, 1e-9, 1)},
        {.key = "flat_out", FIELD(FIELD_BOOL, struct generator_load, flat_out)},
        {REAL_FIELD("probe_rate_pps", struct generator_load, probe_rate_pps, 0, 1e7)},
        {.key = "stamp_all", FIELD(FIELD_BOOL, struct generator_load, stamp_all)},
        {.key = "profile", .type = FIELD_ANY},
        {0},
};

// Sizes may be the profile's, times those of a capture.
static int load_say(const json_t *object, const struct generator_load *load, const char *where, char *error)
{
	const json_t *profile = json_object_get(object, "profile"), *pcap = json_object_get(profile, "pcap");
	const char *timing = json_string_value(json_object_get(pcap, "timing"));
	int loads = (load->rate_pps > 0) + (load->line_share > 0) + load->flat_out;
	bool recorded = timing && strcmp(timing, "recorded") == 0;

	if (load->frame_size_bytes == 0 && !pcap && !json_object_get(profile, "sizes"))
		return config_error(error, "%s: key \"frame_size_bytes\" is missing", where);
	if (loads == 1 || (loads == 0 && recorded))
		return 0;
	return config_error(error, "%s: give exactly one of rate_pps, line_share and flat_out: true", where);
}

static int generator_load(struct task *task, const json_t *object, const char *where, char *error)
{
	struct generator *g = (struct generator *)task;

	g->load = (struct generator_load){0};
	if (schema_decode(object, load_fields, &g->load, where, error) ||
	    load_say(object, &g->load, where, error))
		return -EINVAL;
	return generator_prepare(task, json_object_get(object, "profile"), &g->load, where, error);
}

static int generator_begin(struct task *task, const struct trial *trial)
{
	struct generator *g = (struct generator *)task;

	if (trial->sampled && (g->load.probe_rate_pps > 0 || g->load.stamp_all))
		return refuse(task,
		              "monitors that look into some bursts only do not see all probes or stamps; "
		              "leave out sampled, or these");
	g->load.epoch = trial->epoch;
	g->load.start_tsc = trial->start_tsc;
	g->load.duration_ns = trial->duration_ns;
	g->load.ptp_probes = trial->ptp_probes;
	g->load.nonce = trial->nonce;
	g->load.offered = trial->offered;
	return generator_start(task, &g->load);
}

static const struct task_ops generator_ops = {
        .kind = "generator",
        .burst = CONFIG_BURST_MAX,
        .facts = profile_facts,
        .ports_min = 1,
        .ports_max = 1,
        .stamps = true,
        .sends = true,
        .settings_keys = settings_keys,
        .settings_size = sizeof(struct generator_settings),
        .load = generator_load,
        .begin = generator_begin,
        .end = generator_stop,
        .running = generator_running,
        .create = generator_create,
        .destroy = generator_destroy,
        .poll = generator_poll,
        .clear = generator_clear,
        .report = generator_report,
};
TASK_KIND(generator_ops)
