// SPDX-License-Identifier: BSD-3-Clause
// A VNF's side of a session with fib_offload, for its tests.
#pragma once

#include "fib/fib_offload_rig.h"

// A VNF's side of a session.
struct speaker {
	unsigned vnf, port;
	uint32_t session, sequence;
};

static inline struct rig_frame say(struct speaker *s, uint8_t type, const void *records, unsigned count,
                                   unsigned bytes)
{
	struct rig_frame frame = rig_ether(HOST_OF_WIRE, s->vnf, FIB_ETHER_TYPE);
	struct fib_message *message = (struct fib_message *)(frame.bytes + 14);

	*message = (struct fib_message){.magic = RTE_BE16(FIB_MAGIC),
	                                .version = FIB_MESSAGE_VERSION,
	                                .type = type,
	                                .session = rte_cpu_to_be_32(s->session),
	                                .sequence = rte_cpu_to_be_32(++s->sequence),
	                                .count = rte_cpu_to_be_16((uint16_t)count)};
	if (type == FIB_ROUTES)
		message->reserved = RTE_BE16(4);
	if (bytes)
		memcpy(message + 1, records, bytes);
	frame.length = (uint16_t)RTE_MAX(60u, 14 + sizeof(*message) + bytes);
	return frame;
}

// Send it and take the answer: its code.
static inline unsigned answer_to(void **state, struct task *task, const struct speaker *s,
                                 const struct rig_frame *frame, uint64_t now_tsc)
{
	const struct fib_message *message;
	struct rig_frame got;

	rig_inject(state, s->port, frame);
	rig_poll(task, now_tsc);
	assert_true(rig_collect(state, s->port, &got));
	message = (const struct fib_message *)(got.bytes + 14);
	assert_int_equal(got.length, frame->length);
	assert_memory_equal(got.bytes, frame->bytes + 6, 6); // to who asked
	assert_int_equal(message->type & FIB_ACK, FIB_ACK);
	assert_int_equal(rig_came(state), 0);
	return ((const struct fib_ack *)(message + 1))->code;
}

static inline unsigned tell(void **state, struct task *task, struct speaker *s, uint8_t type,
                            const void *records, unsigned count, unsigned bytes, uint64_t now_tsc)
{
	struct rig_frame frame = say(s, type, records, count, bytes);

	return answer_to(state, task, s, &frame, now_tsc);
}

static inline unsigned tell_hop(void **state, struct task *task, struct speaker *s, uint16_t number,
                                uint8_t wire, uint8_t last, uint64_t now_tsc)
{
	const struct fib_hop_record hop = {.op = FIB_REPLACE,
	                                   .kind = FIB_HOP_FORWARD,
	                                   .number = rte_cpu_to_be_16(number),
	                                   .wire = wire,
	                                   .destination = {2, 0, 0, 0, 9, last}};

	return tell(state, task, s, FIB_NEXT_HOPS, &hop, 1, sizeof(hop), now_tsc);
}

static inline unsigned tell_route(void **state, struct task *task, struct speaker *s, uint8_t op,
                                  uint8_t last, uint16_t number, uint64_t now_tsc)
{
	const struct fib_route_record4 route = {
	        .op = op, .length = 32, .hop = rte_cpu_to_be_16(number), .address = {10, 0, 0, last}};

	return tell(state, task, s, FIB_ROUTES, &route, 1, sizeof(route), now_tsc);
}

// A session with 10.0.0.1 by its wire.
static inline struct speaker announced(void **state, struct task *task, unsigned vnf, uint8_t wire,
                                       uint32_t session)
{
	struct speaker s = {.vnf = vnf, .port = PORT1 + vnf - 1, .session = session};

	assert_int_equal(tell(state, task, &s, FIB_HELLO, NULL, 0, 0, 0), FIB_OK);
	assert_int_equal(tell_hop(state, task, &s, 0, wire, (uint8_t)vnf, 0), FIB_OK);
	assert_int_equal(tell_route(state, task, &s, FIB_ADD, 1, 0, 0), FIB_OK);
	return s;
}

// Where a packet to 10.0.0.last of a VNF goes, as rig_came().
static inline unsigned where(void **state, struct task *task, unsigned vnf, unsigned last, uint64_t now_tsc)
{
	struct rig_frame frame = rig_ipv4(vnf, HOST_OF_WIRE, last);

	return rig_send(state, task, WIRE0, &frame, now_tsc);
}
