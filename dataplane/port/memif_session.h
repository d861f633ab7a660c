// SPDX-License-Identifier: BSD-3-Clause
// A memif port's control side: what both ends say over a connection becomes rings of the workers, and is taken from them
// again. For memif_port.c only.
//
// Each port has a thread of its own, which sleeps until its sockets have something to say: what one other end makes slow,
// no other port waits for. A server has one connection at a time: who comes while a client is connected is refused. A client
// that has not connected within a second makes room for who comes.
#pragma once

#include <pthread.h>

#include "base/listen_socket.h"
#include "port/shm_port.h"
#include "memif/memif_link.h"
#include "virtio/vhost_link.h"

struct memif_port {
	struct shm_port base; // first
	unsigned source;      // of a pair's rings, the one that we receive from; the other is sent to
	struct memif_link_config config;
	uint8_t *spares;            // of a server, MEMIF_SPARE_BYTES for each pair: see struct memif_ring
	struct guest_charge charge; // of a server
	struct peer_refusals refusals;
	pthread_t thread;
	int wake_fd;
	_Atomic(bool) ending, ended;
	// The thread's.
	struct listen_socket listener; // of a server
	int fd;                        // -1
	bool given;                    // the workers have the rings of link
	bool silent;                   // client: that nobody listens was logged
	bool blocked;                  // a doorbell had been made to block
	uint64_t begun_ms;      // when the connection has, later by the time that this process was stopped
	uint64_t looked_ms;     // at the deadline
	uint64_t rest_until_ms; // client
	struct memif_link link;
};

// Listen on port->path, or connect as soon as somebody does. Returns 0 or -errno; -ESRCH: there is no such group.
int memif_session_begin(struct memif_port *port, const struct config_drivers *drivers);

// End the connection, without and with waiting for it, for two seconds at most. No worker may use the port. Returns whether
// the thread has ended: if not, the other end keeps it from closing what it has sent, and it still uses the port.
void memif_session_stop(struct memif_port *port);
bool memif_session_end(struct memif_port *port);
