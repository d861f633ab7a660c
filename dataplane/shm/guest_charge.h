// SPDX-License-Identifier: BSD-3-Clause
// Memory of another end that is charged to us: pages of its files that exist because we touched them. A file may be sparse,
// and the kernel charges a page to who touches it first, in memory cgroups and without; so a peer could take all memory of
// the machine through our hands.
//
// One account for each port, whatever connections and memory tables come and go: a peer may keep the file when it has
// hung up. The account begins anew with a connection while no other is there, unless memory is short.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct guest_charge {
	uint64_t chosen;        // bytes that the port may have; 0: its share of the machine's
	_Atomic(uint64_t) most; // the same, in bytes
	_Atomic(uint64_t) made;
	int wake_fd; // an eventfd of who ends the connection, or -1: that of guest_fault_catch()
};

enum { GUEST_CHARGE_TEXT_BYTES = 192 };

// A port begins, and ends. Without a choice (0 MB) all ports that do so share a quarter of the memory (base/ram.h),
// as of the time when a connection begins. Control thread; end: also a thread of the port, without any other.
void guest_charge_open(struct guest_charge *charge, uint32_t chosen_mb, int wake_fd);
void guest_charge_close(struct guest_charge *charge);

// A connection begins; alone: no other of the port is there. Memory is short if less than half of it is available.
// A connection within a second of another, of any port, begins no new account. Any thread.
void guest_charge_begin(struct guest_charge *charge, bool alone);

// Count pages that we are about to make; false: they are too many, and not counted. Any thread, and a signal handler.
bool guest_charge_take(struct guest_charge *charge, uint64_t bytes);

// They were not made, or are gone again.
void guest_charge_return(struct guest_charge *charge, uint64_t bytes);

// Write the sentence about a port at its limit. Returns text.
const char *guest_charge_text(const struct guest_charge *charge, char text[GUEST_CHARGE_TEXT_BYTES]);
