// SPDX-License-Identifier: BSD-3-Clause
// A malicious vhost-user device: whatever answers it gives, with whatever descriptors, the driver's side of the protocol
// comes to an end, negotiates only what was offered and what it knows, says in one sentence what was wrong, and keeps
// nothing.
//
// An input is what the device says, all of it before it is asked: answers, each with a request, a number and what is odd
// about it. Then it is silent for good, so nobody waits for it. test/fuzz.h says how it is run.
// A copy of the code beside that of the library: the fuzzer begins behind connect().
#define frontend_open  fuzzed_open
#define frontend_close fuzzed_close
#define frontend_leave fuzzed_leave
#define frontend_left  fuzzed_left
#define frontend_share fuzzed_share
#define frontend_start fuzzed_start
#define frontend_stop  fuzzed_stop
#define frontend_alive fuzzed_alive
#include "virtio/frontend.c"

#include <stdlib.h>

#include "test/fuzz.h"
#include "test/vhost_peer.h"

enum { PAIRS = 2, RINGS = 2 * PAIRS, ANSWERS_MAX = 48, KEPT_ANSWER = 20 };

static unsigned files_at_rest;
static unsigned long opened, shared, started, stopped;
static int memory_fd, event_fd;

static void must(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "frontend_fuzz: not so: %s\n", what);
	abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	memory_fd = peer_memory(0, PEER_MEMORY);
	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return 0;
}

// One answer: whole and right by default.
static void answer(int peer, struct input *in)
{
	uint8_t odd = input_byte(in);
	struct vhost_message message = {.request = input_byte(in),
	                                .flags = VHOST_FLAG_VERSION | VHOST_FLAG_REPLY,
	                                .size = sizeof(message.value)};
	const int fds[] = {memory_fd, event_fd};
	uint32_t bytes = KEPT_ANSWER;

	message.value = input_word(in);
	message.value |= (uint64_t)input_word(in) << 16;
	message.value |= (uint64_t)input_byte(in) << 32;
	if (odd & 1)
		message.flags = input_byte(in);
	if (odd & 2)
		message.size = (uint32_t)input_word(in) << (odd >> 6) * 8;
	if (odd & 4)
		bytes = input_byte(in) % (KEPT_ANSWER + 1);
	if (odd & 8)
		message.request = input_word(in);
	peer_send_bytes(peer, &message, bytes, fds, (odd >> 4 & 3) % 3);
}

static void converse(struct frontend *f)
{
	const struct memory_table table = {.count = 1, .regions = {{PEER_USER, PEER_MEMORY, 0, memory_fd}}};
	struct frontend_ring rings[RINGS];

	for (unsigned i = 0; i < RINGS; i++)
		rings[i] = (struct frontend_ring){(void *)PEER_USER, (void *)PEER_USER, (void *)PEER_USER,
		                                  PEER_RING,         event_fd,          event_fd};
	frontend_begin(f);
	if (negotiate(f, PAIRS, true))
		return;
	opened++;
	must(f->features & VHOST_BIT(VIRTIO_F_VERSION_1), "no device of another time is driven");
	must((f->protocol_features &
	      ~(VHOST_BIT(VHOST_PROTOCOL_F_MQ) | VHOST_BIT(VHOST_PROTOCOL_F_REPLY_ACK))) == 0,
	     "only what is known is negotiated");
	if (frontend_share(f, &table))
		return;
	shared++;
	if (frontend_start(f, rings, RINGS))
		return;
	started++;
	stopped += frontend_stop(f, RINGS) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frontend f = {.fd = -1, .path = "/fuzz"};
	struct input in = {data, size};
	int pair[2];

	files_at_rest = open_files(); // libFuzzer has some of its own, at times
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0,
	     "there are sockets");
	f.fd = pair[0];
	for (unsigned i = 0; i < ANSWERS_MAX && in.left; i++)
		answer(pair[1], &in);
	shutdown(pair[1], SHUT_WR);
	converse(&f);
	must(!frontend_alive(&f) && f.error[0], "it is told what is wrong");
	must(memchr(f.error, 0, sizeof(f.error)) && strchr(f.error, '\n') == NULL, "in one line");
	must(frontend_left(frontend_leave(&f)) && f.fd < 0, "the device has left");
	close(pair[0]);
	close(pair[1]);
	must(open_files() == files_at_rest, "no descriptor is left");
	return 0;
}

void fuzz_report(void)
{
	printf("%lu times negotiated, %lu shared, %lu started, %lu stopped\n", opened, shared, started,
	       stopped);
}
