// SPDX-License-Identifier: BSD-3-Clause
// What was said over one connection of a memif: the state machine of either end. Whole messages come in, answers come out;
// sockets, threads and workers are not known here. Nothing that a message asks for is done halfway: after a refusal the
// connection has to end.
#pragma once

#include "base/limits.h"
#include "memif/memif_ring.h"
#include "shm/peer_memory.h"

// The direction of a ring of a queue pair.
enum memif_way { MEMIF_TO_CLIENT, MEMIF_TO_SERVER, MEMIF_WAYS };

struct memif_link_config {
	bool server;
	const char *name;            // of the port; must outlive the link
	unsigned pairs;              // queue pairs of the port
	unsigned log2_size;          // client: of its rings
	bool shares_buffers;         // client: with the others of the process that do (shm/pool.h)
	uint64_t memory_max;         // server: bytes of a client
	struct guest_charge *charge; // server: of the port, or NULL
};

// A ring that both ends know, or not: fd -1.
struct memif_link_ring {
	int fd; // the doorbell
	uint8_t log2_size;
	uint16_t region;
	uint32_t offset;
};

struct memif_link {
	struct memif_link_config config;
	bool greeted;                // INIT was accepted, or HELLO
	bool connected;              // both ends have all that they need: memif_link_open_ring()
	bool gone;                   // the other end has disconnected
	unsigned sent;               // client: messages after INIT
	unsigned counts[MEMIF_WAYS]; // client: of its rings
	struct memif_link_ring rings[CONFIG_QUEUES_MAX][MEMIF_WAYS];
	struct peer_memory memory; // server: the client's, region by region
	uint8_t *region;           // client: with the rings
	size_t region_bytes;
	int region_fd;
	struct shm_pool *pool; // client: of the buffers
	struct piece *pieces;  // client: of all rings, in their order
};

// A connection has begun. Returns whether *first is to be sent.
bool memif_link_begin(struct memif_link *link, const struct memif_link_config *config,
                      struct memif_message *first);

// Handle a message and the files that came with it: those that were accepted are the link's, the others stay in files.
// answer->type is MEMIF_NONE, or it is to be sent, with *answer_fd if that is not -1.
enum peer_refusal memif_link_handle(struct memif_link *link, const struct memif_message *message,
                                    struct peer_files *files, struct memif_message *answer, int *answer_fd);

// Set up a ring of a link that is connected. Returns false if the other end has none there, or one that cannot be.
bool memif_link_open_ring(struct memif_link *link, unsigned pair, enum memif_way way,
                          struct memif_ring *ring);

// The connection ends, and no worker has a ring of it.
void memif_link_end(struct memif_link *link);

// Say why a connection ends.
void memif_link_goodbye(struct memif_message *message, const char *reason);
