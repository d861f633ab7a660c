// SPDX-License-Identifier: BSD-3-Clause
// A packet pool whose buffers carry the payload pattern of the tester frame (frame.h), so that a sender
// writes headers only. Who receives its mbufs in this process may rewrite the first FRAME_STORE_BYTES, not
// the pattern behind them. Control thread.
#pragma once

#include <rte_mempool.h>

struct port;

// A pool for the sender of one port: large enough that the port's tx ring cannot empty it, with the data room
// of the port's receive pool. NULL with rte_errno set.
struct rte_mempool *frame_pool_create(const struct port *port);

// Give a pool up. While a device's tx ring or another task still holds mbufs of it, freeing would pull the
// memory from under them: then it is kept, and freed by a later call of frame_pool_retire() or
// frame_pool_create().
void frame_pool_retire(struct rte_mempool *pool);
