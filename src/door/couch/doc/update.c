/*
 * /{db}/_design/{ddoc}/_update/{name}[/{docid}]: a function makes a document, and the answer, out
 * of the request and the document that is there. It runs between two transactions: one that reads
 * what it needs, and one that writes, which is a conflict if the document has changed.
 */
#include <assert.h>

#include "base/base64.h"
#include "base/quote.h"
#include "doc/json_value.h"
#include "door/couch/admin/tx.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/doc/doc_put.h"
#include "door/couch/doc/endpoints.h"
#include "door/couch/doc/function_request.h"
#include "door/couch/doc/functions.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "http/escape.h"

enum {
	CODE_LEAST = 200,
	CODE_MOST = 599,
};

struct update {
	struct couch_req *r;
	struct str design_id;
	struct str name; /* of the function */
	struct str id;   /* of the document; ptr NULL: none was named */
	struct str body; /* of the request; ptr NULL: there is none */

	struct js_design design;
	struct str doc; /* JSON text, "null" if it is not there */
	struct str request;
};

/* ---- What the function is given ---- */

static enum status
update_check_name(struct update *u)
{
	struct couch_req *r = u->r;
	const struct json_value *updates;
	struct json_member *members;
	size_t count;

	TRY(json_read_members(u->design.text, r->arena, &members, &count, &r->fail.err));
	updates = json_value_find(members, count, "updates");
	if (!updates || updates->kind != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing json key: updates");
	TRY(json_value_members(updates, r->arena, &members, &count, &r->fail.err));
	for (size_t i = 0; i < count; i++)
		if (str_eq(members[i].name, u->name))
			return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing json key: %s",
			      QUOTE_SHOW(u->name));
}

/* The document as it is, with its revisions and conflicts. */
static enum status
update_read_doc(struct update *u, struct kv_tx *tx)
{
	struct couch_req *r = u->r;
	AUTO(buf_release) struct buf text = couch_buf(r, COUCH_ROW_BYTES);
	const struct couch_doc_opts opts = { .flags = COUCH_DOC_REVS | COUCH_DOC_CONFLICTS,
					     .revs_limit = COUCH_FUNCTION_REVS };
	struct rev_tree tree;
	enum status status;

	u->doc = STR("null");
	if (!u->id.ptr)
		return STATUS_OK;
	status = rev_tree_read(tx, r->db, u->id, REV_TREE_WINNER, r->arena, &tree);
	if (status == STATUS_NOT_FOUND || (status == STATUS_OK && tree.branches[0].deleted))
		return STATUS_OK;
	TRY(status);
	TRY(couch_head_write(r, tx, u->id, &tree, &tree.branches[0], &opts, &text));
	return buf_copy(&text, r->arena, &u->doc);
}

static enum status
update_prepare(struct couch_req *r, struct kv_tx *tx, void *arg)
{
	struct update *u = arg;

	TRY(couch_function_design(r, tx, u->design_id, &u->design));
	TRY(update_check_name(u));
	TRY(update_read_doc(u, tx));
	return couch_function_request(r, tx, u->id, u->body, &u->request);
}

/* ---- The document that it makes ---- */

/* Writes it, if it is one. `ret_rev` has pos 0 if it is not. */
static enum status
update_write(struct update *u, struct str text, struct rev_id *ret_rev, struct str *ret_id)
{
	struct couch_req *r = u->r;
	struct json_value value;
	struct couch_doc doc;

	*ret_rev = (struct rev_id){ 0 };
	TRY(json_value_read(text, r->arena, &value, &r->fail.err));
	if (value.kind != JSON_OBJECT_BEGIN)
		return STATUS_OK;
	TRY(couch_doc_parse_text(r, text, (struct str){ NULL, 0 }, &doc));
	*ret_id = doc.id.ptr ? doc.id : STR("");
	TRY(couch_docid_check(*ret_id, &r->fail));
	return couch_doc_save(r, &doc, ret_rev);
}

/* ---- The answer ---- */

/* What a response of the function asks for. */
struct response {
	int code;
	struct str body;
	const char *type;
	const struct json_value *headers;
};

static enum status
response_refuse(struct couch_req *r, const char *what, struct str name)
{
	struct str text = arena_printf(r->arena, "Invalid data from external server: %s %s", what,
				       QUOTE_SHOW(name));

	return couch_fail_function(&r->fail, STR("external_response_error"), text, r->arena);
}

static enum status
response_take_code(struct couch_req *r, const struct json_value *value, struct response *ret)
{
	uint64_t code;

	if (value->kind != JSON_NUMBER || !str_to_u64(value->text, &code) || code < CODE_LEAST ||
	    code > CODE_MOST)
		return response_refuse(r, "code", value->text);
	ret->code = (int)code;
	return STATUS_OK;
}

static enum status
response_take_base64(struct couch_req *r, const struct json_value *value, struct response *ret)
{
	AUTO(buf_release) struct buf raw = couch_buf(r, COUCH_ANSWER_BYTES);

	if (value->kind != JSON_STRING ||
	    base64_decode(&raw, value->string, BASE64_STANDARD) != STATUS_OK)
		return response_refuse(r, "base64", STR(""));
	ret->body = buf_dup(&raw, r->arena);
	ret->type = "application/binary";
	return ret->body.ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
response_take(struct couch_req *r, const struct json_member *m, struct response *ret)
{
	if (str_eq(m->name, STR("code")))
		return response_take_code(r, &m->value, ret);
	if (str_eq(m->name, STR("base64")))
		return response_take_base64(r, &m->value, ret);
	if (str_eq(m->name, STR("json"))) {
		ret->body = m->value.text;
		ret->type = "application/json";
		return STATUS_OK;
	}
	if (str_eq(m->name, STR("body")) && m->value.kind == JSON_STRING) {
		ret->body = m->value.string;
		ret->type = "text/html; charset=utf-8";
		return STATUS_OK;
	}
	if (str_eq(m->name, STR("headers")) && m->value.kind == JSON_OBJECT_BEGIN) {
		ret->headers = &m->value;
		return STATUS_OK;
	}
	if (str_eq(m->name, STR("stop")) && m->value.kind == JSON_TRUE)
		return STATUS_OK;
	return response_refuse(r, "member", m->name);
}

/* The characters of a header's name, as RFC 9110 has them. */
static bool
header_name_is_sound(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];

		if (c <= ' ' || c >= 0x7f || strchr("()<>@,;:\\\"/[]?={}", c))
			return false;
	}
	return name.len > 0;
}

static bool
header_value_is_sound(struct str value)
{
	for (size_t i = 0; i < value.len; i++)
		if ((unsigned char)value.ptr[i] < ' ' && value.ptr[i] != '\t')
			return false;
	return true;
}

/* The server alone says how long an answer is and whether the connection lasts. */
static bool
header_is_servers(struct str name)
{
	static const char *const names[] = { "Connection", "Content-Length", "Date", "Server",
					     "Transfer-Encoding" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_eq_nocase(name, str_from_cstr(names[i])))
			return true;
	return false;
}

static enum status
response_set_headers(struct couch_req *r, const struct json_value *headers)
{
	struct json_member *members;
	size_t count;

	if (!headers)
		return STATUS_OK;
	TRY(json_value_members(headers, r->arena, &members, &count, &r->fail.err));
	for (size_t i = 0; i < count; i++) {
		const struct json_value *v = &members[i].value;
		struct str text = v->kind == JSON_STRING ? v->string : v->text;

		if (!header_name_is_sound(members[i].name) || !header_value_is_sound(text) ||
		    v->kind == JSON_OBJECT_BEGIN || v->kind == JSON_ARRAY_BEGIN)
			return response_refuse(r, "header", members[i].name);
		if (!header_is_servers(members[i].name))
			http_set_header(r->x, members[i].name, text);
	}
	return STATUS_OK;
}

static enum status
response_send(struct couch_req *r, int code, struct str text)
{
	struct response response = { .code = code, .type = "text/html; charset=utf-8" };
	struct json_member *members;
	size_t count;

	TRY(json_read_members(text, r->arena, &members, &count, &r->fail.err));
	for (size_t i = 0; i < count; i++)
		TRY(response_take(r, &members[i], &response));
	http_set_header(r->x, STR("Content-Type"), str_from_cstr(response.type));
	/* A page that a document's author has made must not act for whoever looks at it. */
	http_set_header(r->x, STR("Content-Security-Policy"), STR("sandbox"));
	TRY(response_set_headers(r, response.headers));
	http_set_status(r->x, response.code);
	return http_send(r->x, response.body);
}

/* ---- The request ---- */

static enum status
update_tell_written(struct couch_req *r, struct rev_id rev, struct str id)
{
	AUTO(buf_release) struct buf text = couch_buf(r, 2 * COUCH_ROW_BYTES);
	struct str kept;

	rev_id_write(rev, &text);
	kept = buf_dup(&text, r->arena);
	buf_clear(&text);
	http_escape(&text, id);
	TRY(buf_status(&text));
	http_set_header(r->x, STR("X-Couch-Update-NewRev"), kept);
	http_set_header(r->x, STR("X-Couch-Id"), buf_str(&text));
	return kept.ptr ? STATUS_OK : STATUS_LIMIT;
}

/* The document's id is all of the path behind the function's name. */
static enum status
update_read_names(struct update *u)
{
	struct couch_req *r = u->r;
	AUTO(buf_release) struct buf id = couch_buf(r, COUCH_SMALL_BODY_BYTES);

	if (r->parts_count < 5)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "Invalid path.");
	u->name = r->parts[4];
	if (r->parts_count == 5)
		return STATUS_OK;
	for (size_t i = 5; i < r->parts_count; i++) {
		if (i > 5)
			buf_append_byte(&id, '/');
		buf_append_str(&id, r->parts[i]);
	}
	TRY(buf_copy(&id, r->arena, &u->id));
	return couch_docid_check(u->id, &r->fail);
}

enum status
couch_update(struct couch_req *r, struct str design_id)
{
	struct update u = { .r = r, .design_id = design_id };
	struct js_call call;
	struct str doc, response, id;
	struct rev_id rev;

	TRY(update_read_names(&u));
	TRY(couch_db_precheck(r));
	if (r->method != COUCH_GET)
		TRY(couch_read_body(r, r->settings->body_bytes, &u.body));
	TRY(couch_db_read(r, COUCH_ACCESS_MEMBER, update_prepare, &u));
	TRY(couch_function_call(r, &u.design, &call));
	TRY(couch_function_end(
		r, js_update(&call, u.name, u.doc, u.request, &doc, &response, &r->fail.err),
		&call));
	TRY(update_write(&u, doc, &rev, &id));
	if (rev.hash.ptr)
		TRY(update_tell_written(r, rev, id));
	return response_send(r, rev.hash.ptr ? 201 : 200, response);
}
