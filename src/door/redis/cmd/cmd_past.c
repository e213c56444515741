/* FROND.AT and FROND.HISTORY: the past of a database. */
#include "door/redis/cmd/past.h"

#include "base/moment.h"
#include "base/steady.h"
#include "door/redis/acl/subcommand.h"
#include "door/redis/cmd/commands.h"
#include "door/redis/cmd/data.h"
#include "door/redis/txn/redis_int.h"

enum {
	US_PER_MS = 1000,
};

/* ---- Moments ---- */

/* "10s": so many milliseconds. */
static bool
read_duration(struct str s, uint64_t *ret_ms)
{
	static const struct {
		const char *unit;
		uint64_t ms;
	} units[] = { { "ms", 1 },
		      { "s", 1000 },
		      { "m", UINT64_C(60) * 1000 },
		      { "h", UINT64_C(3600) * 1000 },
		      { "d", UINT64_C(86400) * 1000 } };
	size_t digits = 0;
	uint64_t n;

	while (digits < s.len && s.ptr[digits] >= '0' && s.ptr[digits] <= '9')
		digits++;
	if (!str_to_u64(str_of(s.ptr, digits), &n))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (str_eq(str_skip(s, digits), str_from_cstr(units[i].unit)))
			return !__builtin_mul_overflow(n, units[i].ms, ret_ms);
	return false;
}

/* A moment, as docs/REDIS.md has them, in microseconds since 1970. */
static bool
read_moment(struct str s, uint64_t now_ms, uint64_t *ret_us)
{
	uint64_t ms;

	if (s.len && s.ptr[0] == '-') {
		if (!read_duration(str_skip(s, 1), &ms) || ms > now_ms)
			return false;
		ms = now_ms - ms;
	} else if (!str_to_u64(s, &ms)) {
		if (!moment_parse(s, ret_us))
			return false;
		/* Of a moment without microseconds, the whole millisecond is over. */
		*ret_us += *ret_us % US_PER_MS ? 0 : US_PER_MS - 1;
		return true;
	}
	return !__builtin_mul_overflow(ms, UINT64_C(1000), ret_us) &&
	       !__builtin_add_overflow(*ret_us, US_PER_MS - 1, ret_us);
}

static enum status
past_moment(struct call *c, size_t i, uint64_t *ret_us)
{
	uint64_t now_ms = steady_date_ms();

	if (!read_moment(c->argv[i], now_ms, ret_us))
		return call_error(c,
				  STR("ERR the time is milliseconds since 1970, or like "
				      "2026-11-21T15:52:37.782Z, or like -10s (ms, s, m, h, d)"));
	if (*ret_us / US_PER_MS > now_ms)
		return call_error(c, STR("ERR this time has not come yet"));
	return STATUS_OK;
}

/* ---- FROND.AT ---- */

/* True if the call reads keys and does nothing else; OBJECT and MEMORY do so by a subcommand. */
static bool
past_fits(const struct command *command, const struct subcommand *sub)
{
	const unsigned unfit = COMMAND_WRITE | COMMAND_ALONE | COMMAND_SCRIPT;
	unsigned flags;

	if (!command || str_starts_with(str_from_cstr(command->name), STR("frond.")))
		return false;
	flags = command->flags | (sub ? sub->flags : 0);
	return flags & COMMAND_READONLY && !(flags & unfit);
}

/*
 * One selector has to allow the command with its keys, and one FROND.AT with the same keys, which
 * was asked about when the call came.
 */
static enum status
past_check_rights(struct call *c, const struct command *command)
{
	char name[SUBCOMMAND_NAME_BYTES];
	struct call inner = *c;
	enum acl_denial denial;
	struct str object;

	inner.command = command;
	inner.argv += 2;
	inner.argc -= 2;
	denial = acl_check(&c->client->acl, command, inner.argv, inner.argc, c->arena, &object);
	if (denial == ACL_ALLOWED)
		return STATUS_OK;
	TRY(txn_denied(&inner, denial, object));
	if (denial == ACL_DENIED_KEY)
		return call_error(c, STR("NOPERM this user has no permissions to access one of "
					 "the keys used as arguments"));
	return call_errorf(
		c, "NOPERM this user has no permissions to run the '%.*s' command",
		STR_ARG(call_shown(subcommand_name_call(command, inner.argv, inner.argc, name))));
}

/* The command that is to be run in the past. */
static enum status
past_command(struct call *c, const struct command **ret)
{
	const struct command *command = command_find(c->argv[2]);
	const struct subcommand *sub = NULL;

	if (command)
		sub = subcommand_called(command, c->argv + 2, c->argc - 2);
	if (!past_fits(command, sub))
		return call_errorf(
			c, "ERR '%.*s' is no command that reads keys, so it cannot read the past",
			STR_ARG(call_shown(c->argv[2])));
	if (command->flags & COMMAND_CONTAINER && c->argc > 3 && !sub)
		return call_errorf(c, "ERR unknown subcommand '%.*s' of '%s'",
				   STR_ARG(call_shown(c->argv[3])), command->name);
	if (!command_takes(command, c->argc - 2) ||
	    (sub && !command_arity_takes(sub->arity, c->argc - 2)))
		return call_errorf(c, "ERR wrong number of arguments for '%s' command",
				   command->name);
	TRY(past_check_rights(c, command));
	*ret = command;
	return STATUS_OK;
}

/* Reads in a view of its own on the call's transaction. */
static enum status
past_read_at(struct call *c, uint64_t us, past_read *read, void *arg)
{
	struct call inner = *c;
	struct txn past;
	struct timed *t;
	enum status status;

	txn_init(&past, c->redis, c->x->tx, c->x->cache, c->x->arena, c->x->err);
	past.at_us = us;
	inner.x = &past;
	inner.in_exec = true; /* nothing comes to the past: XREAD must not wait */
	status = txn_db_there(&inner, c->db, &t);
	if (status == STATUS_OK && !t)
		status = err_set(c->x->err, STATUS_INVALID, "the database \"%u\" keeps no history",
				 c->db);
	if (status == STATUS_OK)
		status = read(&inner, arg);
	txn_fini(&past);
	return status;
}

enum status
past_view(struct call *c, size_t i, past_read *read, void *arg)
{
	size_t from = c->reply->out->len;
	enum status status;
	uint64_t us;

	TRY(past_moment(c, i, &us));
	status = past_read_at(c, us, read, arg);
	if (status != STATUS_INVALID)
		return status;
	/* There is no history at that time: the client's error, which undoes no EXEC. */
	c->reply->out->len = from;
	reply_errorf(c->reply, "ERR %s", c->x->err->text);
	*c->x->err = (struct err){ 0 };
	return STATUS_ANSWERED;
}

/* The command behind FROND.AT and its time. */
static enum status
past_run(struct call *c, void *command)
{
	c->command = command;
	c->argv += 2;
	c->argc -= 2;
	return command_run(c);
}

enum status
cmd_frond_at(struct call *c)
{
	const struct command *command;

	TRY(past_command(c, &command));
	return past_view(c, 1, past_run, (void *)(uintptr_t)command);
}

/* ---- FROND.HISTORY ---- */

struct history_call {
	unsigned db;
	bool sets;
	struct timed_history_info info; /* of which the bounds are to be set; or that was found */
	struct err err;
};

static enum status
history_of_opened(struct kv_tx *tx, const struct catalog_db *db, struct history_call *h)
{
	struct timed t;

	timed_init(&t, tx, db, NULL, &h->err);
	if (h->sets)
		return timed_history_set(&t, h->info.bounds);
	TRY(timed_history_info_get(&t, &h->info));
	if (h->info.oldest_ms)
		h->info.oldest_ms -= (uint64_t)timed_ahead_ms(&t);
	return STATUS_OK;
}

static enum status
history_body(struct kv_tx *tx, void *arg)
{
	struct history_call *h = arg;
	char buf[TXN_NAME_BYTES];
	struct str name = txn_db_name(h->db, buf);
	struct err ignored = { 0 };
	struct catalog_db *db;
	enum status status;

	h->err = (struct err){ 0 };
	status = catalog_open(tx, NULL, CATALOG_SPACE_REDIS, name, &db, &ignored);
	if (status == STATUS_NOT_FOUND) {
		if (!h->sets || !h->info.bounds.seconds) {
			h->info = (struct timed_history_info){ 0 };
			return STATUS_OK;
		}
		TRY(timed_items_create(tx, name, &h->err));
		status = catalog_open(tx, NULL, CATALOG_SPACE_REDIS, name, &db, &h->err);
	}
	if (status != STATUS_OK)
		return err_set(&h->err, status, "%s", ignored.text);
	status = history_of_opened(tx, db, h);
	catalog_db_unref(db);
	return status;
}

/* The past begins with a transaction of its own, behind that which has set it. */
static enum status
history_begin_body(struct kv_tx *tx, void *arg)
{
	struct history_call *h = arg;
	char buf[TXN_NAME_BYTES];
	struct catalog_db *db;
	struct timed t;
	enum status status;

	h->err = (struct err){ 0 };
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_REDIS, txn_db_name(h->db, buf), &db, &h->err));
	timed_init(&t, tx, db, NULL, &h->err);
	status = timed_history_begin(&t);
	catalog_db_unref(db);
	return status;
}

static void
history_answer_number(struct call *c, const char *name, uint64_t number, bool there)
{
	reply_bulk_cstr(c->reply, name);
	if (there)
		reply_int(c->reply, (int64_t)number);
	else
		reply_null(c->reply);
}

static void
history_answer(struct call *c, const struct history_call *h)
{
	const struct timed_history_info *info = &h->info;

	reply_map(c->reply, 5);
	history_answer_number(c, "seconds", info->bounds.seconds, true);
	history_answer_number(c, "oldest", info->oldest_ms, info->oldest_ms > 0);
	history_answer_number(c, "bytes", info->bounds.bytes, info->bounds.bytes > 0);
	history_answer_number(c, "held", info->held_bytes, info->bounds.bytes > 0);
	history_answer_number(c, "versions", info->bounds.versions, info->bounds.versions > 0);
}

/* Reads what stands behind BYTES or VERSIONS. */
static enum status
history_read_bound(struct call *c, size_t i, struct timed_history_bounds *ret)
{
	bool bytes = call_arg_is(c, i, "BYTES");
	int64_t number;

	if (i + 1 == c->argc || (!bytes && !call_arg_is(c, i, "VERSIONS")))
		return call_error(c, STR(ERROR_SYNTAX));
	if (bytes) {
		TRY(call_int_range(c, i + 1, 1, INT64_MAX,
				   "the bytes of a history are 1 to 9223372036854775807", &number));
		ret->bytes = (uint64_t)number;
		return STATUS_OK;
	}
	TRY(call_int_range(c, i + 1, 1, TIMED_HISTORY_VERSIONS,
			   "the versions of a history are 1 to 10000 (TIMED_HISTORY_VERSIONS)",
			   &number));
	ret->versions = (uint64_t)number;
	return STATUS_OK;
}

/* Reads "seconds [BYTES bytes] [VERSIONS versions]". */
static enum status
history_read_bounds(struct call *c, struct timed_history_bounds *ret)
{
	int64_t number;

	TRY(call_int_range(c, 1, 0, TIMED_HISTORY_SECONDS,
			   "the history is 0 to 1000000000 seconds (TIMED_HISTORY_SECONDS)",
			   &number));
	*ret = (struct timed_history_bounds){ .seconds = (uint64_t)number };
	for (size_t i = 2; i < c->argc; i += 2)
		TRY(history_read_bound(c, i, ret));
	/* Also of a database that is not there, which would need no change. */
	if (!ret->seconds && ret->bytes)
		return call_error(c, STR("ERR a history of 0 seconds has no bytes"));
	if (!ret->seconds && ret->versions)
		return call_error(c, STR("ERR a history of 0 seconds has no versions"));
	return STATUS_OK;
}

enum status
cmd_frond_history(struct call *c)
{
	struct history_call h = { .db = c->db, .sets = c->argc > 1 };
	struct kv_store *store = c->redis->config.store;
	enum status status;

	if (h.sets)
		TRY(history_read_bounds(c, &h.info.bounds));
	status = h.sets ? kv_run(store, history_body, &h, NULL, &h.err)
			: kv_run_read(store, history_body, &h, &h.err);
	if (status == STATUS_OK && h.sets && h.info.bounds.seconds)
		status = kv_run(store, history_begin_body, &h, NULL, &h.err);
	if (status != STATUS_OK)
		error_reply_status(c->reply, status, &h.err);
	else if (h.sets)
		reply_ok(c->reply);
	else
		history_answer(c, &h);
	return STATUS_OK;
}
