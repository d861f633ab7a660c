// SPDX-License-Identifier: BSD-3-Clause
// What the fuzz harnesses (NAME_fuzz.c) have in common: bytes of an input, one at a time; and a program
// around LLVMFuzzerTestOneInput() where there is no libFuzzer, fuzz_main.c, which replays kept inputs or
// makes random ones:
//
//     NAME_fuzz [-n INPUTS] [-s SEED] [FILE | DIRECTORY]...
//
// With clang and -Dfuzz=true it is libFuzzer's program instead (scripts/fuzz.sh).
#pragma once

#include <stddef.h>
#include <stdint.h>

struct input {
	const uint8_t *data;
	size_t left;
};

// The next byte; zeros behind the end.
static inline uint8_t input_byte(struct input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->data++;
}

static inline uint16_t input_word(struct input *in)
{
	uint8_t low = input_byte(in);

	return (uint16_t)(low | input_byte(in) << 8);
}

// A fuzzer defines these. libFuzzer knows the first two by their names.
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// What the inputs have come to, on stdout: a fuzzer that is always refused finds nothing.
void fuzz_report(void);
