// SPDX-License-Identifier: BSD-3-Clause
// A vhost-user port's control side: what a driver has set up over a connection becomes rings of the workers, and is
// taken from them again. For vhost_port.c only.
#pragma once

#include "port/shm_port.h"
#include "virtio/vhost_listener.h"

struct vhost_port {
	struct shm_port base; // first
	struct vhost_listener *listener;
	struct vhost_device *device; // of the connection that has the port, or NULL; listener's thread
	struct offload_room *rooms;  // of each pair of a port with offloads, or NULL
};

// Listen on port->path; from here on the listener's thread uses the port. Returns 0 or -errno; -ESRCH: there is no such
// group.
int vhost_session_begin(struct vhost_port *port, const struct config_drivers *drivers);

// Stop listening and end all connections, without and with waiting for what is closed. No worker may use the port.
void vhost_session_stop(struct vhost_port *port);
void vhost_session_end(struct vhost_port *port);
