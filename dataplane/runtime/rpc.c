// SPDX-License-Identifier: BSD-3-Clause
#include "rpc.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"
#include "methods.h"
#include "planed.h"
#include "stale_socket.h"

enum { CLIENTS_MAX = 16, LINE_MAX_BYTES = 1 << 20, READ_BYTES = 1 << 16, SEND_TIMEOUT_S = 5 };

struct client {
	int fd;
	char *line; // what has come of the current line
	size_t used;
};

struct rpc {
	int listener;
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

int rpc_open(const char *path, struct rpc **out)
{
	struct rpc *rpc = calloc(1, sizeof(*rpc));

	if (rpc == NULL)
		return -ENOMEM;
	if (strlen(path) >= sizeof(rpc->path))
		rpc->listener = -ENAMETOOLONG;
	else
		rpc->listener = listen_on(path);
	if (rpc->listener < 0) {
		int rc = rpc->listener;

		LOG_ERROR("cannot listen on %s: %s", path, strerror(-rc));
		free(rpc);
		return rc;
	}
	strcpy(rpc->path, path);
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

static int send_all(int fd, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t sent = send(fd, text, length, MSG_NOSIGNAL);

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
	char *text;
	int rc;

	if (reply == NULL)
		return 0;
	text = json_dumps(reply, JSON_COMPACT);
	rc = text ? send_all(client->fd, text, strlen(text)) : -ENOMEM;
	if (rc == 0)
		rc = send_all(client->fd, "\n", 1);
	free(text);
	json_decref(reply);
	return rc;
}

// Read what is there and serve every whole line. Non-zero: the client is to go.
static int serve_client(struct planed *planed, struct client *client)
{
	ssize_t got =
	        recv(client->fd, client->line + client->used, LINE_MAX_BYTES - client->used, MSG_DONTWAIT);
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
	struct timeval timeout = {.tv_sec = SEND_TIMEOUT_S};
	int fd = accept4(rpc->listener, NULL, NULL, SOCK_CLOEXEC);
	char *line;

	if (fd < 0)
		return;
	line = rpc->client_count < CLIENTS_MAX ? malloc(LINE_MAX_BYTES) : NULL;
	if (line == NULL) {
		LOG_WARN("rpc: more than %d clients; one is turned away", CLIENTS_MAX);
		close(fd);
		return;
	}
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	rpc->clients[rpc->client_count++] = (struct client){.fd = fd, .line = line};
}

static void drop_client(struct rpc *rpc, unsigned i)
{
	close(rpc->clients[i].fd);
	free(rpc->clients[i].line);
	rpc->clients[i] = rpc->clients[--rpc->client_count];
}

static void serve_ready(struct rpc *rpc, struct planed *planed, const struct pollfd *fds)
{
	// From the last to the first: drop_client() moves the last one down.
	for (unsigned i = rpc->client_count; i-- > 0;)
		if (fds[2 + i].revents && serve_client(planed, &rpc->clients[i]))
			drop_client(rpc, i);
	if (fds[1].revents)
		accept_client(rpc);
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
		nfds_t count = 1;

		if (rpc) {
			fds[count++] = (struct pollfd){.fd = rpc->listener, .events = POLLIN};
			for (unsigned i = 0; i < rpc->client_count; i++)
				fds[count++] = (struct pollfd){.fd = rpc->clients[i].fd, .events = POLLIN};
		}
		if (poll(fds, count, -1) < 0)
			continue;
		if (fds[0].revents)
			break;
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
	close(rpc->listener);
	unlink(rpc->path);
	free(rpc);
}
