// SPDX-License-Identifier: BSD-3-Clause
// The file that a process which was killed leaves where it listened.
#pragma once

// Make way for a unix socket at path. Returns 0: there is nothing, or was a socket on which nobody listens
// and which is removed. -EADDRINUSE: somebody listens. -EEXIST: something else is there, and stays.
int stale_socket_remove(const char *path);
