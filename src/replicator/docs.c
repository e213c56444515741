#include "replicator/docs.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "doc/json_value.h"
#include "model/revisioned/revisioned.h"

#define DOCS_DB "_replicator"

/* ---- Reading a page ---- */

struct docs_row {
	struct str id;
	struct str rev;
	struct str text; /* the document's members; ptr NULL: it is deleted */
};

struct docs_page {
	struct replicator *replicator;
	struct arena *arena;
	struct rev_seq since;
	uint64_t number; /* of the database; 0: there is none */
	struct docs_row *rows;
	size_t count;
	struct rev_seq last;
	bool more;
};

static enum status
body_text(const struct rev_doc *doc, struct arena *arena, struct str *ret)
{
	struct buf AUTO(buf_release) text = BUF_INIT(DOCS_ARENA_BYTES);

	buf_append_byte(&text, '{');
	TRY(rev_body_write(doc, false, &text));
	TRY(buf_status(&text));
	*ret = arena_dup(arena, buf_str(&text));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
rev_text(struct rev_id rev, struct arena *arena, struct str *ret)
{
	struct buf AUTO(buf_release) text = BUF_INIT(2 * REV_HASH_LIMIT_BYTES);

	rev_id_write(rev, &text);
	TRY(buf_status(&text));
	*ret = arena_dup(arena, buf_str(&text));
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
read_row(struct kv_tx *tx, const struct rev_db *db, const struct rev_change *change,
	 struct docs_page *page)
{
	struct docs_row *row = &page->rows[page->count++];
	struct rev_doc doc;
	enum status status;

	*row = (struct docs_row){ .id = change->id };
	TRY(rev_text(change->rev, page->arena, &row->rev));
	if (change->deleted)
		return STATUS_OK;
	status = rev_doc_read(tx, db, change->id, page->arena, &doc);
	if (status == STATUS_NOT_FOUND || status == STATUS_DELETED)
		return STATUS_OK;
	TRY(status);
	return body_text(&doc, page->arena, &row->text);
}

static enum status
read_changes(struct kv_tx *tx, const struct rev_db *db, struct docs_page *page)
{
	struct rev_change_range range = { .since = page->since, .limit = DOCS_PAGE };
	struct rev_change_page changes;

	page->number = db->number;
	memset(range.until.bytes, 0xff, sizeof(range.until.bytes));
	TRY(rev_changes_page(tx, db, &range, page->arena, &changes));
	page->rows = arena_alloc(page->arena, (changes.count + 1) * sizeof(*page->rows));
	if (!page->rows)
		return STATUS_LIMIT;
	for (size_t i = 0; i < changes.count; i++)
		TRY(read_row(tx, db, &changes.changes[i], page));
	if (changes.count)
		page->last = changes.changes[changes.count - 1].seq;
	page->more = changes.more;
	return STATUS_OK;
}

static enum status
read_page(struct kv_tx *tx, void *arg)
{
	struct docs_page *page = arg;
	struct rev_db *db;
	enum status status;

	arena_clear(page->arena);
	page->count = 0;
	page->number = 0;
	page->more = false;
	page->last = page->since;
	status = rev_db_open(tx, NULL, STR(DOCS_DB), &db, NULL);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	status = read_changes(tx, db, page);
	rev_db_unref(db);
	return status;
}

/* ---- From documents to jobs ---- */

struct job *
job_of_doc(struct replicator *r, struct str id)
{
	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
		if (j->spec->doc_id.ptr && str_eq(j->spec->doc_id, id))
			return j;
	return NULL;
}

static void
tell(struct replicator *r, struct str id, const char *state, struct str detail, bool failed)
{
	struct docs_verdict *v = mem_zalloc(sizeof(*v));

	if (!v)
		return;
	v->id = mem_strdup(id);
	v->detail = mem_strdup(detail);
	v->state = state;
	v->failed = failed;
	if (!v->id || !v->detail) {
		mem_free(v->id);
		mem_free(v->detail);
		mem_free(v);
		return;
	}
	v->next = r->verdicts;
	r->verdicts = v;
	event_set(&r->verdicts_bell);
}

void
docs_tell(struct replicator *r, const struct job *j, const char *reason)
{
	struct buf AUTO(buf_release) detail = BUF_INIT(REPLICATOR_ANSWER_BYTES);

	if (reason) {
		tell(r, j->spec->doc_id, "failed", str_from_cstr(reason), true);
		return;
	}
	job_write_stats(j, &detail);
	if (buf_status(&detail) == STATUS_OK)
		tell(r, j->spec->doc_id, "completed", buf_str(&detail), false);
}

/* What a document says of itself. */
static enum status
read_doc(struct str text, struct arena *arena, struct str *ret_state, struct str *ret_owner)
{
	struct json_value object;
	struct json_member *members;
	const struct json_value *value;
	size_t count;

	*ret_state = *ret_owner = STR("");
	TRY(json_value_read(text, arena, &object, NULL));
	TRY(json_value_members(&object, arena, &members, &count, NULL));
	value = json_value_find(members, count, "_replication_state");
	if (value && value->kind == JSON_STRING)
		*ret_state = value->string;
	value = json_value_find(members, count, "owner");
	if (value && value->kind == JSON_STRING)
		*ret_owner = value->string;
	return STATUS_OK;
}

/* Under the lock. The spec becomes a job, now or when its document's old one is gone. */
static void
add_job(struct replicator *r, struct repl_spec *spec, struct str rev)
{
	struct job *old = job_of_doc(r, spec->doc_id);
	char id[SPEC_ID_BYTES + 1];
	char full_id[SPEC_FULL_ID_BYTES];
	struct err err = { 0 };
	struct job *j;

	if (old && old->doc_rev && str_eq(str_from_cstr(old->doc_rev), rev) && !old->dropped) {
		repl_spec_free(spec);
		return;
	}
	if (old) {
		repl_spec_free(old->successor);
		mem_free(old->successor_rev);
		old->successor = spec;
		old->successor_rev = mem_strdup(rev);
		old->dropped = true;
		return;
	}
	repl_spec_id(spec, str_from_cstr(r->store_id), id, full_id);
	j = job_find(r, str_from_cstr(full_id));
	if (j) {
		struct str other = j->spec->doc_id.ptr ? j->spec->doc_id : STR("(_replicate)");

		(void)err_set(&err, STATUS_EXISTS,
			      "Replication `%s` specified by document `%.*s` already started, "
			      "triggered by document `%.*s` from db `" DOCS_DB "`",
			      full_id, STR_ARG(spec->doc_id), STR_ARG(other));
		tell(r, spec->doc_id, "failed", str_from_cstr(err.text), true);
		repl_spec_free(spec);
		return;
	}
	j = r->jobs_count < REPLICATOR_JOBS_MAX ? job_new(r, spec) : NULL;
	if (!j) {
		repl_spec_free(spec);
		return;
	}
	j->doc_rev = mem_strdup(rev);
	job_table_add(r, j);
}

void
docs_succeed(struct replicator *r, struct job *j)
{
	struct repl_spec *spec = j->successor;
	struct str rev = str_from_cstr(j->successor_rev ? j->successor_rev : "");

	j->successor = NULL;
	if (spec)
		add_job(r, spec, rev);
}

static void
drop_job(struct replicator *r, struct str id)
{
	struct job *j = job_of_doc(r, id);

	if (!j)
		return;
	repl_spec_free(j->successor);
	j->successor = NULL;
	j->dropped = true;
}

static void
take_row(struct replicator *r, const struct docs_row *row, struct arena *arena)
{
	struct repl_spec *spec = NULL;
	struct err err = { 0 };
	struct str state = STR("");
	struct str owner = STR("");
	enum status status = STATUS_NOT_FOUND;

	if (str_starts_with(row->id, STR("_design/")))
		return;
	if (row->text.ptr && read_doc(row->text, arena, &state, &owner) == STATUS_OK &&
	    !str_eq(state, STR("completed")) && !str_eq(state, STR("failed")))
		status = repl_spec_new(row->text, owner, row->id, &r->config.defaults, &spec, &err);
	pthread_mutex_lock(&r->lock);
	if (status == STATUS_OK) {
		add_job(r, spec, row->rev);
	} else {
		drop_job(r, row->id);
		if (status != STATUS_NOT_FOUND)
			tell(r, row->id, "failed", str_from_cstr(err.text), true);
	}
	replicator_ring(r);
	pthread_mutex_unlock(&r->lock);
}

static void
drop_all(struct replicator *r)
{
	pthread_mutex_lock(&r->lock);
	for (struct job *j = job_next(r, NULL); j; j = job_next(r, j))
		if (j->spec->doc_id.ptr)
			j->dropped = true;
	replicator_ring(r);
	pthread_mutex_unlock(&r->lock);
}

/* ---- Following the database ---- */

/* Something that is set when the database changes, appears or goes; to be asked before a look. */
struct docs_watch {
	struct kv_future *changes;
	struct kv_future *databases;
};

static void
watch_release(struct docs_watch *w)
{
	kv_future_free(w->changes);
	kv_future_free(w->databases);
	*w = (struct docs_watch){ 0 };
}

static enum status
watch_set(struct kv_tx *tx, struct arena *arena, struct docs_watch *w)
{
	struct rev_db *db = NULL;
	struct str key;
	enum status status = rev_db_open(tx, NULL, STR(DOCS_DB), &db, NULL);

	if (status == STATUS_OK) {
		status = rev_db_watch_key(db, arena, &key);
		if (status == STATUS_OK)
			w->changes = kv_watch(tx, key);
		rev_db_unref(db);
	} else if (status == STATUS_NOT_FOUND) {
		status = STATUS_OK;
	}
	TRY(status);
	return rev_catalog_watch(tx, &w->databases);
}

static enum status
watch_begin(struct replicator *r, struct arena *arena, struct docs_watch *w)
{
	struct kv_future *commit;
	struct kv_tx *tx;
	enum status status;

	TRY(kv_begin(r->config.store, KV_TX_READ_ONLY, &tx));
	status = watch_set(tx, arena, w);
	if (status == STATUS_OK) {
		commit = kv_commit(tx);
		status = kv_future_wait(commit);
		kv_future_free(commit);
	}
	kv_tx_free(tx);
	if (status != STATUS_OK)
		watch_release(w);
	return status;
}

/* Reads what is new, to its end. */
static enum status
catch_up(struct replicator *r, struct docs_page *page, uint64_t *number, struct err *err)
{
	do {
		TRY(kv_run_read(r->config.store, read_page, page, err));
		if (page->number != *number) {
			bool from_beginning = *number == 0;

			/* The database is another one, or gone. */
			*number = page->number;
			if (!from_beginning) {
				drop_all(r);
				page->since = (struct rev_seq){ 0 };
				page->more = true;
				continue;
			}
		}
		if (page->count)
			TRY(replicator_ensure_store_id(r, err));
		for (size_t i = 0; i < page->count; i++)
			take_row(r, &page->rows[i], page->arena);
		page->since = page->last;
	} while (page->more);
	return STATUS_OK;
}

static bool
is_stopping(struct replicator *r)
{
	bool stopping;

	pthread_mutex_lock(&r->lock);
	stopping = r->stopping;
	pthread_mutex_unlock(&r->lock);
	return stopping;
}

static void
await(struct replicator *r, const struct docs_watch *w, bool failed)
{
	struct event *events[3];
	size_t n = 0;
	struct event *e;

	/* An answer that is there already has no event: look again at once. */
	if (w->changes) {
		e = kv_future_event(w->changes);
		if (!e)
			return;
		events[n++] = e;
	}
	if (w->databases) {
		e = kv_future_event(w->databases);
		if (!e)
			return;
		events[n++] = e;
	}
	events[n++] = &r->docs_stop;
	(void)event_wait_any(events, n, failed ? clock_after_ms(DOCS_RETRY_MS) : WAIT_FOREVER);
}

void
docs_follow(void *replicator)
{
	struct replicator *r = replicator;
	struct arena *watch_arena = arena_new(DOCS_ARENA_BYTES);
	struct docs_page page = { .replicator = r, .arena = arena_new(DOCS_ARENA_BYTES) };
	uint64_t number = 0;

	while (watch_arena && page.arena && !is_stopping(r)) {
		struct docs_watch watch = { 0 };
		struct err err = { 0 };
		enum status status = watch_begin(r, watch_arena, &watch);

		if (status == STATUS_OK)
			status = catch_up(r, &page, &number, &err);
		if (status != STATUS_OK)
			log_event(LOG_LEVEL_WARN, "replicator_db_unread", "status=%s reason=\"%s\"",
				  status_name(status), err.text);
		await(r, &watch, status != STATUS_OK);
		watch_release(&watch);
		arena_clear(watch_arena);
	}
	arena_free(watch_arena);
	arena_free(page.arena);
	replicator_fiber_ended(r);
}

/* ---- Telling a document ---- */

struct telling {
	struct replicator *replicator;
	const struct docs_verdict *verdict;
	struct arena *arena;
};

static bool
is_replaced(struct str name)
{
	static const char *const names[] = {
		"_replication_state",
		"_replication_state_time",
		"_replication_state_reason",
		"_replication_stats",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_eq(name, str_from_cstr(names[i])))
			return true;
	return false;
}

static enum status
write_told(struct str text, const struct docs_verdict *v, struct arena *arena, struct buf *out)
{
	struct json_value object;
	struct json_member *members;
	size_t count;
	char date[CHECKPOINT_DATE_BYTES];

	TRY(json_value_read(text, arena, &object, NULL));
	TRY(json_value_members(&object, arena, &members, &count, NULL));
	buf_append_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		if (is_replaced(members[i].name))
			continue;
		json_write_str(out, members[i].name);
		buf_append_byte(out, ':');
		buf_append_str(out, members[i].value.text);
		buf_append_byte(out, ',');
	}
	checkpoint_iso_date(clock_wall_ms(), date);
	buf_printf(out, "\"_replication_state\":\"%s\",\"_replication_state_time\":\"%s\"",
		   v->state, date);
	if (v->failed) {
		buf_append_cstr(out, ",\"_replication_state_reason\":");
		json_write_str(out, str_from_cstr(v->detail));
	} else {
		buf_append_cstr(out, ",\"_replication_stats\":");
		buf_append_cstr(out, v->detail);
	}
	buf_append_byte(out, '}');
	return buf_status(out);
}

/* Attachments stay as they are. */
static enum status
keep_atts(const struct rev_doc *doc, struct arena *arena, struct rev_edit *edit)
{
	struct rev_att_edit *atts = arena_zalloc(arena, (doc->atts_count + 1) * sizeof(*atts));

	if (!atts)
		return STATUS_LIMIT;
	for (size_t i = 0; i < doc->atts_count; i++)
		atts[i] = (struct rev_att_edit){ .source = REV_ATT_STUB,
						 .att = { .name = doc->atts[i].name } };
	edit->atts = atts;
	edit->atts_count = doc->atts_count;
	return STATUS_OK;
}

static enum status
tell_in_db(struct kv_tx *tx, const struct rev_db *db, struct telling *t)
{
	struct str id = str_from_cstr(t->verdict->id);
	const struct doc_limits limits = {
		.doc_bytes = DOC_LIMIT_MAX_BYTES,
		.path_bytes = KV_LIMIT_KEY_BYTES,
		.packed_bytes = rev_scheme_packed_bytes(db->scheme),
	};
	struct buf AUTO(buf_release) told = BUF_INIT(DOCS_ARENA_BYTES);
	struct rev_edit edit = { .kind = REV_EDIT_INTERACTIVE, .id = id };
	struct rev_result result;
	struct rev_doc doc;
	struct str text;

	TRY(rev_doc_read(tx, db, id, t->arena, &doc));
	TRY(body_text(&doc, t->arena, &text));
	TRY(write_told(text, t->verdict, t->arena, &told));
	text = arena_dup(t->arena, buf_str(&told));
	if (!text.ptr)
		return STATUS_LIMIT;
	TRY(doc_explode_text(text, t->arena, &limits, rev_doc_prefix_bytes(db, id), &edit.doc,
			     NULL));
	edit.parent = doc.rev;
	TRY(keep_atts(&doc, t->arena, &edit));
	TRY(rev_write(tx, db, &edit, 1, 0, t->arena, &result, NULL));
	return result.status;
}

static enum status
tell_doc(struct kv_tx *tx, void *arg)
{
	struct telling *t = arg;
	struct rev_db *db;
	enum status status;

	arena_clear(t->arena);
	TRY(rev_db_open(tx, NULL, STR(DOCS_DB), &db, NULL));
	status = tell_in_db(tx, db, t);
	rev_db_unref(db);
	return status;
}

static void
tell_one(struct replicator *r, const struct docs_verdict *v)
{
	struct telling t = { r, v, arena_new(DOCS_ARENA_BYTES) };
	struct err err = { 0 };
	enum status status = t.arena ? kv_run(r->config.store, tell_doc, &t, NULL, &err)
				     : STATUS_NOMEM;

	/* It may have been deleted meanwhile. */
	if (status != STATUS_OK && status != STATUS_NOT_FOUND && status != STATUS_DELETED)
		log_event(LOG_LEVEL_WARN, "replication_untold", "doc=\"%s\" state=%s status=%s",
			  v->id, v->state, status_name(status));
	arena_free(t.arena);
}

static struct docs_verdict *
take_verdict(struct replicator *r, bool *ret_stopping)
{
	struct docs_verdict *v;

	pthread_mutex_lock(&r->lock);
	v = r->verdicts;
	if (v)
		r->verdicts = v->next;
	else
		event_init(&r->verdicts_bell);
	/* A job that ends while others are being stopped is told, too. */
	*ret_stopping = r->stopping && r->drained;
	pthread_mutex_unlock(&r->lock);
	return v;
}

void
docs_write_verdicts(void *replicator)
{
	struct replicator *r = replicator;
	bool stopping;

	for (;;) {
		struct docs_verdict *v = take_verdict(r, &stopping);

		if (v) {
			tell_one(r, v);
			mem_free(v->id);
			mem_free(v->detail);
			mem_free(v);
		} else if (stopping) {
			break;
		} else {
			(void)event_wait(&r->verdicts_bell, WAIT_FOREVER);
		}
	}
	replicator_fiber_ended(r);
}
