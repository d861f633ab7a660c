// SPDX-License-Identifier: BSD-3-Clause
// An eventfd of the other end, which a worker writes to in order to wake it. It must not block, but its flags belong to
// the other end, too.
#pragma once

#include <stdbool.h>

// Whether a descriptor is an eventfd.
bool doorbell_is(int fd);

// Whether it is, and does not block from now on.
bool doorbell_take(int fd);

// Make it non-blocking again, and wake who stands in a write to it. Returns whether it had been made to block: no other
// end has a reason for it. fd -1: false.
bool doorbell_unblock(int fd);
