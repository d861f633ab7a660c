// SPDX-License-Identifier: BSD-3-Clause
// The buffers of all virtio ports of the process. Ports exchange them (driver_ring_pass()), so none can free
// "its own": a port that closes gives back whichever it has. What is here goes to the next port; once every
// buffer is here, the memory is freed.
//
// All are of one size, that of the process's mbufs, in DPDK's memory, which can be shared with a device.
// Control thread only.
#pragma once

#include <stdint.h>

#include "ring/ring.h"

// Fill data of count pieces with buffers for frames of room bytes, as driver_ring_init() wants them. Returns
// 0; -ENOMEM; -EINVAL for another room than that of the buffers that are in use.
int buffers_take(struct ring_piece *pieces, unsigned count, uint32_t room);

void buffers_give_back(const struct ring_piece *pieces, unsigned count);
