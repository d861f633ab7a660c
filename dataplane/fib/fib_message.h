// SPDX-License-Identifier: BSD-3-Clause
// FIB update messages, version 2: what a VNF says to the forwarder that holds its routes, and the answers.
// The authority on the bytes is docs/fib-messages.md.
//
// A message is an Ethernet frame of EtherType 0x88B5 (IEEE 802 local experimental 1), all numbers in network
// order: the header, then `count` records. Every message is answered by exactly one ACK of 60 bytes, which
// says what became of it and which sequence number comes next; when a wire goes down or comes up, one comes unasked.
// Delivery is the sender's business: go-back-N over `window` messages; a message that is not the expected one is not
// applied, and one that was answered before is answered the same again.
//
// A record that fails stops its message and all that were sent behind it: next_sequence jumps over the
// window, so that what is under way already is refused, and the order of updates is kept. The sender goes on
// with the records behind the one that failed.
#pragma once

#include <stdint.h>

enum {
	FIB_ETHER_TYPE = 0x88B5,
	FIB_MAGIC = 0xF1B0,
	FIB_MESSAGE_VERSION = 2,
	FIB_WINDOW = 64,        // messages that may be unanswered
	FIB_HOP_NUMBERS = 4096, // of a VNF's next hops: 0 .. 4095, chosen by it
	FIB_MEMBERS_MAX = 16,   // of a group
};

enum fib_message_type {
	FIB_HELLO = 1, // begins a session (its number is new, not 0), with sequence number 1. Routes of older
	               // sessions become stale: they forward until END_OF_RIB or the end of the grace period
	FIB_ROUTES = 2,          // count struct fib_route_record4 / 6
	FIB_NEXT_HOPS = 3,       // count struct fib_hop_record
	FIB_FLUSH = 4,           // all routes and next hops of this session and older ones are gone
	FIB_END_OF_RIB = 5,      // stale routes are gone
	FIB_KEEPALIVE = 6,       // nothing but a sign of life
	FIB_NEXT_HOP_GROUPS = 7, // count struct fib_group_record
	FIB_ACK = 0x80,          // | type; alone it is a notice: the answer to no message
};

enum fib_op { FIB_ADD = 1, FIB_REPLACE = 2, FIB_DELETE = 3 };

enum fib_hop_kind {
	FIB_HOP_NONE,      // no route
	FIB_HOP_FORWARD,   // out by a wire to a MAC
	FIB_HOP_LOCAL,     // the VNF's own address: punt
	FIB_HOP_BLACKHOLE, // drop
	FIB_HOP_GROUP,     // one of its members, by the flow; only in struct fib_group_record
};

enum fib_code {
	FIB_OK,
	FIB_BUSY,        // from record `applied` on: send these again, under next_sequence
	FIB_SEQUENCE,    // not the expected one: nothing was applied, next_sequence says which
	FIB_MALFORMED,   // from record `applied` on
	FIB_NO_SESSION,  // say HELLO (the forwarder has started anew, or another session has begun)
	FIB_QUOTA,       // of routes or next hops
	FIB_FULL,        // the table has no room
	FIB_NO_NEXT_HOP, // a route to a next hop that was not announced in this session
	FIB_EXISTS,      // ADD of a route that is there
	FIB_ABSENT,      // DELETE of a route or next hop that is not
	FIB_BUSY_HOP,    // DELETE of a next hop that routes or groups lead to; a member that shall be a group
	FIB_VERSION,     // the message is of another version than the ACK
	FIB_CODES,
};

struct fib_message { // behind the 14 bytes of Ethernet
	uint16_t magic;
	uint8_t version, type;
	uint32_t session;
	uint32_t sequence;
	uint16_t count;
	uint16_t reserved; // 0
} __attribute__((packed));

struct fib_route_record4 {
	uint8_t op; // enum fib_op
	uint8_t length;
	uint16_t hop;
	uint8_t address[4];
} __attribute__((packed));

// In a ROUTES message all records are of one family: `reserved` is 4 or 6 there.
struct fib_route_record6 {
	uint8_t op, length;
	uint16_t hop;
	uint8_t address[16];
} __attribute__((packed));

struct fib_hop_record {
	uint8_t op;   // FIB_REPLACE or FIB_DELETE
	uint8_t kind; // enum fib_hop_kind
	uint16_t number;
	uint8_t wire; // which of the VNF's wires, as its configuration counts them
	uint8_t pad;
	uint16_t vlan;                     // one of the VNF's; 0: without a tag
	uint8_t destination[6], source[6]; // source: the VNF's own MAC, or all zero, which means it
} __attribute__((packed));

// REPLACE. The number is one of the next hops'; it is deleted as these are.
struct fib_group_record {
	uint8_t op, count; // of members: 1 .. FIB_MEMBERS_MAX; those behind them are 0
	uint16_t number;
	struct {
		uint16_t number; // of a next hop of this session, no group, once
		uint8_t weight;  // not 0
		uint8_t pad;
	} members[FIB_MEMBERS_MAX];
} __attribute__((packed));

struct fib_ack {          // behind the header, whose sequence is the one that is answered
	uint8_t code;     // enum fib_code
	uint8_t wires_up; // a bit for each of the VNF's wires
	uint16_t applied; // records, from the first on: the one behind them is what code is about
	uint32_t next_sequence;
	uint16_t window;
	uint8_t pad2[4];
	uint64_t routes, quota; // the VNF's
} __attribute__((packed));

_Static_assert(sizeof(struct fib_message) == 16 && sizeof(struct fib_ack) == 30, "as documented");
_Static_assert(14 + sizeof(struct fib_message) + sizeof(struct fib_ack) <= 60,
               "an ACK fits the least message");
