/*
 * A server that counts its own work, for guard.py: key-value pairs read and written, allocations,
 * bytes copied. Under callgrind it also has the instructions between two marks dumped.
 *
 * GET /_mark/NAME answers what has been counted since the last mark, and begins anew. What the
 * libraries do is not counted: the linker puts the counting functions in front of those that
 * frond's own objects call (`--wrap`), so the figures depend on frond and its compiler alone.
 *
 * server DIRECTORY prints its port, those of Redis's, MongoDB's and Cassandra's doors and of that
 * for rows, and what compiled it, and serves until it is asked to stop. The workers that run
 * functions of design documents are the program that FROND_JS_WORKER names.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include "access/limits.h"
#include "access/people.h"
#include "door/couch/couch.h"
#include "door/cql/cql_door.h"
#include "door/mongo/mongo.h"
#include "door/mongo/txn/settings.h"
#include "door/redis/redis.h"
#include "door/rows/rows_door.h"
#include "http/server.h"
#include "index/view/keys.h"
#include "index/view/view.h"
#include "js/js.h"
#include "js/settings.h"
#include "kv/kv.h"
#include "loop/wait.h"
#include "model/plain/plain.h"
#include "model/revisioned/revisioned.h"
#include "model/revisioned/shape.h"
#include "model/timed/items/items.h"
#include "serve/ops.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

enum {
	PATH_BYTES = 512,
	ANSWER_BYTES = 1024,
};

static struct {
	_Atomic uint64_t reads;
	_Atomic uint64_t keys_read;
	_Atomic uint64_t sets;
	_Atomic uint64_t clears;
	_Atomic uint64_t bytes_written;
	_Atomic uint64_t allocations;
	_Atomic uint64_t bytes_copied;
} counted;

static struct server *server;
static struct couch *couch;
static struct js *js;
static struct view_engine *views;

/* ---- What the linker puts in front ---- */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_memcpy(void *to, const void *from, size_t n);
void *__real_memmove(void *to, const void *from, size_t n);
void __real_kv_tx_free(struct kv_tx *tx);
void __real_kv_tx_reset(struct kv_tx *tx);

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_memcpy(void *to, const void *from, size_t n);
void *__wrap_memmove(void *to, const void *from, size_t n);
void __wrap_kv_tx_free(struct kv_tx *tx);
void __wrap_kv_tx_reset(struct kv_tx *tx);
unsigned __real_view_place_level(const uint8_t seed[16], struct str place);
unsigned __wrap_view_place_level(const uint8_t seed[16], struct str place);
bool __wrap_wait_begin(struct wait_work *work, void (*fn)(void *arg), void *arg);
bool __wrap_wait_end(struct wait_work *work);

static void
count(_Atomic uint64_t *what, uint64_t n)
{
	atomic_fetch_add_explicit(what, n, memory_order_relaxed);
}

void *
__wrap_malloc(size_t n)
{
	count(&counted.allocations, 1);
	return __real_malloc(n);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	count(&counted.allocations, 1);
	return __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t n)
{
	count(&counted.allocations, 1);
	return __real_realloc(p, n);
}

void *
__wrap_memcpy(void *to, const void *from, size_t n)
{
	count(&counted.bytes_copied, n);
	return __real_memcpy(to, from, n);
}

void *
__wrap_memmove(void *to, const void *from, size_t n)
{
	count(&counted.bytes_copied, n);
	return __real_memmove(to, from, n);
}

static void
count_tx(const struct kv_tx *tx)
{
	struct kv_tx_stats s = kv_tx_stats(tx);

	count(&counted.reads, s.reads);
	count(&counted.keys_read, s.keys_read);
	count(&counted.sets, s.sets);
	count(&counted.clears, s.clears);
	count(&counted.bytes_written, s.bytes_written);
}

void
__wrap_kv_tx_free(struct kv_tx *tx)
{
	if (tx)
		count_tx(tx);
	__real_kv_tx_free(tx);
}

void
__wrap_kv_tx_reset(struct kv_tx *tx)
{
	count_tx(tx);
	__real_kv_tx_reset(tx);
}

/*
 * What is read ahead is read at once, by the fiber that asks for it. Otherwise time would decide
 * whether the pool comes to it first, which does a part of the work by other means.
 */
bool
__wrap_wait_begin(struct wait_work *work, void (*fn)(void *arg), void *arg)
{
	(void)work;
	fn(arg);
	return true;
}

bool
__wrap_wait_end(struct wait_work *work)
{
	(void)work;
	return true;
}

/* Which sums a view has must not depend on the random seed that each group of views draws. */
unsigned
__wrap_view_place_level(const uint8_t seed[16], struct str place)
{
	static const uint8_t fixed[16] = "guard";

	(void)seed;
	return __real_view_place_level(fixed, place);
}

/* ---- Marks ---- */

static unsigned long long
take(_Atomic uint64_t *what)
{
	return atomic_exchange(what, 0);
}

static void
answer_mark(struct http_exchange *x, struct str name)
{
	char text[ANSWER_BYTES];
	char mark[64];

	(void)snprintf(mark, sizeof(mark), "%.*s", STR_ARG(name));
	CALLGRIND_DUMP_STATS_AT(mark);
	(void)snprintf(text, sizeof(text),
		       "{\"reads\":%llu,\"keys_read\":%llu,\"sets\":%llu,\"clears\":%llu,"
		       "\"bytes_written\":%llu,\"allocations\":%llu,\"bytes_copied\":%llu}\n",
		       take(&counted.reads), take(&counted.keys_read), take(&counted.sets),
		       take(&counted.clears), take(&counted.bytes_written),
		       take(&counted.allocations), take(&counted.bytes_copied));
	if (http_send(x, str_from_cstr(text)) != STATUS_OK)
		http_abort(x);
}

static void
handle(struct http_exchange *x, void *arg)
{
	struct str mark = STR("/_mark/");
	struct str path = http_path(x);

	if (str_starts_with(path, mark))
		answer_mark(x, str_skip(path, mark.len));
	else
		couch_handle(x, arg);
}

static void
stop(int number)
{
	(void)number;
	server_stop(server);
}

static enum status
functions_new(struct couch_config *door, const struct settings *settings, struct err *err)
{
	struct js_config config;

	js_config_set(&config, settings_of(settings, &js_setting_group));
	config.worker = getenv("FROND_JS_WORKER");
	config.slow_ms = 0;
	TRY(js_new(&config, &js, err));
	TRY(view_engine_new(&(struct view_engine_config){ .store = door->store }, &views, err));
	door->js = js;
	door->views = views;
	return STATUS_OK;
}

static enum status
mongo_listen(const struct couch_config *door, const struct settings *settings, struct mongo **ret,
	     uint16_t *ret_port, struct err *err)
{
	const struct mongo_config config = { .store = door->store,
					     .live = door->live,
					     .settings = settings_of(settings,
								     &mongo_setting_group) };
	struct net_host *host = server_host(server);
	unsigned service;

	*ret = mongo_new(&config);
	if (!*ret)
		return err_set(err, STATUS_NOMEM, "out of memory");
	TRY(net_host_add_service(host, &net_stream_protocol, mongo_stream_options(*ret), &service,
				 err));
	TRY(net_host_listen(host, service, "127.0.0.1:0", ret_port, err));
	mongo_set_address(*ret, "127.0.0.1", *ret_port, false);
	return STATUS_OK;
}

static enum status
redis_listen(const struct couch_config *door, struct redis **ret, uint16_t *ret_port,
	     struct err *err)
{
	struct redis_config config = { .store = door->store, .live = door->live };
	struct net_host *host = server_host(server);
	unsigned service;

	*ret = redis_new(&config);
	if (!*ret)
		return err_set(err, STATUS_NOMEM, "out of memory");
	TRY(net_host_add_service(host, &net_stream_protocol, redis_stream_options(*ret), &service,
				 err));
	return net_host_listen(host, service, "127.0.0.1:0", ret_port, err);
}

/* A door of the program's table. */
static enum status
door_listen(const struct door_type *type, const struct couch_config *door,
	    const struct settings *settings, void **ret, uint16_t *ret_port, struct err *err)
{
	struct net_host *host = server_host(server);
	const struct door_ground ground = {
		.store = door->store, .settings = settings, .live = door->live, .host = host
	};
	struct door_place place = { .host = "127.0.0.1" };
	unsigned service;

	TRY(type->open(&ground, &place, ret, err));
	TRY(net_host_add_service(host, &net_stream_protocol, type->stream_options(*ret), &service,
				 err));
	TRY(net_host_listen(host, service, "127.0.0.1:0", ret_port, err));
	place.port = *ret_port;
	if (type->listens)
		type->listens(*ret, &place);
	return STATUS_OK;
}

int
main(int argc, char **argv)
{
	/*
	 * Under valgrind each search takes as long as one over thousands of deleted keys does
	 * without it, and would be remembered (kv/embedded/gaps.h): no server does that work for
	 * what is counted here.
	 */
	const struct kv_options options = {
		.create = true, .no_sync = true, .search_ns = UINT64_MAX, .shape = &rev_store_shape
	};
	struct server_config config = { .loops = 1, .pool_threads = 1, .handler = handle };
	const struct setting_group *const groups[] = {
		&couch_setting_group, &access_setting_group,  &js_setting_group,
		&mongo_setting_group, cql_door_type.settings, rows_door_type.settings,
	};
	struct settings *settings = settings_new(groups, sizeof(groups) / sizeof(groups[0]));
	struct couch_config door = { .store = NULL };
	struct limits *limits = NULL;
	struct redis *redis = NULL;
	struct mongo *mongo = NULL;
	void *cql = NULL, *rows = NULL;
	uint16_t redis_port = 0, mongo_port = 0, cql_port = 0, rows_port = 0;
	struct err err = { 0 };
	char url[PATH_BYTES];
	bool ok;

	if (argc != 2)
		return 2;
	(void)snprintf(url, sizeof(url), "embedded:%s", argv[1]);
	rev_register();
	timed_items_register();
	plain_register();
	cql_door_type.register_records();
	/* Compression would hide how many bytes an answer has. */
	ok = settings &&
	     settings_set(settings, STR("frond"), STR("answer_gzip_level"), STR("0"), &err) ==
		     STATUS_OK &&
	     kv_open(url, &options, &door.store, &err) == STATUS_OK &&
	     settings_live_new(door.store, settings, &people_live_ops, NULL, &door.live, &err) ==
		     STATUS_OK &&
	     functions_new(&door, settings, &err) == STATUS_OK;
	limits = ok ? limits_new(door.live) : NULL;
	ops_limit(limits);
	couch = limits ? couch_new(&door) : NULL;
	config.arg = couch;
	config.loop_new = couch_loop_new;
	config.loop_free = couch_loop_free;
	if (!couch || server_new(&config, &server, &err) != STATUS_OK ||
	    server_listen(server, "127.0.0.1:0", &err) != STATUS_OK ||
	    redis_listen(&door, &redis, &redis_port, &err) != STATUS_OK ||
	    mongo_listen(&door, settings, &mongo, &mongo_port, &err) != STATUS_OK ||
	    door_listen(&cql_door_type, &door, settings, &cql, &cql_port, &err) != STATUS_OK ||
	    door_listen(&rows_door_type, &door, settings, &rows, &rows_port, &err) != STATUS_OK) {
		(void)fprintf(stderr, "guard: %s\n", err.text);
		return 1;
	}
	(void)signal(SIGTERM, stop);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)printf("%u %u %u %u %u " COMPILER "\n", server_port(server), redis_port, mongo_port,
		     cql_port, rows_port);
	(void)fflush(stdout);
	ok = server_run(server, &err) == STATUS_OK;
	mongo_stop(mongo); /* its idle cursors hold memory of the server's */
	/* A request did not end in time: it still uses the store and all else. */
	if (!server_free(server)) {
		(void)fprintf(stderr, "guard: a request did not end in drain_timeout_ms\n");
		_exit(1);
	}
	redis_free(redis);
	mongo_free(mongo);
	cql_door_type.free(cql);
	rows_door_type.free(rows);
	couch_free(couch);
	ops_limit(NULL);
	limits_free(limits);
	view_engine_free(views);
	js_free(js);
	settings_live_free(door.live);
	settings_free(settings);
	kv_close(door.store);
	return ok ? 0 : 1;
}
