// SPDX-License-Identifier: BSD-3-Clause
// The way of a FIB client's frames on Linux: a packet socket (packet(7)) on the VNF's interface to the
// forwarder. Needs CAP_NET_RAW.
#pragma once

#include "planebench_fib.h"

#ifdef __cplusplus
extern "C" {
#endif

// Returns a file descriptor to poll() and close(), or -errno. mac: the interface's.
int fib_packet_open(const char *interface, uint8_t mac[6]);

// Send a frame; a full queue or an interface that is down loses it.
void fib_packet_send(int fd, const uint8_t *frame, unsigned length);

// Hand every frame that has come to the client; does not wait. Returns 0 or -errno: the interface is gone.
int fib_packet_receive(int fd, struct fib_client *client, uint64_t now_ns);

#ifdef __cplusplus
}
#endif
