// SPDX-License-Identifier: BSD-3-Clause
// A connection of the vhost-user protocol, message by message: reads what is there, never waits, and hands a message
// on when all of it has come. The header is checked before the payload is read.
#pragma once

#include "virtio/vhost_message.h"

struct vhost_link {
	int fd;        // the socket; the caller's
	unsigned have; // bytes of message
	struct vhost_message message;
	struct peer_files files; // of message; the caller's, once it is whole or refused
};

enum vhost_read {
	VHOST_READ_PART,    // more has to come
	VHOST_READ_WHOLE,   // handle it, then vhost_link_next()
	VHOST_READ_GONE,    // the other end has hung up
	VHOST_READ_REFUSED, // *why
};

// Read on. protocol_features: negotiated.
enum vhost_read vhost_link_read(struct vhost_link *link, uint64_t protocol_features, enum peer_refusal *why);

// The message was handled: its descriptors have found their owners.
void vhost_link_next(struct vhost_link *link);

// Send a reply. Returns false if the other end has hung up or does not read.
bool vhost_link_reply(struct vhost_link *link, const struct vhost_message *reply);
