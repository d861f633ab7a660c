// SPDX-License-Identifier: BSD-3-Clause
// Writing and checking by the burst, in every instruction set that this CPU has: against frame_write(), and
// against a plain model that compares byte by byte, in memory that ends where the frame ends.
#include <stdio.h>
#include <sys/mman.h>

#include "tester/frame_run.h"
#include "test/unit.h"

enum { BURST_MAX = 64, PAGE = 4096, ROOM = 4 * PAGE, FIRST = 100 };

static const unsigned bursts[] = {0, 1, 3, 4, 5, 31, 32, 33, 64};
static const uint16_t sizes[] = {64, 65, 66, 67, 68, 69, 80, 96, 99, 100, 128, 129, 256, 1024, 1518, 9018};

static struct frame_template template_make(uint16_t frame_size)
{
	const struct frame_flow flow = {.src_mac = {2, 0, 0, 0, 0, 3},
	                                .dst_mac = {2, 0, 0, 0, 1, 3},
	                                .src_ip = 0xc6120301,
	                                .dst_ip = 0xc6130301,
	                                .stream = 3,
	                                .epoch = 0xabcd,
	                                .frame_size_bytes = frame_size};
	struct frame_template t;

	assert_int_equal(frame_template_init(&t, &flow), 0);
	return t;
}

// A frame of a burst of its own, learned from.
static struct frame_signature look_make(const struct frame_template *t)
{
	uint8_t data[FRAME_SIZE_MAX];
	struct frame_signature look;

	frame_fill_payload(data, sizeof(data));
	frame_write(t, data, 7);
	assert_true(frame_signature_learn(&look, data, t->length));
	return look;
}

// Each test for each set.
static void each_isa(void (*test)(const struct frame_run *run))
{
	for (enum isa isa = 0; isa < ISA_COUNT; isa++)
		if (isa_supported(isa))
			test(frame_run_of(isa));
		else
			print_message("  %s: this CPU has not got it\n", isa_text(isa));
}

static void writes_as_frame_write(const struct frame_run *run)
{
	struct frame_template t = template_make(64);
	uint8_t frames[BURST_MAX + 1][80], expected[80], *data[BURST_MAX];

	for (size_t i = 0; i < RTE_DIM(bursts); i++)
		for (uint32_t round = 0; round < 2000; round++) {
			uint32_t first = round * 40503u * 97; // all halves of a number
			unsigned shift = round % 16;

			memset(frames, 0xee, sizeof(frames));
			for (unsigned k = 0; k < bursts[i]; k++)
				data[k] = frames[k] + shift;
			run->write(&t, data, bursts[i], first);
			for (unsigned k = 0; k <= bursts[i]; k++) {
				memset(expected, 0xee, sizeof(expected));
				if (k < bursts[i])
					frame_write(&t, expected + shift, first + k);
				assert_memory_equal(frames[k], expected, sizeof(expected));
			}
		}
}

static void heads_are_written_alike(void **state)
{
	each_isa(writes_as_frame_write);
}

// n frames numbered from FIRST.
struct burst {
	uint8_t (*memory)[FRAME_SIZE_MAX + 64];
	struct vnf_frame frames[BURST_MAX + FRAME_AHEAD];
};

static void burst_make(struct burst *b, const struct frame_template *t, unsigned n)
{
	b->memory = calloc(BURST_MAX, sizeof(*b->memory));
	memset(b->frames, 0, sizeof(b->frames));
	for (unsigned i = 0; i < n; i++) {
		uint8_t *data = b->memory[i] + (i * 12 + n) % 64;

		frame_fill_payload(data, t->length);
		frame_write(t, data, FIRST + i);
		b->frames[i] = (struct vnf_frame){data, t->length, t->length};
	}
}

// A whole burst runs; and it ends before a frame that is anything else.
static void runs_to_the_first_other(const struct frame_run *run)
{
	for (size_t i = 0; i < RTE_DIM(bursts); i++)
		for (size_t k = 0; k < RTE_DIM(sizes); k++) {
			struct frame_template t = template_make(sizes[k]);
			struct frame_signature look = look_make(&t), unknown = {.length = 0};
			struct burst b;

			burst_make(&b, &t, bursts[i]);
			assert_int_equal(run->check(&look, b.frames, bursts[i], FIRST), bursts[i]);
			assert_int_equal(run->check(&look, b.frames, bursts[i], FIRST + 1), 0);
			assert_int_equal(run->check(&unknown, b.frames, bursts[i], FIRST), 0);
			for (unsigned at = 0; at < bursts[i]; at++) {
				frame_write(&t, (uint8_t *)(uintptr_t)b.frames[at].data, FIRST + at + 1);
				assert_int_equal(run->check(&look, b.frames, bursts[i], FIRST), at);
				frame_write_probe(&t, (uint8_t *)(uintptr_t)b.frames[at].data, FIRST + at, 1);
				assert_int_equal(run->check(&look, b.frames, bursts[i], FIRST), at);
				frame_write(&t, (uint8_t *)(uintptr_t)b.frames[at].data, FIRST + at);
			}
			free(b.memory);
		}
}

static void a_run_ends_at_what_is_different(void **state)
{
	each_isa(runs_to_the_first_other);
}

// A frame that ends with the page: behind it nothing may be read.
static uint8_t *at_the_edge(uint32_t length)
{
	static uint8_t *room;

	if (!room) {
		room = mmap(NULL, ROOM + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(room, MAP_FAILED);
		assert_int_equal(mprotect(room + ROOM, PAGE, PROT_NONE), 0);
	}
	return room + ROOM - length;
}

// Writing touches 64 bytes also of a shorter frame.
static void write_within(const struct frame_template *t, uint8_t *data, uint32_t sequence)
{
	uint8_t head[FRAME_STORE_BYTES];

	frame_write(t, head, sequence);
	memcpy(data, head, RTE_MIN(t->length, sizeof(head)));
}

static unsigned check_one(const struct frame_run *run, const struct frame_signature *look, uint8_t *data,
                          uint32_t length, uint32_t sequence)
{
	const struct vnf_frame frames[1 + FRAME_AHEAD] = {{data, length, length}};

	return run->check(look, frames, 1, sequence);
}

static unsigned sum_one(const struct frame_own *own, uint8_t *data, uint32_t length, uint32_t sequence)
{
	const struct vnf_frame frames[2 + FRAME_AHEAD] = {{data, length, length}}; // and one of no bytes
	uint64_t stamps[2];

	return frame_run_sums(own, frames, 2, sequence, stamps);
}

// By both runs, and where frame_classify() refuses the frame.
static void finds_each_bit(const struct frame_run *run)
{
	static const uint16_t flipped[] = {64, 65, 67, 100, 128, 129, 1024, 1518};
	const struct frame_own own = frame_own_make(3, 0, 0xabcd, 0, 0),
	                       other = frame_own_make(4, 0, 0xabcd, 0, 0);

	for (size_t k = 0; k < RTE_DIM(flipped); k++) {
		struct frame_template t = template_make(flipped[k]);
		struct frame_signature look = look_make(&t);
		uint8_t *data = at_the_edge(t.length);
		struct frame_fields fields;

		frame_fill_payload(data, t.length);
		write_within(&t, data, FIRST);
		for (uint32_t bit = 0; bit < t.length * 8u; bit++) {
			bool counts = bit / 8 >= 12; // Ethernet addresses are anybody's to rewrite

			data[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_int_equal(check_one(run, &look, data, t.length, FIRST), !counts);
			assert_int_equal(sum_one(&own, data, t.length, FIRST), !counts);
			assert_int_equal(frame_classify(data, t.length, &fields),
			                 counts ? FRAME_CORRUPT : FRAME_INTACT);
			data[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		assert_int_equal(check_one(run, &look, data, t.length, FIRST), 1);
		assert_int_equal(sum_one(&own, data, t.length, FIRST), 1);
		assert_int_equal(sum_one(&own, data, t.length, FIRST + 1), 0);
		assert_int_equal(sum_one(&other, data, t.length, FIRST), 0);
	}
}

static void each_flipped_bit_is_found(void **state)
{
	each_isa(finds_each_bit);
}

static uint64_t random_next(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

// All lengths, at the edge of memory and with every alignment; one byte, or none, is another one.
static void agrees_at_all_lengths(const struct frame_run *run)
{
	uint64_t x = 88172645463325252;

	for (uint32_t size = FRAME_SIZE_MIN; size <= FRAME_SIZE_MAX; size++) {
		struct frame_template t = template_make((uint16_t)size);
		struct frame_signature look = look_make(&t);
		uint8_t *data = at_the_edge(t.length);

		frame_fill_payload(data, t.length);
		for (unsigned i = 0; i < 8; i++) {
			uint32_t sequence = (uint32_t)random_next(&x),
			         at = (uint32_t)random_next(&x) % t.length;
			uint8_t flip = i % 4 ? (uint8_t)random_next(&x) : 0;

			write_within(&t, data, sequence);
			data[at] ^= flip;
			assert_int_equal(check_one(run, &look, data, t.length, sequence),
			                 flip == 0 || at < 12);
			assert_int_equal(check_one(run, &look, data, t.length - 1, sequence), 0);
			data[at] ^= flip;
		}
	}
}

static void all_lengths_agree_with_the_model(void **state)
{
	each_isa(agrees_at_all_lengths);
}

// Over all values of a 16-bit word one checksum would be 0, and is written as 0xffff; 0 is refused.
static void refuses_no_checksum(const struct frame_run *run)
{
	struct frame_template t = template_make(64);
	struct frame_signature look = look_make(&t);
	uint8_t data[FRAME_STORE_BYTES];
	unsigned full = 0;

	for (uint32_t sequence = 0; sequence < 0x10000; sequence++) {
		frame_write(&t, data, sequence);
		assert_int_equal(check_one(run, &look, data, t.length, sequence), 1);
		if (data[40] != 0xff || data[41] != 0xff)
			continue;
		full++;
		data[40] = data[41] = 0;
		assert_int_equal(check_one(run, &look, data, t.length, sequence), 0);
	}
	assert_int_equal(full, 1);
}

static void a_checksum_is_there(void **state)
{
	each_isa(refuses_no_checksum);
}

// Bursts over all sums that numbers have, where 0xffffffff is followed by 0, too.
static void runs_over_every_sum(const struct frame_run *run)
{
	struct frame_template t = template_make(64);
	struct frame_signature look = look_make(&t);
	static uint8_t memory[BURST_MAX][FRAME_STORE_BYTES];
	struct vnf_frame frames[BURST_MAX + FRAME_AHEAD] = {0};
	uint8_t expected[FRAME_STORE_BYTES], *data[BURST_MAX];

	for (unsigned i = 0; i < BURST_MAX; i++) {
		data[i] = memory[i];
		frames[i] = (struct vnf_frame){memory[i], t.length, t.length};
	}
	for (uint32_t at = 0; at < 0x11000; at += 61) {
		uint32_t first = UINT32_C(0xffff8000) + at;

		run->write(&t, data, BURST_MAX, first);
		for (unsigned i = 0; i < BURST_MAX; i++) {
			frame_write(&t, expected, first + i);
			assert_memory_equal(memory[i], expected, sizeof(expected));
		}
		assert_int_equal(run->check(&look, frames, BURST_MAX, first), BURST_MAX);
	}
}

static void bursts_run_over_every_sum(void **state)
{
	each_isa(runs_over_every_sum);
}

// A frame of another length among those of a burst ends the run, and nothing of it is read.
static void ends_at_another_length(const struct frame_run *run)
{
	struct frame_template t = template_make(1024);
	struct frame_signature look = look_make(&t);
	struct burst b;

	burst_make(&b, &t, 9);
	for (unsigned at = 0; at < 9; at++) {
		b.frames[at] = (struct vnf_frame){at_the_edge(61), 61, 61};
		assert_int_equal(run->check(&look, b.frames, 9, FIRST), at);
		b.frames[at] = (struct vnf_frame){b.memory[at] + (at * 12 + 9) % 64, t.length, t.length};
	}
	free(b.memory);
}

static void a_run_ends_at_another_length(void **state)
{
	each_isa(ends_at_another_length);
}

static void only_ours_are_learned(void **state)
{
	struct frame_template t = template_make(100);
	struct frame_signature look = look_make(&t);
	uint8_t data[FRAME_SIZE_MAX];

	frame_fill_payload(data, sizeof(data));
	frame_write(&t, data, FIRST + 7);
	assert_true(frame_signature_learn(&look, data, t.length));
	frame_write(&t, data, FIRST);
	assert_int_equal(check_one(frame_run_current(), &look, data, t.length, FIRST), 1);
	for (uint32_t at = 12; at < t.length; at++) {
		bool varies = at == 40 || at == 41 || (at >= FRAME_OFFSET_STREAM && at < FRAME_HEADER_BYTES);

		// Addresses and ports are a flow's own, the IP checksum covers the addresses.
		varies = varies || at == 34 || at == 35;
		data[at] ^= 1;
		assert_int_equal(frame_signature_learn(&look, data, t.length), varies);
		assert_int_equal(look.length, varies ? t.length : 0);
		data[at] ^= 1;
	}
	assert_false(frame_signature_learn(&look, data, t.length - 1));
	assert_false(frame_signature_learn(&look, data, FRAME_HEADER_BYTES - 1));
	assert_false(frame_signature_learn(&look, data, FRAME_SIZE_MAX));
}

// A run has frames of any length and addresses; a probe or another number ends it.
static void mixed_frames_run_by_sums(void **state)
{
	const struct frame_own own = frame_own_make(3, 0, 0xabcd, 0, 0),
	                       timed = frame_own_make(3, FRAME_FLAG_STAMPED, 0xabcd, 0, 0);
	struct vnf_frame frames[BURST_MAX + FRAME_AHEAD] = {0};
	uint8_t(*memory)[FRAME_SIZE_MAX] = calloc(BURST_MAX, sizeof(*memory));
	uint64_t stamps[BURST_MAX];
	struct frame_template t;

	for (unsigned i = 0; i < BURST_MAX; i++) {
		t = template_make(sizes[i % RTE_DIM(sizes)]);
		frame_fill_payload(memory[i], t.length);
		frame_write(&t, memory[i], FIRST + i);
		frames[i] = (struct vnf_frame){memory[i], t.length, t.length};
	}
	for (size_t i = 0; i < RTE_DIM(bursts); i++)
		assert_int_equal(frame_run_sums(&own, frames, bursts[i], FIRST, stamps), bursts[i]);
	assert_int_equal(frame_run_sums(&timed, frames, BURST_MAX, FIRST, stamps), 0);
	t = template_make(sizes[7]);
	frame_write_probe(&t, memory[7], FIRST + 7, 1);
	assert_int_equal(frame_run_sums(&own, frames, BURST_MAX, FIRST, stamps), 7);
	frame_write_timed(&t, memory[7], FIRST + 7, 0x123456, FRAME_FLAG_STAMPED);
	assert_int_equal(frame_run_sums(&timed, &frames[7], BURST_MAX - 7, FIRST + 7, stamps), 1);
	assert_int_equal(stamps[0], 0x123456);
	frame_write(&t, memory[7], FIRST + 8);
	assert_int_equal(frame_run_sums(&own, frames, BURST_MAX, FIRST, stamps), 7);
	free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(heads_are_written_alike),
	        cmocka_unit_test(a_run_ends_at_what_is_different),
	        cmocka_unit_test(each_flipped_bit_is_found),
	        cmocka_unit_test(all_lengths_agree_with_the_model),
	        cmocka_unit_test(a_checksum_is_there),
	        cmocka_unit_test(bursts_run_over_every_sum),
	        cmocka_unit_test(a_run_ends_at_another_length),
	        cmocka_unit_test(only_ours_are_learned),
	        cmocka_unit_test(mixed_frames_run_by_sums),
	};

	return cmocka_run_group_tests_name("frame_run", tests, NULL, NULL);
}
