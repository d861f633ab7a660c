// SPDX-License-Identifier: BSD-3-Clause
// SIGBUS in memory that another process shares with us: it has truncated the file behind its mapping, or there is no
// page left for it (hugetlbfs, a full tmpfs). The default action would end planed. Here the thread goes on: what it
// reads from there is zeros, what it writes is lost, and the fault is noted for who ends the connection.
//
// The same signal comes for a page that the file does not have yet, if it is to be charged to a port: userfaultfd(2) with
// UFFD_FEATURE_SIGBUS. The handler counts it and makes it, in the thread that touches it, which has to wait for it in any
// case; a page that is there costs nothing. So the limit is exact, and no page is counted that the other end has made itself.
//
// The mapping is replaced by anonymous memory in the signal handler: a few pages at a time, because the thread waits for
// it, and twice as many at each fault of a region, so that there are few. A SIGBUS anywhere else has the action that it
// had before.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "shm/guest_charge.h"

enum guest_fault {
	GUEST_FAULT_NONE,
	GUEST_FAULT_GONE,    // a page was not there
	GUEST_FAULT_CHARGED, // a page was not made: the port is at its limit
};

// Handle SIGBUS in the whole process from now on: before any mapping is watched. May be called again.
void guest_fault_begin(void);

// The same; and write to this eventfd, if it is not -1, after each fault.
void guest_fault_catch(int wake_fd);

// Watch a mapping: whole pages of this size. Returns a number for the other functions, or -1 if there are too many. Any
// thread, but for the handler.
int guest_fault_watch(void *at, size_t bytes, size_t page);

// Count the pages that we make in it; file_bytes: what of its file exists now, UINT64_MAX if the same file is watched
// already. The charge must outlive the mapping. Any thread.
void guest_fault_charge(int watched, struct guest_charge *charge, uint64_t file_bytes);

// What of its file exists now: pages that were made may be gone again. Where there is no userfaultfd, all by which a file has
// grown counts, whoever made it. Any thread, a mapping's always the same.
void guest_fault_measured(int watched, uint64_t file_bytes);

// Have the kernel make pages, uncounted, until resumed, or for ten seconds; what is measured after that counts again. DPDK
// has a SIGBUS handler of its own while it takes hugepages, which knows no guests. Any thread.
void guest_fault_pause(void);
void guest_fault_resume(void);

// How many pages were made by now, in all mappings: to the kernel these are no page faults.
uint64_t guest_fault_pages(void);

// Before the mapping goes; no thread uses it any more.
void guest_fault_forget(int watched);

// What there was in it.
enum guest_fault guest_fault_seen(int watched);
