// SPDX-License-Identifier: BSD-3-Clause
// SIGBUS in memory that another process shares with us: it has truncated the file behind its mapping, or there is no
// page left for it (hugetlbfs, a full tmpfs). The default action would end planed. Here the thread goes on: what it
// reads from there is zeros, what it writes is lost, and the fault is counted for who ends the connection.
//
// The mapping is replaced by anonymous memory in the signal handler: a few pages at a time, because the thread waits for
// it, and twice as many at each fault of a region, so that there are few. A SIGBUS anywhere else has the action that it
// had before.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Handle SIGBUS in the whole process from now on. May be called again.
void guest_fault_begin(void);

// The same; and write to this eventfd, if it is not -1, after each fault.
void guest_fault_catch(int wake_fd);

// Watch a mapping: whole pages of this size. Returns a number for the other functions, or -1 if there are too many. Any
// thread, but for the handler.
int guest_fault_watch(void *at, size_t bytes, size_t page);

// Before the mapping goes; no thread uses it any more.
void guest_fault_forget(int watched);

// Whether there was a fault in it.
bool guest_fault_seen(int watched);
