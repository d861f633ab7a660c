// SPDX-License-Identifier: BSD-3-Clause
// The memory that a peer shares, over vhost-user or memif: its regions checked against the files that came with it, and mapped.
//
// Only memfds and files of tmpfs and hugetlbfs: the kernel tells them by their seals, without asking anybody. A file
// of any other kind may answer a question, a page fault or its closing when it likes (FUSE), in a thread of ours.
//
// A file that is not sealed against it may still be made shorter behind its mapping: reading there is SIGBUS, which
// guest_fault.h catches.
#pragma once

#include <stddef.h>

#include "shm/guest_charge.h"
#include "shm/guest_memory.h"
#include "shm/peer.h"

_Static_assert((int)GUEST_REGIONS_MAX == (int)PEER_REGIONS_MAX, "a table fits");

struct peer_memory {
	struct guest_memory guest; // what workers read while they have a ring
	struct {
		void *at; // of the mapping, which begins with a page of the file
		size_t bytes;
		int watched;            // by guest_fault.h
		int fd;                 // of the file
		uint32_t page;          // bytes
		int64_t blocks;         // of the file, as peer_memory_measure() has found them
		bool rose;              // the last time that they changed
		uint64_t device, inode; // of the file
		uint64_t user_address;  // of the region in the driver's address space
	} maps[GUEST_REGIONS_MAX];
};

// Map a region of each file, at most so many bytes. What we make of its pages is the port's charge; NULL: nobody counts.
// Returns PEER_ACCEPTED, files closed; or why not, with nothing mapped and the files as they were.
enum peer_refusal peer_memory_open(struct peer_memory *memory, const struct peer_region *regions,
                                   struct peer_files *files, uint64_t most, struct guest_charge *charge);

// Map one region of a file more, with at most so many bytes: memory begins as zeros. Returns PEER_ACCEPTED, and the file
// is the memory's; or why not, with memory and file as they were.
enum peer_refusal peer_memory_add(struct peer_memory *memory, const struct peer_region *region, int fd,
                                  uint64_t most, struct guest_charge *charge);

// Unmap all. May take long: the last who unmaps frees the memory.
void peer_memory_close(struct peer_memory *memory);

// Tell the charge what exists now (shm/guest_fault.h), and whether, since the last call, pages were taken out of a file again after some had come back: its blocks have fallen
// after they had risen. A guest that gives memory up (a balloon) lets them fall, and seldom rise. Returns the bytes of a
// page of that file, or 0. Asks the kernel once for each region.
uint32_t peer_memory_measure(struct peer_memory *memory);

// Whether pages of it were not there when they were used, and why the connection has to end for it.
enum peer_refusal peer_memory_fault(const struct peer_memory *memory);

// Where an address of the driver's own is here, or NULL.
void *peer_memory_at(const struct peer_memory *memory, uint64_t user_address);
