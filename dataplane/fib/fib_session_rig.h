// SPDX-License-Identifier: BSD-3-Clause
// A session and the messages to it, made by hand one at a time; another VNF beside it that nothing may
// change.
#pragma once

#include <rte_byteorder.h>

#include "fib/fib_rig.h"
#include "fib/fib_session.h"

enum { VNF = 1, OTHER = 2, FIRST = 100, HOLD = 1000, GRACE = 10000, ETHER = 14, FRAME_MAX = 1514 };

static const uint8_t vnf_mac[6] = {2, 0, 0, 0, 0, 1}, gateway[6] = {2, 0, 0, 0, 1, 1};

struct rig {
	struct fib_session s;
	uint8_t frame[FRAME_MAX];
	unsigned length;
	uint32_t number, sequence; // of the next message
	uint64_t now;
};

static struct rig rig;

static inline struct fib_message *header(void)
{
	return (struct fib_message *)(rig.frame + ETHER);
}

static inline void *record_room(unsigned size)
{
	struct fib_message *message = header();
	void *at = rig.frame + rig.length;

	message->count = rte_cpu_to_be_16((uint16_t)(rte_be_to_cpu_16(message->count) + 1));
	rig.length += size;
	return memset(at, 0, size);
}

static inline void message(uint8_t type, uint16_t reserved)
{
	memset(rig.frame, 0xee, sizeof(rig.frame));
	memset(rig.frame, 2, 6);
	memcpy(rig.frame + 6, vnf_mac, 6);
	rig.frame[12] = 0x88;
	rig.frame[13] = 0xb5;
	*header() = (struct fib_message){
	        .magic = rte_cpu_to_be_16(FIB_MAGIC),
	        .version = FIB_MESSAGE_VERSION,
	        .type = type,
	        .session = rte_cpu_to_be_32(rig.number),
	        .sequence = rte_cpu_to_be_32(rig.sequence++),
	        .reserved = rte_cpu_to_be_16(reserved),
	};
	rig.length = ETHER + sizeof(struct fib_message);
}

static inline struct fib_hop_record *add_hop(uint16_t number, uint8_t kind)
{
	struct fib_hop_record *record = record_room(sizeof(*record));

	record->op = FIB_REPLACE;
	record->kind = kind;
	record->number = rte_cpu_to_be_16(number);
	memcpy(record->destination, gateway, 6);
	return record;
}

static inline void add_route(uint8_t op, const char *text, uint16_t hop)
{
	const struct fib_prefix prefix = prefix_of(text);
	bool four = prefix.family == 4;
	struct fib_route_record6 *record =
	        record_room(four ? sizeof(struct fib_route_record4) : sizeof(*record));

	record->op = op;
	record->length = prefix.length;
	record->hop = rte_cpu_to_be_16(hop);
	memcpy(record->address, prefix.address, four ? 4 : 16);
}

static inline struct fib_ack *sent(void)
{
	struct fib_ack *ack = (struct fib_ack *)(header() + 1);
	uint8_t type = header()->type;

	assert_int_equal(fib_session_handle(&rig.s, rig.frame, rig.length < 60 ? 60 : rig.length, rig.now),
	                 60);
	assert_memory_equal(rig.frame, vnf_mac, 6);
	assert_int_equal(header()->type, type | FIB_ACK);
	assert_int_equal(header()->version, FIB_MESSAGE_VERSION);
	return ack;
}

// Code, records applied, and how far the next sequence number is from this message's.
static inline void answered(enum fib_code code, unsigned applied, int ahead)
{
	uint32_t sequence = rte_be_to_cpu_32(header()->sequence);
	struct fib_ack *ack = sent();

	assert_int_equal(ack->code, code);
	assert_int_equal(rte_be_to_cpu_16(ack->applied), applied);
	assert_int_equal(rte_be_to_cpu_32(ack->next_sequence), sequence + (uint32_t)ahead);
	rig.sequence = rte_be_to_cpu_32(ack->next_sequence);
}

static inline void hello(uint32_t number)
{
	rig.number = number;
	rig.sequence = 1;
	message(FIB_HELLO, 0);
	answered(FIB_OK, 0, 1);
}

static inline void hop_said(uint16_t number)
{
	message(FIB_NEXT_HOPS, 0);
	add_hop(number, FIB_HOP_FORWARD);
	answered(FIB_OK, 1, 1);
}

static inline void route_said(uint8_t op, const char *text, uint16_t hop, enum fib_code code)
{
	message(FIB_ROUTES, strchr(text, ':') ? 6 : 4);
	add_route(op, text, hop);
	answered(code, code == FIB_OK, code == FIB_OK ? 1 : FIB_WINDOW);
}

static inline int open_rig(void **state)
{
	rig = (struct rig){.now = 1};
	rig.s = (struct fib_session){
	        .fib = fib_of(1000, 1000),
	        .vnf = VNF,
	        .wires = 2,
	        .ports = {5, 6},
	        .grace_tsc = GRACE,
	        .hold_tsc = HOLD,
	};
	memcpy(rig.s.mac, vnf_mac, 6);
	vnf_of(rig.s.fib, VNF, 4, 2);
	vnf_of(rig.s.fib, OTHER, 4, 2);
	hop_put(rig.s.fib, OTHER, FIB_OPERATOR, 1, 77);
	assert_int_equal(route_put(rig.s.fib, OTHER, FIB_OPERATOR, "10.0.0.1/32", 1), 0);
	fib_unlock(rig.s.fib);
	return 0;
}

// Whatever is said, another VNF's routes are untouched.
static inline int close_rig(void **state)
{
	assert_int_equal(found(rig.s.fib, OTHER, "10.0.0.1"), 77);
	assert_int_equal(stats_of(rig.s.fib, OTHER).routes4, 1);
	fib_destroy(rig.s.fib);
	return 0;
}

static inline uint8_t port_to(const char *address)
{
	return found(rig.s.fib, VNF, address);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_rig, close_rig)
