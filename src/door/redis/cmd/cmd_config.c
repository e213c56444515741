/* CONFIG: settings as Redis has them. docs/REDIS.md says which have an effect here. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/address_path.h"
#include "base/mem.h"
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/config.h"
#include "door/redis/cmd/config_rows.h"
#include "door/redis/cmd/users.h"
#include "door/redis/txn/effects.h"
#include "door/redis/txn/latency.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/txn/stats.h"
#include "door/redis/txn/user_change.h"
#include "door/redis/txn/user.h"
#include "door/redis/wire/error.h"
#include "door/redis/wire/glob.h"
#include "door/redis/wire/number.h"

enum {
	NUMBER_BYTES = 24, /* of one as text */
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
	case CONFIG_CHANNELS:
		if (str_eq_nocase(value, STR("allchannels")) ||
		    str_eq_nocase(value, STR("resetchannels")))
			break;
		snprintf(why, why_bytes,
			 "argument(s) must be one of the following: allchannels, resetchannels");
		return false;
	case CONFIG_PASSWORD:
		ret[0] = '\0';
		return true;
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
	(void)clients_signal_each(&r->clients, CLIENT_LOOK, NULL, NULL);
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

	if (row->kind == CONFIG_EVENTS) {
		atomic_store(&r->events, (unsigned)read_events(str_from_cstr(text)));
		/* The sweep may not have looked for what expires soon. */
		if (r->chores && effects_wait_for_expiry(r))
			timed_sweep_by(r->chores, 0);
	} else if (row->kind == CONFIG_OUTPUT)
		config_apply_output(r, text);
	else if (row->kind == CONFIG_CHANNELS)
		atomic_store(&r->acl_pubsub, strcasecmp(text, "allchannels") == 0);
	else if (strcmp(row->name, "slowlog-log-slower-than") == 0)
		atomic_store(&r->slow_us, n < 0 ? UINT64_MAX : (uint64_t)n);
	else if (strcmp(row->name, "latency-monitor-threshold") == 0)
		latency_limit(r->latency, (uint64_t)n);
	else if (strcmp(row->name, "slowlog-max-len") == 0)
		atomic_store(&r->slow_max, (uint64_t)n);
	else if (strcmp(row->name, "acllog-max-len") == 0)
		atomic_store(&r->acl_log_max, (uint64_t)n);
	else if (strcmp(row->name, "proto-max-bulk-len") == 0)
		atomic_store(&r->bulk_bytes, (uint64_t)n);
	else if (strcmp(row->name, "hll-sparse-max-bytes") == 0)
		atomic_store(&r->sparse_bytes, (uint64_t)n);
	else if (strcmp(row->name, "stream-node-max-entries") == 0)
		atomic_store(&r->node_entries, n ? (uint64_t)n : REDIS_NODE_ENTRIES);
	else if (strcmp(row->name, "hash-max-listpack-entries") == 0)
		atomic_store(&r->small_hash, (uint64_t)n);
	else if (strcmp(row->name, "zset-max-listpack-entries") == 0)
		atomic_store(&r->small_zset, (uint64_t)n);
	else if (strcmp(row->name, "tracking-table-max-keys") == 0)
		tracking_limit(r, (uint64_t)n);
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
	r->values = mem_zalloc(config_row_count * sizeof(*r->values));
	if (!r->values)
		return false;
	for (size_t i = 0; i < config_row_count; i++) {
		r->values[i].text = text_copy(config_rows[i].first);
		if (!r->values[i].text)
			return false;
		config_apply(r, &config_rows[i], config_rows[i].first);
	}
	return true;
}

void
config_fini(struct redis *r)
{
	for (size_t i = 0; r->values && i < config_row_count; i++)
		mem_free(r->values[i].text);
	mem_free(r->values);
}

static size_t
config_find(struct str name)
{
	size_t i = 0;

	while (i < config_row_count && !str_eq_nocase(name, str_from_cstr(config_rows[i].name)))
		i++;
	return i;
}

/*
 * The value of a setting that follows from how the process was started: a text of its own, or one
 * that is written into `text`. NULL for all other settings.
 */
static const char *
config_of_process(const struct redis *r, const char *name, char text[static NUMBER_BYTES])
{
	bool is_port = strcmp(name, "port") == 0;

	if (strcmp(name, "bind") == 0)
		return address_is_path(r->config.host) ? "" : r->config.host;
	if (strcmp(name, "unixsocket") == 0)
		return address_is_path(r->config.host) ? r->config.host : "";
	if (!is_port && strcmp(name, "maxclients") != 0)
		return NULL;
	snprintf(text, NUMBER_BYTES, "%zu", is_port ? r->config.port : r->config.max_clients);
	return text;
}

/* ---- The commands ---- */

/* True if the arguments name the setting, as it is or by a pattern. */
static bool
config_is_wanted(const struct call *c, const char *name)
{
	for (size_t i = 2; i < c->argc; i++)
		if (glob_matches(c->argv[i], str_from_cstr(name), true))
			return true;
	return false;
}

/* A password that is there cannot be shown, since nobody knows it: the setting is left out. */
static enum status
config_shows_password(struct call *c, bool *ret)
{
	struct err err = { 0 };
	struct user user;

	*ret = true;
	if (!config_is_wanted(c, "requirepass"))
		return STATUS_OK;
	TRY(users_failed(c, user_read(c->redis, USER_DEFAULT, c->arena, &user, &err), &err));
	*ret = !user.at.count;
	return STATUS_OK;
}

static enum status
config_get(struct call *c)
{
	struct reply *r = c->reply;
	size_t place, count = 0;
	bool shows_password;

	TRY(config_shows_password(c, &shows_password));
	place = reply_later(r);
	pthread_mutex_lock(&c->redis->config_lock);
	for (size_t i = 0; i < config_row_count; i++) {
		const char *name = config_rows[i].name;
		char text[NUMBER_BYTES];
		const char *of_process;

		if (!config_is_wanted(c, name) ||
		    (config_rows[i].kind == CONFIG_PASSWORD && !shows_password))
			continue;
		reply_bulk_cstr(r, name);
		of_process = config_of_process(c->redis, name, text);
		reply_bulk_cstr(r, of_process ? of_process : c->redis->values[i].text);
		count++;
	}
	pthread_mutex_unlock(&c->redis->config_lock);
	reply_later_end(r, place, '%', count);
	return STATUS_OK;
}

/* Checks that the names are known, and that each is there once. */
static enum status
config_check_names(struct call *c)
{
	for (size_t i = 2; i < c->argc; i += 2) {
		size_t at = config_find(c->argv[i]);
		const char *also;

		if (at == config_row_count)
			return call_errorf(
				c,
				"ERR Unknown option or number of arguments for CONFIG SET - "
				"'%.*s'",
				STR_ARG(call_shown(c->argv[i])));
		also = config_rows[at].also;
		for (size_t k = 2; k < i; k += 2) {
			if (config_find(c->argv[k]) != at &&
			    !(also && str_eq_nocase(c->argv[k], str_from_cstr(also))))
				continue;
			return call_errorf(
				c,
				"ERR CONFIG SET failed (possibly related to argument '%.*s') "
				"- duplicate parameter",
				STR_ARG(c->argv[i]));
		}
	}
	return STATUS_OK;
}

/* The value that CONFIG GET shows of a setting that cannot be set, or only in parts. */
static struct str
config_now(struct redis *r, const struct config_row *row, char text[static OUTPUT_TEXT_BYTES])
{
	const char *of_process = config_of_process(r, row->name, text);

	if (row->kind == CONFIG_OUTPUT) {
		pthread_mutex_lock(&r->config_lock);
		snprintf(text, OUTPUT_TEXT_BYTES, "%s", r->values[row - config_rows].text);
		pthread_mutex_unlock(&r->config_lock);
		return str_from_cstr(text);
	}
	return str_from_cstr(of_process ? of_process : row->first);
}

static enum status
config_check_all(struct call *c, char (*texts)[REDIS_CONFIG_BYTES])
{
	char why[256], now[OUTPUT_TEXT_BYTES];

	TRY(config_check_names(c));
	for (size_t i = 2; i < c->argc; i += 2) {
		const struct config_row *row = &config_rows[config_find(c->argv[i])];

		if (config_check(row, config_now(c->redis, row, now), c->argv[i + 1],
				 texts[i / 2 - 1], REDIS_CONFIG_BYTES, why, sizeof(why)))
			continue;
		return call_errorf(c,
				   "ERR CONFIG SET failed (possibly related to argument '%s') - %s",
				   row->name, why);
	}
	return STATUS_OK;
}

/* The lock is held. */
static enum status
config_set_one(struct redis *r, size_t at, const char *value)
{
	char *text = text_copy(value);

	if (!text)
		return STATUS_NOMEM;
	mem_free(r->values[at].text);
	r->values[at].text = text;
	config_apply(r, &config_rows[at], text);
	return STATUS_OK;
}

/* The password is in the store, and changed in a transaction of its own, before the others. */
static enum status
config_set_password(struct call *c)
{
	struct err err = { 0 };

	for (size_t i = 2; i < c->argc; i += 2) {
		if (config_rows[config_find(c->argv[i])].kind != CONFIG_PASSWORD)
			continue;
		TRY(users_may_change(c, "config|set"));
		return users_failed(
			c, user_require_password(c->client, c->argv[i + 1], c->arena, &err), &err);
	}
	return STATUS_OK;
}

static enum status
config_set(struct call *c)
{
	size_t count = (c->argc - 2) / 2;
	char(*texts)[REDIS_CONFIG_BYTES];
	enum status status = STATUS_OK;

	if (c->argc % 2)
		return call_syntax_error(c);
	if (count > config_row_count)
		return call_error(c, STR("ERR wrong number of arguments for 'config|set' command"));
	texts = arena_alloc(c->arena, count * sizeof(*texts));
	if (!texts)
		return STATUS_LIMIT;
	TRY(config_check_all(c, texts));
	TRY(config_set_password(c));
	pthread_mutex_lock(&c->redis->config_lock);
	for (size_t i = 0; i < count && status == STATUS_OK; i++) {
		size_t at = config_find(c->argv[2 + 2 * i]);
		const char *also = config_rows[at].also;

		status = config_set_one(c->redis, at, texts[i]);
		if (status == STATUS_OK && also)
			status = config_set_one(c->redis, config_find(str_from_cstr(also)),
						texts[i]);
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
	if (call_arg_is(c, 1, "rewrite") && c->argc == 2)
		return call_error(c, STR("ERR The server is running without a config file"));
	if (call_arg_is(c, 1, "get") || call_arg_is(c, 1, "set") ||
	    call_arg_is(c, 1, "resetstat") || call_arg_is(c, 1, "rewrite"))
		return call_errorf(c, "ERR wrong number of arguments for 'config|%s' command",
				   call_arg_is(c, 1, "get")         ? "get"
				   : call_arg_is(c, 1, "set")       ? "set"
				   : call_arg_is(c, 1, "resetstat") ? "resetstat"
								    : "rewrite");
	return call_unknown_subcommand(c);
}
