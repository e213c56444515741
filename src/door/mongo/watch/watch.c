#include "door/mongo/watch/watch.h"

#include <assert.h>
#include <stdio.h>

#include "base/big_endian.h"
#include "base/clock.h"
#include "base/mem.h"
#include "door/mongo/index/index.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/cluster_time.h"
#include "door/mongo/txn/cursor.h"
#include "door/mongo/watch/watch_int.h"

enum {
	TOKEN_BYTES = CATALOG_SEQ_BYTES + 9,
	TOKEN_HEX_BYTES = 2 * TOKEN_BYTES,
	UUID_SUBTYPE = 4,
	EVENT_BYTES = 4 * BSON_MOST_BYTES,
};

/* ---- Tokens ---- */

static void
token_write(const struct watch_place *t, struct buf *ret)
{
	uint8_t bytes[TOKEN_BYTES + 1];

	memcpy(bytes, t->seq.bytes, CATALOG_SEQ_BYTES);
	big_endian_put_64(bytes + CATALOG_SEQ_BYTES, t->ms);
	bytes[TOKEN_BYTES - 1] = t->ended;
	bytes[TOKEN_BYTES] = t->fragment;
	buf_append_hex(ret, str_of(bytes, t->fragment ? sizeof(bytes) : TOKEN_BYTES));
}

static bool
token_read(const struct bson_value *v, struct watch_place *ret)
{
	uint8_t bytes[TOKEN_BYTES + 1] = { 0 };
	struct bson_value data;
	struct watch_place t = { 0 };

	if (v->type != BSON_DOCUMENT || !bson_find(bson_text(v), STR("_data"), &data) ||
	    data.type != BSON_STRING ||
	    (bson_text(&data).len != TOKEN_HEX_BYTES &&
	     bson_text(&data).len != TOKEN_HEX_BYTES + 2) ||
	    !str_from_hex(bson_text(&data), bytes) || bytes[TOKEN_BYTES - 1] > 1 ||
	    (bson_text(&data).len > TOKEN_HEX_BYTES && !bytes[TOKEN_BYTES]))
		return false;
	memcpy(t.seq.bytes, bytes, CATALOG_SEQ_BYTES);
	t.ms = big_endian_64(bytes + CATALOG_SEQ_BYTES);
	t.ended = bytes[TOKEN_BYTES - 1];
	t.fragment = bytes[TOKEN_BYTES];
	*ret = t;
	return true;
}

/* Behind all that was committed up to the version, by any process. */
static struct catalog_seq
seq_of_version(uint64_t version)
{
	struct catalog_seq seq;

	memset(seq.bytes, 0xff, sizeof(seq.bytes));
	big_endian_put_64(seq.bytes + 1, version);
	return seq;
}

/* ---- Answers ---- */

static void
put_token(struct bson_builder *b, struct str name, const struct watch_place *t)
{
	struct buf AUTO(buf_release) hex = BUF_SHORT(TOKEN_HEX_BYTES + 2);

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
	if (e->kind == PLAIN_EVENT_UPDATE && !watch_has_description(e))
		return "replace";
	return e->kind == PLAIN_EVENT_INSERT    ? "insert"
	       : e->kind == PLAIN_EVENT_UPDATE  ? "update"
	       : e->kind == PLAIN_EVENT_REPLACE ? "replace"
						: "delete";
}

static void
put_head(struct bson_builder *b, const struct watch_place *t, const char *kind, uint64_t ms)
{
	bson_begin_document(b, STR(""));
	put_token(b, STR("_id"), t);
	bson_put_string(b, STR("operationType"), str_from_cstr(kind));
	bson_put_timestamp(b, STR("clusterTime"), time_of_version(catalog_seq_version(&t->seq)));
	bson_put_date(b, STR("wallTime"), (int64_t)ms);
}

static const char *
notice_name(const struct plain_notice *n)
{
	switch (n->kind) {
	case PLAIN_NOTICE_CREATED:
		return "create";
	case PLAIN_NOTICE_DROPPED:
		return "drop";
	case PLAIN_NOTICE_RENAMED:
		return "rename";
	case PLAIN_NOTICE_DATABASE_DROPPED:
		return "dropDatabase";
	case PLAIN_NOTICE_MODIFIED:
		return "modify";
	case PLAIN_NOTICE_INDEXES_CREATED:
		return "createIndexes";
	case PLAIN_NOTICE_INDEXES_DROPPED:
		break;
	}
	return "dropIndexes";
}

static void
put_uuid(struct bson_builder *b, const uint8_t uuid[16])
{
	bson_put_binary(b, STR("collectionUUID"), UUID_SUBTYPE, str_of(uuid, 16));
}

/* What has become of a collection or a database. */
static void
put_notice(struct bson_builder *b, const struct look *l, const struct happened *h)
{
	const struct plain_notice *n = h->notice;
	bool expanded = l->watch->expanded && n->kind != PLAIN_NOTICE_DATABASE_DROPPED;
	struct watch_place t = happened_place(h);

	put_head(b, &t, h->invalidates ? "invalidate" : notice_name(n), n->ms);
	if (h->invalidates) {
		bson_end(b);
		return;
	}
	if (expanded)
		put_uuid(b, n->uuid);
	put_ns(b, STR("ns"), n->name);
	if (n->to.len)
		put_ns(b, STR("to"), n->to);
	if (n->kind == PLAIN_NOTICE_CREATED)
		bson_put_string(b, STR("nsType"),
				plain_options_are_view(n->detail) ? STR("view")
								  : STR("collection"));
	if (expanded && n->kind != PLAIN_NOTICE_DROPPED) {
		bson_begin_document(b, STR("operationDescription"));
		if (n->kind == PLAIN_NOTICE_CREATED && !plain_options_are_view(n->detail))
			index_put_id(b, STR("idIndex"));
		if (n->to.len)
			put_ns(b, STR("to"), n->to);
		bson_put_elements(b, n->detail);
		bson_end(b);
	}
	bson_end(b);
}

static void
put_description(struct bson_builder *b, struct str detail, bool expanded)
{
	struct bson_element e;
	struct bson_iter i;

	bson_begin_document(b, STR("updateDescription"));
	for (bson_iter_begin(&i, detail); bson_iter_read(&i, &e);)
		if (!str_eq(e.name, STR("disambiguatedPaths")))
			bson_put_element(b, &e);
	if (!bson_find(detail, STR("truncatedArrays"), NULL)) {
		bson_begin_array(b, STR("truncatedArrays"));
		bson_end(b);
	}
	if (expanded && bson_find(detail, STR("disambiguatedPaths"), &e.value))
		bson_put_document(b, STR("disambiguatedPaths"), bson_text(&e.value));
	else if (expanded)
		bson_put_document(b, STR("disambiguatedPaths"), BSON_EMPTY);
	bson_end(b);
}

static void
put_event(struct bson_builder *b, const struct look *l, const struct happened *h)
{
	struct watch_place t = happened_place(h);

	put_head(b, &t, event_name(&h->event), h->event.ms);
	if (h->event.session.ptr) {
		bson_put_int64(b, STR("txnNumber"), h->event.number);
		bson_begin_document(b, STR("lsid"));
		bson_put_binary(b, STR("id"), UUID_SUBTYPE, h->event.session);
		bson_end(b);
	}
	if (l->watch->expanded)
		put_uuid(b, h->of->db->uuid);
	if (h->has_full && h->full.len)
		bson_put_document(b, STR("fullDocument"), h->full);
	else if (h->has_full)
		bson_put_null(b, STR("fullDocument"));
	put_ns(b, STR("ns"), h->ns);
	bson_begin_document(b, STR("documentKey"));
	bson_put(b, STR("_id"), &h->event.id);
	bson_end(b);
	if (watch_has_description(&h->event))
		put_description(b, h->event.detail, l->watch->expanded);
	if (h->has_before && h->before.len)
		bson_put_document(b, STR("fullDocumentBeforeChange"), h->before);
	else if (h->has_before)
		bson_put_null(b, STR("fullDocumentBeforeChange"));
	bson_end(b);
}

static void
put_happened(struct bson_builder *b, const struct look *l, const struct happened *h)
{
	if (h->notice)
		put_notice(b, l, h);
	else
		put_event(b, l, h);
}

/* The events of a look, as stages take them, and what becomes of them. */
struct told {
	struct watch_source source;
	struct look *look;
	size_t at; /* behind the event that was taken last */
	struct buf event;
	size_t begin; /* of the answer's events */
	size_t count; /* that were put into it */
	bool full;    /* it takes no more: the stream goes on behind `place` */
	struct watch_place place;
};

static enum status
told_next(struct mql_source *source, struct str *ret)
{
	struct told *t = (struct told *)source;
	struct bson_element e;
	struct bson_builder b;
	struct bson_value id;
	struct bson_iter i;

	if (t->at == t->look->count)
		return STATUS_NOT_FOUND;
	buf_clear(&t->event);
	bson_builder_init(&b, &t->event);
	bson_begin(&b);
	put_happened(&b, t->look, &t->look->events[t->at++]);
	bson_end(&b);
	TRY(buf_status(&t->event));
	bson_iter_begin(&i, buf_str(&t->event));
	if (!bson_iter_read(&i, &e) || !bson_find(bson_text(&e.value), STR("_id"), &id))
		return STATUS_CORRUPT;
	t->source.id = bson_text(&id);
	*ret = bson_text(&e.value);
	return STATUS_OK;
}

static void
told_close(struct mql_source *source)
{
	buf_release(&((struct told *)source)->event);
}

/* One more document is in the answer, behind which a stream may go on. */
static void
told_count(struct told *t, const struct watch_place *place)
{
	const struct look *l = t->look;

	t->count++;
	t->place = *place;
	t->full = t->count >= l->most || l->call->reply->out->len - t->begin >= WATCH_BATCH_BYTES;
}

static enum status
fail_resume_split(struct call *c)
{
	return call_fail(c, MONGO_CHANGE_STREAM_FATAL,
			 "Attempted to resume from a split event, but the resumed stream produced "
			 "a different split. Ensure that the pipeline used to resume is exactly "
			 "the same as the original");
}

/* The fragments behind the nth, as many as the answer takes; none behind the last one. */
static enum status
put_fragments(struct told *t, struct str event, const struct watch_place *whole, size_t n)
{
	struct bson_builder *b = t->look->call->reply;
	struct watch_split split;

	TRY(watch_split(t->look->call, event, &split));
	if (n > split.count)
		return fail_resume_split(t->look->call);
	for (; n < split.count && !t->full; n++) {
		struct watch_place place = *whole;

		place.fragment = (uint8_t)(n + 1);
		bson_begin_document(b, STR(""));
		put_token(b, STR("_id"), &place);
		watch_split_put(b, &split, n);
		bson_end(b);
		told_count(t, n + 1 < split.count ? &place : whole);
	}
	return STATUS_OK;
}

static enum status
put_result(struct watch_source *from, struct str event, bool *ret_more)
{
	struct told *t = (struct told *)from;
	const struct look *l = t->look;
	/* No stage of a change stream keeps events back, so this one is what was taken last. */
	const struct happened *h = &l->events[t->at - 1];
	const struct watch *w = l->watch;
	struct watch_place place = happened_place(h);
	bool resumes = w->place.fragment && catalog_seq_cmp(&w->place.seq, &h->seq) == 0;
	struct bson_value id;

	assert(t->at > 0 && t->at <= l->count && !t->full);
	if (!bson_find(event, STR("_id"), &id) || id.type != BSON_DOCUMENT ||
	    !str_eq(bson_text(&id), from->id))
		return call_fail(
			l->call, MONGO_CHANGE_STREAM_FATAL,
			"Encountered an event whose _id field, which contains the resume token, "
			"was modified by the pipeline. Modifying the _id field of an event makes "
			"it impossible to resume the stream from that point. Only transformations "
			"that retain the unmodified _id field are allowed.");
	if (w->splits && watch_split_is_needed(event)) {
		TRY(put_fragments(t, event, &place, resumes ? w->place.fragment : 0));
	} else if (resumes) {
		return fail_resume_split(l->call);
	} else if (event.len > BSON_MOST_BYTES) {
		return call_fail(l->call, MONGO_BSON_TOO_LARGE,
				 "BSONObj size: %zu (0x%zX) is invalid. Size must be between 0 and "
				 "%d(16MB) First element: _id: the resume token of an event that "
				 "$changeStreamSplitLargeEvent would split",
				 event.len, event.len, BSON_MOST_BYTES);
	} else {
		bson_put_document(l->call->reply, STR(""), event);
		told_count(t, &place);
	}
	*ret_more = !t->full;
	return buf_status(l->call->reply->out);
}

/* The stream goes on behind what is told here. */
static enum status
put_events(struct look *l, size_t *ret_count)
{
	struct call *c = l->call;
	struct watch *w = l->watch;
	struct told told = { .source.source = { told_next, told_close },
			     .look = l,
			     .event = BUF_INIT_OF(EVENT_BYTES, arena_part(l->call->arena)),
			     .begin = c->reply->out->len };

	TRY(watch_stages_run(w->stages, c, &told.source, put_result));
	*ret_count += told.count;
	w->place = told.full ? told.place : l->place;
	l->ends = l->ends && w->place.ended;
	w->begun = true;
	return buf_status(c->reply->out);
}

/* Looks until there is something to tell, or the deadline has come, and tells it. */
static enum status
put_answer(struct look *l, uint64_t deadline_ns, struct str batch, int64_t id, struct str ns)
{
	struct bson_builder *b = l->call->reply;
	size_t count = 0;

	bson_begin_document(b, STR("cursor"));
	bson_begin_array(b, batch);
	do {
		TRY(look_until(l, deadline_ns));
		TRY(put_events(l, &count));
	} while (!count && !l->ends && clock_mono_ns() < deadline_ns);
	bson_end(b);
	put_token(b, STR("postBatchResumeToken"), &l->watch->place);
	bson_put_int64(b, STR("id"), l->ends ? 0 : id);
	bson_put_string(b, STR("ns"), ns);
	bson_end(b);
	return STATUS_OK;
}

/* ---- Options ---- */

bool
watch_is_wanted(struct str pipeline, struct bson_value *ret)
{
	struct bson_element e;
	struct bson_iter i;

	bson_iter_begin(&i, pipeline);
	return bson_iter_read(&i, &e) && e.value.type == BSON_DOCUMENT &&
	       bson_find(bson_text(&e.value), STR("$changeStream"), ret);
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
		return call_type_mismatch(c, v, "type 'timestamp'",
					  "$changeStream.startAtOperationTime");
	version = time_to_version((uint64_t)bson_integer(v));
	w->place = (struct watch_place){ .seq = seq_of_version(version ? version - 1 : 0) };
	w->begun = true;
	return STATUS_OK;
}

static enum status
take_image(struct call *c, struct watch *w, const struct bson_element *e)
{
	static const char *const names[] = { "off", "updateLookup", "whenAvailable", "required" };
	bool before = str_eq(e->name, STR("fullDocumentBeforeChange"));
	struct str v = e->value.type == BSON_STRING ? bson_text(&e->value) : STR("");
	enum watch_image *image = before ? &w->before : &w->full;

	for (int i = WATCH_IMAGE_OFF; i <= WATCH_IMAGE_REQUIRED; i++) {
		const char *name = i == WATCH_IMAGE_OFF && !before ? "default" : names[i];

		*image = (enum watch_image)i;
		if (str_eq(v, str_from_cstr(name)) && !(before && i == WATCH_IMAGE_LOOKUP))
			return STATUS_OK;
	}
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
		return take_image(c, w, e);
	if (str_eq(e->name, STR("showExpandedEvents")) && e->value.type == BSON_BOOL) {
		w->expanded = bson_truth(&e->value);
		return STATUS_OK;
	}
	if (str_eq(e->name, STR("allChangesForCluster")) && e->value.type == BSON_BOOL)
		return STATUS_OK;
	if (str_eq(e->name, STR("allChangesForCluster")) ||
	    str_eq(e->name, STR("showExpandedEvents")))
		return call_type_mismatch(c, &e->value, "type 'bool'", "$changeStream.%.*s",
					  STR_ARG(e->name));
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
	w->scope = collection.len ? WATCH_COLLECTION : everywhere ? WATCH_ALL : WATCH_DATABASE;
	TRY(watch_check_rights(c, w));
	if (!everywhere)
		snprintf(w->prefix, sizeof(w->prefix), "%.*s.%.*s", STR_ARG(c->db),
			 STR_ARG(collection));
	for (bson_iter_begin(&i, options); bson_iter_read(&i, &e);)
		TRY(take_option(c, w, &e));
	return STATUS_OK;
}

/* ---- Commands ---- */

static enum status
open_cursor(struct call *c, struct watch *w, struct str ns, struct cursor **ret)
{
	TRY(cursor_begin(c, ns, ret));
	(*ret)->watch = w;
	(*ret)->watch_free = watch_free;
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
	status = open_cursor(c, w, ns, ret);
	if (status == STATUS_OK)
		status = put_answer(&l, 0, STR("firstBatch"), (*ret)->id, ns);
	look_release(&l);
	return status;
}

static enum status
open_compile(struct call *c, struct watch *w, struct str collection, const struct watch_ask *ask)
{
	struct bson_value options;

	if (!watch_is_wanted(ask->pipeline, &options) || options.type != BSON_DOCUMENT)
		return call_fail(c, MONGO_TYPE_MISMATCH,
				 "the $changeStream stage must be specified as an object");
	TRY(take_options(c, w, collection, bson_text(&options)));
	TRY(watch_stages_new(c, ask->pipeline, ask->let, ask->collation, &w->stages, &w->splits));
	if (w->place.fragment && !w->splits)
		return call_fail(c, MONGO_CHANGE_STREAM_FATAL,
				 "To resume from a split event, the $changeStream pipeline must "
				 "include a $changeStreamSplitLargeEvent stage");
	return STATUS_OK;
}

enum status
watch_open(struct call *c, struct str collection, const struct watch_ask *ask, int64_t batch)
{
	struct watch *w = mem_zalloc(sizeof(*w));
	struct cursor *cursor = NULL;
	int64_t id;
	enum status status = w ? STATUS_OK : STATUS_NOMEM;
	struct str ns = arena_printf(c->arena, "%.*s.%.*s", STR_ARG(c->db),
				     STR_ARG(collection.len ? collection : STR("$cmd.aggregate")));

	c->is_watch = true;
	if (status == STATUS_OK && !ns.ptr)
		status = STATUS_LIMIT;
	if (status == STATUS_OK)
		status = open_compile(c, w, collection, ask);
	if (status == STATUS_OK)
		status = open_run(c, w, ns, batch, &cursor);
	if (!cursor)
		watch_free(w);
	else if (status != STATUS_OK || w->place.ended)
		cursor_free(c->mongo, cursor);
	else
		status = cursor_keep(c, cursor, STATUS_OK, &id);
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
	status = put_answer(&l, clock_after_ms(await_ms), STR("nextBatch"), cursor->id,
			    str_from_cstr(cursor->ns));
	*ret_ends = status == STATUS_OK && l.ends;
	c->again = status == STATUS_OK && !l.ends;
	look_release(&l);
	return status;
}

void
watch_free(struct watch *w)
{
	if (!w)
		return;
	watch_stages_free(w->stages);
	mem_free(w);
}
