// SPDX-License-Identifier: BSD-3-Clause
// A sender with offloads that lies: any virtio-net header before any frame, or before one that it fits and that was damaged,
// in pieces of any sizes; to a receiver that accepts anything. Under AddressSanitizer a byte read outside of the frame ends
// the program. Checked: what is passed on says nothing that the frame does not have, segments have the payload and nothing
// else, and what they carry in their headers is right by the model (test/offload_sample.h) if nothing was damaged.
//
// An input: what the receiver accepts, how many frames it takes, then for each frame its kind, sizes, header, damage and
// pieces. test/fuzz.h says how it is run. Not covered: memory that changes during a poll.
#include <stdio.h>
#include <stdlib.h>

#include "virtio/device_frames.h"
#include "virtio/offload.h"
#include "test/fuzz.h"
#include "test/offload_sample.h"

enum {
	RING_SIZE = 256,
	ADDRESS = 0x1000,
	RINGS_BYTES = 16 * RING_SIZE + 4096,
	MADE = 0x80, // the kind of a frame that its header fits
	HEADER_LIES = 0x40,
};

static unsigned long passed, segments, refused[OFFLOAD_REFUSALS];

static void must(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "offload_fuzz: not so: %s\n", what);
	abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

// A ring, and behind it for the guest the buffer of one frame, of just its size.
struct sender {
	uint8_t *rings, *buffer;
	uint32_t bytes;
	struct guest_memory memory;
	struct device_ring ring;
};

static void sender_open(struct sender *s, uint32_t bytes)
{
	struct device_ring_layout layout = {.size = RING_SIZE,
	                                    .features = OFFLOAD_FEATURES | UINT64_C(1) << VIRTIO_F_VERSION_1};

	s->rings = aligned_alloc(64, RINGS_BYTES);
	s->buffer = malloc(bytes);
	if (s->rings == NULL || s->buffer == NULL)
		abort();
	memset(s->rings, 0, RINGS_BYTES);
	s->bytes = bytes;
	s->memory = (struct guest_memory){0};
	layout.desc = s->rings;
	layout.driver = s->rings + 16 * RING_SIZE;
	layout.device = s->rings + 16 * RING_SIZE + 1024;
	if (guest_memory_add(&s->memory, ADDRESS, RINGS_BYTES, s->rings) ||
	    guest_memory_add(&s->memory, ADDRESS + RINGS_BYTES, bytes, s->buffer) ||
	    device_ring_init(&s->ring, &layout, &s->memory))
		abort();
}

static void sender_close(struct sender *s)
{
	free(s->rings);
	free(s->buffer);
}

// The buffer as a chain, of pieces of any sizes; the last has what is left.
static void make_available(struct sender *s, struct input *in)
{
	uint32_t done = 0;
	uint16_t i = 0;

	for (; done < s->bytes && i < RING_SIZE; i++) {
		uint32_t left = s->bytes - done, run = input_byte(in);

		run = run == 0 || i == RING_SIZE - 1 || run > left ? left : run;
		s->ring.desc[i] = (struct vring_desc){ADDRESS + RINGS_BYTES + done, run,
		                                      run < left ? VRING_DESC_F_NEXT : 0, (uint16_t)(i + 1)};
		done += run;
	}
	s->ring.avail->idx = 1;
}

static void read_header(struct input *in, struct virtio_net_hdr *header)
{
	uint8_t bytes[sizeof(*header)];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = input_byte(in);
	memcpy(header, bytes, sizeof(bytes));
}

// Returns whether the frame and its header are sound.
static bool read_sample(struct input *in, struct sample *s)
{
	uint8_t kind = input_byte(in), changes = input_byte(in) & 3;
	uint32_t size = input_word(in);

	if (kind & MADE) {
		sample_make(s, kind % SAMPLE_KINDS, 1 + size % 60000, (uint16_t)(1 + input_word(in)));
	} else {
		memset(s, 0, sizeof(*s));
		s->length = size % 600;
		for (uint32_t i = 0; i < s->length; i++)
			s->bytes[i] = input_byte(in);
	}
	if (!(kind & MADE) || kind & HEADER_LIES)
		read_header(in, &s->asked);
	for (unsigned i = 0; i < changes && s->length; i++) {
		uint16_t at = input_word(in);

		s->bytes[(at & 0x8000 ? at & 0x7f : at) % s->length] ^= input_byte(in);
	}
	return kind & MADE && !(kind & HEADER_LIES) && changes == 0;
}

// A frame that was passed on with its header.
static void check_header(const struct virtio_net_hdr *header, uint8_t accepts, uint32_t length)
{
	uint8_t type = header->gso_type & ~VIRTIO_NET_HDR_GSO_ECN;

	must(header->flags == 0 || header->flags == VIRTIO_NET_HDR_F_NEEDS_CSUM, "no other flags");
	if (header->flags)
		must(accepts & OFFLOAD_CSUM && header->csum_start >= 14 &&
		             (uint32_t)header->csum_start + header->csum_offset + 2 <= length,
		     "the checksum is in the frame");
	must((header->gso_type & VIRTIO_NET_HDR_GSO_ECN) == 0 || accepts & OFFLOAD_ECN, "ECN is accepted");
	switch (type) {
	case VIRTIO_NET_HDR_GSO_NONE:
		must(header->gso_type == 0 && header->gso_size == 0 && header->hdr_len == 0, "no segments");
		return;
	case VIRTIO_NET_HDR_GSO_TCPV4:
		must(accepts & OFFLOAD_TSO4, "TSO4 is accepted");
		break;
	case VIRTIO_NET_HDR_GSO_TCPV6:
		must(accepts & OFFLOAD_TSO6, "TSO6 is accepted");
		break;
	default:
		must(type == OFFLOAD_GSO_UDP_L4 && accepts & (OFFLOAD_USO4 | OFFLOAD_USO6),
		     "USO is accepted");
	}
	must(header->flags && header->gso_size && header->hdr_len > header->csum_start &&
	             header->hdr_len < length,
	     "sizes of segments");
	must((length - header->hdr_len + header->gso_size - 1) / header->gso_size <= OFFLOAD_SEGMENTS_MAX,
	     "not too many");
}

static void check_caught(const struct caught *c, const struct sample *s, bool sound)
{
	static uint8_t wanted[OFFLOAD_LENGTH_MAX];
	bool whole = c->count == 1 && c->headers[0];

	for (unsigned i = 0; i < c->count; i++)
		check_header(&c->header[i], c->accepts, c->length[i]);
	must(!whole || c->length[0] == s->length, "it is passed on whole");
	for (unsigned i = 0; sound && !whole && i < c->count; i++) {
		must(sample_segment(s, i, wanted) == c->length[i], "a segment is as long as it should be");
		must(memcmp(wanted, c->bytes + c->at[i], c->length[i]) == 0,
		     "a segment is what it should be");
	}
	passed += whole;
	segments += whole ? 0 : c->count;
}

static void one_frame(struct input *in, struct caught *c)
{
	static struct offload_room room;
	static struct sample sample;
	static struct view view;
	bool sound = read_sample(in, &sample);
	struct frames_lost lost = {0};
	struct offload_sent sent;
	struct sender sender;

	sender_open(&sender, RING_HEADER + sample.length);
	memset(sender.buffer, 0, RING_HEADER);
	memcpy(sender.buffer, &sample.asked, sizeof(sample.asked));
	memcpy(sender.buffer + RING_HEADER, sample.bytes, sample.length);
	make_available(&sender, in);
	memset(room.refused, 0, sizeof(room.refused));
	c->count = c->used = 0;
	must(offload_peek(&sender.ring, &view, BURST_FRAMES_MAX, &lost, &room) == 1, "a buffer was peeked");
	if (view.count) {
		sent = offload_send(&room, view.frames, view.count, c->accepts, catch_frames, c);
		must(sent.taken == c->count && sent.taken <= sent.offered &&
		             sent.offered <= OFFLOAD_SEGMENTS_MAX,
		     "taken <= offered");
		check_caught(c, &sample, sound);
	}
	for (unsigned i = 0; i < OFFLOAD_REFUSALS; i++)
		refused[i] += room.refused[i];
	must(view.count + lost.bad + lost.oversize + room.refused[0] + room.refused[1] + room.refused[2] +
	                     room.refused[3] ==
	             1,
	     "a frame has one fate");
	must(!sound || view.count || room.refused[OFFLOAD_REFUSED_SIZE] || lost.oversize,
	     "what is sound is passed on");
	view_commit(&sender.ring, &view);
	sender_close(&sender);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct caught caught;
	struct input in = {data, size};

	caught.accepts = input_byte(&in) & 0x3f;
	if (!(caught.accepts & OFFLOAD_CSUM))
		caught.accepts = 0;
	caught.room = input_byte(&in) & 1 ? input_byte(&in) : UINT32_MAX;
	while (in.left)
		one_frame(&in, &caught);
	return 0;
}

void fuzz_report(void)
{
#define COUNT_REFUSED(name, key) printf("%8lu refused: %s\n", refused[OFFLOAD_REFUSED_##name], key);
	printf("%lu frames passed on, %lu segments\n", passed, segments);
	FOR_EACH_OFFLOAD_REFUSAL(COUNT_REFUSED)
}
