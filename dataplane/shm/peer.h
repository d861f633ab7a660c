// SPDX-License-Identifier: BSD-3-Clause
// What the other end of a port hands over, by vhost-user or memif: regions of memory, descriptors, and why a connection is
// ended for it.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/log_rate.h"

enum {
	PEER_REGIONS_MAX = 8, // VHOST_MEMORY_BASELINE_NREGIONS of most devices
	PEER_FILES_MAX = PEER_REGIONS_MAX,
};

// As on the wire of vhost-user ("Memory regions description").
struct peer_region {
	uint64_t guest_address, bytes, user_address, offset;
};

// Descriptors that came with a message and have no other owner yet.
struct peer_files {
	unsigned count;
	int fds[PEER_FILES_MAX];
};

// Why a message ended its connection. Name, as it is counted, and a sentence about the message.
#define FOR_EACH_PEER_REFUSAL(DO)                                                                            \
	DO(NOT_OFFERED, "not_offered", "the request is not offered")                                         \
	DO(NOT_NEGOTIATED, "not_negotiated", "the request was not negotiated")                               \
	DO(VERSION, "version", "it is of another version of the protocol")                                   \
	DO(SIZE, "size", "its size is not that of the request")                                              \
	DO(FILES, "descriptors", "it came with descriptors that do not belong to it, or without its own")    \
	DO(RING, "ring", "it names a ring that no port can have")                                            \
	DO(VALUE, "value", "it has a value that is not allowed")                                             \
	DO(FEATURES, "features", "it sets features that are not offered")                                    \
	DO(NO_EVENTFD, "no_eventfd", "the descriptor of a ring is no eventfd")                               \
	DO(MEMORY_FILE, "memory_file", "a region is not a memfd or a file of tmpfs or hugetlbfs")            \
	DO(MEMORY_END, "memory_end", "a region is empty or longer than its file")                            \
	DO(MEMORY_OVERLAP, "memory_overlap", "regions overlap, or run past the end of all addresses")        \
	DO(MEMORY_LIMIT, "memory_limit", "it is more memory than a driver may share")                        \
	DO(MEMORY_MAP, "memory_map", "a region cannot be mapped")                                            \
	DO(LATE, "late", "its end has not come within 5 s")                                                  \
	DO(UNREAD, "unread", "the driver does not read its replies")                                         \
	DO(BLOCKING, "blocking_eventfd", "the driver has made its eventfd block again")                      \
	DO(HOLES, "holes_punched", "pages of its memory go away again and again while they are used")        \
	DO(MEMORY_GONE, "memory_gone", "a file of its memory was truncated, or has no page left")            \
	DO(CHARGED, "memory_charged", "frames have made more pages of its memory than the port may have")    \
	DO(TAKEN, "taken", "another one has the port, and is still connected")                               \
	DO(IDLE, "idle", "it has not begun to use the port, and another one has come")
#define PEER_REFUSAL_NAME(name, key, text) PEER_REFUSED_##name,

enum peer_refusal { PEER_ACCEPTED, FOR_EACH_PEER_REFUSAL(PEER_REFUSAL_NAME) PEER_REFUSALS };

// Return the key under which a refusal is counted, and its sentence.
const char *peer_refusal_key(enum peer_refusal refusal);
const char *peer_refusal_text(enum peer_refusal refusal);

// Connections of a port that were ended, of vhost-user or of a memif.
struct peer_refusals {
	const char *port; // its name
	struct log_rate lines;
	_Atomic(uint64_t) counts[PEER_REFUSALS]; // for any thread to read
};

void peer_refusals_begin(struct peer_refusals *refusals, const char *port);

// Count one, and say so in a line at a limited rate: whom was refused; text: why, or NULL: peer_refusal_text().
void peer_refusals_add(struct peer_refusals *refusals, enum peer_refusal why, const char *whom,
                       const char *text);

// Keep the descriptors that recvmsg() has brought with a message. Returns false if there were more than it had room for.
bool peer_files_keep(struct peer_files *files, struct msghdr *header);
