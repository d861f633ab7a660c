// SPDX-License-Identifier: BSD-3-Clause
// The configuration document: what a whole one decodes to, and a table of what is refused, in which words.
// The documents are the good one with one change each, so that nothing else can be the reason.
#include <stdio.h>
#include <unistd.h>

#include "runtime/config.h"
#include "port/port.h"
#include "test/unit.h"

static const char good[] =
        "{'version': 1, 'name': 'tester', 'nice': -5,"
        " 'memory': {'hugepages': true, 'size_mb': 512, 'mbuf_count': 4095, 'mbuf_data_bytes': 2176},"
        " 'ports': [{'name': 'n0', 'kind': 'vhost-user', 'path': '/run/n0.sock', 'ring_size': 512,"
        "            'backend': 'planed'},"
        "           {'name': 'v0', 'kind': 'virtio-user', 'path': '/run/v0.sock', 'queues': 16},"
        "           {'name': 'e0', 'kind': 'ethdev', 'device': 'net_null0,size=64', 'queues': 2,"
        "            'line_rate_bps': 25000000000},"
        "           {'name': 'f3', 'kind': 'ethdev', 'device': 'net_null3', 'queues': 2},"
        "           {'name': 'f1', 'kind': 'ethdev', 'device': 'net_null1'},"
        "           {'name': 'f2', 'kind': 'ethdev', 'device': 'net_null2'}],"
        " 'tasks': [{'name': 'gen', 'kind': 'generator', 'ports': ['n0'], 'stream': 7, 'burst': 64,"
        "            'src_mac': '02:00:00:00:00:09', 'dst_ip': '198.19.0.1'},"
        "           {'name': 'mon', 'kind': 'monitor', 'ports': ['n0']},"
        "           {'name': 'vnf', 'kind': 'l2fwd', 'ports': ['v0', 'e0'],"
        "            'peer_macs': ['02:00:00:00:00:01', '02:00:00:00:00:02']},"
        "           {'name': 'also', 'kind': 'patch', 'ports': ['v0', 'f3'], 'queue': 1},"
        "           {'name': 'sw', 'kind': 'patch', 'ports': ['f1', 'f2'], 'fault': {'drop_one_in': 1000}}],"
        " 'workers': [{'name': 'w0', 'cpu': 0, 'tasks': ['mon', 'gen']},"
        "             {'name': 'w1', 'cpu': 1023, 'tasks': ['vnf', 'sw', 'also']}]}";

// The good document with old replaced by new, in place of every ' a ".
static json_t *document(const char *old, const char *new)
{
	char text[4096];
	const char *at = old ? strstr(good, old) : NULL;
	json_error_t where;
	json_t *json;

	if (old && at == NULL)
		fail_msg("the good document has no %s", old);
	if (old)
		snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, new, at + strlen(old));
	else
		snprintf(text, sizeof(text), "%s", good);
	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	json = json_loads(text, 0, &where);
	if (json == NULL)
		fail_msg("%s: %s", where.text, text);
	return json;
}

static void a_whole_document_decodes(void **state)
{
	char error[CONFIG_ERROR_MAX] = "";
	json_t *json = document(NULL, NULL);
	struct config *c = config_decode(json, error);

	json_decref(json);
	if (c == NULL)
		fail_msg("%s", error);
	assert_string_equal(c->name, "tester");
	assert_int_equal(c->nice, -5);
	assert_true(c->memory.hugepages && c->memory.size_mb == 512 && c->memory.mbuf_count == 4095);
	assert_true(c->port_count == 6 && c->task_count == 5 && c->worker_count == 2);
	assert_string_equal(c->ports[0].ops->kind, "vhost-user");
	assert_int_equal(c->ports[0].ring_size, 512);
	assert_string_equal(c->ports[0].ops->backend, "planed");
	assert_string_equal(c->ports[1].path, "/run/v0.sock");
	assert_string_equal(c->ports[2].ops->kind, "ethdev");
	assert_int_equal(c->ports[2].line_rate_bps, 25000000000);
	assert_int_equal(c->tasks[0].burst, 64);
	assert_int_equal(c->tasks[2].port_count, 2);
	assert_true(c->tasks[0].settings && c->tasks[2].settings &&
	            c->tasks[4].settings); // their kinds' tests know more
	assert_true(c->ports[0].queues == 1 && c->ports[1].queues == 16);
	assert_true(c->tasks[0].queue == 0 && c->tasks[3].queue == 1);
	assert_int_equal(c->workers[1].cpu, 1023);
	assert_string_equal(c->workers[0].tasks[0], "mon");
	config_free(c);
}

static void a_small_document_gets_the_defaults(void **state)
{
	char error[CONFIG_ERROR_MAX] = "";
	json_t *json = json_pack("{s:i, s:s, s:[{s:s, s:s, s:s}]}", "version", 1, "name", "a", "ports",
	                         "name", "p", "kind", "ethdev", "device", "net_null0");
	struct config *c = config_decode(json, error);

	json_decref(json);
	if (c == NULL)
		fail_msg("%s", error);
	assert_int_equal(c->nice, CONFIG_NICE_UNSET);
	assert_true(!c->memory.hugepages && c->memory.size_mb == 256 && c->memory.mbuf_count == 16383);
	assert_int_equal(c->memory.mbuf_data_bytes, 2176);
	assert_int_equal(c->ports[0].ring_size, 256);
	assert_string_equal(c->ports[0].ops->kind, "ethdev");
	assert_int_equal(c->ports[0].queues, 1);
	assert_int_equal(c->ports[0].line_rate_bps, 10000000000);
	assert_true(c->task_count == 0 && c->worker_count == 0);
	config_free(c);
}

static const struct {
	const char *description, *old, *new, *words;
} refusals[] = {
        {"a later version", "'version': 1", "'version': 2", "document.version: 2 is not supported"},
        {"no version", "'version': 1,", "", "document: key \"version\" is missing"},
        {"no name", "'name': 'tester',", "", "document: key \"name\" is missing"},
        {"unknown key", "'nice': -5", "'nicer': -5",
         "document: unknown key \"nicer\"; valid keys: version name"},
        {"nice", "-5", "-21", "document.nice: -21 is not valid: expected a whole number from -20 to 19"},
        {"unknown memory key", "'hugepages'", "'huge'",
         "memory: unknown key \"huge\"; valid keys: hugepages"},
        {"too little memory", "'size_mb': 512", "'size_mb': 31", "memory.size_mb: 31 is not valid"},
        {"a port of another type", "'ports': [{", "'ports': [7, {", "ports[0]: expected an object"},
        {"unknown port key", "'ring_size': 512", "'queue': 512",
         "ports[0]: unknown key \"queue\"; valid keys: name"},
        {"port kind", "'virtio-user'", "'virtio'",
         "expected one of ethdev memif-client memif-server netmap vhost-user virtio-user"},
        {"a backend that is not one", "'backend': 'planed'", "'backend': 'ring'",
         "ports[0].backend: \"ring\" is not valid: expected one of dpdk planed"},
        {"a backend where none is chosen", "'device': 'net_null0,size=64'",
         "'device': 'net_null0,size=64', 'backend': 'dpdk'",
         "port e0: kind ethdev has no \"backend\"; leave it out, or use kind vhost-user or virtio-user"},
        {"two ports of a name", "'name': 'v0'", "'name': 'n0'",
         "two ports are called \"n0\"; names must differ"},
        {"limits of drivers where there are none", "'queues': 16", "'max_connections': 1",
         "port v0: only kinds vhost-user and memif-server, with the default backend, have \"group\""},
        {"offloads where there are none", "'queues': 16", "'offloads': true",
         "port v0: only kind vhost-user, with the default backend, has \"offloads\""},
        {"zero_copy where there is none", "'queues': 16", "'zero_copy': true",
         "port v0: only kind memif-client, with the default backend, has \"zero_copy\""},
        {"packed where there is none", "'ring_size': 512", "'packed': true",
         "port n0: only kind virtio-user, with the default backend, has \"packed\""},
        {"offloads for a task that changes frames", "'ring_size': 512", "'offloads': true",
         "task gen: port n0 has \"offloads\", which kind generator cannot pass on; use kind patch or bridge"},
        {"too many connections", "'ring_size': 512", "'max_connections': 5",
         "ports[0].max_connections: 5 is not valid: expected a whole number from 1 to 4"},
        {"too much memory", "'ring_size': 512", "'max_memory_mb': 262145", "from 1 to 262144"},
        {"no connections", "'ring_size': 512", "'connections_per_s': 0", "from 1 to 1000"},
        {"no path", "'path': '/run/v0.sock'", "'ring_size': 64",
         "port v0: kind virtio-user needs the key \"path\""},
        {"a path where a device belongs", "'device': 'net_null0,size=64'", "'path': '/x'",
         "port e0: kind ethdev needs the key \"device\" and not \"path\""},
        {"path and device", "'/run/v0.sock'", "'/run/v0.sock', 'device': 'net_null1'", "and not \"device\""},
        {"ring size", "'ring_size': 512", "'ring_size': 500", "port n0: ring_size 500 is not a power of two"},
        {"ring size range", "'ring_size': 512", "'ring_size': 8", "from 16 to 32768"},
        {"task kind", "'kind': 'l2fwd'", "'kind': 'router'",
         "task vnf: unknown kind \"router\"; valid kinds: bridge fib_offload "},
        {"unknown port", "'ports': ['v0', 'e0']", "'ports': ['v0', 'e1']",
         "there is no port \"e1\" in ports"},
        {"too many ports", "'ports': ['n0'], 'stream'", "'ports': ['n0', 'v0'], 'stream'",
         "task gen: kind generator takes 1 to 1 ports, not 2"},
        {"no ports", "'ports': ['v0', 'e0']", "'ports': []", "expected an array of 1 to 72 items"},
        {"three ports", "'ports': ['v0', 'e0']", "'ports': ['v0', 'e0', 'n0']",
         "task vnf: kind l2fwd takes 1 to 2 ports, not 3"},
        {"two receivers", "'ports': ['v0', 'e0']", "'ports': ['n0', 'e0']",
         "tasks mon and vnf both receive on port n0"},
        {"two senders", "'kind': 'monitor', 'ports': ['n0']", "'kind': 'generator', 'ports': ['n0']",
         "tasks gen and mon both send on port n0"},
        {"no queues", "'ring_size': 512", "'queues': 0",
         "ports[0].queues: 0 is not valid: expected a whole number from 1 to 16"},
        {"too many queues", "'ring_size': 512", "'queues': 17", "from 1 to 16"},
        {"a queue of another type", "'stream': 7", "'queue': '0'", "tasks[0].queue: \"0\" is not valid"},
        {"a queue beyond any", "'stream': 7", "'queue': 16",
         "tasks[0].queue: 16 is not valid: expected a whole number from 0 to 15"},
        {"a queue that the port has not", "'stream': 7", "'queue': 1",
         "task gen: queue is 1, but port n0 has queues 0 to 0; raise \"queues\" of the port, or name another "
         "queue"},
        {"a queue that the second port has not", "'kind': 'l2fwd'", "'queue': 2, 'kind': 'l2fwd'",
         "task vnf: queue is 2, but port e0 has queues 0 to 1"},
        {"two receivers on a queue", "'kind': 'monitor', 'ports': ['n0']",
         "'kind': 'patch', 'queue': 1, 'ports': ['v0', 'f3']",
         "tasks mon and also both receive on port v0, queue 1: a queue has one user"},
        {"two tasks of a name", "'name': 'mon'", "'name': 'gen'", "two tasks are called \"gen\""},
        {"stream", "'stream': 7", "'stream': 8",
         "tasks[0].stream: 8 is not valid: expected a whole number from 0 to 7"},
        {"burst", "'burst': 64", "'burst': 65", "from 1 to 64"},
        {"burst of nothing", "'burst': 64", "'burst': 0", "from 1 to 64"},
        {"peer_macs", "['02:00:00:00:00:01', '02:00:00:00:00:02']", "['02:00:00:00:00:01']",
         "one for each port"},
        {"a fault of another type", "{'drop_one_in': 1000}", "1000", "tasks[4].fault: expected an object"},
        {"no fault", "{'drop_one_in': 1000}", "null", "tasks[4].fault: expected an object"},
        {"an empty fault", "{'drop_one_in': 1000}", "{}", "tasks[4].fault: key \"drop_one_in\" is missing"},
        {"unknown fault", "'drop_one_in'", "'drop_one_of'",
         "tasks[4].fault: unknown key \"drop_one_of\"; valid keys: drop_one_in"},
        {"a fault in no frame", "'drop_one_in': 1000", "'drop_one_in': 0",
         "tasks[4].fault.drop_one_in: 0 is not valid: expected a whole number from 1 to 4294967295"},
        {"a fault beyond counting", "'drop_one_in': 1000", "'drop_one_in': 4294967296",
         "from 1 to 4294967295"},
        {"a fault before the first frame", "'drop_one_in': 1000", "'drop_one_in': -1",
         "tasks[4].fault.drop_one_in: -1"},
        {"half a fault", "'drop_one_in': 1000", "'drop_one_in': 0.5", "tasks[4].fault.drop_one_in: 0.5"},
        {"a fault in words", "'drop_one_in': 1000", "'drop_one_in': '1000'",
         "tasks[4].fault.drop_one_in: \"1000\""},
        {"a fault where none can be", "'stream': 7", "'fault': {'drop_one_in': 5}",
         "task gen: kind generator has no \"fault\"; leave it out"},
        {"addresses where none are written", "'queue': 1}",
         "'queue': 1, 'peer_macs': ['02:00:00:00:00:01', '02:00:00:00:00:02']}",
         "task also: kind patch has no \"peer_macs\"; leave it out"},
        {"a stream where none begins", "'kind': 'l2fwd'", "'kind': 'l2fwd', 'stream': 1",
         "task vnf: kind l2fwd has no \"stream\"; leave it out"},
        {"an address that nothing is sent from", "'kind': 'monitor'",
         "'kind': 'monitor', 'src_ip': '198.18.0.1'",
         "task mon: kind monitor has no \"src_ip\"; leave it out"},
        {"a key of no kind", "'kind': 'monitor'", "'kind': 'monitor', 'sream': 1",
         "task mon: kind monitor has no \"sream\"; leave it out"},
        {"a task nobody polls", "'tasks': ['vnf', 'sw', 'also']", "'tasks': ['sw', 'also']",
         "task vnf: 0 workers poll it"},
        {"a task polled twice", "'tasks': ['vnf', 'sw', 'also']", "'tasks': ['vnf', 'sw', 'also', 'gen']",
         "task gen: 2 workers poll it"},
        {"a worker without its task", "'tasks': ['vnf', 'sw', 'also']", "'tasks': ['vnf', 'sw', 'also', 'x']",
         "worker w1: there is no task \"x\""},
        {"two workers of a name", "'name': 'w1'", "'name': 'w0'", "two workers are called \"w0\""},
        {"cpu", "1023", "1024", "workers[1].cpu: 1024 is not valid"},
        {"idle", "'cpu': 0", "'cpu': 0, 'idle': 'doze'", "workers[0].idle: \"doze\""},
        {"duty", "'cpu': 0", "'cpu': 0, 'duty_percent': 100", "workers[0].duty_percent"},
        {"gap", "'cpu': 0", "'cpu': 0, 'gap_threshold_ns': 999", "workers[0].gap_threshold_ns"},
        {"worker key", "'cpu': 0", "'core': 0",
         "workers[0]: unknown key \"core\"; valid keys: name cpu idle duty_percent gap_threshold_ns tasks"},
};

static void what_is_refused(void **state)
{
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		char error[CONFIG_ERROR_MAX];
		json_t *json = document(refusals[i].old, refusals[i].new);
		struct config *config;

		memset(error, 'x', sizeof(error));
		config = config_decode(json, error);
		json_decref(json);
		if (config)
			fail_msg("accepted: %s", refusals[i].description);
		assert_non_null(memchr(error, '\0', sizeof(error)));
		if (strstr(error, refusals[i].words) == NULL)
			fail_msg("%s\n  gave:    %s\n  without: %s", refusals[i].description, error,
			         refusals[i].words);
	}
}

static void parts_of_another_type_are_refused(void **state)
{
	static const struct {
		const char *key, *words;
	} parts[] = {
	        {"memory", "document.memory: expected an object"},
	        {"ports", "document.ports: expected an array of 0 to 128 items"},
	        {"tasks", "document.tasks: expected an array of 0 to 128 items"},
	        {"workers", "document.workers: expected an array of 0 to 32 items"},
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		char error[CONFIG_ERROR_MAX] = "";
		json_t *json = document(NULL, NULL);

		json_object_set_new(json, parts[i].key, json_integer(5));
		assert_null(config_decode(json, error));
		assert_string_equal(error, parts[i].words);
		json_decref(json);
	}
}

// One more than fits is refused by its number, not by writing past the end.
static void too_many_of_anything_is_refused(void **state)
{
	static const struct {
		const char *key;
		unsigned max;
	} parts[] = {
	        {"ports", CONFIG_PORTS_MAX}, {"tasks", CONFIG_TASKS_MAX}, {"workers", CONFIG_WORKERS_MAX}};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		char error[CONFIG_ERROR_MAX] = "", words[80];
		json_t *json = document(NULL, NULL), *array = json_array();

		for (unsigned n = 0; n <= parts[i].max; n++)
			json_array_append_new(array, json_object());
		json_object_set_new(json, parts[i].key, array);
		assert_null(config_decode(json, error));
		snprintf(words, sizeof(words), "document.%s: expected an array of 0 to %u items",
		         parts[i].key, parts[i].max);
		assert_string_equal(error, words);
		json_decref(json);
	}
}

static void as_many_ports_as_fit(void **state)
{
	char error[CONFIG_ERROR_MAX] = "";
	json_t *json = json_pack("{s:i, s:s, s:[]}", "version", 1, "name", "a", "ports");
	struct config *config;

	for (int n = 0; n < CONFIG_PORTS_MAX; n++)
		json_array_append_new(json_object_get(json, "ports"),
		                      json_pack("{s:o, s:s, s:s}", "name", json_sprintf("p%d", n), "kind",
		                                "ethdev", "device", "net_null0"));
	config = config_decode(json, error);
	json_decref(json);
	if (config == NULL)
		fail_msg("%s", error);
	assert_int_equal(config->port_count, CONFIG_PORTS_MAX);
	config_free(config);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void files_are_read_or_refused_with_their_name(void **state)
{
	char error[CONFIG_ERROR_MAX] = "", path[] = "/tmp/config_test_XXXXXX";
	int fd = mkstemp(path);
	json_t *json = NULL;
	struct config *config;

	assert_true(fd >= 0);
	close(fd);
	write_file(path, "{\"version\": 1, \"name\": \"a\"}");
	config = config_load(path, &json, error);
	assert_non_null(config);
	assert_non_null(json);
	config_free(config);
	json_decref(json);

	write_file(path, "{\"version\": 1,\n \"name\": \"a\", \"name\": \"b\"}");
	assert_null(config_load(path, &json, error));
	assert_true(json == NULL && strstr(error, path) && strstr(error, "line 2") &&
	            strstr(error, "duplicate"));

	write_file(path, "{\"version\": 1}");
	assert_null(config_load(path, &json, error));
	assert_true(json == NULL && strstr(error, "\"name\" is missing"));

	unlink(path);
	assert_null(config_load(path, &json, error));
	assert_true(json == NULL && strstr(error, path) && strstr(error, "No such file or directory"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(a_whole_document_decodes),
	        cmocka_unit_test(a_small_document_gets_the_defaults),
	        cmocka_unit_test(what_is_refused),
	        cmocka_unit_test(parts_of_another_type_are_refused),
	        cmocka_unit_test(too_many_of_anything_is_refused),
	        cmocka_unit_test(as_many_ports_as_fit),
	        cmocka_unit_test(files_are_read_or_refused_with_their_name),
	};

	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
