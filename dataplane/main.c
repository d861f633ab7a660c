// SPDX-License-Identifier: BSD-3-Clause
// planed: traffic generator, monitor, VNF and switch in one program. docs/design/planed-protocol.md is its
// manual.
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <rte_version.h>

#include "runtime/config.h"
#include "runtime/core_distance.h"
#include "runtime/dry_poll.h"
#include "runtime/eal.h"
#include "base/isa.h"
#include "base/log.h"
#include "runtime/planed.h"
#include "runtime/report.h"
#include "runtime/ring_limits.h"
#include "runtime/rpc.h"
#include "runtime/take_over.h"
#include "base/listen_socket.h"

enum { EXIT_USAGE = 2 };

struct options {
	const char *config, *rpc, *take_over, *check, *facts, *core_distance, *dry_poll, *ring_limits, *isa;
	bool version, help;
};

static const char usage_text[] =
        "usage: planed --config FILE [--rpc PATH]     run until SIGINT, SIGTERM or the RPC shutdown; PATH "
        "is\n"
        "                                             made as a socket, or is a character device\n"
        "               [--take-over PATH]            have the planed whose control socket that is write its snapshots,\n"
        "                                             open what it has, then have it end\n"
        "       planed --check FILE                   check a document, and that this machine has what it names\n"
        "                                             and room for it: all but its ports is made\n"
        "       planed --facts FILE                   what {\"generator\": PROFILE} would send, or which routes\n"
        "                                             {\"l3fwd\": SETTINGS} has, as one JSON line\n"
        "       planed --core-distance A,B            cache-line round trip between two CPUs, and\n"
        "                                             additions per cycle of both, as one JSON line\n"
        "       planed --dry-poll CPU,MS              gaps in polling a CPU that has nothing to do, as one JSON "
        "line\n"
        "       planed --ring-limits NIC,NIC          descriptors that rings of PCI devices take, a JSON line "
        "each\n"
        "       planed --version\n"
        "with   --isa scalar|avx2|avx512              use no more of this CPU, to compare or to test\n";

static int parse(int argc, char **argv, struct options *options)
{
	static const struct option table[] = {
	        {"config", required_argument, NULL, 'c'},
	        {"rpc", required_argument, NULL, 'r'},
	        {"take-over", required_argument, NULL, 't'},
	        {"check", required_argument, NULL, 'k'},
	        {"core-distance", required_argument, NULL, 'd'},
	        {"facts", required_argument, NULL, 'f'},
	        {"dry-poll", required_argument, NULL, 'p'},
	        {"ring-limits", required_argument, NULL, 'l'},
	        {"isa", required_argument, NULL, 'i'},
	        {"version", no_argument, NULL, 'v'},
	        {"help", no_argument, NULL, 'h'},
	        {0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", table, NULL)) != -1)
		switch (option) {
		case 'c':
			options->config = optarg;
			break;
		case 'r':
			options->rpc = optarg;
			break;
		case 't':
			options->take_over = optarg;
			break;
		case 'k':
			options->check = optarg;
			break;
		case 'f':
			options->facts = optarg;
			break;
		case 'd':
			options->core_distance = optarg;
			break;
		case 'p':
			options->dry_poll = optarg;
			break;
		case 'l':
			options->ring_limits = optarg;
			break;
		case 'i':
			options->isa = optarg;
			break;
		case 'v':
			options->version = true;
			break;
		case 'h':
			options->help = true;
			break;
		default:
			return -EINVAL;
		}
	if (optind < argc) {
		LOG_ERROR("\"%s\" is not an option", argv[optind]);
		return -EINVAL;
	}
	return options->config || options->check || options->facts || options->core_distance ||
	                       options->dry_poll || options->ring_limits || options->version || options->help
	               ? 0
	               : -EINVAL;
}

static struct config *load(const char *path, json_t **document)
{
	char error[CONFIG_ERROR_MAX];
	struct config *config = config_load(path, document, error);

	if (config != NULL && config_check_host(config, error) == 0)
		return config;
	LOG_ERROR("%s", error);
	config_free(config);
	json_decref(*document);
	*document = NULL;
	return NULL;
}

static int check(const char *path)
{
	json_t *document = NULL;
	struct config *config = load(path, &document);
	int code = EXIT_USAGE;

	if (config == NULL)
		return EXIT_USAGE;
	planed_stand_in(config);
	if (eal_start(config) == 0) {
		code = planed_fits(config) ? EXIT_USAGE : EXIT_SUCCESS;
		eal_stop();
	}
	if (code == EXIT_SUCCESS)
		printf("%s is valid: ports %u, tasks %u, workers %u\n", path, config->port_count,
		       config->task_count, config->worker_count);
	json_decref(document);
	config_free(config);
	return code;
}

static int print_facts(const char *path)
{
	char error[CONFIG_ERROR_MAX];
	json_error_t where;
	json_t *asked = json_load_file(path, JSON_REJECT_DUPLICATES, &where), *facts;

	if (asked == NULL) {
		LOG_ERROR("--facts %s: line %d: %s", path, where.line, where.text);
		return EXIT_USAGE;
	}
	facts = report_facts(asked, error);
	if (facts == NULL)
		LOG_ERROR("%s", error);
	else if (json_dumpf(facts, stdout, JSON_COMPACT) == 0)
		puts("");
	json_decref(asked);
	json_decref(facts);
	return facts ? EXIT_SUCCESS : EXIT_USAGE;
}

static int print_core_distance(const char *cpus)
{
	struct core_distance distance;
	unsigned a, b;
	char tail;
	int rc;

	if (sscanf(cpus, "%u,%u%c", &a, &b, &tail) != 2) {
		LOG_ERROR("--core-distance %s: expected two CPU numbers, like 0,1", cpus);
		return EXIT_USAGE;
	}
	rc = core_distance_measure(a, b, &distance);
	if (rc) {
		LOG_ERROR("--core-distance %s: %s", cpus,
		          rc == -EINVAL ? "two different CPUs that this process may use are needed"
		                        : strerror(-rc));
		return rc == -EINVAL ? EXIT_USAGE : EXIT_FAILURE;
	}
	printf("{\"a\": %u, \"b\": %u, \"median_ns\": %.1f, \"min_ns\": %.1f, \"additions_per_cycle\": [%.2f, %.2f]}\n",
	       a, b, distance.median_ns, distance.min_ns, distance.additions_per_cycle[0],
	       distance.additions_per_cycle[1]);
	return EXIT_SUCCESS;
}

static int print_dry_poll(const char *cpu_and_ms)
{
	struct dry_poll found;
	const char *comma = "";
	unsigned cpu, ms;
	char tail;
	int rc;

	if (sscanf(cpu_and_ms, "%u,%u%c", &cpu, &ms, &tail) != 2 || ms == 0) {
		LOG_ERROR("--dry-poll %s: expected a CPU number and milliseconds, like 1,1000", cpu_and_ms);
		return EXIT_USAGE;
	}
	rc = dry_poll_measure(cpu, ms, &found);
	if (rc) {
		LOG_ERROR("--dry-poll %s: %s", cpu_and_ms,
		          rc == -EINVAL ? "this process may not use this CPU" : strerror(-rc));
		return rc == -EINVAL ? EXIT_USAGE : EXIT_FAILURE;
	}
	printf("{\"cpu\": %u, \"duration_ns\": %" PRIu64 ", \"polls\": %" PRIu64
	       ", \"longest_gap_ns\": %" PRIu64 ", \"core_mhz\": %.0f, \"tsc_hz\": %" PRIu64 ", \"gaps\": [",
	       cpu, found.duration_ns, found.polls, found.longest_ns, found.core_mhz, found.tsc_hz);
	for (unsigned i = 0; i < DRY_POLL_BUCKETS; i++)
		if (found.gaps[i]) {
			printf("%s[%lu, %" PRIu64 "]", comma, 1UL << (i + DRY_POLL_LEAST_LOG2),
			       found.gaps[i]);
			comma = ", ";
		}
	puts("]}");
	return EXIT_SUCCESS;
}

static int print_ring_limits(const char *devices)
{
	int rc = ring_limits_print(devices);

	return rc == -EINVAL ? EXIT_USAGE : rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

// What ends us is read from a descriptor by rpc_serve(): no thread may take it. Returns the descriptor, or -1 after logging one
// line.
static int signals_open(void)
{
	sigset_t signals;
	int fd;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	fd = signalfd(-1, &signals, SFD_CLOEXEC);
	if (fd < 0)
		LOG_ERROR("signals cannot be read: %s; raise ulimit -n", strerror(errno));
	return fd;
}

// old: one to take over from that still runs, or NULL.
static int serve(struct planed *planed, struct config *config, json_t *document, const char *rpc_path,
                 const struct take_over *old, int signal_fd)
{
	char error[CONFIG_ERROR_MAX];
	struct rpc *rpc = NULL;

	planed->rx_pool = eal_pool_create(&config->memory);
	if (old) {
		listen_sockets_beside();
		planed->takes_over = true;
		if (take_over_keep(old)) {
			config_free(config);
			return EXIT_FAILURE;
		}
	}
	if (planed->rx_pool == NULL || planed_apply(planed, config, document, NULL, NULL, error)) {
		LOG_ERROR("%s", planed->rx_pool ? error : "no receive pool");
		config_free(config);
		return EXIT_FAILURE;
	}
	if (rpc_path && rpc_open(rpc_path, &rpc))
		return EXIT_FAILURE;
	if (old) {
		listen_sockets_in_place();
		if (take_over_end(old)) // who connects comes to us already: without us there would be nobody
			LOG_WARN("the planed before this one has not ended; this one goes on");
	}
	LOG_INFO("%s is ready: %u ports, %u tasks, %u workers", planed->config->name, planed->port_count,
	         planed->task_count, planed->worker_count);
	rpc_serve(rpc, planed, signal_fd);
	planed_keep(planed, true);
	planed_wait_turn(planed, error); // what has come by now is forwarded, or it takes too long
	rpc_close(rpc);
	return EXIT_SUCCESS;
}

static int run(const struct options *options)
{
	struct planed planed = {0};
	struct take_over old = {.fd = -1, .pidfd = -1};
	json_t *document = NULL;
	struct config *config = load(options->config, &document);
	int code = EXIT_FAILURE, signal_fd, rc = 0;
	bool beside = options->take_over && config && take_over_overlaps(config);

	if (config == NULL)
		return EXIT_USAGE;
	signal_fd = signals_open();
	if (options->take_over)
		rc = take_over_begin(&old, options->take_over);
	if (rc == 0 && options->take_over && !beside)
		rc = take_over_end(&old);
	if (rc == 0 && signal_fd >= 0 && eal_start(config) == 0) {
		code = serve(&planed, config, document, options->rpc, beside ? &old : NULL, signal_fd);
		if (planed_close(&planed))
			_exit(EXIT_FAILURE); // a thread of ours still uses everything
		eal_stop();
	} else {
		config_free(config);
	}
	take_over_close(&old);
	json_decref(document);
	return code;
}

static int force_isa(const char *name)
{
	int rc = name ? isa_force(name) : 0;

	if (rc == -ENOTSUP)
		LOG_ERROR("--isa %s: this CPU has not got it; leave it out", name);
	else if (rc)
		LOG_ERROR("--isa %s: there are scalar, avx2 and avx512", name);
	isa_current(); // chosen here, before there are threads
	return rc;
}

int main(int argc, char **argv)
{
	struct options options = {0};

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (parse(argc, argv, &options)) {
		fputs(usage_text, stderr);
		return EXIT_USAGE;
	}
	if (force_isa(options.isa))
		return EXIT_USAGE;
	if (options.help) {
		fputs(usage_text, stdout);
		return EXIT_SUCCESS;
	}
	if (options.version) {
		printf("planed " PLANED_VERSION " (%s)\n", rte_version());
		return EXIT_SUCCESS;
	}
	if (options.check)
		return check(options.check);
	if (options.facts)
		return print_facts(options.facts);
	if (options.core_distance)
		return print_core_distance(options.core_distance);
	if (options.dry_poll)
		return print_dry_poll(options.dry_poll);
	if (options.ring_limits)
		return print_ring_limits(options.ring_limits);
	return run(&options);
}
