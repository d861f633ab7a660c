// SPDX-License-Identifier: BSD-3-Clause
// A malicious frame for the monitor and for who looks for probes. test/fuzz.h says how it is run. The first
// byte says whether what follows is the frame, or how one of ours is made and then damaged. It lies alone in
// memory of its length. Checked: nothing beyond it is read (with a sanitizer); the quick check and the
// general one agree; what is intact has its magic where its headers say; what compares equal with a frame of
// its stream is intact. Not covered: frames of several pieces, what is counted (monitor_test).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tester/frame.h"
#include "tester/frame_run.h"
#include "test/fuzz.h"

enum { MADE = 1, CUT = 2 };

static unsigned long frames, classes[FRAME_FOREIGN + 1], probes, learned, equal, summed;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static void must(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "frame_fuzz: not so: %s\n", what);
	abort();
}

struct sample {
	uint8_t *data;
	uint32_t length;
};

// A frame as the generator sends it, and what it looks like.
static struct sample frame_make(struct input *in, uint8_t how, struct frame_signature *look)
{
	const struct frame_flow flow = {
	        .src_ip = 0xc6120001,
	        .dst_ip = 0xc6130001,
	        .stream = how >> 4 & 3,
	        .epoch = 7,
	        .frame_size_bytes = (uint16_t)(FRAME_SIZE_MIN + (how & 4 ? input_word(in) & 0x1fff : 0)),
	};
	struct frame_template template;
	struct sample s;

	must(frame_template_init(&template, &flow) == 0, "a size is one that there is");
	s.length = template.length;
	s.data = malloc(s.length < FRAME_STORE_BYTES ? FRAME_STORE_BYTES : s.length);
	frame_fill_payload(s.data, s.length);
	if (how & 8)
		frame_write_probe(&template, s.data, input_word(in), input_word(in));
	else
		frame_write(&template, s.data, input_word(in));
	must(frame_signature_learn(look, s.data, s.length), "a frame of ours is learned");
	return s;
}

static void damage(struct sample *s, struct input *in, uint8_t how)
{
	unsigned changes = input_byte(in) & 7;

	for (unsigned i = 0; i < changes; i++) {
		uint16_t at = input_word(in);

		s->data[(at & 0x8000 ? at & 0x3f : at) % s->length] ^= input_byte(in);
	}
	if (how & CUT)
		s->length = input_word(in) % (s->length + 1);
}

// In memory of just its length.
static struct sample sample_read(struct input *in, struct frame_signature *look)
{
	uint8_t how = input_byte(in);
	struct sample s, room = {(uint8_t *)in->data, (uint32_t)in->left};

	look->length = 0;
	if (how & MADE) {
		room = frame_make(in, how, look);
		damage(&room, in, how);
	}
	s = (struct sample){malloc(room.length), room.length};
	if (s.length)
		memcpy(s.data, room.data, s.length);
	if (how & MADE)
		free(room.data);
	return s;
}

struct alone {
	struct vnf_frame run[1 + FRAME_AHEAD];
};

// A run of one frame, and what may be prefetched behind it.
static struct alone run_of(const struct sample *s)
{
	return (struct alone){{{s->data, s->length, s->length}, {s->data, 0, 0}, {s->data, 0, 0}}};
}

// No frame is foreign at first sight that is not foreign.
static void check_first_sight(const struct sample *s, enum frame_class class)
{
	const struct alone alone = run_of(s);

	if (frame_run_foreign(alone.run, 1, 0))
		must(class == FRAME_FOREIGN, "what is foreign at first sight is foreign");
}

static enum frame_class check_class(const struct sample *s)
{
	struct frame_fields quick = {0}, general = {0}, probe = {0};
	enum frame_class class = frame_classify(s->data, s->length, &quick);
	bool is_probe = frame_is_probe(s->data, s->length, &probe);
	struct frame_layout at;

	must(class == frame_classify_any(s->data, s->length, &general), "both ways say the same");
	check_first_sight(s, class);
	probes += is_probe;
	if (class != FRAME_INTACT)
		return class;
	must(quick.sequence == general.sequence && quick.stream == general.stream &&
	             quick.epoch == general.epoch && quick.flags == general.flags &&
	             quick.stamp == general.stamp,
	     "both ways read the same");
	must(is_probe == (quick.flags & FRAME_FLAG_PROBE), "an intact probe is found to be one");
	must(frame_locate(s->data, s->length, &at) && (uint32_t)at.own + FRAME_OWN_BYTES <= s->length,
	     "headers of an intact frame are there");
	return class;
}

static void check_look(const struct frame_signature *look, const struct sample *s, enum frame_class class)
{
	const struct alone alone = run_of(s);
	struct frame_signature own;

	if (frame_signature_learn(&own, s->data, s->length)) {
		learned++;
		must(own.length == s->length, "a look is as long as its frame");
	}
	if (look->length == 0 || s->length < FRAME_HEADER_BYTES)
		return;
	for (unsigned sequence = 0; sequence < 4; sequence++)
		if (frame_run_current()->check(look, alone.run, 1, sequence)) {
			equal++;
			must(class == FRAME_INTACT, "what compares equal is intact");
		}
}

// A run by the sums knows the frames that the check of one by itself knows.
static void check_sums(const struct sample *s, enum frame_class class)
{
	const struct alone alone = run_of(s);
	struct frame_fields fields = {0};
	struct frame_own own;
	uint64_t stamp;
	bool runs;

	if (!frame_find(s->data, s->length, &fields))
		return;
	own = frame_own_make(fields.stream, fields.flags, fields.epoch, 0, 0);
	runs = frame_run_sums(&own, alone.run, 1, fields.sequence, &stamp);
	summed += runs;
	must(runs == (class == FRAME_INTACT), "what runs by its sums is intact, and the other way round");
	must(!runs || stamp == fields.stamp, "a run reads the same");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct frame_signature look;
	struct sample s = sample_read(&in, &look);
	enum frame_class class = check_class(&s);

	frames++;
	classes[class]++;
	check_look(&look, &s, class);
	check_sums(&s, class);
	free(s.data);
	return 0;
}

void fuzz_report(void)
{
	printf("%lu frames: %lu intact, %lu corrupt, %lu foreign; %lu probes, %lu learned, %lu equal, %lu by sums\n",
	       frames, classes[FRAME_INTACT], classes[FRAME_CORRUPT], classes[FRAME_FOREIGN], probes, learned,
	       equal, summed);
}
