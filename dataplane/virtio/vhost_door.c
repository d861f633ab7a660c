// SPDX-License-Identifier: BSD-3-Clause
#include "virtio/vhost_door.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bucket.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/listen_socket.h"
#include "base/log.h"
#include "base/log_rate.h"
#include "shm/guest_fault.h"
#include "virtio/vhost_link.h"

enum {
	LINKS_MAX = CONFIG_CONNECTIONS_MAX,
	REST_MS = 100,     // without a descriptor for who wants to connect
	MESSAGE_MS = 5000, // for all bytes of a message
	CLOSE_S = 2,       // for what the other end may make slow
	CHECK_MS = 100,    // of descriptors that must not block, and of memory that must stay
	BARRED_MS = 60000, // a port whose driver has made one of them block, or has taken memory away
	// Memory that goes away and comes back costs who uses it a page fault each time. As many of a process between two
	// checks, times the pages of 4 KB of each, as take about a hundredth of a core; and how often that is.
	FAULTS_DEAR = 1000,
	FAULTS_PER_HUGEPAGE = 100,
	STRIKES = 3,
	STRIKE_CHECKS = 20, // after which one is forgotten
	EVENTS_MAX = 64,

	CONNECTIONS_BURST = 64, // of a port
	// Of a port; a ring that a worker has to let go counts as one more: it interrupts all workers for a moment.
	MESSAGES_BURST = 4096,
	MESSAGES_PER_S = 2000,
	MS_PER_S = 1000,
	LINES_BURST = 8, // log lines of a port
	LINES_PER_MINUTE = 1,
};

// What epoll tells of. door NULL: wake_fd; link NULL: the door's listener.
struct source {
	struct vhost_door *door;
	struct link *link;
	int fd;
	bool watched;
};

// What is closed by the port's own thread.
struct waste {
	unsigned fd_count, memory_count;
	int fds[1 + VHOST_FILES_MAX];
	struct vhost_memory memory[2]; // of the connection, and a table that was replaced
};

struct link {
	struct source source;
	bool open;
	bool full;                // waste is to be fetched
	bool closed;              // no waste of it is being closed, either
	uint64_t deadline_ms;     // of a message that has begun
	unsigned strikes, checks; // memory taken away; checks since the last time
	struct vhost_link in;
	struct vhost_device device;
	struct waste waste;
};

struct vhost_door {
	struct vhost_door_config config;
	char path[CONFIG_PATH_MAX];
	struct source listener;
	uint64_t rest_until_ms, check_ms, faults_seen;
	struct bucket connections, messages;
	struct log_rate lines;
	_Atomic(uint64_t) refused[VHOST_REFUSALS];
	struct link links[LINKS_MAX];
	pthread_t closer;
	pthread_cond_t work, done;
	bool ending, ended, abandoned; // of the closer
	struct timespec until;         // ending: when it is left behind
	struct vhost_door *next;
};

// lock: everything here, and all doors. changed: that a source which epoll told of may be gone.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static _Atomic(unsigned) callers;
static struct vhost_door *doors;
static pthread_t thread;
static int epoll_fd = -1;
static struct source wake = {.fd = -1};
static bool running, ending, changed;

// Anybody but the thread, which takes the lock again and again and would keep it to itself.
static void enter(void)
{
	atomic_fetch_add(&callers, 1);
	pthread_mutex_lock(&lock);
	atomic_fetch_sub(&callers, 1);
	pthread_cond_signal(&turn); // whether the lock is left, or given up to wait for something
}

static void leave(void)
{
	pthread_mutex_unlock(&lock);
}

static void thread_enter(void)
{
	pthread_mutex_lock(&lock);
	while (atomic_load(&callers))
		pthread_cond_wait(&turn, &lock);
}

static void watch(struct source *source, bool on)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

	if (source->watched != on &&
	    epoll_ctl(epoll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, source->fd, &event) == 0)
		source->watched = on;
}

// --- Closing what came from the other end: the port's thread ---------------------------------------------

static void waste_close(struct waste *waste)
{
	for (unsigned i = 0; i < waste->fd_count; i++)
		close(waste->fds[i]);
	for (unsigned i = 0; i < waste->memory_count; i++)
		vhost_memory_close(&waste->memory[i]);
}

static void waste_fd(struct link *link, int fd)
{
	link->waste.fds[link->waste.fd_count++] = fd;
}

static void waste_memory(struct link *link, struct vhost_memory *memory)
{
	if (memory->guest.count)
		link->waste.memory[link->waste.memory_count++] = *memory;
	*memory = (struct vhost_memory){0};
}

static void waste_leave(struct link *link)
{
	if (link->waste.fd_count == 0 && link->waste.memory_count == 0)
		return;
	link->full = true;
	link->closed = false;
	pthread_cond_signal(&link->source.door->work);
}

static struct link *next_full(struct vhost_door *door)
{
	for (unsigned i = 0; i < LINKS_MAX; i++)
		if (door->links[i].full)
			return &door->links[i];
	return NULL;
}

static void door_free(struct vhost_door *door)
{
	pthread_cond_destroy(&door->work);
	pthread_cond_destroy(&door->done);
	free(door);
}

static void *closer_main(void *argument)
{
	struct vhost_door *door = argument;
	bool abandoned;

	enter();
	for (;;) {
		struct link *link = next_full(door);
		struct waste waste;

		if (link) {
			waste = link->waste;
			link->waste.fd_count = link->waste.memory_count = 0;
			link->full = false;
			leave();
			waste_close(&waste);
			enter();
			link->closed = !link->full;
			if (!door->ending)
				eventfd_write(wake.fd, 1);
		} else if (door->ending) {
			break;
		} else {
			pthread_cond_wait(&door->work, &lock);
		}
	}
	door->ended = true;
	abandoned = door->abandoned;
	pthread_cond_signal(&door->done);
	leave();
	if (abandoned)
		door_free(door);
	return NULL;
}

// --- One connection --------------------------------------------------------------------------------------

static void link_end(struct link *link)
{
	vhost_device_end(&link->device);
	watch(&link->source, false);
	shutdown(link->in.fd, SHUT_RDWR); // the other end sees it now, whatever closing takes
	waste_fd(link, link->in.fd);
	for (unsigned i = 0; i < link->in.files.count; i++)
		waste_fd(link, link->in.files.fds[i]);
	waste_memory(link, &link->device.memory);
	link->open = false;
	waste_leave(link);
}

// One line, and how many were left out before it.
static void say_refused(struct vhost_door *door, const struct vhost_link *in, enum vhost_refusal why)
{
	uint32_t request = in->have >= sizeof(request) ? in->message.request : 0;
	char about[64] = "", unsaid[LOG_UNSAID_BYTES];

	if (!log_rate_take(&door->lines, clock_now_ms(), unsaid))
		return;
	if (in->have)
		snprintf(about, sizeof(about), "its driver's message %u (%s) was refused, ", request,
		         vhost_request_text(request));
	LOG_WARN("port %s: %s%s; the connection is ended%s", door->config.name, about,
	         vhost_refusal_text(why), unsaid);
}

static void refuse(struct link *link, enum vhost_refusal why)
{
	struct vhost_door *door = link->source.door;

	atomic_fetch_add(&door->refused[why], 1);
	say_refused(door, &link->in, why);
	link_end(link);
}

// The driver has held up a worker, or tried to: it must not pay to try again.
static void bar(struct link *link, enum vhost_refusal why)
{
	link->source.door->rest_until_ms = clock_now_ms() + BARRED_MS;
	refuse(link, why);
}

static void handle(struct link *link)
{
	struct vhost_device *device = &link->device;
	unsigned taken = device->taken;
	struct vhost_message reply;
	enum vhost_refusal why = vhost_device_handle(device, &link->in.message, &link->in.files, &reply);

	bucket_charge(&link->source.door->messages, 1 + device->taken - taken);
	waste_memory(link, &device->replaced);
	if (why == VHOST_ACCEPTED && reply.flags && !vhost_link_reply(&link->in, &reply))
		why = VHOST_REFUSED_UNREAD;
	if (device->blocked) {
		bar(link, VHOST_REFUSED_BLOCKING);
		return;
	}
	if (why) {
		refuse(link, why);
		return;
	}
	vhost_link_next(&link->in);
	waste_leave(link);
}

static void read_driver(struct link *link)
{
	enum vhost_refusal why;

	if (link->in.have == 0)
		link->deadline_ms = clock_now_ms() + MESSAGE_MS;
	switch (vhost_link_read(&link->in, link->device.protocol_features, &why)) {
	case VHOST_READ_PART:
		break;
	case VHOST_READ_WHOLE:
		handle(link);
		break;
	case VHOST_READ_GONE:
		link_end(link);
		break;
	case VHOST_READ_REFUSED:
		refuse(link, why);
	}
}

// --- The thread ------------------------------------------------------------------------------------------

static struct link *free_link(struct vhost_door *door)
{
	for (unsigned i = 0; i < door->config.connections; i++)
		if (!door->links[i].open && door->links[i].closed)
			return &door->links[i];
	return NULL;
}

// Without a descriptor for it a caller waits, and so do we: it would be told of at once, again and again.
static void accept_driver(struct vhost_door *door)
{
	struct link *link = free_link(door);
	int fd;

	if (link == NULL)
		return;
	fd = accept4(door->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			door->rest_until_ms = clock_now_ms() + REST_MS;
		return;
	}
	bucket_charge(&door->connections, 1);
	link->source = (struct source){door, link, fd, false};
	link->in = (struct vhost_link){.fd = fd};
	link->open = true;
	link->strikes = 0;
	vhost_device_begin(&link->device, door->config.ops, door->config.owner, door->config.pairs,
	                   door->config.features);
	link->device.memory_max = door->config.memory_max;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

// Deadlines, and who may be heard. Returns when to look again, in milliseconds from now.
static uint64_t look_after_link(struct link *link, uint64_t now_ms, uint64_t wait_ms)
{
	if (!link->open)
		return UINT64_MAX;
	if (link->in.have && now_ms >= link->deadline_ms) {
		refuse(link, VHOST_REFUSED_LATE);
		return UINT64_MAX;
	}
	if (vhost_memory_gone(&link->device.memory)) {
		refuse(link, VHOST_REFUSED_MEMORY_GONE);
		return UINT64_MAX;
	}
	watch(&link->source, wait_ms == 0 && link->closed);
	return earlier(wait_ms ? wait_ms : UINT64_MAX,
	               link->in.have ? link->deadline_ms - now_ms : UINT64_MAX);
}

// Minor page faults of the whole process.
static uint64_t faults_now(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) ? 0 : (uint64_t)usage.ru_minflt;
}

// Whether a driver takes its memory away, again and again, while somebody here uses it and waits for the pages. Which
// memory that is, the kernel does not say: faults are the process's, so there must be many, and the file must have lost
// pages that had just come back.
static bool check_holes(struct link *link, uint64_t faults)
{
	uint32_t page = vhost_memory_punched(&link->device.memory);

	if (page && faults * (page > 4096 ? FAULTS_PER_HUGEPAGE : 1) >= FAULTS_DEAR) {
		link->checks = 0;
		return ++link->strikes >= STRIKES;
	}
	if (++link->checks >= STRIKE_CHECKS)
		link->strikes = link->checks = 0;
	return false;
}

// What holds a worker up, and all that it serves: a descriptor that blocks, memory that is not there.
static bool check_drivers(struct vhost_door *door)
{
	uint64_t faults = faults_now(), since = faults - door->faults_seen;
	bool open = false;

	door->faults_seen = faults;
	for (unsigned i = 0; i < LINKS_MAX; i++) {
		struct link *link = &door->links[i];

		if (!link->open)
			continue;
		vhost_device_unblock(&link->device);
		if (link->device.blocked)
			bar(link, VHOST_REFUSED_BLOCKING);
		else if (check_holes(link, since))
			bar(link, VHOST_REFUSED_HOLES);
		open |= link->open;
	}
	return open;
}

static uint64_t look_after(struct vhost_door *door, uint64_t now_ms)
{
	uint64_t messages_ms = bucket_wait(&door->messages, now_ms);
	uint64_t rest_ms = bucket_wait(&door->connections, now_ms), due_ms = UINT64_MAX;

	if (now_ms >= door->check_ms)
		door->check_ms = check_drivers(door) ? now_ms + CHECK_MS : 0;
	if (now_ms < door->rest_until_ms && rest_ms < door->rest_until_ms - now_ms)
		rest_ms = door->rest_until_ms - now_ms;
	if (door->check_ms)
		due_ms = door->check_ms - now_ms;
	for (unsigned i = 0; i < LINKS_MAX; i++)
		due_ms = earlier(due_ms, look_after_link(&door->links[i], now_ms, messages_ms));
	watch(&door->listener, rest_ms == 0 && free_link(door));
	return earlier(due_ms, rest_ms ? rest_ms : UINT64_MAX);
}

// A source that has said something. It may be another connection's by now, or nobody's: then nothing is there.
static void hear(const struct source *source)
{
	eventfd_t ignored;

	if (source->door == NULL)
		eventfd_read(source->fd, &ignored);
	else if (!source->watched)
		return;
	else if (source->link)
		read_driver(source->link);
	else
		accept_driver(source->door);
}

static void *thread_main(void *argument)
{
	struct epoll_event events[EVENTS_MAX];

	thread_enter();
	while (!ending) {
		uint64_t now_ms = clock_now_ms(), due_ms = UINT64_MAX;
		int count;

		for (struct vhost_door *door = doors; door; door = door->next)
			due_ms = earlier(due_ms, look_after(door, now_ms));
		changed = false;
		pthread_mutex_unlock(&lock);
		count = epoll_wait(epoll_fd, events, EVENTS_MAX, due_ms > INT32_MAX ? -1 : (int)due_ms);
		thread_enter();
		for (int i = 0; i < count && !changed; i++)
			hear(events[i].data.ptr);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

// Blocked signals and scheduling are those of the control thread.
static int thread_start(void)
{
	int rc = -ENOMEM;

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	wake = (struct source){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	ending = false;
	if (epoll_fd >= 0 && wake.fd >= 0) {
		watch(&wake, true);
		guest_fault_catch(wake.fd);
		rc = -pthread_create(&thread, NULL, thread_main, NULL);
	} else {
		rc = -errno;
	}
	running = rc == 0;
	if (rc) {
		close(wake.fd);
		close(epoll_fd);
	}
	return rc;
}

static void thread_stop(void)
{
	enter();
	ending = true;
	eventfd_write(wake.fd, 1);
	leave();
	pthread_join(thread, NULL);
	guest_fault_catch(-1);
	close(wake.fd);
	close(epoll_fd);
	running = false;
}

// --- Beginning and ending: the control thread ------------------------------------------------------------

static struct vhost_door *door_create(const struct vhost_door_config *config)
{
	struct vhost_door *door = calloc(1, sizeof(*door));
	uint64_t now_ms = clock_now_ms();

	if (door == NULL)
		return NULL;
	door->config = *config;
	door->connections = bucket_full(CONNECTIONS_BURST, config->connections_per_s, MS_PER_S, now_ms);
	door->messages = bucket_full(MESSAGES_BURST, MESSAGES_PER_S, MS_PER_S, now_ms);
	log_rate_init(&door->lines, LINES_BURST, LINES_PER_MINUTE, now_ms);
	for (unsigned i = 0; i < LINKS_MAX; i++) {
		door->links[i].source.door = door;
		door->links[i].closed = true;
	}
	pthread_cond_init(&door->work, NULL);
	pthread_cond_init(&door->done, NULL);
	snprintf(door->path, sizeof(door->path), "%s", config->path);
	return door;
}

int vhost_door_open(const struct vhost_door_config *config, struct vhost_door **out)
{
	struct vhost_door *door = door_create(config);
	bool first = !running; // only this thread changes it
	int rc = -ENOMEM;

	if (door == NULL)
		return rc;
	rc = first ? thread_start() : 0;
	if (rc)
		goto err_free;
	rc = -pthread_create(&door->closer, NULL, closer_main, door);
	if (rc)
		goto err_thread;
	rc = listen_socket_open(door->path, SOCK_STREAM, config->group);
	if (rc < 0)
		goto err_closer;
	door->listener = (struct source){.door = door, .fd = rc};
	enter();
	door->next = doors;
	doors = door;
	eventfd_write(wake.fd, 1);
	leave();
	*out = door;
	return 0;

err_closer:
	enter();
	door->ending = true;
	pthread_cond_signal(&door->work);
	leave();
	pthread_join(door->closer, NULL);
err_thread:
	if (first)
		thread_stop();
err_free:
	door_free(door);
	return rc;
}

// With the lock.
static void remove_from_doors(struct vhost_door *door)
{
	for (struct vhost_door **at = &doors; *at; at = &(*at)->next)
		if (*at == door) {
			*at = door->next;
			break;
		}
	changed = true;
}

void vhost_door_stop(struct vhost_door *door)
{
	enter();
	remove_from_doors(door);
	watch(&door->listener, false);
	for (unsigned i = 0; i < LINKS_MAX; i++)
		if (door->links[i].open)
			link_end(&door->links[i]);
	close(door->listener.fd);
	unlink(door->path);
	clock_gettime(CLOCK_REALTIME, &door->until);
	door->until.tv_sec += CLOSE_S;
	door->ending = true;
	pthread_cond_signal(&door->work);
	leave();
}

// With the lock. Returns whether it has ended in time; if not, it ends when it can, and frees the door.
static bool closer_end(struct vhost_door *door)
{
	int rc = 0;

	while (!door->ended && rc == 0)
		rc = pthread_cond_timedwait(&door->done, &lock, &door->until);
	door->abandoned = !door->ended;
	return door->ended;
}

void vhost_door_close(struct vhost_door *door)
{
	bool ended;

	if (door == NULL)
		return;
	if (!door->ending)
		vhost_door_stop(door);
	enter();
	ended = closer_end(door);
	if (!ended)
		LOG_WARN("port %s: descriptors of its driver cannot be closed; it is left behind",
		         door->config.name);
	leave();
	if (ended) {
		pthread_join(door->closer, NULL);
		door_free(door);
	} else {
		pthread_detach(door->closer);
	}
	if (doors == NULL && running)
		thread_stop();
}

uint64_t vhost_door_refused(const struct vhost_door *door, enum vhost_refusal refusal)
{
	return atomic_load(&door->refused[refusal]);
}
