// SPDX-License-Identifier: BSD-3-Clause
// A kind of port that is one file (test/loop_port.c): a document opens it, a task uses it, and it counts.
#include "port/port.h"
#include "runtime/config.h"
#include "task/task.h"
#include "test/fixture.h"
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
	assert_string_equal(port_kinds(), "ethdev loop memif-client memif-server vhost-user virtio-user");
	assert_string_equal(port_backends("vhost-user"), "dpdk planed");
	assert_string_equal(port_backends("loop"), "");
}

static unsigned send_frames(struct port *port, unsigned n)
{
	uint8_t bytes[60] = {0};
	const struct piece piece = {bytes, sizeof(bytes)};
	struct frame frames[BURST_FRAMES_MAX];

	for (unsigned i = 0; i < n; i++)
		frames[i] = (struct frame){{&piece, 0}, sizeof(bytes), 0};
	return port_deliver(port, 0, frames, n);
}

// 40 packets in a's loop go to b's, which holds 32: 8 are dropped. The fixture sees that each mbuf is freed once.
static void a_patch_moves_what_fits(void **state)
{
	char error[CONFIG_ERROR_MAX] = "";
	struct config *config = decode(document_text, error);
	const struct task_ops *ops = task_ops_find("patch");
	struct fixture *f = *state;
	struct port a, b, *ports[] = {&a, &b};
	struct port_counters counters;
	struct rte_ether_addr mac;
	struct task *task;

	assert_int_equal(port_open(&a, &config->ports[0], f->pool), 0);
	assert_int_equal(port_open(&b, &config->ports[1], f->pool), 0);
	assert_int_equal(ops->create(&config->tasks[0], ports, &task), 0);
	assert_int_equal(send_frames(&a, 40), 40);
	assert_int_equal(ops->poll(task, 0), 72);
	port_read_counters(&a, &counters);
	assert_int_equal(counters.tx_packets, 40 + 32);
	assert_int_equal(counters.rx_packets, 40);
	port_read_counters(&b, &counters);
	assert_int_equal(counters.tx_packets, 32);
	assert_int_equal(counters.rx_packets, 32);
	assert_int_equal(counters.queues[0].tx_full, 8);
	assert_int_equal(task_drop_tx_full(task), 8);
	assert_true(port_link_up(&a));
	assert_int_equal(port_mac(&a, &mac), 0);
	assert_int_equal(mac.addr_bytes[5], 7);
	ops->destroy(task);
	port_close(&a);
	port_close(&b);
	config_free(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_document_names_it),
	        cmocka_unit_test_setup_teardown(a_patch_moves_what_fits, fixture_setup, fixture_teardown),
	};

	return fixture_eal_init("port_kind") ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
