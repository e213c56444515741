/* find, getMore, killCursors: documents in batches. */
#include "door/mongo/client.h"
#include "door/mongo/commands.h"
#include "door/mongo/cursor.h"
#include "door/mongo/data.h"
#include "door/mongo/run.h"

enum {
	FIND_FILTER,
	FIND_SORT,
	FIND_PROJECTION,
	FIND_SKIP,
	FIND_LIMIT,
	FIND_BATCH,
	FIND_SINGLE,
	FIND_STAYS,
	FIND_HINT,
	FIND_MAX,
	FIND_MIN,
	FIND_KEY,
	FIND_RECORD,
	FIND_TAILABLE,
	FIND_AWAIT,
	FIND_PARTIAL,
	FIND_COLLATION,
	FIND_DISK,
	FIND_LET,
	FIND_OPLOG,
	MORE_COLLECTION = 0,
	MORE_BATCH,
	MORE_TERM,
	MORE_KNOWN,
	KILL_CURSORS = 0,
	FIRST_BATCH_DOCS = 101,
	BATCH_BYTES = 16 * 1024 * 1024,
};

const struct arg args_find[] = {
	[FIND_FILTER] = { "filter", ARG_OBJECT },
	[FIND_SORT] = { "sort", ARG_OBJECT },
	[FIND_PROJECTION] = { "projection", ARG_OBJECT },
	[FIND_SKIP] = { "skip", ARG_NUMBER },
	[FIND_LIMIT] = { "limit", ARG_NUMBER },
	[FIND_BATCH] = { "batchSize", ARG_NUMBER },
	[FIND_SINGLE] = { "singleBatch", ARG_BOOL },
	[FIND_STAYS] = { "noCursorTimeout", ARG_BOOL },
	[FIND_HINT] = { "hint", ARG_OBJECT | ARG_STRING },
	[FIND_MAX] = { "max", ARG_OBJECT },
	[FIND_MIN] = { "min", ARG_OBJECT },
	[FIND_KEY] = { "returnKey", ARG_BOOL },
	[FIND_RECORD] = { "showRecordId", ARG_BOOL },
	[FIND_TAILABLE] = { "tailable", ARG_BOOL },
	[FIND_AWAIT] = { "awaitData", ARG_BOOL },
	[FIND_PARTIAL] = { "allowPartialResults", ARG_BOOL },
	[FIND_COLLATION] = { "collation", ARG_OBJECT },
	[FIND_DISK] = { "allowDiskUse", ARG_BOOL },
	[FIND_LET] = { "let", ARG_OBJECT },
	[FIND_OPLOG] = { "oplogReplay", ARG_BOOL },
	{ NULL, 0 },
};

const struct arg args_get_more[] = {
	[MORE_COLLECTION] = { "collection", ARG_STRING | ARG_REQUIRED },
	[MORE_BATCH] = { "batchSize", ARG_NUMBER },
	[MORE_TERM] = { "term", ARG_NUMBER },
	[MORE_KNOWN] = { "lastKnownCommittedOpTime", ARG_ANY },
	{ NULL, 0 },
};

const struct arg args_kill_cursors[] = {
	[KILL_CURSORS] = { "cursors", ARG_ARRAY | ARG_REQUIRED },
	{ NULL, 0 },
};

/* A batch that is being read. */
struct batch {
	struct data data;
	struct data_filter filter;
	struct plain_range range;
	uint64_t skip;
	uint64_t want;
	struct str *docs; /* in the arena */
	size_t count;
	size_t cap;
	bool more;
	struct buf place; /* behind the last of them */
};

static enum status
batch_add(struct batch *b, struct str doc)
{
	struct str *docs = arena_grow(b->data.call->arena, b->docs, b->count, &b->cap,
				      sizeof(*docs));

	if (!docs)
		return STATUS_LIMIT;
	b->docs = docs;
	docs[b->count++] = doc;
	return STATUS_OK;
}

static enum status
batch_skip(struct plain_scan *scan, uint64_t n, struct arena *arena)
{
	struct arena_mark mark = arena_mark(arena);
	struct str doc;

	for (; n; n--) {
		TRY(plain_scan_next(scan, arena, &doc));
		arena_reset(arena, mark);
	}
	return STATUS_OK;
}

static enum status
batch_scan(struct batch *b, struct plain_scan *scan)
{
	struct call *c = b->data.call;
	size_t bytes = 0;
	struct str doc;

	TRY(batch_skip(scan, b->skip, c->arena));
	while (b->count < b->want && bytes < BATCH_BYTES) {
		if (mongo_client_is_interrupted(c->client))
			return call_fail(c, MONGO_INTERRUPTED, "operation was interrupted");
		TRY(plain_scan_next(scan, c->arena, &doc));
		TRY(batch_add(b, doc));
		bytes += doc.len;
	}
	return STATUS_OK;
}

static enum status
batch_read(struct kv_tx *tx, void *arg)
{
	struct batch *b = arg;
	struct plain_scan scan = { 0 };
	struct call *c = b->data.call;
	enum status status;
	struct str doc;

	b->docs = NULL;
	b->count = b->cap = 0;
	b->more = false;
	TRY(data_begin(&b->data, tx));
	if (!b->data.is_there)
		return STATUS_OK;
	if (b->filter.by_id) {
		status = b->skip ? STATUS_NOT_FOUND
				 : plain_get(&b->data.plain, &b->filter.id, KV_SNAPSHOT, c->arena,
					     &doc);
		if (status == STATUS_OK)
			status = batch_add(b, doc);
		return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	}
	status = plain_scan_open(&scan, &b->data.plain, &b->range);
	if (status == STATUS_OK)
		status = batch_scan(b, &scan);
	b->more = status == STATUS_OK;
	if (b->more) {
		buf_clear(&b->place);
		buf_append_str(&b->place, plain_scan_place(&scan));
		status = buf_status(&b->place);
	}
	plain_scan_close(&scan);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static void
put_batch(struct call *c, const struct batch *b, struct str name, int64_t id)
{
	bson_begin_document(c->reply, STR("cursor"));
	bson_begin_array(c->reply, name);
	for (size_t i = 0; i < b->count; i++)
		bson_put_document(c->reply, STR(""), b->docs[i]);
	bson_end(c->reply);
	bson_put_int64(c->reply, STR("id"), id);
	bson_put_string(c->reply, STR("ns"), b->data.ns);
	bson_end(c->reply);
}

/* ---- find ---- */

/* Arguments that would change the answer, and are not there yet, are refused by name. */
static enum status
find_check(struct call *c)
{
	static const size_t absent[] = { FIND_MAX,    FIND_MIN,      FIND_KEY,
					 FIND_RECORD, FIND_TAILABLE, FIND_COLLATION };

	if (call_has(c, FIND_PROJECTION) && !bson_is_empty(c->args[FIND_PROJECTION].value.text))
		return call_fail(c, MONGO_NOT_IMPLEMENTED, "projections are not there yet");
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		const struct arg_value *v = &c->args[absent[i]];

		if (v->given && (bson_is_container(&v->value) ? !bson_is_empty(v->value.text)
							      : bson_is_true(&v->value)))
			return call_fail(c, MONGO_NOT_IMPLEMENTED, "find.%s is not there yet",
					 args_find[absent[i]].name);
	}
	if (call_i64(c, FIND_SKIP, 0) < 0)
		return call_fail(c, MONGO_BAD_VALUE,
				 "BSON field 'skip' value must be >= 0, actual "
				 "value '%lld'",
				 (long long)call_i64(c, FIND_SKIP, 0));
	if (call_i64(c, FIND_LIMIT, 0) < 0)
		return call_fail(c, MONGO_BAD_VALUE,
				 "BSON field 'limit' value must be >= 0, "
				 "actual value '%lld'",
				 (long long)call_i64(c, FIND_LIMIT, 0));
	if (call_i64(c, FIND_BATCH, 0) < 0)
		return call_fail(c, MONGO_BAD_VALUE,
				 "BSON field 'batchSize' value must be >= 0, "
				 "actual value '%lld'",
				 (long long)call_i64(c, FIND_BATCH, 0));
	return STATUS_OK;
}

/* {_id: 1} or {_id: -1} */
static enum status
find_order(struct call *c, bool *ret_reverse)
{
	struct bson_element e;
	struct bson_iter i;
	int64_t n;

	*ret_reverse = false;
	if (!call_has(c, FIND_SORT))
		return STATUS_OK;
	for (bson_iter_begin(&i, c->args[FIND_SORT].value.text); bson_iter_read(&i, &e);) {
		if (!(str_eq(e.name, STR("_id")) || str_eq(e.name, STR("$natural"))) ||
		    !bson_to_int64(&e.value, &n) || (n != 1 && n != -1))
			return call_fail(c, MONGO_NOT_IMPLEMENTED,
					 "sorting by other fields than _id is not there yet");
		*ret_reverse = n < 0;
	}
	return STATUS_OK;
}

/* Keeps a cursor for what is left. */
static enum status
find_keep(struct call *c, const struct batch *b, uint64_t left, int64_t *ret)
{
	struct cursor *cursor = cursor_new(c->mongo, b->data.ns, c->client->user_name);

	if (!cursor)
		return call_fail(c, MONGO_EXCEEDED_MEMORY_LIMIT,
				 "there are too many cursors; the limit, MONGO_CURSORS, is %d",
				 MONGO_CURSORS);
	cursor->left = left;
	cursor->reverse = b->range.reverse;
	cursor->stays = call_bool(c, FIND_STAYS, false);
	cursor->has_session = c->lsid.ptr;
	if (c->lsid.ptr)
		memcpy(cursor->session, c->lsid.ptr, sizeof(cursor->session));
	buf_append_str(&cursor->place, buf_str(&b->place));
	*ret = cursor->id;
	if (buf_status(&cursor->place) != STATUS_OK) {
		cursor_free(c->mongo, cursor);
		return STATUS_NOMEM;
	}
	cursor_give(c->mongo, cursor);
	return STATUS_OK;
}

static enum status
find_run(struct call *c, struct batch *b)
{
	uint64_t limit = (uint64_t)call_i64(c, FIND_LIMIT, 0);
	uint64_t left = limit ? limit : UINT64_MAX;
	int64_t id = 0;

	TRY(find_check(c));
	TRY(find_order(c, &b->range.reverse));
	if (call_has(c, FIND_FILTER))
		TRY(data_filter_read(c, c->args[FIND_FILTER].value.text, &b->filter));
	b->range.mode = KV_SNAPSHOT;
	b->skip = (uint64_t)call_i64(c, FIND_SKIP, 0);
	b->want = (uint64_t)call_i64(c, FIND_BATCH, FIRST_BATCH_DOCS);
	if (b->want > left)
		b->want = left;
	TRY(call_read(c, batch_read, b));
	left -= limit ? b->count : 0;
	if (b->more && left && !call_bool(c, FIND_SINGLE, false))
		TRY(find_keep(c, b, left, &id));
	put_batch(c, b, STR("firstBatch"), id);
	return STATUS_OK;
}

enum status
mongo_run_find(struct call *c)
{
	struct batch b = { .place = BUF_INIT(CURSOR_PLACE_BYTES) };
	struct str ns;
	enum status status = data_ns(c, &ns);

	if (status == STATUS_OK) {
		data_init(&b.data, c, ns, false);
		status = find_run(c, &b);
	}
	data_fini(&b.data);
	buf_release(&b.place);
	return status;
}

/* ---- getMore ---- */

static enum status
more_run(struct call *c, struct cursor *cursor, struct batch *b)
{
	int64_t size = call_i64(c, MORE_BATCH, 0);

	if (size < 0)
		return call_fail(c, MONGO_BAD_VALUE, "batchSize has to be at least 0");
	b->range = (struct plain_range){ .mode = KV_SNAPSHOT,
					 .reverse = cursor->reverse,
					 .resume = buf_str(&cursor->place) };
	b->want = size ? (uint64_t)size : UINT64_MAX;
	if (b->want > cursor->left)
		b->want = cursor->left;
	TRY(call_read(c, batch_read, b));
	if (cursor->left != UINT64_MAX)
		cursor->left -= b->count;
	b->more = b->more && cursor->left;
	if (b->more) {
		buf_clear(&cursor->place);
		buf_append_str(&cursor->place, buf_str(&b->place));
		TRY(buf_status(&cursor->place));
	}
	c->again = b->more;
	put_batch(c, b, STR("nextBatch"), b->more ? cursor->id : 0);
	return STATUS_OK;
}

enum status
mongo_run_get_more(struct call *c)
{
	struct batch b = { .place = BUF_INIT(CURSOR_PLACE_BYTES) };
	struct cursor *cursor = NULL;
	enum status status;
	struct str ns;
	int64_t id;

	if (!bson_to_int64(&c->first, &id))
		return call_fail(
			c, MONGO_TYPE_MISMATCH,
			"BSON field 'getMore.getMore' is the wrong type '%s', expected type "
			"'long'",
			bson_type_name(c->first.type));
	c->collection = call_text(c, MORE_COLLECTION);
	status = data_ns(c, &ns);
	if (status == STATUS_OK)
		cursor = cursor_take(c->mongo, id, ns, c->client->user_name);
	if (status == STATUS_OK && !cursor)
		return call_fail(c, MONGO_CURSOR_NOT_FOUND, "cursor id %lld not found",
				 (long long)id);
	if (status == STATUS_OK) {
		data_init(&b.data, c, ns, false);
		status = more_run(c, cursor, &b);
		if (status == STATUS_OK && b.more)
			cursor_give(c->mongo, cursor);
		else
			cursor_free(c->mongo, cursor);
	}
	data_fini(&b.data);
	buf_release(&b.place);
	return status;
}

/* Appends the cursors of the list that were there, or those that were not. */
static void
put_killed(struct call *c, const bool *killed, bool wanted)
{
	struct str ids = c->args[KILL_CURSORS].value.text;
	struct bson_element e;
	struct bson_iter i;
	size_t at = 0;

	for (bson_iter_begin(&i, ids); bson_iter_read(&i, &e); at++)
		if (killed[at] == wanted)
			bson_put(c->reply, STR(""), &e.value);
}

enum status
mongo_run_kill_cursors(struct call *c)
{
	struct str ids = c->args[KILL_CURSORS].value.text;
	bool *killed = arena_zalloc(c->arena, bson_count(ids) + 1);
	struct bson_element e;
	struct bson_iter i;
	size_t at = 0;
	struct str ns;
	int64_t id;

	if (!killed)
		return STATUS_LIMIT;
	TRY(data_ns(c, &ns));
	for (bson_iter_begin(&i, ids); bson_iter_read(&i, &e); at++)
		killed[at] = bson_to_int64(&e.value, &id) &&
			     cursor_kill(c->mongo, id, ns, c->client->user_name);
	bson_begin_array(c->reply, STR("cursorsKilled"));
	put_killed(c, killed, true);
	bson_end(c->reply);
	bson_begin_array(c->reply, STR("cursorsNotFound"));
	put_killed(c, killed, false);
	bson_end(c->reply);
	bson_begin_array(c->reply, STR("cursorsAlive"));
	bson_end(c->reply);
	bson_begin_array(c->reply, STR("cursorsUnknown"));
	bson_end(c->reply);
	return STATUS_OK;
}
