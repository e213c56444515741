/* What _scheduler/docs tells: of each document its job, or how that ended. */
#include "replicator/docs.h"
#include "replicator/lease.h"

#include <stdio.h>

#include "base/mem.h"
#include "doc/json_value.h"
#include "model/revisioned/revisioned.h"

enum {
	LIST_PAGE = 100,
};

struct listing {
	struct replicator *replicator;
	const struct replicator_docs_query *query;
	struct arena *arena;
	struct buf *out;
	uint64_t total;
	uint64_t passed;
	uint64_t written;
};

static void
write_head(struct buf *out, struct str id)
{
	buf_append_cstr(out, "{\"database\":\"_replicator\"");
	job_write_text(out, "doc_id", id);
}

/* ---- Of a job ---- */

void
job_write_doc(const struct job *j, struct buf *out)
{
	char date[CHECKPOINT_DATE_BYTES];

	write_head(out, j->spec->doc_id);
	job_write_text(out, "id", str_from_cstr(j->full_id));
	buf_append_cstr(out, ",\"node\":\"nonode@nohost\"");
	job_write_text(out, "source", j->spec->source.name);
	job_write_text(out, "target", j->spec->target.name);
	job_write_text(out, "state", str_from_cstr(job_state_name(j->state)));
	buf_append_cstr(out, ",\"info\":");
	job_write_info(j, out);
	buf_printf(out, ",\"error_count\":%u", j->crashes);
	checkpoint_iso_date(j->past[0].at_ms, date);
	job_write_text(out, "last_updated", str_from_cstr(date));
	checkpoint_iso_date(j->added_ms, date);
	job_write_text(out, "start_time", str_from_cstr(date));
	buf_append_cstr(out, ",\"source_proxy\":null,\"target_proxy\":null}");
}

/* ---- Of a document whose job is over, or has not begun ---- */

static struct str
string_in(const struct json_member *members, size_t count, const char *name)
{
	const struct json_value *value = json_value_find(members, count, name);

	return value && value->kind == JSON_STRING ? value->string : (struct str){ NULL, 0 };
}

/* An end without credentials. */
static struct str
end_name(const struct json_member *members, size_t count, const char *which, struct arena *arena)
{
	const struct json_value *value = json_value_find(members, count, which);
	struct json_member *inner;
	struct str text = { NULL, 0 };
	struct net_url url;
	size_t n;

	if (value && value->kind == JSON_STRING)
		text = value->string;
	else if (value && value->kind == JSON_OBJECT_BEGIN &&
		 json_value_members(value, arena, &inner, &n, NULL) == STATUS_OK)
		text = string_in(inner, n, "url");
	if (text.ptr && net_url_parse(text, arena, &url, NULL) == STATUS_OK)
		text = url.bare;
	return text;
}

static void
write_ended(const struct json_member *members, size_t count, struct str id, struct arena *arena,
	    struct buf *out)
{
	struct str state = string_in(members, count, "_replication_state");
	const struct json_value *stats = json_value_find(members, count, "_replication_stats");
	struct str time = string_in(members, count, "_replication_state_time");
	struct str reason = string_in(members, count, "_replication_state_reason");
	bool failed = state.ptr && str_eq(state, STR("failed"));

	write_head(out, id);
	buf_append_cstr(out, ",\"id\":null,\"node\":\"nonode@nohost\"");
	job_write_text(out, "source", end_name(members, count, "source", arena));
	job_write_text(out, "target", end_name(members, count, "target", arena));
	job_write_text(out, "state", state.ptr ? state : STR("initializing"));
	buf_append_cstr(out, ",\"info\":");
	if (failed) {
		buf_append_cstr(out, "{\"error\":");
		json_write_str(out, reason.ptr ? reason : STR("unknown"));
		buf_append_byte(out, '}');
	} else if (stats) {
		buf_append_str(out, stats->text);
	} else {
		buf_append_cstr(out, "null");
	}
	buf_printf(out, ",\"error_count\":%d", failed ? 1 : 0);
	job_write_text(out, "last_updated", time);
	job_write_text(out, "start_time", time);
	buf_append_byte(out, '}');
}

/* ---- Documents ---- */

static enum status
read_members(struct kv_tx *tx, const struct rev_db *db, struct str id, struct arena *arena,
	     struct json_member **ret, size_t *ret_count)
{
	struct buf AUTO(buf_release) text = BUF_INIT(DOCS_ARENA_BYTES);
	struct rev_doc doc;
	struct json_value object;
	struct str copy;

	TRY(rev_doc_read(tx, db, id, arena, &doc));
	buf_append_byte(&text, '{');
	TRY(rev_body_write(&doc, false, &text));
	TRY(buf_status(&text));
	copy = arena_dup(arena, buf_str(&text));
	if (!copy.ptr)
		return STATUS_LIMIT;
	TRY(json_value_read(copy, arena, &object, NULL));
	return json_value_members(&object, arena, ret, ret_count, NULL);
}

static bool
is_wanted(const struct replicator_docs_query *q, struct str state)
{
	struct str rest = q->states;

	if (!rest.len)
		return true;
	while (rest.len) {
		const char *comma = memchr(rest.ptr, ',', rest.len);
		size_t n = comma ? (size_t)(comma - rest.ptr) : rest.len;

		if (str_eq(str_trim(str_of(rest.ptr, n)), state))
			return true;
		rest = str_skip(rest, comma ? n + 1 : n);
	}
	return false;
}

/* The state in a text that another process has written by job_write_doc(). */
static struct str
doc_state_of(struct str text)
{
	static const enum job_state states[] = { JOB_PENDING, JOB_RUNNING, JOB_CRASHING };
	char member[32];

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		const char *name = job_state_name(states[i]);
		int n = snprintf(member, sizeof(member), "\"state\":\"%s\"", name);

		if (memmem(text.ptr, text.len, member, (size_t)n))
			return str_from_cstr(name);
	}
	return STR("running");
}

/* Writes the document's entry behind those that were written before. */
static enum status
write_entry(struct listing *l, struct str id, const struct json_member *members, size_t count)
{
	struct replicator *r = l->replicator;
	struct buf AUTO(buf_release) entry = BUF_INIT(REPLICATOR_ANSWER_BYTES);
	struct str state = string_in(members, count, "_replication_state");
	const struct lease_entry *e;
	struct job *j;

	if (!state.ptr)
		state = STR("initializing");
	pthread_mutex_lock(&r->lock);
	j = job_of_doc(r, id);
	e = lease_elsewhere_doc(r, id);
	if (e) {
		state = doc_state_of(e->texts[LEASE_TEXT_DOC]);
		buf_append_str(&entry, e->texts[LEASE_TEXT_DOC]);
	} else if (j && !j->dropped) {
		state = str_from_cstr(job_state_name(j->state));
		job_write_doc(j, &entry);
	}
	pthread_mutex_unlock(&r->lock);
	if (!entry.len)
		write_ended(members, count, id, l->arena, &entry);
	TRY(buf_status(&entry));
	if (!is_wanted(l->query, state))
		return STATUS_OK;
	if (l->passed++ < l->query->skip || l->written >= l->query->limit)
		return STATUS_OK;
	if (l->written++)
		buf_append_byte(l->out, ',');
	buf_append_str(l->out, buf_str(&entry));
	return buf_status(l->out);
}

static enum status
list_page(struct listing *l, struct kv_tx *tx, const struct rev_db *db,
	  const struct rev_entry_page *page)
{
	for (size_t i = 0; i < page->count; i++) {
		struct arena_mark mark = arena_mark(l->arena);
		struct json_member *members;
		size_t count;

		if (str_starts_with(page->entries[i].id, STR("_design/")))
			continue;
		l->total++;
		TRY(read_members(tx, db, page->entries[i].id, l->arena, &members, &count));
		TRY(write_entry(l, page->entries[i].id, members, count));
		arena_reset(l->arena, mark);
	}
	return STATUS_OK;
}

static enum status
list_db(struct listing *l, struct kv_tx *tx, const struct rev_db *db)
{
	struct rev_name_range range = { .limit = LIST_PAGE };
	struct rev_entry_page page;

	do {
		TRY(rev_all_docs_page(tx, db, &range, l->arena, &page));
		TRY(list_page(l, tx, db, &page));
		range.begin = page.last;
		range.has_begin = range.exclusive_begin = true;
	} while (page.more);
	return STATUS_OK;
}

static enum status
list_body(struct kv_tx *tx, void *arg)
{
	struct listing *l = arg;
	struct rev_db *db;
	enum status status;

	arena_clear(l->arena);
	buf_clear(l->out);
	l->total = l->passed = l->written = 0;
	TRY(rev_db_open(tx, NULL, STR("_replicator"), &db, NULL));
	status = list_db(l, tx, db);
	rev_db_unref(db);
	return status;
}

enum status
replicator_list_docs(struct replicator *r, const struct replicator_docs_query *query,
		     struct buf *out, uint64_t *ret_total, struct err *err)
{
	struct listing l = {
		.replicator = r,
		.query = query,
		.arena = arena_new(DOCS_ARENA_BYTES),
		.out = out,
	};
	enum status status = l.arena ? kv_run_read(r->config.store, list_body, &l, err)
				     : STATUS_NOMEM;

	arena_free(l.arena);
	*ret_total = l.total;
	return status;
}

struct showing {
	struct listing listing;
	struct str id;
};

static enum status
show_body(struct kv_tx *tx, void *arg)
{
	struct showing *s = arg;
	struct json_member *members;
	struct rev_db *db;
	size_t count;
	enum status status;

	arena_clear(s->listing.arena);
	buf_clear(s->listing.out);
	s->listing.passed = s->listing.written = 0;
	TRY(rev_db_open(tx, NULL, STR("_replicator"), &db, NULL));
	status = read_members(tx, db, s->id, s->listing.arena, &members, &count);
	rev_db_unref(db);
	return status == STATUS_OK ? write_entry(&s->listing, s->id, members, count) : status;
}

enum status
replicator_show_doc(struct replicator *r, struct str id, struct buf *out, struct err *err)
{
	static const struct replicator_docs_query all = { .limit = 1 };
	struct showing s = {
		.listing = { .replicator = r,
			     .query = &all,
			     .arena = arena_new(DOCS_ARENA_BYTES),
			     .out = out },
		.id = id,
	};
	enum status status = s.listing.arena ? kv_run_read(r->config.store, show_body, &s, err)
					     : STATUS_NOMEM;

	arena_free(s.listing.arena);
	return status;
}
