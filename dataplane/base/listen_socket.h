// SPDX-License-Identifier: BSD-3-Clause
// Front listeners: unix sockets that listen at a path. Who may connect, how many a second, and the file that a process which was
// killed leaves there. One thread at a time.
#pragma once

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/bucket.h"
#include "base/limits.h"

struct listen_socket {
	int fd; // or -1
	char path[CONFIG_PATH_MAX];
	struct listen_socket *next; // of those that are beside their paths
	dev_t device;
	ino_t inode; // of the file: at its path may be that of another by now
	struct bucket connections;
	uint64_t rest_until_ms; // nobody is let in
};

// Make way for a unix socket at path. Returns 0: there is nothing, or was a socket on which nobody listens
// and which is removed. -EADDRINUSE: somebody listens. -EEXIST: something else is there, and stays.
int stale_socket_remove(const char *path);

// Listen at a path, with a non-blocking socket of this type; what stale_socket_remove() removes may be there. Its mode is
// 0660 for a group, or 0600 with (gid_t)-1. 64 may connect at once, and so many a second then; 0: 50. Returns 0 or -errno.
int listen_socket_open(struct listen_socket *listener, const char *path, int type, gid_t group,
                       unsigned connections_per_s);

// From now on sockets are opened beside their paths, where another process may listen; then all of them take their places
// at once, and who connects from then on comes to them. Control thread.
void listen_sockets_beside(void);
void listen_sockets_in_place(void);

// Return how many milliseconds it takes until somebody may be let in; 0: now.
uint64_t listen_socket_wait_ms(struct listen_socket *listener, uint64_t now_ms);

// Let in who waits. Returns a descriptor that does not block; -1: nobody is there, or we have no descriptor for it, and the
// listener rests for a moment.
int listen_socket_accept(struct listen_socket *listener, uint64_t now_ms);

// Let nobody in for so long.
void listen_socket_rest(struct listen_socket *listener, uint64_t now_ms, unsigned ms);

// Remove the file, if it is still this one's. Once, and while it is open: until then no other file has its number. Another
// thread may accept meanwhile.
void listen_socket_unlink(const struct listen_socket *listener);

// The same, and close; one that is closed stays so.
void listen_socket_close(struct listen_socket *listener);

// Whether the other end of a connection has hung up, read or not.
bool socket_hung_up(int fd);

// Find a group by its name or number; "" is (gid_t)-1. Returns 0, or -ESRCH if there is none.
int listen_socket_group(const char *text, gid_t *group);

// Say what -errno of these functions asks of the user.
const char *listen_socket_error(int rc);
