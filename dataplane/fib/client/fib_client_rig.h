// SPDX-License-Identifier: BSD-3-Clause
// The client, the forwarder's side, and between them a link that loses, repeats and delays frames both ways.
#pragma once

#include "fib/fib_rig.h"
#include "fib/fib_session.h"
#include "fib/client/planebench_fib.h"

enum { VNF = 1, LINK_MAX = 1024, FRAME_MAX = 1514, TICK_NS = 1000000, ROUTES = 5000 };

struct link_frame {
	uint64_t due_ns;
	bool to_forwarder;
	unsigned length;
	uint8_t bytes[FRAME_MAX];
};

static struct rig {
	struct fib_session session;
	struct fib_client *client;
	struct link_frame *frames[LINK_MAX];
	unsigned frame_count;
	unsigned loss, repeat, delay_ns; // of 100, of 100, at most
	uint64_t now_ns;
	unsigned refused[FIB_CODES], lost;
	struct fib_client_refusal last;
} rig;

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
static uint64_t random_state;

static inline unsigned draw(unsigned n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned)(random_state >> 33) % n;
}

// --- The link -------------------------------------------------------------------------------------------

static inline void frame_put(const uint8_t *bytes, unsigned length, bool to_forwarder)
{
	for (unsigned copies = 1 + (draw(100) < rig.repeat); copies; copies--) {
		struct link_frame *frame;

		if (draw(100) < rig.loss || rig.frame_count == LINK_MAX)
			continue;
		frame = malloc(sizeof(*frame));
		frame->length = length;
		frame->to_forwarder = to_forwarder;
		frame->due_ns = rig.now_ns + (rig.delay_ns ? draw(rig.delay_ns) : 0);
		memcpy(frame->bytes, bytes, length);
		rig.frames[rig.frame_count++] = frame;
	}
}

static inline void send_frame(void *context, const uint8_t *bytes, unsigned length)
{
	frame_put(bytes, length, true);
}

static inline void frame_arrives(struct link_frame *frame)
{
	unsigned length = frame->length;

	if (!frame->to_forwarder) {
		fib_client_received(rig.client, frame->bytes, length, rig.now_ns);
		return;
	}
	length = fib_session_handle(&rig.session, frame->bytes, length, rig.now_ns);
	assert_int_equal(length, 60);
	frame_put(frame->bytes, length, false);
}

// One after another, as they are due; a link without delay keeps their order.
static inline void link_run(void)
{
	for (unsigned i = 0; i < rig.frame_count;) {
		struct link_frame *frame = rig.frames[i];

		if (frame->due_ns > rig.now_ns) {
			i++;
			continue;
		}
		memmove(&rig.frames[i], &rig.frames[i + 1], (--rig.frame_count - i) * sizeof(frame));
		frame_arrives(frame);
		free(frame);
	}
}

static inline void tick(void)
{
	rig.now_ns += TICK_NS;
	fib_client_tick(rig.client, rig.now_ns);
	link_run();
	fib_session_tick(&rig.session, true, rig.now_ns);
	if (fib_trylock(rig.session.fib)) {
		fib_sweep(rig.session.fib, 64);
		fib_unlock(rig.session.fib);
	}
}

static inline struct fib_client_status status(void)
{
	struct fib_client_status status;

	fib_client_read(rig.client, &status);
	return status;
}

static inline void settle(void)
{
	for (unsigned i = 0; i < 100000; i++) {
		tick();
		if (status().unanswered == 0)
			return;
	}
	fail_msg("%u messages are unanswered", status().unanswered);
}

// --- What is announced ----------------------------------------------------------------------------------

static inline void refused(void *context, const struct fib_client_refusal *refusal)
{
	rig.refused[refusal->code]++;
	rig.last = *refusal;
}

static inline void lost(void *context)
{
	rig.lost++;
}

static inline void say_hop(uint16_t number, uint8_t wire)
{
	const struct fib_client_hop hop = {
	        .number = number, .kind = FIB_HOP_FORWARD, .wire = wire, .destination = {2, 2, 2, 2, 2, 2}};

	while (fib_client_set_hop(rig.client, &hop) == -EAGAIN)
		tick();
}

static inline struct fib_client_route route_of(unsigned i, uint16_t hop)
{
	struct fib_client_route route = {.family = i % 8 ? 4 : 6, .hop = hop};

	route.length = route.family == 4 ? 32 : 128;
	route.address[0] = 10;
	route.address[2] = (uint8_t)(i >> 8);
	route.address[3] = (uint8_t)i;
	return route;
}

static inline void say_route(enum fib_op op, unsigned i, uint16_t hop)
{
	const struct fib_client_route route = route_of(i, hop);
	int rc;

	while ((rc = fib_client_set_route(rig.client, op, &route)) == -EAGAIN)
		tick();
	assert_int_equal(rc, 0);
}

static inline uint8_t port_to(unsigned i)
{
	const struct fib_client_route route = route_of(i, 0);
	const struct fib_hop *hop = find(rig.session.fib, VNF, route.address, route.family);

	return hop->kind == FIB_HOP_NONE ? 0 : hop->port;
}

static inline int open_rig(void **state)
{
	const struct fib_client_config config = {.session = 100,
	                                         .mac = {2, 0, 0, 0, 0, 1},
	                                         .send = send_frame,
	                                         .refused = refused,
	                                         .lost = lost};

	random_state = 88172645463325252;
	memset(&rig, 0, sizeof(rig));
	rig.now_ns = 1;
	rig.session = (struct fib_session){.fib = fib_of(2 * ROUTES, ROUTES),
	                                   .vnf = VNF,
	                                   .wires = 4,
	                                   .ports = {1, 2, 3, 4},
	                                   .grace_tsc = UINT64_C(60000000000),
	                                   .hold_tsc = UINT64_C(3000000000)};
	memcpy(rig.session.mac, mac, sizeof(mac));
	vnf_of(rig.session.fib, VNF, 2 * ROUTES, 8);
	fib_unlock(rig.session.fib);
	rig.client = fib_client_create(&config, rig.now_ns);
	assert_non_null(rig.client);
	return 0;
}

static inline int close_rig(void **state)
{
	while (rig.frame_count)
		free(rig.frames[--rig.frame_count]);
	fib_client_destroy(rig.client);
	fib_destroy(rig.session.fib);
	return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_rig, close_rig)
