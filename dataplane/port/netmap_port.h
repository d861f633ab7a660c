// SPDX-License-Identifier: BSD-3-Clause
// What we need of netmap's interface to programs: struct netmap_ring, netmap_slot, netmap_if, nmreq_header and nmreq_register,
// and the requests of /dev/netmap, as sys/net/netmap.h of netmap has them (NETMAP_API 14). And the calls by which a port
// (port/netmap_port.c) reaches the kernel.
#pragma once

#include <assert.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/time.h>

enum {
	NETMAP_API = 14,
	NETMAP_NAME_MAX = 64,      // NETMAP_REQ_IFNAMSIZ
	NETMAP_REQ_REGISTER = 1,   // nmreq_header.nr_reqtype
	NETMAP_REG_ALL_NIC = 1,    // NR_REG_ALL_NIC
	NETMAP_MORE_FRAGS = 0x0020 // NS_MOREFRAG
};

struct netmap_slot {
	uint32_t buffer;
	uint16_t length;
	uint16_t flags;
	uint64_t pointer;
};

// Slots and buffers from head to tail are the program's, the others the kernel's, which reads and writes them in a system
// call of the program only.
struct netmap_ring {
	int64_t buffers; // offset from here
	uint32_t size, buffer_bytes;
	uint16_t id, direction;
	uint32_t head, wakeup, tail;
	uint32_t flags;
	struct timeval synced;
	uint64_t offset_mask, alignment;
	uint8_t lock[128] __attribute__((aligned(128)));
	struct netmap_slot slots[];
};
static_assert(sizeof(struct netmap_ring) == 256, "struct netmap_ring of netmap.h");

struct netmap_interface {
	char name[16];
	uint32_t version, flags;
	uint32_t tx_rings, rx_rings;
	uint32_t extra_buffers, host_tx_rings, host_rx_rings, spare[3];
	int64_t rings[]; // offsets from here: tx, host tx, rx, host rx
};
static_assert(sizeof(struct netmap_interface) == 56, "struct netmap_if of netmap.h");

struct netmap_header {
	uint16_t version, request;
	uint32_t reserved;
	char name[NETMAP_NAME_MAX];
	uint64_t options, body; // pointers
};
static_assert(sizeof(struct netmap_header) == 88, "struct nmreq_header of netmap.h");

struct netmap_register {
	uint64_t offset, bytes; // of the struct netmap_interface; of the memory
	uint32_t tx_slots, rx_slots;
	uint16_t tx_rings, rx_rings, host_tx_rings, host_rx_rings;
	uint16_t memory, ring;
	uint32_t mode, extra_buffers;
	uint64_t flags;
};
static_assert(sizeof(struct netmap_register) == 56, "struct nmreq_register of netmap.h");

#define NETMAP_CONTROL _IOWR('i', 151, struct netmap_header) // NIOCCTRL
#define NETMAP_TX_SYNC _IO('i', 148)                         // NIOCTXSYNC
#define NETMAP_RX_SYNC _IO('i', 149)                         // NIOCRXSYNC

// Tests put a netmap of their own here (test/netmap_fake.h), before a port opens.
struct netmap_calls {
	int (*open)(void); // a descriptor of /dev/netmap, or -1 with errno
	int (*ioctl)(int fd, unsigned long request, void *argument);
};
extern struct netmap_calls netmap_calls;
