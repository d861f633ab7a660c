// SPDX-License-Identifier: BSD-3-Clause
// Unix sockets that listen at a path: who may connect, and the file that a process which was killed leaves there.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

// Make way for a unix socket at path. Returns 0: there is nothing, or was a socket on which nobody listens
// and which is removed. -EADDRINUSE: somebody listens. -EEXIST: something else is there, and stays.
int stale_socket_remove(const char *path);

// Listen at a path where nothing is, with a non-blocking socket of this type. Its mode is 0660 for a group, or 0600 with
// (gid_t)-1. Returns the descriptor, or -errno.
int listen_socket_open(const char *path, int type, gid_t group);

// Find a group by its name or number; "" is (gid_t)-1. Returns 0, or -ESRCH if there is none.
int listen_socket_group(const char *text, gid_t *group);

// Say what -errno of these functions asks of the user.
const char *listen_socket_error(int rc);
