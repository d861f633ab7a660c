// SPDX-License-Identifier: BSD-3-Clause
// Malicious capture files: any bytes as what a replay loads. test/fuzz.h says how it is run. The first byte
// says how long a frame may be; the others are the file, in memory. Checked: it is refused with a sentence,
// or what is loaded keeps its bounds, its times do not fall, and each of its frames, once our bytes are in
// it, is one that the monitor takes for intact. Not covered: libpcap itself, more than that no input ends it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tester/capture.h"
#include "tester/frame.h"
#include "test/fuzz.h"
#include "base/schema.h"

static unsigned long files, accepted, frames;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static void must(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "capture_fuzz: not so: %s\n", what);
	abort();
}

// As the generator does it: the head, our bytes, the pattern, the checksum.
static void check_frame(const struct capture_frame *f, uint32_t room)
{
	uint8_t own[FRAME_OWN_BYTES] = {FRAME_MAGIC >> 8, FRAME_MAGIC & 0xff}, *data = malloc(f->length);
	struct frame_fields fields;
	uint16_t checksum;

	must(f->length <= room && f->length >= f->own + FRAME_OWN_BYTES, "a frame has room for our bytes");
	must(f->own <= CAPTURE_HEAD_MAX && f->checksum + 2u <= f->own, "the head has its checksum in it");
	frame_fill_payload(data, f->length);
	memcpy(data, f->head, f->own);
	memcpy(data + f->own, own, sizeof(own));
	checksum = (uint16_t)~checksum_fold(f->l4_sum + checksum_add(own, sizeof(own)));
	checksum = checksum || !f->udp ? checksum : 0xffff;
	memcpy(data + f->checksum, &checksum, sizeof(checksum));
	must(frame_classify(data, f->length, &fields) == FRAME_INTACT, "a frame is intact");
	free(data);
	frames++;
}

static void check(const struct capture *c, uint32_t room)
{
	must(c->count > 0 && c->count <= c->in_file && c->longest <= room,
	     "there are frames, all within room");
	for (uint32_t i = 0; i < c->count; i++) {
		must(i == 0 ? c->times_ns[i] == 0 : c->times_ns[i] >= c->times_ns[i - 1],
		     "times begin at 0 and do not fall");
		check_frame(&c->frames[i], room);
	}
	(void)capture_period_ns(c);
	json_decref(capture_report(c, 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[CONFIG_ERROR_MAX] = "", path[64];
	struct input in = {data, size};
	uint32_t room = input_byte(&in) & 1 ? FRAME_SIZE_MAX - FRAME_FCS_BYTES : 128;
	int fd = memfd_create("capture", MFD_CLOEXEC);
	struct capture *capture;
	struct stat stat;

	if (fd < 0 || write(fd, in.data, in.left) != (ssize_t)in.left)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	files++;
	capture = capture_load(path, room, &stat, "f", error);
	close(fd);
	if (capture) {
		accepted++;
		check(capture, room);
	} else {
		must(strnlen(error, sizeof(error)) < sizeof(error) && error[0],
		     "a file is refused with a sentence");
	}
	capture_free(capture);
	return 0;
}

void fuzz_report(void)
{
	printf("%lu files, %lu of them loaded, with %lu frames\n", files, accepted, frames);
}
