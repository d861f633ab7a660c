// SPDX-License-Identifier: BSD-3-Clause
// Both ends of a memif connection in one process, with their memory mapped twice, and no socket between them.
#pragma once

#include <unistd.h>

#include "memif/memif_link.h"

// Give a message of one end to the other, as a socket would, and close what that does not take. Returns what it says.
static inline enum peer_refusal memif_tell(struct memif_link *to, const struct memif_message *message, int fd,
                                           struct memif_message *answer, int *answer_fd)
{
	struct peer_files files = {.count = fd >= 0, .fds = {fd >= 0 ? dup(fd) : -1}};
	enum peer_refusal why = memif_link_handle(to, message, &files, answer, answer_fd);

	for (unsigned i = 0; i < files.count; i++)
		close(files.fds[i]);
	return why;
}

// Let both ends speak until nobody has anything to say. Returns whether they are connected.
static inline bool memif_connect(struct memif_link *server, const struct memif_link_config *served,
                                 struct memif_link *client, const struct memif_link_config *driven)
{
	struct memif_message message, answer;
	int fd = -1, answer_fd;

	memif_link_begin(client, driven, &message);
	for (bool said = memif_link_begin(server, served, &message); said;
	     said = message.type != MEMIF_NONE) {
		if (memif_tell(client, &message, fd, &answer, &answer_fd))
			return false;
		message.type = MEMIF_NONE;
		if (answer.type != MEMIF_NONE && memif_tell(server, &answer, answer_fd, &message, &fd))
			return false;
	}
	return server->connected && client->connected;
}
