// SPDX-License-Identifier: BSD-3-Clause
// Rule files and arrays of rules: what whole ones become, and a table of what is refused, where and in which
// words.
#include <stdio.h>
#include <unistd.h>

#include "nf/firewall/rule.h"
#include "test/unit.h"

// JSON is written with ' in place of its own quotes.
static void parse(struct rule_list *list, const char *given)
{
	char error[RULE_ERROR_MAX] = "", text[1024];

	snprintf(text, sizeof(text), "%s", given);
	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	if (rule_list_parse(list, text, strlen(text), "f", error) != 0)
		fail_msg("%s: %s", text, error);
}

static void a_text_file_becomes_rules(void **state)
{
	static const char text[] =
	        "# a comment\r\n"
	        "\r\n"
	        "permit udp from 198.18.0.0/15 port 1024-65535 to 198.19.0.0/16 port 28770\r\n"
	        "  drop\tip from any to 10.0.0.0/8 # nobody\n"
	        "permit tcp from 2001:db8::/32 to any port 80 name=web\n"
	        "permit 255 from 0.0.0.0/0 to any"; // the last line needs no end
	struct rule_list list;

	parse(&list, text);
	assert_int_equal(list.count, 4);
	assert_true(list.in_lines && list.rules[0].line == 3 && list.rules[3].line == 6);
	assert_true(list.rules[0].permit && !list.rules[0].any_protocol && list.rules[0].protocol == 17);
	assert_true(list.rules[0].from.family == 4 && list.rules[0].from.prefix == 15);
	assert_memory_equal(list.rules[0].from.address, "\xc6\x12\x00\x00", 4);
	assert_true(list.rules[0].from.port_low == 1024 && list.rules[0].from.port_high == 65535);
	assert_true(list.rules[0].to.port_low == 28770 && list.rules[0].to.port_high == 28770);
	assert_true(!list.rules[1].permit && list.rules[1].any_protocol && !rule_names_ports(&list.rules[1]));
	assert_true(rule_family(&list.rules[1]) == 4 && list.rules[1].from.port_high == 65535);
	assert_true(rule_family(&list.rules[2]) == 6 && list.rules[2].from.prefix == 32);
	assert_string_equal(list.rules[2].name, "web");
	assert_true(rule_family(&list.rules[3]) == 4 && list.rules[3].from.prefix == 0);
	assert_int_equal(list.rules[3].protocol, 255);
	rule_list_free(&list);
}

static void json_becomes_the_same_rules(void **state)
{
	static const char array[] =
	        "[{'action': 'drop', 'protocol': 'tcp', 'from': '10.0.0.0/8', 'to_port': 80},"
	        " 'permit udp from any port 1-2 to 2001:db8::1',"
	        " {'action': 'permit', 'protocol': 47, 'name': 'tunnel'}]";
	static const char object[] =
	        " \n{'rules': ['drop tcp from 10.0.0.0/8 to any port 80',"
	        " {'action': 'permit', 'protocol': 'udp', 'from_port': '1-2', 'to': '2001:db8::1'},"
	        " 'permit gre from any to any name=tunnel']}";
	static const char lines[] = "drop tcp from 10.0.0.0/8 to any port 80-80\n"
	                            "permit 17 from any port 1-2 to 2001:db8::1/128\n"
	                            "permit gre from any to any name=tunnel";
	const char *const texts[] = {array, object, lines};
	struct rule_list lists[3];

	for (unsigned i = 0; i < 3; i++) {
		parse(&lists[i], texts[i]);
		assert_int_equal(lists[i].count, 3);
		assert_memory_equal(lists[i].rules, lists[0].rules, 3 * sizeof(lists[0].rules[0]));
	}
	for (unsigned i = 0; i < 3; i++)
		rule_list_free(&lists[i]);
}

static const struct {
	const char *text, *error;
} refused[] = {
        {"permit", "f:1: \"permit\": \"(nothing)\" is no protocol; say ip, tcp, udp,"},
        {"allow ip from any to any", "\"allow\" is no action; say permit or drop"},
        {"Permit ip from any to any", "\"Permit\" is no action"},
        {"\n\npermit upd from any to any", "f:3: \"permit upd from any to any\": \"upd\" is no protocol"},
        {"permit 256 from any to any", "\"256\" is no protocol"},
        {"permit -1 from any to any", "\"-1\" is no protocol"},
        {"permit 6x from any to any", "\"6x\" is no protocol"},
        {"permit ip to any", "expected \"from\", not \"to\"; a rule is: permit|drop PROTOCOL"},
        {"permit ip from any", "expected \"to\", not \"(nothing)\""},
        {"permit ip from any to", "\"(nothing)\" is no address"},
        {"permit ip from 10.0.0 to any", "\"10.0.0\" is no address; say any"},
        {"permit ip from 10.0.0.256 to any", "\"10.0.0.256\" is no address"},
        {"permit ip from 10.0.0.0/33 to any", "\"10.0.0.0/33\": the prefix is no number from 0 to 32"},
        {"permit ip from 10.0.0.0/ to any", "the prefix is no number"},
        {"permit ip from 10.0.0.0/+8 to any", "the prefix is no number"},
        {"permit ip from 10.1.0.0/8 to any",
         "\"10.1.0.0/8\" has bits behind its prefix; say 10.0.0.0/8, or no prefix"},
        {"permit ip from 2001:db8::/129 to any", "the prefix is no number from 0 to 128"},
        {"permit ip from 2001:db8::1/127 to any", "say 2001:db8::/127"},
        {"permit ip from :: to 1.2.3.4", "one address is IPv4 and the other IPv6"},
        {"permit udp from any port to any", "\"to\" is no port; say 80 or 1024-65535"},
        {"permit udp from any port 65536 to any", "\"65536\" is no port"},
        {"permit udp from any port 99999999999 to any", "is no port"},
        {"permit udp from any port 1- to any", "\"1-\" is no port"},
        {"permit udp from any port 2-1 to any", "ports \"2-1\" end before they begin; say 1-2"},
        {"permit icmp from any to any port 8", "protocol 1 has no ports; say tcp, udp"},
        {"permit 89 from any to any port 8", "protocol 89 has no ports"},
        {"permit icmp from ::/0 to any", "icmp is not of IPv6; say icmpv6"},
        {"permit icmpv6 from any to 1.1.1.1", "icmpv6 is not of IPv4; say icmp"},
        {"permit ip from any to any now", "\"now\" is too much; only name=NAME may follow"},
        {"permit ip from any to any name=a name=b", "\"name=b\" is too much"},
        {"permit ip from any to any name=", "\"\" is no name"},
        {"permit ip from any to any name=a\"b", "is no name"},
        {"permit ip from any to any name=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "is no name; say 1 to 31"},
        {"a b c d e f g h i j k l m", "too many words; what does \"l\" mean?"},
        {"permit ip from any to \xc3\xa4", "f:1: \"permit ip from any to ??\": not plain text"},
        {"[", "f:1: "},
        {"{}", "f: key \"rules\" is missing"},
        {"{\"rules\": 3}", "f: expected an array of rules"},
        {"{\"rules\": [], \"default\": \"drop\"}", "f: unknown key \"default\"; valid keys: rules"},
        {"[1]", "f[0]: expected an object"},
        {"[{}]", "f[0]: key \"action\" is missing"},
        {"[{\"action\": \"drop\"}, {\"action\": true}]", "f[1].action: expected a string"},
        {"[{\"action\": \"drop\", \"port\": 1}]", "f[0]: unknown key \"port\"; valid keys: action protocol"},
        {"[{\"action\": \"drop\", \"to\": \"x\"}]", "f[0].to: \"x\" is no address"},
        {"[{\"action\": \"drop\", \"to_port\": 1.5}]", "f[0].to_port: expected a string"},
        {"[{\"action\": \"drop\", \"to_port\": -1}]", "f[0].to_port: \"-1\" is no port"},
        {"[{\"action\": \"drop\", \"to_port\": 1, \"protocol\": \"icmp\"}]", "f[0]: protocol 1 has no ports"},
        {"[\"drop ip from any to any\\u0000\"]", "f:1: \\u0000 is not allowed"},
        {"[\"# only\"]", "f[0]: an empty rule; leave it out"},
        {"[\"drop ip\"]", "f[0]: \"drop ip\": expected \"from\""},
};

static void what_is_wrong_is_refused_with_its_place_and_a_way_out(void **state)
{
	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct rule_list list;
		char error[RULE_ERROR_MAX] = "";
		const char *text = refused[i].text;

		if (rule_list_parse(&list, text, strlen(text), "f", error) == 0)
			fail_msg("accepted: %s", text);
		if (!strstr(error, refused[i].error))
			fail_msg("%s: %s", text, error);
		assert_true(list.count == 0 && list.rules == NULL); // nothing half-applied
	}
}

static void a_line_and_a_list_have_an_end(void **state)
{
	struct rule_list list;
	char error[RULE_ERROR_MAX] = "", line[400];
	size_t size = (RULE_LIST_MAX + 1) * 25;
	char *many = malloc(size + 1);

	memset(line, 'x', sizeof(line));
	assert_int_not_equal(rule_list_parse(&list, line, sizeof(line), "f", error), 0);
	assert_non_null(strstr(error, "longer than 255 bytes"));
	assert_int_not_equal(rule_list_parse(&list, "drop\0ip from any to any", 23, "f", error), 0);
	assert_non_null(strstr(error, "not plain text"));
	for (size_t at = 0; at < size; at += 25)
		memcpy(many + at, "drop ip from any to any \n", 25);
	assert_int_equal(rule_list_parse(&list, many, size - 25, "f", error), 0);
	assert_int_equal(list.count, RULE_LIST_MAX);
	rule_list_free(&list);
	assert_int_not_equal(rule_list_parse(&list, many, size, "f", error), 0);
	assert_non_null(strstr(error, "f:16385: more than 16384 rules"));
	free(many);
}

static void files_that_are_none_are_refused(void **state)
{
	struct rule_list list;
	char error[RULE_ERROR_MAX] = "";

	assert_int_not_equal(rule_list_load(&list, "/nowhere/at/all", error), 0);
	assert_string_equal(error, "/nowhere/at/all: No such file or directory; name a file of rules, 8 MB "
	                           "at most, that planed may read");
	assert_int_not_equal(rule_list_load(&list, "/dev/zero", error), 0);
	assert_string_equal(
	        error,
	        "/dev/zero: is not a regular file; name a file of rules, 8 MB at most, that planed may read");
	assert_int_not_equal(rule_list_load(&list, "/", error), 0);
}

static void a_long_path_is_told_by_its_end(void **state)
{
	char path[] = "/tmp/rule_file_test_with_a_rather_long_name_XXXXXX", error[RULE_ERROR_MAX] = "";
	int file = mkstemp(path);
	struct rule_list list;

	assert_int_equal(write(file, "\nno", 3), 3);
	close(file);
	assert_int_not_equal(rule_list_load(&list, path, error), 0);
	assert_memory_equal(error, path + strlen(path) - 39, 39);
	assert_string_equal(error + 39, ":2: \"no\": \"no\" is no action; say permit or drop");
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_text_file_becomes_rules),
	        cmocka_unit_test(json_becomes_the_same_rules),
	        cmocka_unit_test(what_is_wrong_is_refused_with_its_place_and_a_way_out),
	        cmocka_unit_test(a_line_and_a_list_have_an_end),
	        cmocka_unit_test(files_that_are_none_are_refused),
	        cmocka_unit_test(a_long_path_is_told_by_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
