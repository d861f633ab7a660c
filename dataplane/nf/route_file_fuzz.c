// SPDX-License-Identifier: BSD-3-Clause
// Malicious files: any bytes as a list of routes and as a list of filter rules, text or JSON. test/fuzz.h
// says how it is run. Checked: a list is refused with a sentence, and is empty or freed after it; what is
// accepted keeps the bounds that the tables rely on, is sorted, and a route's text reads as the same route
// again. Not covered: reading from disk, what is built from a list.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "route_file.h"

enum { PORTS = 2, NEXT_HOPS = 3 };

static unsigned long lists, accepted, entries;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static void must(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "route_file_fuzz: not so: %s\n", what);
	abort();
}

static void is_sentence(const char *error, size_t max)
{
	must(strnlen(error, max) < max && error[0], "a list is refused with a sentence");
}

static void check_text(const struct route *route)
{
	struct route_list again = {.port_count = PORTS, .via_count = NEXT_HOPS, .text = true};
	char text[ROUTE_TEXT_MAX], error[ROUTE_ERROR_MAX] = "";

	route_text(route, text);
	must(route_list_text(&again, text, strlen(text), error) == 0 && again.count == 1,
	     "a route's text is one");
	must(memcmp(again.routes[0].address, route->address, sizeof(route->address)) == 0 &&
	             again.routes[0].length == route->length && again.routes[0].version == route->version,
	     "a route's text says the same");
	route_list_free(&again);
}

static void check_route(const struct route *route)
{
	entries++;
	must(route->version == 4 || route->version == 6, "a version is 4 or 6");
	must(route->length <= (route->version == 4 ? 32 : 128), "a length fits its version");
	must(route->port == ROUTE_UNSET || route->port < PORTS, "a port is one of the task's");
	must(route->via == UINT32_MAX || route->via < NEXT_HOPS, "a next hop is one of those given");
	check_text(route);
}

static void routes(const char *data, size_t size, bool json)
{
	struct route_list list = {.port_count = PORTS, .via_count = NEXT_HOPS, .source = "f", .text = !json};
	char error[ROUTE_ERROR_MAX] = "";
	json_t *array = json ? json_loadb(data, size, JSON_REJECT_DUPLICATES, NULL) : NULL;
	int status = json ? route_list_json(&list, array, error) : route_list_text(&list, data, size, error);

	if (status == 0)
		status = route_list_sort(&list, error);
	if (status != 0)
		is_sentence(error, sizeof(error));
	for (size_t i = 0; status == 0 && i < list.count; i++)
		check_route(&list.routes[i]);
	accepted += status == 0;
	route_list_free(&list);
	json_decref(array);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	lists++;
	routes((const char *)data + 1, size - 1, data[0] & 1);
	return 0;
}

void fuzz_report(void)
{
	printf("%lu lists, %lu of them accepted, with %lu entries\n", lists, accepted, entries);
}
