/* The request object that filters and update functions are given. */
#include "door/couch/doc/function_request.h"

#include "base/quote.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/access.h"
#include "door/couch/admin/db.h"
#include "door/couch/doc/functions.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/uuid.h"
#include "http/escape.h"

static void
write_name(struct buf *out, const char *name)
{
	buf_append_cstr(out, out->len > 1 ? ",\"" : "\"");
	buf_append_cstr(out, name);
	buf_append_cstr(out, "\":");
}

static void
write_text(struct buf *out, const char *name, struct str text)
{
	write_name(out, name);
	/* What a client sent may not be UTF-8. */
	quote_json(out, text);
}

static void
write_path(struct couch_req *r, struct buf *out, const char *name)
{
	write_name(out, name);
	buf_append_byte(out, '[');
	for (size_t i = 0; i < r->parts_count; i++) {
		if (i)
			buf_append_byte(out, ',');
		quote_json(out, r->parts[i]);
	}
	buf_append_byte(out, ']');
}

/* CouchDB reads these as JSON; all others are strings. */
static bool
param_is_json(struct str name)
{
	return str_eq(name, STR("startkey")) || str_eq(name, STR("endkey")) ||
	       str_eq(name, STR("key")) || str_eq(name, STR("descending"));
}

static enum status
write_params(struct couch_req *r, const struct http_param *params, size_t count, bool of_query,
	     struct buf *out)
{
	buf_append_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		struct json_value value;

		if (i)
			buf_append_byte(out, ',');
		quote_json(out, params[i].name);
		buf_append_byte(out, ':');
		if (!of_query || !param_is_json(params[i].name)) {
			quote_json(out, params[i].value);
			continue;
		}
		TRY(json_value_read(params[i].value, r->arena, &value, &r->fail.err));
		buf_append_str(out, value.text);
	}
	buf_append_byte(out, '}');
	return STATUS_OK;
}

static void
write_headers(struct couch_req *r, struct buf *out)
{
	size_t count = http_request_header_count(r->x);

	write_name(out, "headers");
	buf_append_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		struct http_header header = http_request_header_at(r->x, i);

		if (i)
			buf_append_byte(out, ',');
		quote_json(out, header.name);
		buf_append_byte(out, ':');
		quote_json(out, header.value);
	}
	buf_append_byte(out, '}');
}

static void
write_cookies(struct couch_req *r, struct buf *out)
{
	struct str rest = http_request_header(r->x, STR("Cookie"));
	bool any = false;

	write_name(out, "cookie");
	buf_append_byte(out, '{');
	while (rest.len) {
		struct str value = str_cut(&rest, ';');
		struct str name = str_trim(str_cut(&value, '='));

		if (name.len == 0)
			continue;
		if (any)
			buf_append_byte(out, ',');
		any = true;
		quote_json(out, name);
		buf_append_byte(out, ':');
		quote_json(out, str_trim(value));
	}
	buf_append_byte(out, '}');
}

static enum status
write_form(struct couch_req *r, struct str body, struct buf *out)
{
	struct http_param *params = NULL;
	size_t count = 0;

	write_name(out, "form");
	if (couch_type_is(http_request_header(r->x, STR("Content-Type")),
			  STR("application/x-www-form-urlencoded")))
		TRY(http_parse_query(body, r->arena, &params, &count));
	return write_params(r, params, count, false, out);
}

static enum status
write_members(struct couch_req *r, struct kv_tx *tx, struct str id, struct str body,
	      struct buf *out)
{
	struct str peer = http_peer(r->x);
	const char *colon = peer.len ? memrchr(peer.ptr, ':', peer.len) : NULL;
	struct str security;

	buf_append_byte(out, '{');
	write_name(out, "info");
	TRY(couch_db_info_write(tx, r->db, out));
	write_text(out, "uuid", couch_docid_new(r->settings, r->arena));
	write_name(out, "id");
	if (id.ptr)
		json_write_str(out, id);
	else
		buf_append_cstr(out, "null");
	/* As in CouchDB, HEAD is a GET, and of a POST for another method it is that method. */
	write_text(out, "method", str_from_cstr(couch_method_name(r->method)));
	write_path(r, out, "requested_path");
	write_path(r, out, "path");
	write_text(out, "raw_path", http_target(r->x));
	write_name(out, "query");
	TRY(write_params(r, r->params, r->params_count, true, out));
	write_headers(r, out);
	/* CouchDB writes the word where there is no body. */
	write_text(out, "body", body.ptr ? body : STR("undefined"));
	write_text(out, "peer", colon ? str_of(peer.ptr, (size_t)(colon - peer.ptr)) : peer);
	TRY(write_form(r, body, out));
	write_cookies(r, out);
	write_name(out, "userCtx");
	couch_user_ctx_write(r->db, &r->user, out);
	TRY(couch_security_read(r, tx, &security));
	write_name(out, "secObj");
	buf_append_str(out, security);
	buf_append_byte(out, '}');
	return buf_status(out);
}

enum status
couch_function_request(struct couch_req *r, struct kv_tx *tx, struct str id, struct str body,
		       struct str *ret)
{
	AUTO(buf_release) struct buf text = couch_buf(r, COUCH_ANSWER_BYTES);

	TRY(write_members(r, tx, id, body, &text));
	return arena_copy(r->arena, buf_str(&text), ret);
}
