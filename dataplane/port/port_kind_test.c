// SPDX-License-Identifier: BSD-3-Clause
// A kind of port that is one file (test/loop_port.c): a document names it. What it does is in port_contract_test.c.
#include "port/port.h"
#include "runtime/config.h"
#include "test/unit.h"

static const char document_text[] =
        "{'version': 1, 'name': 'loop', 'ports': [{'name': 'a', 'kind': 'loop', 'device': 'here', 'ring_size': 64,"
        " 'queues': 2, 'mac': '02:00:00:00:00:07'}, {'name': 'b', 'kind': 'loop', 'device': 'there', 'ring_size': 32}],"
        " 'tasks': [{'name': 'p', 'kind': 'patch', 'ports': ['a', 'b'], 'burst': 64}], 'workers': [{'name': 'w', 'cpu': 0, 'tasks': ['p']}]}";

static struct config *decode(const char *text, char error[static CONFIG_ERROR_MAX])
{
	char *json = strdup(text);
	struct config *config;
	json_t *document;

	for (char *at = json; *at; at++)
		if (*at == '\'')
			*at = '"';
	document = json_loads(json, 0, NULL);
	assert_non_null(document);
	config = config_decode(document, error);
	json_decref(document);
	free(json);
	return config;
}

static void the_document_names_it(void **state)
{
	char error[CONFIG_ERROR_MAX] = "";
	struct config *config = decode(document_text, error);

	assert_string_equal(error, "");
	assert_string_equal(config->ports[0].ops->kind, "loop");
	config_free(config);
	assert_string_equal(port_kinds(),
	                    "ethdev loop memif-client memif-server netmap vhost-user virtio-user");
	assert_string_equal(port_backends("vhost-user"), "dpdk planed");
	assert_string_equal(port_backends("loop"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_document_names_it)};

	return cmocka_run_group_tests_name("port_kind", tests, NULL, NULL);
}
