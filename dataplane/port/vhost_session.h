// SPDX-License-Identifier: BSD-3-Clause
// A vhost-user port's control side: listening, connections, and giving the workers the rings and taking them
// away, as DPDK's rte_vhost calls for it. For vhost_port.c only.
#pragma once

#include "port/vring_port.h"
#include "ring/vhost_door.h"

struct vhost_port {
	struct vring_port base; // first
	struct guest_memory memory;
	struct vhost_door *door; // who listens on the path
	struct vhost_door_inner inner;
	int vid;                 // the connection that has the rings, or -1; library's thread
	struct vhost_port *next; // in ports
};

// Listen on port->path; from here on the library's thread uses the port. Returns 0 or -errno.
int vhost_session_begin(struct vhost_port *port);

// Stop listening and end all connections. No worker may use the port.
void vhost_session_end(struct vhost_port *port);
