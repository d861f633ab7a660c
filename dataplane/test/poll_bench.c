// SPDX-License-Identifier: BSD-3-Clause
// poll_bench: what one poll costs, of an honest port and of hostile ones. bench/fair_polls.py runs it under callgrind,
// which counts the instructions of poll_measured(): no clock, so it says the same on a busy machine.
//
//     poll_bench            one line "GROUP SHAPE" for each; the first of a group is the honest one
//     poll_bench GROUP SHAPE POLLS
//
// Prints one line at the end: polls, and the frames that these found.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "tasks/tester/frame.h"
#include "test/wire.h"

struct rig {
	struct wire *wire;
	struct task *task;
	struct trial_offered offered[TRIAL_STREAMS];
	struct frame_template template;
	uint8_t frame[WIRE_FRAME_MAX];
	unsigned length;
	uint32_t sequence;
};

struct shape {
	const char *group, *name;
	void (*open)(struct rig *rig);
	void (*offer)(struct rig *rig); // before each poll; not measured
};

enum { BURST = 32, NONCE = 0x5eed5eed };

// What callgrind counts.
static __attribute__((noinline)) unsigned poll_measured(struct task *task)
{
	return task->ops->poll(task, 1);
}

// --- The monitor: frames that are ours, and that are not -------------------------------------------------

static void template_set(struct rig *rig, uint16_t frame_size, uint16_t epoch, uint64_t nonce)
{
	const struct frame_flow flow = {
	        .stream = 1, .epoch = epoch, .frame_size_bytes = frame_size, .nonce = nonce};

	frame_fill_payload(rig->frame, sizeof(rig->frame));
	frame_template_init(&rig->template, &flow);
	rig->length = frame_size - FRAME_FCS_BYTES;
}

static void monitor_open(struct rig *rig)
{
	struct config_task config = {.name = "mon", .kind = "monitor", .port_count = 1, .burst = BURST};
	const struct trial trial = {.epoch = 1, .nonce = NONCE, .offered = rig->offered};

	rig->task = wire_task(rig->wire, &config);
	rig->offered[1].packets = UINT32_MAX;
	rig->task->ops->begin(rig->task, &trial);
	template_set(rig, FRAME_SIZE_MIN, 1, NONCE);
}

static void inject(struct rig *rig, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!wire_inject(rig->wire, rig->frame, rig->length, 0))
			abort();
}

static void offer_own(struct rig *rig)
{
	for (unsigned i = 0; i < BURST; i++) {
		frame_write(&rig->template, rig->frame, rig->sequence++);
		inject(rig, 1);
	}
}

static void offer_probes(struct rig *rig)
{
	for (unsigned i = 0; i < BURST; i++) {
		frame_write_probe(&rig->template, rig->frame, rig->sequence++, rte_rdtsc());
		inject(rig, 1);
	}
}

// Backwards: each is one of ours, and none is the one that is expected.
static void offer_backwards(struct rig *rig)
{
	rig->sequence += BURST;
	for (unsigned i = 1; i <= BURST; i++) {
		frame_write(&rig->template, rig->frame, rig->sequence - i);
		inject(rig, 1);
	}
}

static void offer_same(struct rig *rig)
{
	inject(rig, BURST);
}

// Each far beyond the last.
static void offer_jumps(struct rig *rig)
{
	for (unsigned i = 0; i < BURST; i++) {
		frame_write(&rig->template, rig->frame, rig->sequence += 1u << 22);
		inject(rig, 1);
	}
}

static void monitor_zeros(struct rig *rig)
{
	monitor_open(rig);
	memset(rig->frame, 0, sizeof(rig->frame));
}

static void monitor_zeros_long(struct rig *rig)
{
	monitor_zeros(rig);
	rig->length = 1514;
}

static void monitor_forged(struct rig *rig)
{
	monitor_open(rig);
	template_set(rig, FRAME_SIZE_MIN, 1, 0);
	frame_write(&rig->template, rig->frame, 5);
}

static void monitor_forged_long(struct rig *rig)
{
	monitor_open(rig);
	template_set(rig, 1518, 1, 0);
	frame_write(&rig->template, rig->frame, 5);
}

static void monitor_beyond(struct rig *rig)
{
	monitor_open(rig);
	rig->offered[1].packets = 1000;
}

static void monitor_long(struct rig *rig)
{
	monitor_open(rig);
	template_set(rig, 1518, 1, NONCE);
}

static void monitor_replayed(struct rig *rig)
{
	monitor_open(rig);
	frame_write(&rig->template, rig->frame, 0);
}

static void monitor_stale(struct rig *rig)
{
	monitor_open(rig);
	template_set(rig, FRAME_SIZE_MIN, 0, NONCE);
	frame_write(&rig->template, rig->frame, 0);
}

static void monitor_truncated(struct rig *rig)
{
	monitor_replayed(rig);
	rig->length = 50;
}

static void monitor_corrupt(struct rig *rig)
{
	monitor_replayed(rig);
	rig->frame[FRAME_OFFSET_SEQUENCE] ^= 1;
}

static const struct shape shapes[] = {
        {"monitor", "own", monitor_open, offer_own},
        {"monitor", "own-probes", monitor_open, offer_probes},
        {"monitor", "own-backwards", monitor_open, offer_backwards},
        {"monitor", "own-1518", monitor_long, offer_own},
        {"monitor", "zeros", monitor_zeros, offer_same},
        {"monitor", "zeros-1518", monitor_zeros_long, offer_same},
        {"monitor", "no-nonce", monitor_forged, offer_same},
        {"monitor", "no-nonce-1518", monitor_forged_long, offer_same},
        {"monitor", "not-offered", monitor_beyond, offer_jumps},
        {"monitor", "replayed", monitor_replayed, offer_same},
        {"monitor", "stale", monitor_stale, offer_same},
        {"monitor", "truncated", monitor_truncated, offer_same},
        {"monitor", "corrupt", monitor_corrupt, offer_same},
};

// --- Runs ------------------------------------------------------------------------------------------------

static const struct shape *find(const char *group, const char *name)
{
	for (unsigned i = 0; i < RTE_DIM(shapes); i++)
		if (strcmp(shapes[i].group, group) == 0 && strcmp(shapes[i].name, name) == 0)
			return &shapes[i];
	return NULL;
}

static int list(void)
{
	for (unsigned i = 0; i < RTE_DIM(shapes); i++)
		printf("%s %s\n", shapes[i].group, shapes[i].name);
	return 0;
}

int main(int argc, char **argv)
{
	const struct shape *shape = argc == 4 ? find(argv[1], argv[2]) : NULL;
	unsigned polls = argc == 4 ? (unsigned)strtoul(argv[3], NULL, 10) : 0, frames = 0;
	struct rig *rig = aligned_alloc(64, RTE_ALIGN_CEIL(sizeof(*rig), 64));
	void *wire;

	if (argc == 1)
		return list();
	if (shape == NULL || rig == NULL) {
		fprintf(stderr, "usage: %s [GROUP SHAPE POLLS]\n", argv[0]);
		return 2;
	}
	if (fixture_eal_init("poll_bench") != 0 || wire_setup_in_place(&wire) != 0)
		return 1;
	memset(rig, 0, sizeof(*rig));
	rig->wire = wire;
	shape->open(rig);
	for (unsigned i = 0; i < polls; i++) {
		shape->offer(rig);
		frames += poll_measured(rig->task);
	}
	printf("%u polls, %u frames\n", polls, frames);
	task_destroy(rig->task);
	free(rig);
	return wire_teardown(&wire) ? 1 : 0;
}
