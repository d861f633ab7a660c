// SPDX-License-Identifier: BSD-3-Clause
// Clients that send half a request, do not read their reply, or are many: the others are served at once, and they are dropped.
#include "runtime/rpc.c"

#include <pthread.h>
#include <signal.h>
#include <sys/un.h>

#include "test/unit.h"

enum { REPLY_BYTES = 1000000, AT_ONCE_MS = 4000, DROPPED_MS = LINE_MS + 5000 };

// In the place of methods.c.
json_t *methods_call(struct planed *planed, const char *method, const json_t *params, int *code,
                     char error[static CONFIG_ERROR_MAX])
{
	size_t bytes = strcmp(method, "long") == 0 ? REPLY_BYTES : 1;
	char *text = malloc(bytes);
	json_t *result;

	planed->ending = strcmp(method, "end") == 0;
	memset(text, 'a', bytes);
	result = json_stringn(text, bytes);
	free(text);
	return result;
}

struct rig {
	struct planed planed;
	struct rpc *rpc;
	char path[64];
	pthread_t thread;
};

static void *serve(void *argument)
{
	struct rig *r = argument;

	rpc_serve(r->rpc, &r->planed, -1);
	return NULL;
}

static int join(const struct rig *r)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", r->path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void ask(int fd, const char *method)
{
	char line[128];
	int length = snprintf(line, sizeof(line), "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"%s\"}\n",
	                      method);

	assert_int_equal(send(fd, line, (size_t)length, MSG_NOSIGNAL), length);
}

// Return the bytes that come within so many milliseconds, all of them if last is in them; -1: the other end has hung up.
static ssize_t hear(int fd, int ms, char last)
{
	static char bytes[1 << 16];
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	ssize_t heard = 0, got;

	while (poll(&ready, 1, ms) == 1) {
		got = recv(fd, bytes, sizeof(bytes), 0);
		if (got <= 0)
			return -1;
		heard += got;
		if (bytes[got - 1] == last)
			break;
	}
	return heard;
}

static int rig_open(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	signal(SIGPIPE, SIG_IGN);
	snprintf(r->path, sizeof(r->path), "/tmp/rpc_test.%d", (int)getpid());
	assert_int_equal(rpc_open(r->path, &r->rpc), 0);
	assert_int_equal(pthread_create(&r->thread, NULL, serve, r), 0);
	*state = r;
	return 0;
}

static int rig_close(void **state)
{
	struct rig *r = *state;
	int fd = join(r);

	ask(fd, "end");
	pthread_join(r->thread, NULL);
	close(fd);
	rpc_close(r->rpc);
	free(r);
	return 0;
}

static void others_are_served(const struct rig *r)
{
	int fd = join(r);

	ask(fd, "short");
	assert_true(hear(fd, AT_ONCE_MS, '\n') > 0);
	close(fd);
}

static void who_does_not_read(void **state)
{
	const struct rig *r = *state;
	int fds[8];
	char byte;

	for (unsigned i = 0; i < 8; i++) {
		fds[i] = join(r);
		ask(fds[i], "long");
		ask(fds[i], "long");
	}
	others_are_served(r);
	usleep((REPLY_MS + 1000) * 1000);
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(hear(fds[i], DROPPED_MS, 0),
		                 -1); // what was sent is still there, and no more
		assert_int_equal(recv(fds[i], &byte, 1, 0), 0);
		close(fds[i]);
	}
}

static void who_reads_gets_all(void **state)
{
	const struct rig *r = *state;
	int fd = join(r);

	ask(fd, "long");
	ask(fd, "short");
	assert_true(hear(fd, AT_ONCE_MS, '\n') > REPLY_BYTES);
	others_are_served(r);
	close(fd);
}

static void half_a_request(void **state)
{
	const struct rig *r = *state;
	int fd = join(r);

	assert_int_equal(send(fd, "{\"json", 6, 0), 6);
	others_are_served(r);
	assert_int_equal(hear(fd, DROPPED_MS, 0), -1);
	close(fd);
}

static void is_answered(int fd)
{
	ask(fd, "short");
	assert_true(hear(fd, AT_ONCE_MS, '\n') > 0);
}

// Who comes is served, in the place of who was idle longest; not of who has begun a request.
static void idle_clients_make_room(void **state)
{
	const struct rig *r = *state;
	int fds[CLIENTS_MAX], fd;

	for (unsigned i = 0; i < CLIENTS_MAX; i++) {
		fds[i] = join(r);
		is_answered(fds[i]);
		usleep(2000);
	}
	assert_int_equal(send(fds[0], "{\"json", 6, 0), 6);
	is_answered(fds[1]);
	fd = join(r);
	is_answered(fd);
	assert_int_equal(hear(fds[2], AT_ONCE_MS, 0), -1);
	for (unsigned i = 0; i < CLIENTS_MAX; i++) {
		if (i == 0)
			assert_int_equal(send(fds[0], "\n", 1, 0), 1);
		if (i == 0)
			assert_true(hear(fds[0], AT_ONCE_MS, '\n') > 0);
		else if (i != 2)
			is_answered(fds[i]);
		close(fds[i]);
	}
	close(fd);
}

// Nobody is dropped for them; they fall to their deadline.
static void half_requests_of_all_fall_to_their_deadline(void **state)
{
	const struct rig *r = *state;
	int fds[CLIENTS_MAX], fd;

	for (unsigned i = 0; i < CLIENTS_MAX; i++) {
		fds[i] = join(r);
		assert_int_equal(send(fds[i], "{", 1, 0), 1);
	}
	usleep(100000);
	fd = join(r);
	assert_int_equal(hear(fd, AT_ONCE_MS, 0), -1);
	close(fd);
	for (unsigned i = 0; i < CLIENTS_MAX; i++) {
		assert_int_equal(hear(fds[i], DROPPED_MS, 0), -1);
		close(fds[i]);
	}
	others_are_served(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(who_reads_gets_all, rig_open, rig_close),
	        cmocka_unit_test_setup_teardown(who_does_not_read, rig_open, rig_close),
	        cmocka_unit_test_setup_teardown(half_a_request, rig_open, rig_close),
	        cmocka_unit_test_setup_teardown(idle_clients_make_room, rig_open, rig_close),
	        cmocka_unit_test_setup_teardown(half_requests_of_all_fall_to_their_deadline, rig_open,
	                                        rig_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
