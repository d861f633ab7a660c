// SPDX-License-Identifier: BSD-3-Clause
// A malicious document: any bytes that jansson takes for JSON, decoded as planed decodes --config and
// config.apply. test/fuzz.h says how it is run. Checked: it is refused with a sentence, or what it became
// keeps the bounds that all else relies on. Not covered: documents from a file, applying.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/config.h"
#include "test/fuzz.h"

static unsigned long documents, accepted;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return 0;
}

static void must(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "config_fuzz: not so: %s\n", what);
	abort();
}

static void is_text(const char *text, size_t max)
{
	must(strnlen(text, max) < max, "a string ends");
}

static void check_tasks(const struct config *config)
{
	for (unsigned i = 0; i < config->task_count; i++) {
		const struct config_task *task = &config->tasks[i];

		is_text(task->name, sizeof(task->name));
		is_text(task->kind, sizeof(task->kind));
		must(task->port_count >= 1 && task->port_count <= CONFIG_TASK_PORTS_MAX, "a task has ports");
		must(task->burst <= CONFIG_BURST_MAX, "bursts");
		for (unsigned p = 0; p < task->port_count; p++)
			is_text(task->ports[p], sizeof(task->ports[p]));
	}
}

static void check(const struct config *config)
{
	must(config->port_count <= CONFIG_PORTS_MAX && config->task_count <= CONFIG_TASKS_MAX &&
	             config->worker_count <= CONFIG_WORKERS_MAX,
	     "no more than there is room for");
	is_text(config->name, sizeof(config->name));
	for (unsigned i = 0; i < config->port_count; i++) {
		const struct config_port *port = &config->ports[i];

		is_text(port->name, sizeof(port->name));
		is_text(port->path, sizeof(port->path));
		is_text(port->device, sizeof(port->device));
		must(port->ring_size >= 16 && port->ring_size <= 32768, "sizes of rings");
	}
	check_tasks(config);
	for (unsigned i = 0; i < config->worker_count; i++) {
		must(config->workers[i].task_count <= CONFIG_TASKS_MAX, "tasks of a worker");
		for (unsigned t = 0; t < config->workers[i].task_count; t++)
			is_text(config->workers[i].tasks[t], CONFIG_NAME_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[CONFIG_ERROR_MAX] = "";
	json_t *document = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
	struct config *config;

	if (document == NULL)
		return 0;
	documents++;
	config = config_decode(document, error);
	is_text(error, sizeof(error));
	must(config || error[0], "a document is refused with a sentence");
	if (config) {
		accepted++;
		check(config);
	}
	config_free(config);
	json_decref(document);
	return 0;
}

void fuzz_report(void)
{
	printf("%lu documents, %lu of them accepted\n", documents, accepted);
}
