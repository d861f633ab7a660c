// SPDX-License-Identifier: BSD-3-Clause
// Two malicious drivers whose memory changes while it is read: a second thread turns single bits of
// descriptors, of indirect tables and of ring indices over, and back again. What the device reads twice it
// sees two ways; under AddressSanitizer what it then touches outside of a guest's memory ends the program.
// Not deterministic: a run that ends well shows little, one that does not shows a bug.
//
//     vring_race [ROUNDS [SEED]]
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <rte_pause.h>

#include "virtio/device_frames.h"
#include "test/hostile.h"
#include "base/isa.h"

enum { INPUT_BYTES = 2048, HELD = 16 };

struct race {
	uint8_t *memory[2]; // of the regions with the rings
	uint64_t random;
	atomic_bool over;
};

static unsigned long forwarded, faults;

static uint64_t random_next(uint64_t *state) // xorshift64
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void *turn_bits(void *argument)
{
	struct race *race = argument;

	while (!atomic_load_explicit(&race->over, memory_order_relaxed)) {
		uint64_t random = random_next(&race->random), bit = UINT64_C(1) << (random & 63);
		size_t at = (random >> 8) % (HOSTILE_NEAR_BYTES / 8);
		uint64_t *word = (uint64_t *)(void *)race->memory[random >> 7 & 1] + at;

		__atomic_fetch_xor(word, bit, __ATOMIC_RELAXED);
		for (unsigned i = 0; i < HELD; i++)
			rte_pause();
		__atomic_fetch_xor(word, bit, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void drive(struct hostile *a, struct hostile *b, struct input *in)
{
	while (in->left) {
		for (unsigned i = 0; i < 8; i++)
			hostile_change(input_byte(in) & 1 ? a : b, in);
		for (unsigned i = 0; i < 8; i++)
			forwarded += xconnect(&a->ring, &b->ring, BURST_FRAMES_MAX).forwarded;
		faults += hostile_revive(a) != RING_OK;
		faults += hostile_revive(b) != RING_OK;
	}
}

static void one_round(uint64_t *random)
{
	uint8_t data[INPUT_BYTES];
	struct input in = {data, sizeof(data)};
	struct hostile a, b;
	struct race race = {.random = random_next(random)};
	pthread_t racer;

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(random_next(random) >> 24);
	hostile_open(&a, &in, false);
	hostile_open(&b, &in, true);
	race.memory[0] = a.near;
	race.memory[1] = b.near;
	if (pthread_create(&racer, NULL, turn_bits, &race))
		abort();
	drive(&a, &b, &in);
	atomic_store(&race.over, true);
	pthread_join(racer, NULL);
	hostile_close(&a);
	hostile_close(&b);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 0) : 2000;
	uint64_t random = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;

	for (unsigned long i = 0; i < rounds; i++) {
		enum isa isa = (enum isa)(i % ISA_COUNT);

		isa_force(isa_text(isa_supported(isa) ? isa : ISA_SCALAR));
		one_round(&random);
	}
	printf("%lu rounds: %lu frames forwarded, %lu faults\n", rounds, forwarded, faults);
	return 0;
}
