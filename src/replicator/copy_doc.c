/*
 * Copies one document by itself: because it has attachments, or because the source has no usable
 * _bulk_get.
 *
 * Attachments pass from the answer of one end into the request to the other as they arrive, and are
 * never held as a whole. A source that answers in multipart/mixed sends them behind their document.
 * A source that only answers in JSON is asked for them one by one.
 */
#include "base/quote.h"
#include "replicator/run_int.h"

#include <stdio.h>

#include "base/rand.h"
#include "http/escape.h"
#include "http/field.h"
#include "http/multipart.h"

enum {
	BOUNDARY_BYTES = 32,
};

/* An attachment whose bytes follow its document in a multipart body. */
struct follower {
	struct str name;
	struct str type; /* JSON string content; empty: unknown */
	uint64_t length; /* of the bytes that follow */
};

static enum status
doc_read_attachments(struct str doc, struct arena *arena, struct json_member **ret,
		     size_t *ret_count, struct err *err)
{
	struct json_value value;
	struct json_member *members;
	const struct json_value *atts;
	size_t count;

	*ret_count = 0;
	TRY(json_value_read(doc, arena, &value, err));
	TRY(json_value_members(&value, arena, &members, &count, err));
	atts = json_value_find(members, count, "_attachments");
	if (!atts || atts->kind != JSON_OBJECT_BEGIN)
		return STATUS_OK;
	return json_value_members(atts, arena, ret, ret_count, err);
}

enum status
doc_has_attachments(struct str doc, struct arena *arena, bool *ret, struct err *err)
{
	struct arena_mark mark = arena_mark(arena);
	struct json_member *atts;
	size_t count;

	*ret = false;
	/* Most documents have none, and need not be parsed to know it. */
	if (!memmem(doc.ptr, doc.len, "_attachments", 12))
		return STATUS_OK;
	TRY(doc_read_attachments(doc, arena, &atts, &count, err));
	*ret = count > 0;
	arena_reset(arena, mark);
	return STATUS_OK;
}

/* ---- To the target ---- */

static struct str
copier_doc_path(struct copier *c, struct str id, const char *query)
{
	struct buf AUTO(buf_release) path = BUF_INIT(SPEC_ARENA_BYTES);

	peer_escape_id(&path, id);
	buf_append_cstr(&path, query);
	if (buf_status(&path) != STATUS_OK)
		return (struct str){ NULL, 0 };
	return buf_dup(&path, c->arena);
}

/* Counts what the target made of a document. STATUS_ATT_MISSING: it lacks an attachment. */
static enum status
copier_take_put_status(struct copier *c, const struct peer_request *request, int code,
		       struct err *err)
{
	if (code == 200 || code == 201 || code == 202) {
		run_add_counts(c->run, (struct checkpoint_counts){ .docs_written = 1 });
		return STATUS_OK;
	}
	if (code == 412)
		return STATUS_ATT_MISSING;
	if (peer_status_passes(code))
		return peer_refused(&c->run->target, request, code, err);
	/* The target refuses this one document: the run goes on without it. */
	run_add_counts(c->run, (struct checkpoint_counts){ .write_failures = 1 });
	return STATUS_OK;
}

static enum status
copier_put_doc(struct copier *c, struct str id, struct str doc, struct err *err)
{
	struct peer_request request = {
		.method = "PUT",
		.path = copier_doc_path(c, id, "?new_edits=false"),
		.body = doc,
	};
	int code;

	if (!request.path.ptr)
		return STATUS_LIMIT;
	TRY(peer_ask(&c->run->target, &request, &code, &c->answer, err));
	return copier_take_put_status(c, &request, code, err);
}

/* Where the bytes of the following attachments come from, in their order. */
struct follower_source {
	/* Goes on to the next attachment, which `f` describes. */
	enum status (*next)(void *arg, const struct follower *f, struct err *err);
	http_multipart_source *read;
	void *arg;
};

static void
follower_write_head(const struct follower *f, const char *boundary, struct buf *out)
{
	buf_printf(out, "\r\n--%s\r\nContent-Disposition: attachment; filename=", boundary);
	http_quote(f->name, out);
	if (f->type.len && !memchr(f->type.ptr, '\n', f->type.len) &&
	    !memchr(f->type.ptr, '\r', f->type.len))
		buf_printf(out, "\r\nContent-Type: %.*s", STR_ARG(f->type));
	buf_printf(out, "\r\nContent-Length: %llu\r\n\r\n", (unsigned long long)f->length);
}

static enum status
follower_send(struct net_call *call, const struct follower_source *feeder, const struct follower *f,
	      struct err *err)
{
	uint64_t left = f->length;
	struct str piece;
	enum status status;

	TRY(feeder->next(feeder->arg, f, err));
	while ((status = feeder->read(feeder->arg, &piece, err)) == STATUS_OK) {
		if (piece.len > left)
			return err_set(err, STATUS_IO, "an attachment is longer than its length");
		left -= piece.len;
		TRY(net_write(call, piece, err));
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	return left ? err_set(err, STATUS_IO, "an attachment is shorter than its length")
		    : STATUS_OK;
}

/* STATUS_NOT_FOUND: the target has answered before it had everything. */
static enum status
followers_send(struct net_call *call, struct str head, const char *boundary,
	       const struct follower *followers, size_t count, const struct follower_source *feeder,
	       struct err *err)
{
	struct buf AUTO(buf_release) text = BUF_INIT(SPEC_ARENA_BYTES);

	TRY(net_write(call, head, err));
	for (size_t i = 0; i < count; i++) {
		buf_clear(&text);
		follower_write_head(&followers[i], boundary, &text);
		TRY(buf_status(&text));
		TRY(net_write(call, buf_str(&text), err));
		TRY(follower_send(call, feeder, &followers[i], err));
	}
	buf_clear(&text);
	buf_printf(&text, "\r\n--%s--\r\n", boundary);
	TRY(buf_status(&text));
	return net_write(call, buf_str(&text), err);
}

/* Sends a document and its attachments as one multipart/related body of known length, once. */
static enum status
copier_put_with_followers(struct copier *c, struct str id, struct str doc,
			  const struct follower *followers, size_t count,
			  const struct follower_source *feeder, struct err *err)
{
	struct buf AUTO(buf_release)
		head = BUF_INIT_OF((size_t)RUN_ROW_BYTES + RUN_FLUSH_BYTES, &c->run->part);
	struct buf AUTO(buf_release) text = BUF_INIT(SPEC_ARENA_BYTES);
	struct peer_request request = { .method = "PUT", .streams = true };
	char boundary[BOUNDARY_BYTES + 1];
	char type[BOUNDARY_BYTES + 64];
	uint8_t noise[BOUNDARY_BYTES / 2];
	struct net_call *call;
	enum status status;
	int code;

	rand_bytes(noise, sizeof(noise));
	for (size_t i = 0; i < sizeof(noise); i++)
		snprintf(boundary + 2 * i, 3, "%02x", noise[i]);
	snprintf(type, sizeof(type), "multipart/related; boundary=\"%s\"", boundary);
	request.path = copier_doc_path(c, id, "?new_edits=false");
	if (!request.path.ptr)
		return STATUS_LIMIT;
	request.type = type;
	buf_printf(&head, "--%s\r\nContent-Type: application/json\r\n\r\n", boundary);
	buf_append_str(&head, doc);
	TRY(buf_status(&head));
	request.stream_bytes = head.len + BOUNDARY_BYTES + 8;
	for (size_t i = 0; i < count; i++) {
		buf_clear(&text);
		follower_write_head(&followers[i], boundary, &text);
		TRY(buf_status(&text));
		request.stream_bytes += text.len + followers[i].length;
	}
	TRY(peer_open(&c->run->target, &request, &call, err));
	status = followers_send(call, buf_str(&head), boundary, followers, count, feeder, err);
	if (status == STATUS_OK || status == STATUS_NOT_FOUND)
		status = net_answer(call, &code, err);
	/* libcurl can reuse the connection only if the answer has been read. */
	if (status == STATUS_OK) {
		buf_clear(&c->answer);
		status = peer_read_all(call, &c->answer, err);
	}
	if (status == STATUS_OK)
		status = copier_take_put_status(c, &request, code, err);
	net_close(call);
	return status;
}

/* ---- What a document says of its attachments ---- */

/*
 * The length of an attachment's bytes: of the bytes as they follow the document, gzipped or not, or
 * of the content that they stand for.
 */
static uint64_t
follower_length(const struct json_member *members, size_t count, bool follows)
{
	const struct json_value *encoding = json_value_find(members, count, "encoding");
	const struct json_value *encoded = json_value_find(members, count, "encoded_length");
	const struct json_value *length = json_value_find(members, count, "length");
	uint64_t n = 0;

	if (follows && encoding && encoding->kind == JSON_STRING && encoded)
		length = encoded;
	if (length)
		(void)!str_to_u64(length->text, &n);
	return n;
}

static struct str
member_string(const struct json_member *members, size_t count, const char *name)
{
	const struct json_value *value = json_value_find(members, count, name);

	return value && value->kind == JSON_STRING ? value->string : (struct str){ "", 0 };
}

/*
 * Finds the attachments that the document says will follow it or, if `follows` is false, those that
 * it has only stubs of. In the document's order.
 */
static enum status
doc_find_followers(struct copier *c, struct str doc, bool follows, struct follower **ret,
		   size_t *ret_count, struct err *err)
{
	struct json_member *atts;
	struct follower *followers;
	size_t count;

	*ret_count = 0;
	TRY(doc_read_attachments(doc, c->arena, &atts, &count, err));
	followers = arena_zalloc(c->arena, (count + 1) * sizeof(*followers));
	if (!followers)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		struct json_member *members;
		const struct json_value *flagged;
		size_t n;

		TRY(json_value_members(&atts[i].value, c->arena, &members, &n, err));
		flagged = json_value_find(members, n, follows ? "follows" : "stub");
		if (!flagged || flagged->kind != JSON_TRUE)
			continue;
		followers[(*ret_count)++] = (struct follower){
			.name = atts[i].name,
			.type = member_string(members, n, "content_type"),
			.length = follower_length(members, n, follows),
		};
	}
	*ret = followers;
	return STATUS_OK;
}

/* ---- A source that answers in parts ---- */

static enum status
call_read_body(void *arg, struct str *ret, struct err *err)
{
	return net_read(arg, ret, err);
}

static enum status
part_read_whole(struct http_multipart *p, struct buf *ret, struct err *err)
{
	struct str piece;
	enum status status;

	while ((status = http_multipart_read(p, &piece, err)) == STATUS_OK) {
		buf_append_str(ret, piece);
		if (buf_status(ret) != STATUS_OK)
			return err_set(err, buf_status(ret), "a document exceeds %d bytes",
				       RUN_ROW_BYTES);
	}
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

static enum status
part_next_follower(void *arg, const struct follower *f, struct err *err)
{
	enum status status = http_multipart_next(arg, err);

	(void)f;
	if (status == STATUS_NOT_FOUND)
		return err_set(err, STATUS_IO, "an attachment is missing in an answer");
	return status;
}

static enum status
copier_copy_related(struct copier *c, struct missing *m, struct http_multipart *outer,
		    struct err *err)
{
	struct buf AUTO(buf_release) doc = BUF_INIT_OF(RUN_ROW_BYTES, &c->run->part);
	struct follower *followers;
	struct str type = http_multipart_header(outer, STR("Content-Type"));
	struct http_multipart inner;
	size_t count = 0;
	enum status status = http_multipart_init(&inner, type, http_multipart_read, outer, err);

	if (status == STATUS_OK)
		status = http_multipart_next(&inner, err);
	if (status == STATUS_OK)
		status = part_read_whole(&inner, &doc, err);
	if (status == STATUS_OK)
		status = doc_find_followers(c, buf_str(&doc), true, &followers, &count, err);
	if (status == STATUS_OK) {
		const struct follower_source feeder = { part_next_follower, http_multipart_read,
							&inner };

		run_add_counts(c->run, (struct checkpoint_counts){ .docs_read = 1 });
		status = copier_put_with_followers(c, m->id, buf_str(&doc), followers, count,
						   &feeder, err);
	}
	http_multipart_fini(&inner);
	return status;
}

static enum status
copier_copy_plain(struct copier *c, struct missing *m, struct str doc, struct err *err)
{
	bool has_atts;

	run_add_counts(c->run, (struct checkpoint_counts){ .docs_read = 1 });
	TRY(doc_has_attachments(doc, c->arena, &has_atts, err));
	/* A target that lacks a stub's attachment refuses the document; a PUT of its own tells. */
	return has_atts ? copier_put_doc(c, m->id, doc, err) : copier_add(c, m->id, doc, err);
}

static enum status
copier_copy_multipart(struct copier *c, struct missing *m, struct net_call *call, struct err *err)
{
	struct buf AUTO(buf_release) doc = BUF_INIT_OF(RUN_ROW_BYTES, &c->run->part);
	struct http_multipart parts;
	enum status status = http_multipart_init(&parts, net_content_type(call), call_read_body,
						 call, err);
	size_t count = 0;

	while (status == STATUS_OK && (status = http_multipart_next(&parts, err)) == STATUS_OK) {
		struct str type = http_multipart_header(&parts, STR("Content-Type"));
		struct str error;
		struct arena_mark mark = arena_mark(c->arena);

		if (++count > RUN_ANSWER_REVS) {
			status = err_set(err, STATUS_INVALID,
					 "the source sends more than %d revisions of %.*s",
					 RUN_ANSWER_REVS, STR_ARG(m->id));
			break;
		}
		if (http_is_multipart(type)) {
			status = copier_copy_related(c, m, &parts, err);
		} else if (!http_field_param(type, STR("error"), &error)) {
			buf_clear(&doc);
			status = part_read_whole(&parts, &doc, err);
			if (status == STATUS_OK)
				status = copier_copy_plain(c, m, buf_str(&doc), err);
		}
		arena_reset(c->arena, mark);
	}
	http_multipart_fini(&parts);
	return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

/* ---- A source that answers in JSON ---- */

/* Asks the source for the attachments of one revision, one by one. */
struct att_request {
	struct copier *c;
	struct str id;
	struct str rev;
	struct net_call *call;
};

static enum status
att_request_next(void *arg, const struct follower *f, struct err *err)
{
	struct att_request *a = arg;
	struct buf AUTO(buf_release) path = BUF_INIT(SPEC_ARENA_BYTES);
	struct peer *source = &a->c->run->source;
	struct peer_request request = { .method = "GET", .accept = "*/*", .exact = true };
	int code;

	net_close(a->call);
	a->call = NULL;
	peer_escape_id(&path, a->id);
	buf_append_byte(&path, '/');
	http_escape(&path, f->name);
	buf_append_cstr(&path, "?rev=");
	http_escape(&path, a->rev);
	TRY(buf_status(&path));
	request.path = buf_str(&path);
	TRY(peer_open(source, &request, &a->call, err));
	TRY(net_answer(a->call, &code, err));
	return code == 200 ? STATUS_OK : peer_refused(source, &request, code, err);
}

static enum status
att_request_read(void *arg, struct str *ret, struct err *err)
{
	struct att_request *a = arg;

	return net_read(a->call, ret, err);
}

/*
 * Appends the description of an attachment with "follows":true in place of "stub":true. The source
 * has sent the content uncompressed. If it stores the content gzipped, the digest is that of the
 * gzipped bytes, so digest and encoding are left out.
 */
static void
att_write_following(const struct json_member *members, size_t count, bool encodings,
		    struct buf *out)
{
	bool encoded = !encodings || json_value_find(members, count, "encoding") != NULL;

	buf_append_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		struct str name = members[i].name;

		if (str_eq(name, STR("stub")) ||
		    (encoded && (str_eq(name, STR("encoding")) || str_eq(name, STR("digest")) ||
				 str_eq(name, STR("encoded_length")))))
			continue;
		json_write_str(out, members[i].name);
		buf_append_byte(out, ':');
		buf_append_str(out, members[i].value.text);
		buf_append_byte(out, ',');
	}
	buf_append_cstr(out, "\"follows\":true}");
}

static enum status
doc_write_attachments(struct copier *c, const struct json_value *atts, struct buf *out,
		      struct err *err)
{
	struct json_member *members;
	size_t count;

	TRY(json_value_members(atts, c->arena, &members, &count, err));
	buf_append_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		struct json_member *inner;
		const struct json_value *stub;
		size_t n;

		if (i)
			buf_append_byte(out, ',');
		json_write_str(out, members[i].name);
		buf_append_byte(out, ':');
		TRY(json_value_members(&members[i].value, c->arena, &inner, &n, err));
		stub = json_value_find(inner, n, "stub");
		if (stub && stub->kind == JSON_TRUE)
			att_write_following(inner, n, c->run->target.encodings, out);
		else
			buf_append_str(out, members[i].value.text);
	}
	buf_append_byte(out, '}');
	return STATUS_OK;
}

static enum status
doc_write_with_followers(struct copier *c, struct str doc, struct str *ret_rev, struct buf *out,
			 struct err *err)
{
	struct json_value value;
	struct json_member *members;
	size_t count;

	TRY(json_value_read(doc, c->arena, &value, err));
	TRY(json_value_members(&value, c->arena, &members, &count, err));
	*ret_rev = member_string(members, count, "_rev");
	buf_append_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_append_byte(out, ',');
		json_write_str(out, members[i].name);
		buf_append_byte(out, ':');
		if (str_eq(members[i].name, STR("_attachments")))
			TRY(doc_write_attachments(c, &members[i].value, out, err));
		else
			buf_append_str(out, members[i].value.text);
	}
	buf_append_byte(out, '}');
	return buf_status(out);
}

static enum status
copier_copy_requesting(struct copier *c, struct missing *m, struct str doc, struct err *err)
{
	struct buf AUTO(buf_release)
		text = BUF_INIT_OF((size_t)RUN_ROW_BYTES + RUN_FLUSH_BYTES, &c->run->part);
	struct att_request asking = { .c = c, .id = m->id };
	const struct follower_source feeder = { att_request_next, att_request_read, &asking };
	struct follower *followers;
	size_t count;
	enum status status;

	TRY(doc_find_followers(c, doc, false, &followers, &count, err));
	if (count == 0)
		return copier_copy_plain(c, m, doc, err);
	TRY(doc_write_with_followers(c, doc, &asking.rev, &text, err));
	run_add_counts(c->run, (struct checkpoint_counts){ .docs_read = 1 });
	status = copier_put_with_followers(c, m->id, buf_str(&text), followers, count, &feeder,
					   err);
	net_close(asking.call);
	return status;
}

/* [{"ok":{…}},{"missing":"…"}] */
static enum status
copier_copy_json(struct copier *c, struct missing *m, struct net_call *call, struct err *err)
{
	struct buf AUTO(buf_release) answer = BUF_INIT_OF(RUN_ROW_BYTES, &c->run->part);
	struct json_value value;
	struct json_value *items;
	size_t count;

	TRY(peer_read_all(call, &answer, err));
	TRY(json_value_read(buf_str(&answer), c->arena, &value, err));
	TRY(json_value_items(&value, c->arena, &items, &count, err));
	for (size_t i = 0; i < count; i++) {
		struct json_member *members;
		const struct json_value *doc;
		size_t n;

		TRY(json_value_members(&items[i], c->arena, &members, &n, err));
		doc = json_value_find(members, n, "ok");
		if (doc && doc->kind == JSON_OBJECT_BEGIN)
			TRY(copier_copy_requesting(c, m, doc->text, err));
	}
	return STATUS_OK;
}

/* ---- One document ---- */

static void
path_write_array(const struct str *texts, size_t count, struct buf *out)
{
	struct buf AUTO(buf_release) list = BUF_INIT(SPEC_ARENA_BYTES);

	buf_append_byte(&list, '[');
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_append_byte(&list, ',');
		json_write_str(&list, texts[i]);
	}
	buf_append_byte(&list, ']');
	http_escape(out, buf_str(&list));
}

static enum status
copier_write_get_path(struct copier *c, const struct missing *m, size_t first, size_t count,
		      bool since, struct buf *path)
{
	size_t base;

	peer_escape_id(path, m->id);
	buf_append_cstr(path, "?revs=true&latest=true&open_revs=");
	path_write_array(m->revs + first, count, path);
	if (c->run->target.encodings)
		buf_append_cstr(path, "&att_encoding_info=true");
	base = path->len;
	if (since && m->ancestors_count) {
		buf_append_cstr(path, "&atts_since=");
		path_write_array(m->ancestors, m->ancestors_count, path);
		/* The parameter only saves work: leave it out where the URL gets too long. */
		if (path->len > PEER_URL_BYTES)
			path->len = base;
	}
	return buf_status(path);
}

static enum status
copier_copy_revs_once(struct copier *c, struct missing *m, size_t first, size_t count, bool since,
		      struct err *err)
{
	struct buf AUTO(buf_release) path = BUF_INIT(SPEC_ARENA_BYTES);
	struct peer *source = &c->run->source;
	struct peer_request request = {
		.method = "GET",
		/* In multipart answers attachments come as they are stored, gzipped or not. */
		.accept = c->run->target.encodings ? "multipart/mixed" : "application/json",
		.exact = true,
	};
	struct arena_mark mark = arena_mark(c->arena);
	struct net_call *call;
	enum status status;
	int code;

	TRY(copier_write_get_path(c, m, first, count, since, &path));
	request.path = buf_str(&path);
	TRY(peer_open(source, &request, &call, err));
	status = net_answer(call, &code, err);
	if (status == STATUS_OK && code == 200)
		status = http_is_multipart(net_content_type(call))
				 ? copier_copy_multipart(c, m, call, err)
				 : copier_copy_json(c, m, call, err);
	/* 404: the document has been purged since the change was read. */
	else if (status == STATUS_OK && code != 404)
		status = peer_refused(source, &request, code, err);
	net_close(call);
	arena_reset(c->arena, mark);
	return status;
}

static enum status
copier_copy_revs(struct copier *c, struct missing *m, size_t first, size_t count, struct err *err)
{
	struct peer_tries tries = peer_tries(&c->run->source);
	bool since = true;

	for (;;) {
		enum status status = copier_copy_revs_once(c, m, first, count, since, err);

		if (status == STATUS_OK)
			return STATUS_OK;
		if (status == STATUS_ATT_MISSING && since) {
			since = false;
			continue;
		}
		if (status == STATUS_ATT_MISSING)
			status = err_set(err, STATUS_INVALID,
					 "missing_stub: the target lacks an attachment of %s",
					 QUOTE_SHOW(m->id));
		TRY(peer_try_again(&c->run->source, &tries, status, err));
	}
}

enum status
missing_copy_alone(struct copier *c, struct missing *m, struct err *err)
{
	/*
	 * What waits for _bulk_docs goes first: a second try of this document must not resend it.
	 */
	TRY(copier_flush(c, err));
	for (size_t first = 0; first < m->revs_count; first += RUN_REVS_AT_ONCE) {
		size_t left = m->revs_count - first;

		TRY(copier_copy_revs(c, m, first, left < RUN_REVS_AT_ONCE ? left : RUN_REVS_AT_ONCE,
				     err));
	}
	return STATUS_OK;
}
