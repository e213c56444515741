/* frond serve: one process, one store, CouchDB's API over HTTP and the doors of the table. */
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "access/follow.h"
#include "access/limits.h"
#include "access/people.h"
#include "base/address.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/quote.h"
#include "catalog/chores.h"
#include "catalog/keys.h"
#include "catalog/move.h"
#include "catalog/settings.h"
#include "cli/cli.h"
#include "cli/following.h"
#include "cli/manager.h"
#include "cli/open_doors.h"
#include "cli/replaced.h"
#include "cli/serve_settings.h"
#include "cli/settings.h"
#include "cli/stopping.h"
#include "cli/welcome.h"
#include "door/couch/couch.h"
#include "http/server.h"
#include "http/settings.h"
#include "index/engine/build.h"
#include "index/engine/settings.h"
#include "index/view/view.h"
#include "js/js.h"
#include "js/settings.h"
#include "kv/damage.h"
#include "kv/log.h"
#include "kv/settings.h"
#include "loop/wait.h"
#include "loop/watchdog.h"
#include "model/plain/plain.h"
#include "model/revisioned/revisioned.h"
#include "model/timed/timed.h"
#include "replicator/replicator.h"
#include "replicator/settings.h"
#include "serve/ops.h"

static const char *const versions[] = { FROND_VERSION };

METRIC_GAUGES(build_info, "frond_build_info", METRIC_NUMBER,
	      "1; the label is the version of the program.", "version", versions);

enum {
	OPTION_STORE = 's',
	OPTION_HTTP = 'l',
	OPTION_CONFIG = 'c',
	OPTION_ADMIN = 'a',
	OPTION_NO_SYNC = 256,
	OPTION_UTILS,
	OPTION_HTTPS,

	/* Of each door of the table: */
	OPTION_DOORS = 1024,
	OPTION_OF_CLEAR = 0,
	OPTION_OF_TLS,
	OPTION_OF_FLAG,
	OPTIONS_OF_DOOR,

	OPTION_NAME_BYTES = 64,
	OPTION_HELP_BYTES = 256,

	SWEEP_EVERY_MS = 10 * 1000,
	SWEEP_PAUSE_MS = 100, /* while there is more to do: others write, too */
	CLEAR_EVERY_MS = 100,
	WATCH_EVERY_MS = 500,
	PRUNE_EVERY_MS = 1000,
	SWEEP_TXID_AGE_MS = 60 * 60 * 1000, /* no transaction is retried for that long */
	LARGE_BYTES = 1024 * 1024, /* of requests at once: what is worth trimming afterwards, */
	QUIET_MS = 250,            /* when for so long there was no more of it, */
	BUSY_MS = 10 * 1000,       /* or when it has never ceased for so long, */
	/*
	 * Or at once, when requests have taken half of their memory, and have given back this share
	 * of it since the last time. That is looked at every SHORT_MS. Thousands of long answers
	 * can take and free all of the memory many times in a second, and other requests often
	 * cannot use what was freed, because it lies in pieces.
	 */
	SHORT_MS = 20,
	RETURNED_SHARE = 32,
	TRIM_SHARE = 16, /* between two trims there is so many times what one takes to compute */
	LEAST_DESCRIPTORS = 256,
	MOVES_ARENA_BYTES = 16 * 1024 * 1024,
};

/* Where `make install` puts it, seen from the binary's directory. */
#define UTILS_BESIDE "../share/frond/fauxton"

struct serve_args {
	struct serve_given given;
	bool door_flags[CLI_DOORS]; /* the option of the door's own was given */
	bool no_sync;
};

struct serve {
	struct settings *settings; /* as the process is started with them */
	const struct kv_settings *kv;
	const struct couch_settings *couch_settings;
	const struct index_settings *indexes;
	struct listening listening;
	struct open_doors doors;
	bool door_flags[CLI_DOORS];
	char utils_dir[PATH_MAX];
	char *config_file; /* its whole path; NULL: none */
	bool no_sync;
	struct kv_store *store;
	atomic_bool store_lost; /* the disk has lost what was acknowledged: the process ends */
	/* A standby has taken the store's place, or this one cannot follow any more: the same. */
	atomic_bool ended;
	struct err ended_by;
	struct following_options following; /* url NULL: this server is no standby */
	char host_name[KV_LOG_NAME_BYTES + 1];
	struct settings_live *live;
	struct people_news *news;
	struct limits *limits;         /* by person and address, of all doors */
	struct replicator *replicator; /* NULL: switched off */
	struct js *js;                 /* runs functions of design documents */
	struct view_engine *views;     /* keeps what views have made of documents */
	struct couch *couch;
	struct server *server;
	struct chores *chores; /* background work */
	struct timed_sweeping sweeping;
	struct plain_sweeping plain_sweeping;
	struct catalog_sweeping db_sweeping; /* of deleted databases */
	size_t damages_told;   /* of the store's damaged files, by the chore that watches them */
	uint64_t trim_due_ns;  /* of the chore that trims memory; WAIT_FOREVER: nothing to trim */
	uint64_t trim_most_ns; /* how far large requests may put that off */
	uint64_t trim_rest_ns; /* before then the next would cost too much */
	size_t trim_returned;  /* bytes that requests have given back since the last one */
};

static const struct argp_option own_options[] = {
	{ "store", OPTION_STORE, "URL", 0,
	  "Where the data is (default " KV_STORE_URL "); a missing directory is made", 0 },
	{ "http", OPTION_HTTP, "HOST:PORT", 0,
	  "Listen there (default 127.0.0.1:5984); any address but the loopback needs an "
	  "administrator. Port 0: any free one; " LISTENING_NOWHERE
	  " instead of both: only by --https",
	  0 },
	{ "https", OPTION_HTTPS, "HOST:PORT", 0,
	  "Listen there with TLS, too, by the certificate that [ssl] in FILE names", 0 },
	{ "config", OPTION_CONFIG, "FILE", 0,
	  "Read settings from FILE; options given here win over it", 0 },
	{ "admin", OPTION_ADMIN, "NAME:PASSWORD", 0,
	  "An administrator (again for another one). Other users see this option in the list of "
	  "processes: prefer the file, or the environment's " SERVE_ADMIN_ENV,
	  0 },
	{ "utils", OPTION_UTILS, "DIR", 0,
	  "The built Fauxton to show at /_utils/ (default " UTILS_BESIDE
	  " from where the binary is, if it is there)",
	  0 },
	{ "no-sync", OPTION_NO_SYNC, NULL, 0,
	  "Answer before the disk has the data: a crash of the machine loses some. For tests only",
	  0 },
};

enum {
	OWN_OPTIONS = sizeof(own_options) / sizeof(own_options[0]),
	OPTIONS = OWN_OPTIONS + CLI_DOORS * OPTIONS_OF_DOOR + 1, /* with the end */
};

/* The options of one door, into `ret`; returns how many there are. The texts are static. */
static size_t
door_options(size_t i, struct argp_option ret[OPTIONS_OF_DOOR])
{
	static struct {
		char tls_name[OPTION_NAME_BYTES];
		char help[OPTION_HELP_BYTES];
	} texts[CLI_DOORS];
	const struct door_type *type = cli_doors[i];
	int key = OPTION_DOORS + (int)i * OPTIONS_OF_DOOR;

	(void)snprintf(texts[i].tls_name, OPTION_NAME_BYTES, "%ss", type->name);
	(void)snprintf(texts[i].help, OPTION_HELP_BYTES,
		       "Listen there for clients of %s, too, or at the path of a Unix socket; any "
		       "address but the loopback needs an administrator. Port 0: any free one",
		       type->clients);
	ret[0] = (struct argp_option){ type->name, key + OPTION_OF_CLEAR, "HOST:PORT",
				       0,          texts[i].help,         0 };
	ret[1] = (struct argp_option){
		texts[i].tls_name,
		key + OPTION_OF_TLS,
		"HOST:PORT",
		0,
		"The same with TLS, by the certificate that [ssl] in FILE names",
		0
	};
	if (!type->flag)
		return OPTIONS_OF_DOOR - 1;
	ret[2] = (struct argp_option){
		type->flag, key + OPTION_OF_FLAG, NULL, 0, type->flag_help, 0
	};
	return OPTIONS_OF_DOOR;
}

static void
make_options(struct argp_option ret[OPTIONS])
{
	size_t count = OWN_OPTIONS;

	memcpy(ret, own_options, sizeof(own_options));
	for (size_t i = 0; i < cli_doors_count; i++)
		count += door_options(i, &ret[count]);
	ret[count] = (struct argp_option){ 0 };
}

static const char argp_doc[] =
	"Serve a store by CouchDB's HTTP API, and by the protocols of other databases if asked "
	"to.\v"
	"SIGTERM and SIGINT stop it: no new connections, requests under way finish; a second "
	"signal gives up waiting for them. What has not ended within drain_timeout_ms is left as "
	"it "
	"is, and the exit code is 3. Events are logged to standard error.\n"
	"\n"
	"Environment: " SERVE_ADMIN_ENV "=NAME:PASSWORD, an administrator.\n"
	"\n" CLI_EXIT_TEXT;

static error_t
door_parse_option(int key, const char *text, struct serve_args *args)
{
	size_t i = key < OPTION_DOORS ? CLI_DOORS : (size_t)(key - OPTION_DOORS) / OPTIONS_OF_DOOR;

	if (i >= cli_doors_count)
		return ARGP_ERR_UNKNOWN;
	switch ((key - OPTION_DOORS) % OPTIONS_OF_DOOR) {
	case OPTION_OF_CLEAR:
		args->given.listening.doors[i].clear = text;
		return 0;
	case OPTION_OF_TLS:
		args->given.listening.doors[i].tls = text;
		return 0;
	default:
		args->door_flags[i] = true;
		return 0;
	}
}

static error_t
serve_parse_option(int key, char *text, struct argp_state *state)
{
	struct serve_args *args = state->input;

	switch (key) {
	case OPTION_STORE:
		args->given.store = text;
		return 0;
	case OPTION_HTTP:
		args->given.listening.http = text;
		return 0;
	case OPTION_HTTPS:
		args->given.listening.https = text;
		return 0;
	case OPTION_CONFIG:
		args->given.config = text;
		return 0;
	case OPTION_ADMIN:
		if (args->given.admins_count == SERVE_ADMINS_ON_LINE)
			argp_error(state, "more than %d administrators here; use the file",
				   SERVE_ADMINS_ON_LINE);
		args->given.admins[args->given.admins_count++] = text;
		return 0;
	case OPTION_UTILS:
		args->given.utils = text;
		return 0;
	case OPTION_NO_SYNC:
		args->no_sync = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "what is \"%s\"?", text);
		return 0;
	default:
		return door_parse_option(key, text, args);
	}
}

static enum status
read_settings(struct serve *s, const struct serve_args *args, struct err *err)
{
	struct settings *settings = cli_settings_new();

	if (!settings)
		return err_set(err, STATUS_NOMEM, "out of memory");
	s->settings = settings;
	s->kv = settings_of(settings, &kv_setting_group);
	s->indexes = settings_of(settings, &index_setting_group);
	s->couch_settings = settings_of(settings, &couch_setting_group);
	s->no_sync = args->no_sync;
	memcpy(s->door_flags, args->door_flags, sizeof(s->door_flags));
	TRY(serve_settings_read(&args->given, settings, &s->listening, err));
	if (args->given.config)
		s->config_file = realpath(args->given.config, NULL);
	return STATUS_OK;
}

/* ---- Running ---- */

/*
 * The state of the store's disk has changed. On a thread of the store's, or of a request that
 * commits.
 */
static void
tell_store_state(void *arg, const struct kv_store_event *event)
{
	struct serve *s = arg;

	switch (event->state) {
	case KV_STORE_OPEN:
	case KV_STORE_STANDBY:
		log_event(LOG_LEVEL_WARN, "store_reopened", "was=%s version=%llu",
			  kv_store_state_name(event->before), (unsigned long long)event->version);
		break;
	case KV_STORE_FULL:
	case KV_STORE_READ_ONLY:
	case KV_STORE_FAILED:
	case KV_STORE_LOST:
		log_event(LOG_LEVEL_ERROR,
			  event->state == KV_STORE_FULL        ? "store_full"
			  : event->state == KV_STORE_READ_ONLY ? "store_read_only"
			  : event->state == KV_STORE_FAILED    ? "store_failed"
							       : "store_lost",
			  "was=%s version=%llu reason=\"%s\"", kv_store_state_name(event->before),
			  (unsigned long long)event->version, event->reason);
		break;
	}
	if (event->state != KV_STORE_LOST)
		return;
	atomic_store(&s->store_lost, true);
	stopping_ask();
}

/* On the thread that has found it. */
static void
end_because(struct serve *s, const char *event, const struct err *why)
{
	log_event(LOG_LEVEL_ERROR, event, "reason=\"%s\"", why->text);
	s->ended_by = *why;
	atomic_store(&s->ended, true);
	stopping_ask();
}

static void
tell_replaced(void *arg, const struct err *why)
{
	end_because(arg, "store_replaced", why);
}

static void
tell_follow_ended(void *arg, const struct err *why)
{
	end_because(arg, "follow_ended", why);
}

/* ---- Background work that is the process's own ---- */

/* Ids of transactions whose owners died before they could clear them. */
static enum status
sweep_txids_run(void *store, struct chore_turn *turn, struct err *err)
{
	return kv_txids_sweep(store, SWEEP_TXID_AGE_MS, &turn->more, err);
}

/* The transaction ids of this process, when no writer has cleared them. */
static enum status
clear_txids_run(void *store, struct chore_turn *turn, struct err *err)
{
	(void)turn;
	return kv_txids_clear(store, err);
}

/* The oldest files of the log that is kept for standbys. */
static enum status
prune_log_run(void *store, struct chore_turn *turn, struct err *err)
{
	(void)turn;
	(void)err;
	kv_log_prune(store);
	return STATUS_OK;
}

/*
 * Large requests leave their memory to the next ones. When no more come, the system gets it. While
 * they keep coming it gets some now and then, since between blocks of other sizes and of longer
 * lives ever more becomes free that none of them can use.
 */
static enum status
trim_memory_run(void *arg, struct chore_turn *turn, struct err *err)
{
	struct serve *s = arg;
	struct net_host *host = server_host(s->server);
	size_t peak = net_host_take_memory_peak(host);
	size_t most = net_host_memory_bytes(host);
	bool is_short = peak >= most / 2;
	uint64_t begun_ns = clock_mono_ns();

	(void)err;
	s->trim_returned += net_host_take_memory_returned(host);
	turn->soon_ms = is_short ? SHORT_MS : 0;
	if (peak >= LARGE_BYTES) {
		uint64_t most_ns = begun_ns + BUSY_MS * CLOCK_NS_PER_MS;

		if (is_short && s->trim_returned >= most / RETURNED_SHARE)
			most_ns = begun_ns;
		if (s->trim_due_ns == WAIT_FOREVER || most_ns < s->trim_most_ns)
			s->trim_most_ns = most_ns;
		s->trim_due_ns = begun_ns + QUIET_MS * CLOCK_NS_PER_MS;
		if (s->trim_due_ns > s->trim_most_ns)
			s->trim_due_ns = s->trim_most_ns;
	}
	if (begun_ns >= s->trim_due_ns && begun_ns >= s->trim_rest_ns) {
		uint64_t cpu_ns = clock_cpu_ns();

		mem_trim();
		s->trim_due_ns = WAIT_FOREVER;
		s->trim_rest_ns = begun_ns + (clock_cpu_ns() - cpu_ns) * TRIM_SHARE;
		s->trim_returned = 0;
	}
	return STATUS_OK;
}

/* Tells of each damaged file that a read has met, once. */
static enum status
watch_damage_run(void *arg, struct chore_turn *turn, struct err *err)
{
	struct serve *s = arg;
	struct kv_damage damage;

	(void)turn;
	(void)err;
	while (s->damages_told < kv_damages(s->store, s->damages_told, &damage, 1)) {
		AUTO(buf_release) struct buf key = BUF_INIT(8 * KV_DAMAGE_KEY_BYTES);

		quote_word(&key, str_of(damage.key, damage.key_len), 4 * KV_DAMAGE_KEY_BYTES);
		log_event(
			LOG_LEVEL_ERROR, "store_damaged",
			"file=%s key=\"%.*s\" reason=\"%s\" hint=\"frond verify lists all damage\"",
			damage.file, STR_ARG(buf_str(&key)), damage.text);
		s->damages_told++;
	}
	return STATUS_OK;
}

/* Every kind of background work is added by whoever owns it; here are those of no room's. */
static enum status
make_chores(struct serve *s, struct err *err)
{
	const struct chore own[] = {
		{ .name = "sweep_transaction_ids",
		  .run = sweep_txids_run,
		  .arg = s->store,
		  .leased = true,
		  .pause_ms = SWEEP_EVERY_MS,
		  .more_ms = SWEEP_PAUSE_MS },
		{ .name = "clear_transaction_ids",
		  .run = clear_txids_run,
		  .arg = s->store,
		  .thread = CHORE_QUICK,
		  .writes = true,
		  .pause_ms = CLEAR_EVERY_MS,
		  .failed_ms = SWEEP_EVERY_MS },
		{ .name = "watch_damage",
		  .run = watch_damage_run,
		  .arg = s,
		  .thread = CHORE_QUICK,
		  .pause_ms = WATCH_EVERY_MS },
		{ .name = "prune_log",
		  .run = prune_log_run,
		  .arg = s->store,
		  .writes = true,
		  .pause_ms = PRUNE_EVERY_MS },
		{ .name = "trim_memory",
		  .run = trim_memory_run,
		  .arg = s,
		  .thread = CHORE_QUICK,
		  .pause_ms = CLEAR_EVERY_MS },
	};

	s->trim_due_ns = WAIT_FOREVER;
	s->chores = chores_new(s->store);
	if (!s->chores)
		return err_set(err, STATUS_NOMEM, "out of memory");
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		chores_add(s->chores, &own[i]);
	rev_chores_add(s->chores, s->store);
	s->db_sweeping = (struct catalog_sweeping){ .store = s->store };
	catalog_chores_add(s->chores, &s->db_sweeping);
	timed_chores_add(s->chores, &s->sweeping);
	s->plain_sweeping = (struct plain_sweeping){ .store = s->store, .place = CATALOG_KEY_INIT };
	plain_chores_add(s->chores, &s->plain_sweeping);
	index_chores_add(s->chores, &(struct index_builder_options){
					    .store = s->store,
					    .threads = (unsigned)s->indexes->build_threads,
					    .percent = (unsigned)s->indexes->build_percent,
				    });
	people_news_chores_add(s->news, s->chores);
	couch_chores_add(s->couch, s->chores);
	open_doors_chores_add(&s->doors, s->chores);
	return STATUS_OK;
}

struct moves {
	struct arena *arena;
	struct catalog_move *moves;
	size_t count;
};

static enum status
read_moves(struct kv_tx *tx, void *arg)
{
	struct moves *m = arg;

	arena_clear(m->arena);
	return catalog_moves_read(tx, m->arena, &m->moves, &m->count, NULL);
}

/* Writes to such a database are refused, and the operator may have forgotten why. */
static void
tell_moves(struct serve *s)
{
	struct moves m = { .arena = arena_new(MOVES_ARENA_BYTES) };

	if (m.arena && kv_run_read(s->store, read_moves, &m, NULL) == STATUS_OK)
		for (size_t i = 0; i < m.count; i++) {
			const struct catalog_move *move = &m.moves[i];
			bool away = move->state < CATALOG_MOVE_RESERVED;

			log_event(LOG_LEVEL_WARN, "move_unfinished",
				  "db=\"%.*s\" state=%s %s=\"%.*s\"", STR_ARG(move->name),
				  catalog_move_state_name(move->state), away ? "to" : "from",
				  STR_ARG(move->other));
		}
	arena_free(m.arena);
}

static enum status
start_replicator(struct serve *s, struct err *err)
{
	const struct door *http = &s->listening.http;
	char address[ADDRESS_TEXT_BYTES];
	char url[ADDRESS_TEXT_BYTES + 16];

	if (!s->replicator)
		return STATUS_OK;
	address_write(address_to_reach(door_host(http)), door_port(http), address);
	snprintf(url, sizeof(url), "%s://%s/", http->wanted ? "http" : "https", address);
	return replicator_start(s->replicator, url, couch_make_cookie, s->couch, err);
}

static enum status
run_server(struct serve *s, struct err *err)
{
	enum status status;

	TRY(chores_start(s->chores, err));
	status = stopping_begin(s->server, s->replicator, err);
	if (status != STATUS_OK) {
		chores_stop(s->chores);
		return status;
	}
	status = certificates_watch(&s->listening.certificates, err);
	if (status == STATUS_OK)
		status = start_replicator(s, err);
	if (status == STATUS_OK && s->kv->standby_url)
		status = replaced_watch(s->kv->standby_url, s->store, tell_replaced, s, err);
	if (status == STATUS_OK && s->following.url)
		status = following_begin(&s->following, s->store, tell_follow_ended, err);
	if (status == STATUS_OK) {
		welcome_print(s->settings,
			      &(struct welcome){
				      .http = &s->listening.http,
				      .store = s->kv->url,
				      .has_pages = s->couch_settings->utils_dir || s->utils_dir[0],
			      });
		tell_moves(s);
		/* What connects from now on waits until the loops run, a moment later. */
		manager_tell(MANAGER_READY);
		status = server_run(s->server, err);
	}
	stopping_end();
	replaced_unwatch();
	following_end();
	certificates_unwatch(&s->listening.certificates);
	/* What background work has functions do may take longer than is left. */
	js_stop(s->js);
	watchdog_set_stage("background work");
	chores_stop(s->chores);
	watchdog_set_stage("store");
	if (status == STATUS_OK)
		log_event(LOG_LEVEL_INFO, "drained", "signal=%d requests=%llu", stopping_signal(),
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

	if (s->couch_settings->utils_dir || !slash)
		return s->couch_settings->utils_dir;
	*slash = '\0';
	len = snprintf(s->utils_dir, sizeof(s->utils_dir), "%s/" UTILS_BESIDE, path);
	if (len < 0 || (size_t)len >= sizeof(s->utils_dir) || access(s->utils_dir, R_OK) != 0)
		s->utils_dir[0] = '\0';
	return s->utils_dir[0] ? s->utils_dir : NULL;
}

static enum status
make_replicator(struct serve *s, struct err *err)
{
	const struct replicator_settings *settings = settings_of(s->settings,
								 &replicator_setting_group);
	struct replicator_config config = {
		.store = s->store,
		.doc_bytes = s->couch_settings->doc_bytes,
		.node_name = s->couch_settings->node_name,
	};

	replicator_config_set(&config, settings);
	/* Replications write where they are in a database that a standby must not change. */
	return settings->enabled && !s->following.url ? replicator_new(&config, &s->replicator, err)
						      : STATUS_OK;
}

/* What a limit keeps out of a view. _info has the newest ones by name. */
static void
log_view_refusal(void *arg, struct str db_name, struct str design,
		 const struct view_refusal *refusal)
{
	static struct log_limit limit;
	uint64_t before;

	(void)arg;
	if (log_limit_pass(&limit, &before))
		log_event(LOG_LEVEL_WARN, "view_row_refused",
			  "db=\"%s\" ddoc=\"%s\" view=\"%s\" id=\"%s\" rows=%llu limit=%s "
			  "before=%llu",
			  QUOTE_SHOW(db_name), QUOTE_SHOW(design), QUOTE_SHOW(refusal->view),
			  QUOTE_SHOW(refusal->id), (unsigned long long)refusal->rows,
			  QUOTE_SHOW(refusal->limit), (unsigned long long)before);
}

static enum status
make_js(struct serve *s, struct err *err)
{
	const struct view_engine_config views = { .store = s->store, .refused = log_view_refusal };
	struct js_config config;

	js_config_set(&config, settings_of(s->settings, &js_setting_group));
	TRY(js_new(&config, &s->js, err));
	return view_engine_new(&views, &s->views, err);
}

/* Whoever gives a password at each start wonders why another one lets him in. */
static void
tell_changed_passwords(const struct serve *s)
{
	struct settings_held *held = settings_live_hold(s->live);
	const struct settings_entry *given;
	const struct settings_entry *now;
	size_t count = settings_people(s->settings, &given);
	size_t now_count = settings_people(held->settings, &now);

	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; given[i].fixed && j < now_count; j++)
			if (str_eq(given[i].name, now[j].name) &&
			    !str_eq(given[i].text, now[j].text))
				log_event(
					LOG_LEVEL_WARN, "admin_password_changed",
					"name=\"%.*s\" "
					"hint=\"it was changed later, and the changed one holds\"",
					STR_ARG(given[i].name));
	settings_held_unref(held);
}

/* The settings that hold: the store's over those of this process. */
static enum status
start_settings(struct serve *s, struct err *err)
{
	const char *exposed_at = listening_exposed(&s->listening);

	TRY(people_prepare(s->store, s->settings, err));
	TRY(settings_live_new(s->store, s->settings, &people_live_ops,
			      (void *)(uintptr_t)exposed_at, &s->live, err));
	TRY(settings_live_reload(s->live, err));
	tell_changed_passwords(s);
	s->news = people_news_new(s->store, s->live);
	return s->news ? STATUS_OK : err_set(err, STATUS_NOMEM, "out of memory");
}

/* Refuses settings of standbys where the store's engine has none of these. */
static enum status
check_standbys(const struct serve *s, struct err *err)
{
	struct kv_log_position ignored;

	return s->kv->log_bytes || s->kv->standby_url ? kv_log_position(s->store, &ignored, err)
						      : STATUS_OK;
}

static bool
is_asked_to_stop(void *arg)
{
	(void)arg;
	return stopping_signal() != 0;
}

/* Before the store is opened: brings it up to date, or makes it. */
static enum status
prepare_standby(struct serve *s, struct err *err)
{
	const char *name = s->kv->follow_name;

	if (!s->kv->follow_url)
		return STATUS_OK;
	if (s->kv->standby_url)
		return err_set(err, STATUS_INVALID,
			       "[frond] follow_url makes this server a standby, and standby_url is "
			       "of one that has a standby: set one of them");
	(void)gethostname(s->host_name, sizeof(s->host_name) - 1);
	s->following = (struct following_options){ .url = s->kv->follow_url,
						   .store_url = s->kv->url,
						   .name = name ? name : s->host_name,
						   .stopped = is_asked_to_stop,
						   .arg = s };
	if (!following_name_check(s->following.name))
		return err_set(err, STATUS_INVALID,
			       "[frond] follow_name takes 1 to %d letters, digits, '-', '_' and "
			       "'.'",
			       KV_LOG_NAME_BYTES);
	if (s->kv->log_bytes)
		log_event(LOG_LEVEL_WARN, "ignored",
			  "setting=keep_log_bytes reason=\"a standby keeps no log before it is "
			  "promoted\"");
	return following_prepare(&s->following, err);
}

/* A port for metrics alone, if the settings want one. */
static enum status
listen_for_metrics(struct serve *s, struct err *err)
{
	const struct couch_settings *settings = s->couch_settings;
	char address[ADDRESS_TEXT_BYTES];
	uint16_t port;

	if (!settings->metrics_apart)
		return STATUS_OK;
	address_write(settings->metrics_host, (uint16_t)settings->metrics_port, address);
	TRY(server_listen_apart(s->server, address, couch_handle_metrics, NULL, &port, err));
	address_write(settings->metrics_host, port, address);
	log_event(LOG_LEVEL_INFO, "metrics_port", "address=%s", address);
	return STATUS_OK;
}

static enum status
listen_for_http(struct serve *s, struct err *err)
{
	struct door *http = &s->listening.http;
	char address[ADDRESS_TEXT_BYTES];

	if (http->wanted) {
		address_write(http->host, http->port, address);
		TRY(server_listen(s->server, address, err));
		http->port = server_port(s->server);
	}
	if (!http->tls_wanted)
		return STATUS_OK;
	address_write(http->tls_host, http->tls_port, address);
	TRY(server_listen_tls(s->server, address, s->listening.certificates.tls, &http->tls_port,
			      err));
	address_write(http->tls_host, http->tls_port, address);
	log_event(LOG_LEVEL_INFO, "https", "address=%s", address);
	return STATUS_OK;
}

static enum status
make_server(struct serve *s, struct err *err)
{
	const struct couch_config couch = {
		.store = s->store,
		.live = s->live,
		.news = s->news,
		.replicator = s->replicator,
		.js = s->js,
		.views = s->views,
		.utils_dir = find_utils(s),
	};
	struct server_config server = {
		.server_name = "frond/" FROND_VERSION,
		.handler = couch_handle,
		.loop_new = couch_loop_new,
		.loop_free = couch_loop_free,
	};
	struct door_ground ground = {
		.store = s->store,
		.settings = s->settings,
		.live = s->live,
		.news = s->news,
		.js = s->js,
		.sweeping = &s->sweeping,
		.config_file = s->config_file,
	};

	s->limits = limits_new(s->live);
	ops_limit(s->limits);
	s->couch = couch_new(&couch);
	if (!s->couch || !s->limits)
		return err_set(err, STATUS_NOMEM, "out of memory");
	server.arg = s->couch;
	server_config_set(&server, settings_of(s->settings, &server_setting_group));
	TRY(server_new(&server, &s->server, err));
	TRY(listen_for_http(s, err));
	ground.host = server_host(s->server);
	s->sweeping.store = s->store;
	TRY(open_doors_listen(&s->doors, &s->listening, &ground, s->door_flags, err));
	TRY(listen_for_metrics(s, err));
	manager_drop_sockets();
	/* Nothing reads the settings that the process was started with before it serves. */
	return listening_tell(&s->listening, s->settings, err);
}

/*
 * The end of a stop in which fibers of connections have not returned (server_free()): their
 * transactions are open, so neither the doors nor the store can be closed. What was answered is on
 * disk, and the next start finds the store as after a crash. The watchdog, which has the moment of
 * the end, tells what they are doing and ends the process (stopping.h).
 */
_Noreturn static void
end_abandoned(const struct serve *s, const struct err *err)
{
	log_event(LOG_LEVEL_WARN, "stop_abandoned", "store=\"%s\" reason=\"%s\"", s->kv->url,
		  err->text);
	for (;;)
		(void)pause();
}

static enum status
serve(struct serve *s, struct err *err)
{
	struct kv_options options = {
		.create = true,
		.cache_bytes = s->kv->cache_bytes,
		.recent_bytes = s->kv->recent_bytes,
		.write_buffer_bytes = s->kv->write_buffer_bytes,
		.no_sync = s->no_sync,
		.reads_if_unwritable = true,
		.probe_ms = s->kv->probe_ms,
		.log_bytes = s->kv->log_bytes,
		.told = tell_store_state,
		.told_arg = s,
	};
	const struct server_settings *server = settings_of(s->settings, &server_setting_group);
	const struct lease_settings *leases;
	enum status status;

	stopping_prepare(server->drain_timeout_ms);
	kv_set_commit_wait(s->kv->commit_wait_ms);
	leases = settings_of(s->settings, &lease_setting_group);
	leases_set_time(leases->lease_ms);
	TRY(prepare_standby(s, err));
	if (s->following.url) {
		options.create = false;
		options.follows = true;
		options.log_bytes = 0;
	}
	TRY(cli_open_store(s->kv->url, &options, &s->store));
	status = check_standbys(s, err);
	if (status == STATUS_OK && s->kv->standby_url)
		status = replaced_ask(s->kv->standby_url, s->store, err);
	if (status == STATUS_OK)
		status = watchdog_start(err);
	if (s->no_sync)
		log_event(LOG_LEVEL_WARN, "no_sync", "text=\"answers do not wait for the disk\"");
	if (status == STATUS_OK)
		status = start_settings(s, err);
	if (status == STATUS_OK)
		status = make_replicator(s, err);
	if (status == STATUS_OK)
		status = make_js(s, err);
	if (status == STATUS_OK)
		status = make_server(s, err);
	if (status == STATUS_OK)
		status = make_chores(s, err);
	if (status == STATUS_OK)
		status = run_server(s, err);
	if (status == STATUS_OK)
		open_doors_stop(&s->doors);
	if (!server_free(s->server))
		end_abandoned(s, err);
	open_doors_fini(&s->doors);
	couch_free(s->couch);
	ops_limit(NULL);
	limits_free(s->limits);
	chores_free(s->chores);
	buf_release(&s->plain_sweeping.place);
	replicator_free(s->replicator);
	/* Updates of views call workers. */
	view_engine_free(s->views);
	js_free(s->js);
	people_news_free(s->news);
	settings_live_free(s->live);
	kv_close(s->store);
	watchdog_stop();
	if (status == STATUS_OK && atomic_load(&s->store_lost))
		return err_set(err, STATUS_CORRUPT,
			       "the disk of the store %s has lost what had been acknowledged: "
			       "restore a backup",
			       s->kv->url);
	if (status == STATUS_OK && atomic_load(&s->ended)) {
		*err = s->ended_by;
		return s->ended_by.status;
	}
	if (status == STATUS_OK)
		log_event(LOG_LEVEL_INFO, "stop", "store=\"%s\"", s->kv->url);
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
	struct argp_option options[OPTIONS];
	const struct argp argp = { .options = options,
				   .parser = serve_parse_option,
				   .doc = argp_doc };
	struct serve_args args = { 0 };
	struct serve s = { 0 };
	struct err err = { 0 };
	int code = CLI_USAGE;
	enum status status;

	make_options(options);
	cli_parse(&argp, argc, argv, &args);
	mem_tune();
	status = manager_read(&err);
	if (status == STATUS_OK)
		status = read_settings(&s, &args, &err);
	if (status == STATUS_OK)
		status = raise_descriptor_limit(&err);
	if (status == STATUS_OK) {
		settings_apply_log_level(s.settings);
		metric_gauge_add_at(&build_info, 0, 1);
		status = serve(&s, &err);
		code = status == STATUS_OK ? CLI_OK : CLI_FAILED;
	}
	if (status != STATUS_OK && err.text[0])
		cli_complain("%s", err.text);
	certificates_fini(&s.listening.certificates);
	free(s.config_file);
	settings_free(s.settings);
	return code;
}

const struct cli_command cli_serve = { "serve", "serve a store over HTTP", run_serve };
