// SPDX-License-Identifier: BSD-3-Clause
// A network function between ports with rings of our own, of each kind: every frame, whole, changed once, in order, by
// its verdict; what does not fit the next ring in one piece; what it has no room for; and nothing without mbufs.
#include <stdlib.h>
#include <string.h>

#include "port/port_rig.h"
#include "nf/vnf.h"
#include "test/unit.h"

enum { ODD, LONGEST = 6000, LATER = 0xff, FRAMES_MAX = 32, RING = 64, HEAD = 8, MOVING = 2 };

static const struct counter drops[] = {VNF_DROP_COUNTER(ODD, "odd"), {0}};

// As the first byte says: LATER, by the other port; else the verdict. The second byte counts how often.
static bool obey(struct vnf *vnf, unsigned in, struct vnf_frame *frames, unsigned n, uint64_t now_tsc,
                 uint8_t *verdicts)
{
	bool all = true;

	for (unsigned i = 0; i < n; i++) {
		frames[i].data[1]++;
		all = all && frames[i].data[0] == LATER;
		verdicts[i] = frames[i].data[0] == LATER ? vnf->out[in] : frames[i].data[0];
	}
	return all;
}

// By its number, whose lowest byte is the third: an even one begins later, an odd one earlier.
static bool move(struct vnf *vnf, unsigned in, struct vnf_frame *frames, unsigned n, uint64_t now_tsc,
                 uint8_t *verdicts)
{
	for (unsigned i = 0; i < n; i++) {
		int by = frames[i].data[2] & 1 ? -VNF_FRONT_BYTES : VNF_FRONT_BYTES;

		frames[i].data += by;
		frames[i].length -= (uint32_t)by;
		frames[i].total -= (uint32_t)by;
		if (by < 0)
			memset(frames[i].data, 0x55, VNF_FRONT_BYTES);
	}
	return true;
}

static int moves(struct vnf *vnf, const struct config_task *config)
{
	vnf->moves_starts = true;
	return 0;
}

static const struct vnf_ops cheap = {.size = sizeof(struct vnf), .process = obey},
                            dear = {.size = sizeof(struct vnf), .process = obey, .cost_is_process = true},
                            moving = {.size = sizeof(struct vnf), .process = move, .open = moves};
static const struct task_ops kinds[] = {
        {VNF_TASK_OPS("cheap", &cheap, drops, vnf_keys_macs, struct vnf_settings), .ports_min = 1,
         .ports_max = 2},
        {VNF_TASK_OPS("dear", &dear, drops, vnf_keys_macs, struct vnf_settings), .ports_min = 1,
         .ports_max = 2},
        [MOVING] = {VNF_TASK_OPS("moving", &moving, drops, vnf_keys_macs, struct vnf_settings),
                    .ports_min = 1, .ports_max = 2},
};

struct set {
	struct rig rigs[2];
	struct task *task;
	uint32_t sent;    // frames numbered
	uint32_t came[2]; // at each end: the number that comes next, at least
};

static void set_open(struct set *s, const struct rig_kind *a, const struct rig_kind *b, unsigned task_kind)
{
	struct config_task config = {.name = "vnf", .kind = "vnf", .ops = &kinds[task_kind], .port_count = 2};
	struct port *ports[] = {&s->rigs[0].port, &s->rigs[1].port};

	*s = (struct set){0};
	assert_true(rig_open(&s->rigs[0], a, RING) && rig_open(&s->rigs[1], b, RING));
	assert_int_equal(task_create(config.ops, &config, ports, &s->task), 0);
}

static uint64_t dropped(const struct set *s)
{
	return ((struct vnf *)s->task)->drops[ODD] + task_drop_tx_full(s->task);
}

// No frame is lost without a counter, no mbuf at all.
static void set_close(struct set *s)
{
	assert_int_equal(s->task->counters.rx_packets, s->task->counters.tx_packets + dropped(s));
	task_destroy(s->task);
	rig_close(&s->rigs[0]);
	rig_close(&s->rigs[1]);
	assert_int_equal(rte_mempool_avail_count(rig_pool), RIG_MBUFS);
}

static uint8_t byte_at(uint32_t number, uint32_t i)
{
	return (uint8_t)(number * 31 + i * 7 + (i >> 8));
}

// Frames from one side, each with its verdict. Returns how many there was room for.
static unsigned offer(struct set *s, unsigned side, const uint8_t *verdicts, unsigned n, uint32_t length)
{
	static uint8_t bytes[FRAMES_MAX][LONGEST];
	struct piece pieces[FRAMES_MAX];
	struct frame frames[FRAMES_MAX];

	for (unsigned i = 0; i < n; i++) {
		uint32_t number = s->sent++;

		for (uint32_t at = HEAD; at < length; at++)
			bytes[i][at] = byte_at(number, at);
		bytes[i][0] = verdicts[i];
		bytes[i][1] = 0;
		memcpy(&bytes[i][2], &number, sizeof(number));
		pieces[i] = (struct piece){bytes[i], length};
		frames[i] = (struct frame){{&pieces[i], 0}, length, 0};
	}
	return port_deliver(&s->rigs[side].peer, 0, frames, n);
}

static void poll_all(struct set *s)
{
	for (unsigned idle = 0; idle < 3; idle++)
		while (s->task->ops->poll(s->task, 0))
			idle = 0;
}

// What has come to the other end of a port: in order, processed once, else as it was. Returns how many.
static unsigned collect(struct set *s, unsigned side, uint32_t length)
{
	static uint8_t bytes[LONGEST];
	unsigned count = 0;
	struct view view;

	while (port_peek(&s->rigs[side].peer, 0, &view, BURST_FRAMES_MAX)) {
		for (unsigned i = 0; i < view.count; i++, count++) {
			uint32_t number;

			assert_int_equal(view_span(&view, i).total, length);
			assert_int_equal(view_copy(&view, i, bytes, sizeof(bytes)), length);
			memcpy(&number, bytes + 2, sizeof(number));
			assert_true(number >= s->came[side] && number < s->sent);
			s->came[side] = number + 1;
			assert_int_equal(bytes[1], 1);
			for (uint32_t at = HEAD; at < length; at++)
				assert_int_equal(bytes[at], byte_at(number, at));
		}
		port_release(&s->rigs[side].peer, 0, &view);
	}
	return count;
}

typedef void check(struct set *s, unsigned task_kind);

static void for_all_kinds(check *what)
{
	for (unsigned a = 0; a < RIG_KINDS; a++)
		for (unsigned b = 0; b < RIG_KINDS; b++)
			for (unsigned task_kind = 0; task_kind < MOVING; task_kind++) {
				struct set s;

				set_open(&s, &rig_kinds[a], &rig_kinds[b], task_kind);
				what(&s, task_kind);
				set_close(&s);
			}
}

static bool chains(const struct rig *r)
{
	return strncmp(r->kind->kind, "memif", 5) == 0;
}

// The longest takes several buffers of a memif; our driver has none for it.
static void pass_every_length(struct set *s, unsigned task_kind)
{
	static const uint8_t all[FRAMES_MAX] = {[0 ... FRAMES_MAX - 1] = LATER};
	static const uint32_t lengths[] = {HEAD, 60, 64, 65, 1514, 2048, 5000};

	for (unsigned side = 0; side < 2; side++)
		for (unsigned i = 0; i < RTE_DIM(lengths); i++) {
			unsigned n = lengths[i] > 2048 ? 3 : FRAMES_MAX;

			if (lengths[i] > 2048 && !(chains(&s->rigs[0]) && chains(&s->rigs[1])))
				continue;
			assert_int_equal(offer(s, side, all, n, lengths[i]), n);
			poll_all(s);
			assert_int_equal(collect(s, !side, lengths[i]), n);
		}
}

static void frames_of_any_length_pass(void **state)
{
	for_all_kinds(pass_every_length);
}

// Mixed bursts and others, more often than the function goes on to expect mixed ones.
static void mix(struct set *s, unsigned task_kind)
{
	uint8_t verdicts[FRAMES_MAX];

	for (unsigned round = 0; round < 60; round++) {
		unsigned odd = 0, back = 0;

		for (unsigned i = 0; i < FRAMES_MAX; i++) {
			unsigned kind = round % 20 ? FRAMES_MAX : (i * 7 + round) % 3;

			verdicts[i] = kind == 0 ? VNF_DROP | ODD : kind == 1 ? 0 : LATER;
			odd += kind == 0;
			back += kind == 1;
		}
		assert_int_equal(offer(s, 0, verdicts, FRAMES_MAX, 100), FRAMES_MAX);
		poll_all(s);
		assert_int_equal(collect(s, 1, 100), FRAMES_MAX - odd - back);
		assert_int_equal(collect(s, 0, 100), back);
	}
	assert_int_equal(task_drop_tx_full(s->task), 0);
}

static void frames_leave_by_their_verdicts(void **state)
{
	for_all_kinds(mix);
}

// The other end takes nothing, then all: what was not taken is counted, or waits where it is.
static void fill_up(struct set *s, unsigned task_kind)
{
	static const uint8_t all[FRAMES_MAX] = {[0 ... FRAMES_MAX - 1] = LATER};
	unsigned offered = 0, came;

	for (unsigned round = 0; round < 8; round++) {
		offered += offer(s, 0, all, FRAMES_MAX, 60);
		for (unsigned i = 0; i < 4; i++)
			s->task->ops->poll(s->task, 0);
	}
	assert_true(s->task->counters.tx_packets <= RING && task_drop_tx_full(s->task) > 0);
	came = collect(s, 1, 60);
	assert_int_equal(came, s->task->counters.tx_packets);
	poll_all(s);
	came += collect(s, 1, 60);
	assert_int_equal(offered, came + task_drop_tx_full(s->task));
}

static void what_a_full_port_does_not_take_is_counted(void **state)
{
	for_all_kinds(fill_up);
}

static void do_without_mbufs(struct set *s, unsigned task_kind)
{
	struct rte_mbuf *hoard[RIG_MBUFS];
	uint8_t verdicts[FRAMES_MAX];
	unsigned odd = 0;

	assert_int_equal(rte_pktmbuf_alloc_bulk(rig_pool, hoard, RIG_MBUFS), 0);
	for (unsigned i = 0; i < FRAMES_MAX; i++) {
		verdicts[i] = i % 3 ? LATER : VNF_DROP | ODD;
		odd += i % 3 == 0;
	}
	assert_int_equal(offer(s, 0, verdicts, FRAMES_MAX, 60), FRAMES_MAX);
	poll_all(s);
	assert_int_equal(collect(s, 1, 60), s->task->counters.tx_packets);
	rte_pktmbuf_free_bulk(hoard, RIG_MBUFS);
	assert_int_equal(offer(s, 0, verdicts, FRAMES_MAX, 60), FRAMES_MAX);
	poll_all(s);
	assert_true(collect(s, 1, 60) >= FRAMES_MAX - odd);
}

static void without_mbufs_frames_are_counted(void **state)
{
	for_all_kinds(do_without_mbufs);
}

// Whatever ring they came in, and whatever ring they leave by.
static void frames_leave_from_where_they_begin(void **state)
{
	static const uint8_t all[FRAMES_MAX] = {[0 ... FRAMES_MAX - 1] = LATER};
	uint8_t bytes[2048];

	for (unsigned k = 0; k < 2 * RIG_KINDS * RIG_KINDS; k++) {
		uint32_t length = k & 1 ? 1500 : 60, number = 0;
		struct view view;
		struct set s;

		set_open(&s, &rig_kinds[k / 2 / RIG_KINDS], &rig_kinds[k / 2 % RIG_KINDS], MOVING);
		assert_int_equal(offer(&s, 0, all, FRAMES_MAX, length), FRAMES_MAX);
		poll_all(&s);
		while (port_peek(&s.rigs[1].peer, 0, &view, BURST_FRAMES_MAX)) {
			for (unsigned i = 0; i < view.count; i++, number++) {
				uint32_t by = number & 1 ? (uint32_t)-VNF_FRONT_BYTES : VNF_FRONT_BYTES;

				assert_int_equal(view_copy(&view, i, bytes, sizeof(bytes)), length - by);
				for (uint32_t at = HEAD - by; at < length - by; at++)
					assert_int_equal(bytes[at], byte_at(number, at + by));
				if (number & 1)
					assert_int_equal(bytes[0] & bytes[VNF_FRONT_BYTES - 1], 0x55);
			}
			port_release(&s.rigs[1].peer, 0, &view);
		}
		assert_int_equal(number, FRAMES_MAX);
		assert_int_equal(s.task->counters.tx_packets, FRAMES_MAX);
		set_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(frames_of_any_length_pass),
	        cmocka_unit_test(frames_leave_by_their_verdicts),
	        cmocka_unit_test(what_a_full_port_does_not_take_is_counted),
	        cmocka_unit_test(without_mbufs_frames_are_counted),
	        cmocka_unit_test(frames_leave_from_where_they_begin),
	};
	int failed;

	rig_begin("vnf_place");
	failed = cmocka_run_group_tests_name("vnf_place", tests, NULL, NULL);
	rig_end();
	return failed;
}
