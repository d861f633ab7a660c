// SPDX-License-Identifier: BSD-3-Clause
// A malicious driver: two guests whose memory, rings included, is whatever the fuzzer likes, and changes
// between polls. Under AddressSanitizer a byte read or written outside of a guest's memory ends the program,
// as does a hang; what the guest thinks of the result is its own business.
//
// With libFuzzer:   clang -g -O1 -fsanitize=fuzzer,address,undefined -DVRING_LIBFUZZER ... vring_fuzz.c
// Without:          vring_fuzz [-n INPUTS] [-s SEED] [FILE...]   replays files, or makes inputs from a seed
//
// An input is 3 bytes of features and ring sizes, then changes to memory, with a poll after every few of
// them. Random bytes would be refused by the first check; so most changes are steps that a driver takes, with
// a detail that it would not think of.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>

#include "hop.h"
#include "isa.h"

enum {
	SIZE = 4096,   // of a guest's memory; from its first byte to its last it is the sanitizer's
	DRIVER = 1024, // offsets of a ring's parts; it has at most 64 entries
	DEVICE = 1536,
	TABLE = 2560,
	BORDER = 3072,    // between two regions
	ADDRESS = 0x1000, // guest physical
	POLL_EVERY = 16,
};

// What the inputs have come to: a fuzzer that is always refused finds nothing.
static unsigned long forwarded, faults[RING_FAULTS];

struct guest {
	uint8_t *bytes;
	struct guest_memory memory;
	struct ring ring;
};

struct input {
	const uint8_t *data;
	size_t left;
};

static uint8_t next_byte(struct input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->data++;
}

static void guest_open(struct guest *g, uint64_t features, uint8_t shape, bool writable)
{
	struct ring_layout layout = {.size = (uint16_t)(1 << shape % 7),
	                             .base = (uint16_t)(features >> VIRTIO_F_RING_PACKED & 1 ? 0x8000 : 0),
	                             .features = features,
	                             .writable = writable};

	memset(g, 0, sizeof(*g));
	g->bytes = aligned_alloc(64, SIZE);
	if (g->bytes == NULL)
		abort();
	memset(g->bytes, 0, SIZE);
	layout.desc = g->bytes;
	layout.driver = g->bytes + DRIVER;
	layout.device = g->bytes + DEVICE;
	// Two regions that adjoin for the guest: chains may cross, tables may not.
	if (guest_memory_add(&g->memory, ADDRESS, BORDER, g->bytes) ||
	    guest_memory_add(&g->memory, ADDRESS + BORDER, SIZE - BORDER, g->bytes + BORDER) ||
	    ring_init(&g->ring, &layout, &g->memory))
		abort();
}

// A descriptor as a driver would write it, but for what the input says: two bytes for what it describes, one
// for its flags.
static void write_descriptor(struct guest *g, size_t at, struct input *in)
{
	static const uint32_t lengths[] = {72, 64,  256, 512, 100, 16,   13,    1024,
	                                   32, 160, 12,  0,   1,   4096, 65536, ~0u};
	uint8_t what = next_byte(in), flags = next_byte(in);
	uint64_t address = ADDRESS + (uint64_t)(what >> 4) * 256;
	uint32_t length = lengths[what & 15];
	uint16_t bits = flags & 0x30 ? flags & VRING_DESC_F_NEXT & flags >> 7 : flags & 7;
	uint16_t link = (flags >> 3) & (g->ring.size - 1);
	bool wrap = g->ring.wrap != (flags == 0xff);

	if (what == 0xff)
		address = UINT64_MAX - link;
	if (g->ring.writable)
		bits ^= VRING_DESC_F_WRITE;
	memcpy(g->bytes + at, &address, 8);
	memcpy(g->bytes + at + 8, &length, 4);
	if (g->ring.packed)
		bits |= (uint16_t)(1 << (wrap ? VRING_PACKED_DESC_F_AVAIL : VRING_PACKED_DESC_F_USED));
	memcpy(g->bytes + at + 12, g->ring.packed ? &link : &bits, 2);
	memcpy(g->bytes + at + 14, g->ring.packed ? &bits : &link, 2);
}

// Make the next buffer available, as a driver does.
static void offer(struct guest *g, struct input *in)
{
	uint16_t mask = g->ring.size - 1, index, slot;

	if (g->ring.packed) {
		write_descriptor(g, (size_t)((g->ring.next + (next_byte(in) & 3)) & mask) * 16, in);
		return;
	}
	memcpy(&index, g->bytes + DRIVER + 2, 2);
	slot = next_byte(in) & mask;
	write_descriptor(g, (size_t)slot * 16, in);
	memcpy(g->bytes + DRIVER + 4 + (size_t)(index & mask) * 2, &slot, 2);
	index++;
	memcpy(g->bytes + DRIVER + 2, &index, 2);
}

static void change(struct guest *g, struct input *in)
{
	uint8_t how = next_byte(in);
	uint16_t value;

	switch (how & 15) {
	case 0: // anything, anywhere
		g->bytes[(next_byte(in) | (how >> 4) << 8) % SIZE] = next_byte(in);
		break;
	case 1: // the split ring's index: a little more, or anything
		value = (uint16_t)(g->ring.next + next_byte(in) * (how & 0x80 ? 1 : 257));
		value = how & 0x40 ? value : (uint16_t)(g->ring.next + (value & (g->ring.size - 1)));
		memcpy(g->bytes + DRIVER + 2, &value, 2);
		break;
	case 2: // one of its entries
		value = next_byte(in);
		memcpy(g->bytes + DRIVER + 4 + (size_t)(next_byte(in) & 63) * 2, &value, 2);
		break;
	case 3: // in the table that indirect descriptors point to, or anywhere in the ring's
	case 4:
		value = next_byte(in);
		write_descriptor(g, (value & 0x80 ? TABLE : 0) + (size_t)(value & 63) * 16, in);
		break;
	default:
		offer(g, in);
	}
}

static uint64_t features_of(uint8_t byte)
{
	return (uint64_t)(byte & 1) << VIRTIO_F_VERSION_1 |
	       (uint64_t)(byte >> 1 & 1) << VIRTIO_F_RING_PACKED |
	       (uint64_t)(byte >> 2 & 1) << VIRTIO_NET_F_MRG_RXBUF |
	       (uint64_t)(byte >> 3 & 1) << VIRTIO_F_IN_ORDER;
}

// A stopped ring is set up anew, as by a driver that restarts: the rest of the input is not wasted.
static void revive(struct guest *g)
{
	if (g->ring.fault != RING_OK) {
		faults[g->ring.fault]++;
		g->ring.fault = RING_OK;
		g->ring.avail_seen = g->ring.next;
		memset(g->bytes, 0, DRIVER);
		memcpy(g->bytes + DRIVER + 2, &g->ring.next, 2);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct guest a, b;
	uint8_t features_a = next_byte(&in), features_b = next_byte(&in), shape = next_byte(&in);

	guest_open(&a, features_of(features_a), shape & 15, false);
	guest_open(&b, features_of(features_b), shape >> 4, true);
	while (in.left) {
		struct hop_counts counts;

		for (unsigned i = 0; i < POLL_EVERY && in.left; i++)
			change(next_byte(&in) & 1 ? &a : &b, &in);
		counts = hop(&a.ring, &b.ring, 32);
		if (counts.forwarded > counts.received || counts.too_long > counts.forwarded)
			abort();
		forwarded += counts.forwarded;
		revive(&a);
		revive(&b);
	}
	free(a.bytes);
	free(b.bytes);
	return 0;
}

#ifndef VRING_LIBFUZZER
static uint64_t random_state;

static uint64_t random_next(void) // xorshift64
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void run_random(uint64_t seed, unsigned long inputs)
{
	uint8_t data[1024];

	random_state = seed ? seed : 1;
	for (unsigned long i = 0; i < inputs; i++) {
		size_t size = 16 + random_next() % (sizeof(data) - 16);

		for (size_t k = 0; k < size; k++)
			data[k] = (uint8_t)(random_next() >> 24);
		LLVMFuzzerTestOneInput(data, size);
	}
	printf("%lu inputs of seed %lu: %lu frames forwarded\n", inputs, (unsigned long)seed, forwarded);
	for (unsigned i = RING_OK + 1; i < RING_BAD_LAYOUT; i++)
		printf("%8lu times %s\n", faults[i], ring_fault_text(i));
}

static int run_file(const char *path)
{
	static uint8_t data[1 << 20];
	FILE *file = fopen(path, "rb");
	size_t size;

	if (file == NULL) {
		perror(path);
		return EXIT_FAILURE;
	}
	size = fread(data, 1, sizeof(data), file);
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	unsigned long inputs = 2000, seed = 1;
	int code = EXIT_SUCCESS, files = 0;

	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "-n") == 0 && i + 1 < argc)
			inputs = strtoul(argv[++i], NULL, 0);
		else if (strcmp(argv[i], "-s") == 0 && i + 1 < argc)
			seed = strtoul(argv[++i], NULL, 0);
		else
			code |= run_file(argv[i]), files++;
	for (unsigned i = 0; files == 0 && i < ISA_COUNT; i++) // the code of each instruction set
		if (isa_force(isa_text((enum isa)i)) == 0)
			run_random(seed, inputs);
	return code;
}
#endif
