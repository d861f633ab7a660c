// SPDX-License-Identifier: BSD-3-Clause
#include "tester/probe_tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "tester/frame.h"

enum {
	SLOT_BYTES = 256,
	BLOCK_BYTES = 65536,
	RING_BYTES = STAMPS_MAX * SLOT_BYTES,
	SNAP_BYTES = 144, // of a frame: with the headers before it in a slot
};

struct probe_tap {
	int fd;
	uint16_t epoch;
	uint8_t *ring;
	unsigned next; // slot
};

// Where our magic may be, in rising order, because a program ends where it reads behind the frame: behind UDP or TCP, in
// IPv4 or IPv6, with up to two tags, and behind a PTP header.
static const uint8_t places[] = {42, 46, 50, 54, 58, 62, 66, 70, 74, 76, 78, 80, 82, 84};

enum { PLACES = sizeof(places), PER_PLACE = 4, HEAD = 2, FILTER = HEAD + PER_PLACE * PLACES + 2 };

// Frames of one direction with our magic and the flag of a probe at one of the places.
static int filter_set(int fd, bool sent)
{
	struct sock_filter code[FILTER] = {
	        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
	        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 0),
	};
	const struct sock_fprog program = {.len = FILTER, .filter = code};
	unsigned at = HEAD;

	if (sent)
		code[HEAD - 1].jf = FILTER - HEAD - 2;
	else
		code[HEAD - 1].jt = FILTER - HEAD - 2;
	for (unsigned i = 0; i < PLACES; i++) {
		const struct sock_filter place[PER_PLACE] = {
		        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, places[i]),
		        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FRAME_MAGIC, 0, 2),
		        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, places[i] + FRAME_OWN_FLAGS),
		        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, FRAME_FLAG_PROBE,
		                 (uint8_t)(FILTER - 1 - (at + PER_PLACE)), 0),
		};

		memcpy(&code[at], place, sizeof(place));
		at += PER_PLACE;
	}
	code[FILTER - 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	code[FILTER - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SNAP_BYTES);
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

// Stamps of the kernel, and not the time at which it wrote to the ring.
static int stamps_want(int fd)
{
	const int flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;

	return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags));
}

static int ring_map(struct probe_tap *tap)
{
	const int version = TPACKET_V2;
	const struct tpacket_req request = {.tp_block_size = BLOCK_BYTES,
	                                    .tp_block_nr = RING_BYTES / BLOCK_BYTES,
	                                    .tp_frame_size = SLOT_BYTES,
	                                    .tp_frame_nr = STAMPS_MAX};
	void *ring;

	if (setsockopt(tap->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) != 0 ||
	    setsockopt(tap->fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)) != 0)
		return -1;
	ring = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, tap->fd, 0);
	if (ring == MAP_FAILED)
		return -1;
	tap->ring = ring;
	return 0;
}

static int interface_bind(int fd, const char *interface)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET,
	                              .sll_protocol = htons(ETH_P_ALL),
	                              .sll_ifindex = (int)if_nametoindex(interface)};

	return address.sll_ifindex ? bind(fd, (struct sockaddr *)&address, sizeof(address)) : -1;
}

struct probe_tap *probe_tap_open(const char *interface, bool sent, uint16_t epoch)
{
	struct probe_tap *tap = calloc(1, sizeof(*tap));

	if (tap == NULL)
		return NULL;
	tap->epoch = epoch;
	tap->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (tap->fd < 0 || filter_set(tap->fd, sent) != 0 || stamps_want(tap->fd) != 0 ||
	    ring_map(tap) != 0 || interface_bind(tap->fd, interface) != 0) {
		LOG_ERROR("interface %s: no time stamps of the kernel: %s", interface, strerror(errno));
		probe_tap_close(tap);
		return NULL;
	}
	return tap;
}

void probe_tap_close(struct probe_tap *tap)
{
	if (tap == NULL)
		return;
	if (tap->ring)
		munmap(tap->ring, RING_BYTES);
	if (tap->fd >= 0)
		close(tap->fd);
	free(tap);
}

enum { AHEAD = 4096 }; // both lists are in the order of the wire, and a worker waits meanwhile

// The entry of a probe, from number from on; the count if it is not there.
static uint32_t find(const struct stamps *stamps, uint32_t from, const struct frame_fields *fields)
{
	for (uint32_t end = RTE_MIN(stamps->count, from + AHEAD); from < end; from++)
		if (stamps->log[from].sequence == fields->sequence &&
		    stamps->log[from].stream == fields->stream)
			return from;
	return stamps->count;
}

void probe_tap_collect(struct probe_tap *tap, struct stamps *stamps)
{
	uint32_t from = 0;

	for (; tap->next < STAMPS_MAX; tap->next++) {
		const struct tpacket2_hdr *slot = (const void *)(tap->ring + tap->next * SLOT_BYTES);
		uint32_t status = __atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE);
		struct frame_fields fields;
		uint32_t at;

		if (!(status & TP_STATUS_USER))
			return;
		if (!(status & TP_STATUS_TS_SOFTWARE) ||
		    !frame_is_probe((const uint8_t *)slot + slot->tp_mac, slot->tp_snaplen, &fields) ||
		    fields.epoch != tap->epoch)
			continue;
		at = find(stamps, from, &fields);
		if (at == stamps->count)
			continue; // seen by the kernel only: it was refused, or lost on the way to us
		stamps->log[at].port_ns = (uint64_t)slot->tp_sec * 1000000000 + slot->tp_nsec;
		from = at + 1;
	}
}
