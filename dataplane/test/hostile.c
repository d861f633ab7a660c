// SPDX-License-Identifier: BSD-3-Clause
#include "test/hostile.h"

#include <stdlib.h>
#include <string.h>

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>

enum {
	DRIVER = 0x2000,  // offsets of a ring's parts
	DEVICE = 0x2500,  // up to 0x3506
	TABLE = 0x3600,   // that indirect descriptors point to
	TABLE_SLOTS = 96, // up to the end of the region
	ADDRESS = 0x1000, // guest physical
};

// --- Setting up ------------------------------------------------------------------------------------------

static uint64_t features_of(uint8_t byte)
{
	return (uint64_t)(byte & 1) << VIRTIO_F_VERSION_1 |
	       (uint64_t)(byte >> 1 & 1) << VIRTIO_F_RING_PACKED |
	       (uint64_t)(byte >> 2 & 1) << VIRTIO_NET_F_MRG_RXBUF |
	       (uint64_t)(byte >> 4 & 1) << VIRTIO_F_IN_ORDER;
}

static unsigned position_of(const struct hostile *h, uint16_t base)
{
	return (base & 0x7fff) + (base & 0x8000 ? 0 : h->layout.size);
}

// The ring as an honest driver leaves it before its first buffer, from base on.
static void ring_begin(struct hostile *h, uint16_t base)
{
	h->layout.base = base;
	if (h->packed) {
		for (unsigned i = 0; i < h->layout.size; i++)
			memset((uint8_t *)h->layout.desc + 16 * i + 14, i < (base & 0x7fff) ? 0xff : 0, 2);
		h->position = position_of(h, base);
	} else {
		memcpy((uint8_t *)h->layout.driver + 2, &base, 2);
	}
}

void hostile_open(struct hostile *h, struct input *in, bool writable)
{
	uint8_t features = input_byte(in), size = input_byte(in), base = input_byte(in);

	memset(h, 0, sizeof(*h));
	h->near = aligned_alloc(64, HOSTILE_NEAR_BYTES);
	h->far = aligned_alloc(64, HOSTILE_FAR_BYTES);
	if (h->near == NULL || h->far == NULL)
		abort();
	memset(h->near, 0, HOSTILE_NEAR_BYTES);
	memset(h->far, 0, HOSTILE_FAR_BYTES);
	h->packed = features & 2;
	h->layout = (struct device_ring_layout){.desc = h->near,
	                                        .driver = h->near + DRIVER,
	                                        .device = h->near + DEVICE,
	                                        .features = features_of(features),
	                                        .writable = writable};
	// s2.7: a power of two; s2.8.10: anything.
	h->layout.size = (uint16_t)(h->packed && size & 0x80 ? 1 + (size & 0x7f) : 1 << size % 10);
	ring_begin(h, h->packed ? (uint16_t)(base % h->layout.size | (features & 8 ? 0 : 0x8000))
	                        : (uint16_t)(base * 0x101));
	if (guest_memory_add(&h->memory, ADDRESS, HOSTILE_NEAR_BYTES, h->near) ||
	    guest_memory_add(&h->memory, ADDRESS + HOSTILE_NEAR_BYTES, HOSTILE_FAR_BYTES, h->far) ||
	    device_ring_init(&h->ring, &h->layout, &h->memory))
		abort();
}

void hostile_close(struct hostile *h)
{
	free(h->near);
	free(h->far);
}

enum ring_fault hostile_revive(struct hostile *h)
{
	enum ring_fault fault = h->ring.fault;

	if (fault != RING_OK) {
		ring_begin(h, device_ring_base(&h->ring));
		if (device_ring_init(&h->ring, &h->layout, &h->memory))
			abort();
	}
	return fault;
}

// What VHOST_USER_SET_VRING_ADDR can bring: anywhere near the memory.
static uint8_t *anywhere(const struct hostile *h, struct input *in)
{
	uint16_t where = input_word(in);
	uintptr_t region = (uintptr_t)(where & 0x8000 ? h->far : h->near);

	return (uint8_t *)(region + (where & 0x7fff) - 0x100);
}

// A layout that the device refuses leaves the old ring.
static void set_up_anew(struct hostile *h, struct input *in)
{
	struct device_ring_layout layout = h->layout;
	uint8_t what = input_byte(in);
	struct device_ring ring;

	if (what & 1)
		layout.desc = anywhere(h, in);
	if (what & 2)
		layout.driver = anywhere(h, in);
	if (what & 4)
		layout.device = anywhere(h, in);
	if (what & 8)
		layout.size = input_word(in);
	layout.base = what & 16 ? input_word(in) : device_ring_base(&h->ring);
	if (device_ring_init(&ring, &layout, &h->memory))
		return;
	h->ring = ring;
	h->layout = layout;
	h->position = position_of(h, layout.base);
}

// --- What a driver writes --------------------------------------------------------------------------------

struct words {
	uint64_t address;
	uint32_t length;
	uint16_t flags, link;
};

// Two bytes: where and how long; and its flags, mostly none.
static struct words describe(const struct hostile *h, struct input *in)
{
	static const uint32_t lengths[] = {72, 64,  256, 512, 100, 16,   13,    1024,
	                                   32, 160, 12,  0,   1,   4096, 65536, ~0u};
	static const uint64_t addresses[] = {
	        0,
	        64,
	        HOSTILE_NEAR_BYTES - 40,
	        HOSTILE_NEAR_BYTES,
	        0x2000,
	        DRIVER,
	        DEVICE + 4,
	        TABLE,
	        TABLE + 16,
	        TABLE + 0x200,
	        0x1000,
	        HOSTILE_NEAR_BYTES - 72,
	        0x3800,
	        -1ull,
	        HOSTILE_BYTES - 64,
	        HOSTILE_BYTES,
	};
	uint8_t what = input_byte(in), flags = input_byte(in);
	struct words words = {.address = ADDRESS + addresses[what >> 4],
	                      .length = lengths[what & 15],
	                      .flags = flags & 0x30 ? flags >> 7 & VRING_DESC_F_NEXT : flags & 7,
	                      .link = flags >> 3 & 15};

	if (what == 0xff)
		words.address = UINT64_MAX - words.link;
	if (h->layout.writable)
		words.flags ^= VRING_DESC_F_WRITE;
	return words;
}

static void write_words(const struct hostile *h, void *at, const struct words *words)
{
	memcpy(at, &words->address, 8);
	memcpy((uint8_t *)at + 8, &words->length, 4);
	memcpy((uint8_t *)at + 12, h->packed ? &words->link : &words->flags, 2);
	memcpy((uint8_t *)at + 14, h->packed ? &words->flags : &words->link, 2);
}

static void *slot(const struct hostile *h, unsigned index)
{
	return (uint8_t *)h->layout.desc + (size_t)(index % h->layout.size) * 16;
}

// Packed: into the next slot, available.
static void offer_packed(struct hostile *h, struct words words)
{
	unsigned size = h->layout.size, begin = position_of(h, device_ring_base(&h->ring));

	if ((h->position + 2 * size - begin) % (2 * size) >= size)
		h->position = begin; // the ring is full: over what the device has not taken yet
	words.flags |= 1 << (h->position < size ? VRING_PACKED_DESC_F_AVAIL : VRING_PACKED_DESC_F_USED);
	write_words(h, slot(h, h->position), &words);
	h->position = (h->position + 1) % (2 * size);
}

// Split: into a slot, and the slot into the next entry.
static void offer_split(struct hostile *h, uint16_t at, const struct words *words)
{
	uint8_t *driver = h->layout.driver;
	uint16_t index;

	memcpy(&index, driver + 2, 2);
	at %= h->layout.size;
	write_words(h, slot(h, at), words);
	memcpy(driver + 4 + (size_t)(index % h->layout.size) * 2, &at, 2);
	index++;
	memcpy(driver + 2, &index, 2);
}

// The same buffer one or many times.
static void offer(struct hostile *h, struct input *in, unsigned times)
{
	uint8_t at = input_byte(in);
	struct words words = describe(h, in);

	for (unsigned i = 0; i < times; i++)
		if (h->packed)
			offer_packed(h, words);
		else
			offer_split(h, at + i, &words);
}

// A chain of successive slots; each as long as the first.
static void offer_chain(struct hostile *h, struct input *in)
{
	unsigned length = 1 + input_byte(in) % 128 * 3;
	uint8_t at = input_byte(in);
	struct words words = describe(h, in), next = words;

	next.flags |= VRING_DESC_F_NEXT;
	if (h->packed) {
		for (unsigned i = 1; i < length; i++)
			offer_packed(h, next);
		offer_packed(h, words);
		return;
	}
	for (unsigned i = 1; i < length; i++) {
		struct words *w = i + 1 < length ? &next : &words;

		w->link = (uint16_t)((at + i + 1) % h->layout.size);
		write_words(h, slot(h, at + i), w);
	}
	next.link = (uint16_t)((at + 1) % h->layout.size);
	offer_split(h, at, length > 1 ? &next : &words);
}

// Entries of the indirect table, each with the next one as its link.
static void fill_table(struct hostile *h, struct input *in)
{
	unsigned count = 1 + input_byte(in) % TABLE_SLOTS;
	struct words words = describe(h, in);

	for (unsigned i = 0; i < count; i++) {
		if (!h->packed && i + 1 < count) {
			words.flags |= VRING_DESC_F_NEXT;
			words.link = (uint16_t)(i + 1);
		} else if (!h->packed) {
			words.flags &= (uint16_t)~VRING_DESC_F_NEXT;
		}
		write_words(h, h->near + TABLE + (size_t)i * 16, &words);
	}
}

// --- Lies ------------------------------------------------------------------------------------------------

static void poke(struct hostile *h, struct input *in)
{
	uint16_t where = input_word(in) % HOSTILE_BYTES;
	uint8_t *at = where < HOSTILE_NEAR_BYTES ? &h->near[where] : &h->far[where - HOSTILE_NEAR_BYTES];

	*at = input_byte(in);
}

// The split ring's index: a little more, or anything. Packed: what it says about notifications.
static void write_driver(struct hostile *h, struct input *in)
{
	uint16_t value = input_word(in);

	if (!h->packed && value < 0x8000)
		value = (uint16_t)(device_ring_base(&h->ring) + value % (h->layout.size + 2));
	memcpy((uint8_t *)h->layout.driver + 2, &value, 2);
}

static void write_entry(struct hostile *h, struct input *in)
{
	uint16_t value = input_word(in);
	uint8_t at = input_byte(in);

	if (h->packed) // id and flags of a slot
		memcpy((uint8_t *)slot(h, at) + 14, &value, 2);
	else
		memcpy((uint8_t *)h->layout.driver + 4 + (size_t)(at % h->layout.size) * 2, &value, 2);
}

static void write_one(struct hostile *h, struct input *in)
{
	uint8_t at = input_byte(in);
	struct words words = describe(h, in);

	write_words(h, at & 0x80 ? h->near + TABLE + (size_t)(at & 63) * 16 : slot(h, at), &words);
}

void hostile_change(struct hostile *h, struct input *in)
{
	uint8_t how = input_byte(in);

	switch (how & 15) {
	case 0:
		poke(h, in);
		break;
	case 1:
		write_driver(h, in);
		break;
	case 2:
		write_entry(h, in);
		break;
	case 3:
		write_one(h, in);
		break;
	case 4:
		fill_table(h, in);
		break;
	case 5:
	case 6:
		offer_chain(h, in);
		break;
	case 7:
		offer(h, in, 2 + (how >> 4) * 6);
		break;
	case 8:
		set_up_anew(h, in);
		break;
	case 9: // whether it wants calls
		memset(h->layout.driver, how >> 4, h->packed ? 4 : 2);
		break;
	default:
		offer(h, in, 1);
	}
}

// --- What the device may do ------------------------------------------------------------------------------

void hostile_remember(const struct hostile *h, uint8_t was[static HOSTILE_BYTES])
{
	memcpy(was, h->near, HOSTILE_NEAR_BYTES);
	memcpy(was + HOSTILE_NEAR_BYTES, h->far, HOSTILE_FAR_BYTES);
}

bool hostile_untouched(const struct hostile *h, uint8_t was[static HOSTILE_BYTES])
{
	const uint8_t *device = h->packed ? h->layout.desc : h->layout.device;
	size_t bytes = h->packed ? 16u * h->layout.size : 4 + 8u * h->layout.size;
	uint64_t offset = (uintptr_t)device - (uintptr_t)h->near;
	uint8_t *own =
	        offset < HOSTILE_NEAR_BYTES ? was + offset : was + HOSTILE_NEAR_BYTES + (device - h->far);

	memcpy(own, device, bytes);
	return memcmp(was, h->near, HOSTILE_NEAR_BYTES) == 0 &&
	       memcmp(was + HOSTILE_NEAR_BYTES, h->far, HOSTILE_FAR_BYTES) == 0;
}
