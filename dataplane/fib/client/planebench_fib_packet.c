// SPDX-License-Identifier: BSD-3-Clause
#include "planebench_fib_packet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FRAME_BYTES_MAX = 2048 };

static int bind_to(int fd, const char *interface, uint8_t mac[6])
{
	struct sockaddr_ll address = {
	        .sll_family = AF_PACKET,
	        .sll_protocol = htons(FIB_ETHER_TYPE),
	        .sll_ifindex = (int)if_nametoindex(interface),
	};
	socklen_t length = sizeof(address);

	if (address.sll_ifindex == 0)
		return -ENODEV;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) ||
	    getsockname(fd, (struct sockaddr *)&address, &length))
		return -errno;
	memcpy(mac, address.sll_addr, 6);
	return 0;
}

int fib_packet_open(const char *interface, uint8_t mac[6])
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(FIB_ETHER_TYPE)), rc;

	if (fd < 0)
		return -errno;
	rc = bind_to(fd, interface, mac);
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

void fib_packet_send(int fd, const uint8_t *frame, unsigned length)
{
	ssize_t sent = send(fd, frame, length, 0);

	(void)sent; // lost: it will be sent again
}

int fib_packet_receive(int fd, struct fib_client *client, uint64_t now_ns)
{
	uint8_t frame[FRAME_BYTES_MAX];
	ssize_t length;

	while ((length = recv(fd, frame, sizeof(frame), 0)) >= 0)
		fib_client_received(client, frame, (unsigned)length, now_ns);
	if (errno == EAGAIN || errno == EINTR || errno == ENETDOWN) // that is told once: it may come up again
		return 0;
	return -errno;
}
