/* frond serve: one process, one store, CouchDB's API over HTTP. */
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/wait.h"
#include "cli/cli.h"
#include "door/couch/couch.h"
#include "replicator/replicator.h"
#include "server/auth.h"
#include "server/config.h"
#include "model/revisioned/move.h"
#include "server/server.h"

enum {
	OPTION_STORE = 's',
	OPTION_HTTP = 'l',
	OPTION_CONFIG = 'c',
	OPTION_ADMIN = 'a',
	OPTION_NO_SYNC = 256,
	OPTION_UTILS,

	SWEEP_EVERY_MS = 10 * 1000,
	SWEEP_PAUSE_MS = 100, /* while there is more to do: others write, too */
	SWEEP_DROPS = 20,     /* transactions for deleted databases at a time */
	TEND_EVERY_MS = 100,  /* what is written counts against its range's size */
	CHORES = 2,
	TEND_PAUSE_MS = 20,                 /* while there is more to do */
	SWEEP_TXID_AGE_MS = 60 * 60 * 1000, /* no transaction is retried for that long */
	LARGE_BYTES = 1024 * 1024, /* of requests at once: what is worth trimming afterwards, */
	QUIET_MS = 250,            /* when for so long there was no more of it */
	ADMINS_ON_LINE = 16,
	LEAST_DESCRIPTORS = 256,
	MOVES_ARENA_BYTES = 16 * 1024 * 1024,
};

#define ADMIN_ENV "FROND_ADMIN"

/* Where `make install` puts it, seen from the binary's directory. */
#define UTILS_BESIDE "../share/frond/fauxton"

struct serve_args {
	const char *store;
	const char *http;
	const char *config;
	const char *utils;
	char *admins[ADMINS_ON_LINE];
	size_t admins_count;
	bool no_sync;
};

struct serve {
	struct config config;
	char utils_dir[PATH_MAX];
	bool no_sync;
	struct kv_store *store;
	struct auth *auth;
	struct replicator *replicator; /* NULL: switched off */
	struct couch *couch;
	struct server *server;
	struct event stop_sweeping;
	struct event stop_tending;
	pthread_t chores[CHORES];
	size_t chores_count;
};

static const struct argp_option argp_options[] = {
	{ "store", OPTION_STORE, "URL", 0,
	  "Where the data is (default " CONFIG_STORE "); a missing directory is made", 0 },
	{ "http", OPTION_HTTP, "HOST:PORT", 0,
	  "Listen there (default 127.0.0.1:5984); any address but the loopback needs an "
	  "administrator. Port 0: any free one",
	  0 },
	{ "config", OPTION_CONFIG, "FILE", 0,
	  "Read settings from FILE; options given here win over it", 0 },
	{ "admin", OPTION_ADMIN, "NAME:PASSWORD", 0,
	  "An administrator (again for another one). Other users see this option in the list of "
	  "processes: prefer the file, or the environment's " ADMIN_ENV,
	  0 },
	{ "utils", OPTION_UTILS, "DIR", 0,
	  "The built Fauxton to show at /_utils/ (default " UTILS_BESIDE
	  " from where the binary is, if it is there)",
	  0 },
	{ "no-sync", OPTION_NO_SYNC, NULL, 0,
	  "Answer before the disk has the data: a crash of the machine loses some. For tests only",
	  0 },
	{ 0 },
};

static const char argp_doc[] =
	"Serve a store by CouchDB's HTTP API.\v"
	"SIGTERM and SIGINT stop it: no new connections, requests under way finish; a second "
	"signal gives up waiting for them. Events are logged to standard error.\n"
	"\n"
	"Environment: " ADMIN_ENV "=NAME:PASSWORD, an administrator.\n"
	"\n" CLI_EXIT_TEXT;

static error_t
parse_option(int key, char *text, struct argp_state *state)
{
	struct serve_args *args = state->input;

	switch (key) {
	case OPTION_STORE:
		args->store = text;
		return 0;
	case OPTION_HTTP:
		args->http = text;
		return 0;
	case OPTION_CONFIG:
		args->config = text;
		return 0;
	case OPTION_ADMIN:
		if (args->admins_count == ADMINS_ON_LINE)
			argp_error(state, "more than %d administrators here; use the file",
				   ADMINS_ON_LINE);
		args->admins[args->admins_count++] = text;
		return 0;
	case OPTION_UTILS:
		args->utils = text;
		return 0;
	case OPTION_NO_SYNC:
		args->no_sync = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "what is \"%s\"?", text);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- Settings ---- */

/* Whether a list with commas names the protocol. */
static bool
has_protocol(const char *list, const char *name)
{
	size_t n = strlen(name);

	while (*list) {
		list += strspn(list, ", ");
		if (strcspn(list, ", ") == n && memcmp(list, name, n) == 0)
			return true;
		list += strcspn(list, ", ");
	}
	return false;
}

static enum status
add_admin(struct config *c, const char *text, const char *where, struct err *err)
{
	const char *colon = strchr(text, ':');

	if (!colon || colon == text || colon[1] == '\0')
		return err_set(err, STATUS_INVALID, "%s is not NAME:PASSWORD", where);
	return config_set_admin(c, str_of(text, (size_t)(colon - text)), str_from_cstr(colon + 1),
				true, err);
}

/* Defaults, the file, the environment, the command line: later ones win. */
static enum status
read_settings(const struct serve_args *args, struct config *c, struct err *err)
{
	const char *env = getenv(ADMIN_ENV);

	if (args->config)
		TRY(config_read_file(c, args->config, err));
	if (env && *env)
		TRY(add_admin(c, env, ADMIN_ENV, err));
	for (size_t i = 0; i < args->admins_count; i++) {
		TRY(add_admin(c, args->admins[i], "--admin", err));
		/* Out of the list of processes, as far as that is possible. */
		memset(args->admins[i], '*', strlen(args->admins[i]));
	}
	if (args->store)
		TRY(config_set_store(c, args->store, err));
	TRY(kv_check_url(c->store, err));
	if (args->http)
		TRY(config_set_listen(c, args->http, err));
	if (args->utils)
		c->utils_dir = args->utils;
	if (c->admins_count == 0 && !config_is_loopback(c))
		return err_set(err, STATUS_INVALID,
			       "refusing to listen on %s without an administrator: everybody who "
			       "reaches it could read and delete everything; give one by "
			       "--admin, " ADMIN_ENV
			       " or the section [admins], or listen on 127.0.0.1",
			       c->host);
	return STATUS_OK;
}

/* ---- Running ---- */

/* What the signals stop; set while the server runs. */
static _Atomic(struct server *) running;
static volatile sig_atomic_t stopped_by;
static sem_t stop_asked;

/* The first one is for stop_in_order(), others give up waiting. */
static void
handle_signal(int number)
{
	struct server *server = atomic_load(&running);

	if (stopped_by && server)
		server_stop(server);
	stopped_by = number;
	sem_post(&stop_asked);
}

/* Replications first: their checkpoints at databases of this server need it to serve. */
static void *
stop_in_order(void *arg)
{
	struct serve *s = arg;

	while (sem_wait(&stop_asked) != 0)
		;
	replicator_stop(s->replicator);
	server_stop(s->server);
	return NULL;
}

static void
catch_signals(void)
{
	struct sigaction action = { .sa_handler = handle_signal };

	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	action.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &action, NULL);
}

static enum status
sweep_once(struct serve *s, bool *ret_more, struct err *err)
{
	uint64_t uploads;

	TRY(kv_txids_sweep(s->store, SWEEP_TXID_AGE_MS, err));
	TRY(rev_uploads_sweep(s->store, REV_UPLOAD_AGE_MS, &uploads, err));
	if (uploads)
		log_event(LOG_LEVEL_INFO, "uploads_swept", "count=%llu",
			  (unsigned long long)uploads);
	return rev_dropped_sweep(s->store, SWEEP_DROPS, ret_more, err);
}

/*
 * Removes what transactions of unknown result and deleted databases have left behind, at the start
 * and now and then.
 */
static void *
sweep(void *arg)
{
	struct serve *s = arg;
	uint64_t pause_ms = 0;

	while (!event_wait(&s->stop_sweeping, clock_after_ms(pause_ms))) {
		struct err err = { 0 };
		bool more = false;
		enum status status = sweep_once(s, &more, &err);

		if (status != STATUS_OK)
			log_event(LOG_LEVEL_WARN, "sweep_failed", "status=%s reason=\"%s\"",
				  status_name(status), err.text);
		pause_ms = more ? SWEEP_PAUSE_MS : SWEEP_EVERY_MS;
	}
	return NULL;
}

/* Large requests leave their memory to the next ones. When no more come, the system gets it. */
static void
trim_when_quiet(struct serve *s, uint64_t *due_ns)
{
	if (server_take_memory_peak(s->server) >= LARGE_BYTES) {
		*due_ns = clock_after_ms(QUIET_MS);
	} else if (clock_mono_ns() >= *due_ns) {
		mem_trim();
		*due_ns = WAIT_FOREVER;
	}
}

/* Keeps ranges of counted documents and changes short, and memory to what is needed. */
static void *
tend(void *arg)
{
	struct serve *s = arg;
	uint64_t pause_ms = TEND_EVERY_MS;
	uint64_t trim_due_ns = WAIT_FOREVER;

	while (!event_wait(&s->stop_tending, clock_after_ms(pause_ms))) {
		struct err err = { 0 };
		bool more = false;
		enum status status = couch_tend(s->couch, &more, &err);

		trim_when_quiet(s, &trim_due_ns);
		pause_ms = more ? TEND_PAUSE_MS : TEND_EVERY_MS;
		if (status == STATUS_OK)
			continue;
		log_event(LOG_LEVEL_WARN, "tend_failed", "status=%s reason=\"%s\"",
			  status_name(status), err.text);
		pause_ms = SWEEP_EVERY_MS;
	}
	return NULL;
}

static void
print_welcome(const struct serve *s)
{
	struct config shown = s->config;
	char address[CONFIG_LISTEN_TEXT_BYTES];
	const char *user = shown.admins_count ? "-u NAME:PASSWORD " : "";

	shown.port = server_port(s->server);
	config_listen_text(&shown, address, sizeof(address));
	printf("frond " FROND_VERSION " serves %s at http://%s/\n"
	       "Try:\n"
	       "  curl %s-X PUT http://%s/mydb\n"
	       "  curl %s-X PUT http://%s/mydb/mydoc -d '{\"hello\":\"world\"}'\n"
	       "  curl %shttp://%s/mydb/mydoc\n",
	       s->config.store, address, user, address, user, address, user, address);
	fflush(stdout);
	log_event(LOG_LEVEL_INFO, "start",
		  "version=" FROND_VERSION " address=%s store=\"%s\" pid=%ld", address,
		  s->config.store, (long)getpid());
}

struct moves {
	struct arena *arena;
	struct rev_move *moves;
	size_t count;
};

static enum status
read_moves(struct kv_tx *tx, void *arg)
{
	struct moves *m = arg;

	arena_clear(m->arena);
	return rev_moves_read(tx, m->arena, &m->moves, &m->count);
}

/* Writes to such a database are refused, and the operator may have forgotten why. */
static void
tell_moves(struct serve *s)
{
	struct moves m = { .arena = arena_new(MOVES_ARENA_BYTES) };

	if (m.arena && kv_run_read(s->store, read_moves, &m, NULL) == STATUS_OK)
		for (size_t i = 0; i < m.count; i++) {
			const struct rev_move *move = &m.moves[i];
			bool away = move->state < REV_MOVE_RESERVED;

			log_event(LOG_LEVEL_WARN, "move_unfinished",
				  "db=\"%.*s\" state=%s %s=\"%.*s\"", STR_ARG(move->name),
				  rev_move_state_name(move->state), away ? "to" : "from",
				  STR_ARG(move->other));
		}
	arena_free(m.arena);
}

/* What is bound is not always an address to be reached by. */
static enum status
start_replicator(struct serve *s, struct err *err)
{
	struct config shown = s->config;
	char address[CONFIG_LISTEN_TEXT_BYTES];
	char url[CONFIG_LISTEN_TEXT_BYTES + 16];

	if (!s->replicator)
		return STATUS_OK;
	if (strcmp(shown.host, "0.0.0.0") == 0)
		shown.host = "127.0.0.1";
	else if (strcmp(shown.host, "::") == 0)
		shown.host = "::1";
	shown.port = server_port(s->server);
	config_listen_text(&shown, address, sizeof(address));
	snprintf(url, sizeof(url), "http://%s/", address);
	return replicator_start(s->replicator, url, couch_make_cookie, s->couch, err);
}

static void
stop_chores(struct serve *s)
{
	event_set(&s->stop_sweeping);
	event_set(&s->stop_tending);
	for (size_t i = 0; i < s->chores_count; i++)
		pthread_join(s->chores[i], NULL);
}

/* What is done beside serving, each in a thread of its own. */
static enum status
start_chores(struct serve *s, struct err *err)
{
	static void *(*const chores[CHORES])(void *) = { sweep, tend };

	event_init(&s->stop_sweeping);
	event_init(&s->stop_tending);
	while (s->chores_count < CHORES) {
		if (pthread_create(&s->chores[s->chores_count], NULL, chores[s->chores_count], s) !=
		    0) {
			stop_chores(s);
			return err_set(err, STATUS_LIMIT, "cannot start a thread");
		}
		s->chores_count++;
	}
	return STATUS_OK;
}

static enum status
run_server(struct serve *s, struct err *err)
{
	pthread_t stopper;
	enum status status;

	sem_init(&stop_asked, 0, 0);
	TRY(start_chores(s, err));
	if (pthread_create(&stopper, NULL, stop_in_order, s) != 0) {
		stop_chores(s);
		return err_set(err, STATUS_LIMIT, "cannot start a thread");
	}
	atomic_store(&running, s->server);
	catch_signals();
	status = start_replicator(s, err);
	if (status == STATUS_OK) {
		print_welcome(s);
		tell_moves(s);
		status = server_run(s->server, err);
	}
	atomic_store(&running, NULL);
	sem_post(&stop_asked);
	pthread_join(stopper, NULL);
	stop_chores(s);
	if (status == STATUS_OK)
		log_event(LOG_LEVEL_INFO, "drained", "signal=%d requests=%llu", (int)stopped_by,
			  (unsigned long long)server_stats(s->server).requests);
	return status;
}

/* The directory of the pages: the one that was named, or the one beside the binary. */
static const char *
find_utils(struct serve *s)
{
	char path[PATH_MAX] = "";
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash = n > 0 ? strrchr(path, '/') : NULL;
	int len;

	if (s->config.utils_dir || !slash)
		return s->config.utils_dir;
	*slash = '\0';
	len = snprintf(s->utils_dir, sizeof(s->utils_dir), "%s/" UTILS_BESIDE, path);
	if (len < 0 || (size_t)len >= sizeof(s->utils_dir) || access(s->utils_dir, R_OK) != 0)
		return NULL;
	return s->utils_dir;
}

static enum status
make_replicator(struct serve *s, struct err *err)
{
	const struct config_replicator *c = &s->config.replicator;
	struct replicator_config config = {
		.store = s->store,
		.doc_bytes = s->config.doc_bytes,
		.defaults = {
			.workers = c->worker_processes,
			.batch = c->worker_batch_size,
			.connections = c->http_connections,
			.timeout_ms = c->connection_timeout_ms,
			.retries = c->retries_per_request,
			.use_checkpoints = c->use_checkpoints,
			.use_bulk_get = c->use_bulk_get,
			.checkpoint_ms = c->checkpoint_interval_ms,
		},
		.max_jobs = c->max_jobs,
		.max_churn = c->max_churn,
		.max_history = c->max_history,
		.interval_ms = c->interval_ms,
		.backoff_ms = c->backoff_ms,
		.health_ms = c->health_s * UINT64_C(1000),
		.http_allowed = has_protocol(c->endpoint_protocols, "http"),
		.https_allowed = has_protocol(c->endpoint_protocols, "https"),
		.net = {
			.verify = c->verify_certificates,
			.trusted = c->trusted_file,
			.certificate = c->cert_file,
			.key = c->key_file,
			.key_password = c->key_password,
		},
	};

	return c->enabled ? replicator_new(&config, &s->replicator, err) : STATUS_OK;
}

static enum status
make_server(struct serve *s, struct err *err)
{
	struct couch_config couch = {
		.store = s->store,
		.auth = s->auth,
		.replicator = s->replicator,
		.utils_dir = find_utils(s),
		.started = &s->config,
	};
	struct server_config server = s->config.server;
	char address[CONFIG_LISTEN_TEXT_BYTES];

	couch_config_set(&couch, &s->config);
	s->couch = couch_new(&couch);
	if (!s->couch)
		return err_set(err, STATUS_NOMEM, "out of memory");
	TRY(couch_start(s->couch, err));
	server.server_name = "frond/" FROND_VERSION;
	server.handler = couch_handle;
	server.arg = s->couch;
	server.loop_new = couch_loop_new;
	server.loop_free = couch_loop_free;
	TRY(server_new(&server, &s->server, err));
	config_listen_text(&s->config, address, sizeof(address));
	return server_listen(s->server, address, err);
}

static enum status
serve(struct serve *s, struct err *err)
{
	struct kv_options options = {
		.create = true,
		.cache_bytes = s->config.cache_bytes,
		.no_sync = s->no_sync,
	};
	enum status status = cli_open_store(s->config.store, &options, &s->store);

	TRY(status);
	if (s->no_sync)
		log_event(LOG_LEVEL_WARN, "no_sync", "text=\"answers do not wait for the disk\"");
	status = make_replicator(s, err);
	if (status == STATUS_OK)
		status = make_server(s, err);
	if (status == STATUS_OK)
		status = run_server(s, err);
	server_free(s->server);
	couch_free(s->couch);
	replicator_free(s->replicator);
	kv_close(s->store);
	if (status == STATUS_OK)
		log_event(LOG_LEVEL_INFO, "stop", "store=\"%s\"", s->config.store);
	return status;
}

/* The soft limit is for programs that use select(). */
static enum status
raise_descriptor_limit(struct err *err)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return STATUS_OK;
	if (limit.rlim_max < LEAST_DESCRIPTORS)
		return err_set(err, STATUS_LIMIT,
			       "%llu open files are too few for a server: allow it %d (ulimit -n)",
			       (unsigned long long)limit.rlim_max, LEAST_DESCRIPTORS);
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	return STATUS_OK;
}

static int
run_serve(int argc, char **argv)
{
	static const struct argp argp = { .options = argp_options,
					  .parser = parse_option,
					  .doc = argp_doc };
	struct serve_args args = { 0 };
	struct serve s = { 0 };
	struct err err = { 0 };
	int code = CLI_USAGE;
	enum status status;

	cli_parse(&argp, argc, argv, &args);
	mem_tune();
	s.no_sync = args.no_sync;
	status = config_init(&s.config);
	if (status == STATUS_OK)
		status = read_settings(&args, &s.config, &err);
	if (status == STATUS_OK)
		status = config_hash_passwords(&s.config, &err);
	if (status == STATUS_OK)
		status = config_make_auth(&s.config, &s.auth, &err);
	if (status == STATUS_OK)
		status = raise_descriptor_limit(&err);
	if (status == STATUS_OK) {
		log_set_level(s.config.log_level);
		status = serve(&s, &err);
		code = status == STATUS_OK ? CLI_OK : CLI_FAILED;
	}
	if (status != STATUS_OK && err.text[0])
		cli_complain("%s", err.text);
	auth_free(s.auth);
	config_fini(&s.config);
	return code;
}

const struct cli_command cli_serve = { "serve", "serve a store over HTTP", run_serve };
