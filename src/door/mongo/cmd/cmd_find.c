/* find, getMore, killCursors: documents in batches. */
#include <assert.h>

#include "base/clear.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/cmd/view.h"
#include "door/mongo/index/index.h"
#include "door/mongo/plan/sorted.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/cursor.h"
#include "door/mongo/txn/snapshot.h"
#include "door/mongo/watch/watch.h"
#include "mql/stage/project.h"

enum {
	FIRST_BATCH_DOCS = 101,
};

#define ARGS_FIND(ARG)                                                                             \
	ARG(FIND_FILTER, "filter", ARG_OBJECT)                                                     \
	ARG(FIND_SORT, "sort", ARG_OBJECT)                                                         \
	ARG(FIND_PROJECTION, "projection", ARG_OBJECT)                                             \
	ARG(FIND_SKIP, "skip", ARG_NUMBER)                                                         \
	ARG(FIND_LIMIT, "limit", ARG_NUMBER)                                                       \
	ARG(FIND_BATCH, "batchSize", ARG_NUMBER)                                                   \
	ARG(FIND_SINGLE, "singleBatch", ARG_BOOL)                                                  \
	ARG(FIND_STAYS, "noCursorTimeout", ARG_BOOL)                                               \
	ARG(FIND_HINT, "hint", ARG_OBJECT | ARG_STRING)                                            \
	ARG(FIND_MAX, "max", ARG_OBJECT)                                                           \
	ARG(FIND_MIN, "min", ARG_OBJECT)                                                           \
	ARG(FIND_KEY, "returnKey", ARG_BOOL)                                                       \
	ARG(FIND_RECORD, "showRecordId", ARG_BOOL)                                                 \
	ARG(FIND_TAILABLE, "tailable", ARG_BOOL)                                                   \
	ARG(FIND_AWAIT, "awaitData", ARG_BOOL)                                                     \
	ARG(FIND_PARTIAL, "allowPartialResults", ARG_BOOL)                                         \
	ARG(FIND_COLLATION, "collation", ARG_OBJECT)                                               \
	ARG(FIND_DISK, "allowDiskUse", ARG_BOOL)                                                   \
	ARG(FIND_LET, "let", ARG_OBJECT)                                                           \
	ARG(FIND_OPLOG, "oplogReplay", ARG_BOOL)
ARGS_DEFINE(args_find, ARGS_FIND);

#define ARGS_GET_MORE(ARG)                                                                         \
	ARG(MORE_COLLECTION, "collection", ARG_STRING | ARG_REQUIRED)                              \
	ARG(MORE_BATCH, "batchSize", ARG_NUMBER)                                                   \
	ARG(MORE_TERM, "term", ARG_NUMBER)                                                         \
	ARG(MORE_KNOWN, "lastKnownCommittedOpTime", ARG_ANY)
ARGS_DEFINE(args_get_more, ARGS_GET_MORE);

#define ARGS_KILL_CURSORS(ARG) ARG(KILL_CURSORS, "cursors", ARG_ARRAY | ARG_REQUIRED)
ARGS_DEFINE(args_kill_cursors, ARGS_KILL_CURSORS);

/* A document that was read ahead. */
struct find_row {
	struct str doc;
	struct str shown; /* what the projection makes of it */
	struct str place; /* behind it: query_place() */
	int64_t position;
};

/* A find, at its beginning or where a cursor goes on. */
struct find {
	struct query query;
	struct mql_projection *projection; /* NULL: whole documents */
	struct mql_paths looks;            /* the paths that it looks at */
	struct plan_cover cover;           /* the members that an index may have */
	struct str covered[INDEX_COLUMNS]; /* their names */
	bool key_only;                     /* returnKey */
	bool record_id;                    /* showRecordId */
	struct str sort;                   /* ptr NULL: the order of the query */
	struct sorted sorted;
	uint64_t at; /* of the rows that are sorted */
	uint64_t skip;
	uint64_t left; /* of the limit; UINT64_MAX: there is none */
	uint64_t want; /* documents, at most */
	uint64_t count;
	bool ended;
	/*
	 * Where the projection calls functions in JavaScript, documents are read ahead, and are
	 * projected together.
	 */
	struct mql_batch batch; /* its arena NULL: the projection calls none */
	struct find_row *rows;  /* in the batch's arena */
	struct buf place;       /* behind the row that was given last */
};

/* The query is kilobytes, which query_open() sets. */
static void
find_init(struct find *f)
{
	f->query.call = NULL;
	CLEAR_BEHIND(f, query, projection);
}

/* How many documents of the query are wanted, those that are skipped too; 0: all. */
static uint64_t
find_most(const struct find *f)
{
	return f->left < UINT64_MAX - f->skip ? f->left + f->skip : 0;
}

/* How many are likely to be read for the batch, likewise; 0: many. */
static size_t
find_first(const struct find *f)
{
	uint64_t n = f->want < f->left ? f->want : f->left;

	if (n > PLAN_FIRST_MOST || f->skip > PLAN_FIRST_MOST)
		return 0;
	return n ? (size_t)(n + f->skip) : 1;
}

static enum status
find_compile_projection(struct call *c, struct find *f, struct str projection)
{
	struct query *q = &f->query;
	size_t scripts = q->mql.script_count;

	if (bson_is_empty(projection))
		return STATUS_OK;
	TRY(data_mql_status(
		c, &q->mql,
		mql_projection_compile(&q->mql, projection, q->match, q->scope, &f->projection)));
	if (!f->sort.ptr) {
		TRY(mql_projection_paths(f->projection, &q->mql, &f->looks));
		q->ask.looks = &f->looks;
	}
	if (q->mql.script_count == scripts || f->key_only)
		return STATUS_OK;
	f->place = BUF_SHORT(QUERY_PLACE_BYTES);
	buf_append_str(&f->place, q->ask.place);
	TRY(buf_status(&f->place));
	return mql_batch_init(&f->batch, QUERY_BYTES, arena_part(c->arena));
}

/*
 * `request` is the command, which a cursor keeps; its skip and limit are the caller's. `place` is
 * that of a cursor, or ptr NULL for a new query.
 */
static enum status
find_open(struct call *c, struct find *f, struct str ns, struct str request, struct str place)
{
	struct query_ask ask = { .filter = bson_find_document(request, STR("filter")),
				 .takes_where = true,
				 .let = bson_find_document(request, STR("let")),
				 .first = find_first(f),
				 .place = place };
	struct str sort = bson_find_document(request, STR("sort"));
	struct str projection = bson_find_document(request, STR("projection"));
	struct query *q = &f->query;

	f->key_only = bson_find_true(request, STR("returnKey"));
	f->record_id = bson_find_true(request, STR("showRecordId"));
	ask.keys = f->key_only;
	f->cover = (struct plan_cover){ .filter = ask.filter,
					.fields = f->covered,
					.keeps_order = true };
	if (!f->key_only && !f->record_id && plan_cover_projection(&f->cover, projection, sort))
		ask.cover = &f->cover;
	query_choose_collation(c, bson_find_document(request, STR("collation")), &ask);
	TRY(query_read_value(c, request, STR("hint"), &ask.hint));
	TRY(query_read_value(c, request, STR("min"), &ask.min));
	TRY(query_read_value(c, request, STR("max"), &ask.max));
	if (!query_order(&ask, sort, &ask.order)) {
		ask.order = 0;
		ask.sort = sort;
		ask.most = find_most(f);
		/* A cursor without rows goes on in the order of its index. */
		ask.sorted = place.ptr;
		f->sort = sort;
	}
	TRY(query_open(q, c, ns, &ask));
	TRY(find_compile_projection(c, f, projection));
	q->compiled = arena_mark(q->arena);
	return STATUS_OK;
}

static void
find_close(struct find *f)
{
	sorted_fini(&f->sorted);
	query_close(&f->query);
	mql_batch_fini(&f->batch);
	buf_release(&f->place);
}

/* ---- Documents ---- */

/* Sorts all that is found, if there is a sort that no index gives. */
static enum status
find_sort(struct call *c, struct find *f)
{
	uint64_t most = find_most(f);
	bool sorted;

	if (!f->sort.ptr)
		return STATUS_OK;
	TRY(query_is_sorted(&f->query, &sorted));
	if (sorted) {
		f->sort = (struct str){ 0 };
		return STATUS_OK;
	}
	TRY(sorted_read(&f->sorted, c, &f->query, f->sort, most ? most : UINT64_MAX));
	f->at = f->skip;
	f->skip = 0;
	return STATUS_OK;
}

static enum status
find_next(struct find *f, struct str *ret, int64_t *ret_position)
{
	if (f->sort.ptr) {
		const struct sorted_row *row;

		if (f->at >= f->sorted.count)
			return STATUS_NOT_FOUND;
		row = f->sorted.rows[f->at++];
		*ret = row->doc;
		*ret_position = row->position;
		return STATUS_OK;
	}
	do
		TRY(query_next(&f->query, ret));
	while (f->skip && f->skip--);
	*ret_position = query_position(&f->query);
	return STATUS_OK;
}

/* The value at a path through documents, or null. */
static struct bson_value
find_value_at(struct str doc, struct str path)
{
	struct bson_value v;

	return bson_find_nested(doc, path, &v) ? v : BSON_OF_NULL;
}

/*
 * The members of the key that the document was found by. Rows that were sorted have no entry any
 * more, and entries no values that are too long: those come from the document.
 */
static void
find_put_key(const struct find *f, struct str doc, struct bson_builder *ret)
{
	const struct query *q = &f->query;
	struct str values = f->sort.ptr ? STR("") : query_key(q);
	struct bson_element e, value;
	struct bson_iter i, k;

	if (!q->plan.def) {
		value.value = find_value_at(doc, STR("_id"));
		if (q->plan.kind == PLAN_POINTS || !value_interval_is_all(&q->plan.bounds) ||
		    q->ask.hint || q->ask.order)
			bson_put(ret, STR("_id"), &value.value);
		return;
	}
	bson_iter_begin(&i, index_key_of(q->plan.def));
	bson_iter_begin(&k, values.len ? values : BSON_EMPTY);
	while (bson_iter_read(&i, &e)) {
		if (!values.len || !bson_iter_read(&k, &value))
			value.value = find_value_at(doc, e.name);
		bson_put(ret, e.name, &value.value);
	}
}

static void
find_put_record(struct str doc, struct bson_builder *ret)
{
	struct bson_value id = BSON_OF_NULL;

	(void)bson_find(doc, STR("_id"), &id);
	bson_put(ret, STR("$recordId"), &id);
}

/* Writes a document whose projection is `shown`. */
static void
find_put_shown(const struct find *f, struct str doc, struct str shown, struct bson_builder *ret)
{
	if (!f->record_id) {
		bson_put_document(ret, STR(""), shown);
		return;
	}
	bson_begin_document(ret, STR(""));
	bson_put_elements(ret, shown);
	find_put_record(doc, ret);
	bson_end(ret);
}

/* Writes a document as the client wants it, as the next member of an array that is being built. */
static enum status
find_put(struct call *c, struct find *f, struct str doc, int64_t position, struct bson_builder *ret)
{
	struct query *q = &f->query;
	struct arena_mark mark = arena_mark(q->arena);
	struct str shown = doc;

	if (f->key_only) {
		bson_begin_document(ret, STR(""));
		find_put_key(f, doc, ret);
		bson_end(ret);
		return STATUS_OK;
	}
	if (f->projection)
		TRY(data_mql_status(c, &q->mql,
				    mql_projection_run(f->projection, &q->mql, doc, position,
						       q->bound, &shown)));
	find_put_shown(f, doc, shown, ret);
	arena_reset(q->arena, mark);
	return STATUS_OK;
}

/* ---- Documents that are projected together ---- */

static enum status
find_row_read(void *arg, size_t *ret_bytes)
{
	struct find *f = arg;
	struct arena *arena = f->batch.arena;
	struct find_row *row = &f->rows[f->batch.count];
	struct str doc;

	TRY(find_next(f, &doc, &row->position));
	*ret_bytes = doc.len;
	row->doc = arena_dup(arena, doc);
	row->place = arena_dup(arena, query_place(&f->query));
	return row->doc.ptr && row->place.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
row_project(void *arg, struct mql *mql, size_t i)
{
	struct find *f = arg;
	struct find_row *row = &f->rows[i];
	struct arena_mark mark = arena_mark(mql->arena);
	struct str shown;

	TRY(mql_projection_run(f->projection, mql, row->doc, row->position, f->query.bound,
			       &shown));
	row->shown = arena_dup(f->batch.arena, shown);
	arena_reset(mql->arena, mark);
	return row->shown.ptr ? STATUS_OK : STATUS_LIMIT;
}

/* Reads rows if none is left, no more than `wanted`. STATUS_NOT_FOUND: there are none. */
static enum status
rows_reach(struct call *c, struct find *f, uint64_t wanted)
{
	struct mql_batch *b = &f->batch;
	struct mql *q = &f->query.mql;

	while (b->at == b->count) {
		if (b->failed != STATUS_OK)
			return data_mql_status(c, q, mql_batch_failure(b, q));
		if (b->ended)
			return STATUS_NOT_FOUND;
		if (b->want > wanted)
			b->want = (size_t)wanted;
		f->rows = mql_batch_begin(b, sizeof(*f->rows));
		if (!f->rows)
			return STATUS_LIMIT;
		mql_batch_read(b, find_row_read, f);
		data_mql_take_code(c, q);
		mql_batch_run(b, q, row_project, f);
	}
	return STATUS_OK;
}

/* ---- Batches ---- */

/* Writes the next document; `wanted` of them are wanted now. STATUS_NOT_FOUND at the end. */
static enum status
find_put_next(struct call *c, struct find *f, uint64_t wanted, struct bson_builder *ret)
{
	const struct find_row *row;
	int64_t position;
	struct str doc;

	if (!f->batch.arena) {
		TRY(find_next(f, &doc, &position));
		return find_put(c, f, doc, position, ret);
	}
	TRY(rows_reach(c, f, wanted));
	row = &f->rows[f->batch.at++];
	find_put_shown(f, row->doc, row->shown, ret);
	buf_set(&f->place, row->place);
	return buf_status(&f->place);
}

/* Behind the document that was written last. */
static struct str
find_place(const struct find *f)
{
	return f->batch.arena ? buf_str(&f->place) : query_place(&f->query);
}

/* Appends the documents of a batch to the answer. */
static enum status
find_read(struct call *c, struct find *f)
{
	const struct buf *out = c->reply->out;
	size_t from = out->len;

	while (f->left && f->count < f->want && cursor_batch_has_room(c, out->len - from)) {
		uint64_t wanted = f->want - f->count < f->left ? f->want - f->count : f->left;
		enum status status = find_put_next(c, f, wanted, c->reply);

		if (status == STATUS_NOT_FOUND) {
			f->ended = true;
			return STATUS_OK;
		}
		TRY(status);
		f->count++;
		/* UINT64_MAX is a find without a limit. */
		if (f->left != UINT64_MAX)
			f->left--;
	}
	f->ended = !f->left ||
		   (f->sort.ptr && f->at >= f->sorted.count && f->batch.at == f->batch.count);
	return buf_status(out);
}

static void
begin_batch(struct call *c, struct str name)
{
	bson_begin_document(c->reply, STR("cursor"));
	bson_begin_array(c->reply, name);
}

static void
put_cursor(struct call *c, int64_t id, struct str ns)
{
	bson_end(c->reply);
	bson_put_int64(c->reply, STR("id"), id);
	bson_put_string(c->reply, STR("ns"), ns);
	snapshot_put(c);
	bson_end(c->reply);
}

/* ---- find ---- */

static enum status
check_least(struct call *c, size_t arg)
{
	if (call_i64(c, arg, 0) >= 0)
		return STATUS_OK;
	return call_fail(c, MONGO_BAD_VALUE,
			 "BSON field '%s' value must be >= 0, actual value '%lld'",
			 args_find[arg].name, (long long)call_i64(c, arg, 0));
}

static enum status
find_check(struct call *c)
{
	if (call_bool(c, FIND_TAILABLE, false))
		return call_fail(c, MONGO_BAD_VALUE,
				 "error processing query: planner returned error :: caused by :: "
				 "tailable cursor requested on non capped collection");
	if (call_bool(c, FIND_AWAIT, false))
		return call_fail(c, MONGO_FAILED_TO_PARSE,
				 "Cannot set 'awaitData' without also setting 'tailable'");
	TRY(check_least(c, FIND_SKIP));
	TRY(check_least(c, FIND_LIMIT));
	return check_least(c, FIND_BATCH);
}

/*
 * The documents that are left go with the cursor: those that were sorted, and those of a snapshot,
 * whose version nobody keeps until the next command.
 */
static enum status
keep_rows(struct call *c, struct find *f, struct cursor *cursor)
{
	struct buf AUTO(buf_release) out = BUF_INIT_OF(CURSOR_ROWS_BYTES, arena_part(c->arena));
	struct bson_builder b;
	enum status status = STATUS_OK;

	bson_builder_init(&b, &out);
	bson_begin_outer_array(&b);
	for (uint64_t left = f->left; left && status == STATUS_OK; left--)
		status = find_put_next(c, f, left, &b);
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	bson_end(&b);
	TRY(buf_status(&out));
	return cursor_set_rows(cursor, &out);
}

/* The command, as a cursor keeps it: with the collation that it has begun with. */
static enum status
keep_request(struct call *c, struct find *f, struct cursor *cursor)
{
	struct buf AUTO(buf_release) made = BUF_INIT_OF(CURSOR_REQUEST_BYTES, arena_part(c->arena));
	struct str place = find_place(f);
	struct bson_element e;
	struct bson_builder b;
	struct bson_iter i;

	if (!f->query.ask.takes_collation || !c->collation.len)
		return cursor_set(cursor, c->body, place);
	bson_open(&b, &made);
	for (bson_iter_begin(&i, c->body); bson_iter_read(&i, &e);)
		if (!str_eq(e.name, STR("collation")))
			bson_put_element(&b, &e);
	bson_put_document(&b, STR("collation"), c->collation);
	bson_end(&b);
	TRY(buf_status(&made));
	return cursor_set(cursor, buf_str(&made), place);
}

/* Keeps a cursor for what is left. */
static enum status
find_keep(struct call *c, struct find *f, struct str ns, int64_t *ret)
{
	struct cursor *cursor;
	enum status status;

	TRY(cursor_begin(c, ns, &cursor));
	cursor->skip = f->skip;
	cursor->left = f->left;
	cursor->max_ns = call_time_left(c);
	cursor->stays = call_bool(c, FIND_STAYS, false);
	status = f->sort.ptr || c->snapshot ? keep_rows(c, f, cursor) : keep_request(c, f, cursor);
	return cursor_keep(c, cursor, status, ret);
}

static enum status
find_run(struct call *c, struct find *f)
{
	int64_t limit, id = 0;
	struct str ns;

	TRY(data_ns(c, &ns));
	TRY(find_check(c));
	limit = call_i64(c, FIND_LIMIT, 0);
	f->skip = (uint64_t)call_i64(c, FIND_SKIP, 0);
	f->left = limit ? (uint64_t)limit : UINT64_MAX;
	f->want = (uint64_t)call_i64(c, FIND_BATCH, FIRST_BATCH_DOCS);
	if (call_bool(c, FIND_SINGLE, false))
		c->batch_bytes = CURSOR_BATCH_BYTES;
	TRY(find_open(c, f, ns, c->body, (struct str){ 0 }));
	TRY(find_sort(c, f));
	begin_batch(c, STR("firstBatch"));
	TRY(find_read(c, f));
	if (!f->ended && !call_bool(c, FIND_SINGLE, false))
		TRY(find_keep(c, f, ns, &id));
	put_cursor(c, id, ns);
	return STATUS_OK;
}

enum status
mongo_run_find(struct call *c)
{
	struct call_mark mark = call_mark(c);
	enum status status;
	struct find f;
	struct str ns;

	find_init(&f);
	status = find_run(c, &f);
	find_close(&f);
	if (status == STATUS_OK || c->code != MONGO_NOT_ON_VIEW)
		return status;
	call_go_back(c, mark);
	TRY(data_ns(c, &ns));
	return view_find(c, ns);
}

/* ---- getMore ---- */

/* The next batch of documents that were sorted. */
static enum status
more_rows(struct call *c, struct cursor *cursor, struct find *f)
{
	const struct buf *out = c->reply->out;
	size_t from = out->len;
	struct bson_element e;
	struct bson_iter i;

	bson_iter_begin(&i, buf_str(&cursor->rows));
	/* Nobody else reads the cursor meanwhile: a getMore has it to itself (cursor_take()). */
	assert(cursor->rows_at <= cursor->rows.len);
	if (cursor->rows_at)
		i.at = cursor->rows.ptr + cursor->rows_at;
	f->ended = true;
	while (f->ended && bson_iter_read(&i, &e)) {
		bson_put(c->reply, STR(""), &e.value);
		f->count++;
		cursor->rows_at = (size_t)(i.at - cursor->rows.ptr);
		f->ended = f->count < f->want && cursor_batch_has_room(c, out->len - from);
	}
	if (!f->ended)
		f->ended = !bson_iter_read(&i, &e);
	return buf_status(out);
}

static enum status
more_run(struct call *c, struct cursor *cursor, struct find *f, struct str ns)
{
	int64_t size = call_i64(c, MORE_BATCH, 0);

	if (c->max_ns)
		return call_fail(c, MONGO_BAD_VALUE,
				 "cannot set maxTimeMS on getMore command for a non-awaitData "
				 "cursor");
	c->max_ns = cursor->max_ns;
	c->client->entry.op.until_ns = c->max_ns ? c->began_ns + c->max_ns : 0;
	if (cursor->live)
		return mongo_more_aggregate(c, cursor, ns, size ? (uint64_t)size : UINT64_MAX,
					    &f->ended);
	f->skip = cursor->skip;
	f->left = cursor->left;
	f->want = size ? (uint64_t)size : UINT64_MAX;
	begin_batch(c, STR("nextBatch"));
	if (cursor->rows.len) {
		TRY(more_rows(c, cursor, f));
		c->again = !f->ended;
		put_cursor(c, f->ended ? 0 : cursor->id, ns);
		return STATUS_OK;
	}
	TRY(find_open(c, f, ns, buf_str(&cursor->request),
		      cursor->place.len ? buf_str(&cursor->place) : STR("")));
	f->sort = (struct str){ 0 };
	TRY(find_read(c, f));
	cursor->skip = f->skip;
	cursor->left = f->left;
	buf_set(&cursor->place, find_place(f));
	TRY(buf_status(&cursor->place));
	c->again = !f->ended;
	put_cursor(c, f->ended ? 0 : cursor->id, ns);
	return STATUS_OK;
}

/* A cursor is its maker's; that of a bulkWrite is read by people who may read nothing of admin. */
static enum status
check_cursor_rights(struct call *c, unsigned needs)
{
	if (str_eq(c->db, STR("admin")) && str_eq(c->collection, STR(BULK_CURSOR_NAME)))
		return STATUS_OK;
	return call_check_rights(c, c->db, needs);
}

/* A cursor is read in the session that has made it, and in its transaction if that has one. */
static enum status
check_cursor_session(struct call *c, const struct cursor *cursor)
{
	const char *was = cursor->has_session ? "created in another session"
					      : "not created in a session";
	int code = 0;

	if (cursor->has_session && !c->lsid.ptr)
		code = MONGO_CURSOR_OF_SESSION;
	else if (!cursor->has_session && c->lsid.ptr)
		code = MONGO_CURSOR_OF_NO_SESSION;
	else if (c->lsid.ptr && memcmp(cursor->session, c->lsid.ptr, sizeof(cursor->session)) != 0)
		code = MONGO_CURSOR_OF_OTHER_SESSION;
	if (!code && cursor->txn == (c->in_transaction ? c->number : -1))
		return STATUS_OK;
	return call_fail(c, code ? code : MONGO_CURSOR_OF_OTHER,
			 "Cannot run getMore on cursor %lld, which was %s", (long long)cursor->id,
			 code ? was : "created in another transaction, or outside of one");
}

enum status
mongo_run_get_more(struct call *c)
{
	struct cursor *cursor;
	enum status status;
	struct find f;
	struct str ns;
	int64_t id;

	find_init(&f);
	if (c->first.type != BSON_INT64)
		return call_type_mismatch(c, &c->first, "type 'long'", "getMore.getMore");
	id = bson_integer(&c->first);
	c->collection = call_text(c, MORE_COLLECTION);
	TRY(check_cursor_rights(c, RIGHT_READ | RIGHT_ADMIN));
	TRY(data_ns(c, &ns));
	if (call_i64(c, MORE_BATCH, 0) < 0)
		return call_fail(c, MONGO_BAD_VALUE, "batchSize has to be at least 0");
	cursor = cursor_take(c->mongo, id, ns, c->client->entry.user);
	if (!cursor)
		return call_fail(c, MONGO_CURSOR_NOT_FOUND, "cursor id %lld not found",
				 (long long)id);
	status = check_cursor_session(c, cursor);
	if (status != STATUS_OK) {
		cursor_give(c->mongo, cursor);
		return status;
	}
	c->is_watch = cursor->watch;
	status = cursor->lists ? STATUS_OK : check_cursor_rights(c, RIGHT_READ);
	if (status == STATUS_OK)
		status = fail_more(c);
	if (status == STATUS_OK && cursor->watch)
		status = watch_more(c, cursor, call_i64(c, MORE_BATCH, 0), &f.ended);
	else if (status == STATUS_OK)
		status = more_run(c, cursor, &f, ns);
	find_close(&f);
	if (!cursor->watch)
		cursor->max_ns = call_time_left(c);
	if (status == STATUS_OK && !f.ended)
		cursor_give(c->mongo, cursor);
	else
		cursor_free(c->mongo, cursor);
	return status;
}

/* Appends the cursors of the list that were there, or those that were not. */
static void
put_killed(struct call *c, const bool *killed, bool wanted)
{
	struct str ids = bson_text(&c->args[KILL_CURSORS].value);
	struct bson_element e;
	struct bson_iter i;
	size_t at = 0;

	for (bson_iter_begin(&i, ids); bson_iter_read(&i, &e); at++)
		if (killed[at] == wanted && e.value.type == BSON_INT64)
			bson_put(c->reply, STR(""), &e.value);
}

enum status
mongo_run_kill_cursors(struct call *c)
{
	struct str ids = bson_text(&c->args[KILL_CURSORS].value);
	bool *killed = arena_zalloc(c->arena, bson_count(ids) + 1);
	struct bson_element e;
	struct bson_iter i;
	size_t at = 0;
	struct str ns;

	if (!killed)
		return STATUS_LIMIT;
	/* Those that are of no collection are of "$cmd.aggregate". */
	if (c->first.type != BSON_STRING)
		return call_fail(c, MONGO_INVALID_NAMESPACE, "collection name has invalid type %s",
				 bson_type_name(c->first.type));
	c->collection = bson_text(&c->first);
	TRY(check_cursor_rights(c, RIGHT_READ | RIGHT_ADMIN));
	TRY(data_ns(c, &ns));
	for (bson_iter_begin(&i, ids); bson_iter_read(&i, &e);)
		if (e.value.type != BSON_INT64 && e.value.type != BSON_NULL &&
		    e.value.type != BSON_UNDEFINED)
			return call_type_mismatch(c, &e.value, "type 'long'",
						  "killCursors.cursors.%.*s", STR_ARG(e.name));
	for (bson_iter_begin(&i, ids); bson_iter_read(&i, &e); at++)
		killed[at] = e.value.type == BSON_INT64 &&
			     cursor_kill(c->mongo, bson_integer(&e.value), ns,
					 c->client->entry.user);
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
