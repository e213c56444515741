/* What the target does not have of a batch, by way of _revs_diff, _bulk_get and _bulk_docs. */
#include "replicator/run_int.h"

/* ---- What is missing ---- */

static enum status
read_texts(const struct json_value *array, struct arena *arena, struct str **ret, size_t *ret_count,
	   struct err *err)
{
	struct json_value *items;
	size_t count;

	*ret_count = 0;
	if (!array)
		return STATUS_OK;
	TRY(json_value_items(array, arena, &items, &count, err));
	*ret = arena_alloc(arena, (count + 1) * sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		if (items[i].kind == JSON_STRING)
			(*ret)[(*ret_count)++] = items[i].string;
	return STATUS_OK;
}

static enum status
read_diff(struct batch *b, struct str text, struct missing **ret, size_t *ret_count,
	  uint64_t *ret_revs, struct err *err)
{
	struct json_value object;
	struct json_member *docs;
	struct missing *missing;
	size_t count;

	text = arena_dup(b->arena, text);
	if (!text.ptr)
		return STATUS_LIMIT;
	TRY(json_value_read(text, b->arena, &object, err));
	TRY(json_value_members(&object, b->arena, &docs, &count, err));
	missing = arena_zalloc(b->arena, (count + 1) * sizeof(*missing));
	if (!missing)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		struct missing *m = &missing[i];
		struct json_member *members;
		size_t n;

		m->id = docs[i].name;
		TRY(json_value_members(&docs[i].value, b->arena, &members, &n, err));
		TRY(read_texts(json_value_find(members, n, "missing"), b->arena, &m->revs,
			       &m->revs_count, err));
		TRY(read_texts(json_value_find(members, n, "possible_ancestors"), b->arena,
			       &m->ancestors, &m->ancestors_count, err));
		*ret_revs += m->revs_count;
	}
	*ret = missing;
	*ret_count = count;
	return STATUS_OK;
}

static enum status
find_missing(struct copier *c, struct batch *b, struct missing **ret, size_t *ret_count,
	     struct err *err)
{
	struct buf AUTO(buf_release) body = BUF_INIT(RUN_BATCH_BYTES);
	struct peer_request request = { .method = "POST", .path = STR("_revs_diff") };
	uint64_t revs = 0;
	enum status status;
	int code;

	buf_append_byte(&body, '{');
	for (size_t i = 0; i < b->count; i++) {
		const struct change *change = &b->changes[i];

		if (i)
			buf_append_byte(&body, ',');
		json_write_str(&body, change->id);
		buf_append_cstr(&body, ":[");
		for (size_t k = 0; k < change->revs_count; k++) {
			if (k)
				buf_append_byte(&body, ',');
			json_write_str(&body, change->revs[k]);
		}
		buf_append_byte(&body, ']');
	}
	buf_append_byte(&body, '}');
	TRY(buf_status(&body));
	request.body = buf_str(&body);
	TRY(peer_ask(&c->run->target, &request, &code, &c->answer, err));
	if (code != 200)
		return peer_refused(&c->run->target, &request, code, err);
	status = read_diff(b, buf_str(&c->answer), ret, ret_count, &revs, err);
	run_count(c->run, (struct checkpoint_counts){ .revisions_checked = b->revs,
						      .missing_found = revs });
	return status;
}

/* ---- To the target ---- */

static enum status
count_failures(struct copier *c, uint64_t *ret, struct err *err)
{
	struct json_value value;
	struct json_value *items;
	size_t count;

	TRY(json_value_read(buf_str(&c->answer), c->arena, &value, err));
	TRY(json_value_items(&value, c->arena, &items, &count, err));
	for (size_t i = 0; i < count; i++) {
		struct json_member *members;
		size_t n;

		if (items[i].kind != JSON_OBJECT_BEGIN)
			continue;
		TRY(json_value_members(&items[i], c->arena, &members, &n, err));
		if (json_value_find(members, n, "error"))
			(*ret)++;
	}
	return STATUS_OK;
}

static enum status send_docs(struct copier *c, struct str docs, size_t count, struct err *err);

/* A list that is too much at once goes in halves, up to a document that is too much by itself. */
static enum status
send_halves(struct copier *c, struct str docs, size_t count, struct err *err)
{
	struct json_value *items;
	struct json_value list = { .kind = JSON_ARRAY_BEGIN };
	struct arena_mark mark = arena_mark(c->arena);
	const char *split;
	enum status status;

	if (count == 1) {
		run_count(c->run, (struct checkpoint_counts){ .write_failures = 1 });
		return STATUS_OK;
	}
	list.text = arena_printf(c->arena, "[%.*s]", STR_ARG(docs));
	if (!list.text.ptr)
		return STATUS_LIMIT;
	TRY(json_value_items(&list, c->arena, &items, &count, err));
	split = items[count / 2].text.ptr;
	status = send_docs(c, str_of(list.text.ptr + 1, (size_t)(split - list.text.ptr) - 2),
			   count / 2, err);
	if (status == STATUS_OK)
		status = send_docs(
			c, str_of(split, list.text.len - 1 - (size_t)(split - list.text.ptr)),
			count - count / 2, err);
	arena_reset(c->arena, mark);
	return status;
}

static enum status
send_docs(struct copier *c, struct str docs, size_t count, struct err *err)
{
	struct buf AUTO(buf_release) body = BUF_INIT((size_t)RUN_ROW_BYTES + 2 * RUN_FLUSH_BYTES);
	struct peer_request request = { .method = "POST", .path = STR("_bulk_docs") };
	struct arena_mark mark = arena_mark(c->arena);
	uint64_t failures = 0;
	int code;

	buf_append_cstr(&body, "{\"new_edits\":false,\"docs\":[");
	buf_append_str(&body, docs);
	buf_append_cstr(&body, "]}");
	TRY(buf_status(&body));
	request.body = buf_str(&body);
	TRY(peer_ask(&c->run->target, &request, &code, &c->answer, err));
	if (code == 413)
		return send_halves(c, docs, count, err);
	if (code != 200 && code != 201 && code != 202)
		return peer_refused(&c->run->target, &request, code, err);
	TRY(count_failures(c, &failures, err));
	arena_reset(c->arena, mark);
	run_count(c->run, (struct checkpoint_counts){
				  .docs_written = failures < count ? count - failures : 0,
				  .write_failures = failures,
			  });
	return STATUS_OK;
}

enum status
copier_flush(struct copier *c, struct err *err)
{
	enum status status = STATUS_OK;

	if (c->count)
		status = send_docs(c, buf_str(&c->docs), c->count, err);
	buf_clear(&c->docs);
	c->count = 0;
	return status;
}

enum status
copier_add(struct copier *c, struct str doc, struct err *err)
{
	if (c->count && c->docs.len + doc.len > RUN_FLUSH_BYTES)
		TRY(copier_flush(c, err));
	if (c->count)
		buf_append_byte(&c->docs, ',');
	buf_append_str(&c->docs, doc);
	c->count++;
	return buf_status(&c->docs);
}

/* ---- From the source, many at once ---- */

/* The document that a row of _bulk_get is about, at or behind the one expected. */
static struct missing *
find_asked(struct missing *missing, size_t count, size_t *at, struct str id)
{
	for (size_t i = 0; i < count; i++) {
		struct missing *m = &missing[(*at + i) % count];

		if (str_eq(m->id, id)) {
			*at = (*at + i) % count;
			return m;
		}
	}
	return NULL;
}

static enum status
take_result(struct copier *c, struct missing *m, const struct json_value *result, struct err *err)
{
	struct json_member *members;
	const struct json_value *doc;
	bool has_atts = false;
	size_t count;

	TRY(json_value_members(result, c->arena, &members, &count, err));
	doc = json_value_find(members, count, "ok");
	if (!doc || doc->kind != JSON_OBJECT_BEGIN) {
		m->alone = true;
		return STATUS_OK;
	}
	TRY(doc_has_attachments(doc->text, c->arena, &has_atts, err));
	if (has_atts) {
		m->alone = true;
		return STATUS_OK;
	}
	run_count(c->run, (struct checkpoint_counts){ .docs_read = 1, .bulk_get_docs = 1 });
	return copier_add(c, doc->text, err);
}

struct asked {
	struct copier *copier;
	struct missing *missing;
	size_t count;
	size_t at; /* answers come in the order of the questions */
};

/* {"id":…,"docs":[{"ok":{…}},…]} */
static enum status
take_row(void *arg, struct str row, struct err *err)
{
	struct asked *asked = arg;
	struct copier *c = asked->copier;
	struct arena_mark mark = arena_mark(c->arena);
	struct json_value value;
	struct json_member *members;
	const struct json_value *id;
	const struct json_value *docs;
	struct json_value *items;
	struct missing *m;
	size_t n;

	TRY(json_value_read(row, c->arena, &value, err));
	TRY(json_value_members(&value, c->arena, &members, &n, err));
	id = json_value_find(members, n, "id");
	docs = json_value_find(members, n, "docs");
	m = id && id->kind == JSON_STRING
		    ? find_asked(asked->missing, asked->count, &asked->at, id->string)
		    : NULL;
	if (!m || !docs || docs->kind != JSON_ARRAY_BEGIN)
		return STATUS_OK;
	TRY(json_value_items(docs, c->arena, &items, &n, err));
	for (size_t i = 0; i < n; i++)
		TRY(take_result(c, m, &items[i], err));
	m->copied = !m->alone;
	arena_reset(c->arena, mark);
	return STATUS_OK;
}

static enum status
read_bulk(struct copier *c, struct net_call *call, struct missing *missing, size_t count,
	  struct err *err)
{
	struct asked asked = { c, missing, count, 0 };
	struct rows rows;
	struct str rest;
	enum status status;

	rows_init(&rows, RUN_ROW_BYTES);
	status = run_read_rows(&rows, call, take_row, &asked, &rest, err);
	if (status == STATUS_JSON_SYNTAX)
		status = err_set(err, STATUS_IO, "an answer of the source is cut off");
	rows_release(&rows);
	return status;
}

static void
write_asked(const struct missing *missing, size_t count, struct buf *body)
{
	bool any = false;

	buf_append_cstr(body, "{\"docs\":[");
	for (size_t i = 0; i < count; i++) {
		if (missing[i].copied || missing[i].alone)
			continue;
		for (size_t k = 0; k < missing[i].revs_count; k++) {
			buf_append_cstr(body, any ? ",{\"id\":" : "{\"id\":");
			any = true;
			json_write_str(body, missing[i].id);
			buf_append_cstr(body, ",\"rev\":");
			json_write_str(body, missing[i].revs[k]);
			buf_append_byte(body, '}');
		}
	}
	buf_append_cstr(body, "]}");
}

static enum status
get_bulk_once(struct copier *c, struct missing *missing, size_t count, struct err *err)
{
	struct buf AUTO(buf_release) body = BUF_INIT(RUN_BATCH_BYTES);
	struct peer *source = &c->run->source;
	struct peer_request request = {
		.method = "POST",
		.path = STR("_bulk_get?revs=true&latest=true&attachments=false"),
	};
	struct net_call *call;
	enum status status;
	int code;

	write_asked(missing, count, &body);
	TRY(buf_status(&body));
	request.body = buf_str(&body);
	run_count(c->run, (struct checkpoint_counts){ .bulk_get_attempts = 1 });
	TRY(peer_open(source, &request, &call, err));
	status = net_answer(call, &code, err);
	if (status == STATUS_OK &&
	    (code == 400 || code == 404 || code == 405 || code == 500 || code == 501))
		source->no_bulk = true;
	else if (status == STATUS_OK && code != 200)
		status = peer_refused(source, &request, code, err);
	else if (status == STATUS_OK)
		status = read_bulk(c, call, missing, count, err);
	net_close(call);
	return status;
}

/*
 * Several leaves of one document come as several rows, and a try that breaks off between them
 * brings some again: they are known then, and change nothing.
 */
static enum status
get_bulk(struct copier *c, struct missing *missing, size_t count, struct err *err)
{
	struct peer_tries tries = peer_tries(&c->run->source);

	for (;;) {
		enum status status = get_bulk_once(c, missing, count, err);

		if (status == STATUS_OK)
			return STATUS_OK;
		for (size_t i = 0; i < count; i++)
			missing[i].copied = false;
		buf_clear(&c->docs);
		c->count = 0;
		TRY(peer_try_again(&c->run->source, &tries, status, err));
	}
}

/* ---- A batch ---- */

static enum status
copy_missing(struct copier *c, struct missing *missing, size_t count, struct err *err)
{
	struct run *r = c->run;

	if (r->spec->options.use_bulk_get && !r->source.no_bulk)
		TRY(get_bulk(c, missing, count, err));
	for (size_t i = 0; i < count; i++) {
		if (missing[i].copied || missing[i].revs_count == 0)
			continue;
		TRY(missing_copy_alone(c, &missing[i], err));
	}
	return copier_flush(c, err);
}

enum status
batch_copy(struct run *r, struct batch *b, struct err *err)
{
	struct copier c = { .run = r, .arena = arena_new(RUN_DOC_ARENA_BYTES) };
	struct missing *missing = NULL;
	size_t count = 0;
	enum status status;

	if (!c.arena)
		return err_set(err, STATUS_NOMEM, "out of memory for documents");
	buf_init(&c.docs, (size_t)RUN_ROW_BYTES + RUN_FLUSH_BYTES);
	buf_init(&c.answer, PEER_ANSWER_BYTES);
	status = find_missing(&c, b, &missing, &count, err);
	if (status == STATUS_OK && count)
		status = copy_missing(&c, missing, count, err);
	buf_release(&c.docs);
	buf_release(&c.answer);
	arena_free(c.arena);
	return status;
}
