#include "cli/replaced.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "cli/remote.h"
#include "doc/json_value.h"
#include "kv/log.h"
#include "loop/wait.h"

enum {
	ANSWER_BYTES = 4096,
	ARENA_BYTES = 64 * 1024,
};

static struct {
	const char *url;
	struct kv_store *store;
	void (*told)(void *arg, const struct err *why);
	void *arg;
	struct event stop;
	pthread_t thread;
	bool runs;
} watcher;

/* What the standby's server says of its store. */
struct replaced_answer {
	struct str history;
	struct str before; /* empty: it was never promoted */
	uint64_t promoted_at;
	bool follows; /* it is a standby, which serves reads */
};

static enum status
answer_read(struct str text, struct arena *arena, struct replaced_answer *ret, struct err *err)
{
	const struct json_value *history, *before, *at, *follows;
	struct json_member *members;
	size_t count;

	*ret = (struct replaced_answer){ 0 };
	TRY(json_read_members(text, arena, &members, &count, err));
	history = json_value_find(members, count, "history");
	before = json_value_find(members, count, "before");
	at = json_value_find(members, count, "promoted_at");
	if (!history || history->kind != JSON_STRING)
		return err_set(err, STATUS_INVALID, "that is no answer of frond");
	ret->history = history->string;
	follows = json_value_find(members, count, "follows");
	ret->follows = follows && follows->kind == JSON_TRUE;
	if (before && before->kind == JSON_STRING && at && at->kind == JSON_NUMBER &&
	    str_to_u64(at->text, &ret->promoted_at))
		ret->before = before->string;
	return STATUS_OK;
}

static enum status
ask(const char *url, struct arena *arena, struct replaced_answer *ret, struct err *err)
{
	AUTO(buf_release) struct buf answer = BUF_INIT(ANSWER_BYTES);
	const struct str path = STR("/_frond/position");
	struct remote *remote;
	int http_status = 0;
	enum status status;

	TRY(remote_new(url, &remote, err));
	remote_hurry(remote, REPLACED_ASK_S);
	status = remote_request(remote, "GET", path, (struct str){ NULL, 0 }, &http_status, &answer,
				err);
	if (status == STATUS_OK && http_status != 200)
		status = remote_refused(remote, path, http_status, buf_str(&answer), err);
	if (status == STATUS_OK) {
		struct str text;

		status = arena_copy(arena, buf_str(&answer), &text);
		if (status == STATUS_OK)
			status = answer_read(text, arena, ret, err);
	}
	remote_free(remote);
	return status;
}

static enum status
count_key(void *arg, const struct kv_log_key *key)
{
	uint64_t *last = arg;

	last[1] += key->version != last[0];
	last[0] = key->version;
	return STATUS_OK;
}

/* The store's place has been taken: says what it has that its standby had not. */
static enum status
replaced(struct kv_store *store, const char *name, const struct kv_log_position *own,
	 uint64_t promoted_at, struct err *err)
{
	uint64_t counted[2] = { 0, 0 };
	struct err ignored = { 0 };

	TRY(kv_log_replaced(store, err));
	if (own->version <= promoted_at)
		return err_set(
			err, STATUS_FORBIDDEN,
			"%s has taken this store's place: it was promoted, with all that this "
			"store has",
			name);
	if (kv_log_keys(store, promoted_at, count_key, counted, &ignored) != STATUS_OK)
		return err_set(err, STATUS_FORBIDDEN,
			       "%s has taken this store's place: it was promoted at version %llu, "
			       "and this store has version %llu",
			       name, (unsigned long long)promoted_at,
			       (unsigned long long)own->version);
	return err_set(err, STATUS_FORBIDDEN,
		       "%s has taken this store's place: it was promoted at version %llu, and has "
		       "not got %llu later commits of this store, which \"frond inspect --after "
		       "%llu\" shows",
		       name, (unsigned long long)promoted_at, (unsigned long long)counted[1],
		       (unsigned long long)promoted_at);
}

static enum status
judge(const char *name, struct kv_store *store, const struct replaced_answer *answer,
      struct err *err)
{
	AUTO(buf_release) struct buf hex = BUF_INIT(2 * KV_LOG_HISTORY_BYTES);
	struct kv_log_position own;

	TRY(kv_log_position(store, &own, err));
	buf_append_hex(&hex, str_of((const char *)own.history, sizeof(own.history)));
	TRY(buf_status(&hex));
	if (str_eq(answer->before, buf_str(&hex)))
		return replaced(store, name, &own, answer->promoted_at, err);
	if (answer->follows && str_eq(answer->history, buf_str(&hex)))
		return STATUS_OK;
	return err_set(
		err, STATUS_FORBIDDEN,
		str_eq(answer->history, buf_str(&hex))
			? "%s, which [frond] standby_url names, serves this store itself, or "
			  "a copy of it that was not promoted"
			: "%s, which [frond] standby_url names, serves a store of another "
			  "history than this one",
		name);
}

enum status
replaced_ask(const char *url, struct kv_store *store, struct err *err)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct replaced_answer answer;
	struct remote *named = NULL;
	struct err why = { 0 };
	enum status status;

	if (!arena)
		return err_set(err, STATUS_NOMEM, "out of memory");
	status = remote_new(url, &named, err);
	if (status == STATUS_OK && ask(url, arena, &answer, &why) != STATUS_OK)
		log_event(LOG_LEVEL_WARN, "standby_not_asked", "url=%s reason=\"%s\"",
			  remote_name(named), why.text);
	else if (status == STATUS_OK)
		status = judge(remote_name(named), store, &answer, err);
	remote_free(named);
	arena_free(arena);
	return status;
}

static void *
watcher_run(void *arg)
{
	(void)arg;
	thread_set_name("replaced");
	while (!event_wait(&watcher.stop, clock_after_ms(REPLACED_EVERY_MS))) {
		struct err err = { 0 };

		if (replaced_ask(watcher.url, watcher.store, &err) == STATUS_FORBIDDEN) {
			watcher.told(watcher.arg, &err);
			break;
		}
	}
	return NULL;
}

enum status
replaced_watch(const char *url, struct kv_store *store,
	       void (*told)(void *arg, const struct err *why), void *arg, struct err *err)
{
	watcher.url = url;
	watcher.store = store;
	watcher.told = told;
	watcher.arg = arg;
	event_init(&watcher.stop);
	if (pthread_create(&watcher.thread, NULL, watcher_run, NULL) != 0)
		return err_set(err, STATUS_LIMIT, "cannot start the thread that asks the standby");
	watcher.runs = true;
	return STATUS_OK;
}

void
replaced_unwatch(void)
{
	if (!watcher.runs)
		return;
	event_set(&watcher.stop);
	(void)pthread_join(watcher.thread, NULL);
	watcher.runs = false;
}
