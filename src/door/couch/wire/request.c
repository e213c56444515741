/* A request's path, parameters, headers and body. */
#include <assert.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/metric.h"
#include "base/quote.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/wire/encoding.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/ids.h"
#include "door/couch/wire/request.h"
#include "http/field.h"

static const char *const method_names[COUCH_METHOD_COUNT] = {
	[COUCH_GET] = "GET",       [COUCH_PUT] = "PUT",   [COUCH_POST] = "POST",
	[COUCH_DELETE] = "DELETE", [COUCH_COPY] = "COPY", [COUCH_PATCH] = "PATCH",
};

enum couch_method
couch_method_of(struct str name)
{
	for (size_t i = 0; i < COUCH_METHOD_COUNT; i++) {
		if (str_eq(name, str_from_cstr(method_names[i])))
			return (enum couch_method)i;
	}
	return COUCH_OTHER_METHOD;
}

const char *
couch_method_name(enum couch_method method)
{
	return method < COUCH_METHOD_COUNT ? method_names[method] : "";
}

static enum status
request_parse_path(struct couch_req *r)
{
	struct str path = r->op.on; /* as the meter has taken it from the exchange */

	r->parts = arena_alloc(r->arena, COUCH_PATH_PARTS * sizeof(*r->parts));
	if (!r->parts)
		return STATUS_NOMEM;

	for (size_t at = 0; at < path.len;) {
		const char *slash = memchr(path.ptr + at, '/', path.len - at);
		size_t end = slash ? (size_t)(slash - path.ptr) : path.len;

		if (end > at) {
			if (r->parts_count == COUCH_PATH_PARTS)
				return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
						      "The path has more than %d segments.",
						      COUCH_PATH_PARTS);
			if (http_unescape(str_of(path.ptr + at, end - at),
					  r->settings->plus_is_space, r->arena,
					  &r->parts[r->parts_count]) != STATUS_OK)
				return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
						      "The path has a broken %%-escape.");
			r->parts_count++;
		}
		at = end + 1;
	}
	return STATUS_OK;
}

void
couch_drop_begun(struct couch_req *r)
{
	if (r->ahead.tx == r->begun)
		r->ahead = (struct couch_ahead){ .tx = NULL };
	kv_tx_free(r->begun);
	r->begun = NULL;
}

enum status
couch_req_parse(struct couch_req *r)
{
	enum status status;

	assert(!r->parts);
	TRY(request_parse_path(r));
	status = http_parse_query(http_query(r->x), r->arena, &r->params, &r->params_count);
	if (status == STATUS_INVALID)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The query has a broken %%-escape.");
	if (status == STATUS_LIMIT)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The query has too many parameters: the limit is %d.",
				      HTTP_QUERY_PARAMS);
	return status;
}

bool
couch_param(const struct couch_req *r, const char *name, struct str *ret)
{
	for (size_t i = 0; i < r->params_count; i++) {
		if (str_eq(r->params[i].name, str_from_cstr(name))) {
			*ret = r->params[i].value;
			return true;
		}
	}
	return false;
}

bool
couch_param_last(const struct couch_req *r, const char *name, struct str *ret)
{
	for (size_t i = r->params_count; i-- > 0;) {
		if (str_eq(r->params[i].name, str_from_cstr(name))) {
			*ret = r->params[i].value;
			return true;
		}
	}
	return false;
}

bool
couch_param_true(const struct couch_req *r, const char *name)
{
	for (size_t i = 0; i < r->params_count; i++)
		if (str_eq(r->params[i].name, str_from_cstr(name)) &&
		    str_eq(r->params[i].value, STR("true")))
			return true;
	return false;
}

bool
couch_type_is(struct str header, struct str type)
{
	return header.ptr && str_eq_nocase(http_field_value(header), type);
}

enum status
couch_require_json(struct couch_req *r)
{
	if (couch_type_is(http_request_header(r->x, STR("Content-Type")), STR("application/json")))
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_CONTENT_TYPE,
			      "Content-Type must be application/json");
}

/*
 * Sets the header that says how long the body took to arrive, for people who look for what is slow.
 */
static void
request_set_body_time(struct couch_req *r, uint64_t ns)
{
	char text[24];
	int len = snprintf(text, sizeof(text), "%llu", (unsigned long long)(ns / CLOCK_NS_PER_MS));

	http_set_header(r->x, STR("X-CouchDB-Body-Time"), str_of(text, (size_t)len));
}

/* The 413 for a body that is larger than `max_bytes` or than a request's memory. */
static enum status
request_refuse_body(struct couch_req *r, size_t max_bytes)
{
	if (arena_limit_bytes(r->arena) < max_bytes)
		return couch_fail_entity_memory(&r->fail, r->arena);
	return couch_fail_body_bytes(&r->fail, max_bytes, r->settings->body_bytes);
}

enum status
couch_read_body(struct couch_req *r, size_t max_bytes, struct str *ret)
{
	struct str encoding = http_request_header(r->x, STR("Content-Encoding"));
	bool gzip = str_eq_nocase(encoding, STR("gzip"));
	uint64_t begin = clock_mono_ns();
	enum status status;

	if (encoding.ptr && !gzip && !str_eq_nocase(encoding, STR("identity")))
		return couch_fail_set(&r->fail, COUCH_ERROR_CONTENT_TYPE,
				      "%s is not a supported content encoding.",
				      QUOTE_SHOW(encoding));
	status = http_read_all(r->x, max_bytes, ret);
	request_set_body_time(r, clock_mono_ns() - begin);
	if (status == STATUS_LIMIT && !http_memory(r->x)->refused)
		return request_refuse_body(r, max_bytes);
	if (status == STATUS_INVALID)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The body of the request is broken.");
	if (status != STATUS_OK || !gzip)
		return status;
	return couch_inflate(r, *ret, max_bytes, ret);
}

enum status
couch_read_object(struct couch_req *r, size_t max_bytes, struct json_member **ret,
		  size_t *ret_count)
{
	struct json_value body;
	struct str text = STR("");

	TRY(couch_read_body(r, max_bytes, &text));
	TRY(json_value_read(text, r->arena, &body, &r->fail.err));
	if (body.kind != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Request body must be a JSON object");
	return json_value_members(&body, r->arena, ret, ret_count, &r->fail.err);
}

bool
couch_accepts(const struct couch_req *r, const char *type, bool wild)
{
	struct str accept = http_request_header(r->x, STR("Accept"));
	struct http_preference found;

	if (!accept.ptr)
		return wild;
	found = http_preference_of(accept, str_from_cstr(type));
	return found.quality > 0 && (wild || found.match == HTTP_MATCH_NAME);
}

enum status
couch_if_match(struct couch_req *r, struct rev_id *ret, bool *ret_found)
{
	struct str value = http_request_header(r->x, STR("If-Match"));

	*ret_found = value.ptr != NULL;
	if (!value.ptr)
		return STATUS_OK;
	value = str_trim(value);
	while (value.len && value.ptr[0] == '"')
		value = str_skip(value, 1);
	while (value.len && value.ptr[value.len - 1] == '"')
		value.len--;
	return couch_rev_parse(value, r->arena, ret, &r->fail);
}

enum rev_scheme
couch_scheme(const struct couch_req *r)
{
	enum rev_scheme scheme = REV_SCHEME_DEFAULT;

	/* The declaration of the setting lets no other name in. */
	(void)!rev_scheme_parse(str_from_cstr(r->settings->scheme), &scheme);
	return scheme;
}

struct str
couch_trace_id(const struct couch_req *r)
{
	return http_trace_id(http_request_header(r->x, STR("traceparent")));
}

struct audit_by
couch_audit_by(const struct couch_req *r)
{
	return (struct audit_by){ .door = "couch",
				  .address = http_peer(r->x),
				  .user = r->user.name,
				  .request_id = http_answer_header(r->x, STR("X-Couch-Request-ID")),
				  .trace_id = couch_trace_id(r) };
}

void
couch_audit_changed(struct couch_req *r, const char *event, const char *key, struct str value)
{
	const struct audit_by by = couch_audit_by(r);

	r->audited = true;
	audit_changed(&by, event, key, value);
}

struct auth_client
couch_auth_client(const struct couch_req *r)
{
	return (struct auth_client){ .by = couch_audit_by(r),
				     .gone = http_closed_event(r->x),
				     .store = r->couch->config.store,
				     .tx = r->begun };
}

void
couch_roles_write(const struct auth_user *user, struct buf *out)
{
	buf_append_byte(out, '[');
	for (size_t i = 0; i < user->roles_count; i++) {
		if (i)
			buf_append_byte(out, ',');
		json_write_str(out, user->roles[i]);
	}
	buf_append_byte(out, ']');
}

bool
couch_has_role(const struct auth_user *user, struct str role)
{
	for (size_t i = 0; i < user->roles_count; i++)
		if (str_eq(user->roles[i], role))
			return true;
	return false;
}
