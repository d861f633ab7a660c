// SPDX-License-Identifier: BSD-3-Clause
// A malicious end of a memif: whatever it says and writes to the shared memory, and whenever, the other end reads and
// writes nothing outside of the memory that is shared, comes to an end, and keeps no descriptor.
//
// An input is a list of steps: messages to a server, each whole and right by default but for what is odd about it; polls of both ends;
// and writes to the shared memory, rings first. test/fuzz.h says how it is run.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "test/fuzz.h"
#include "test/memif_pair.h"

enum { PAIRS = 2, LOG2_SIZE = 3, MEMORY = 1 << 18, STEPS_MAX = 200, REGIONS = 2 };

static int memory_fd, event_fd;
static uint8_t *memory; // as the malicious end has it
static unsigned long accepted, connected, frames_seen, frames_sent, frames_passed, bytes_read, faults;

static void must(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "memif_fuzz: not so: %s\n", what);
	abort();
}

static unsigned open_files(void)
{
	DIR *directory = opendir("/proc/self/fd");
	unsigned count = 0;

	while (directory && readdir(directory))
		count++;
	closedir(directory);
	return count;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	memory_fd = memfd_create("memif_fuzz", MFD_CLOEXEC);
	must(ftruncate(memory_fd, MEMORY) == 0, "there is memory");
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
	must(memory != MAP_FAILED, "it can be mapped");
	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return 0;
}

// The rings of an end, as its port has them.
struct end {
	struct memif_link link;
	struct memif_ring rings[PAIRS][MEMIF_WAYS];
	bool there[PAIRS][MEMIF_WAYS];
	uint8_t *shared; // what the malicious end writes to
	size_t bytes;
};

static void open_rings(struct end *end)
{
	connected++;
	for (unsigned i = 0; i < PAIRS; i++)
		for (int way = 0; way < MEMIF_WAYS; way++) {
			end->there[i][way] =
			        memif_link_open_ring(&end->link, i, (enum memif_way)way, &end->rings[i][way]);
			if (end->there[i][way] && !end->link.config.server)
				memif_ring_start(&end->rings[i][way]);
		}
}

// --- What is done to an end ------------------------------------------------------------------------------

// A server touches nothing but its client's memory, a client nothing but its own buffers, each within its bounds.
static void must_be_inside(const struct end *end, const uint8_t *data, uint64_t bytes)
{
	const struct memif_link *link = &end->link;
	uint64_t offset;

	if (link->config.server) {
		must(guest_memory_holds(&link->memory.guest, data, bytes), "in a region");
		return;
	}
	offset = (uintptr_t)data - (uintptr_t)link->pool->at;
	must(offset < link->pool->bytes && offset % shm_pool_stride(MEMIF_BUFFER_BYTES) >= POOL_LINE &&
	             offset % shm_pool_stride(MEMIF_BUFFER_BYTES) - POOL_LINE + bytes <= MEMIF_BUFFER_BYTES,
	     "in a buffer");
}

static void look(const struct end *end, struct memif_ring *ring, unsigned n)
{
	struct piece pieces[MEMIF_CHAIN_MAX];
	struct frames_lost lost = {0};
	uint8_t bytes[256];
	struct view view;
	unsigned slots = memif_ring_peek(ring, &view, n, &lost);

	must(view.count <= BURST_FRAMES_MAX && view.batch.piece_count <= PIECES_MAX, "a view has its room");
	must(slots <= ring->size, "no slot twice");
	for (unsigned i = 0; i < view.count; i++) {
		struct scatter at = view.frames[i].at;
		unsigned count;

		must(view.frames[i].length > 0 && view.frames[i].length <= FRAME_LENGTH_MAX,
		     "a frame has bytes");
		count = scatter_describe(pieces, &at, view.frames[i].length);
		for (unsigned k = 0; k < count; k++)
			must_be_inside(end, pieces[k].data, pieces[k].length);
		view_copy(&view, i, bytes, sizeof(bytes));
	}
	frames_seen += view.count;
	memif_ring_release(ring, slots);
}

static void put(struct memif_ring *ring, unsigned n, uint32_t length)
{
	static uint8_t bytes[FRAME_LENGTH_MAX];
	const struct piece piece = {bytes, length};
	struct frame frames[BURST_FRAMES_MAX];
	uint64_t too_long = 0;
	unsigned taken;

	for (unsigned i = 0; i < n; i++)
		frames[i] = (struct frame){{&piece, 0}, length, 0};
	taken = memif_deliver(ring, frames, n, &too_long);
	must(taken <= n && too_long <= taken, "no frame twice");
	frames_sent += taken - too_long;
}

// As a network function does: in the buffers by which they would leave.
static void place(const struct end *end, struct memif_ring *ring, unsigned n, uint32_t length)
{
	static uint8_t bytes[FRAME_LENGTH_MAX];
	const struct piece piece = {bytes, length};
	struct frame frames[BURST_FRAMES_MAX];
	struct placed placed;
	unsigned count;

	for (unsigned i = 0; i < n; i++)
		frames[i] = (struct frame){{&piece, 0}, length, 0};
	count = memif_place_frames(ring, frames, n, &placed);
	must(count <= n, "no frame twice");
	for (unsigned i = 0; i < count; i++) {
		must_be_inside(end, placed.frames[i].data, placed.frames[i].length);
		memset(placed.frames[i].data, 0x5a, placed.frames[i].length);
	}
	memif_send_placed(ring, &placed, count);
	frames_sent += count;
}

// As a monitor and a generator do: where the frames lie.
static void look_at_spans(const struct end *end, struct memif_ring *ring, unsigned n)
{
	struct vnf_frame spans[BURST_FRAMES_MAX];
	struct view view;
	unsigned slots = memif_ring_peek_spans(ring, &view, spans, n);
	uint8_t sum = 0;

	must(slots <= n && slots == view.batch.count, "no more than asked for");
	for (unsigned i = 0; i < slots; i++) {
		must(spans[i].length > 0 && spans[i].length <= FRAME_LENGTH_MAX, "a frame has bytes");
		must_be_inside(end, spans[i].data, spans[i].length);
		sum = (uint8_t)(sum + spans[i].data[0] + spans[i].data[spans[i].length - 1]);
	}
	bytes_read += sum;
	frames_seen += slots;
	memif_ring_release(ring, slots);
}

static void write_in_place(const struct end *end, struct memif_ring *ring, unsigned n, uint16_t length)
{
	const uint16_t written = RTE_MAX(length, (uint16_t)MEMIF_LEND_MIN);
	static uint8_t spare[MEMIF_SPARE_BYTES];
	uint16_t lengths[BURST_FRAMES_MAX];
	uint8_t *data[BURST_FRAMES_MAX];
	uint64_t too_long = 0;
	unsigned lent, taken;

	for (unsigned i = 0; i < n; i++)
		lengths[i] = length;
	ring->spare = spare;
	lent = memif_ring_reserve(ring, lengths, data, n);
	must(lent <= n, "no more than asked for");
	for (unsigned i = 0; i < lent; i++) {
		if (data[i] != spare)
			must_be_inside(end, data[i], written);
		memset(data[i], 0x5a, written);
	}
	if (lent == 0)
		return;
	taken = memif_ring_publish(ring, lent, &too_long);
	must(taken <= lent && too_long <= taken, "no frame twice");
	frames_sent += taken - too_long;
}

// What has come of one pair is sent on with the other, as a patch does.
static void hand_on(struct memif_ring *from, struct memif_ring *to, unsigned n)
{
	struct frames_lost lost = {0};
	struct view view;
	unsigned passed;

	memif_ring_peek_unread(from, &view, n, &lost);
	must(memif_ring_can_pass(from, to), "both have one pool");
	passed = memif_ring_pass(from, to, view.frames, view.count);
	must(passed <= view.count, "no frame twice");
	frames_passed += passed;
	memif_ring_release(from, view.batch.count);
	faults += from->fault != MEMIF_OK;
}

static void poll_end(struct end *end, struct input *in)
{
	uint8_t which = input_byte(in);
	unsigned pair = which & 1, way = which >> 1 & 1, n = 1 + (which >> 2) % BURST_FRAMES_MAX, word;
	struct memif_ring *ring = &end->rings[pair][way];

	if (!end->there[pair][way])
		return;
	if (!end->link.config.server && ring->receives && which & 0x80) {
		hand_on(ring, &end->rings[pair ^ 1][MEMIF_TO_SERVER], n);
		return;
	}
	word = ring->receives ? 0 : input_word(in);
	if (ring->receives && which & 0x80)
		look_at_spans(end, ring, n);
	else if (ring->receives)
		look(end, ring, n);
	else if (end->link.config.server && which & 0x80)
		write_in_place(end, ring, n, (uint16_t)(1 + word % FRAME_LENGTH_MAX));
	else if (word & 1)
		place(end, ring, n, 1 + word % FRAME_LENGTH_MAX);
	else
		put(ring, n, 1 + word % FRAME_LENGTH_MAX);
	if (!ring->receives)
		memif_ring_warm(ring);
	faults += ring->fault != MEMIF_OK;
}

// Anywhere in the memory, or into what is looked at: indices and descriptors.
static void scribble(struct end *end, struct input *in)
{
	uint8_t which = input_byte(in);
	struct memif_ring *ring = &end->rings[which & 1][which >> 1 & 1];
	struct memif_descriptor *d;

	if (which & 0x80) {
		uint32_t at = (uint32_t)input_word(in) << 2;

		if (end->shared && at < end->bytes)
			end->shared[at] = input_byte(in);
		return;
	}
	if (!end->there[which & 1][which >> 1 & 1])
		return;
	d = &ring->shared->descriptors[(which >> 2) & (ring->size - 1)];
	switch (input_byte(in) % 7) {
	case 0:
		ring->shared->head = (uint16_t)(ring->at + input_byte(in));
		break;
	case 1:
		ring->shared->tail = (uint16_t)(ring->at + input_byte(in));
		break;
	case 2:
		d->flags = input_byte(in);
		break;
	case 3:
		d->region = input_byte(in) % 3;
		break;
	case 4:
		d->length = input_word(in);
		break;
	case 5:
		d->offset = (uint32_t)input_word(in) << 3;
		break;
	case 6:
		d->length = UINT32_MAX - input_word(in);
		break;
	}
}

// --- Messages to a server --------------------------------------------------------------------------------

static void make_message(struct memif_message *message, struct input *in, unsigned *made)
{
	static const uint8_t usual[] = {MEMIF_INIT,     MEMIF_ADD_REGION, MEMIF_ADD_RING, MEMIF_ADD_RING,
	                                MEMIF_ADD_RING, MEMIF_ADD_RING,   MEMIF_CONNECT,  MEMIF_DISCONNECT};
	unsigned n = *made;

	*message = (struct memif_message){.type = usual[RTE_MIN(n, RTE_DIM(usual) - 1)]};
	switch (message->type) {
	case MEMIF_INIT:
		message->init.version = MEMIF_VERSION;
		break;
	case MEMIF_ADD_REGION:
		message->region.bytes = MEMORY;
		break;
	case MEMIF_ADD_RING:
		message->ring.flags = (n - 2) & 1;
		message->ring.index = (uint16_t)((n - 2) >> 1);
		message->ring.offset = (n - 2) * 4096;
		message->ring.log2_size = LOG2_SIZE;
		memcpy(memory + message->ring.offset, &(uint32_t){MEMIF_COOKIE}, sizeof(uint32_t));
		break;
	}
	++*made;
}

static bool say(struct end *end, struct input *in, unsigned *made)
{
	uint8_t odd = input_byte(in);
	struct memif_message message, answer;
	enum peer_refusal why;
	int fd = -1, answer_fd;

	make_message(&message, in, made);
	if (odd & 1)
		message.type = input_byte(in) % 10;
	for (unsigned i = 0; i < (odd >> 1 & 3); i++)
		message.bytes[input_byte(in) % 24] = input_byte(in);
	if (message.type == MEMIF_ADD_REGION)
		fd = odd & 8 ? event_fd : memory_fd;
	if (message.type == MEMIF_ADD_RING)
		fd = odd & 8 ? memory_fd : event_fd;
	if (odd & 16)
		fd = odd & 32 ? -1 : memory_fd;
	why = memif_tell(&end->link, &message, fd, &answer, &answer_fd);
	must(answer_fd == -1, "a server gives nothing away");
	accepted += why == PEER_ACCEPTED;
	if (why || end->link.gone)
		return false;
	if (answer.type == MEMIF_CONNECTED)
		open_rings(end);
	return true;
}

// --- An input --------------------------------------------------------------------------------------------

static const struct memif_link_config served = {
        .server = true, .name = "fuzz", .pairs = PAIRS, .memory_max = UINT64_C(1) << 30};

static void server_end(struct input *in)
{
	struct end end = {.shared = memory, .bytes = MEMORY};
	struct memif_message first;
	unsigned made = 0;
	bool goes_on = true;

	memset(memory, 0, 1 << 15);
	memif_link_begin(&end.link, &served, &first);
	for (unsigned step = 0; goes_on && in->left && step < STEPS_MAX; step++) {
		if (!end.link.connected)
			goes_on = say(&end, in, &made);
		else if (step & 1)
			scribble(&end, in);
		else
			poll_end(&end, in);
	}
	memif_link_end(&end.link);
}

// The other end is ours until it is connected.
static void client_end(struct input *in)
{
	const struct memif_link_config driven = {
	        .name = "fuzz", .pairs = PAIRS, .log2_size = LOG2_SIZE, .shares_buffers = input_byte(in) & 1};
	struct end end = {0};
	struct memif_link server;

	must(memif_connect(&server, &served, &end.link, &driven), "both ends connect");
	end.shared = server.memory.guest.regions[0].host;
	end.bytes = server.memory.guest.regions[0].size;
	open_rings(&end);
	for (unsigned step = 0; in->left && step < STEPS_MAX; step++)
		if (step & 1)
			scribble(&end, in);
		else
			poll_end(&end, in);
	memif_link_end(&server);
	memif_link_end(&end.link);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	unsigned files = open_files();

	if (input_byte(&in) & 1)
		client_end(&in);
	else
		server_end(&in);
	must(open_files() == files, "no descriptor is left");
	return 0;
}

void fuzz_report(void)
{
	printf("%lu messages accepted, %lu times connected, %lu frames seen, %lu sent, %lu passed, %lu faults\n",
	       accepted, connected, frames_seen, frames_sent, frames_passed, faults);
}
