/* Loading into a server: batches as POST /db/_bulk_docs. */
#include "cli/load.h"

#include "base/mem.h"
#include "cli/input.h"
#include "cli/remote.h"
#include "http/escape.h"
#include "doc/json.h"

enum {
	/* Below what a CouchDB takes by default: 8 MB for a document, 4 GB for a body. */
	BATCH_BYTES = 8 * 1000 * 1000,
	BODY_BYTES = BATCH_BYTES + INPUT_VALUE_BYTES,
	PATH_BYTES = 4096,
};

struct sent {
	struct str id; /* in the batch's arena */
	struct load_origin origin;
};

struct server_sink {
	struct load_sink sink;
	struct load_options options;
	struct remote *remote;
	struct str path; /* "/db" */
	struct buf path_text;
	struct buf body;
	struct buf answer;
	struct arena *arena;
	struct sent *sent;
	size_t count;
};

/* One element of the answer: {"ok":true,"id":...} or {"id":...,"error":...,"reason":...}. */
struct outcome {
	struct str id;
	struct str error;
	struct str reason;
};

static enum status
server_read_outcome(struct json_reader *r, struct arena *arena, struct outcome *ret)
{
	enum json_token token = JSON_END;
	struct str value;

	*ret = (struct outcome){ 0 };
	for (;;) {
		struct str *wanted = NULL;

		TRY(json_next(r, &token));
		if (token == JSON_OBJECT_END)
			return STATUS_OK;
		if (str_eq(r->text, STR("id")))
			wanted = &ret->id;
		else if (str_eq(r->text, STR("error")))
			wanted = &ret->error;
		else if (str_eq(r->text, STR("reason")))
			wanted = &ret->reason;
		TRY(json_next(r, &token));
		if (wanted && token == JSON_STRING) {
			*wanted = arena_dup(arena, r->text);
			if (!wanted->ptr)
				return STATUS_LIMIT;
		}
		TRY(json_skip(r, token, &value));
	}
}

/*
 * The document that an outcome is about: the one at `index`, or, without new edits, the one that
 * the outcome names.
 */
static const struct sent *
server_find_sent(const struct server_sink *s, const struct outcome *outcome, size_t index)
{
	if (s->options.new_edits)
		return index < s->count ? &s->sent[index] : NULL;
	for (size_t i = 0; i < s->count; i++)
		if (str_eq(s->sent[i].id, outcome->id))
			return &s->sent[i];
	return NULL;
}

static enum status
server_report_outcomes(struct server_sink *s, struct json_reader *r)
{
	enum json_token token = JSON_END;
	size_t refused = 0;

	TRY(json_next(r, &token));
	if (token != JSON_ARRAY_BEGIN)
		return STATUS_INVALID;
	for (size_t i = 0;; i++) {
		const struct sent *sent;
		struct outcome outcome;

		TRY(json_next(r, &token));
		if (token == JSON_ARRAY_END)
			break;
		if (token != JSON_OBJECT_BEGIN)
			return STATUS_INVALID;
		TRY(server_read_outcome(r, s->arena, &outcome));
		sent = server_find_sent(s, &outcome, i);
		if (!sent)
			return STATUS_INVALID;
		if (!outcome.error.ptr)
			continue;
		refused++;
		load_refuse(s->options.report, &sent->origin, "document \"%.*s\": %.*s: %.*s",
			    STR_ARG(sent->id), STR_ARG(outcome.error), (int)outcome.reason.len,
			    outcome.reason.len ? outcome.reason.ptr : "");
	}
	s->options.report->loaded += s->count - refused;
	return STATUS_OK;
}

static void
server_begin_batch(struct server_sink *s)
{
	s->count = 0;
	arena_clear(s->arena);
	buf_clear(&s->body);
	buf_append_cstr(&s->body,
			s->options.new_edits ? "{\"docs\":[" : "{\"new_edits\":false,\"docs\":[");
}

static enum status
server_flush(struct load_sink *sink, struct err *err)
{
	struct server_sink *s = (struct server_sink *)sink;
	AUTO(buf_release) struct buf path = BUF_INIT(4096);
	struct json_reader r;
	enum status status;
	int http_status = 0;

	if (s->count == 0)
		return STATUS_OK;
	buf_append_cstr(&s->body, "]}");
	buf_append_str(&path, s->path);
	buf_append_cstr(&path, "/_bulk_docs");
	if (buf_status(&s->body) != STATUS_OK || buf_status(&path) != STATUS_OK)
		return err_set(err, STATUS_NOMEM, "out of memory");
	TRY(remote_request(s->remote, "POST", buf_str(&path), buf_str(&s->body), &http_status,
			   &s->answer, err));
	if (http_status != 201 && http_status != 202)
		return remote_refused(s->remote, buf_str(&path), http_status, buf_str(&s->answer),
				      err);
	json_reader_init(&r, buf_str(&s->answer), NULL);
	status = server_report_outcomes(s, &r);
	json_reader_release(&r);
	if (status != STATUS_OK)
		return err_set(err, status, "%s: cannot make sense of the answer to _bulk_docs",
			       remote_name(s->remote));
	server_begin_batch(s);
	return STATUS_OK;
}

static enum status
server_put(struct load_sink *sink, const struct load_doc *doc, struct err *err)
{
	struct server_sink *s = (struct server_sink *)sink;
	struct str id;

	if (doc->text.len - doc->special_bytes > s->options.doc_bytes) {
		load_refuse(s->options.report, &doc->origin,
			    "the document has %zu bytes; the limit is %zu",
			    doc->text.len - doc->special_bytes, s->options.doc_bytes);
		return STATUS_OK;
	}
	if (s->count && s->body.len + doc->text.len > BATCH_BYTES)
		TRY(server_flush(sink, err));
	if (s->count)
		buf_append_byte(&s->body, ',');
	if (doc->has_id) {
		buf_append_str(&s->body, doc->text);
	} else {
		buf_append_cstr(&s->body, "{\"_id\":");
		json_write_str(&s->body, doc->id);
		if (doc->has_members)
			buf_append_byte(&s->body, ',');
		buf_append_str(&s->body, str_skip(doc->text, 1));
	}
	id = arena_dup(s->arena, doc->id);
	if (!id.ptr || buf_status(&s->body) != STATUS_OK)
		return err_set(err, STATUS_NOMEM, "out of memory");
	s->sent[s->count++] = (struct sent){ id, doc->origin };
	return s->count == s->options.batch_docs ? server_flush(sink, err) : STATUS_OK;
}

static void
server_free(struct load_sink *sink)
{
	struct server_sink *s = (struct server_sink *)sink;

	remote_free(s->remote);
	buf_release(&s->path_text);
	buf_release(&s->body);
	buf_release(&s->answer);
	arena_free(s->arena);
	mem_free(s->sent);
	mem_free(s);
}

/* Creates the database, or makes sure that it exists. */
static enum status
server_open_database(struct server_sink *s, struct err *err)
{
	AUTO(buf_release) struct buf target = BUF_INIT(PATH_BYTES);
	const char *method = s->options.create ? "PUT" : "GET";
	int http_status = 0;

	buf_append_str(&target, s->path);
	if (s->options.create && s->options.partitioned)
		buf_append_cstr(&target, "?partitioned=true");
	if (s->options.create && s->options.scheme) {
		buf_append_cstr(&target, s->options.partitioned ? "&scheme=" : "?scheme=");
		buf_append_cstr(&target, rev_scheme_name(s->options.scheme));
	}
	TRY(buf_status(&target));
	TRY(remote_request(s->remote, method, buf_str(&target), (struct str){ NULL, 0 },
			   &http_status, &s->answer, err));
	if (http_status / 100 == 2 || (s->options.create && http_status == 412))
		return STATUS_OK;
	return remote_refused(s->remote, s->path, http_status, buf_str(&s->answer), err);
}

enum status
load_sink_server(const char *url, const struct load_options *options, struct load_sink **ret,
		 struct err *err)
{
	struct server_sink *s = mem_zalloc(sizeof(*s));
	enum status status;

	if (!s)
		return err_set(err, STATUS_NOMEM, "out of memory");
	*s = (struct server_sink){
		.sink = { server_put, server_flush, server_free },
		.options = *options,
		.path_text = BUF_INIT(PATH_BYTES),
		.body = BUF_INIT(BODY_BYTES),
		.answer = BUF_INIT(REMOTE_ANSWER_BYTES),
		.arena = arena_new(LOAD_ARENA_BYTES),
		.sent = mem_alloc(options->batch_docs * sizeof(*s->sent)),
	};
	buf_append_byte(&s->path_text, '/');
	http_escape(&s->path_text, str_from_cstr(options->db));
	s->path = buf_str(&s->path_text);
	if (!s->arena || !s->sent || buf_status(&s->path_text) != STATUS_OK)
		status = err_set(err, STATUS_NOMEM, "out of memory");
	else
		status = remote_new(url, &s->remote, err);
	if (status == STATUS_OK)
		status = server_open_database(s, err);
	if (status != STATUS_OK) {
		server_free(&s->sink);
		return status;
	}
	server_begin_batch(s);
	*ret = &s->sink;
	return STATUS_OK;
}
