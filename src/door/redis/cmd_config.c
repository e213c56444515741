/* CONFIG: settings as Redis has them. docs/REDIS.md says which have an effect here. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "door/redis/acl_log.h"
#include "door/redis/commands.h"
#include "door/redis/config.h"
#include "door/redis/error.h"
#include "door/redis/redis_int.h"
#include "door/redis/stats.h"
#include "door/redis/wire/glob.h"
#include "door/redis/wire/number.h"

enum config_kind {
	CONFIG_TEXT,
	CONFIG_NUMBER,
	CONFIG_MEMORY,
	CONFIG_FLAG,
	CONFIG_EVENTS,
	CONFIG_OUTPUT,
	CONFIG_FIXED, /* it can be read; setting it to something else makes no sense here */
};

struct config_row {
	const char *name;
	const char *first; /* its value at the start */
	enum config_kind kind;
	int64_t least;
	int64_t most;
	const char *why; /* CONFIG_FIXED: why it cannot be set */
};

#define NO_EVICTION "data is on disk: nothing is evicted, and memory has limits of its own"
#define NO_REPLICAS "there is no replication here: a FoundationDB cluster keeps copies"
#define ON_DISK     "every acknowledged write is on disk"
#define PEOPLE      "people are those of every door: see frond user"
#define BIG         INT64_MAX

/* Sorted by name. */
static const struct config_row rows[] = {
	{ "aclfile", "", CONFIG_FIXED, 0, 0, PEOPLE },
	{ "acllog-max-len", "128", CONFIG_NUMBER, 0, ACL_LOG_ENTRIES, NULL },
	{ "activedefrag", "no", CONFIG_FIXED, 0, 0, "memory is not defragmented" },
	{ "appendfsync", "always", CONFIG_FIXED, 0, 0, ON_DISK },
	{ "appendonly", "yes", CONFIG_FIXED, 0, 0, ON_DISK },
	{ "bind", "127.0.0.1", CONFIG_FIXED, 0, 0, "--redis says where frond listens" },
	{ "busy-reply-threshold", "5000", CONFIG_NUMBER, 0, BIG, NULL },
	{ "client-output-buffer-limit",
	  "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60", CONFIG_OUTPUT, 0,
	  0, NULL },
	{ "client-query-buffer-limit", "1073741824", CONFIG_MEMORY, 0, BIG, NULL },
	{ "cluster-enabled", "no", CONFIG_FIXED, 0, 0, "frond has no cluster slots" },
	{ "daemonize", "no", CONFIG_FIXED, 0, 0, "it is immutable" },
	{ "databases", "16", CONFIG_FIXED, 0, 0, "there are 16" },
	{ "dir", ".", CONFIG_FIXED, 0, 0, "--store says where the data is" },
	{ "hash-max-listpack-entries", "128", CONFIG_NUMBER, 0, BIG, NULL },
	{ "hash-max-listpack-value", "64", CONFIG_NUMBER, 0, BIG, NULL },
	{ "hash-max-ziplist-entries", "128", CONFIG_NUMBER, 0, BIG, NULL },
	{ "hash-max-ziplist-value", "64", CONFIG_NUMBER, 0, BIG, NULL },
	{ "hz", "10", CONFIG_NUMBER, 1, 500, NULL },
	{ "latency-monitor-threshold", "0", CONFIG_NUMBER, 0, BIG, NULL },
	{ "latency-tracking", "yes", CONFIG_FIXED, 0, 0, "it costs next to nothing" },
	{ "lazyfree-lazy-user-del", "no", CONFIG_FLAG, 0, 0, NULL },
	{ "list-compress-depth", "0", CONFIG_NUMBER, 0, BIG, NULL },
	{ "list-max-listpack-size", "-2", CONFIG_NUMBER, -5, BIG, NULL },
	{ "list-max-ziplist-size", "-2", CONFIG_NUMBER, -5, BIG, NULL },
	{ "logfile", "", CONFIG_FIXED, 0, 0, "frond has one log" },
	{ "lua-time-limit", "5000", CONFIG_NUMBER, 0, UINT32_MAX, NULL },
	{ "maxmemory", "0", CONFIG_FIXED, 0, 0, NO_EVICTION },
	{ "maxmemory-clients", "0", CONFIG_FIXED, 0, 0, NO_EVICTION },
	{ "maxmemory-policy", "noeviction", CONFIG_FIXED, 0, 0, NO_EVICTION },
	{ "maxmemory-samples", "5", CONFIG_NUMBER, 1, 64, NULL },
	{ "min-replicas-to-write", "0", CONFIG_FIXED, 0, 0, NO_REPLICAS },
	{ "notify-keyspace-events", "", CONFIG_EVENTS, 0, 0, NULL },
	{ "port", "6379", CONFIG_FIXED, 0, 0, "--redis says where frond listens" },
	{ "proto-max-bulk-len", "536870912", CONFIG_MEMORY, 1024 * 1024, 536870912, NULL },
	{ "replicaof", "", CONFIG_FIXED, 0, 0, NO_REPLICAS },
	{ "requirepass", "", CONFIG_FIXED, 0, 0, PEOPLE },
	{ "save", "", CONFIG_FIXED, 0, 0, ON_DISK },
	{ "set-max-intset-entries", "512", CONFIG_NUMBER, 0, BIG, NULL },
	{ "slaveof", "", CONFIG_FIXED, 0, 0, NO_REPLICAS },
	{ "slowlog-log-slower-than", "10000", CONFIG_NUMBER, -1, BIG, NULL },
	{ "slowlog-max-len", "128", CONFIG_NUMBER, 0, REDIS_SLOWLOG_ENTRIES, NULL },
	{ "stream-node-max-bytes", "4096", CONFIG_MEMORY, 0, BIG, NULL },
	{ "stream-node-max-entries", "100", CONFIG_NUMBER, 0, INT32_MAX, NULL },
	{ "timeout", "0", CONFIG_NUMBER, 0, INT32_MAX, NULL },
	{ "zset-max-listpack-entries", "128", CONFIG_NUMBER, 0, BIG, NULL },
	{ "zset-max-listpack-value", "64", CONFIG_NUMBER, 0, BIG, NULL },
	{ "zset-max-ziplist-entries", "128", CONFIG_NUMBER, 0, BIG, NULL },
	{ "zset-max-ziplist-value", "64", CONFIG_NUMBER, 0, BIG, NULL },
};

enum {
	ROWS = sizeof(rows) / sizeof(rows[0]),
	PORT_BYTES = 8, /* of its number, as text */
};

/* ---- Values ---- */

static const char event_letters[] = "KEg$lshzxetmdn";

/* The set of events that letters name; -1 if one is unknown. */
static int
read_events(struct str s)
{
	unsigned events = 0;

	for (size_t i = 0; i < s.len; i++) {
		const char *at = s.ptr[i] ? strchr(event_letters, s.ptr[i]) : NULL;

		if (s.ptr[i] == 'A')
			events |= EVENT_ALL;
		else if (!at)
			return -1;
		else
			events |= 1U << (at - event_letters);
	}
	return (int)events;
}

static void
write_events(unsigned events, char ret[static 20])
{
	size_t len = 0;

	if ((events & EVENT_ALL) == EVENT_ALL)
		ret[len++] = 'A';
	for (size_t i = 2; i < sizeof(event_letters) - 1; i++) {
		unsigned bit = 1U << i;

		if (events & bit && !((events & EVENT_ALL) == EVENT_ALL && EVENT_ALL & bit))
			ret[len++] = event_letters[i];
	}
	for (size_t i = 0; i < 2; i++)
		if (events & 1U << i)
			ret[len++] = event_letters[i];
	ret[len] = '\0';
}

/* The limits that are there, with those that the value names changed. As config_check(). */
static bool
check_output(struct str now, struct str value, char *ret, size_t ret_bytes, char *why,
	     size_t why_bytes)
{
	struct output_limits limits = { 0 };
	const char *reason = output_limits_read(now, &limits);

	_Static_assert((int)REDIS_CONFIG_BYTES >= (int)OUTPUT_TEXT_BYTES,
		       "it has room for the limits");
	assert(!reason && ret_bytes >= OUTPUT_TEXT_BYTES);
	reason = output_limits_read(value, &limits);
	if (reason)
		snprintf(why, why_bytes, "%s", reason);
	else
		output_limits_write(&limits, ret);
	return !reason;
}

/* What the setting would have as its text; false, with the reason, if it cannot. */
static bool
config_check(const struct config_row *row, struct str now, struct str value, char *ret,
	     size_t ret_bytes, char *why, size_t why_bytes)
{
	int64_t n;
	int events;

	switch (row->kind) {
	case CONFIG_FIXED:
		if (str_eq_nocase(value, now))
			break;
		snprintf(why, why_bytes, "frond cannot set it: %s", row->why);
		return false;
	case CONFIG_FLAG:
		if (str_eq_nocase(value, STR("yes")) || str_eq_nocase(value, STR("no")))
			break;
		snprintf(why, why_bytes, "argument must be 'yes' or 'no'");
		return false;
	case CONFIG_EVENTS:
		events = read_events(value);
		if (events < 0) {
			snprintf(why, why_bytes,
				 "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
			return false;
		}
		write_events((unsigned)events, ret);
		return true;
	case CONFIG_OUTPUT:
		return check_output(now, value, ret, ret_bytes, why, why_bytes);
	case CONFIG_NUMBER:
	case CONFIG_MEMORY:
		if (row->kind == CONFIG_MEMORY ? !number_read_memory(value, &n)
					       : !number_read_i64(value, &n)) {
			snprintf(why, why_bytes,
				 row->kind == CONFIG_MEMORY
					 ? "argument must be a memory value"
					 : "argument couldn't be parsed into an integer");
			return false;
		}
		if (n < row->least || n > row->most) {
			snprintf(why, why_bytes, "argument must be between %lld and %lld inclusive",
				 (long long)row->least, (long long)row->most);
			return false;
		}
		snprintf(ret, ret_bytes, "%lld", (long long)n);
		return true;
	case CONFIG_TEXT:
		break;
	}
	if (value.len >= ret_bytes) {
		snprintf(why, why_bytes, "the value is too long (REDIS_CONFIG_BYTES)");
		return false;
	}
	memcpy(ret, value.ptr, value.len);
	ret[value.len] = '\0';
	return true;
}

/* Connections that wait already have to count anew. */
static void
config_apply_timeout(struct redis *r, uint64_t seconds)
{
	atomic_store(&r->idle_s, seconds);
	pthread_mutex_lock(&r->clients_lock);
	for (struct client *one = r->clients; one; one = one->next)
		client_signal(one, CLIENT_LOOK);
	pthread_mutex_unlock(&r->clients_lock);
}

static void
config_apply_output(struct redis *r, const char *text)
{
	struct output_limits limits = { 0 };

	(void)output_limits_read(str_from_cstr(text), &limits);
	for (size_t i = 0; i < OUTPUT_CLASSES; i++)
		output_limit_set(&r->output[i], &limits.of[i]);
}

/* What has an effect outside of CONFIG GET. The lock is held. */
static void
config_apply(struct redis *r, const struct config_row *row, const char *text)
{
	long long n = strtoll(text, NULL, 10);

	if (row->kind == CONFIG_EVENTS)
		atomic_store(&r->events, (unsigned)read_events(str_from_cstr(text)));
	else if (row->kind == CONFIG_OUTPUT)
		config_apply_output(r, text);
	else if (strcmp(row->name, "slowlog-log-slower-than") == 0)
		atomic_store(&r->slow_us, n < 0 ? UINT64_MAX : (uint64_t)n);
	else if (strcmp(row->name, "slowlog-max-len") == 0)
		atomic_store(&r->slow_max, (uint64_t)n);
	else if (strcmp(row->name, "acllog-max-len") == 0)
		atomic_store(&r->acl_log_max, (uint64_t)n);
	else if (strcmp(row->name, "proto-max-bulk-len") == 0)
		atomic_store(&r->bulk_bytes, (uint64_t)n);
	else if (strcmp(row->name, "stream-node-max-entries") == 0)
		atomic_store(&r->node_entries, n ? (uint64_t)n : REDIS_NODE_ENTRIES);
	else if (strcmp(row->name, "timeout") == 0)
		config_apply_timeout(r, (uint64_t)n);
	else if (strcmp(row->name, "lua-time-limit") == 0)
		atomic_store(&r->script_ms, (uint64_t)n);
}

/* A copy; NULL: out of memory. */
static char *
text_copy(const char *text)
{
	size_t bytes = strlen(text) + 1;
	char *copy = mem_alloc(bytes);

	if (copy)
		memcpy(copy, text, bytes);
	return copy;
}

bool
config_init(struct redis *r)
{
	r->values = mem_zalloc(ROWS * sizeof(*r->values));
	if (!r->values)
		return false;
	for (size_t i = 0; i < ROWS; i++) {
		r->values[i].text = text_copy(rows[i].first);
		if (!r->values[i].text)
			return false;
		config_apply(r, &rows[i], rows[i].first);
	}
	return true;
}

void
config_fini(struct redis *r)
{
	for (size_t i = 0; r->values && i < ROWS; i++)
		mem_free(r->values[i].text);
	mem_free(r->values);
}

static size_t
config_find(struct str name)
{
	size_t i = 0;

	while (i < ROWS && !str_eq_nocase(name, str_from_cstr(rows[i].name)))
		i++;
	return i;
}

/* ---- The commands ---- */

static enum status
config_get(struct call *c)
{
	struct reply *r = c->reply;
	size_t place = reply_later(r);
	size_t count = 0;

	pthread_mutex_lock(&c->redis->config_lock);
	for (size_t i = 0; i < ROWS; i++) {
		bool wanted = false;
		char port[PORT_BYTES];

		for (size_t k = 2; k < c->argc && !wanted; k++)
			wanted = glob_matches(c->argv[k], str_from_cstr(rows[i].name), true);
		if (!wanted)
			continue;
		snprintf(port, sizeof(port), "%u", c->redis->config.port);
		reply_bulk_cstr(r, rows[i].name);
		reply_bulk_cstr(r, strcmp(rows[i].name, "port") == 0 ? port
								     : c->redis->values[i].text);
		count++;
	}
	pthread_mutex_unlock(&c->redis->config_lock);
	reply_later_end(r, place, '%', count);
	return STATUS_OK;
}

/* The names are known, and each is there once. False: the error has been answered. */
static bool
config_check_names(struct call *c)
{
	for (size_t i = 2; i < c->argc; i += 2) {
		size_t at = config_find(c->argv[i]);

		if (at == ROWS) {
			reply_errorf(c->reply,
				     "ERR Unknown option or number of arguments for CONFIG SET - "
				     "'%.*s'",
				     (int)(c->argv[i].len < 128 ? c->argv[i].len : 128),
				     c->argv[i].ptr);
			return false;
		}
		for (size_t k = 2; k < i; k += 2) {
			if (config_find(c->argv[k]) != at)
				continue;
			reply_errorf(c->reply,
				     "ERR CONFIG SET failed (possibly related to argument '%.*s') "
				     "- duplicate parameter",
				     STR_ARG(c->argv[i]));
			return false;
		}
	}
	return true;
}

/* The value that CONFIG GET shows of a setting that cannot be set, or only in parts. */
static struct str
config_now(struct redis *r, const struct config_row *row, char text[static OUTPUT_TEXT_BYTES])
{
	if (row->kind == CONFIG_OUTPUT) {
		pthread_mutex_lock(&r->config_lock);
		snprintf(text, OUTPUT_TEXT_BYTES, "%s", r->values[row - rows].text);
		pthread_mutex_unlock(&r->config_lock);
		return str_from_cstr(text);
	}
	if (strcmp(row->name, "port") != 0)
		return str_from_cstr(row->first);
	return str_of(text, (size_t)snprintf(text, OUTPUT_TEXT_BYTES, "%u", r->config.port));
}

/* False: the error has been answered. */
static bool
config_check_all(struct call *c, char (*texts)[REDIS_CONFIG_BYTES])
{
	char why[256], now[OUTPUT_TEXT_BYTES];

	if (!config_check_names(c))
		return false;
	for (size_t i = 2; i < c->argc; i += 2) {
		const struct config_row *row = &rows[config_find(c->argv[i])];

		if (config_check(row, config_now(c->redis, row, now), c->argv[i + 1],
				 texts[i / 2 - 1], REDIS_CONFIG_BYTES, why, sizeof(why)))
			continue;
		reply_errorf(c->reply,
			     "ERR CONFIG SET failed (possibly related to argument '%s') - %s",
			     row->name, why);
		return false;
	}
	return true;
}

static enum status
config_set(struct call *c)
{
	size_t count = (c->argc - 2) / 2;
	char(*texts)[REDIS_CONFIG_BYTES];
	enum status status = STATUS_OK;

	if (c->argc % 2 || count > ROWS) {
		reply_error(c->reply,
			    STR("ERR wrong number of arguments for 'config|set' command"));
		return STATUS_OK;
	}
	texts = arena_alloc(c->arena, count * sizeof(*texts));
	if (!texts)
		return STATUS_LIMIT;
	if (!config_check_all(c, texts))
		return STATUS_OK;
	pthread_mutex_lock(&c->redis->config_lock);
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		size_t at = config_find(c->argv[2 + 2 * i]);
		char *text = text_copy(texts[i]);

		if (!text) {
			status = STATUS_NOMEM;
			break;
		}
		mem_free(c->redis->values[at].text);
		c->redis->values[at].text = text;
		config_apply(c->redis, &rows[at], text);
	}
	pthread_mutex_unlock(&c->redis->config_lock);
	if (status == STATUS_OK)
		reply_ok(c->reply);
	return status;
}

enum status
cmd_config(struct call *c)
{
	static const char *const help[] = {
		"GET <pattern>",
		"    Return parameters matching the glob-like <pattern> and their values.",
		"SET <directive> <value>",
		"    Set the configuration <directive> to <value>.",
		"RESETSTAT",
		"    Reset statistics reported by the INFO command.",
		"REWRITE",
		"    Rewrite the configuration file.",
	};
	struct redis *r = c->redis;

	if (call_arg_is(c, 1, "help") && c->argc == 2)
		return call_help(c, help, sizeof(help) / sizeof(help[0]));
	if (call_arg_is(c, 1, "get") && c->argc >= 3)
		return config_get(c);
	if (call_arg_is(c, 1, "set") && c->argc >= 4)
		return config_set(c);
	if (call_arg_is(c, 1, "resetstat") && c->argc == 2) {
		r->commands = r->connections = r->hits = r->misses = r->published = 0;
		r->expired = r->expired_fields = 0;
		stats_clear(r->stats);
		reply_ok(c->reply);
		return STATUS_OK;
	}
	if (call_arg_is(c, 1, "rewrite") && c->argc == 2) {
		reply_error(c->reply, STR("ERR The server is running without a config file"));
		return STATUS_OK;
	}
	if (call_arg_is(c, 1, "get") || call_arg_is(c, 1, "set") ||
	    call_arg_is(c, 1, "resetstat") || call_arg_is(c, 1, "rewrite")) {
		reply_errorf(c->reply, "ERR wrong number of arguments for 'config|%s' command",
			     call_arg_is(c, 1, "get")         ? "get"
			     : call_arg_is(c, 1, "set")       ? "set"
			     : call_arg_is(c, 1, "resetstat") ? "resetstat"
							      : "rewrite");
		return STATUS_OK;
	}
	return call_unknown_subcommand(c);
}
