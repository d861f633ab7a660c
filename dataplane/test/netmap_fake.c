// SPDX-License-Identifier: BSD-3-Clause
#include "test/netmap_fake.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_common.h>

enum { RINGS = 2, TX = 0, RX = 1 };

// done: the first slot of each ring that is the program's no more, as far as the cable has looked.
static struct end {
	int fd;
	char name[NETMAP_NAME_MAX];
	uint8_t *memory;
	size_t bytes;
	struct netmap_ring *rings[RINGS];
	uint32_t size, done[RINGS], tail[RINGS];
	bool lies;
	unsigned lie_of;
	uint32_t lie;  // its next tail
	uint32_t sent; // of the transmit ring: given to the cable up to here
} ends[NETMAP_FAKE_PORTS];

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static netmap_fake_lie *lies;
static _Atomic(int) failure;

static struct end *find(int fd)
{
	for (unsigned i = 0; i < NETMAP_FAKE_PORTS; i++)
		if (ends[i].memory && ends[i].fd == fd)
			return &ends[i];
	return NULL;
}

static struct end *other_of(const struct end *end)
{
	size_t prefix = strcspn(end->name, ":") + 1;

	for (unsigned i = 0; i < NETMAP_FAKE_PORTS; i++)
		if (ends[i].memory && &ends[i] != end && strcmp(ends[i].name, end->name) != 0 &&
		    strncmp(ends[i].name, end->name, prefix) == 0)
			return &ends[i];
	return NULL;
}

static uint8_t *buffer(const struct netmap_ring *ring, uint32_t at)
{
	return (uint8_t *)(uintptr_t)ring + ring->buffers +
	       (size_t)ring->slots[at].buffer * ring->buffer_bytes;
}

// Move what end has sent to the other one, as far as that has room.
static void move(struct end *end, struct end *to)
{
	struct netmap_ring *tx = end->rings[TX], *rx = to->rings[RX];

	while (end->done[TX] != end->sent && (to->tail[RX] + 1) % to->size != to->done[RX]) {
		const struct netmap_slot *from = &tx->slots[end->done[TX]];
		struct netmap_slot *slot = &rx->slots[to->tail[RX]];

		memcpy(buffer(rx, to->tail[RX]), buffer(tx, end->done[TX]), from->length);
		slot->length = from->length;
		slot->flags = 1 << 8; // as VALE: of one fragment
		to->tail[RX] = (to->tail[RX] + 1) % to->size;
		end->done[TX] = (end->done[TX] + 1) % end->size;
	}
}

static void sync_end(struct end *end, unsigned which)
{
	struct netmap_ring *ring = end->rings[which];
	struct end *other = other_of(end);

	if (which == RX) {
		end->done[RX] = ring->head;
		if (other)
			move(other, end);
		ring->tail = end->tail[RX];
		return;
	}
	end->sent = ring->head;
	if (other)
		move(end, other);
	ring->tail = (end->done[TX] + end->size - 1) % end->size;
}

// The interface, a transmit and a receive ring with size slots each, and their buffers; 0 and 1 are nobody's.
static int make(struct end *end, int fd, const char *name, struct netmap_register *made)
{
	uint32_t size = made->tx_slots;
	size_t ring_bytes = sizeof(struct netmap_ring) + size * sizeof(struct netmap_slot);
	size_t first = 4096, buffers = RTE_ALIGN_CEIL(first + RINGS * ring_bytes, (size_t)4096);
	struct netmap_interface *interface;

	if (end->memory)
		munmap(end->memory, end->bytes);
	*end = (struct end){.fd = fd, .size = size};
	end->bytes = buffers + (size_t)(RINGS * size + 2) * NETMAP_FAKE_BUFFER_BYTES;
	if (ftruncate(fd, (off_t)end->bytes))
		return -1;
	end->memory = mmap(NULL, end->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (end->memory == MAP_FAILED) {
		end->memory = NULL;
		return -1;
	}
	memcpy(end->name, name, sizeof(end->name));
	interface = (struct netmap_interface *)(end->memory + 64);
	interface->tx_rings = interface->rx_rings = 1;
	for (unsigned i = 0; i < RINGS; i++) {
		struct netmap_ring *ring = (struct netmap_ring *)(end->memory + first + i * ring_bytes);

		interface->rings[i] = (uint8_t *)ring - (uint8_t *)interface;
		ring->size = size;
		ring->buffer_bytes = NETMAP_FAKE_BUFFER_BYTES;
		ring->buffers = end->memory + buffers - (uint8_t *)ring;
		ring->tail = end->tail[i] = i == TX ? size - 1 : 0;
		for (uint32_t slot = 0; slot < size; slot++)
			ring->slots[slot].buffer = 2 + i * size + slot;
		end->rings[i] = ring;
	}
	*made = (struct netmap_register){.offset = 64, .bytes = end->bytes, .tx_rings = 1, .rx_rings = 1};
	if (lies)
		lies(made, interface, end->rings[TX], end->rings[RX]);
	return 0;
}

static int call_locked(int fd, unsigned long request, void *argument)
{
	const struct netmap_header *header = argument;
	struct end *end = find(fd);
	unsigned which;

	errno = failure;
	if (failure)
		return -1;
	if (request != NETMAP_CONTROL) {
		which = request == NETMAP_RX_SYNC ? RX : TX;
		sync_end(end, which);
		if (end->lies && end->lie_of == which)
			end->rings[which]->tail = end->lie;
		return 0;
	}
	errno = EINVAL;
	if (header->version != NETMAP_API || header->request != NETMAP_REQ_REGISTER)
		return -1;
	for (unsigned i = 0; i < NETMAP_FAKE_PORTS && !end; i++)
		if (ends[i].memory == NULL || strcmp(ends[i].name, header->name) == 0)
			end = &ends[i];
	return end ? make(end, fd, header->name, (struct netmap_register *)(uintptr_t)header->body) : -1;
}

static int call(int fd, unsigned long request, void *argument)
{
	int rc;

	pthread_mutex_lock(&mutex);
	rc = call_locked(fd, request, argument);
	pthread_mutex_unlock(&mutex);
	return rc;
}

static int open_memory(void)
{
	return memfd_create("netmap", MFD_CLOEXEC);
}

void netmap_fake_begin(netmap_fake_lie *lie)
{
	lies = lie;
	netmap_calls = (struct netmap_calls){.open = open_memory, .ioctl = call};
}

static struct end *named(const char *name)
{
	for (unsigned i = 0; i < NETMAP_FAKE_PORTS; i++)
		if (ends[i].memory && strcmp(ends[i].name, name) == 0)
			return &ends[i];
	return NULL;
}

struct netmap_ring *netmap_fake_ring(const char *name, bool receives)
{
	return named(name)->rings[receives ? RX : TX];
}

void netmap_fake_tail(const char *name, bool receives, uint32_t tail)
{
	struct end *end = named(name);

	end->lies = true;
	end->lie = tail;
	end->lie_of = receives ? RX : TX;
}

void netmap_fake_fail(int error)
{
	failure = error;
}
