// SPDX-License-Identifier: BSD-3-Clause
// The forwarder's side alone, for tests of clients in other languages. Frames of VNF 1 come on stdin, each
// behind its length (32 bits, native); each is answered on stdout the same way, with length 0 where there is
// no answer. Length 0 asks for the routes instead: lines "PREFIX HOP KIND PORT MAC STALE". Time stands still.
//
//     fib_pipe QUOTA_ROUTES QUOTA_HOPS MAC
#include <arpa/inet.h>
#include <netinet/ether.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fib/fib_session.h"

enum { VNF = 1, FRAME_MAX = 2048, PAGE = 64, TEXT_MAX = 1 << 24 };

static char text[TEXT_MAX];

static size_t route_print(char *at, size_t room, const struct fib_route *route)
{
	char address[INET6_ADDRSTRLEN], mac[18];
	int family = route->prefix.family == 4 ? AF_INET : AF_INET6;

	inet_ntop(family, route->prefix.address, address, sizeof(address));
	ether_ntoa_r((const struct ether_addr *)route->hop.macs, mac);
	return (size_t)snprintf(at, room, "%s/%u %u %u %u %s %d %u\n", address, route->prefix.length,
	                        route->number, route->hop.kind, route->hop.port, mac, route->stale,
	                        route->hop.vlan);
}

static uint32_t routes_print(struct fib *fib)
{
	struct fib_route routes[PAGE];
	uint64_t cursor = 0;
	size_t length = 0;

	do {
		unsigned count = fib_list(fib, VNF, &cursor, PAGE, routes, PAGE);

		for (unsigned i = 0; i < count && length + 128 < TEXT_MAX; i++)
			length += route_print(text + length, TEXT_MAX - length, &routes[i]);
	} while (cursor);
	return (uint32_t)length;
}

static void answer(const void *data, uint32_t length)
{
	fwrite(&length, sizeof(length), 1, stdout);
	fwrite(data, 1, length, stdout);
	fflush(stdout);
}

static int serve(struct fib_session *session)
{
	uint8_t frame[FRAME_MAX];
	uint32_t length;

	while (fread(&length, sizeof(length), 1, stdin) == 1) {
		if (length > sizeof(frame) || fread(frame, 1, length, stdin) != length)
			return EXIT_FAILURE;
		if (length == 0)
			answer(text, routes_print(session->fib));
		else
			answer(frame, fib_session_handle(session, frame, length, 1));
		if (fib_trylock(session->fib)) {
			fib_sweep(session->fib, 1024);
			fib_unlock(session->fib);
		}
	}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	const struct fib_config config = {.routes4 = 100000, .routes6 = 100000, .seed = 1, .pages = PAGES_4K};
	struct fib_session session = {.vnf = VNF, .wires = 2, .ports = {0, 1}, .grace_tsc = 1, .hold_tsc = 1};
	struct fib_vnf_config vnf = {.vnf = VNF};
	struct ether_addr mac;
	int code;

	if (argc != 4 || ether_aton_r(argv[3], &mac) == NULL)
		return 2;
	vnf.quota_routes = strtoull(argv[1], NULL, 10);
	vnf.quota_hops = (uint32_t)strtoul(argv[2], NULL, 10);
	memset(session.vlans, 0xff, sizeof(session.vlans));
	memcpy(session.mac, &mac, sizeof(session.mac));
	if (fib_create(&config, &session.fib) || fib_vnf_set(session.fib, &vnf))
		return EXIT_FAILURE;
	code = serve(&session);
	fib_destroy(session.fib);
	return code;
}
