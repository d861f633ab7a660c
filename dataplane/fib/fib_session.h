// SPDX-License-Identifier: BSD-3-Clause
// The forwarder's side of FIB update messages: one session for each VNF. Reads a message where it lies,
// applies it and writes the answer over it: the frame goes back by the port that it came by. Messages are
// hostile: a VNF can change nothing but its own routes, whatever it sends, and its quotas bound what it
// takes.
//
// Threads: fib_session_handle and _tick on the worker that receives from the VNF's port.
#pragma once

#include "fib/fib.h"
#include "fib/fib_message.h"
#include "base/schema.h"

enum fib_session_state {
	FIB_SESSION_NONE,  // nothing has been said, or all of it has been flushed
	FIB_SESSION_UP,    // its messages are applied
	FIB_SESSION_STALE, // it is silent: what it said is kept for the grace period
};

struct fib_answer { // to one message, kept to be given again
	uint8_t code;
	uint16_t applied;
};

// Answers are kept for the window that a client may still ask about, and for the numbers passed over after it (fib_session.c).
enum { FIB_ANSWERS = 2 * FIB_WINDOW };

struct fib_session {
	// Set by the owner, all else 0.
	struct fib *fib;
	uint16_t vnf;
	uint8_t wires;              // valid: 0 .. wires - 1
	uint8_t ports[8];           // of each wire: fib_hop.port
	uint8_t mac[6];             // of the VNF: the source of what leaves for it
	uint64_t vlans[VLAN_WORDS]; // in which it does
	uint64_t grace_tsc;         // routes of a VNF that is gone are kept for so long
	uint64_t hold_tsc;          // silence after which it is gone
	uint8_t wires_down;         // a bit for each of its wires
	enum fib_session_state state;
	uint32_t number, expected;
	uint64_t heard_tsc, updated_tsc; // the latter: when a record was applied last
	bool has_stale; // routes of an older session, or of a silent one, to be flushed a grace period after
	uint64_t stale_tsc;
	struct fib_answer answers[FIB_ANSWERS]; // by sequence number
	// Counted, never reset by the session itself.
	uint64_t messages, records, codes[FIB_CODES], malformed, lost_peers, flushed, notices;
};

enum { FIB_ANSWER_BYTES = 60 };

// A frame of FIB_ETHER_TYPE from the VNF's port: length bytes at frame, room for at least 60. Returns the
// length of the answer, 60, which lies there now, addressed to the sender; or 0: no message at all, counted
// as malformed.
unsigned fib_session_handle(struct fib_session *session, uint8_t *frame, unsigned length, uint64_t now_tsc);

// What is now known of its wires; true if that is new to a VNF with a session: then a notice to it is in frame.
bool fib_session_wires(struct fib_session *session, uint8_t down, uint8_t frame[FIB_ANSWER_BYTES]);

// Now and then: silence, grace periods. link_up: whether the VNF's port has its other end.
void fib_session_tick(struct fib_session *session, bool link_up, uint64_t now_tsc);
