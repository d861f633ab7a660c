// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "task/task.h"

static inline void note_gap(struct worker *worker, uint64_t begin, uint64_t end)
{
	uint64_t cycles = RTE_MIN(end, worker->watch_until_tsc) - RTE_MAX(begin, worker->watch_from_tsc);

	poll_gap_note(begin, end);
	if (end <= worker->watch_from_tsc || begin >= worker->watch_until_tsc)
		return;
	counter_add(&worker->counters.gaps, 1);
	counter_add(&worker->counters.gap_sum_cycles, cycles);
	if (cycles > worker->counters.gap_max_cycles)
		counter_add(&worker->counters.gap_max_cycles, cycles - worker->counters.gap_max_cycles);
}

// The first poll since the counters were cleared begins later than the watched time: it is a gap, too.
static void note_late_start(struct worker *worker, uint64_t begin)
{
	uint64_t from = worker->watch_from_tsc;

	if (worker->counters.loops == 0 && from && begin > from &&
	    begin - from > worker->gap_threshold_cycles)
		note_gap(worker, from, begin);
}

// Wait after a poll so long that it takes the time that it would take at the emulated clock. A poll that lost its CPU took
// the time of others: it is left as it is. Returns the time after it.
static uint64_t stretch(const struct worker *worker, uint64_t begin, uint64_t end)
{
	uint64_t until = begin + (end - begin) * 100 / worker->duty_percent;

	if (end - begin > worker->gap_threshold_cycles)
		return end;
	while (end < until)
		end = rte_rdtsc();
	return end;
}

// Poll every task once. Returns the time at the end, which is the time at the beginning of the next turn.
static inline __attribute__((always_inline)) uint64_t turn(struct worker *worker, uint64_t now, bool slowed)
{
	for (unsigned i = 0; i < worker->task_count; i++) {
		struct task *task = worker->tasks[i];
		unsigned handled = task->ops->poll(task, now);
		uint64_t end = rte_rdtsc();

		if (slowed)
			end = stretch(worker, now, end);
		counter_add(&task->counters.polls, 1);
		if (handled) {
			counter_add(&task->counters.busy_polls, 1);
			counter_add(&task->counters.busy_cycles, end - now);
			counter_add(&worker->counters.busy_cycles, end - now);
		} else {
			counter_add(&task->counters.idle_cycles, end - now);
			counter_add(&worker->counters.idle_cycles, end - now);
		}
		now = end;
	}
	return now;
}

// Give the CPU away for a moment. Returns the time after it.
static __attribute__((noinline)) uint64_t doze(struct worker *worker, uint64_t now)
{
	const struct timespec moment = {.tv_nsec = worker->idle == WORKER_IDLE_NAP ? WORKER_NAP_NS
	                                                                           : WORKER_SLEEP_NS};
	uint64_t end;

	nanosleep(&moment, NULL);
	end = rte_rdtsc();
	counter_add(&worker->counters.sleeps, 1);
	counter_add(&worker->counters.idle_cycles, end - now);
	return end;
}

// sleeps and slowed are constants of the caller: who polls pays nothing.
static inline __attribute__((always_inline)) void poll_or_doze(struct worker *worker, bool sleeps,
                                                               bool slowed)
{
	uint64_t begin = rte_rdtsc(), end, busy = 0;
	unsigned idle_turns = 0;

	note_late_start(worker, begin);
	while (likely(atomic_load_explicit(&worker->order, memory_order_relaxed) == WORKER_RUN)) {
		poll_turn.begin_tsc = begin;
		end = turn(worker, begin, slowed);
		// Whoever sees that a turn has ended sees what it counted.
		__atomic_store_n(&worker->counters.loops, worker->counters.loops + 1, __ATOMIC_RELEASE);
		if (unlikely(end - begin > worker->gap_threshold_cycles))
			note_gap(worker, begin, end);
		begin = end;
		if (!sleeps)
			continue;
		idle_turns = worker->counters.busy_cycles == busy ? idle_turns + 1 : 0;
		busy = worker->counters.busy_cycles;
		if (idle_turns >= WORKER_IDLE_TURNS)
			begin = doze(worker, begin);
	}
}

static void poll_until_ordered(struct worker *worker)
{
	if (worker->duty_percent)
		poll_or_doze(worker, worker->idle != WORKER_IDLE_POLL, true);
	else if (worker->idle != WORKER_IDLE_POLL)
		poll_or_doze(worker, true, false);
	else
		poll_or_doze(worker, false, false);
}

static void sleep_until_ordered(struct worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	while (atomic_load(&worker->order) == WORKER_PARK) {
		// Said at each wake-up: the order may have been run and park again before we woke.
		worker->parked = true;
		pthread_cond_broadcast(&worker->changed);
		pthread_cond_wait(&worker->changed, &worker->lock);
	}
	worker->parked = false;
	pthread_mutex_unlock(&worker->lock);
}

static int pin(const struct worker *worker)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(worker->cpu, &cpus);
	return -pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
}

static void cache_flush(struct rte_mempool *pool, void *lcore)
{
	rte_mempool_cache_flush(rte_mempool_default_cache(pool, *(unsigned *)lcore), pool);
}

// Return the mbufs in this thread's caches to their pools: no other thread can reach them afterwards.
static void caches_flush(void)
{
	unsigned lcore = rte_lcore_id();

	if (lcore != LCORE_ID_ANY)
		rte_mempool_walk(cache_flush, &lcore);
}

static void *worker_main(void *argument)
{
	struct worker *worker = argument;

	worker->tid = gettid();
	poll_turn.gap_ticks = worker->gap_threshold_cycles;
	worker->start_error = pin(worker);
	if (worker->start_error == 0 && rte_thread_register()) // gives the thread its mempool caches
		worker->start_error = -rte_errno;
	prctl(PR_SET_TIMERSLACK, 1UL); // ns: a sleep that is worth a microsecond would take fifty
	if (worker->nice != CONFIG_NICE_UNSET)
		setpriority(PRIO_PROCESS, (id_t)worker->tid, worker->nice); // where the system allows it
	while (worker->start_error == 0 && atomic_load(&worker->order) != WORKER_END) {
		sleep_until_ordered(worker);
		poll_until_ordered(worker);
	}
	caches_flush();
	pthread_mutex_lock(&worker->lock);
	worker->parked = true; // also: it has ended
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	rte_thread_unregister();
	return NULL;
}

static void order(struct worker *worker, enum worker_order what)
{
	pthread_mutex_lock(&worker->lock);
	atomic_store(&worker->order, what);
	if (what != WORKER_PARK)
		worker->parked = false;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
}

int worker_create(const struct config_worker *config, struct task *const *tasks, int nice,
                  struct worker **out)
{
	struct worker *worker = aligned_alloc(64, sizeof(*worker));
	pthread_condattr_t monotonic;
	struct timespec deadline;
	int rc;

	if (worker == NULL)
		return -ENOMEM;
	memset(worker, 0, sizeof(*worker));
	memcpy(worker->name, config->name, sizeof(worker->name));
	worker->cpu = config->cpu;
	worker->idle = config->idle;
	worker->duty_percent = config->duty_percent;
	worker->nice = nice;
	worker->task_count = config->task_count;
	memcpy(worker->tasks, tasks, sizeof(tasks[0]) * config->task_count);
	worker->gap_threshold_ns =
	        config->gap_threshold_ns ? config->gap_threshold_ns : WORKER_GAP_THRESHOLD_NS;
	worker->gap_threshold_cycles = clock_ticks(worker->gap_threshold_ns);
	worker->watch_until_tsc = UINT64_MAX;
	pthread_mutex_init(&worker->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&worker->changed, &monotonic);
	rc = -pthread_create(&worker->thread, NULL, worker_main, worker);
	if (rc) {
		LOG_ERROR("worker %s: no thread: %s", config->name, strerror(-rc));
		free(worker);
		return rc;
	}
	deadline = worker_park_deadline();
	rc = worker_wait_parked(worker, &deadline);
	rc = rc ? rc : worker->start_error;
	if (rc) {
		LOG_ERROR("worker %s: cannot run on cpu %u: %s; see taskset -p %d for the CPUs it may use",
		          config->name, config->cpu, strerror(-rc), getpid());
		worker_destroy(worker);
		return rc;
	}
	*out = worker;
	return 0;
}

void worker_destroy(struct worker *worker)
{
	order(worker, WORKER_END);
	pthread_join(worker->thread, NULL);
	pthread_mutex_destroy(&worker->lock);
	pthread_cond_destroy(&worker->changed);
	free(worker);
}

void worker_order_park(struct worker *worker)
{
	order(worker, WORKER_PARK);
}

unsigned worker_park_ms(void)
{
	const char *text = getenv("PLANEBENCH_PATIENCE");
	double factor = text ? strtod(text, NULL) : 1;

	return (unsigned)(WORKER_PARK_MS * (factor >= 1 && factor <= 1000 ? factor : 1));
}

struct timespec worker_park_deadline(void)
{
	struct timespec deadline;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += worker_park_ms() / 1000;
	return deadline;
}

int worker_wait_parked(struct worker *worker, const struct timespec *deadline)
{
	int rc = 0;

	pthread_mutex_lock(&worker->lock);
	while (!worker->parked && rc == 0)
		rc = pthread_cond_timedwait(&worker->changed, &worker->lock, deadline);
	rc = worker->parked ? 0 : -rc;
	pthread_mutex_unlock(&worker->lock);
	return rc;
}

static bool is_past(const struct timespec *deadline)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > deadline->tv_sec ||
	       (now.tv_sec == deadline->tv_sec && now.tv_nsec >= deadline->tv_nsec);
}

static uint64_t loops_of(const struct worker *worker)
{
	return __atomic_load_n(&worker->counters.loops, __ATOMIC_ACQUIRE);
}

bool worker_wait_turn(const struct worker *worker, const struct timespec *deadline)
{
	const uint64_t begin = loops_of(worker);

	// The turn that is going on began before the call: the one after it counts.
	while (loops_of(worker) - begin < 2) {
		if (is_past(deadline))
			return false;
		sched_yield();
	}
	return true;
}

// A turn counts the polls of its tasks one after the other, and they are cleared together: the first that has fewer than
// the one before it is the one that goes on.
const struct task *worker_standing_in(const struct worker *worker)
{
	for (unsigned i = 1; i < worker->task_count; i++)
		if (__atomic_load_n(&worker->tasks[i]->counters.polls, __ATOMIC_RELAXED) !=
		    __atomic_load_n(&worker->tasks[i - 1]->counters.polls, __ATOMIC_RELAXED))
			return worker->tasks[i];
	return worker->task_count ? worker->tasks[0] : NULL;
}

bool worker_waits_for_cpu(char state, uint64_t ran_ns)
{
	return state == 'R' && ran_ns < WORKER_RAN_NS;
}

// proc(5): R of one that runs or waits for its CPU; 0: not known.
static char state_of(pid_t tid)
{
	char path[64], text[256] = "", *name_end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	name_end = strrchr(text, ')');
	return name_end && name_end[1] ? name_end[2] : 0;
}

static uint64_t ran_ns(const struct worker *worker)
{
	struct timespec ran = {0};
	clockid_t clock;

	if (pthread_getcpuclockid(worker->thread, &clock) == 0)
		clock_gettime(clock, &ran);
	return (uint64_t)ran.tv_sec * 1000000000 + (uint64_t)ran.tv_nsec;
}

// Once of each kind.
static void say_no_turn(struct worker *worker, int64_t ms)
{
	const struct task *task = worker_standing_in(worker);
	bool waits = worker_waits_for_cpu(state_of(worker->tid), ran_ns(worker) - worker->ran_seen_ns);

	if (waits && !worker->waits)
		LOG_WARN("worker %s has not had its CPU %u since %" PRId64 " ms: others use it", worker->name,
		         worker->cpu, ms);
	if (!waits && !worker->stands)
		LOG_WARN("worker %s stands in task %s since %" PRId64 " ms, and all that it polls",
		         worker->name, task ? task->name : "-", ms);
	worker->waits |= waits;
	worker->stands |= !waits;
}

void worker_look_after(struct worker *worker)
{
	uint64_t loops = loops_of(worker);
	int64_t now_ms = clock_now_ms(), ms = now_ms - worker->seen_ms;

	if (worker->seen_ms && loops == worker->loops_seen && atomic_load(&worker->order) == WORKER_RUN) {
		if (ms >= WORKER_STANDS_MS)
			say_no_turn(worker, ms);
		return;
	}
	if (worker->stands || worker->waits)
		LOG_INFO("worker %s goes on after %" PRId64 " ms", worker->name, ms);
	worker->stands = worker->waits = false;
	worker->loops_seen = loops;
	worker->seen_ms = now_ms;
	worker->ran_seen_ns = ran_ns(worker);
}

void worker_run(struct worker *worker)
{
	order(worker, WORKER_RUN);
}

void worker_clear(struct worker *worker, uint64_t from_tsc, uint64_t until_tsc)
{
	worker->counters = (struct worker_counters){0};
	worker->watch_from_tsc = from_tsc;
	worker->watch_until_tsc = until_tsc;
}
