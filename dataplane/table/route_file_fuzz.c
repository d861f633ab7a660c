// SPDX-License-Identifier: BSD-3-Clause
// A malicious list of routes: any bytes, read as a file of routes is. test/fuzz.h says how it is run.
// Checked: it is refused with a sentence that can travel as JSON, or every route keeps the bounds that the
// tables rely on and none is there twice. Not covered: building tables.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/fuzz.h"
#include "table/route_file.h"

static unsigned long lists, accepted, routes;

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

static void check_route(const struct route_list *list, const struct route *route)
{
	char text[ROUTE_TEXT_MAX];

	must(route->version == 4 || route->version == 6, "a version");
	must(route->length <= (route->version == 4 ? 32 : 128), "a length");
	must(route->port == ROUTE_UNSET || route->port < list->port_count, "a port of the task");
	must(route->via == UINT32_MAX || route->via < list->via_count, "a next hop there is");
	must(!route->drop || (route->port == ROUTE_UNSET && !route->has_mac), "a blackhole leads nowhere");
	route_text(route, text);
	must(strnlen(text, sizeof(text)) < sizeof(text), "a prefix has a text");
}

static int read_list(struct route_list *list, const uint8_t *data, size_t size, char *error)
{
	json_t *array = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	int status = array ? route_list_json(list, array, error)
	                   : route_list_text(list, (const char *)data, size, error);

	json_decref(array);
	return status ? status : route_list_sort(list, error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct route_list list = {.port_count = 3, .via_count = 2, .source = "fuzz"};
	char error[ROUTE_ERROR_MAX] = "";
	int status = read_list(&list, data, size, error);
	json_t *sentence = json_string(error);

	lists++;
	must(strnlen(error, sizeof(error)) < sizeof(error) && sentence, "a sentence is UTF-8 and ends");
	must((status != 0) == (error[0] != '\0'), "a list is refused with a sentence");
	for (size_t i = 0; status == 0 && i < list.count; i++) {
		check_route(&list, &list.routes[i]);
		must(i == 0 || memcmp(&list.routes[i - 1], &list.routes[i], 18) != 0, "none is there twice");
	}
	accepted += status == 0;
	routes += status == 0 ? list.count : 0;
	json_decref(sentence);
	route_list_free(&list);
	return 0;
}

void fuzz_report(void)
{
	printf("%lu lists, %lu of them accepted, with %lu routes\n", lists, accepted, routes);
}
