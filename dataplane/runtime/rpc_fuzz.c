// SPDX-License-Identifier: BSD-3-Clause
// A malicious client: any bytes, in pieces of any size, into the code that cuts them into lines and answers.
// The methods are not there, only one that echoes; so nothing needs an EAL. test/fuzz.h says how it is run.
// Checked: every answer is a line of JSON. Not covered: methods, accepting, a client that does not read.
#include "runtime/rpc.c"

#include "test/fuzz.h"
#include "base/schema.h"

// What is still unread of the answers fits a socket.
enum { PIECE_MAX = 64, ANSWERS_MAX = 1 << 18 };

static unsigned long answers, results;
static int ends[2];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) ? -errno : 0;
}

// In the place of methods.c. "echo" gives back its parameters, others are refused with what they are called.
json_t *methods_call(struct planed *planed, const char *method, const json_t *params, int *code,
                     char error[static CONFIG_ERROR_MAX])
{
	if (strcmp(method, "echo") == 0) {
		results++;
		return params ? json_deep_copy(params) : json_null();
	}
	*code = RPC_UNKNOWN_METHOD;
	return config_error_null(error, "there is no method \"%s\"", method);
}

static void must(bool is, const char *what)
{
	if (is)
		return;
	fprintf(stderr, "rpc_fuzz: not so: %s\n", what);
	abort();
}

static void check_answers(void)
{
	static char text[ANSWERS_MAX];
	ssize_t got = recv(ends[1], text, sizeof(text), MSG_DONTWAIT);
	char *line = text, *end;

	must(got < (ssize_t)sizeof(text), "answers are not longer than what they answer to");
	while (got > 0) {
		end = memchr(line, '\n', (size_t)got);
		must(end != NULL, "answers are whole lines");
		json_t *reply = json_loadb(line, (size_t)(end - line), JSON_REJECT_DUPLICATES, NULL);

		must(json_is_object(reply) && json_object_get(reply, "id"),
		     "an answer is an object with an id");
		must(!json_object_get(reply, "result") != !json_object_get(reply, "error"),
		     "an answer has a result or an error");
		json_decref(reply);
		answers++;
		got -= end + 1 - line;
		line = end + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct client client = {.fd = ends[0], .line = malloc(LINE_MAX_BYTES)};
	size_t piece;

	if (client.line == NULL)
		abort();
	// The first byte says how long the pieces are.
	piece = size ? 1 + *data++ % PIECE_MAX : 0;
	for (size_t at = 1; at < size; at += piece, data += piece) {
		size_t n = size - at < piece ? size - at : piece;

		must(send(ends[1], data, n, 0) == (ssize_t)n, "the piece is sent");
		do
			must(serve_client(NULL, &client, true) == 0, "the client is served");
		while (end_of_line(&client));
		must(client.used < LINE_MAX_BYTES, "a line is bounded");
		check_answers();
	}
	free(client.line);
	return 0;
}

void fuzz_report(void)
{
	printf("%lu answers, %lu of them results\n", answers, results);
}
