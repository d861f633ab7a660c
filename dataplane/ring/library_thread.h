// SPDX-License-Identifier: BSD-3-Clause
// The thread of DPDK's vhost library that accepts connections and reads messages.
#pragma once

// Have it look at all its descriptors now. It waits in poll(2) for a second at a time, on those that there
// were when the wait began, and rte_vhost_driver_start() does not wake it (DPDK 22.11, lib/vhost/fd_man.c):
// without this a driver that connects to a new socket is heard up to a second later. Where the thread is not
// found, that is all that happens. Control thread; takes a millisecond.
void library_thread_wake(void);
