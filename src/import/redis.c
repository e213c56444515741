/*
 * From a server of Redis's protocol: each database by SCAN, its keys by DUMP and RESTORE or, where
 * one of the two is refused, by the commands of their types; functions; and by keyspace events what
 * is changed meanwhile.
 *
 * == Going on after an end ==
 *
 * The state is where SCAN was, and since when changes at the source may not be at the target: those
 * that events told of and that were not copied yet, and those that were told to nobody. So an
 * import that goes on has a second turn, over the keys that the source says were used since (OBJECT
 * IDLETIME). If the target was empty at the beginning it also removes there what the source has no
 * more.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "import/import.h"
#include "import/link.h"
#include "import/redis_keys.h"

enum {
	DATABASES = 1024,
	CURSOR_BYTES = 32,
	EVENTS_BYTES = 64 * 1024 * 1024, /* of names of keys that wait to be copied again */
	IDLE_SLACK_S = 5, /* seconds of a source's clock that is coarse, and of the state's age */
};

struct redis {
	struct import *import;
	struct redis_keys keys;
	struct link *events; /* NULL: there are none */
	struct buf changed;  /* names that events have told: a database, a length, bytes */
	char *events_before; /* the source's setting, to be put back; NULL: as it is */
	bool database_wanted[DATABASES];

	/* The state. */
	unsigned database;
	char cursor[CURSOR_BYTES];
	time_t missed; /* by a process before: its changes since then; 0: this one is the first */
	time_t heard;  /* all that was changed before then is at the target, or not copied yet */
	bool target_was_empty; /* at the beginning */
};

/* ---- The state ---- */

static enum status
state_read(struct redis *r, struct err *err)
{
	char *text;
	long long written;
	int empty;

	TRY(import_state_read(r->import, &text, err));
	if (!text)
		return STATUS_OK;
	if (sscanf(text, "redis %u %31s %lld %d", &r->database, r->cursor, &written, &empty) == 4 &&
	    written > 0) {
		r->missed = (time_t)written;
		r->target_was_empty = empty != 0;
		import_tell(r->import, "goes on in the database %u", r->database);
	} else {
		err_set(err, STATUS_INVALID, "%s is no state of an import from Redis",
			r->import->state);
	}
	free(text);
	return r->missed ? STATUS_OK : STATUS_INVALID;
}

static enum status
state_write(struct redis *r, struct err *err)
{
	char text[IMPORT_TEXT_BYTES];

	(void)snprintf(text, sizeof(text), "redis %u %s %lld %d\n", r->database,
		       r->cursor[0] ? r->cursor : "0",
		       (long long)(r->missed ? r->missed : r->heard), (int)r->target_was_empty);
	return import_state_write(r->import, str_from_cstr(text), err);
}

/* ---- Events ---- */

/* Has the source tell of changes. Without, the import goes on and says so. */
static enum status
events_begin(struct redis *r, struct err *err)
{
	redisReply *reply;

	TRY(link_ask(r->keys.source, &reply, err, "CONFIG", "GET", "notify-keyspace-events", NULL));
	if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2)
		r->events_before = strdup(reply->element[1]->str);
	freeReplyObject(reply);
	TRY(link_ask(r->keys.source, &reply, err, "CONFIG", "SET", "notify-keyspace-events", "AE",
		     NULL));
	if (reply_is_error(reply)) {
		import_misfit(r->import,
			      "changes while this runs, as the source tells of none (%s): let "
			      "nobody write to it",
			      reply->str);
		free(r->events_before);
		r->events_before = NULL;
		freeReplyObject(reply);
		return STATUS_OK;
	}
	freeReplyObject(reply);
	TRY(link_open(r->import->source, &r->events, err));
	TRY(link_ask(r->events, &reply, err, "PSUBSCRIBE", "__keyevent@*__:*", NULL));
	freeReplyObject(reply);
	return STATUS_OK;
}

static void
events_end(struct redis *r)
{
	struct err ignored = { 0 };
	redisReply *reply;

	if (r->events_before && r->keys.source &&
	    link_ask(r->keys.source, &reply, &ignored, "CONFIG", "SET", "notify-keyspace-events",
		     r->events_before, NULL) == STATUS_OK)
		freeReplyObject(reply);
	free(r->events_before);
	link_close(r->events);
	buf_release(&r->changed);
}

/* Takes the events that have come, and waits for the first for so long. */
static enum status
events_take(struct redis *r, uint64_t wait_ms, struct err *err)
{
	while (r->events && r->changed.len < EVENTS_BYTES / 2) {
		redisReply *reply;
		unsigned database;

		TRY(link_message(r->events, wait_ms, &reply, err));
		if (!reply)
			break;
		wait_ms = 0;
		/* pmessage, the pattern, __keyevent@0__:set, the key */
		if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 4 &&
		    sscanf(reply->element[2]->str, "__keyevent@%u__", &database) == 1 &&
		    database < DATABASES) {
			uint32_t head[2] = { database, (uint32_t)reply->element[3]->len };

			/* It may have had no keys when the import began. */
			r->database_wanted[database] = true;
			buf_append(&r->changed, (const char *)head, sizeof(head));
			buf_append_str(&r->changed, reply_text(reply->element[3]));
		}
		freeReplyObject(reply);
	}
	/* Keys that wait here are lost with the process: a moment when none does is behind them. */
	if (r->events && r->changed.len == 0)
		r->heard = time(NULL);
	return buf_status(&r->changed);
}

/* Copies the keys that events have told of, as they are now. */
static enum status
events_apply(struct redis *r, struct err *err)
{
	struct buf taken = r->changed;
	struct str rest = buf_str(&taken);
	enum status status = STATUS_OK;

	buf_init(&r->changed, EVENTS_BYTES);
	while (status == STATUS_OK && rest.len) {
		uint32_t head[2];
		struct str key;

		memcpy(head, rest.ptr, sizeof(head));
		key = str_of(rest.ptr + sizeof(head), head[1]);
		rest = str_skip(rest, sizeof(head) + head[1]);
		status = redis_keys_select(&r->keys, head[0], err);
		if (status == STATUS_OK)
			status = redis_keys_copy(&r->keys, &key, 1, true, err);
		r->import->changed++;
	}
	buf_release(&taken);
	return status;
}

/* ---- Databases ---- */

/* Whether the target has no key in any database. */
static enum status
look_at_target(struct redis *r, struct err *err)
{
	redisReply *reply;

	TRY(link_ask(r->keys.target, &reply, err, "INFO", "keyspace", NULL));
	r->target_was_empty = !reply_is_error(reply) && !strstr(reply->str, ":keys=");
	freeReplyObject(reply);
	return STATUS_OK;
}

/* Which databases have keys, by lines as "db0:keys=12,…": adds them to `found`, and counts them. */
static enum status
find_databases(struct redis *r, struct link *link, bool *found, size_t *ret_count, struct err *err)
{
	redisReply *reply;
	char *line;

	TRY(link_ask(link, &reply, err, "INFO", "keyspace", NULL));
	if (reply_is_error(reply)) {
		err_set(err, STATUS_FORBIDDEN, "%s: INFO: %s", link_name(link), reply->str);
		freeReplyObject(reply);
		return STATUS_FORBIDDEN;
	}
	for (line = strtok(reply->str, "\r\n"); line; line = strtok(NULL, "\r\n")) {
		unsigned database;
		unsigned long long keys;

		if (sscanf(line, "db%u:keys=%llu", &database, &keys) != 2)
			continue;
		if (database >= DATABASES) {
			import_misfit(r->import, "the database %u", database);
			continue;
		}
		found[database] = true;
		(*ret_count)++;
	}
	freeReplyObject(reply);
	return STATUS_OK;
}

/*
 * Copies one page of SCAN. If `idle_s` is not negative, only those of its keys that were used at
 * the source in the last `idle_s` seconds. `*ret_done`: it was the last page.
 */
static enum status
copy_page(struct redis *r, long idle_s, bool *ret_done, struct err *err)
{
	struct str keys[REDIS_PAGE_KEYS];
	redisReply *reply, *listed;
	enum status status = STATUS_OK;

	TRY(link_ask(r->keys.source, &reply, err, "SCAN", r->cursor, "COUNT", REDIS_PAGE_TEXT,
		     NULL));
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) {
		status = err_set(err, STATUS_FORBIDDEN, "%s: SCAN: %s", link_name(r->keys.source),
				 reply_is_error(reply) ? reply->str : "no answer of Redis's");
		freeReplyObject(reply);
		return status;
	}
	listed = reply->element[1];
	/* An answer may have more than was asked for. */
	for (size_t at = 0; status == STATUS_OK && at < listed->elements;) {
		size_t count = 0;

		while (count < REDIS_PAGE_KEYS && at < listed->elements)
			keys[count++] = reply_text(listed->element[at++]);
		if (idle_s >= 0)
			status = redis_keys_used(&r->keys, keys, &count, idle_s, err);
		if (status == STATUS_OK)
			status = redis_keys_copy(&r->keys, keys, count, false, err);
	}
	(void)snprintf(r->cursor, sizeof(r->cursor), "%s", reply->element[0]->str);
	*ret_done = strcmp(r->cursor, "0") == 0;
	freeReplyObject(reply);
	return status;
}

static enum status
copy_database(struct redis *r, long idle_s, struct err *err)
{
	bool done = false;

	TRY(redis_keys_select(&r->keys, r->database, err));
	while (!done && !import_stopped()) {
		TRY(copy_page(r, idle_s, &done, err));
		TRY(events_take(r, 0, err));
		if (r->changed.len >= EVENTS_BYTES / 2) {
			TRY(events_apply(r, err));
			TRY(redis_keys_select(&r->keys, r->database, err));
		}
		if (idle_s < 0 && import_state_due(r->import))
			TRY(state_write(r, err));
	}
	return STATUS_OK;
}

static enum status
copy_databases(struct redis *r, unsigned from, long idle_s, struct err *err)
{
	for (unsigned n = from; n < DATABASES && !import_stopped(); n++) {
		if (!r->database_wanted[n])
			continue;
		if (n != from || idle_s >= 0 || !r->cursor[0]) {
			r->database = n;
			(void)snprintf(r->cursor, sizeof(r->cursor), "0");
		}
		TRY(copy_database(r, idle_s, err));
	}
	return STATUS_OK;
}

/* What was missed while nobody listened: used keys again, and those that the source has no more. */
static enum status
catch_up(struct redis *r, struct err *err)
{
	long idle_s = (long)(time(NULL) - r->missed) + IDLE_SLACK_S;
	bool left[DATABASES] = { false };
	size_t count = 0;

	TRY(copy_databases(r, 0, idle_s, err));
	if (!r->target_was_empty)
		import_misfit(r->import,
			      "what was deleted while no import ran: the target had keys of its "
			      "own, so that nothing is removed there");
	/* Not those of the source: it may have no key left in one of them. */
	TRY(find_databases(r, r->keys.target, left, &count, err));
	for (unsigned n = 0; n < DATABASES && r->target_was_empty && !import_stopped(); n++)
		if (left[n]) {
			TRY(redis_keys_select(&r->keys, n, err));
			TRY(redis_keys_prune(&r->keys, err));
		}
	return STATUS_OK;
}

/* ---- All ---- */

static enum status
copy_functions(struct redis *r, struct err *err)
{
	redisReply *reply, *answer;
	enum status status = STATUS_OK;

	TRY(link_ask(r->keys.source, &reply, err, "FUNCTION", "DUMP", NULL));
	/* Servers before 7.0 have none. */
	if (reply->type == REDIS_REPLY_STRING) {
		const struct str words[] = { STR("FUNCTION"), STR("RESTORE"), reply_text(reply),
					     STR("REPLACE") };

		link_add(r->keys.target, sizeof(words) / sizeof(words[0]), words);
		status = link_reply(r->keys.target, &answer, err);
		if (status == STATUS_OK && reply_is_error(answer))
			import_misfit(r->import, "functions: %s", answer->str);
		if (status == STATUS_OK)
			freeReplyObject(answer);
	}
	freeReplyObject(reply);
	return status;
}

/* People are not copied: their passwords are kept in another way. */
static enum status
tell_people(struct redis *r, struct err *err)
{
	redisReply *reply;

	TRY(link_ask(r->keys.source, &reply, err, "ACL", "LIST", NULL));
	for (size_t n = 0; reply->type == REDIS_REPLY_ARRAY && n < reply->elements; n++)
		if (strncmp(reply->element[n]->str, "user default ", 13) != 0)
			import_misfit(r->import, "a person, who needs a password there: %s",
				      reply->element[n]->str);
	freeReplyObject(reply);
	return STATUS_OK;
}

static enum status
redis_run(struct redis *r, struct err *err)
{
	size_t databases = 0;

	TRY(link_open(r->import->source, &r->keys.source, err));
	TRY(link_open(r->import->target, &r->keys.target, err));
	TRY(find_databases(r, r->keys.source, r->database_wanted, &databases, err));
	TRY(look_at_target(r, err));
	TRY(state_read(r, err));
	r->heard = time(NULL);
	TRY(events_begin(r, err));
	/* What the target had of its own can be seen only before the first key is copied. */
	TRY(state_write(r, err));
	TRY(copy_functions(r, err));
	TRY(copy_databases(r, r->missed ? r->database : 0, -1, err));
	if (r->missed && !import_stopped())
		TRY(catch_up(r, err));
	if (import_stopped())
		return state_write(r, err);
	while (r->events && !import_stopped()) {
		TRY(events_take(r, IMPORT_QUIET_MS, err));
		if (r->changed.len == 0 && !r->import->follow)
			break;
		TRY(events_apply(r, err));
		progress_update(&r->import->progress, r->import->copied, r->import->bytes);
	}
	if (import_stopped() && !r->import->follow)
		return state_write(r, err);
	TRY(tell_people(r, err));
	import_state_remove(r->import);
	import_tell(r->import, "%zu databases of %s", databases, link_name(r->keys.source));
	return STATUS_OK;
}

enum status
import_redis(struct import *i, struct err *err)
{
	struct redis *r = calloc(1, sizeof(*r));
	enum status status;

	if (!r)
		return err_set(err, STATUS_NOMEM, "out of memory");
	r->import = i;
	r->keys.import = i;
	buf_init(&r->changed, EVENTS_BYTES);
	status = redis_run(r, err);
	events_end(r);
	link_close(r->keys.source);
	link_close(r->keys.target);
	free(r);
	return status;
}
