// SPDX-License-Identifier: BSD-3-Clause
// Example: announces routes and keeps their session alive until it is interrupted.
//
//     fib_announce INTERFACE WIRE GATEWAY_MAC PREFIX...
//
// All prefixes lead to one next hop, out by a wire of the VNF to the gateway.
#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <netinet/ether.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fib/client/planebench_fib_packet.h"

struct announcer {
	int fd, prefix_count;
	char **prefixes;
	struct fib_client_hop hop;
	struct fib_client *client;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
	interrupted = 1;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// A decimal number of at most max: digits alone, and at least one.
static bool number_read(const char *text, unsigned long max, unsigned long *out)
{
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || digits > 4 || text[digits] != '\0')
		return false;
	*out = strtoul(text, NULL, 10);
	return *out <= max;
}

// "198.51.100.0/24", "2001:db8::/32"; without a length it is a host.
static bool route_read(const char *text, struct fib_client_route *route)
{
	char address[INET6_ADDRSTRLEN];
	size_t length = strcspn(text, "/");
	unsigned long bits = strchr(text, ':') ? 128 : 32;

	*route = (struct fib_client_route){.family = strchr(text, ':') ? 6 : 4, .hop = 1};
	if (length >= sizeof(address))
		return false;
	memcpy(address, text, length);
	address[length] = '\0';
	if (text[length] == '/' && !number_read(text + length + 1, bits, &bits))
		return false;
	route->length = (uint8_t)bits;
	return inet_pton(route->family == 4 ? AF_INET : AF_INET6, address, route->address) == 1;
}

static bool is_prefix(const char *text)
{
	struct fib_client_route route;
	bool is = route_read(text, &route);

	if (!is)
		fprintf(stderr, "fib_announce: %s: expected ADDRESS or ADDRESS/LENGTH\n", text);
	return is;
}

static void prefix_print(const struct fib_client_route *route)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(route->family == 4 ? AF_INET : AF_INET6, route->address, text, sizeof(text));
	fprintf(stderr, "fib_announce: %s/%u", text, route->length);
}

static void refused(void *context, const struct fib_client_refusal *refusal)
{
	if (refusal->type == FIB_ROUTES)
		prefix_print(&refusal->route);
	else
		fprintf(stderr, "fib_announce: next hop %u", refusal->hop.number);
	fprintf(stderr, ": %s\n", fib_client_reason(refusal->code));
}

// The window has room for some ten thousand: more than a command line has.
static void announce(void *context)
{
	struct announcer *announcer = context;
	struct fib_client_route route;
	int rc = fib_client_set_hop(announcer->client, &announcer->hop);

	for (int i = 0; i < announcer->prefix_count && rc == 0; i++) {
		route_read(announcer->prefixes[i], &route); // checked by main()
		rc = fib_client_set_route(announcer->client, FIB_REPLACE, &route);
	}
	if (rc == 0)
		rc = fib_client_end_of_rib(announcer->client);
	if (rc)
		fprintf(stderr, "fib_announce: not all is announced: %s\n", strerror(-rc));
}

static void send_frame(void *context, const uint8_t *frame, unsigned length)
{
	fib_packet_send(((struct announcer *)context)->fd, frame, length);
}

static int run(struct announcer *announcer)
{
	struct pollfd poll_fd = {.fd = announcer->fd, .events = POLLIN};
	int rc = 0;

	while (!interrupted && rc == 0) {
		fib_client_tick(announcer->client, now_ns());
		if (poll(&poll_fd, 1, 10) > 0)
			rc = fib_packet_receive(announcer->fd, announcer->client, now_ns());
	}
	if (rc)
		fprintf(stderr, "fib_announce: %s\n", strerror(-rc));
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int start(struct announcer *announcer, const char *interface)
{
	struct fib_client_config config = {
	        .session = (uint32_t)time(NULL), .send = send_frame, .refused = refused, .lost = announce};

	announcer->fd = fib_packet_open(interface, config.mac);
	if (announcer->fd < 0) {
		fprintf(stderr, "fib_announce: %s: %s\n", interface, strerror(-announcer->fd));
		return -1;
	}
	config.context = announcer;
	announcer->client = fib_client_create(&config, now_ns());
	if (announcer->client)
		announce(announcer);
	return announcer->client ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct announcer announcer = {.hop = {.number = 1, .kind = FIB_HOP_FORWARD}};
	struct ether_addr gateway;
	unsigned long wire;
	int code;

	if (argc < 5 || !number_read(argv[2], UINT8_MAX, &wire) || ether_aton_r(argv[3], &gateway) == NULL) {
		fprintf(stderr, "usage: fib_announce INTERFACE WIRE GATEWAY_MAC PREFIX...\n");
		return 2;
	}
	for (int i = 4; i < argc; i++)
		if (!is_prefix(argv[i]))
			return 2;
	signal(SIGINT, interrupt);
	signal(SIGTERM, interrupt);
	announcer.prefixes = argv + 4;
	announcer.prefix_count = argc - 4;
	announcer.hop.wire = (uint8_t)wire;
	memcpy(announcer.hop.destination, &gateway, sizeof(announcer.hop.destination));
	if (start(&announcer, argv[1]))
		return EXIT_FAILURE;
	code = run(&announcer);
	fib_client_destroy(announcer.client);
	close(announcer.fd);
	return code;
}
