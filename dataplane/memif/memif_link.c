// SPDX-License-Identifier: BSD-3-Clause
#include "memif/memif_link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shm/doorbell.h"

enum { CLIENT_REGIONS = MEMIF_BUFFER_REGION + 1 };

static void set_text(char *to, size_t bytes, const char *text)
{
	snprintf(to, bytes, "%s", text);
}

static bool is_there(const struct memif_link_ring *ring)
{
	return ring->fd >= 0;
}

bool memif_link_begin(struct memif_link *link, const struct memif_link_config *config,
                      struct memif_message *first)
{
	*link = (struct memif_link){.config = *config, .region_fd = -1};
	for (unsigned i = 0; i < CONFIG_QUEUES_MAX; i++)
		link->rings[i][MEMIF_TO_CLIENT].fd = link->rings[i][MEMIF_TO_SERVER].fd = -1;
	*first = (struct memif_message){.type = MEMIF_HELLO};
	set_text(first->hello.name, sizeof(first->hello.name), "planed");
	first->hello.version_min = first->hello.version_max = MEMIF_VERSION;
	first->hello.region_max = GUEST_REGIONS_MAX - 1;
	first->hello.ring_to_client_max = first->hello.ring_to_server_max = (uint16_t)(config->pairs - 1);
	first->hello.log2_size_max = MEMIF_LOG2_SIZE_MAX;
	return config->server;
}

void memif_link_goodbye(struct memif_message *message, const char *reason)
{
	*message = (struct memif_message){.type = MEMIF_DISCONNECT};
	set_text(message->disconnect.reason, sizeof(message->disconnect.reason), reason);
}

// --- The server's end ------------------------------------------------------------------------------------

static enum peer_refusal greet(struct memif_link *link, const struct memif_message *message)
{
	if (link->greeted)
		return PEER_REFUSED_NOT_NEGOTIATED;
	if (message->init.version != MEMIF_VERSION)
		return PEER_REFUSED_VERSION;
	if (message->init.id != 0 || message->init.mode != MEMIF_MODE_ETHERNET)
		return PEER_REFUSED_VALUE;
	link->greeted = true;
	return PEER_ACCEPTED;
}

// What is behind the first 4 GB of a region no descriptor can reach.
static enum peer_refusal add_region(struct memif_link *link, const struct memif_message *message,
                                    struct peer_files *files)
{
	uint64_t used = 0, address = (uint64_t)message->region.index << 32;
	struct peer_region region = {address, RTE_MIN(message->region.bytes, UINT64_C(1) << 32), address, 0};
	enum peer_refusal why;

	if (message->region.index != link->memory.guest.count)
		return PEER_REFUSED_VALUE;
	for (unsigned i = 0; i < link->memory.guest.count; i++)
		used += link->memory.guest.regions[i].size;
	why = peer_memory_add(&link->memory, &region, files->fds[0], link->config.memory_max - used,
	                      link->config.charge);
	if (why == PEER_ACCEPTED)
		files->count = 0;
	return why;
}

static enum peer_refusal add_ring(struct memif_link *link, const struct memif_message *message,
                                  struct peer_files *files)
{
	enum memif_way way = message->ring.flags & MEMIF_RING_TO_SERVER ? MEMIF_TO_SERVER : MEMIF_TO_CLIENT;
	struct memif_link_ring *ring;

	if (message->ring.index >= link->config.pairs)
		return PEER_REFUSED_RING;
	ring = &link->rings[message->ring.index][way];
	if (is_there(ring) || message->ring.log2_size > MEMIF_LOG2_SIZE_MAX || message->ring.private_bytes)
		return PEER_REFUSED_VALUE;
	if (!doorbell_take(files->fds[0]))
		return PEER_REFUSED_NO_EVENTFD;
	*ring = (struct memif_link_ring){files->fds[0], message->ring.log2_size, message->ring.region,
	                                 message->ring.offset};
	files->count = 0;
	return PEER_ACCEPTED;
}

// All rings must be in the memory, now that it is known.
static enum peer_refusal connect_rings(struct memif_link *link)
{
	struct memif_ring ring;

	for (unsigned pair = 0; pair < link->config.pairs; pair++)
		for (int way = 0; way < MEMIF_WAYS; way++)
			if (is_there(&link->rings[pair][way]) &&
			    !memif_link_open_ring(link, pair, (enum memif_way)way, &ring))
				return PEER_REFUSED_RING;
	link->connected = true;
	return PEER_ACCEPTED;
}

static enum peer_refusal serve(struct memif_link *link, const struct memif_message *message,
                               struct peer_files *files, struct memif_message *answer)
{
	enum peer_refusal why = PEER_REFUSED_NOT_OFFERED;
	const unsigned wanted = message->type == MEMIF_ADD_REGION || message->type == MEMIF_ADD_RING;

	if (files->count != wanted)
		return PEER_REFUSED_FILES;
	if (link->connected || (!link->greeted && message->type != MEMIF_INIT))
		return PEER_REFUSED_NOT_NEGOTIATED;
	answer->type = MEMIF_ACK;
	switch (message->type) {
	case MEMIF_INIT:
		why = greet(link, message);
		break;
	case MEMIF_ADD_REGION:
		why = add_region(link, message, files);
		break;
	case MEMIF_ADD_RING:
		why = add_ring(link, message, files);
		break;
	case MEMIF_CONNECT:
		why = connect_rings(link);
		answer->type = MEMIF_CONNECTED;
		set_text(answer->interface, sizeof(answer->interface), link->config.name);
		break;
	}
	return why;
}

// --- The client's end ------------------------------------------------------------------------------------

static unsigned ring_count(const struct memif_link *link)
{
	return link->counts[MEMIF_TO_CLIENT] + link->counts[MEMIF_TO_SERVER];
}

static unsigned buffer_count(const struct memif_link *link)
{
	return ring_count(link) << link->config.log2_size;
}

// Make the region in which the rings lie.
static enum peer_refusal make_region(struct memif_link *link)
{
	const size_t size = (size_t)1 << link->config.log2_size;

	link->region_bytes = RTE_ALIGN_CEIL(ring_count(link) * memif_ring_bytes(size), (size_t)getpagesize());
	link->region = shm_memory("memif", link->region_bytes, MAP_POPULATE, &link->region_fd);
	return link->region ? PEER_ACCEPTED : PEER_REFUSED_MEMORY_MAP;
}

static enum peer_refusal take_buffers(struct memif_link *link)
{
	link->pieces = calloc(buffer_count(link), sizeof(*link->pieces));
	if (link->pieces)
		link->pool = shm_pool_take(link->config.shares_buffers, MEMIF_BUFFER_BYTES, link->pieces,
		                           buffer_count(link));
	return link->pool ? PEER_ACCEPTED : PEER_REFUSED_MEMORY_MAP;
}

// Those to the server come first.
static enum peer_refusal make_rings(struct memif_link *link)
{
	const uint32_t bytes = (uint32_t)memif_ring_bytes((size_t)1 << link->config.log2_size);
	uint32_t offset = 0;

	for (int way = MEMIF_TO_SERVER; way >= MEMIF_TO_CLIENT; way--)
		for (unsigned i = 0; i < link->counts[way]; i++, offset += bytes) {
			int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

			if (fd < 0)
				return PEER_REFUSED_NO_EVENTFD;
			link->rings[i][way] =
			        (struct memif_link_ring){fd, (uint8_t)link->config.log2_size, 0, offset};
		}
	return PEER_ACCEPTED;
}

// A server that takes smaller rings than ours gets those.
static enum peer_refusal meet(struct memif_link *link, const struct memif_message *message,
                              struct memif_message *answer)
{
	enum peer_refusal why;

	if (link->greeted)
		return PEER_REFUSED_NOT_NEGOTIATED;
	if (message->hello.version_min > MEMIF_VERSION || message->hello.version_max < MEMIF_VERSION)
		return PEER_REFUSED_VERSION;
	if (message->hello.region_max < MEMIF_BUFFER_REGION)
		return PEER_REFUSED_MEMORY_LIMIT;
	link->counts[MEMIF_TO_CLIENT] = RTE_MIN(message->hello.ring_to_client_max + 1u, link->config.pairs);
	link->counts[MEMIF_TO_SERVER] = RTE_MIN(message->hello.ring_to_server_max + 1u, link->config.pairs);
	link->config.log2_size = RTE_MIN((unsigned)message->hello.log2_size_max, link->config.log2_size);
	why = make_region(link);
	if (why == PEER_ACCEPTED)
		why = take_buffers(link);
	if (why == PEER_ACCEPTED)
		why = make_rings(link);
	for (unsigned pair = 0; pair < link->config.pairs && why == PEER_ACCEPTED; pair++)
		for (int way = 0; way < MEMIF_WAYS; way++) {
			struct memif_ring ring;

			memif_link_open_ring(link, pair, (enum memif_way)way, &ring); // a server looks at it
		}
	link->greeted = true;
	answer->type = MEMIF_INIT;
	answer->init.version = MEMIF_VERSION;
	answer->init.mode = MEMIF_MODE_ETHERNET;
	set_text(answer->init.name, sizeof(answer->init.name), "planed");
	return why;
}

static void say_region(const struct memif_link *link, unsigned index, struct memif_message *answer,
                       int *answer_fd)
{
	bool rings = index == MEMIF_RING_REGION;

	answer->type = MEMIF_ADD_REGION;
	answer->region.index = (uint16_t)index;
	answer->region.bytes = rings ? link->region_bytes : link->pool->bytes;
	*answer_fd = rings ? link->region_fd : link->pool->fd;
}

// The regions, the rings, and that this is all.
static void say_next(struct memif_link *link, struct memif_message *answer, int *answer_fd)
{
	unsigned n = link->sent++, to_server = link->counts[MEMIF_TO_SERVER];

	if (n < CLIENT_REGIONS) {
		say_region(link, n, answer, answer_fd);
	} else if (n < CLIENT_REGIONS + ring_count(link)) {
		unsigned number = n - CLIENT_REGIONS;
		enum memif_way way = number < to_server ? MEMIF_TO_SERVER : MEMIF_TO_CLIENT;
		unsigned index = way == MEMIF_TO_SERVER ? number : number - to_server;
		const struct memif_link_ring *ring = &link->rings[index][way];

		answer->type = MEMIF_ADD_RING;
		answer->ring.flags = way == MEMIF_TO_SERVER ? MEMIF_RING_TO_SERVER : 0;
		answer->ring.index = (uint16_t)index;
		answer->ring.region = ring->region;
		answer->ring.offset = ring->offset;
		answer->ring.log2_size = ring->log2_size;
		*answer_fd = ring->fd;
	} else {
		answer->type = MEMIF_CONNECT;
		set_text(answer->interface, sizeof(answer->interface), link->config.name);
	}
}

static enum peer_refusal drive(struct memif_link *link, const struct memif_message *message,
                               struct peer_files *files, struct memif_message *answer, int *answer_fd)
{
	if (files->count)
		return PEER_REFUSED_FILES;
	switch (message->type) {
	case MEMIF_HELLO:
		return meet(link, message, answer);
	case MEMIF_ACK:
		if (!link->greeted || link->sent > ring_count(link) + CLIENT_REGIONS)
			return PEER_REFUSED_NOT_NEGOTIATED;
		say_next(link, answer, answer_fd);
		return PEER_ACCEPTED;
	case MEMIF_CONNECTED:
		if (!link->greeted || link->connected || link->sent <= ring_count(link) + CLIENT_REGIONS)
			return PEER_REFUSED_NOT_NEGOTIATED;
		link->connected = true;
		return PEER_ACCEPTED;
	}
	return PEER_REFUSED_NOT_OFFERED;
}

// --- Both ends -------------------------------------------------------------------------------------------

enum peer_refusal memif_link_handle(struct memif_link *link, const struct memif_message *message,
                                    struct peer_files *files, struct memif_message *answer, int *answer_fd)
{
	*answer = (struct memif_message){.type = MEMIF_NONE};
	*answer_fd = -1;
	if (message->type == MEMIF_DISCONNECT) {
		link->gone = true;
		return PEER_ACCEPTED;
	}
	return link->config.server ? serve(link, message, files, answer)
	                           : drive(link, message, files, answer, answer_fd);
}

static void open_own(struct memif_link *link, const struct memif_link_ring *at, bool receives,
                     struct memif_ring *ring)
{
	unsigned size = 1u << at->log2_size;
	size_t number = at->offset / memif_ring_bytes(size);

	memif_ring_make(ring, receives, size, link->region + at->offset, link->pieces + number * size,
	                link->pool->at);
}

bool memif_link_open_ring(struct memif_link *link, unsigned pair, enum memif_way way, struct memif_ring *ring)
{
	const struct memif_link_ring *at = &link->rings[pair][way];
	bool receives = way == (link->config.server ? MEMIF_TO_SERVER : MEMIF_TO_CLIENT);

	if (!is_there(at))
		return false;
	if (link->config.server)
		return memif_ring_attach(ring, receives, at->log2_size, at->region, at->offset,
		                         &link->memory.guest) == 0;
	open_own(link, at, receives, ring);
	return true;
}

void memif_link_end(struct memif_link *link)
{
	for (unsigned i = 0; i < CONFIG_QUEUES_MAX; i++)
		for (unsigned way = 0; way < MEMIF_WAYS; way++)
			if (is_there(&link->rings[i][way])) {
				close(link->rings[i][way].fd);
				link->rings[i][way].fd = -1;
			}
	peer_memory_close(&link->memory);
	if (link->pool)
		shm_pool_give_back(link->pool, link->pieces, buffer_count(link));
	free(link->pieces);
	link->pool = NULL;
	link->pieces = NULL;
	if (link->region)
		munmap(link->region, link->region_bytes);
	if (link->region_fd >= 0)
		close(link->region_fd);
	link->region = NULL;
	link->region_fd = -1;
}
