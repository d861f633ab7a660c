// SPDX-License-Identifier: BSD-3-Clause
// For VNFs whose forwarding is offloaded: tells the forwarder next hops and routes by FIB update messages
// (docs/fib-messages.md). Packs them into messages, keeps a window of these on their way, sends again what
// gets lost, keeps the session alive. No threads, no DPDK, no clock of its own, no input or output: frames go
// out by a callback and come in by fib_client_received(); planebench_fib_packet.h has both for a Linux
// interface.
//
// One thread. Callbacks come from fib_client_received() and _tick(), when the client is as its caller may use
// it: they may announce routes.
//
//     client = fib_client_create(&config, now_ns());
//     fib_client_set_hop(client, &(struct fib_client_hop){.number = 1, .kind = FIB_HOP_FORWARD, .destination
//     = ...}); fib_client_set_route(client, FIB_REPLACE, &(struct fib_client_route){.family = 4, .length =
//     24, .hop = 1, ...}); fib_client_end_of_rib(client); for (;;) { receive frames: fib_client_received();
//     every few ms: fib_client_tick(client, now_ns()); }
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fib_message.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fib_client;

struct fib_client_hop {
	uint16_t number; // 0 .. 4095, chosen by the VNF
	uint8_t kind;    // enum fib_hop_kind
	uint8_t wire;    // of FORWARD: which of the VNF's wires
	uint8_t destination[6];
	uint16_t vlan; // one of the VNF's; 0: without a tag
};

// A next hop that is a group: flows are spread over other next hops of this session, in proportion to the weights.
struct fib_client_member {
	uint16_t number;
	uint8_t weight; // not 0
};

struct fib_client_route {
	uint8_t family, length; // 4 or 6; bits
	uint16_t hop;           // number of a next hop of this session; nothing for FIB_DELETE
	uint8_t address[16];    // network order; IPv4: the first four bytes. Bits behind length are 0
};

// A record that was not applied, all others are; or a whole message, of type FIB_FLUSH or the like.
struct fib_client_refusal {
	enum fib_message_type
	        type; // FIB_ROUTES: op and route; FIB_NEXT_HOPS: op and hop; _GROUPS: hop.number
	enum fib_code code;
	enum fib_op op;
	struct fib_client_route route;
	struct fib_client_hop hop;
};

struct fib_client_config {
	uint32_t session;      // not 0, nor used by this VNF before: random, or of a clock
	uint8_t mac[6];        // of the interface
	uint16_t frame_bytes;  // of the longest message, without FCS; 0: 1514, which is also the most
	uint64_t retry_ns;     // without an answer; doubled each time up to a second. 0: 20 ms
	uint64_t keepalive_ns; // without anything to say. 0: 1 s
	// Send a frame, or lose it.
	void (*send)(void *context, const uint8_t *frame, unsigned length);
	// May be NULL.
	void (*refused)(void *context, const struct fib_client_refusal *refusal);
	// The forwarder knows nothing of this session any more: it has started anew. The next session has
	// begun, and all that was not answered is forgotten: announce everything again, then end of RIB.
	void (*lost)(void *context);
	void *context;
};

struct fib_client_status {
	uint32_t session;
	bool up;                                  // the forwarder has answered this session's first message
	unsigned unanswered;                      // messages
	uint64_t retransmitted, applied, refused; // messages; records
	uint64_t routes, quota;                   // of the VNF, as of the last answer
	uint8_t wires_up; // the same: a bit for each of its wires; new as soon as one goes down or comes up
};

// Begins a session. NULL: no memory, or a configuration without session or send.
struct fib_client *fib_client_create(const struct fib_client_config *config, uint64_t now_ns);
void fib_client_destroy(struct fib_client *client); // the forwarder keeps the routes for the grace period

// Updates, in their order. They leave when a message is full, or with the next tick. Return 0, -EINVAL, or
// -EAGAIN: as much as may be is unanswered; go on receiving and ticking, and try again.
int fib_client_set_hop(struct fib_client *client, const struct fib_client_hop *hop);
int fib_client_set_group(struct fib_client *client, uint16_t number, const struct fib_client_member *members,
                         unsigned count);                              // 1 .. FIB_MEMBERS_MAX
int fib_client_delete_hop(struct fib_client *client, uint16_t number); // a group as well
int fib_client_set_route(struct fib_client *client, enum fib_op op, const struct fib_client_route *route);
int fib_client_flush(struct fib_client *client);      // all routes and next hops are gone
int fib_client_end_of_rib(struct fib_client *client); // what older sessions left is gone

// A frame that came; anything but an answer to this session is passed over.
void fib_client_received(struct fib_client *client, const uint8_t *frame, unsigned length, uint64_t now_ns);

// Every few milliseconds, and when something is to leave now.
void fib_client_tick(struct fib_client *client, uint64_t now_ns);

void fib_client_read(const struct fib_client *client, struct fib_client_status *status);

const char *fib_client_reason(enum fib_code code); // a sentence's end

#ifdef __cplusplus
}
#endif
