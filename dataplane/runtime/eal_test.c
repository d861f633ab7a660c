// SPDX-License-Identifier: BSD-3-Clause
// The command line of the EAL: which devices DPDK may touch, and where its main lcore may run.
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/eal.h"
#include "test/unit.h"

static struct eal_arguments *arguments_of(const char *const *devices, unsigned count)
{
	static struct eal_arguments arguments;
	static struct config config;

	memset(&config, 0, sizeof(config));
	snprintf(config.name, sizeof(config.name), "eal");
	config.memory.size_mb = 64;
	config.worker_count = 1;
	config.workers[0].cpu = (uint32_t)sched_getcpu();
	config.port_count = count;
	for (unsigned i = 0; i < count; i++) {
		snprintf(config.ports[i].device, sizeof(config.ports[i].device), "%s", devices[i]);
	}
	eal_arguments(&config, &arguments);
	return &arguments;
}

static unsigned find(const struct eal_arguments *arguments, const char *text)
{
	unsigned count = 0;

	for (int i = 0; i < arguments->argc; i++)
		count += strcmp(arguments->argv[i], text) == 0;
	return count;
}

static void without_a_pci_port_the_bus_is_left_alone(void **state)
{
	const char *devices[] = {"net_null0,size=64"};

	assert_int_equal(find(arguments_of(devices, 1), "--no-pci"), 1);
	assert_int_equal(find(arguments_of(devices, 1), "--allow"), 0);
	assert_int_equal(find(arguments_of(devices, 0), "--no-pci"), 1);
}

static void only_the_named_devices_are_allowed(void **state)
{
	const char *devices[] = {"0000:01:00.1", "net_null0", "02:00.0,rxq_cqe_comp_en=0"};
	struct eal_arguments *arguments = arguments_of(devices, 3);

	assert_int_equal(find(arguments, "--no-pci"), 0);
	assert_int_equal(find(arguments, "--allow"), 2);
	assert_int_equal(find(arguments, "0000:01:00.1"), 1);
	assert_int_equal(find(arguments, "02:00.0,rxq_cqe_comp_en=0"), 1);
	assert_int_equal(find(arguments, "net_null0"), 0);
}

static void as_many_pci_ports_as_a_document_may_have_fit(void **state)
{
	const char *devices[CONFIG_PORTS_MAX];
	struct eal_arguments *arguments;

	for (unsigned i = 0; i < CONFIG_PORTS_MAX; i++)
		devices[i] = "0000:01:00.1";
	arguments = arguments_of(devices, CONFIG_PORTS_MAX);
	assert_int_equal(find(arguments, "--allow"), CONFIG_PORTS_MAX);
	assert_true((size_t)arguments->argc <= sizeof(arguments->argv) / sizeof(arguments->argv[0]));
}

static void the_main_lcore_stays_on_cpus_that_this_process_may_use(void **state)
{
	char *cpu = strstr(arguments_of(NULL, 0)->lcores, "0@(");
	cpu_set_t cpus;

	sched_getaffinity(0, sizeof(cpus), &cpus);
	assert_non_null(cpu);
	cpu += strlen("0@(");
	while (*cpu != '\0') {
		char *end;

		assert_true(CPU_ISSET(strtoul(cpu, &end, 10), &cpus));
		assert_true(*end == ',' || strcmp(end, ")") == 0);
		cpu = *end == ',' ? end + 1 : end + strlen(end);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(without_a_pci_port_the_bus_is_left_alone),
	        cmocka_unit_test(only_the_named_devices_are_allowed),
	        cmocka_unit_test(as_many_pci_ports_as_a_document_may_have_fit),
	        cmocka_unit_test(the_main_lcore_stays_on_cpus_that_this_process_may_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
