// SPDX-License-Identifier: BSD-3-Clause
// A memif from end to end, without sockets: what both ends say, and the frames between their rings, byte by byte. And an
// end that lies harms its own ring only.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "memif/memif_rig.h"
#include "test/each_isa.h"

static void there_and_back(struct memif_ring *to, struct memif_ring *from)
{
	unsigned number = 0;

	for (uint32_t length = 1; length <= LONGEST; length = length * 5 / 4 + 1) {
		unsigned slots = (length + MEMIF_BUFFER_BYTES - 1) / MEMIF_BUFFER_BYTES;

		for (unsigned n = 1; n * slots <= SIZE && n <= BATCH; n += 5) {
			assert_int_equal(send_frames(to, number, n, length), n);
			assert_int_equal(take_frames(from, number, n, length), n * slots);
			number += n;
		}
	}
}

static void every_length_both_ways(void **state)
{
	struct rig r;

	rig_open(&r);
	there_and_back(&r.out, &r.in);
	there_and_back(&r.back, &r.home);
	rig_close(&r);
}

// --- Two clients that share their buffers: one receives, the other sends -----------------------------------------

struct passing {
	struct memif_link server[2], client[2];
	struct memif_ring feed, home, out,
	        in; // to the first client, its end; of the second client, its other end
};

static void passing_open(struct passing *p, bool shared)
{
	const struct memif_link_config driven = {
	        .name = "c", .pairs = PAIRS, .log2_size = LOG2_SIZE, .shares_buffers = shared};

	for (unsigned i = 0; i < 2; i++)
		assert_true(memif_connect(&p->server[i], &served, &p->client[i], &driven));
	assert_true(memif_link_open_ring(&p->server[0], 0, MEMIF_TO_CLIENT, &p->feed));
	assert_true(memif_link_open_ring(&p->client[0], 0, MEMIF_TO_CLIENT, &p->home));
	assert_true(memif_link_open_ring(&p->client[1], 0, MEMIF_TO_SERVER, &p->out));
	assert_true(memif_link_open_ring(&p->server[1], 0, MEMIF_TO_SERVER, &p->in));
	memif_ring_start(&p->home);
	memif_ring_start(&p->out);
}

static void passing_close(struct passing *p)
{
	for (unsigned i = 0; i < 2; i++) {
		memif_link_end(&p->server[i]);
		memif_link_end(&p->client[i]);
	}
}

// Hand on all that has come. Returns how many frames were passed; those that were not are dropped.
static unsigned hand_on(struct passing *p)
{
	struct frames_lost lost = {0};
	struct view view;
	unsigned passed = 0;

	while (memif_ring_peek_unread(&p->home, &view, BURST_FRAMES_MAX, &lost)) {
		passed += memif_ring_pass(&p->home, &p->out, view.frames, view.count);
		memif_ring_release(&p->home, view.batch.count);
	}
	return passed;
}

// Each buffer of the first client in exactly one slot of either.
static void no_buffer_is_lost(const struct passing *p)
{
	const struct shm_pool *pool = p->client[0].pool;
	unsigned char seen[SIZE * 8 * PAIRS] = {0};

	for (unsigned c = 0; c < 2; c++)
		for (unsigned i = 0; i < SIZE * 2 * PAIRS; i++) {
			size_t number = (size_t)(p->client[c].pieces[i].data - pool->at) /
			                shm_pool_stride(MEMIF_BUFFER_BYTES);

			assert_in_range(number, 0, sizeof(seen) - 1);
			assert_int_equal(seen[number]++, 0);
		}
}

static void frames_pass_without_a_copy(void **state)
{
	struct passing p;
	unsigned number = 0;

	passing_open(&p, true);
	assert_true(memif_ring_can_pass(&p.home, &p.out));
	for (uint32_t length = 1; length <= MEMIF_BUFFER_BYTES; length = length * 5 / 4 + 1)
		for (unsigned n = 1; n <= BATCH; n += 5, number += n - 5) {
			uint8_t *came = p.home.pieces[p.home.at & (SIZE - 1)].data;
			unsigned slot = p.out.at & (SIZE - 1);

			assert_int_equal(send_frames(&p.feed, number, n, length), n);
			assert_int_equal(hand_on(&p), n);
			assert_ptr_equal(p.out.pieces[slot].data, came);
			assert_int_equal(take_frames(&p.in, number, n, length), n);
			no_buffer_is_lost(&p);
		}
	passing_close(&p);
}

static void a_ring_that_is_full_drops_and_keeps_its_buffers(void **state)
{
	struct passing p;

	passing_open(&p, true);
	send_frames(&p.feed, 0, BATCH, 60);
	assert_int_equal(hand_on(&p), BATCH);
	send_frames(&p.feed, BATCH, BATCH, 1000);
	assert_int_equal(hand_on(&p), BATCH);
	send_frames(&p.feed, 2 * BATCH, BATCH, 60);
	assert_int_equal(hand_on(&p), 0);
	no_buffer_is_lost(&p);
	take_frames(&p.in, 0, BATCH, 60);
	take_frames(&p.in, BATCH, BATCH, 1000);
	send_frames(&p.feed, 0, 3, 60);
	assert_int_equal(hand_on(&p), 3);
	take_frames(&p.in, 0, 3, 60);
	passing_close(&p);
}

// Passed on by pieces, or changed by a task: the caller copies it, and what follows.
static void what_is_not_one_buffer_is_left_to_a_copy(void **state)
{
	struct frames_lost lost = {0};
	uint64_t too_long = 0;
	struct view view;
	struct passing p;

	passing_open(&p, true);
	send_frames(&p.feed, 0, 1, 60);
	send_frames(&p.feed, 1, 1, 3000);
	send_frames(&p.feed, 2, 1, 60);
	assert_int_equal(memif_ring_peek(&p.home, &view, BURST_FRAMES_MAX, &lost), 4);
	assert_int_equal(view.count, 3);
	assert_int_equal(memif_ring_pass(&p.home, &p.out, view.frames, 3), 1);
	assert_int_equal(memif_deliver(&p.out, &view.frames[1], 2, &too_long), 2);
	memif_ring_release(&p.home, view.batch.count);
	take_frames(&p.in, 0, 1, 60);
	take_frames(&p.in, 1, 1, 3000);
	take_frames(&p.in, 2, 1, 60);
	send_frames(&p.feed, 3, 1, 60);
	memif_ring_peek(&p.home, &view, BURST_FRAMES_MAX, &lost);
	view.frames[0].length--; // a task has cut it
	assert_int_equal(memif_ring_pass(&p.home, &p.out, view.frames, 1), 0);
	no_buffer_is_lost(&p);
	passing_close(&p);
}

// What a server writes into descriptors never becomes a place that a client passes on.
static void a_server_cannot_have_another_buffer_passed(void **state)
{
	struct passing p;

	passing_open(&p, true);
	send_frames(&p.feed, 0, 1, 60);
	p.home.shared->descriptors[0].offset = UINT32_MAX;
	p.home.shared->descriptors[0].region = 7;
	p.out.shared->descriptors[0].offset = 12345;
	assert_int_equal(hand_on(&p), 1);
	take_frames(&p.in, 0, 1, 60);
	for (unsigned i = 0; i < 2; i++, p.out.shared->tail = SIZE + 1) { // it looks when it has to
		send_frames(&p.feed, 1, BATCH, 60);
		assert_int_equal(hand_on(&p), i ? 0 : BATCH);
	}
	assert_int_equal(p.out.fault, MEMIF_BAD_INDEX);
	no_buffer_is_lost(&p);
	passing_close(&p);
}

static void pools_of_their_own_are_not_seen_by_others(void **state)
{
	struct passing p;

	passing_open(&p, false);
	assert_false(memif_ring_can_pass(&p.home, &p.out));
	assert_ptr_not_equal(p.client[0].pool, p.client[1].pool);
	assert_int_equal(p.client[0].pool->total, PAIRS * 2 * SIZE);
	assert_int_equal(fcntl(p.client[0].pool->fd, F_GET_SEALS) & F_SEAL_SHRINK, F_SEAL_SHRINK);
	passing_close(&p);
}

// A connection that ends gives back what it has, which may be another's of the beginning; the last one frees all.
static void a_pool_lives_as_long_as_it_is_used(void **state)
{
	const struct shm_pool *pool;
	struct passing p;

	passing_open(&p, true);
	pool = p.client[0].pool;
	assert_ptr_equal(p.client[1].pool, pool);
	assert_int_equal(pool->total - pool->idle_count, 2 * PAIRS * 2 * SIZE);
	send_frames(&p.feed, 0, BATCH, 60);
	assert_int_equal(hand_on(&p), BATCH);
	memif_link_end(&p.server[0]);
	memif_link_end(&p.client[0]);
	assert_int_equal(pool->users, 1);
	assert_int_equal(pool->total - pool->idle_count, PAIRS * 2 * SIZE);
	take_frames(&p.in, 0, BATCH, 60);
	memif_link_end(&p.server[1]);
	memif_link_end(&p.client[1]);
}

static void a_full_ring_takes_no_more(void **state)
{
	struct rig r;

	rig_open(&r);
	for (unsigned way = 0; way < 2; way++) {
		struct memif_ring *to = way ? &r.back : &r.out, *from = way ? &r.home : &r.in;

		assert_int_equal(send_frames(to, 0, BATCH, 60), BATCH);
		assert_int_equal(send_frames(to, BATCH, BATCH, 60), BATCH);
		assert_int_equal(send_frames(to, 2 * BATCH, BATCH, 60), 0);
		take_frames(from, 0, 5, 60);
		assert_int_equal(send_frames(to, 2 * BATCH, 3, 3000), 2); // five slots: two chains and a rest
		take_frames(from, 5, BATCH, 60);
		take_frames(from, 5 + BATCH, 11, 60);
		assert_int_equal(take_frames(from, 2 * BATCH, 2, 3000), 4);
	}
	rig_close(&r);
}

static void a_frame_too_long_for_any_chain_blocks_nothing(void **state)
{
	static uint8_t bytes[FRAME_LENGTH_MAX];
	const struct piece piece = {bytes, sizeof(bytes)};
	const struct frame frames[] = {{{&piece, 0}, sizeof(bytes), 0}, {{&piece, 0}, 60, 0}};
	uint64_t too_long = 0;
	struct frames_lost lost = {0};
	struct view view;
	struct rig r;

	rig_open(&r);
	r.out.size = r.in.size = 16; // holds 32 KB
	assert_int_equal(memif_deliver(&r.out, frames, 2, &too_long), 2);
	assert_int_equal(too_long, 1);
	assert_int_equal(memif_ring_peek(&r.in, &view, 32, &lost), 1);
	rig_close(&r);
}

static void the_doorbell_is_rung_for_who_sleeps(void **state)
{
	struct rig r;

	rig_open(&r);
	assert_false(doorbell_pay(&r.out.bell));
	send_frames(&r.out, 0, 1, 60);
	assert_false(doorbell_look(&r.out.bell)); // both ends poll
	r.in.shared->flags = 0;
	assert_true(doorbell_look(&r.out.bell)); // the first look may have come too early
	assert_false(doorbell_pay(&r.out.bell));
	send_frames(&r.out, 1, 1, 60);
	assert_true(doorbell_pay(&r.out.bell));
	assert_false(doorbell_pay(&r.out.bell));
	r.in.shared->flags = MEMIF_MASK_DOORBELL;
	send_frames(&r.out, 2, 1, 60);
	assert_false(doorbell_pay(&r.out.bell)); // who falls asleep from now on has seen it
	r.in.shared->flags = 0;
	assert_false(doorbell_look(&r.out.bell));
	rig_close(&r);
}

// A sender with room in each poll does not ask for the peer's line each time, but does so before long.
static void a_sender_that_never_rests_rings_too(void **state)
{
	struct rig r;

	rig_open(&r);
	for (unsigned way = 0; way < 2; way++) {
		struct memif_ring *to = way ? &r.back : &r.out;
		unsigned sends = 0;

		to->shared->flags = 0;
		do {
			assert_int_equal(send_frames(to, sends, 1, 60), 1);
			to->looked = false;
			sends++;
		} while (!memif_ring_look(to) && sends < 100);
		assert_in_range(sends, 1, MEMIF_LOOK_EACH);
	}
	rig_close(&r);
}

// --- Lies ------------------------------------------------------------------------------------------------

static unsigned look(struct memif_ring *ring, struct frames_lost *lost)
{
	struct view view;
	unsigned slots = memif_ring_peek(ring, &view, 32, lost);

	memif_ring_release(ring, slots);
	return view.count;
}

static void an_index_beyond_the_ring(void **state)
{
	struct frames_lost lost = {0};
	struct rig r;

	rig_open(&r);
	r.in.shared->head = SIZE + 1;
	assert_int_equal(look(&r.in, &lost), 0);
	assert_int_equal(r.in.fault, MEMIF_BAD_INDEX);
	r.home.shared->tail = SIZE + 1;
	assert_int_equal(look(&r.home, &lost), 0);
	assert_int_equal(r.home.fault, MEMIF_BAD_INDEX);
	r.out.shared->tail = 1; // more given back than was sent
	assert_int_equal(send_frames(&r.out, 0, BATCH, 60), BATCH);
	assert_int_equal(send_frames(&r.out, 0, BATCH, 60), BATCH);
	assert_int_equal(r.out.fault, MEMIF_OK);
	r.out.shared->tail = 2 * BATCH + 1;
	assert_int_equal(send_frames(&r.out, 0, 1, 60), 0);
	assert_int_equal(r.out.fault, MEMIF_BAD_INDEX);
	r.back.shared->head = SIZE + 1;
	assert_int_equal(send_frames(&r.back, 0, 1, 60), 0);
	assert_int_equal(r.back.fault, MEMIF_BAD_INDEX);
	assert_int_equal(look(&r.in, &lost), 0); // stays stopped
	rig_close(&r);
}

// Between the plain frame and the end of the chain of one view.
static void an_index_that_goes_back(void **state)
{
	struct frames_lost lost = {0};
	struct view view;
	struct rig r;

	rig_open(&r);
	assert_int_equal(send_frames(&r.out, 0, 5, 60), 5);
	assert_int_equal(memif_ring_peek(&r.in, &view, 2, &lost), 2); // five are known
	for (unsigned i = 1; i < 5; i++)
		r.in.shared->descriptors[i].flags = MEMIF_NEXT;
	r.in.shared->head = 0;
	assert_int_equal(memif_ring_peek(&r.in, &view, 2, &lost), 1);
	assert_int_equal(r.in.fault, MEMIF_BAD_INDEX);
	rig_close(&r);
}

static void descriptors_outside_of_the_regions(void **state)
{
	const struct lie lies[] = {
	        {2, 0, 60}, {0, UINT32_MAX - 10, 60}, {0, 4096, UINT32_MAX}, {0xffff, 0, 1}};
	struct frames_lost lost = {0};

	for (unsigned i = 0; i < RTE_DIM(lies); i++) {
		struct rig r;

		rig_open(&r);
		send_frames(&r.out, 0, 2, 60);
		lie_tell(&lies[i], &r.in, 1);
		assert_int_equal(look(&r.in, &lost), 1); // what came before is good
		assert_int_equal(look(&r.in, &lost), 0);
		assert_int_equal(r.in.fault, MEMIF_BAD_ADDRESS);
		lie_tell(&lies[i], &r.back, 0);
		assert_int_equal(send_frames(&r.back, 0, 1, 60), 0);
		assert_int_equal(r.back.fault, MEMIF_BAD_ADDRESS);
		rig_close(&r);
	}
}

// What a server writes into the descriptors of a client moves none of the client's buffers.
static void a_client_knows_its_buffers(void **state)
{
	struct frames_lost lost = {0};
	struct rig r;

	rig_open(&r);
	r.home.shared->descriptors[0].region = 7;
	r.home.shared->descriptors[0].offset = 1;
	r.home.shared->descriptors[0].length = MEMIF_BUFFER_BYTES + 1;
	r.home.shared->tail = 1;
	assert_int_equal(look(&r.home, &lost), 0);
	assert_int_equal(r.home.fault, MEMIF_BAD_LENGTH);
	r.out.shared->descriptors[0].offset = UINT32_MAX;
	assert_int_equal(send_frames(&r.out, 0, 1, 60), 1);
	rig_close(&r);
}

// Each slot says 64 KB, all at one place: what a poll reads is bounded all the same.
static void bytes_of_a_poll_are_bounded(void **state)
{
	const struct lie all = {.region = MEMIF_BUFFER_REGION, .length = FRAME_LENGTH_MAX};
	const unsigned most = (POLL_BYTES_MAX + FRAME_LENGTH_MAX - 1) / FRAME_LENGTH_MAX;
	struct vnf_frame spans[BURST_FRAMES_MAX];
	struct frames_lost lost = {0};
	struct view view;
	struct rig r;

	rig_open(&r);
	for (unsigned slot = 0; slot < SIZE; slot++)
		lie_tell(&all, &r.in, slot);
	r.in.shared->head = SIZE;
	assert_int_equal(memif_ring_peek_spans(&r.in, &view, spans, SIZE), most);
	assert_int_equal(memif_ring_peek(&r.in, &view, SIZE, &lost), most);
	assert_int_equal(view.count, most);
	memif_ring_release(&r.in, most);
	r.in.shared->descriptors[most].flags = MEMIF_NEXT; // no plain frame comes first
	assert_in_range(memif_ring_peek(&r.in, &view, SIZE, &lost), 1, most + 1);
	assert_int_equal(r.in.fault, MEMIF_OK);
	rig_close(&r);
}

static void chains_that_do_not_end(void **state)
{
	struct frames_lost lost = {0};
	struct rig r;

	rig_open(&r);
	for (unsigned i = 0; i < SIZE; i++) {
		r.in.shared->descriptors[i].flags = MEMIF_NEXT;
		r.in.shared->descriptors[i].length = 1;
	}
	r.in.shared->head = SIZE - 1; // its end may come
	assert_int_equal(look(&r.in, &lost), 0);
	assert_int_equal(r.in.fault, MEMIF_OK);
	r.in.shared->head = SIZE;
	assert_int_equal(look(&r.in, &lost), 0);
	assert_int_equal(r.in.fault, MEMIF_BAD_CHAIN);
	rig_close(&r);
}

static void frames_without_a_byte_are_counted(void **state)
{
	struct frames_lost lost = {0};
	struct rig r;

	rig_open(&r);
	send_frames(&r.out, 0, 3, 60);
	r.in.shared->descriptors[1].length = 0;
	assert_int_equal(look(&r.in, &lost), 2);
	assert_int_equal(lost.bad, 1);
	assert_int_equal(r.in.at, 3);
	rig_close(&r);
}

// --- Messages --------------------------------------------------------------------------------------------

// A client's messages, each in its turn, with one changed.
struct said {
	struct memif_link server;
	struct memif_message message, answer;
	int memory, bell, answer_fd;
};

static void said_open(struct said *s)
{
	s->memory = memfd_create("memif_test", MFD_CLOEXEC);
	s->bell = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(ftruncate(s->memory, 1 << 16), 0);
	memif_link_begin(&s->server, &served, &s->message);
}

static void said_close(struct said *s)
{
	memif_link_end(&s->server);
	close(s->memory);
	close(s->bell);
}

static enum peer_refusal say(struct said *s, int fd)
{
	return memif_tell(&s->server, &s->message, fd, &s->answer, &s->answer_fd);
}

static void say_init(struct said *s)
{
	s->message = (struct memif_message){.type = MEMIF_INIT, .init = {.version = MEMIF_VERSION}};
}

static void say_region(struct said *s, uint16_t index, uint64_t bytes)
{
	s->message = (struct memif_message){.type = MEMIF_ADD_REGION};
	s->message.region.index = index;
	s->message.region.bytes = bytes;
}

static void say_ring(struct said *s, uint16_t index, uint32_t offset)
{
	s->message = (struct memif_message){.type = MEMIF_ADD_RING};
	s->message.ring.flags = MEMIF_RING_TO_SERVER;
	s->message.ring.index = index;
	s->message.ring.offset = offset;
	s->message.ring.log2_size = 5;
}

static void what_a_server_refuses(void **state)
{
	const uint32_t cookie = MEMIF_COOKIE;
	struct said s;

	said_open(&s);
	say_region(&s, 0, 1 << 16);
	assert_int_equal(say(&s, s.memory), PEER_REFUSED_NOT_NEGOTIATED);
	say_init(&s);
	s.message.init.version++;
	assert_int_equal(say(&s, -1), PEER_REFUSED_VERSION);
	say_init(&s);
	s.message.init.id = 1;
	assert_int_equal(say(&s, -1), PEER_REFUSED_VALUE);
	say_init(&s);
	assert_int_equal(say(&s, s.bell), PEER_REFUSED_FILES);
	assert_int_equal(say(&s, -1), PEER_ACCEPTED);
	assert_int_equal(say(&s, -1), PEER_REFUSED_NOT_NEGOTIATED);

	say_region(&s, 0, 1 << 16);
	assert_int_equal(say(&s, -1), PEER_REFUSED_FILES);
	assert_int_equal(say(&s, s.bell), PEER_REFUSED_MEMORY_FILE);
	say_region(&s, 1, 1 << 16);
	assert_int_equal(say(&s, s.memory), PEER_REFUSED_VALUE);
	say_region(&s, 0, (1 << 16) + 1);
	assert_int_equal(say(&s, s.memory), PEER_REFUSED_MEMORY_END);
	say_region(&s, 0, 0);
	assert_int_equal(say(&s, s.memory), PEER_REFUSED_MEMORY_END);
	for (uint16_t i = 0; i < GUEST_REGIONS_MAX; i++) {
		say_region(&s, i, 1 << 16);
		assert_int_equal(say(&s, s.memory), PEER_ACCEPTED);
	}
	say_region(&s, GUEST_REGIONS_MAX, 1 << 16);
	assert_int_equal(say(&s, s.memory), PEER_REFUSED_MEMORY_LIMIT);

	say_ring(&s, PAIRS, 0);
	assert_int_equal(say(&s, s.bell), PEER_REFUSED_RING);
	say_ring(&s, 0, 0);
	assert_int_equal(say(&s, s.memory), PEER_REFUSED_NO_EVENTFD);
	s.message.ring.log2_size = MEMIF_LOG2_SIZE_MAX + 1;
	assert_int_equal(say(&s, s.bell), PEER_REFUSED_VALUE);
	say_ring(&s, 0, 0);
	s.message.ring.private_bytes = 1;
	assert_int_equal(say(&s, s.bell), PEER_REFUSED_VALUE);
	say_ring(&s, 0, 0);
	assert_int_equal(say(&s, s.bell), PEER_ACCEPTED);
	assert_int_equal(say(&s, s.bell), PEER_REFUSED_VALUE); // again

	s.message = (struct memif_message){.type = MEMIF_CONNECT};
	assert_int_equal(say(&s, -1), PEER_REFUSED_RING); // it has no cookie
	assert_int_equal(pwrite(s.memory, &cookie, sizeof(cookie), 0), sizeof(cookie));
	assert_int_equal(say(&s, -1), PEER_ACCEPTED);
	assert_int_equal(s.answer.type, MEMIF_CONNECTED);
	say_ring(&s, 1, 0);
	assert_int_equal(say(&s, s.bell), PEER_REFUSED_NOT_NEGOTIATED);
	s.message = (struct memif_message){.type = 99};
	assert_int_not_equal(say(&s, -1), PEER_ACCEPTED);
	said_close(&s);
}

static void rings_that_are_nowhere(void **state)
{
	const uint32_t offsets[] = {1 << 16, (1 << 16) - 64, 8, UINT32_MAX - 15};

	for (unsigned i = 0; i < RTE_DIM(offsets); i++) {
		struct said s;

		said_open(&s);
		say_init(&s);
		assert_int_equal(say(&s, -1), PEER_ACCEPTED);
		say_region(&s, 0, 1 << 16);
		assert_int_equal(say(&s, s.memory), PEER_ACCEPTED);
		say_ring(&s, 0, offsets[i]);
		assert_int_equal(say(&s, s.bell), PEER_ACCEPTED);
		s.message = (struct memif_message){.type = MEMIF_CONNECT};
		assert_int_equal(say(&s, -1), PEER_REFUSED_RING);
		said_close(&s);
	}
}

static void more_memory_than_a_client_may_have(void **state)
{
	const struct memif_link_config poor = {
	        .server = true, .name = "s", .pairs = 1, .memory_max = 3 << 15};
	struct said s;

	said_open(&s);
	s.server.config = poor;
	say_init(&s);
	assert_int_equal(say(&s, -1), PEER_ACCEPTED);
	say_region(&s, 0, 1 << 16);
	assert_int_equal(say(&s, s.memory), PEER_ACCEPTED);
	say_region(&s, 1, 1 << 16);
	assert_int_equal(say(&s, s.memory), PEER_REFUSED_MEMORY_LIMIT);
	said_close(&s);
}

static void what_a_client_refuses(void **state)
{
	const struct memif_link_config driven = {.name = "c", .pairs = 1, .log2_size = LOG2_SIZE};
	struct memif_message hello, message, answer;
	struct memif_link client;
	int fd;

	memif_link_begin(&client, &served, &hello);
	memif_link_begin(&client, &driven, &message);
	message = (struct memif_message){.type = MEMIF_ACK};
	assert_int_equal(memif_tell(&client, &message, -1, &answer, &fd), PEER_REFUSED_NOT_NEGOTIATED);
	message = hello;
	message.hello.version_min++;
	assert_int_equal(memif_tell(&client, &message, -1, &answer, &fd), PEER_REFUSED_VERSION);
	assert_int_equal(memif_tell(&client, &hello, -1, &answer, &fd), PEER_ACCEPTED);
	assert_int_equal(answer.type, MEMIF_INIT);
	assert_int_equal(memif_tell(&client, &hello, -1, &answer, &fd), PEER_REFUSED_NOT_NEGOTIATED);
	message = (struct memif_message){.type = MEMIF_CONNECTED};
	assert_int_equal(memif_tell(&client, &message, -1, &answer, &fd), PEER_REFUSED_NOT_NEGOTIATED);
	message.type = MEMIF_ACK;
	for (unsigned i = 0; i < 5; i++) // two regions, two rings, and the end
		assert_int_equal(memif_tell(&client, &message, -1, &answer, &fd), PEER_ACCEPTED);
	assert_int_equal(answer.type, MEMIF_CONNECT);
	assert_int_equal(memif_tell(&client, &message, -1, &answer, &fd), PEER_REFUSED_NOT_NEGOTIATED);
	assert_int_equal(fcntl(client.region_fd, F_GET_SEALS) & F_SEAL_SHRINK, F_SEAL_SHRINK);
	memif_link_end(&client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_length_both_ways),
	        cmocka_unit_test(frames_pass_without_a_copy),
	        cmocka_unit_test(a_ring_that_is_full_drops_and_keeps_its_buffers),
	        cmocka_unit_test(what_is_not_one_buffer_is_left_to_a_copy),
	        cmocka_unit_test(a_server_cannot_have_another_buffer_passed),
	        cmocka_unit_test(pools_of_their_own_are_not_seen_by_others),
	        cmocka_unit_test(a_pool_lives_as_long_as_it_is_used),
	        cmocka_unit_test(a_full_ring_takes_no_more),
	        cmocka_unit_test(a_frame_too_long_for_any_chain_blocks_nothing),
	        cmocka_unit_test(the_doorbell_is_rung_for_who_sleeps),
	        cmocka_unit_test(a_sender_that_never_rests_rings_too),
	        cmocka_unit_test(an_index_beyond_the_ring),
	        cmocka_unit_test(an_index_that_goes_back),
	        cmocka_unit_test(descriptors_outside_of_the_regions),
	        cmocka_unit_test(a_client_knows_its_buffers),
	        cmocka_unit_test(bytes_of_a_poll_are_bounded),
	        cmocka_unit_test(chains_that_do_not_end),
	        cmocka_unit_test(frames_without_a_byte_are_counted),
	        cmocka_unit_test(what_a_server_refuses),
	        cmocka_unit_test(rings_that_are_nowhere),
	        cmocka_unit_test(more_memory_than_a_client_may_have),
	        cmocka_unit_test(what_a_client_refuses),
	};

	return RUN_FOR_EACH_ISA("memif", tests);
}
