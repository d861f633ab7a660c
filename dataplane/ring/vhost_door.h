// SPDX-License-Identifier: BSD-3-Clause
// The unix socket of a vhost-user port. Drivers connect here; what they send is read whole, checked against the
// vhost-user protocol and what this port offers, and only then passed on to DPDK's vhost library, which listens
// where nobody else can connect. A message that is not allowed ends its connection, and its descriptors are
// closed: the library never sees it.
//
// Each door has a thread of its own: a driver that stalls holds up no other port. Open and close on the control
// thread.
#pragma once

enum { VHOST_DOOR_INNER_MAX = 64 };

struct vhost_door;

// What the library listens on behind the door: a socket in a folder that is removed as soon as the door has it.
// path: for the library, valid until vhost_door_inner_close().
struct vhost_door_inner {
	char path[VHOST_DOOR_INNER_MAX];
	char folder[128]; // beside the port's own path; empty once it is removed
	int folder_fd;
};

// Make a folder beside path. Returns 0 or -errno.
int vhost_door_inner_open(struct vhost_door_inner *inner, const char *path);

// Remove socket and folder from the file system: the door still reaches the library, nobody else does.
void vhost_door_inner_hide(struct vhost_door_inner *inner);
void vhost_door_inner_close(struct vhost_door_inner *inner);

// Listen on path and pass on to the library, which listens on inner->path already. name is for the log and must
// outlive the door; pairs: the queue pairs of the port. Returns 0 and *out, or -errno.
int vhost_door_open(const char *name, const char *path, const struct vhost_door_inner *inner, unsigned pairs,
                    struct vhost_door **out);
void vhost_door_close(struct vhost_door *door); // ends all connections; NULL does nothing
