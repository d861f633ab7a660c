// SPDX-License-Identifier: BSD-3-Clause
// nf_bench TASK.json FRAMES [SECONDS [SIZE_MB]]: how fast a network function is, alone: no ports. FRAMES are
// the 'F' records of nf_run; they are handled again and again in bursts, from the port and in the order that
// they have there. Before each burst its frames are copied afresh (a forwarded frame has a lower TTL), which
// is counted in "pps" and not in "process_cycles". All frames are handled once before anything is measured:
// what makes sessions has made them. Prints one JSON object: medians of 16 slices.
#include <rte_cycles.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "test/nf_task.h"

enum {
	FRONT = 64,
	FRAME_ROOM = FRONT + 2048,
	BURST = 32,
	SLICES = 16,
	SIZE_MB_DEFAULT = 256,
	FRAMES_MAX = 1 << 21
};

struct frames {
	unsigned count;
	struct nf_record *records;
	uint8_t **data;
};

struct slice {
	uint64_t frames, process_cycles, cycles, dropped;
};

static int frames_load(struct frames *frames, const char *path)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = malloc(NF_RECORD_MAX);

	frames->records = calloc(FRAMES_MAX, sizeof(*frames->records));
	frames->data = calloc(FRAMES_MAX, sizeof(*frames->data));
	while (file && frames->count < FRAMES_MAX &&
	       nf_record_read(file, &frames->records[frames->count], data) == 1) {
		const struct nf_record *record = &frames->records[frames->count];

		if (record->kind != 'F' || record->length > FRAME_ROOM - FRONT)
			continue;
		frames->data[frames->count] = malloc(record->length + 1);
		memcpy(frames->data[frames->count++], data, record->length);
	}
	if (file)
		fclose(file);
	free(data);
	return frames->count >= BURST ? 0 : -1;
}

static void frames_free(struct frames *frames)
{
	for (unsigned i = 0; i < frames->count; i++)
		free(frames->data[i]);
	free(frames->data);
	free(frames->records);
}

static void burst_run(struct vnf *vnf, const struct frames *from, unsigned at, uint8_t *room,
                      struct slice *slice)
{
	struct vnf_frame frames[BURST];
	uint8_t verdicts[BURST];
	uint64_t begin;

	for (unsigned i = 0; i < BURST; i++) {
		uint32_t length = from->records[at + i].length;

		frames[i] = (struct vnf_frame){room + (size_t)i * FRAME_ROOM + FRONT, length, length};
		memcpy(frames[i].data, from->data[at + i], length);
	}
	begin = rte_rdtsc();
	vnf_process(vnf, from->records[at].port, frames, BURST, begin, verdicts);
	slice->process_cycles += rte_rdtsc() - begin;
	slice->frames += BURST;
	for (unsigned i = 0; i < BURST; i++)
		slice->dropped += verdicts[i] >> 7;
}

static struct slice slice_run(struct vnf *vnf, const struct frames *frames, uint8_t *room, double seconds,
                              unsigned *at)
{
	struct slice slice = {0};
	uint64_t begin = rte_rdtsc(), length = (uint64_t)(seconds * (double)clock_hz());

	while (slice.cycles < length) {
		if (*at + BURST > frames->count)
			*at = 0;
		burst_run(vnf, frames, *at, room, &slice);
		*at += BURST;
		slice.cycles = rte_rdtsc() - begin;
	}
	return slice;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, SLICES, sizeof(*values), by_value);
	return (values[SLICES / 2 - 1] + values[SLICES / 2]) / 2;
}

static void bench(struct vnf *vnf, const struct frames *frames, double seconds)
{
	uint8_t *room = aligned_alloc(64, (size_t)BURST * FRAME_ROOM);
	double process[SLICES], pps[SLICES];
	uint64_t total = 0, dropped = 0, warm = 0;
	unsigned at = 0;

	do // warm: each frame once, and for as long as a slice
		warm += slice_run(vnf, frames, room, seconds / SLICES, &at).frames;
	while (warm < frames->count);
	at = 0;
	for (unsigned i = 0; i < SLICES; i++) {
		struct slice slice = slice_run(vnf, frames, room, seconds / SLICES, &at);

		process[i] = (double)slice.process_cycles / (double)slice.frames;
		pps[i] = (double)slice.frames * (double)clock_hz() / (double)slice.cycles;
		total += slice.frames;
		dropped += slice.dropped;
	}
	printf("{\"process_cycles\": %.2f, \"pps\": %.0f, \"frames\": %lu, \"dropped\": %lu, \"tsc_hz\": "
	       "%lu}\n",
	       median(process), median(pps), total, dropped, clock_hz());
	free(room);
}

static int bench_task(struct fixture *fixture, const json_t *object, const struct frames *frames,
                      double seconds)
{
	char error[CONFIG_ERROR_MAX] = "";
	struct vnf *vnf = nf_task(fixture, object, error);

	if (!vnf) {
		fprintf(stderr, "%s\n", error);
		return 2;
	}
	bench(vnf, frames, seconds);
	task_destroy(&vnf->task);
	return 0;
}

int main(int argc, char **argv)
{
	struct frames frames = {0};
	json_t *object = argc > 2 ? json_load_file(argv[1], 0, NULL) : NULL;
	void *state;
	int code = 2;

	if (!object || frames_load(&frames, argv[2]) != 0) {
		fprintf(stderr, "usage: %s TASK.json FRAMES [SECONDS [SIZE_MB]]; %d frames at least\n",
		        argv[0], BURST);
		return 2;
	}
	state = nf_fixture("nf_bench", argc > 4 ? (unsigned)atoi(argv[4]) : SIZE_MB_DEFAULT);
	if (state) {
		clock_start();
		code = bench_task(state, object, &frames, argc > 3 ? atof(argv[3]) : 1.6);
		fixture_teardown(&state);
	}
	frames_free(&frames);
	json_decref(object);
	return code;
}
