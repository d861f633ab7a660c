// SPDX-License-Identifier: BSD-3-Clause
// Lists of routes from text, JSON and files: what is read, and every reason for refusing, with its place.
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "table/route_file.h"
#include "test/unit.h"

static struct route_list list_of(void)
{
	return (struct route_list){.port_count = 2, .via_count = 3, .source = "r"};
}

static int read_text(struct route_list *list, const char *text, size_t bytes, char *error)
{
	int status;

	*list = list_of();
	status = route_list_text(list, text, bytes, error);
	return status ? status : route_list_sort(list, error);
}

static int read_json(struct route_list *list, const char *text, char *error)
{
	json_t *array = json_loads(text, JSON_DECODE_ANY, NULL);
	int status;

	assert_non_null(array);
	*list = list_of();
	snprintf(list->source, sizeof(list->source), "r: routes");
	status = route_list_json(list, array, error);
	json_decref(array);
	return status ? status : route_list_sort(list, error);
}

static void assert_route(const struct route *route, const char *prefix, unsigned port, uint32_t via,
                         bool drop, uint32_t place)
{
	char text[ROUTE_TEXT_MAX];

	route_text(route, text);
	assert_string_equal(text, prefix);
	assert_int_equal(route->port, port);
	assert_int_equal(route->via, via);
	assert_int_equal(route->drop, drop);
	assert_int_equal(route->place, place);
}

static void text_is_read(void **state)
{
	static const char text[] = "# a table\r\n"
	                           "\r\n"
	                           "  \t # nothing\n"
	                           "10.0.0.0/8\r\n"
	                           "\t2001:DB8::/32\tdrop # not ours\n"
	                           "192.0.2.1 port 1\n"
	                           "10.0.0.0/9 mac 02:00:00:00:00:aB port 0#tight\n"
	                           "::1 via 2\n"
	                           "::/0\n"
	                           "0.0.0.0/0";
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 0xab};
	char error[ROUTE_ERROR_MAX];
	struct route_list list;

	assert_int_equal(read_text(&list, text, sizeof(text) - 1, error), 0);
	assert_int_equal(list.count, 7);
	assert_route(&list.routes[0], "0.0.0.0/0", ROUTE_UNSET, UINT32_MAX, false, 10);
	assert_route(&list.routes[1], "10.0.0.0/8", ROUTE_UNSET, UINT32_MAX, false, 4);
	assert_route(&list.routes[2], "10.0.0.0/9", 0, UINT32_MAX, false, 7);
	assert_true(list.routes[2].has_mac);
	assert_memory_equal(list.routes[2].mac, mac, 6);
	assert_route(&list.routes[3], "192.0.2.1/32", 1, UINT32_MAX, false, 6);
	assert_route(&list.routes[4], "::/0", ROUTE_UNSET, UINT32_MAX, false, 9);
	assert_route(&list.routes[5], "::1/128", ROUTE_UNSET, 2, false, 8);
	assert_route(&list.routes[6], "2001:db8::/32", ROUTE_UNSET, UINT32_MAX, true, 5);
	route_list_free(&list);
}

static void json_is_read(void **state)
{
	char error[ROUTE_ERROR_MAX];
	struct route_list list;

	assert_int_equal(
	        read_json(&list,
	                  "[{\"prefix\": \"10.0.0.0/8\", \"port\": 1, \"mac\": \"02:00:00:00:00:01\"},"
	                  " {\"prefix\": \"::/0\", \"drop\": true}, {\"prefix\": \"1.2.3.4\", \"via\": 1}]",
	                  error),
	        0);
	assert_int_equal(list.count, 3);
	assert_route(&list.routes[0], "1.2.3.4/32", ROUTE_UNSET, 1, false, 2);
	assert_route(&list.routes[1], "10.0.0.0/8", 1, UINT32_MAX, false, 0);
	assert_route(&list.routes[2], "::/0", ROUTE_UNSET, UINT32_MAX, true, 1);
	assert_true(list.routes[1].has_mac);
	route_list_free(&list);
}

static void bad_lines_are_named(void **state)
{
	static const struct {
		const char *line, *error;
	} cases[] = {
	        {"10.0.0/8", "r:2: \"10.0.0/8\": no IPv4 or IPv6 prefix, like 192.0.2.0/24 or 2001:db8::/32"},
	        {"10.0.0.0/", "r:2: \"10.0.0.0/\": no IPv4 or IPv6 prefix"},
	        {"10.0.0.0/+8", "r:2: \"10.0.0.0/+8\": no IPv4 or IPv6 prefix"},
	        {"10.0.0.0/8/8", "no IPv4 or IPv6 prefix"},
	        {"10.0.0.0/4294967304", "no IPv4 or IPv6 prefix"},
	        {"/8", "no IPv4 or IPv6 prefix"},
	        {"2001:db8::%lo/32", "no IPv4 or IPv6 prefix"},
	        {"1111111111222222222233333333334444444444555555555566666666667777/8",
	         "r:2: \"11111111112222222222333333333344444444445555\": no IPv4"},
	        {"caf\xc3\xa9", "r:2: \"caf??\": no IPv4 or IPv6 prefix"},
	        {"10.0.0.0/33", "r:2: \"10.0.0.0/33\": the length of an IPv4 prefix is 0 to 32"},
	        {"::/129", "r:2: \"::/129\": the length of an IPv6 prefix is 0 to 128"},
	        {"10.1.0.0/8 port 1",
	         "r:2: \"10.1.0.0/8 port 1\": bits are set behind its length; write 10.0.0.0/8"},
	        {"2001:db8::1/127", "bits are set behind its length; write 2001:db8::/127"},
	        {"10.0.0.0/8 metric 3",
	         "no word of a route; there are drop, port N, mac AA:BB:CC:DD:EE:FF and via N"},
	        {"10.0.0.0/8 port", "port needs a number, from 0 behind it"},
	        {"10.0.0.0/8 port -1", "port needs a number"},
	        {"10.0.0.0/8 port 255", "port needs a number"},
	        {"10.0.0.0/8 port 2",
	         "r:2: \"10.0.0.0/8 port 2\": there is no port 2: the task has ports 0 to 1"},
	        {"10.0.0.0/8 via x", "via needs a number, from 0 behind it"},
	        {"10.0.0.0/8 via 3", "there is no next hop 3: \"next_hops\" has 3, from 0"},
	        {"10.0.0.0/8 mac 02:00:00:00:00", "mac needs a MAC address like 02:00:00:00:00:01 behind it"},
	        {"10.0.0.0/8 mac 02:00:00:00:00:-1", "mac needs a MAC address"},
	        {"10.0.0.0/8 mac 03:00:00:00:00:01", "the MAC of a next hop is not zero, and not of a group"},
	        {"10.0.0.0/8 mac 00:00:00:00:00:00", "the MAC of a next hop is not zero"},
	        {"10.0.0.0/8 drop port 1", "a route that drops has no next hop; leave out drop, or the rest"},
	        {"10.0.0.0/8 via 1 port 1",
	         "via names a port and a MAC already; leave it out, or the others"},
	        {"10.0.0.0/8 port 0 port 1", "port is there twice; keep one of them"},
	        {"10.0.0.0/8 drop drop", "drop is there twice"},
	        {"9.0.0.0/8", "r:2: 9.0.0.0/8 is there already, in line 1; keep one of them"},
	};
	char text[256], error[ROUTE_ERROR_MAX];
	struct route_list list;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int bytes = snprintf(text, sizeof(text), "9.0.0.0/8\n%s\r\n11.0.0.0/8\n", cases[i].line);

		assert_int_equal(read_text(&list, text, (size_t)bytes, error), -EINVAL);
		if (!strstr(error, cases[i].error))
			fail_msg("\"%s\": said \"%s\", not \"%s\"", cases[i].line, error, cases[i].error);
		route_list_free(&list);
	}
}

static void bad_objects_are_named(void **state)
{
	static const char *const cases[][2] = {
	        {"{}", "r: routes: expected an array of objects"},
	        {"[7]", "r: routes[0]: expected an object"},
	        {"[{\"prefix\": \"::/0\"}, {}]", "r: routes[1]: key \"prefix\" is missing"},
	        {"[{\"prefix\": 8}]", "r: routes[0].prefix: \"\": expected a string"},
	        {"[{\"prefix\": \"10.0.0.1/8\"}]",
	         "r: routes[0].prefix: \"10.0.0.1/8\": bits are set behind its length; write 10.0.0.0/8"},
	        {"[{\"prefix\": \"::/0\", \"metric\": 1}]", "r: routes[0]: unknown key \"metric\""},
	        {"[{\"prefix\": \"::/0\", \"port\": \"1\"}]",
	         "r: routes[0].port: expected the number of a port"},
	        {"[{\"prefix\": \"::/0\", \"port\": 2}]",
	         "r: routes[0]: there is no port 2: the task has ports 0 to 1"},
	        {"[{\"prefix\": \"::/0\", \"mac\": \"x\"}]", "r: routes[0].mac: expected a MAC address"},
	        {"[{\"prefix\": \"::/0\", \"via\": 3}]", "r: routes[0]: there is no next hop 3"},
	        {"[{\"prefix\": \"::/0\"}, {\"prefix\": \"0::0/0\"}]",
	         "r: routes[1]: ::/0 is there already, in routes[0]; keep one of them"},
	};
	char error[ROUTE_ERROR_MAX];
	struct route_list list;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(read_json(&list, cases[i][0], error), -EINVAL);
		if (!strstr(error, cases[i][1]))
			fail_msg("%s: said \"%s\", not \"%s\"", cases[i][0], error, cases[i][1]);
		route_list_free(&list);
	}
}

static void long_lines_and_zero_bytes_are_refused(void **state)
{
	char line[ROUTE_LINE_MAX + 2] = "10.0.0.0/8", error[ROUTE_ERROR_MAX];
	struct route_list list;

	memset(line + 10, ' ', sizeof(line) - 10);
	assert_int_equal(read_text(&list, line, ROUTE_LINE_MAX, error), 0);
	assert_int_equal(list.count, 1);
	route_list_free(&list);
	assert_int_equal(read_text(&list, line, ROUTE_LINE_MAX + 1, error), -EINVAL);
	assert_string_equal(error, "r:1: a line of 1024 bytes; a route has 1023 at most");
	route_list_free(&list);
	assert_int_equal(read_text(&list, "::/0\n\0\n", 7, error), -EINVAL);
	assert_string_equal(error, "r:2: a zero byte; expected text, one prefix a line");
	route_list_free(&list);
}

// --- Files -----------------------------------------------------------------------------------------------

static int read_file(const char *path, const char *text, struct route_list *list, char *error)
{
	if (text) {
		FILE *file = fopen(path, "w");

		assert_non_null(file);
		fputs(text, file);
		fclose(file);
	}
	*list = list_of();
	return route_list_file(list, path, error);
}

static void files_are_told_by_their_first_byte(void **state)
{
	static const char *const texts[] = {
	        "10.0.0.0/8\n::/0", " \n[{\"prefix\": \"10.0.0.0/8\"}, {\"prefix\": \"::/0\"}]",
	        "{\"routes\": [{\"prefix\": \"10.0.0.0/8\"}, {\"prefix\": \"::/0\"}]}"};
	char path[] = "/tmp/route_file_XXXXXX", error[ROUTE_ERROR_MAX];
	struct route_list list;

	close(mkstemp(path));
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(read_file(path, texts[i], &list, error), 0);
		assert_int_equal(list.count, 2);
		route_list_free(&list);
	}
	assert_int_equal(read_file(path, "", &list, error), 0); // who wants routes says so
	assert_int_equal(list.count, 0);
	assert_int_equal(truncate(path, ROUTE_FILE_BYTES_MAX + 1), 0); // a hole, which takes no room
	assert_int_equal(read_file(path, NULL, &list, error), -EINVAL);
	assert_non_null(strstr(error, ": is too long; name a file of routes, 256 MB at most"));
	unlink(path);
}

static void bad_files_are_named(void **state)
{
	static const char *const cases[][2] = {
	        {"{\n\"routes\": [,]}", ":2: no JSON: unexpected token near ','"},
	        {"{\"routes\": [], \"x\": 1}", ": routes: expected an array of objects"},
	        {"{\"x\": []}", ": routes: expected an array of objects"},
	        {"[{\"prefix\": 1}]", ": routes[0].prefix: \"\": expected a string"},
	        {"::/0\n::/0x", ":2: \"::/0x\": no IPv4 or IPv6 prefix"},
	};
	char path[] = "/tmp/route_file_XXXXXX", error[ROUTE_ERROR_MAX];
	struct route_list list;

	close(mkstemp(path));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(read_file(path, cases[i][0], &list, error), -EINVAL);
		assert_memory_equal(error, path, strlen(path));
		if (!strstr(error, cases[i][1]))
			fail_msg("%s: said \"%s\"", cases[i][0], error);
		route_list_free(&list);
	}
	unlink(path);
}

static void what_is_no_file_is_refused_at_once(void **state)
{
	char path[] = "/tmp/route_file_XXXXXX", error[ROUTE_ERROR_MAX], longer[400];
	struct route_list list;

	close(mkstemp(path));
	unlink(path);
	assert_int_equal(read_file(path, NULL, &list, error), -EINVAL);
	assert_non_null(strstr(
	        error,
	        ": No such file or directory; name a file of routes, 256 MB at most, that planed may read"));
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(read_file(path, NULL, &list, error), -EINVAL); // and does not wait for a writer
	assert_non_null(strstr(error, ": is not a regular file; name a file"));
	unlink(path);
	assert_int_equal(read_file("/tmp", NULL, &list, error), -EINVAL);
	assert_non_null(strstr(error, "/tmp: is not a regular file"));
	memset(longer, 'a', sizeof(longer));
	strcpy(longer + sizeof(longer) - 5, "/end");
	assert_int_equal(read_file(longer, NULL, &list, error), -EINVAL);
	assert_memory_equal(error, "...aaa", 6);
	assert_non_null(strstr(error, "/end: File name too long"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(text_is_read),
	        cmocka_unit_test(json_is_read),
	        cmocka_unit_test(bad_lines_are_named),
	        cmocka_unit_test(bad_objects_are_named),
	        cmocka_unit_test(long_lines_and_zero_bytes_are_refused),
	        cmocka_unit_test(files_are_told_by_their_first_byte),
	        cmocka_unit_test(bad_files_are_named),
	        cmocka_unit_test(what_is_no_file_is_refused_at_once),
	};

	return cmocka_run_group_tests_name("route_file", tests, NULL, NULL);
}
