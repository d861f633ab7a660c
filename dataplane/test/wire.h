// SPDX-License-Identifier: BSD-3-Clause
// A port for tests of tasks that send or receive on one, with whichever kind of data path: frames in mbufs,
// on two rings (fixture.h), or frames in place, in the memory of a guest (guest.h). What goes in and out is
// bytes, so that one test serves both.
//
// A cmocka test uses a pair of set-up and tear-down and finds its struct wire in *state. Leaks are found as
// by the fixture, which it includes.
#pragma once

#include "test/fixture.h"
#include "test/guest.h"

struct shm_port;

enum { WIRE_FRAME_MAX = GUEST_BUFFER_BYTES };

struct wire {
	struct fixture *fixture;
	struct port *port; // of the task
	bool in_place;
	struct guest guest; // in place only
	struct port guest_port;
	struct shm_port *vhost;
};

// A port that takes 255 frames, or 15, before some are collected.
int wire_setup_mbufs(void **state);
int wire_setup_mbufs_small(void **state);
int wire_setup_in_place(void **state);
int wire_setup_in_place_small(void **state);
int wire_teardown(void **state);

// Create a task of config->kind on the port. NULL when refused.
struct task *wire_task(struct wire *wire, struct config_task *config);

// Copy the next frame that the task has sent to data, WIRE_FRAME_MAX bytes; returns its length, 0 without
// one.
unsigned wire_collect(struct wire *wire, uint8_t *data);

// Hand a frame to the task, in runs of at most run bytes each (0: in one). Returns whether there was room.
bool wire_inject(struct wire *wire, const uint8_t *data, unsigned length, unsigned run);

// A test on both kinds, with ports that are large, or small.
#define WIRE_TEST(name)                                                                                      \
	{#name ", mbufs", name, wire_setup_mbufs, wire_teardown, NULL},                                      \
	{                                                                                                    \
#name ", in place", name, wire_setup_in_place, wire_teardown, NULL                           \
	}
#define WIRE_TEST_SMALL(name)                                                                                \
	{#name ", mbufs", name, wire_setup_mbufs_small, wire_teardown, NULL},                                \
	{                                                                                                    \
#name ", in place", name, wire_setup_in_place_small, wire_teardown, NULL                     \
	}
