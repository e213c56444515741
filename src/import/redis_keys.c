#include "import/redis_keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"

#define PIECE_TEXT "500"

enum {
	PIECE = 500,                   /* members of a key that are copied at a time */
	AHEAD_BYTES = 4 * 1024 * 1024, /* of requests for the target */
	NUMBER_BYTES = 32,
	SHOWN_KEY_BYTES = 100,
	REASON_BYTES = 256,
	WORDS_MOST = 2 + 2 * PIECE, /* pairs behind a command and a key are never split */
};

static enum status
select_one(struct link *l, const char *database, struct err *err)
{
	redisReply *reply;
	enum status status = STATUS_OK;

	TRY(link_ask(l, &reply, err, "SELECT", database, NULL));
	if (reply_is_error(reply))
		status = err_set(err, STATUS_INVALID, "%s: SELECT %s: %s", link_name(l), database,
				 reply->str);
	freeReplyObject(reply);
	return status;
}

enum status
redis_keys_select(struct redis_keys *k, unsigned database, struct err *err)
{
	char number[NUMBER_BYTES];

	(void)snprintf(number, sizeof(number), "%u", database);
	TRY(select_one(k->source, number, err));
	return select_one(k->target, number, err);
}

static void
tell_misfit(struct redis_keys *k, struct str key, const char *reason)
{
	AUTO(buf_release) struct buf shown = BUF_INIT(8 * SHOWN_KEY_BYTES);

	quote_word(&shown, key, 4 * SHOWN_KEY_BYTES);
	import_misfit(k->import, "the key \"%.*s\": %s", STR_ARG(buf_str(&shown)), reason);
}

/* ---- By the commands of their types ---- */

/* One command of the target's; what it refuses is told. `*ok` stays true as long as none was. */
static enum status
put(struct redis_keys *k, struct str key, const struct str *words, size_t count, bool *ok,
    struct err *err)
{
	redisReply *reply;

	link_add(k->target, count, words);
	TRY(link_reply(k->target, &reply, err));
	if (reply_is_error(reply) && *ok) {
		tell_misfit(k, key, reply->str);
		*ok = false;
	}
	freeReplyObject(reply);
	return STATUS_OK;
}

/* Adds the elements of an answer behind a command's name and the key; a sorted set's change. */
static enum status
put_elements(struct redis_keys *k, const char *command, struct str key, const redisReply *listed,
	     bool pairs_change, bool *ok, struct err *err)
{
	struct str words[WORDS_MOST] = { str_from_cstr(command), key };

	for (size_t at = 0; *ok && at < listed->elements;) {
		size_t count = 2;

		for (; count < WORDS_MOST && at < listed->elements; at++)
			words[count++] = reply_text(listed->element[at]);
		for (size_t n = 2; pairs_change && n + 1 < count; n += 2) {
			struct str member = words[n];

			words[n] = words[n + 1];
			words[n + 1] = member;
		}
		TRY(put(k, key, words, count, ok, err));
	}
	return STATUS_OK;
}

/* Sets, hashes and sorted sets: a piece for each answer of their SCAN. */
static enum status
copy_scanned(struct redis_keys *k, struct str key, const char *scan, const char *command,
	     bool pairs_change, bool *ok, struct err *err)
{
	char cursor[NUMBER_BYTES] = "0";

	do {
		const struct str words[] = { str_from_cstr(scan), key, str_from_cstr(cursor),
					     STR("COUNT"), STR(PIECE_TEXT) };
		redisReply *reply;
		enum status status = STATUS_OK;

		link_add(k->source, sizeof(words) / sizeof(words[0]), words);
		TRY(link_reply(k->source, &reply, err));
		if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2) {
			(void)snprintf(cursor, sizeof(cursor), "%s", reply->element[0]->str);
			status = put_elements(k, command, key, reply->element[1], pairs_change, ok,
					      err);
		} else {
			tell_misfit(k, key, reply_is_error(reply) ? reply->str : scan);
			*ok = false;
		}
		freeReplyObject(reply);
		TRY(status);
	} while (*ok && strcmp(cursor, "0") != 0);
	return STATUS_OK;
}

static enum status
copy_list(struct redis_keys *k, struct str key, bool *ok, struct err *err)
{
	for (size_t from = 0;; from += PIECE) {
		char first[NUMBER_BYTES], last[NUMBER_BYTES];
		redisReply *reply;
		enum status status;
		bool more;

		(void)snprintf(first, sizeof(first), "%zu", from);
		(void)snprintf(last, sizeof(last), "%zu", from + PIECE - 1);
		link_add(k->source, 4,
			 (struct str[]){ STR("LRANGE"), key, str_from_cstr(first),
					 str_from_cstr(last) });
		TRY(link_reply(k->source, &reply, err));
		more = reply->type == REDIS_REPLY_ARRAY && reply->elements == PIECE;
		status = put_elements(k, "RPUSH", key, reply, false, ok, err);
		freeReplyObject(reply);
		TRY(status);
		if (!more || !*ok)
			return STATUS_OK;
	}
}

/* An entry of a stream: its id, then fields and values. */
static enum status
put_entry(struct redis_keys *k, struct str key, const redisReply *entry, bool *ok, struct err *err)
{
	const redisReply *fields = entry->element[1];
	size_t count = 3 + fields->elements;
	struct str *words = malloc(count * sizeof(*words));
	enum status status;

	if (!words)
		return err_set(err, STATUS_NOMEM, "out of memory");
	words[0] = STR("XADD");
	words[1] = key;
	words[2] = reply_text(entry->element[0]);
	for (size_t n = 0; n < fields->elements; n++)
		words[3 + n] = reply_text(fields->element[n]);
	status = put(k, key, words, count, ok, err);
	free(words);
	return status;
}

static enum status
copy_stream(struct redis_keys *k, struct str key, bool *ok, struct err *err)
{
	char from[2 * NUMBER_BYTES] = "-";
	size_t found;

	do {
		const struct str words[] = { STR("XRANGE"), key,          str_from_cstr(from),
					     STR("+"),      STR("COUNT"), STR(PIECE_TEXT) };
		redisReply *reply;
		enum status status = STATUS_OK;

		link_add(k->source, sizeof(words) / sizeof(words[0]), words);
		TRY(link_reply(k->source, &reply, err));
		found = reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;
		for (size_t n = 0; n < found && status == STATUS_OK && *ok; n++)
			status = put_entry(k, key, reply->element[n], ok, err);
		if (found)
			(void)snprintf(from, sizeof(from), "(%s",
				       reply->element[found - 1]->element[0]->str);
		freeReplyObject(reply);
		TRY(status);
	} while (*ok && found == PIECE);
	if (*ok)
		tell_misfit(k, key, "groups of consumers, without DUMP and RESTORE");
	return STATUS_OK;
}

static enum status
copy_string(struct redis_keys *k, struct str key, bool *ok, struct err *err)
{
	redisReply *reply;
	enum status status;

	link_add(k->source, 2, (struct str[]){ STR("GET"), key });
	TRY(link_reply(k->source, &reply, err));
	status = put(k, key, (struct str[]){ STR("SET"), key, reply_text(reply) }, 3, ok, err);
	freeReplyObject(reply);
	return status;
}

static enum status
copy_type(struct redis_keys *k, struct str key, const char *type, const char *reason, bool *ok,
	  struct err *err)
{
	if (strcmp(type, "string") == 0)
		return copy_string(k, key, ok, err);
	if (strcmp(type, "list") == 0)
		return copy_list(k, key, ok, err);
	if (strcmp(type, "hash") == 0)
		return copy_scanned(k, key, "HSCAN", "HSET", false, ok, err);
	if (strcmp(type, "set") == 0)
		return copy_scanned(k, key, "SSCAN", "SADD", false, ok, err);
	if (strcmp(type, "zset") == 0)
		return copy_scanned(k, key, "ZSCAN", "ZADD", true, ok, err);
	if (strcmp(type, "stream") == 0)
		return copy_stream(k, key, ok, err);
	*ok = strcmp(type, "none") == 0;
	if (!*ok)
		tell_misfit(k, key, reason);
	return STATUS_OK;
}

/* `reason`: why it could not be copied as a whole. */
static enum status
copy_by_type(struct redis_keys *k, struct str key, const char *reason, const char *ttl_ms,
	     struct err *err)
{
	redisReply *reply;
	enum status status;
	bool ok = true;

	TRY(put(k, key, (struct str[]){ STR("DEL"), key }, 2, &ok, err));
	link_add(k->source, 2, (struct str[]){ STR("TYPE"), key });
	TRY(link_reply(k->source, &reply, err));
	status = copy_type(k, key, reply->str, reason, &ok, err);
	freeReplyObject(reply);
	TRY(status);
	if (ok && strcmp(ttl_ms, "0") != 0)
		TRY(put(k, key, (struct str[]){ STR("PEXPIRE"), key, str_from_cstr(ttl_ms) }, 3,
			&ok, err));
	if (ok)
		import_count(k->import, 0);
	return STATUS_OK;
}

/* ---- As a whole ---- */

/* A key, as the target is given it. */
struct restored {
	struct str key;
	char ttl_ms[NUMBER_BYTES];
	uint64_t bytes;
	enum {
		GIVEN_NOTHING,
		GIVEN_DUMP,
		GIVEN_DELETION,
		GIVEN_BY_TYPE
	} how;
};

/* Gives one key to the target, by what the source says of it. */
static void
give(struct redis_keys *k, struct restored *r, const redisReply *dump, const redisReply *ttl,
     bool changed)
{
	r->how = GIVEN_NOTHING;
	(void)snprintf(r->ttl_ms, sizeof(r->ttl_ms), "%lld",
		       ttl->type == REDIS_REPLY_INTEGER && ttl->integer > 0 ? ttl->integer : 0);
	if (dump->type == REDIS_REPLY_STRING) {
		const struct str words[] = { STR("RESTORE"), r->key, str_from_cstr(r->ttl_ms),
					     reply_text(dump), STR("REPLACE") };

		link_add(k->target, sizeof(words) / sizeof(words[0]), words);
		r->bytes = (uint64_t)dump->len;
		r->how = GIVEN_DUMP;
	} else if (reply_is_error(dump)) {
		r->how = GIVEN_BY_TYPE;
	} else if (changed) {
		link_add(k->target, 2, (struct str[]){ STR("DEL"), r->key });
		r->how = GIVEN_DELETION;
	}
}

/* Takes the two answers about a key from the source. */
static enum status
take_key(struct redis_keys *k, struct restored *r, bool changed, struct err *err)
{
	redisReply *dump, *ttl;
	enum status status;

	TRY(link_reply(k->source, &dump, err));
	status = link_reply(k->source, &ttl, err);
	if (status == STATUS_OK) {
		give(k, r, dump, ttl, changed);
		freeReplyObject(ttl);
	}
	freeReplyObject(dump);
	return status;
}

/* Reads what the target says; what it refuses goes by type, after all answers. */
static enum status
take_answers(struct redis_keys *k, struct restored *given, size_t count, struct err *err)
{
	char reasons[REDIS_PAGE_KEYS][REASON_BYTES];

	for (size_t n = 0; n < count; n++) {
		redisReply *reply;

		(void)snprintf(reasons[n], REASON_BYTES, "the source refuses to dump it");
		if (given[n].how != GIVEN_DUMP && given[n].how != GIVEN_DELETION)
			continue;
		TRY(link_reply(k->target, &reply, err));
		if (given[n].how == GIVEN_DUMP && reply_is_error(reply)) {
			(void)snprintf(reasons[n], REASON_BYTES, "%s", reply->str);
			given[n].how = GIVEN_BY_TYPE;
		} else if (given[n].how == GIVEN_DUMP) {
			import_count(k->import, given[n].bytes);
		}
		freeReplyObject(reply);
	}
	for (size_t n = 0; n < count; n++)
		if (given[n].how == GIVEN_BY_TYPE)
			TRY(copy_by_type(k, given[n].key, reasons[n], given[n].ttl_ms, err));
	return STATUS_OK;
}

enum status
redis_keys_copy(struct redis_keys *k, const struct str *keys, size_t count, bool changed,
		struct err *err)
{
	struct restored given[REDIS_PAGE_KEYS];

	for (size_t n = 0; n < count; n++) {
		link_add(k->source, 2, (struct str[]){ STR("DUMP"), keys[n] });
		link_add(k->source, 2, (struct str[]){ STR("PTTL"), keys[n] });
	}
	for (size_t n = 0; n < count; n++) {
		given[n].key = keys[n];
		TRY(take_key(k, &given[n], changed, err));
		if (link_waiting(k->target) >= AHEAD_BYTES)
			TRY(link_flush(k->target, err));
	}
	return take_answers(k, given, count, err);
}

/* ---- Behind an import that was interrupted ---- */

enum status
redis_keys_used(struct redis_keys *k, struct str *keys, size_t *count, long seconds,
		struct err *err)
{
	size_t used = 0;

	for (size_t n = 0; n < *count; n++)
		link_add(k->source, 3, (struct str[]){ STR("OBJECT"), STR("IDLETIME"), keys[n] });
	for (size_t n = 0; n < *count; n++) {
		redisReply *reply;

		TRY(link_reply(k->source, &reply, err));
		if (reply->type != REDIS_REPLY_INTEGER || reply->integer <= seconds)
			keys[used++] = keys[n];
		freeReplyObject(reply);
	}
	*count = used;
	return STATUS_OK;
}

static enum status
prune_page(struct redis_keys *k, const redisReply *listed, struct err *err)
{
	for (size_t n = 0; n < listed->elements; n++)
		link_add(k->source, 2,
			 (struct str[]){ STR("EXISTS"), reply_text(listed->element[n]) });
	for (size_t n = 0; n < listed->elements; n++) {
		struct str key = reply_text(listed->element[n]);
		redisReply *reply;
		bool gone, ok = true;

		TRY(link_reply(k->source, &reply, err));
		gone = reply->type == REDIS_REPLY_INTEGER && reply->integer == 0;
		freeReplyObject(reply);
		if (gone)
			TRY(put(k, key, (struct str[]){ STR("DEL"), key }, 2, &ok, err));
	}
	return STATUS_OK;
}

enum status
redis_keys_prune(struct redis_keys *k, struct err *err)
{
	char cursor[NUMBER_BYTES] = "0";

	do {
		redisReply *reply;
		enum status status = STATUS_OK;

		TRY(link_ask(k->target, &reply, err, "SCAN", cursor, "COUNT", PIECE_TEXT, NULL));
		if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) {
			status = err_set(err, STATUS_INVALID, "%s: SCAN: %s", link_name(k->target),
					 reply_is_error(reply) ? reply->str : "no answer");
		} else {
			(void)snprintf(cursor, sizeof(cursor), "%s", reply->element[0]->str);
			status = prune_page(k, reply->element[1], err);
		}
		freeReplyObject(reply);
		TRY(status);
	} while (strcmp(cursor, "0") != 0 && !import_stopped());
	return STATUS_OK;
}
