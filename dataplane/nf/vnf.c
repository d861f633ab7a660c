// SPDX-License-Identifier: BSD-3-Clause
#include "nf/vnf.h"

#include <errno.h>
#include <rte_cycles.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/schema.h"
#include "tester/stamps.h"
#include "task/task.h"
#include "tester/frame.h"
#include "nf/send_buffer.h"

// Where the frames of a burst leave, by their verdicts (vnf.h). Of vnf.c.

// Whether all of a burst leaves by one port: then *out is that.
static inline bool leaving_is_uniform(const uint8_t *verdicts, unsigned n, unsigned *out)
{
	if (verdicts[0] & VNF_DROP || memcmp(verdicts, verdicts + 1, n - 1) != 0)
		return false;
	*out = verdicts[0];
	return true;
}

// The frames of a burst by the port that they leave by, each port's in order: in lists, so that as many ports
// as frames cost no more than one.
struct leaving {
	unsigned count; // of outs[]
	uint8_t outs[CONFIG_BURST_MAX];
	uint8_t next[CONFIG_BURST_MAX], lengths[CONFIG_TASK_PORTS_MAX]; // of lists
	uint8_t first[CONFIG_TASK_PORTS_MAX], last[CONFIG_TASK_PORTS_MAX];
};

static inline void leaving_add(struct leaving *leaving, unsigned out, unsigned i)
{
	if (leaving->lengths[out]++ == 0) {
		leaving->outs[leaving->count++] = (uint8_t)out;
		leaving->first[out] = (uint8_t)i;
	} else {
		leaving->next[leaving->last[out]] = (uint8_t)i;
	}
	leaving->last[out] = (uint8_t)i;
}

// Sort a burst, and count its drops.
static inline void leaving_sort(struct leaving *leaving, struct vnf *vnf, const uint8_t *verdicts, unsigned n)
{
	leaving->count = 0;
	memset(leaving->lengths, 0, vnf->side_count);
	for (unsigned i = 0; i < n; i++)
		if (verdicts[i] & VNF_DROP)
			vnf->drops[verdicts[i] & ~VNF_DROP]++;
		else
			leaving_add(leaving, verdicts[i], i);
}

enum { TICKS_PER_S = 1000 };

// --- Made and ended --------------------------------------------------------------------------------------

#define KEY_MACS                                                                                             \
	{                                                                                                    \
		ARRAY_FIELD("peer_macs", FIELD_MAC, struct vnf_settings, peer_macs, mac_count, 1,            \
		            CONFIG_TASK_PORTS_MAX)                                                           \
	}
#define KEY_SETTINGS                                                                                         \
	{                                                                                                    \
		.key = "settings", .type = FIELD_ANY                                                         \
	}
#define KEYS_SENDING                                                                                         \
	{UINT_FIELD("send_burst", struct vnf_settings, send_burst, 0, SEND_BURST_MAX)},                      \
	{                                                                                                    \
		UINT_FIELD("drain_us", struct vnf_settings, drain_us, 0, DRAIN_US_MAX)                       \
	}
const struct field vnf_keys[] = {KEYS_SENDING, KEY_MACS, KEY_SETTINGS, {0}};
const struct field vnf_keys_macs[] = {KEYS_SENDING, KEY_MACS, {0}};
const struct field vnf_keys_settings[] = {KEYS_SENDING, KEY_SETTINGS, {0}};

static int check_sending(const struct config_task *config, struct vnf_settings *settings, char *error)
{
	bool drains = json_object_get(config->object, "drain_us") != NULL;

	if (drains && !settings->send_burst)
		return config_error(error, "task %s: drain_us without send_burst; give both", config->name);
	if (!drains)
		settings->drain_us = DRAIN_US_DEFAULT;
	return 0;
}

int vnf_settings_check(const struct config_task *config, void *settings, const char *where, char *error)
{
	const json_t *object = json_object_get(config->object, "settings");
	unsigned mac_count = ((const struct vnf_settings *)settings)->mac_count;
	const struct vnf_ops *ops = config->ops->vnf;
	char place[64];

	// Two where there is but one port: the harness and documents of before give them to an echo, too.
	if (mac_count && mac_count != 2 && mac_count != config->port_count)
		return config_error(
		        error, "task %s: peer_macs has %u addresses for %u ports; give one for each port",
		        config->name, mac_count, config->port_count);
	if (check_sending(config, settings, error))
		return -EINVAL;
	snprintf(place, sizeof(place), "task %s: settings", config->name);
	if (object && schema_decode(object, ops->settings_fields, settings, place, error))
		return -EINVAL;
	return ops->settings_check ? ops->settings_check(config, object, settings, place, error) : 0;
}

static int macs_set(struct vnf *vnf, const struct config_task *config, unsigned i)
{
	static const uint8_t unset[RTE_ETHER_ADDR_LEN];
	const uint8_t peer[RTE_ETHER_ADDR_LEN] = {2, 0, 0, 0, 1, (uint8_t)i}; // locally administered
	const uint8_t *given = ((const struct vnf_settings *)config->settings)->peer_macs[i];
	struct rte_ether_addr own;
	int status = port_mac(vnf->task.ports[i], &own);

	if (status != 0) {
		LOG_ERROR("task %s: MAC address of port %s: %s", config->name, config->ports[i],
		          strerror(-status));
		return status;
	}
	memcpy(vnf->macs[i], memcmp(given, unset, sizeof(unset)) ? given : peer, sizeof(peer));
	memcpy(vnf->macs[i] + sizeof(peer), own.addr_bytes, sizeof(own.addr_bytes));
	return 0;
}

// With one port, or the same twice, what comes in goes back. With more than two, out[] is the next one.
static int sides_set(struct vnf *vnf, const struct config_task *config)
{
	struct port *const *ports = vnf->task.ports;
	bool echo = config->port_count == 1 || (config->port_count == 2 && ports[0] == ports[1]);
	int status = 0;

	vnf->side_count = echo ? 1 : (uint8_t)config->port_count;
	for (unsigned i = 0; i < vnf->side_count && status == 0; i++) {
		vnf->out[i] = (uint8_t)((i + 1) % vnf->side_count);
		vnf->fast[vnf->fast_count++] = (uint8_t)i;
		vnf->next_burst[i] = vnf->burst;
		status = macs_set(vnf, config, i);
	}
	return status;
}

// A buffer for each port that is sent to, for frames as long as the process's ports have room for.
static int buffers_set(struct vnf *vnf, const struct config_task *config)
{
	const struct vnf_settings *settings = config->settings;
	uint32_t room;

	if (!settings->send_burst)
		return 0;
	room = rte_pktmbuf_data_room_size(vnf->task.ports[0]->rx_pool) - RTE_PKTMBUF_HEADROOM;
	vnf->sends_later = true;
	vnf->drain_tsc = clock_hz() / 1000000 * settings->drain_us;
	for (unsigned i = 0; i < vnf->side_count; i++) {
		vnf->buffers[i] = send_buffer_create(settings->send_burst, room);
		if (!vnf->buffers[i])
			return -ENOMEM;
	}
	return 0;
}

void vnf_side_slow(struct vnf *vnf, unsigned side)
{
	unsigned i = 0;

	while (vnf->fast[i] != side)
		i++;
	memmove(vnf->fast + i, vnf->fast + i + 1, --vnf->fast_count - i);
	vnf->slow[vnf->slow_count++] = (uint8_t)side;
}

int vnf_create(const struct config_task *config, struct port *const *ports, struct task **out)
{
	const struct task_ops *ops = config->ops;
	struct vnf *vnf = task_alloc(ops->vnf->size, ops, config, ports);
	int status;

	if (!vnf)
		return -ENOMEM;
	vnf->ops = ops->vnf;
	vnf->burst = (uint16_t)config->burst;
	vnf->tick_tsc = clock_hz() / TICKS_PER_S;
	status = sides_set(vnf, config);
	if (status == 0)
		status = buffers_set(vnf, config);
	if (status == 0 && vnf->ops->open)
		status = vnf->ops->open(vnf, config);
	for (unsigned i = 0; i < vnf->side_count; i++)
		vnf->places[i] = vnf->side_count <= 2 && !vnf->sends_later && !vnf->moves_starts &&
		                 port_places(ports[vnf->out[i]]);
	if (status != 0) {
		vnf_destroy(&vnf->task);
		return status;
	}
	*out = &vnf->task;
	return 0;
}

void vnf_destroy(struct task *task)
{
	struct vnf *vnf = (struct vnf *)task;

	if (vnf->ops->close)
		vnf->ops->close(vnf);
	for (unsigned i = 0; i < vnf->side_count; i++)
		send_buffer_free(vnf->buffers[i]);
	free(vnf);
}

// --- Frames of a burst -----------------------------------------------------------------------------------

void vnf_process(struct vnf *vnf, unsigned in, struct vnf_frame *frames, unsigned n, uint64_t now_tsc,
                 uint8_t *verdicts)
{
	if (vnf->ops->process(vnf, in, frames, n, now_tsc, verdicts))
		memset(verdicts, vnf->out[in], n);
}

// Headers of so many bytes are looked at in the time that a plain packet takes; a tag or two, and IPv6, are not counted.
enum { CHARGE_HEADER_BYTES = 50 };

enum packet_fault vnf_parse_any(struct vnf *vnf, const struct vnf_frame *frame, struct packet *p)
{
	enum packet_fault fault = packet_parse_any(frame, p);

	vnf->task.charge += fault == PACKET_FINE ? (p->l4 - p->l3) / (uint32_t)CHARGE_HEADER_BYTES : 1;
	return fault;
}

// The probes of a burst, before they are changed; and when they left, after.
struct probes {
	unsigned count;
	struct {
		uint16_t at; // in the burst
		struct stamp *stamp;
	} found[CONFIG_BURST_MAX];
};

static __attribute__((noinline)) void
probes_find(struct vnf *vnf, unsigned in, const struct vnf_frame *frames, unsigned n, struct probes *probes)
{
	uint64_t now_tsc = rte_rdtsc();
	struct frame_fields fields;

	for (unsigned i = 0; i < n; i++) {
		struct stamp *stamp;

		if (!frame_is_probe(frames[i].data, frames[i].length, &fields))
			continue;
		stamp = stamps_next(vnf->task.stamps);
		if (!stamp)
			continue;
		*stamp = (struct stamp){.in_tsc = now_tsc,
		                        .sequence = fields.sequence,
		                        .stream = fields.stream,
		                        .empty_tsc = vnf->empty_tsc[in]};
		probes->found[probes->count].at = (uint16_t)i;
		probes->found[probes->count++].stamp = stamp;
	}
}

// verdicts: NULL when all leave.
static __attribute__((noinline)) void probes_leave(const struct probes *probes, const uint8_t *verdicts)
{
	uint64_t now_tsc = rte_rdtsc();

	for (unsigned i = 0; i < probes->count; i++)
		if (!verdicts || !(verdicts[probes->found[i].at] & VNF_DROP))
			probes->found[i].stamp->out_tsc = now_tsc;
}

// What became of a burst: all of it leaves by out[in], or verdicts say.
static inline bool burst_process(struct vnf *vnf, unsigned in, struct vnf_frame *frames, unsigned n,
                                 uint64_t now_tsc, uint8_t *verdicts)
{
	struct probes probes;
	bool all;

	if (likely(!vnf->task.stamps))
		return vnf->ops->process(vnf, in, frames, n, now_tsc, verdicts);
	probes.count = 0;
	probes_find(vnf, in, frames, n, &probes);
	all = vnf->ops->process(vnf, in, frames, n, now_tsc, verdicts);
	if (!vnf->sends_later) // else they leave when their buffer does
		probes_leave(&probes, all ? NULL : verdicts);
	return all;
}

// --- From port to port -----------------------------------------------------------------------------------

static inline void count_sent(struct vnf *vnf, unsigned out, unsigned sent, unsigned offered)
{
	counter_add(&vnf->task.counters.tx_packets, sent);
	counter_add(&vnf->task.counters.drop_tx_full[out], offered - sent);
}

// Returns how many frames waited.
static unsigned flush(struct vnf *vnf, unsigned out)
{
	unsigned waited = send_buffer_count(vnf->buffers[out]);
	unsigned sent =
	        send_buffer_flush(vnf->buffers[out], vnf->task.ports[out], vnf->task.queue, vnf->task.stamps);

	count_sent(vnf, out, sent, waited);
	return waited;
}

// A frame that is too long for the buffer is dropped: no port of this process has room for it either.
static __attribute__((noinline)) void pass_later(struct vnf *vnf, unsigned out, struct view *view)
{
	struct send_buffer *buffer = vnf->buffers[out];

	for (unsigned i = 0; i < view->count; i++) {
		if (!send_buffer_add(buffer, view, i, vnf->task.stamps))
			counter_add(&vnf->task.counters.drop_tx_full[out], 1);
		else if (send_buffer_full(buffer))
			flush(vnf, out);
	}
	if (view_in_mbufs(view)) {
		rte_pktmbuf_free_bulk(view->pkts, view->count);
		view->held = 0;
	}
}

// All that waits leaves each drain_us, however long it has waited: DPDK's rule.
static __attribute__((noinline)) unsigned drain(struct vnf *vnf, uint64_t now_tsc)
{
	unsigned n = 0;

	for (unsigned i = 0; i < vnf->side_count; i++)
		n += flush(vnf, i);
	vnf->drain_due_tsc = now_tsc + vnf->drain_tsc;
	return n;
}

// This and what calls it return how many frames the next port did not take.
static inline unsigned pass(struct vnf *vnf, unsigned in, unsigned out, struct view *view)
{
	unsigned sent;

	if (unlikely(vnf->sends_later)) {
		pass_later(vnf, out, view);
		return 0;
	}
	sent = port_pass(vnf->task.ports[in], vnf->task.ports[out], vnf->task.queue, view);
	count_sent(vnf, out, sent, view->count);
	return view->count - sent;
}

// Those that leave by different ports, or not at all.
static __attribute__((noinline)) unsigned pass_mixed(struct vnf *vnf, unsigned in, struct view *view,
                                                     const uint8_t *verdicts)
{
	struct leaving leaving;
	struct view part;
	unsigned refused = 0;

	leaving_sort(&leaving, vnf, verdicts, view->count);
	for (unsigned k = 0; k < leaving.count; k++) {
		unsigned out = leaving.outs[k];

		view_part_begin(&part, view);
		for (unsigned i = 0, at = leaving.first[out]; i < leaving.lengths[out];
		     i++, at = leaving.next[at])
			view_part_add(&part, view, at);
		refused += pass(vnf, in, out, &part);
	}
	return refused;
}

// A frame without room in front is none to the function: no driver of ours receives into such an mbuf.
static __attribute__((noinline)) bool burst_process_moving(struct vnf *vnf, unsigned in,
                                                           const struct view *view, struct vnf_frame *frames,
                                                           uint64_t now_tsc, uint8_t *verdicts)
{
	bool all;

	for (unsigned i = 0; i < view->count; i++)
		if (unlikely(rte_pktmbuf_headroom(view->pkts[i]) < VNF_FRONT_BYTES))
			frames[i].length = 0;
	all = burst_process(vnf, in, frames, view->count, now_tsc, verdicts);
	for (unsigned i = 0; i < view->count; i++) {
		struct rte_mbuf *m = view->pkts[i];
		uint16_t moved = (uint16_t)(frames[i].data - rte_pktmbuf_mtod(m, uint8_t *));

		m->data_off = (uint16_t)(m->data_off + moved);
		m->data_len = (uint16_t)(m->data_len - moved);
		m->pkt_len -= (uint32_t)(int16_t)moved;
	}
	return all;
}

// Frames that are processed where they lie.
static inline unsigned handle(struct vnf *vnf, unsigned in, struct view *view, uint64_t now_tsc)
{
	struct vnf_frame frames[CONFIG_BURST_MAX];
	uint8_t verdicts[CONFIG_BURST_MAX];
	unsigned out = vnf->out[in];

	bool all;

	view_spans(view, frames);
	all = unlikely(vnf->moves_starts) ? burst_process_moving(vnf, in, view, frames, now_tsc, verdicts)
	                                  : burst_process(vnf, in, frames, view->count, now_tsc, verdicts);
	if (likely(all || leaving_is_uniform(verdicts, view->count, &out)))
		return pass(vnf, in, out, view);
	return pass_mixed(vnf, in, view, verdicts);
}

// Copy frames into mbufs: those of a ring that are processed there. All, or none without mbufs for them: then they count as
// not taken by the port by which frames of this side leave.
static bool copy_to_mbufs(struct vnf *vnf, unsigned in, struct view *view, const struct frame *frames,
                          unsigned n)
{
	struct rte_mempool *pool = vnf->task.ports[in]->rx_pool;
	uint64_t no_mbuf = 0;
	unsigned filled = 0;

	if (rte_pktmbuf_alloc_bulk(pool, view->pkts, n) == 0)
		filled = frames_fill(pool, view->pkts, frames, n, &no_mbuf);
	if (likely(view_received(view, filled) == n))
		return true;
	rte_pktmbuf_free_bulk(view->pkts, filled);
	count_sent(vnf, vnf->out[in], 0, n);
	return false;
}

static __attribute__((noinline)) unsigned
handle_copies(struct vnf *vnf, unsigned in, const struct frame *frames, unsigned n, uint64_t now_tsc)
{
	struct view view;
	unsigned refused;

	if (!copy_to_mbufs(vnf, in, &view, frames, n))
		return n;
	refused = handle(vnf, in, &view, now_tsc);
	port_release(vnf->task.ports[in], vnf->task.queue, &view);
	return refused;
}

// Frames that have been processed in the buffers of the port that only some of them leave by. The next bursts are probably
// mixed, too.
enum { COPIED_BURSTS = 16 };
static __attribute__((noinline)) unsigned pass_placed_mixed(struct vnf *vnf, unsigned in,
                                                            const struct placed *placed, unsigned n,
                                                            const uint8_t *verdicts)
{
	struct piece pieces[CONFIG_BURST_MAX];
	struct frame frames[CONFIG_BURST_MAX];
	unsigned refused = n;
	struct view view;
	bool copied;

	for (unsigned i = 0; i < n; i++) {
		pieces[i] = (struct piece){placed->frames[i].data, placed->frames[i].total};
		frames[i] = (struct frame){{&pieces[i], 0}, placed->frames[i].total, 0};
	}
	copied = copy_to_mbufs(vnf, in, &view, frames, n);
	port_send_placed(vnf->task.ports[vnf->out[in]], vnf->task.queue, placed, 0);
	vnf->copied_bursts[in] = COPIED_BURSTS;
	if (!copied)
		return refused;
	refused = pass_mixed(vnf, in, &view, verdicts);
	port_release(vnf->task.ports[in], vnf->task.queue, &view);
	return refused;
}

// Frames that are copied to where they leave from, and processed there. Returns how many these are; what a full port has no
// room for is not processed in vain, unless it may leave elsewhere.
static inline unsigned handle_placed(struct vnf *vnf, unsigned in, const struct view *view, uint64_t now_tsc,
                                     unsigned *refused)
{
	const bool final = !vnf->ops->cost_is_process;
	unsigned out = vnf->out[in], n;
	const struct port *to = vnf->task.ports[out];
	uint8_t verdicts[CONFIG_BURST_MAX];
	struct placed placed;

	n = port_place(to, vnf->task.queue, view->frames, view->count, final, &placed);
	if (likely(n)) {
		if (likely(burst_process(vnf, in, placed.frames, n, now_tsc, verdicts) ||
		           (leaving_is_uniform(verdicts, n, &out) && out == vnf->out[in]))) {
			port_send_placed(to, vnf->task.queue, &placed, n);
			count_sent(vnf, vnf->out[in], n, n);
		} else {
			*refused = pass_placed_mixed(vnf, in, &placed, n, verdicts);
		}
	}
	if (likely(n == view->count) || !placed.full || !final)
		return n;
	count_sent(vnf, vnf->out[in], 0, view->count - n);
	*refused += view->count - n;
	return view->count;
}

// Frames in the rings of another end, which must not change while they are processed.
static inline unsigned handle_shared(struct vnf *vnf, unsigned in, const struct view *view, uint64_t now_tsc)
{
	unsigned refused = 0, done = 0;

	if (likely(vnf->places[in] && vnf->copied_bursts[in] == 0))
		done = handle_placed(vnf, in, view, now_tsc, &refused);
	else if (vnf->places[in])
		vnf->copied_bursts[in]--;
	if (unlikely(done < view->count))
		refused += handle_copies(vnf, in, &view->frames[done], view->count - done, now_tsc);
	return refused;
}

// While the other port takes less than it is offered, a side takes hardly more: the other frames wait in its ring, whose sender
// drops what is too much, and are not worked on in vain. Not where a third port would have room for some of them.
static inline uint16_t next_burst(const struct vnf *vnf, unsigned offered, unsigned refused)
{
	if (likely(refused == 0) || vnf->side_count > 2 || !vnf->ops->cost_is_process)
		return vnf->burst;
	return (uint16_t)RTE_MIN(2 * (offered - refused) + 1, (unsigned)vnf->burst);
}

static unsigned poll_side(struct vnf *vnf, unsigned in, uint16_t burst, uint64_t now_tsc)
{
	const struct port *from = vnf->task.ports[in];
	struct view view;
	unsigned n, refused;

	if (task_skips_poll(&vnf->task, in))
		return 0;
	n = port_peek(from, vnf->task.queue, &view, RTE_MIN(burst, vnf->next_burst[in]));
	if (n == 0) {
		if (unlikely(vnf->task.stamps))
			vnf->empty_tsc[in] = now_tsc;
		return 0;
	}
	counter_add(&vnf->task.counters.rx_packets, n);
	refused = view_in_mbufs(&view) || (port_view_writable(from, &view) && likely(!vnf->moves_starts))
	                  ? handle(vnf, in, &view, now_tsc)
	                  : handle_shared(vnf, in, &view, now_tsc);
	vnf->next_burst[in] = next_burst(vnf, n, refused);
	port_release(from, vnf->task.queue, &view);
	task_charge(&vnf->task, in, vnf->burst);
	return n;
}

static __attribute__((noinline)) void tick(struct vnf *vnf, uint64_t now_tsc)
{
	vnf->tick_due_tsc = now_tsc + vnf->tick_tsc;
	if (vnf->ops->tick)
		vnf->ops->tick(vnf, now_tsc);
}

static __attribute__((noinline)) unsigned poll_slow(struct vnf *vnf, uint64_t now_tsc)
{
	unsigned in = vnf->slow[vnf->slow_next];

	vnf->slow_next = (uint8_t)(vnf->slow_next + 1u < vnf->slow_count ? vnf->slow_next + 1 : 0);
	return poll_side(vnf, in, 1, now_tsc);
}

unsigned vnf_poll(struct task *task, uint64_t now_tsc)
{
	struct vnf *vnf = (struct vnf *)task;
	unsigned n = 0;

	if (unlikely(now_tsc >= vnf->tick_due_tsc))
		tick(vnf, now_tsc);
	if (unlikely(vnf->sends_later) && now_tsc >= vnf->drain_due_tsc)
		n += drain(vnf, now_tsc);
	for (unsigned i = 0; i < vnf->fast_count; i++)
		n += poll_side(vnf, vnf->fast[i], vnf->burst, now_tsc);
	if (vnf->slow_count)
		n += poll_slow(vnf, now_tsc);
	if (task_warms(task, n))
		for (unsigned i = 0; i < vnf->fast_count; i++)
			port_warm(task->ports[vnf->out[vnf->fast[i]]], task->queue);
	return n;
}
