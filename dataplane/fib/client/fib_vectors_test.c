// SPDX-License-Identifier: BSD-3-Clause
// The conversation of tests/fib/vectors.json, which Python's side is held to as well: what the C client sends
// is that, byte for byte, and what the forwarder answers.
//
//     fib_vectors_test FILE
#include <jansson.h>

#include "fib/fib_rig.h"
#include "fib/fib_session.h"
#include "fib/client/planebench_fib.h"

enum { VNF = 1, FRAME_MAX = 1514, MS = 1000000 };

static const char *path;

static struct {
	uint8_t bytes[FRAME_MAX];
	unsigned length, count;
} sent;

static void keep(void *context, const uint8_t *frame, unsigned length)
{
	memcpy(sent.bytes, frame, length);
	sent.length = length;
	sent.count++;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	assert_non_null(text);
	return text;
}

static unsigned number_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	assert_true(json_is_integer(value));
	return (unsigned)json_integer_value(value);
}

// Two digits a byte, which colons may separate.
static unsigned hex(const char *text, uint8_t *bytes)
{
	unsigned n = 0;

	for (; *text; text += 2, n++) {
		text += *text == ':';
		assert_int_equal(sscanf(text, "%2hhx", &bytes[n]), 1);
	}
	return n;
}

static unsigned place(const char *const *names, const char *name)
{
	unsigned i = 1;

	while (names[i - 1] && strcmp(names[i - 1], name) != 0)
		i++;
	assert_non_null(names[i - 1]);
	return i;
}

static void say_hop(struct fib_client *client, const json_t *record)
{
	static const char *const kinds[] = {"FORWARD", "LOCAL", "BLACKHOLE", NULL};
	struct fib_client_hop hop = {.number = (uint16_t)number_of(record, "number")};

	if (strcmp(text_of(record, "op"), "DELETE") == 0) {
		assert_int_equal(fib_client_delete_hop(client, hop.number), 0);
		return;
	}
	hop.kind = (uint8_t)place(kinds, text_of(record, "kind"));
	hop.wire = (uint8_t)number_of(record, "wire");
	hop.vlan = (uint16_t)number_of(record, "vlan");
	hex(text_of(record, "destination"), hop.destination);
	assert_int_equal(fib_client_set_hop(client, &hop), 0);
}

static void say_group(struct fib_client *client, const json_t *record)
{
	struct fib_client_member members[FIB_MEMBERS_MAX];
	const json_t *member;
	size_t i;

	json_array_foreach (json_object_get(record, "members"), i, member) {
		members[i].number = (uint16_t)json_integer_value(json_array_get(member, 0));
		members[i].weight = (uint8_t)json_integer_value(json_array_get(member, 1));
	}
	assert_int_equal(
	        fib_client_set_group(client, (uint16_t)number_of(record, "number"), members, (unsigned)i), 0);
}

static void say_route(struct fib_client *client, const json_t *record)
{
	static const char *const ops[] = {"ADD", "REPLACE", "DELETE", NULL};
	const struct fib_prefix prefix = prefix_of(text_of(record, "prefix"));
	struct fib_client_route route = {
	        .family = prefix.family, .length = prefix.length, .hop = (uint16_t)number_of(record, "hop")};

	memcpy(route.address, prefix.address, sizeof(route.address));
	assert_int_equal(fib_client_set_route(client, place(ops, text_of(record, "op")), &route), 0);
}

static void say(struct fib_client *client, const json_t *message)
{
	const char *type = text_of(message, "type");
	const json_t *record;
	size_t i;

	if (strcmp(type, "FLUSH") == 0)
		assert_int_equal(fib_client_flush(client), 0);
	else if (strcmp(type, "END_OF_RIB") == 0)
		assert_int_equal(fib_client_end_of_rib(client), 0);
	json_array_foreach (json_object_get(message, "records"), i, record) {
		if (strcmp(type, "NEXT_HOPS") == 0)
			say_hop(client, record);
		else if (strcmp(type, "NEXT_HOP_GROUPS") == 0)
			say_group(client, record);
		else
			say_route(client, record);
	}
}

// A step a second: KEEPALIVE comes by itself.
static void step(struct fib_client *client, struct fib_session *session, const json_t *turn, uint64_t now_ns)
{
	uint8_t frame[FRAME_MAX], answer[FRAME_MAX];
	unsigned length = hex(text_of(turn, "frame"), frame);

	print_message("%s\n", text_of(turn, "what"));
	sent.count = 0;
	say(client, json_object_get(turn, "message"));
	fib_client_tick(client, now_ns);
	assert_int_equal(sent.count, 1);
	assert_int_equal(sent.length, length);
	assert_memory_equal(sent.bytes, frame, length);

	assert_int_equal(fib_session_handle(session, frame, length, now_ns),
	                 hex(text_of(turn, "answer"), answer));
	assert_memory_equal(frame, answer, 60);
	fib_client_received(client, frame, 60, now_ns);
}

static void conversation(void **state)
{
	json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, NULL), *turn;
	struct fib_session session = {.vnf = VNF, .grace_tsc = UINT64_MAX / 4, .hold_tsc = UINT64_MAX / 4};
	struct fib_client_config config = {.send = keep};
	uint64_t now_ns = 1;
	struct fib_client *client;
	size_t i;

	assert_non_null(document);
	session.fib = fib_of(100, 100);
	session.wires = (uint8_t)number_of(document, "wires");
	session.vlans[0] = UINT64_C(1) << number_of(document, "vlan");
	config.session = number_of(document, "session");
	hex(text_of(document, "mac"), session.mac);
	hex(text_of(document, "mac"), config.mac);
	vnf_of(session.fib, VNF, number_of(document, "quota_routes"), number_of(document, "quota_hops"));
	fib_unlock(session.fib);
	client = fib_client_create(&config, now_ns);
	json_array_foreach (json_object_get(document, "conversation"), i, turn)
		step(client, &session, turn, now_ns += UINT64_C(1000) * MS);
	assert_true(i >= 8);
	fib_client_destroy(client);
	fib_destroy(session.fib);
	json_decref(document);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(conversation)};

	if (argc != 2)
		return 2;
	path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
