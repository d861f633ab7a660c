// SPDX-License-Identifier: BSD-3-Clause
#include "test/nf_task.h"

#include <stdlib.h>
#include <string.h>

struct fixture *nf_fixture(const char *name, unsigned size_mb)
{
	void *state = NULL;

	if (fixture_eal_init_sized(name, size_mb) == 0 && fixture_setup(&state) == 0)
		return state;
	fprintf(stderr, "%s: no EAL with %u MB\n", name, size_mb);
	return NULL;
}

// The document around a task: all that config_decode() wants to see.
static json_t *document_of(const json_t *object, json_int_t ports)
{
	json_t *all = json_array(), *names = json_array(), *task = json_copy((json_t *)object);

	for (json_int_t i = 0; i < ports; i++) {
		json_t *name = json_sprintf("p%d", (int)i);

		json_array_append(names, name);
		json_array_append_new(all, json_pack("{s:o, s:s, s:s}", "name", name, "kind", "ethdev",
		                                     "device", "net_null0"));
	}
	json_object_del(task, "calls");
	json_object_set_new(task, "name", json_string("nf"));
	json_object_set_new(task, "ports", names);
	return json_pack("{s:i, s:s, s:o, s:[o], s:[{s:s, s:i, s:[s]}]}", "version", CONFIG_VERSION, "name",
	                 "nf", "ports", all, "tasks", task, "workers", "name", "w", "cpu", 0, "tasks", "nf");
}

// Methods that make it ready: [[name, params], ...].
static int call_all(struct task *task, const json_t *calls, char error[static CONFIG_ERROR_MAX])
{
	for (size_t i = 0; i < json_array_size(calls); i++) {
		const json_t *call = json_array_get(calls, i);
		const char *name = json_string_value(json_array_get(call, 0));
		json_t *answer = task_call(task, name ? name : "", json_array_get(call, 1), 0, error);

		if (!answer)
			return -1;
		json_decref(answer);
	}
	return 0;
}

struct vnf *nf_task(struct fixture *f, const json_t *object, char error[static CONFIG_ERROR_MAX])
{
	const json_t *ports = json_object_get(object, "ports");
	json_int_t count = ports ? json_integer_value(ports) : 2;
	json_t *document = document_of(object, count < 1 || count > CONFIG_TASK_PORTS_MAX ? 2 : count);
	struct config *config = config_decode(document, error);
	struct task *task = config ? fixture_task(f, &config->tasks[0]) : NULL;

	if (config && !task)
		snprintf(error, CONFIG_ERROR_MAX, "the task cannot be made; see above");
	if (task && call_all(task, json_object_get(object, "calls"), error) != 0) {
		task_destroy(task);
		task = NULL;
	}
	config_free(config);
	json_decref(document);
	return (struct vnf *)task;
}

int nf_record_read(FILE *file, struct nf_record *record, uint8_t *data)
{
	size_t got = fread(record, 1, sizeof(*record), file);

	if (got == 0)
		return 0;
	if (got != sizeof(*record) || record->length > NF_RECORD_MAX)
		return -1;
	return fread(data, 1, record->length, file) == record->length ? 1 : -1;
}
