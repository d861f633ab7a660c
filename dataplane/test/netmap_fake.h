// SPDX-License-Identifier: BSD-3-Clause
// A netmap without its module: two ports of one switch, "SWITCH:a" and "SWITCH:b", are the ends of a cable, which holds what
// the other end has no room for. It takes the place of netmap_calls; ports map the memory that it makes as they do netmap's.
#pragma once

#include <stdbool.h>

#include "port/netmap_port.h"

enum { NETMAP_FAKE_PORTS = 8, NETMAP_FAKE_BUFFER_BYTES = 4096 };

// What a registration answers and what a ring looks like, for tests that lie: called when a port is registered.
typedef void netmap_fake_lie(struct netmap_register *made, struct netmap_interface *interface,
                             struct netmap_ring *tx, struct netmap_ring *rx);

// Use it from now on. lie: or NULL.
void netmap_fake_begin(netmap_fake_lie *lie);

// The rings of a port that is open, by its whole name, as the program has them; NULL: there is none.
struct netmap_ring *netmap_fake_ring(const char *name, bool receives);

// What the next system call says of its tail.
void netmap_fake_tail(const char *name, bool receives, uint32_t tail);

// The next system calls fail with this error; 0: they do not.
void netmap_fake_fail(int error);
