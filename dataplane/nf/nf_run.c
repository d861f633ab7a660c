// SPDX-License-Identifier: BSD-3-Clause
// nf_run TASK.json [SIZE_MB] < IN > OUT: one network function, frames in, frames and verdicts out, for a
// model that is not ours to compare with (tests/nf). Time is what the records say.
//
// In (test/nf_task.h): 'F' a frame, from a port, at a time. Frames that follow each other with the same port
// and time are one burst, up to the task's. 'T' a tick at a time. 'J' a JSON object {"method", "params"}: a
// call. 'A' a task object that replaces the task, which adopts what the old one knows. 'E' ends a burst. Out,
// in that order: 'F' with the frame as it is now and its verdict; 'J' with the answer of a call, or
// {"error": TEXT}; 'A' with {} or {"error": TEXT}. At the end 'R': the task's report.
// Exit code 2: the task was refused; the sentence is on stderr. 1: the input is broken, or mbufs are missing.
//
// Every frame has memory of its own, of just its length: AddressSanitizer sees what is read beside it.
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "test/nf_task.h"

enum { FRAME_MAX = 16384, SIZE_MB_DEFAULT = 256 };

struct run {
	struct fixture *fixture;
	struct vnf *vnf;
	unsigned count; // of the burst that is being gathered
	unsigned in;
	uint64_t now_tsc;
	struct vnf_frame frames[CONFIG_BURST_MAX];
	uint8_t *memory[CONFIG_BURST_MAX]; // theirs
};

static void put(uint8_t kind, uint8_t verdict, const void *data, uint32_t length)
{
	const struct nf_record record = {.kind = kind, .port = verdict, .length = length};

	fwrite(&record, sizeof(record), 1, stdout);
	fwrite(data, 1, length, stdout);
}

static void put_json(uint8_t kind, json_t *object)
{
	char *text = json_dumps(object, JSON_COMPACT);

	put(kind, 0, text, (uint32_t)strlen(text));
	free(text);
	json_decref(object);
}

static void flush(struct run *run)
{
	uint8_t verdicts[CONFIG_BURST_MAX];

	if (run->count == 0)
		return;
	vnf_process(run->vnf, run->in, run->frames, run->count, run->now_tsc, verdicts);
	for (unsigned i = 0; i < run->count; i++) {
		counter_add(&run->vnf->task.counters.rx_packets, 1);
		if (verdicts[i] & VNF_DROP)
			run->vnf->drops[verdicts[i] & ~VNF_DROP]++;
		else
			counter_add(&run->vnf->task.counters.tx_packets, 1);
		put('F', verdicts[i], run->frames[i].data, run->frames[i].length);
		free(run->memory[i]);
	}
	run->count = 0;
}

static void frame(struct run *run, const struct nf_record *record, const uint8_t *data)
{
	uint8_t *own, front = run->vnf->moves_starts ? VNF_FRONT_BYTES : 0;

	if (record->port != run->in || record->now_tsc != run->now_tsc || run->count == run->vnf->burst)
		flush(run);
	run->in = record->port;
	run->now_tsc = record->now_tsc;
	own = run->memory[run->count] = malloc(front + record->length);
	memcpy(own + front, data, record->length);
	run->frames[run->count++] = (struct vnf_frame){own + front, record->length, record->length};
}

static void call(struct run *run, const struct nf_record *record, const uint8_t *data)
{
	char error[CONFIG_ERROR_MAX] = "";
	json_t *request = json_loadb((const char *)data, record->length, 0, NULL);
	const char *method = json_string_value(json_object_get(request, "method"));
	json_t *answer = task_call(&run->vnf->task, method ? method : "", json_object_get(request, "params"),
	                           record->now_tsc, error);

	put_json('J', answer ? answer : json_pack("{s:s}", "error", error));
	json_decref(request);
}

static void replace(struct run *run, const struct nf_record *record, const uint8_t *data)
{
	char error[CONFIG_ERROR_MAX] = "";
	json_t *object = json_loadb((const char *)data, record->length, 0, NULL);
	struct vnf *vnf = nf_task(run->fixture, object, error);

	if (vnf) {
		if (vnf->task.ops->adopt && vnf->ops == run->vnf->ops)
			vnf->task.ops->adopt(&vnf->task, &run->vnf->task);
		task_destroy(&run->vnf->task);
		run->vnf = vnf;
	}
	put_json('A', vnf ? json_object() : json_pack("{s:s}", "error", error));
	json_decref(object);
}

static int record_handle(struct run *run, const struct nf_record *record, const uint8_t *data)
{
	if (record->kind == 'F') {
		if (record->length > FRAME_MAX || record->port >= run->vnf->side_count)
			return -1;
		frame(run, record, data);
		return 0;
	}
	flush(run);
	if (record->kind == 'J')
		call(run, record, data);
	else if (record->kind == 'A')
		replace(run, record, data);
	else if (record->kind == 'T' && run->vnf->ops->tick)
		run->vnf->ops->tick(run->vnf, record->now_tsc);
	return 0;
}

static int run_all(struct run *run)
{
	uint8_t *data = malloc(NF_RECORD_MAX);
	const struct task_counters *counters;
	struct nf_record record;
	json_t *report;
	int status;

	while ((status = nf_record_read(stdin, &record, data)) == 1)
		if (record_handle(run, &record, data) != 0) {
			status = -1;
			break;
		}
	flush(run);
	counters = &run->vnf->task.counters;
	report = fixture_report(&run->vnf->task);
	json_object_set_new(report, "rx_packets", json_integer((json_int_t)counters->rx_packets));
	json_object_set_new(report, "tx_packets", json_integer((json_int_t)counters->tx_packets));
	json_object_set_new(report, "tsc_hz", json_integer((json_int_t)clock_hz()));
	put_json('R', report);
	free(data);
	return status;
}

static int run_task(struct run *run, const json_t *object, const char *program)
{
	char error[CONFIG_ERROR_MAX] = "";
	int status;

	run->vnf = nf_task(run->fixture, object, error);
	if (!run->vnf) {
		fprintf(stderr, "%s\n", error);
		return 2;
	}
	status = run_all(run);
	if (status != 0)
		fprintf(stderr, "%s: a record on standard input is broken\n", program);
	task_destroy(&run->vnf->task);
	fflush(stdout);
	return status == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct run run = {0};
	json_t *object = argc > 1 ? json_load_file(argv[1], 0, NULL) : NULL;
	void *state;
	int code;

	if (!object) {
		fprintf(stderr, "usage: %s TASK.json [SIZE_MB] < IN > OUT\n", argv[0]);
		return 2;
	}
	state = run.fixture = nf_fixture("nf_run", argc > 2 ? (unsigned)atoi(argv[2]) : SIZE_MB_DEFAULT);
	code = run.fixture ? run_task(&run, object, argv[0]) : 99;
	json_decref(object);
	if (run.fixture && fixture_teardown(&state) != 0 && code == 0)
		code = 1;
	return code;
}
