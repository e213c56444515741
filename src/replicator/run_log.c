/* How a run begins, and the checkpoints that it leaves at both ends. */
#include "replicator/run_int.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/rand.h"
#include "http/escape.h"

/*
 * The JSON text of a member of an answer, in the answer's buffer. ptr NULL if the answer is no
 * object or has no such member.
 */
static struct str
answer_member_text(struct repl_run *r, struct buf *answer, const char *name)
{
	struct arena_mark mark = arena_mark(r->arena);
	struct json_value value;
	struct json_member *members;
	const struct json_value *found = NULL;
	struct str text = { NULL, 0 };
	size_t count;

	if (json_value_read(buf_str(answer), r->arena, &value, NULL) == STATUS_OK &&
	    json_value_members(&value, r->arena, &members, &count, NULL) == STATUS_OK)
		found = json_value_find(members, count, name);
	if (found)
		text = found->text;
	arena_reset(r->arena, mark);
	return text;
}

/* ---- Opening both ends ---- */

static enum status
run_create_target(struct repl_run *r, struct err *err)
{
	struct buf AUTO(buf_release) answer = BUF_INIT_OF(PEER_ANSWER_BYTES, &r->part);
	struct buf AUTO(buf_release) path = BUF_INIT(SPEC_ARENA_BYTES);
	struct peer_request request = { .method = "PUT" };
	int code;

	if (r->spec->create_params.len) {
		buf_append_byte(&path, '?');
		buf_append_str(&path, r->spec->create_params);
	}
	TRY(buf_status(&path));
	request.path = path.len ? buf_str(&path) : STR("");
	TRY(peer_ask(&r->target, &request, &code, &answer, err));
	/* 412: the database exists already, which is as good. */
	if (code == 201 || code == 202 || code == 412)
		return STATUS_OK;
	return peer_refused(&r->target, &request, code, err);
}

static enum status
run_open_end(struct repl_run *r, struct peer *p, struct str *ret_start, struct err *err)
{
	struct buf AUTO(buf_release) answer = BUF_INIT_OF(PEER_ANSWER_BYTES, &r->part);
	struct peer_request request = { .method = "GET", .path = STR("") };
	struct str start;
	int code;

	TRY(peer_ask(p, &request, &code, &answer, err));
	if (code != 200)
		return peer_refused(p, &request, code, err);
	start = answer_member_text(r, &answer, "instance_start_time");
	if (!run_keep_text(ret_start, start.ptr ? start : STR("\"0\"")))
		return STATUS_NOMEM;
	return STATUS_OK;
}

/*
 * Finds out whether the target understands attachments that come gzipped, as they are stored at the
 * source. CouchDB and frond do; other servers of the family would store the gzip file itself.
 */
static enum status
run_find_encodings(struct repl_run *r, struct err *err)
{
	struct buf AUTO(buf_release) answer = BUF_INIT_OF(PEER_ANSWER_BYTES, &r->part);
	struct peer_request request = { .method = "GET", .path = { NULL, 0 } };
	enum status status;
	int code;

	status = peer_ask(&r->target, &request, &code, &answer, err);
	if (status == STATUS_CANCELLED)
		return status;
	r->target.encodings = status == STATUS_OK && code == 200 &&
			      answer_member_text(r, &answer, "couchdb").ptr != NULL;
	return STATUS_OK;
}

static bool
filter_name_is_listed(struct str name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq_nocase(name, str_from_cstr(list[i])))
			return true;
	return false;
}

/*
 * Appends the parameters of a filter to the query of _changes, as CouchDB does: a string as it is,
 * any other value as JSON. What the replicator asks by is its own, and stays as it asks it.
 */
static void
filter_write_params(struct str filter, const struct json_member *members, size_t count,
		    struct buf *query)
{
	static const char *const own[] = { "feed",          "style",      "limit",
					   "since",         "heartbeat",  "timeout",
					   "last-event-id", "descending", "filter",
					   "seq_interval" };
	/* Those of a view, where a string is JSON as well. */
	static const char *const of_views[] = { "key", "keys", "start_key", "end_key" };
	bool is_view = str_eq(filter, STR("_view"));

	for (size_t i = 0; i < count; i++) {
		const struct json_value *value = &members[i].value;
		struct str name = members[i].name;
		bool as_json = value->kind != JSON_STRING ||
			       (is_view &&
				filter_name_is_listed(name, of_views,
						      sizeof(of_views) / sizeof(of_views[0])));

		if (filter_name_is_listed(name, own, sizeof(own) / sizeof(own[0])))
			continue;
		buf_append_byte(query, '&');
		http_escape(query, name);
		buf_append_byte(query, '=');
		http_escape(query, as_json ? value->text : value->string);
	}
}

static enum status
run_write_filter(struct repl_run *r, struct err *err)
{
	const struct repl_spec *spec = r->spec;
	struct buf AUTO(buf_release) query = BUF_INIT(SPEC_ARENA_BYTES);
	struct buf AUTO(buf_release) body = BUF_INIT(SPEC_ARENA_BYTES);
	struct json_value params = { .kind = JSON_OBJECT_BEGIN, .text = spec->query_params };
	struct json_member *members;
	size_t count;

	if (spec->by_ids) {
		buf_append_cstr(&query, "&filter=_doc_ids");
		buf_append_cstr(&body, "{\"doc_ids\":");
		buf_append_str(&body, spec->ids);
		buf_append_byte(&body, '}');
	} else if (spec->selector.ptr) {
		buf_append_cstr(&query, "&filter=_selector");
		buf_append_cstr(&body, "{\"selector\":");
		buf_append_str(&body, spec->selector);
		buf_append_byte(&body, '}');
	} else if (spec->filter.ptr) {
		buf_append_cstr(&query, "&filter=");
		http_escape(&query, spec->filter);
	}
	if (spec->filter.ptr && spec->query_params.ptr) {
		TRY(json_value_members(&params, r->arena, &members, &count, err));
		filter_write_params(spec->filter, members, count, &query);
	}
	TRY(buf_status(&query));
	TRY(buf_status(&body));
	r->filter_query = buf_dup(&query, r->arena);
	if (body.len)
		r->filter_body = buf_dup(&body, r->arena);
	return r->filter_query.ptr && (!body.len || r->filter_body.ptr) ? STATUS_OK : STATUS_LIMIT;
}

/*
 * The text of a filter function in a design document, as JSON. A function that is not there ends
 * the run: no source could ever filter by it.
 */
static enum status
run_find_function(struct repl_run *r, struct buf *ddoc, struct str design, struct str name,
		  struct str *ret, struct err *err)
{
	struct json_value filters = { .text = answer_member_text(r, ddoc, "filters") };
	struct json_member *members;
	size_t count = 0;
	bool found = false;

	if (filters.text.ptr) {
		TRY(json_value_read(filters.text, r->arena, &filters, err));
		found = filters.kind == JSON_OBJECT_BEGIN;
	}
	if (found)
		TRY(json_value_members(&filters, r->arena, &members, &count, err));
	for (size_t i = 0; i < count; i++) {
		if (str_eq(members[i].name, name)) {
			*ret = members[i].value.text;
			return STATUS_OK;
		}
	}
	return err_set(err, STATUS_NOT_FOUND,
		       "not_found: Couldn't parse filter code from document %s on `%s` Error: "
		       "missing json key: %s",
		       QUOTE_SHOW(design), QUOTE_SHOW(r->source.end->name),
		       found ? QUOTE_SHOW(name) : "filters");
}

/*
 * Chooses the name of the checkpoints. Under a filter function it depends on the function's text as
 * well: documents that another function has held back may pass this one, so a run with a changed
 * function must not begin behind them.
 */
static enum status
run_name_log(struct repl_run *r, struct err *err)
{
	struct buf AUTO(buf_release) answer = BUF_INIT_OF(PEER_ANSWER_BYTES, &r->part);
	struct buf AUTO(buf_release) path = BUF_INIT(SPEC_ARENA_BYTES);
	struct peer_request request = { .method = "GET" };
	struct str design;
	struct str function;
	size_t slash;
	int code;

	r->log_id = str_from_cstr(r->config->id);
	if (!repl_spec_filters_by_function(r->spec, &slash))
		return STATUS_OK;
	design = str_of(r->spec->filter.ptr, slash);
	buf_append_cstr(&path, "_design/");
	http_escape(&path, design);
	TRY(buf_status(&path));
	request.path = buf_str(&path);
	TRY(peer_ask(&r->source, &request, &code, &answer, err));
	if (code == 404)
		return err_set(
			err, STATUS_NOT_FOUND,
			"not_found: Couldn't open document `_design/%s` from source database "
			"`%s`: not_found",
			QUOTE_SHOW(design), QUOTE_SHOW(r->source.end->name));
	if (code != 200)
		return peer_refused(&r->source, &request, code, err);
	TRY(run_find_function(r, &answer, design, str_skip(r->spec->filter, slash + 1), &function,
			      err));
	r->log_id = repl_spec_filtered_id(r->config->id, function, r->arena);
	return r->log_id.ptr ? STATUS_OK : STATUS_LIMIT;
}

/* CouchDB looks for a filter's function first, and has other words then for a missing source. */
static enum status
run_open_source(struct repl_run *r, struct err *err)
{
	enum status status = run_open_end(r, &r->source, &r->source_start, err);
	size_t slash;

	if (status == STATUS_NOT_FOUND && repl_spec_filters_by_function(r->spec, &slash))
		return err_set(err, status,
			       "not_found: Could not open source database `%s`: db_not_found",
			       QUOTE_SHOW(r->source.end->name));
	return status;
}

/* ---- Where the last run ended ---- */

static struct str
run_log_path(struct repl_run *r)
{
	return arena_printf(r->arena, "_local/%.*s", STR_ARG(r->log_id));
}

/* Reads an end's checkpoint without its special members. ptr NULL: the end has none. */
static enum status
run_read_log(struct repl_run *r, struct peer *p, struct str *ret, struct str *ret_rev,
	     struct err *err)
{
	struct buf AUTO(buf_release) answer = BUF_INIT_OF(PEER_ANSWER_BYTES, &r->part);
	struct buf AUTO(buf_release) body = BUF_INIT_OF(PEER_ANSWER_BYTES, &r->part);
	struct peer_request request = { .method = "GET", .path = run_log_path(r) };
	struct json_value value;
	struct json_member *members;
	size_t count;
	int code;

	*ret = (struct str){ NULL, 0 };
	TRY(peer_ask(p, &request, &code, &answer, err));
	if (code == 404)
		return STATUS_OK;
	if (code != 200)
		return peer_refused(p, &request, code, err);
	TRY(json_value_read(buf_str(&answer), r->arena, &value, err));
	TRY(json_value_members(&value, r->arena, &members, &count, err));
	buf_append_byte(&body, '{');
	for (size_t i = 0; i < count; i++) {
		if (str_eq(members[i].name, STR("_rev")) &&
		    !run_keep_text(ret_rev, members[i].value.text))
			return STATUS_NOMEM;
		if (members[i].name.len && members[i].name.ptr[0] == '_')
			continue;
		if (body.len > 1)
			buf_append_byte(&body, ',');
		json_write_str(&body, members[i].name);
		buf_append_byte(&body, ':');
		buf_append_str(&body, members[i].value.text);
	}
	buf_append_byte(&body, '}');
	TRY(buf_status(&body));
	*ret = buf_dup(&body, r->arena);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
run_begin_session(struct repl_run *r, struct err *err)
{
	uint8_t noise[CHECKPOINT_SESSION_BYTES / 2];
	struct str source_log = { NULL, 0 };
	struct str target_log = { NULL, 0 };
	struct str seq;

	if (r->spec->options.use_checkpoints) {
		TRY(run_read_log(r, &r->source, &source_log, &r->source_log_rev, err));
		TRY(run_read_log(r, &r->target, &target_log, &r->target_log_rev, err));
	}
	TRY(checkpoint_compare(source_log, target_log, r->arena, &r->found));
	run_go_on_counting(r, &r->found.counts);
	r->old_log = source_log;
	seq = r->spec->since.ptr ? r->spec->since : r->found.seq;
	if (seq.len > RUN_SEQ_BYTES)
		return err_set(err, STATUS_INVALID, "a sequence of %zu bytes", seq.len);
	if (!run_keep_text(&r->through, seq) || !run_keep_text(&r->committed, seq))
		return STATUS_NOMEM;
	r->session.start_seq = arena_dup(r->arena, seq);
	if (!r->session.start_seq.ptr)
		return STATUS_LIMIT;
	r->session.by_ids = r->spec->by_ids;
	rand_bytes(noise, sizeof(noise));
	for (size_t i = 0; i < sizeof(noise); i++)
		snprintf(r->session.id + 2 * i, 3, "%02x", noise[i]);
	checkpoint_http_date(clock_wall_ms(), r->session.started);
	run_publish(r, &r->config->progress->through_seq, seq);
	run_publish(r, &r->config->progress->committed_seq, seq);
	run_publish(r, &r->config->progress->source_seq, seq);
	return STATUS_OK;
}

enum status
run_find_filter(struct repl_run *r, struct err *err)
{
	struct run_progress *p = r->config->progress;
	enum status status = run_open_source(r, err);
	size_t slash;

	if (status == STATUS_OK)
		status = run_write_filter(r, err);
	if (status == STATUS_OK)
		status = run_name_log(r, err);
	if (status != STATUS_OK && repl_spec_filters_by_function(r->spec, &slash)) {
		pthread_mutex_lock(p->lock);
		p->lacks_filter = true;
		pthread_mutex_unlock(p->lock);
	}
	return status;
}

enum status
run_open_ends(struct repl_run *r, struct err *err)
{
	TRY(run_find_filter(r, err));
	if (r->spec->create_target)
		TRY(run_create_target(r, err));
	TRY(run_open_end(r, &r->target, &r->target_start, err));
	TRY(run_find_encodings(r, err));
	return run_begin_session(r, err);
}

/* ---- Checkpoints ---- */

/*
 * Makes sure that an end has everything on its disk, and that its database has not been replaced by
 * another one of the same name since the run began.
 */
static enum status
run_commit_end(struct repl_run *r, struct peer *p, struct str start, const char *which,
	       struct err *err)
{
	struct buf AUTO(buf_release) answer = BUF_INIT_OF(PEER_ANSWER_BYTES, &r->part);
	struct peer_request request = {
		.method = "POST",
		.path = STR("_ensure_full_commit"),
		.body = STR("{}"),
	};
	const struct str none = STR("\"0\"");
	struct str now;
	int code;

	TRY(peer_ask(p, &request, &code, &answer, err));
	if (code != 200 && code != 201)
		return err_set(err, STATUS_IO,
			       "checkpoint_commit_failure: Failure on %s commit: %d", which, code);
	now = answer_member_text(r, &answer, "instance_start_time");
	if (!now.ptr || str_eq(now, start) || str_eq(now, none) || str_eq(start, none))
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "checkpoint_commit_failure: instance_start_time on %s database has "
		       "changed since last checkpoint.",
		       which);
}

/*
 * After a conflict: if the checkpoint there is of this session, an earlier try has written it and
 * only its answer was lost. Otherwise another replicator has written it, and this run fails.
 */
static enum status
run_accept_own_log(struct repl_run *r, struct peer *p, const char *which, struct str *rev,
		   struct err *err)
{
	struct str log = { NULL, 0 };
	struct str session;
	struct buf text = BUF_INIT_OF(PEER_ANSWER_BYTES, &r->part);

	TRY(run_read_log(r, p, &log, rev, err));
	if (log.ptr) {
		buf_append_str(&text, log);
		session = answer_member_text(r, &text, "session_id");
		if (session.len == CHECKPOINT_SESSION_BYTES + 2 &&
		    memcmp(session.ptr + 1, r->session.id, CHECKPOINT_SESSION_BYTES) == 0) {
			buf_release(&text);
			return STATUS_OK;
		}
	}
	buf_release(&text);
	return err_set(err, STATUS_INVALID,
		       "checkpoint_commit_failure: Error updating the %s checkpoint document: "
		       "conflict",
		       which);
}

static enum status
run_put_log(struct repl_run *r, struct peer *p, const char *which, struct str members,
	    struct str *rev, struct err *err)
{
	struct buf AUTO(buf_release) answer = BUF_INIT_OF(PEER_ANSWER_BYTES, &r->part);
	struct buf AUTO(buf_release) body = BUF_INIT_OF(PEER_ANSWER_BYTES, &r->part);
	struct peer_request request = { .method = "PUT", .path = run_log_path(r) };
	struct str written;
	int code;

	buf_printf(&body, "{\"_id\":\"_local/%.*s\",", STR_ARG(r->log_id));
	if (rev->ptr)
		buf_printf(&body, "\"_rev\":%.*s,", STR_ARG(*rev));
	buf_append_str(&body, members);
	buf_append_byte(&body, '}');
	TRY(buf_status(&body));
	request.body = buf_str(&body);
	TRY(peer_ask(p, &request, &code, &answer, err));
	if (code == 409)
		return run_accept_own_log(r, p, which, rev, err);
	if (code != 200 && code != 201 && code != 202)
		return err_set(err, STATUS_INVALID,
			       "checkpoint_commit_failure: Error updating the %s checkpoint "
			       "document: %d",
			       which, code);
	written = answer_member_text(r, &answer, "rev");
	if (written.ptr && !run_keep_text(rev, written))
		return STATUS_NOMEM;
	return STATUS_OK;
}

static enum status
run_write_logs(struct repl_run *r, struct str seq, uint64_t ended_ms, struct err *err)
{
	struct buf AUTO(buf_release) members = BUF_INIT_OF(PEER_ANSWER_BYTES, &r->part);
	struct run_progress *progress = r->config->progress;
	struct checkpoint_counts counts;

	pthread_mutex_lock(progress->lock);
	counts = progress->counts;
	pthread_mutex_unlock(progress->lock);
	TRY(run_commit_end(r, &r->target, r->target_start, "target", err));
	TRY(run_commit_end(r, &r->source, r->source_start, "source", err));
	checkpoint_write(&r->session, seq, ended_ms, &counts, &r->found, &members);
	TRY(buf_status(&members));
	TRY(run_put_log(r, &r->source, "source", buf_str(&members), &r->source_log_rev, err));
	return run_put_log(r, &r->target, "target", buf_str(&members), &r->target_log_rev, err);
}

enum status
run_checkpoint(struct repl_run *r, struct err *err)
{
	struct arena_mark mark = arena_mark(r->arena);
	uint64_t ended_ms = clock_wall_ms();
	struct str seq = { NULL, 0 };
	enum status status;

	if (!r->spec->options.use_checkpoints || str_eq(r->through, r->committed))
		return STATUS_OK;
	/*
	 * Workers go on while this fiber waits, so `through` may move: the checkpoint has its own
	 * copy.
	 */
	if (!run_keep_text(&seq, r->through))
		return STATUS_NOMEM;
	status = run_write_logs(r, seq, ended_ms, err);
	arena_reset(r->arena, mark);
	if (status == STATUS_OK) {
		r->recorded_ms = ended_ms;
		run_publish(r, &r->config->progress->committed_seq, seq);
		if (!run_keep_text(&r->committed, seq))
			status = STATUS_NOMEM;
	}
	mem_free((char *)(uintptr_t)seq.ptr);
	return status;
}
