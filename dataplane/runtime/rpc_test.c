// SPDX-License-Identifier: BSD-3-Clause
// A client that reads its reply slowly, but never stops: its time is limited as a whole.
#include "runtime/rpc.c"

#include <fcntl.h>
#include <sys/wait.h>

#include "test/unit.h"

enum { REPLY_BYTES = 900000, READ_BYTES = 1 << 15, READ_EVERY_MS = 400 };

// In the place of methods.c.
json_t *methods_call(struct planed *planed, const char *method, const json_t *params, int *code,
                     char error[static CONFIG_ERROR_MAX])
{
	char *text = malloc(REPLY_BYTES);
	json_t *result;

	memset(text, 'a', REPLY_BYTES);
	result = json_stringn(text, REPLY_BYTES);
	free(text);
	return result;
}

// Child: read some of the reply again and again, until the other end hangs up.
static void read_slowly(int fd)
{
	static char bytes[READ_BYTES];

	while (read(fd, bytes, sizeof(bytes)) > 0)
		usleep(READ_EVERY_MS * 1000);
	_exit(0);
}

static void a_slow_reader(void **state)
{
	static char request[LINE_MAX_BYTES] = "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"m\"}\n";
	struct client client = {.line = request};
	int ends[2];
	pid_t child;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	child = fork();
	if (child == 0) {
		close(ends[0]);
		read_slowly(ends[1]);
	}
	close(ends[1]);
	client.fd = ends[0];
	fcntl(client.fd, F_SETFL, O_NONBLOCK);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(serve_line(NULL, &client, strlen(request) - 1), -EPIPE);
	close(client.fd);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_slow_reader)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
