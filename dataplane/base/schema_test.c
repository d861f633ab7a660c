// SPDX-License-Identifier: BSD-3-Clause
// Every field type at and over its edges, and the closed object. An error must name the place, the key, the
// value and what is valid; a refused object must leave no doubt in the words.
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/schema.h"
#include "test/unit.h"

static const char *const colours[] = {"red", "green", NULL};

struct sample {
	char text[9], name[5];
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;
	int number, colour;
	double real;
	bool flag;
	uint8_t mac[6], macs[2][6];
	uint32_t ip;
	unsigned name_count, mac_count;
	char names[3][5];
	struct inner {
		uint16_t few;
	} inner;
};

static const struct field inner_fields[] = {
        {.key = "few", FIELD(FIELD_UINT, struct inner, few), .required = true, .min = 1, .max = 3},
        {0},
};

static const struct field fields[] = {
        {.key = "text", FIELD(FIELD_STRING, struct sample, text)},
        {.key = "name", FIELD(FIELD_NAME, struct sample, name)},
        {.key = "u16", FIELD(FIELD_UINT, struct sample, u16), .max = UINT16_MAX},
        {.key = "u32", FIELD(FIELD_UINT, struct sample, u32), .min = 10, .max = UINT32_MAX},
        {.key = "u64", FIELD(FIELD_UINT, struct sample, u64), .max = 1e12},
        {.key = "number", FIELD(FIELD_INT, struct sample, number), .min = -20, .max = 19},
        {.key = "real", FIELD(FIELD_REAL, struct sample, real), .min = 0.5, .max = 2},
        {.key = "flag", FIELD(FIELD_BOOL, struct sample, flag)},
        {.key = "colour", FIELD(FIELD_CHOICE, struct sample, colour), .choices = colours},
        {.key = "mac", FIELD(FIELD_MAC, struct sample, mac)},
        {.key = "ip", FIELD(FIELD_IPV4, struct sample, ip)},
        {ARRAY_FIELD("macs", FIELD_MAC, struct sample, macs, mac_count, 2, 2)},
        {ARRAY_FIELD("names", FIELD_NAME, struct sample, names, name_count, 1, 3)},
        {.key = "inner", FIELD(FIELD_OBJECT, struct sample, inner), .fields = inner_fields},
        {.key = "any", .type = FIELD_ANY},
        {0},
};

static int decode(const char *text, const struct field *table, struct sample *out, char *error)
{
	json_t *object = json_loads(text, JSON_DECODE_ANY, NULL);
	int rc;

	if (object == NULL)
		fail_msg("the test's own document is not JSON: %s", text);
	memset(error, 'x', CONFIG_ERROR_MAX); // not a string unless it is written
	rc = schema_decode(object, table, out, "place", error);
	json_decref(object);
	return rc;
}

// A refusal, with a message that is whole and has the words.
static void assert_refused(const char *text, const struct field *table, const char *words)
{
	char error[CONFIG_ERROR_MAX];
	struct sample sample = {0};

	if (decode(text, table, &sample, error) != -EINVAL)
		fail_msg("accepted: %s", text);
	assert_non_null(memchr(error, '\0', sizeof(error)));
	if (strncmp(error, "place", 5) != 0 || strstr(error, words) == NULL)
		fail_msg("%s\n  gave:    %s\n  without: %s", text, error, words);
}

static void every_type_takes_its_edges(void **state)
{
	static const char text[] =
	        "{\"text\": \"12345678\", \"name\": \"a_-9\", \"u16\": 65535, \"u32\": 10, \"u64\": "
	        "1000000000000,"
	        " \"number\": -20, \"real\": 2, \"flag\": true, \"colour\": \"green\","
	        " \"mac\": \"02:00:00:00:aB:Ff\", \"ip\": \"198.18.0.1\","
	        " \"macs\": [\"02:00:00:00:00:01\", \"02:00:00:00:00:02\"], \"names\": [\"a\", \"bcde\"],"
	        " \"inner\": {\"few\": 3}, \"any\": [null]}";
	static const uint8_t mac[6] = {2, 0, 0, 0, 0xab, 0xff};
	char error[CONFIG_ERROR_MAX];
	struct sample s = {0};

	assert_int_equal(decode(text, fields, &s, error), 0);
	assert_string_equal(s.text, "12345678");
	assert_string_equal(s.name, "a_-9");
	assert_int_equal(s.u16, UINT16_MAX);
	assert_int_equal(s.u32, 10);
	assert_int_equal(s.u64, 1000000000000);
	assert_int_equal(s.number, -20);
	assert_true(s.real == 2.0 && s.flag);
	assert_int_equal(s.colour, 1);
	assert_memory_equal(s.mac, mac, sizeof(mac));
	assert_int_equal(s.ip, 0xc6120001);
	assert_int_equal(s.macs[0][5], 1);
	assert_int_equal(s.macs[1][5], 2);
	assert_int_equal(s.name_count, 2);
	assert_string_equal(s.names[1], "bcde");
	assert_int_equal(s.inner.few, 3);
}

static void absent_keys_leave_the_default(void **state)
{
	char error[CONFIG_ERROR_MAX];
	struct sample s = {.u32 = 77, .real = 1.5, .name_count = 3};

	assert_int_equal(decode("{}", fields, &s, error), 0);
	assert_true(s.u32 == 77 && s.real == 1.5 && s.name_count == 3);
}

static void every_type_refuses_what_it_is_not(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
	        {"{\"text\": \"\"}", "place.text: \"\" is not valid: expected a string of 1 to 8 bytes"},
	        {"{\"text\": \"123456789\"}", "1 to 8 bytes"},
	        {"{\"text\": 5}", "place.text: 5 is not valid"},
	        {"{\"name\": \"abcde\"}", "expected 1 to 4 characters of a-z 0-9 _ -"},
	        {"{\"name\": \"A\"}", "place.name: \"A\" is not valid"},
	        {"{\"name\": \"a b\"}", "a-z 0-9 _ -"},
	        {"{\"name\": \"../a\"}", "a-z 0-9 _ -"},
	        {"{\"name\": null}", "place.name: null is not valid"},
	        {"{\"u16\": 65536}", "expected a whole number from 0 to 65535"},
	        {"{\"u16\": -1}", "place.u16: -1 is not valid"},
	        {"{\"u16\": 1.0}", "expected a whole number"},
	        {"{\"u16\": true}", "place.u16: true is not valid"},
	        {"{\"u16\": \"1\"}", "place.u16: \"1\" is not valid"},
	        {"{\"u32\": 9}", "expected a whole number from 10 to 4294967295"},
	        {"{\"u32\": 4294967296}", "expected a whole number from 10"},
	        {"{\"u64\": 1000000000001}", "from 0 to 1000000000000"},
	        {"{\"u64\": 9223372036854775807}", "from 0 to 1000000000000"},
	        {"{\"number\": 20}", "expected a whole number from -20 to 19"},
	        {"{\"number\": -21}", "place.number: -21"},
	        {"{\"real\": 0.49}", "expected a number from 0.5 to 2"},
	        {"{\"real\": 2.1}", "expected a number from 0.5 to 2"},
	        {"{\"real\": \"1\"}", "expected a number"},
	        {"{\"flag\": 1}", "place.flag: 1 is not valid: expected true or false"},
	        {"{\"colour\": \"blue\"}", "place.colour: \"blue\" is not valid: expected one of red green"},
	        {"{\"colour\": 0}", "expected one of red green"},
	        {"{\"mac\": \"02:00:00:00:00\"}", "expected a MAC address like 02:00:00:00:00:01"},
	        {"{\"mac\": \"02:00:00:00:00:011\"}", "expected a MAC address"},
	        {"{\"mac\": \"02:00:00:00:00:0g\"}", "expected a MAC address"},
	        {"{\"mac\": \"02-00-00-00-00-01\"}", "expected a MAC address"},
	        {"{\"mac\": 2}", "expected a MAC address"},
	        {"{\"ip\": \"198.18.0\"}", "expected an IPv4 address like 198.18.0.1"},
	        {"{\"ip\": \"198.18.0.256\"}", "expected an IPv4 address"},
	        {"{\"ip\": \"::1\"}", "expected an IPv4 address"},
	        {"{\"ip\": 1}", "expected an IPv4 address"},
	        {"{\"macs\": [\"02:00:00:00:00:01\"]}", "place.macs: expected an array of 2 to 2 items"},
	        {"{\"macs\": \"02:00:00:00:00:01\"}", "expected an array of 2 to 2 items"},
	        {"{\"macs\": [\"02:00:00:00:00:01\", 7]}",
	         "place.macs[1]: 7 is not valid: expected a MAC address"},
	        {"{\"names\": []}", "expected an array of 1 to 3 items"},
	        {"{\"names\": [\"a\", \"b\", \"c\", \"d\"]}", "expected an array of 1 to 3 items"},
	        {"{\"names\": \"a\"}", "expected an array of 1 to 3 items"},
	        {"{\"names\": {\"a\": 1}}", "expected an array of 1 to 3 items"},
	        {"{\"names\": [\"a\", \"abcde\"]}", "place.names[1]: \"abcde\" is not valid"},
	        {"{\"names\": [\"a\", 1]}", "place.names[1]: 1 is not valid"},
	        {"[]", "place: expected an object"},
	        {"null", "place: expected an object"},
	        {"\"x\"", "place: expected an object"},
	        {"{\"u17\": 1}", "place: unknown key \"u17\"; valid keys: text name u16"},
	        {"{\"Text\": \"a\"}", "unknown key \"Text\""},
	        {"{\"u16\": 1, \"\": 1}", "unknown key \"\""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_refused(cases[i].text, fields, cases[i].words);
}

static void an_object_within_is_named_with_its_path(void **state)
{
	assert_refused("{\"inner\": 1}", fields, "place.inner: expected an object");
	assert_refused("{\"inner\": {}}", fields, "place.inner: key \"few\" is missing");
	assert_refused("{\"inner\": {\"few\": 4}}", fields,
	               "place.inner.few: 4 is not valid: expected a whole number from 1 to 3");
	assert_refused("{\"inner\": {\"few\": 1, \"x\": 1}}", fields,
	               "place.inner: unknown key \"x\"; valid keys: few");
}

static void a_nul_inside_a_string_is_refused(void **state)
{
	char error[CONFIG_ERROR_MAX];
	struct sample sample = {0};
	json_t *object = json_pack("{s:s%}", "name", "a\0b", (size_t)3);

	assert_int_equal(schema_decode(object, fields, &sample, "place", error), -EINVAL);
	json_object_del(object, "name");
	json_object_set_new(object, "text", json_stringn("a\0b", 3));
	assert_int_equal(schema_decode(object, fields, &sample, "place", error), -EINVAL);
	json_decref(object);
}

static void a_required_key_must_be_there(void **state)
{
	static const struct field required[] = {
	        {.key = "name", FIELD(FIELD_NAME, struct sample, name), .required = true},
	        {.key = "any", .type = FIELD_ANY, .required = true},
	        {0},
	};

	assert_refused("{}", required, "place: key \"name\" is missing");
	assert_refused("{\"name\": \"a\"}", required, "place: key \"any\" is missing");
}

static void the_longest_message_still_ends(void **state)
{
	char text[2048], long_key[1024];

	memset(long_key, 'k', sizeof(long_key) - 1);
	long_key[sizeof(long_key) - 1] = '\0';
	snprintf(text, sizeof(text), "{\"%s\": 1}", long_key);
	assert_refused(text, fields, "unknown key \"kkk");
	snprintf(text, sizeof(text), "{\"name\": \"%s\"}", long_key);
	assert_refused(text, fields, "a-z 0-9 _ -");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_type_takes_its_edges),
	        cmocka_unit_test(absent_keys_leave_the_default),
	        cmocka_unit_test(every_type_refuses_what_it_is_not),
	        cmocka_unit_test(an_object_within_is_named_with_its_path),
	        cmocka_unit_test(a_nul_inside_a_string_is_refused),
	        cmocka_unit_test(a_required_key_must_be_there),
	        cmocka_unit_test(the_longest_message_still_ends),
	};

	return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
