#include "door/mongo/watch.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "catalog/events.h"
#include "catalog/keys.h"
#include "door/mongo/client.h"
#include "door/mongo/cluster_time.h"
#include "door/mongo/cursor.h"
#include "door/mongo/data.h"
#include "door/mongo/run.h"

enum {
	TOKEN_BYTES = CATALOG_SEQ_BYTES + 9,
	TOKEN_HEX_BYTES = 2 * TOKEN_BYTES,
	LEAST_EVENTS = 10, /* of a collection, in one look */
	DAY_MS = 24 * 60 * 60 * 1000,
	BATCH_BYTES = 15 * 1024 * 1024,
	NS_BYTES = 256,
};

/* A place, as clients are told it. */
struct token {
	struct catalog_seq seq;
	uint64_t ms; /* when it was told; 0: not known */
	bool ended;  /* the stream has ended there */
};

struct watch {
	bool is_collection;
	char prefix[NS_BYTES]; /* "db.collection"; "db."; empty: all */
	bool looks_up;         /* fullDocument: "updateLookup" */
	bool begun;            /* `place` is known */
	struct token place;
	struct catalog_db *db; /* of a collection, as it was seen last; NULL: not yet */
};

/* A collection in one look. */
struct watched {
	struct catalog_db *db;
	struct plain plain;
};

struct happened {
	struct plain_event event;
	struct watched *of;
	bool has_full;
	struct str full; /* empty: there is no such document any more */
};

/* One look at the logs. */
struct look {
	struct call *call;
	struct watch *watch;
	struct arena_mark mark;
	size_t most;
	bool waits; /* if there is nothing, what wakes is watched */

	struct watched *collections;
	size_t collection_count;
	struct happened *events; /* in the arena */
	size_t count, cap;
	struct catalog_seq until; /* beyond it not all is known */
	bool cut;
	struct token place;    /* behind what was found */
	bool gone;             /* the collection has been dropped or renamed */
	struct str renamed_to; /* empty: dropped */
	struct kv_future *keys[WATCH_KEYS];
	size_t key_count;
};

/* ---- Tokens ---- */

static void
token_write(const struct token *t, struct buf *ret)
{
	uint8_t bytes[TOKEN_BYTES];

	memcpy(bytes, t->seq.bytes, CATALOG_SEQ_BYTES);
	for (int i = 0; i < 8; i++)
		bytes[CATALOG_SEQ_BYTES + i] = (uint8_t)(t->ms >> (56 - 8 * i));
	bytes[TOKEN_BYTES - 1] = t->ended;
	buf_append_hex(ret, str_of(bytes, sizeof(bytes)));
}

static bool
token_read(const struct bson_value *v, struct token *ret)
{
	uint8_t bytes[TOKEN_BYTES];
	struct bson_value data;
	struct token t = { 0 };

	if (v->type != BSON_DOCUMENT || !bson_find(v->text, STR("_data"), &data) ||
	    data.type != BSON_STRING || data.text.len != TOKEN_HEX_BYTES ||
	    !str_from_hex(data.text, bytes) || bytes[TOKEN_BYTES - 1] > 1)
		return false;
	memcpy(t.seq.bytes, bytes, CATALOG_SEQ_BYTES);
	for (int i = 0; i < 8; i++)
		t.ms = t.ms << 8 | bytes[CATALOG_SEQ_BYTES + i];
	t.ended = bytes[TOKEN_BYTES - 1];
	*ret = t;
	return true;
}

/* Behind all that was committed up to the version. */
static struct catalog_seq
seq_behind(uint8_t incarnation, uint64_t version)
{
	struct catalog_seq seq;

	memset(seq.bytes, 0xff, sizeof(seq.bytes));
	seq.bytes[0] = incarnation;
	for (int i = 0; i < 8; i++)
		seq.bytes[1 + i] = (uint8_t)(version >> (56 - 8 * i));
	return seq;
}

static uint64_t
seq_version(const struct catalog_seq *seq)
{
	uint64_t version = 0;

	for (int i = 0; i < 8; i++)
		version = version << 8 | seq->bytes[1 + i];
	return version;
}

/* ---- A look: which collections there are ---- */

static void
look_release(struct look *l)
{
	for (size_t i = 0; i < l->key_count; i++)
		kv_future_free(l->keys[i]);
	for (size_t i = 0; i < l->collection_count; i++)
		catalog_db_unref(l->collections[i].db);
	l->key_count = l->collection_count = 0;
}

static void
look_add(struct look *l, struct kv_tx *tx, struct catalog_db *db)
{
	struct watched *w = &l->collections[l->collection_count++];

	w->db = db;
	plain_init(&w->plain, tx, db, 0, &l->call->err);
}

static enum status
look_open_one(struct look *l, struct kv_tx *tx)
{
	struct watch *w = l->watch;
	struct err ignored = { 0 };
	struct catalog_db *db;
	enum status status;

	l->collections = arena_zalloc(l->call->arena, sizeof(*l->collections));
	if (!l->collections)
		return STATUS_LIMIT;
	status = catalog_open(tx, NULL, CATALOG_SPACE_MONGO, str_from_cstr(w->prefix), &db,
			      &ignored);
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return err_set(&l->call->err, status, "%s", ignored.text);
	l->gone = w->db && (status == STATUS_NOT_FOUND || db->number != w->db->number);
	if (l->gone) {
		if (status == STATUS_OK)
			catalog_db_unref(db);
		/* What it has logged is read to the end, as long as it is there. */
		look_add(l, tx, catalog_db_ref(w->db));
	} else if (status == STATUS_OK) {
		look_add(l, tx, db);
	}
	return STATUS_OK;
}

static enum status
look_open_all(struct look *l, struct kv_tx *tx)
{
	struct str prefix = str_from_cstr(l->watch->prefix);
	struct name_range range = { .begin = prefix,
				    .has_begin = prefix.len,
				    .has_end = prefix.len,
				    .exclusive_end = true,
				    .limit = WATCH_COLLECTIONS + 1 };
	struct call *c = l->call;
	struct name_page page;

	if (prefix.len) {
		/* The next text that does not begin with "db.". */
		range.end = arena_dup(c->arena, prefix);
		if (!range.end.ptr)
			return STATUS_LIMIT;
		((char *)(uintptr_t)range.end.ptr)[prefix.len - 1] = '.' + 1;
	}
	TRY(catalog_list(tx, CATALOG_SPACE_MONGO, &range, c->arena, &page));
	if (page.count > WATCH_COLLECTIONS)
		return call_fail(c, MONGO_EXCEEDED_MEMORY_LIMIT,
				 "a change stream follows %d collections at most "
				 "(WATCH_COLLECTIONS)",
				 WATCH_COLLECTIONS);
	l->collections = arena_zalloc(c->arena, (page.count + 1) * sizeof(*l->collections));
	if (!l->collections)
		return STATUS_LIMIT;
	for (size_t i = 0; i < page.count; i++) {
		struct catalog_db *db;

		TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, page.names[i], &db, &c->err));
		look_add(l, tx, db);
	}
	return STATUS_OK;
}

/* ---- A look: what has happened ---- */

/* Where to go on in the log of a collection, which may have come from another store meanwhile. */
static struct catalog_seq
place_in(const struct look *l, const struct watched *w)
{
	struct catalog_seq after = l->watch->place.seq;

	if (after.bytes[0] > w->db->incarnation)
		after.bytes[0] = w->db->incarnation;
	return after;
}

/* Fails where events behind the place may have been cleared. */
static enum status
check_history(struct look *l, struct watched *w, const struct catalog_seq *after)
{
	static const struct catalog_seq start;
	uint64_t now_ms = clock_wall_ms();
	struct plain_event *first;
	size_t count;

	if (l->watch->place.ms + WATCH_SURE_MS > now_ms || w->db->created_ms + DAY_MS > now_ms)
		return STATUS_OK;
	TRY(plain_log_read(&w->plain, &start, 1, l->call->arena, &first, &count));
	if (!count || catalog_seq_cmp(&first->seq, after) <= 0)
		return STATUS_OK;
	return call_fail(l->call, MONGO_HISTORY_LOST,
			 "Resume of change stream was not possible, as the resume point may no "
			 "longer be in the log, which is kept for a day.");
}

static enum status
look_read(struct look *l, struct watched *w)
{
	size_t limit = WATCH_EVENTS / l->collection_count;
	struct catalog_seq after = place_in(l, w);
	struct plain_event *events;
	size_t count;

	if (limit < LEAST_EVENTS)
		limit = LEAST_EVENTS;
	TRY(check_history(l, w, &after));
	TRY(plain_log_read(&w->plain, &after, limit, l->call->arena, &events, &count));
	for (size_t i = 0; i < count; i++) {
		l->events = arena_grow(l->call->arena, l->events, l->count, &l->cap,
				       sizeof(*l->events));
		if (!l->events)
			return STATUS_LIMIT;
		l->events[l->count++] = (struct happened){ .event = events[i], .of = w };
	}
	if (count < limit)
		return STATUS_OK;
	l->cut = true;
	if (catalog_seq_cmp(&events[count - 1].seq, &l->until) < 0)
		l->until = events[count - 1].seq;
	return STATUS_OK;
}

static int
happened_cmp(const void *a, const void *b)
{
	const struct happened *one = a, *other = b;

	return catalog_seq_cmp(&one->event.seq, &other->event.seq);
}

/* The document as it is now, for an event that has no copy of it. */
static enum status
look_up(struct look *l, struct happened *h)
{
	enum status status = plain_get(&h->of->plain, &h->event.id, KV_SNAPSHOT, l->call->arena,
				       &h->full);

	h->has_full = true;
	if (status == STATUS_NOT_FOUND)
		h->full = STR("");
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* An update whose description was left out is told as a replacement. */
static bool
has_description(const struct plain_event *e)
{
	return e->kind == PLAIN_EVENT_UPDATE && bson_find(e->detail, STR("updatedFields"), NULL) &&
	       bson_find(e->detail, STR("removedFields"), NULL);
}

static enum status
look_complete(struct look *l, struct happened *h)
{
	const struct plain_event *e = &h->event;

	if (e->kind == PLAIN_EVENT_DELETE || (has_description(e) && !l->watch->looks_up))
		return STATUS_OK;
	if (has_description(e) || !e->detail.len)
		return look_up(l, h);
	h->has_full = true;
	h->full = e->detail;
	return STATUS_OK;
}

/* Sorts what was found, and keeps as much as an answer takes. */
static enum status
look_choose(struct look *l)
{
	size_t bytes = 0, n = 0;

	if (l->count)
		qsort(l->events, l->count, sizeof(*l->events), happened_cmp);
	while (n < l->count && n < l->most && bytes < BATCH_BYTES) {
		struct happened *h = &l->events[n];

		if (l->cut && catalog_seq_cmp(&h->event.seq, &l->until) > 0)
			break;
		TRY(look_complete(l, h));
		bytes += h->event.detail.len + h->full.len;
		n++;
	}
	l->cut = l->cut || n < l->count;
	l->count = n;
	return STATUS_OK;
}

/* The name that a collection has now that is gone from where it was. */
static enum status
find_renamed(struct look *l, struct kv_tx *tx)
{
	struct buf AUTO(buf_release) last = CATALOG_KEY_INIT;
	struct catalog_page page;

	l->renamed_to = STR("");
	do {
		TRY(catalog_all(tx, &last, WATCH_COLLECTIONS, l->call->arena, &page,
				&l->call->err));
		for (size_t i = 0; i < page.count; i++)
			if (page.dbs[i].number == l->watch->db->number) {
				l->renamed_to = page.dbs[i].name;
				return STATUS_OK;
			}
	} while (page.more);
	return STATUS_OK;
}

/* What wakes the stream. */
static enum status
look_watch(struct look *l, struct kv_tx *tx)
{
	if (l->collection_count + 1 > WATCH_KEYS)
		return STATUS_OK;
	if (l->watch->is_collection)
		TRY(catalog_watch_name(tx, CATALOG_SPACE_MONGO, str_from_cstr(l->watch->prefix),
				       &l->keys[l->key_count]));
	else
		TRY(catalog_watch(tx, &l->keys[l->key_count]));
	l->key_count++;
	for (size_t i = 0; i < l->collection_count; i++) {
		const struct catalog_db *db = l->collections[i].db;

		TRY(catalog_watch_db(
			tx, &(struct catalog_watched){ .number = db->number, .kind = db->kind },
			&l->keys[l->key_count]));
		l->key_count++;
	}
	return STATUS_OK;
}

static enum status
look_body(struct kv_tx *tx, void *arg)
{
	struct look *l = arg;
	struct watch *w = l->watch;
	uint8_t incarnation = 0;
	uint64_t version;

	look_release(l);
	arena_reset(l->call->arena, l->mark);
	l->call->code = 0;
	l->events = NULL;
	l->count = l->cap = 0;
	l->cut = l->gone = false;
	memset(&l->until, 0xff, sizeof(l->until));
	TRY(kv_get_read_version(tx, &version));
	TRY(w->is_collection ? look_open_one(l, tx) : look_open_all(l, tx));
	for (size_t i = 0; i < l->collection_count; i++) {
		if (w->begun)
			TRY(look_read(l, &l->collections[i]));
		if (l->collections[i].db->incarnation > incarnation)
			incarnation = l->collections[i].db->incarnation;
	}
	TRY(look_choose(l));
	l->place = (struct token){ .seq = seq_behind(incarnation, version), .ms = clock_wall_ms() };
	if (l->cut)
		l->place.seq = l->count ? l->events[l->count - 1].event.seq : w->place.seq;
	if (l->gone && !l->cut)
		return find_renamed(l, tx);
	return l->waits && !l->count ? look_watch(l, tx) : STATUS_OK;
}

/* Waits for one of the keys, or the deadline. */
static void
look_wait(struct look *l, uint64_t deadline_ns)
{
	struct event *events[WATCH_KEYS + 1];
	uint64_t soon_ns = clock_after_ms(WATCH_LOOK_MS);
	size_t count = 0;

	events[count++] = net_stream_stopping_event(l->call->client->stream);
	for (size_t i = 0; i < l->key_count; i++) {
		struct event *e = kv_future_event(l->keys[i]);

		if (!e)
			return; /* it has changed already */
		events[count++] = e;
	}
	/* Every now and then somebody looks whether the client is there still. */
	(void)event_wait_any(events, count, deadline_ns < soon_ns ? deadline_ns : soon_ns);
}

/* Looks until there is something to tell, or the deadline has come. */
static enum status
look_until(struct look *l, uint64_t deadline_ns)
{
	struct call *c = l->call;

	for (;;) {
		l->waits = clock_mono_ns() < deadline_ns;
		TRY(call_run(c, look_body, l));
		if (l->count || l->gone || !l->waits)
			return STATUS_OK;
		TRY(mongo_client_check(c->client));
		look_wait(l, deadline_ns);
	}
}

/* ---- Answers ---- */

static void
put_token(struct bson_builder *b, struct str name, const struct token *t)
{
	struct buf AUTO(buf_release) hex = BUF_INIT(TOKEN_HEX_BYTES);

	token_write(t, &hex);
	bson_begin_document(b, name);
	bson_put_string(b, STR("_data"), buf_str(&hex));
	bson_end(b);
}

static void
put_ns(struct bson_builder *b, struct str name, struct str ns)
{
	const char *dot = memchr(ns.ptr, '.', ns.len);
	size_t db = dot ? (size_t)(dot - ns.ptr) : ns.len;

	bson_begin_document(b, name);
	bson_put_string(b, STR("db"), str_of(ns.ptr, db));
	if (dot)
		bson_put_string(b, STR("coll"), str_skip(ns, db + 1));
	bson_end(b);
}

static const char *
event_name(const struct plain_event *e)
{
	if (e->kind == PLAIN_EVENT_UPDATE && !has_description(e))
		return "replace";
	return e->kind == PLAIN_EVENT_INSERT    ? "insert"
	       : e->kind == PLAIN_EVENT_UPDATE  ? "update"
	       : e->kind == PLAIN_EVENT_REPLACE ? "replace"
						: "delete";
}

static void
put_head(struct bson_builder *b, const struct token *t, const char *kind, uint64_t ms)
{
	bson_begin_document(b, STR(""));
	put_token(b, STR("_id"), t);
	bson_put_string(b, STR("operationType"), str_from_cstr(kind));
	bson_put_timestamp(b, STR("clusterTime"), time_of_version(seq_version(&t->seq)));
	bson_put_date(b, STR("wallTime"), (int64_t)ms);
}

static void
put_event(struct bson_builder *b, const struct look *l, const struct happened *h)
{
	struct token t = { .seq = h->event.seq, .ms = l->place.ms };

	put_head(b, &t, event_name(&h->event), h->event.ms);
	if (h->has_full && h->full.len)
		bson_put_document(b, STR("fullDocument"), h->full);
	else if (h->has_full)
		bson_put_null(b, STR("fullDocument"));
	put_ns(b, STR("ns"), h->of->db->name);
	bson_begin_document(b, STR("documentKey"));
	bson_put(b, STR("_id"), &h->event.id);
	bson_end(b);
	if (has_description(&h->event)) {
		bson_begin_document(b, STR("updateDescription"));
		bson_put_elements(b, h->event.detail);
		if (!bson_find(h->event.detail, STR("truncatedArrays"), NULL)) {
			bson_begin_array(b, STR("truncatedArrays"));
			bson_end(b);
		}
		bson_end(b);
	}
	bson_end(b);
}

/* The collection is gone: that is told, and that the stream ends. */
static void
put_end(struct bson_builder *b, const struct look *l)
{
	struct token t = l->place;
	struct str ns = str_from_cstr(l->watch->prefix);

	put_head(b, &t, l->renamed_to.len ? "rename" : "drop", t.ms);
	put_ns(b, STR("ns"), ns);
	if (l->renamed_to.len)
		put_ns(b, STR("to"), l->renamed_to);
	bson_end(b);
	t.ended = true;
	put_head(b, &t, "invalidate", t.ms);
	bson_end(b);
}

/* The stream goes on behind what is told here. */
static void
put_answer(struct look *l, struct str batch, int64_t id, struct str ns)
{
	struct bson_builder *b = l->call->reply;
	struct watch *w = l->watch;
	bool ends = l->gone && !l->cut;

	bson_begin_document(b, STR("cursor"));
	bson_begin_array(b, batch);
	for (size_t i = 0; i < l->count; i++)
		put_event(b, l, &l->events[i]);
	if (ends)
		put_end(b, l);
	bson_end(b);
	w->place = l->place;
	w->place.ended = ends;
	w->begun = true;
	put_token(b, STR("postBatchResumeToken"), &w->place);
	bson_put_int64(b, STR("id"), ends ? 0 : id);
	bson_put_string(b, STR("ns"), ns);
	bson_end(b);
	if (w->is_collection && l->collection_count && !l->gone) {
		catalog_db_unref(w->db);
		w->db = catalog_db_ref(l->collections[0].db);
	}
}

/* ---- Options ---- */

bool
watch_is_wanted(struct str pipeline, struct bson_value *ret)
{
	struct bson_element e;
	struct bson_iter i;

	bson_iter_begin(&i, pipeline);
	return bson_iter_read(&i, &e) && e.value.type == BSON_DOCUMENT &&
	       bson_find(e.value.text, STR("$changeStream"), ret);
}

static enum status
take_token(struct call *c, struct watch *w, const struct bson_element *e, bool also_ended)
{
	if (w->begun)
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "Only one of resumeAfter, startAfter and startAtOperationTime may "
				 "be given");
	if (!token_read(&e->value, &w->place))
		return call_fail(c, MONGO_INVALID_RESUME_TOKEN,
				 "%.*s is no resume token of this server", STR_ARG(e->name));
	if (w->place.ended && !also_ended)
		return call_fail(c, MONGO_INVALID_RESUME_TOKEN,
				 "Attempting to resume a change stream using 'resumeAfter' is not "
				 "allowed from an invalidate notification.");
	w->place.ended = false;
	w->begun = true;
	return STATUS_OK;
}

/* From that version on, itself included. */
static enum status
take_time(struct call *c, struct watch *w, const struct bson_value *v)
{
	uint64_t version;

	if (w->begun)
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "Only one of resumeAfter, startAfter and startAtOperationTime may "
				 "be given");
	if (v->type != BSON_TIMESTAMP)
		return call_fail(
			c, MONGO_TYPE_MISMATCH,
			"BSON field '$changeStream.startAtOperationTime' is the wrong type "
			"'%s', expected type 'timestamp'",
			bson_type_name(v->type));
	version = time_to_version((uint64_t)v->n);
	w->place = (struct token){ .seq = seq_behind(UINT8_MAX, version ? version - 1 : 0) };
	w->begun = true;
	return STATUS_OK;
}

static enum status
take_full(struct call *c, struct watch *w, const struct bson_element *e)
{
	struct str v = e->value.type == BSON_STRING ? e->value.text : STR("");
	bool before = str_eq(e->name, STR("fullDocumentBeforeChange"));

	if (str_eq(v, STR("required")))
		return call_fail(c, MONGO_NOT_IMPLEMENTED,
				 "%.*s: 'required' is not there: changeStreamPreAndPostImages are "
				 "not kept",
				 STR_ARG(e->name));
	w->looks_up = w->looks_up || (!before && str_eq(v, STR("updateLookup")));
	if (str_eq(v, STR("whenAvailable")) || str_eq(v, before ? STR("off") : STR("default")) ||
	    w->looks_up)
		return STATUS_OK;
	return call_fail(c, MONGO_BAD_VALUE,
			 "Enumeration value '%.*s' for field '$changeStream.%.*s' is not a valid "
			 "value.",
			 (int)(v.len < 100 ? v.len : 100), v.ptr, STR_ARG(e->name));
}

static enum status
take_option(struct call *c, struct watch *w, const struct bson_element *e)
{
	if (str_eq(e->name, STR("resumeAfter")) || str_eq(e->name, STR("startAfter")))
		return take_token(c, w, e, str_eq(e->name, STR("startAfter")));
	if (str_eq(e->name, STR("startAtOperationTime")))
		return take_time(c, w, &e->value);
	if (str_eq(e->name, STR("fullDocument")) ||
	    str_eq(e->name, STR("fullDocumentBeforeChange")))
		return take_full(c, w, e);
	if (str_eq(e->name, STR("allChangesForCluster")) ||
	    str_eq(e->name, STR("showExpandedEvents")))
		return STATUS_OK;
	return call_fail(c, MONGO_FIELD_UNKNOWN,
			 "BSON field '$changeStream.%.*s' is an unknown field.", STR_ARG(e->name));
}

static enum status
take_options(struct call *c, struct watch *w, struct str collection, struct str options)
{
	struct bson_element e;
	struct bson_value all;
	struct bson_iter i;
	bool everywhere = bson_find(options, STR("allChangesForCluster"), &all) &&
			  bson_is_true(&all);

	if (everywhere && (collection.len || !str_eq(c->db, STR("admin"))))
		return call_fail(c, MONGO_INVALID_OPTIONS,
				 "A $changeStream with 'allChangesForCluster:true' may only be "
				 "opened on the 'admin' database, and with no collection name");
	if (everywhere && !(c->client->rights.any & RIGHT_READ))
		return call_fail(c, MONGO_UNAUTHORIZED,
				 "not authorized to read the changes of all databases");
	w->is_collection = collection.len;
	if (!everywhere)
		snprintf(w->prefix, sizeof(w->prefix), "%.*s.%.*s", STR_ARG(c->db),
			 STR_ARG(collection));
	for (bson_iter_begin(&i, options); bson_iter_read(&i, &e);)
		TRY(take_option(c, w, &e));
	return STATUS_OK;
}

/* ---- Commands ---- */

static void
look_init(struct look *l, struct call *c, struct watch *w, int64_t batch)
{
	*l = (struct look){ .call = c, .watch = w, .mark = arena_mark(c->arena) };
	l->most = batch > 0 && batch < WATCH_EVENTS ? (size_t)batch : WATCH_EVENTS;
}

static enum status
open_cursor(struct call *c, struct watch *w, struct str ns, struct cursor **ret)
{
	struct cursor *cursor = cursor_new(c->mongo, ns, c->client->user_name);

	if (!cursor)
		return call_fail(c, MONGO_EXCEEDED_MEMORY_LIMIT,
				 "there are too many cursors; the limit, MONGO_CURSORS, is %d",
				 MONGO_CURSORS);
	cursor->txn = -1;
	cursor->watch = w;
	cursor->watch_free = watch_free;
	cursor->has_session = c->lsid.ptr;
	if (c->lsid.ptr)
		memcpy(cursor->session, c->lsid.ptr, sizeof(cursor->session));
	*ret = cursor;
	return STATUS_OK;
}

static enum status
open_run(struct call *c, struct watch *w, struct str ns, int64_t batch, struct cursor **ret)
{
	struct look l;
	enum status status;

	look_init(&l, c, w, batch);
	if (!batch && w->begun)
		l.most = 0;
	status = look_until(&l, 0);
	if (status == STATUS_OK)
		status = open_cursor(c, w, ns, ret);
	if (status == STATUS_OK)
		put_answer(&l, STR("firstBatch"), (*ret)->id, ns);
	look_release(&l);
	return status;
}

enum status
watch_open(struct call *c, struct str collection, struct str pipeline, int64_t batch)
{
	struct watch *w = mem_zalloc(sizeof(*w));
	struct cursor *cursor = NULL;
	struct bson_value options;
	enum status status = w ? STATUS_OK : STATUS_NOMEM;
	struct str ns = arena_printf(c->arena, "%.*s.%.*s", STR_ARG(c->db),
				     STR_ARG(collection.len ? collection : STR("$cmd.aggregate")));

	if (status == STATUS_OK && !ns.ptr)
		status = STATUS_LIMIT;
	if (status == STATUS_OK && watch_is_wanted(pipeline, &options) &&
	    options.type != BSON_DOCUMENT)
		status = call_fail(c, MONGO_TYPE_MISMATCH,
				   "the $changeStream stage must be specified as an object");
	if (status == STATUS_OK && bson_count(pipeline) > 1)
		status = call_fail(c, MONGO_NOT_IMPLEMENTED,
				   "stages behind $changeStream are not there yet");
	if (status == STATUS_OK)
		status = take_options(c, w, collection, options.text);
	if (status == STATUS_OK)
		status = open_run(c, w, ns, batch, &cursor);
	if (cursor)
		cursor_give(c->mongo, cursor);
	else
		watch_free(w);
	return status;
}

enum status
watch_more(struct call *c, struct cursor *cursor, int64_t batch, bool *ret_ends)
{
	uint64_t await_ms = WATCH_AWAIT_MS;
	struct bson_value v;
	struct look l;
	enum status status;
	int64_t n;

	if (bson_find(c->body, STR("maxTimeMS"), &v) && bson_to_int64(&v, &n) && n >= 0)
		await_ms = (uint64_t)n;
	look_init(&l, c, cursor->watch, batch);
	status = look_until(&l, clock_after_ms(await_ms));
	*ret_ends = status == STATUS_OK && l.gone && !l.cut;
	if (status == STATUS_OK) {
		put_answer(&l, STR("nextBatch"), cursor->id, str_from_cstr(cursor->ns));
		c->again = !*ret_ends;
	}
	look_release(&l);
	return status;
}

void
watch_free(struct watch *w)
{
	if (!w)
		return;
	catalog_db_unref(w->db);
	mem_free(w);
}
