// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/rpc.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/log.h"
#include "runtime/methods.h"
#include "runtime/planed.h"
#include "runtime/rpc_device.h"
#include "lib/stale_socket.h"

enum { CLIENTS_MAX = 16, LINE_MAX_BYTES = 1 << 20, SEND_TIMEOUT_MS = 5000, AGAIN_MS = 100 };

struct client {
	int fd;     // does not block
	char *line; // what has come of the current line
	size_t used;
};

// At a socket; or at a device, which is one client that stays. Its fd is -1 while it cannot be opened.
struct rpc {
	int listener; // or -1: at a device
	bool hung_up; // the other end of the device: it is looked at every AGAIN_MS
	char path[CONFIG_PATH_MAX];
	struct client clients[CLIENTS_MAX];
	unsigned client_count;
};

static int listen_on(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask;
	int rc;

	if (fd < 0)
		return -errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	rc = stale_socket_remove(path);
	if (rc) {
		close(fd);
		return rc;
	}
	mask = umask(0177); // mode 0600 from the first moment
	rc = bind(fd, (const struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (rc || listen(fd, CLIENTS_MAX)) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

static int add_client(struct rpc *rpc, int fd)
{
	char *line = rpc->client_count < CLIENTS_MAX ? malloc(LINE_MAX_BYTES) : NULL;

	if (line == NULL)
		return -ENOMEM;
	rpc->clients[rpc->client_count++] = (struct client){.fd = fd, .line = line};
	return 0;
}

static int open_device(struct rpc *rpc, const char *path)
{
	int fd = rpc_device_open(path), rc = fd < 0 ? fd : add_client(rpc, fd);

	if (rc && fd >= 0)
		close(fd);
	return rc;
}

static int open_at(struct rpc *rpc, const char *path)
{
	rpc->listener = -1;
	if (strlen(path) >= sizeof(rpc->path))
		return -ENAMETOOLONG;
	strcpy(rpc->path, path);
	if (rpc_is_device(path))
		return open_device(rpc, path);
	rpc->listener = listen_on(path);
	return rpc->listener < 0 ? rpc->listener : 0;
}

int rpc_open(const char *path, struct rpc **out)
{
	struct rpc *rpc = calloc(1, sizeof(*rpc));
	int rc = rpc ? open_at(rpc, path) : -ENOMEM;

	if (rc) {
		LOG_ERROR("cannot listen on %s: %s", path, strerror(-rc));
		free(rpc);
		return rc;
	}
	*out = rpc;
	return 0;
}

// A message may quote what a client sent, cut inside a character: that is no JSON string.
static json_t *error_object(int code, const char *message)
{
	json_t *text = json_string(message);
	char ascii[CONFIG_ERROR_MAX];

	if (text == NULL) {
		snprintf(ascii, sizeof(ascii), "%s", message);
		for (char *c = ascii; *c; c++)
			*c = (unsigned char)*c < 0x80 ? *c : '?';
		text = json_string(ascii);
	}
	return json_pack("{s:i, s:o}", "code", code, "message", text);
}

// One request to one answer; NULL for a notification.
static json_t *answer(struct planed *planed, const char *line, size_t length)
{
	char error[CONFIG_ERROR_MAX] = "";
	json_error_t where;
	json_t *request = json_loadb(line, length, JSON_REJECT_DUPLICATES, &where);
	const char *method = json_string_value(json_object_get(request, "method"));
	const char *version = json_string_value(json_object_get(request, "jsonrpc"));
	json_t *id = json_object_get(request, "id"), *result = NULL, *reply = NULL;
	int code = RPC_REFUSED;

	if (request == NULL) {
		code = RPC_PARSE_ERROR;
		snprintf(error, sizeof(error), "not JSON: %.100s", where.text);
	} else if (method == NULL || version == NULL || strcmp(version, "2.0") != 0) {
		code = RPC_INVALID_REQUEST;
		snprintf(error, sizeof(error),
		         "expected {\"jsonrpc\": \"2.0\", \"id\": n, \"method\": \"...\"}");
	} else {
		result = methods_call(planed, method, json_object_get(request, "params"), &code, error);
	}
	if (id || code == RPC_PARSE_ERROR || code == RPC_INVALID_REQUEST) {
		reply = json_pack("{s:s, s:o}", "jsonrpc", "2.0", "id", id ? json_incref(id) : json_null());
		if (result)
			json_object_set(reply, "result", result);
		else
			json_object_set_new(reply, "error", error_object(code, error));
	}
	json_decref(result);
	json_decref(request);
	return reply;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static bool wait_writable(int fd, int64_t deadline_ms)
{
	struct pollfd room = {.fd = fd, .events = POLLOUT};
	int64_t left_ms = deadline_ms - now_ms();

	return left_ms > 0 && poll(&room, 1, (int)left_ms) == 1 && room.revents == POLLOUT;
}

// SIGPIPE is ignored by the whole program. The deadline holds for the whole reply: no other client is served, and no
// signal handled, while it is sent.
static int send_all(int fd, const char *text, size_t length)
{
	int64_t deadline_ms = now_ms() + SEND_TIMEOUT_MS;

	while (length > 0) {
		ssize_t sent = write(fd, text, length);

		if (sent < 0 && errno == EAGAIN && wait_writable(fd, deadline_ms))
			continue;
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return -EPIPE;
		text += sent;
		length -= (size_t)sent;
	}
	return 0;
}

static int serve_line(struct planed *planed, struct client *client, size_t length)
{
	json_t *reply = answer(planed, client->line, length);
	size_t size;
	char *text;
	int rc;

	if (reply == NULL)
		return 0;
	text = json_dumps(reply, JSON_COMPACT);
	size = text ? strlen(text) : 0;
	if (text)
		text[size] = '\n'; // in the place of the zero byte
	rc = text ? send_all(client->fd, text, size + 1) : -ENOMEM;
	free(text);
	json_decref(reply);
	return rc;
}

// Read what is there and serve every whole line. Non-zero: the client is to go.
static int serve_client(struct planed *planed, struct client *client)
{
	ssize_t got = read(client->fd, client->line + client->used, LINE_MAX_BYTES - client->used);
	char *newline;

	if (got <= 0)
		return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -ECONNRESET;
	client->used += (size_t)got;
	while ((newline = memchr(client->line, '\n', client->used)) != NULL) {
		size_t length = (size_t)(newline - client->line);

		if (serve_line(planed, client, length))
			return -EPIPE;
		client->used -= length + 1;
		memmove(client->line, newline + 1, client->used);
	}
	if (client->used == LINE_MAX_BYTES) {
		LOG_WARN("rpc: a client sent a line of over %d bytes; it is cut off", LINE_MAX_BYTES);
		return -EMSGSIZE;
	}
	return 0;
}

static void accept_client(struct rpc *rpc)
{
	int fd = accept4(rpc->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 || add_client(rpc, fd) == 0)
		return;
	LOG_WARN("rpc: more than %d clients; one is turned away", CLIENTS_MAX);
	close(fd);
}

static void drop_client(struct rpc *rpc, unsigned i)
{
	if (rpc->clients[i].fd >= 0)
		close(rpc->clients[i].fd);
	free(rpc->clients[i].line);
	rpc->clients[i] = rpc->clients[--rpc->client_count];
}

// The next one does not end what this one has begun to say.
static void lose_client(struct rpc *rpc, unsigned i)
{
	if (rpc->listener >= 0) {
		drop_client(rpc, i);
		return;
	}
	rpc->clients[i].used = 0;
	rpc->hung_up = true;
}

// Whoever comes back to a virtio port finds it as it was; a terminal that has hung up is dead (POLLERR) and
// is opened anew.
static void look_again(struct rpc *rpc)
{
	struct client *client = &rpc->clients[0];
	struct pollfd now = {.fd = client->fd, .events = POLLIN};

	if (poll(&now, 1, 0) == 1 && now.revents & POLLERR) {
		close(client->fd);
		client->fd = -1;
	}
	if (client->fd < 0)
		client->fd = rpc_device_open(rpc->path);
	rpc->hung_up = client->fd < 0 || now.revents & POLLHUP;
}

static void serve_ready(struct rpc *rpc, struct planed *planed, const struct pollfd *fds)
{
	// From the last to the first: drop_client() moves the last one down.
	for (unsigned i = rpc->client_count; i-- > 0;)
		if (fds[2 + i].revents && serve_client(planed, &rpc->clients[i]))
			lose_client(rpc, i);
	if (fds[1].revents)
		accept_client(rpc);
}

// What to wait for besides signals; poll() passes over a descriptor of -1. Returns how many.
static nfds_t wait_for(const struct rpc *rpc, struct pollfd *fds)
{
	nfds_t count = 0;

	fds[count++] = (struct pollfd){.fd = rpc->listener, .events = POLLIN};
	for (unsigned i = 0; i < rpc->client_count; i++)
		fds[count++] =
		        (struct pollfd){.fd = rpc->hung_up ? -1 : rpc->clients[i].fd, .events = POLLIN};
	return count;
}

void rpc_serve(struct rpc *rpc, struct planed *planed)
{
	struct pollfd fds[2 + CLIENTS_MAX];
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	fds[0] = (struct pollfd){.fd = signalfd(-1, &signals, SFD_CLOEXEC), .events = POLLIN};
	while (!planed->ending) {
		nfds_t count = 1 + (rpc ? wait_for(rpc, fds + 1) : 0);

		if (poll(fds, count, rpc && rpc->hung_up ? AGAIN_MS : -1) < 0)
			continue;
		if (fds[0].revents)
			break;
		if (rpc && rpc->hung_up)
			look_again(rpc);
		else if (rpc)
			serve_ready(rpc, planed, fds);
	}
	close(fds[0].fd);
}

void rpc_close(struct rpc *rpc)
{
	if (rpc == NULL)
		return;
	while (rpc->client_count > 0)
		drop_client(rpc, 0);
	if (rpc->listener >= 0) {
		close(rpc->listener);
		unlink(rpc->path);
	}
	free(rpc);
}
