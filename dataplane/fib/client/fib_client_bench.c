// SPDX-License-Identifier: BSD-3-Clause
// How fast a forwarder takes routes from one VNF: announces all routes of standard input at once.
//
//     fib_client_bench INTERFACE < ROUTES
//
// A route is 18 bytes: family (4 or 6), length, address. All are dropped (BLACKHOLE). Prints a line of JSON when the
// last one is answered; bench/fib_convergence.py runs it.
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fib/client/planebench_fib_packet.h"

enum { ROUTE_BYTES = 18, POLL_MS = 10 };

struct load {
	int fd;
	struct fib_client *client;
	uint8_t *routes; // of ROUTE_BYTES
	size_t count, next;
	bool lost;
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int routes_read(struct load *load)
{
	size_t room = 0, got;

	for (;;) {
		if (load->count == room) {
			uint8_t *larger = realloc(load->routes, (room + 65536) * ROUTE_BYTES);

			if (larger == NULL)
				return -ENOMEM;
			load->routes = larger;
			room += 65536;
		}
		got = fread(load->routes + load->count * ROUTE_BYTES, ROUTE_BYTES, room - load->count, stdin);
		if (got == 0)
			return ferror(stdin) ? -EIO : 0;
		load->count += got;
	}
}

static void send_frame(void *context, const uint8_t *frame, unsigned length)
{
	fib_packet_send(((struct load *)context)->fd, frame, length);
}

static void lost(void *context)
{
	((struct load *)context)->lost = true;
}

// As many as there is room for; END_OF_RIB behind the last.
static int announce(struct load *load)
{
	while (load->next < load->count) {
		const uint8_t *bytes = load->routes + load->next * ROUTE_BYTES;
		struct fib_client_route route = {.family = bytes[0], .length = bytes[1], .hop = 1};
		int rc;

		memcpy(route.address, bytes + 2, sizeof(route.address));
		rc = fib_client_set_route(load->client, FIB_REPLACE, &route);
		if (rc)
			return rc;
		load->next++;
	}
	return fib_client_end_of_rib(load->client);
}

static int run(struct load *load)
{
	struct pollfd poll_fd = {.fd = load->fd, .events = POLLIN};
	struct fib_client_status status;
	bool all = false;
	int rc;

	do {
		rc = all ? 0 : announce(load);
		if (rc && rc != -EAGAIN)
			return rc;
		all = rc == 0;
		fib_client_tick(load->client, now_ns());
		poll(&poll_fd, 1, POLL_MS);
		rc = fib_packet_receive(load->fd, load->client, now_ns());
		fib_client_read(load->client, &status);
	} while (rc == 0 && !load->lost && (!all || status.unanswered));
	return load->lost ? -ECONNRESET : rc;
}

static int measure(struct load *load)
{
	const struct fib_client_hop hop = {.number = 1, .kind = FIB_HOP_BLACKHOLE};
	struct fib_client_status status;
	uint64_t start_ns = now_ns();
	clock_t start = clock();
	int rc = fib_client_set_hop(load->client, &hop);

	if (rc == 0)
		rc = run(load);
	fib_client_read(load->client, &status);
	if (rc == 0)
		printf("{\"routes\": %llu, \"refused\": %llu, \"retransmitted\": %llu, \"seconds\": %.6f, "
		       "\"cpu_seconds\": %.6f}\n",
		       (unsigned long long)status.routes, (unsigned long long)status.refused,
		       (unsigned long long)status.retransmitted, (double)(now_ns() - start_ns) / 1e9,
		       (double)(clock() - start) / CLOCKS_PER_SEC);
	return rc;
}

int main(int argc, char **argv)
{
	struct load load = {.fd = -1};
	struct fib_client_config config = {
	        .session = (uint32_t)time(NULL), .send = send_frame, .lost = lost, .context = &load};
	int rc;

	if (argc != 2) {
		fprintf(stderr, "usage: fib_client_bench INTERFACE < ROUTES\n");
		return 2;
	}
	rc = routes_read(&load);
	if (rc == 0) {
		load.fd = fib_packet_open(argv[1], config.mac);
		rc = load.fd < 0 ? load.fd : 0;
	}
	if (rc == 0) {
		load.client = fib_client_create(&config, now_ns());
		rc = load.client ? measure(&load) : -ENOMEM;
	}
	if (rc)
		fprintf(stderr, "fib_client_bench: %s: %s\n", argv[1], strerror(-rc));
	fib_client_destroy(load.client);
	if (load.fd >= 0)
		close(load.fd);
	free(load.routes);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
