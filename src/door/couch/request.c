/* What a request says: its path, parameters, headers and body. */
#include <stdio.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "door/couch/couch_int.h"

static enum status
parse_path(struct couch_req *r)
{
	struct str path = http_path(r->x);

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
			if (http_unescape(str_of(path.ptr + at, end - at), true, r->arena,
					  &r->parts[r->parts_count]) != STATUS_OK)
				return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
						      "The path has a broken %%-escape.");
			r->parts_count++;
		}
		at = end + 1;
	}
	return STATUS_OK;
}

enum status
couch_req_parse(struct couch_req *r)
{
	enum status status;

	TRY(parse_path(r));
	status = http_parse_query(http_query(r->x), r->arena, &r->params, &r->params_count);
	if (status == STATUS_INVALID)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The query has a broken %%-escape.");
	if (status == STATUS_LIMIT)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "The query has too many parameters.");
	return status;
}

bool
couch_param(const struct couch_req *r, const char *name, struct str *ret)
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
	struct str value;

	return couch_param(r, name, &value) && str_eq(value, STR("true"));
}

bool
couch_type_is(struct str header, struct str type)
{
	const char *semicolon = header.len ? memchr(header.ptr, ';', header.len) : NULL;

	if (semicolon)
		header.len = (size_t)(semicolon - header.ptr);
	return header.ptr && str_eq_nocase(str_trim(header), type);
}

enum status
couch_require_json(struct couch_req *r)
{
	if (couch_type_is(http_request_header(r->x, STR("Content-Type")), STR("application/json")))
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_CONTENT_TYPE,
			      "Content-Type must be application/json");
}

enum status
couch_db_require_json(struct couch_req *r)
{
	enum status status = couch_require_json(r);

	/* That there is no such database is what a client has to know first. */
	if (status != STATUS_OK)
		TRY(couch_db_ensure(r));
	return status == STATUS_OK ? STATUS_OK : couch_require_json(r);
}

/* How long the body was on its way, for those who look for what is slow. */
static void
set_body_time(struct couch_req *r, uint64_t ns)
{
	char text[24];
	int len = snprintf(text, sizeof(text), "%llu", (unsigned long long)(ns / CLOCK_NS_PER_MS));

	http_set_header(r->x, STR("X-CouchDB-Body-Time"), str_of(text, (size_t)len));
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
				      "%.*s is not a supported content encoding.",
				      STR_ARG(encoding));
	status = http_read_all(r->x, max_bytes, ret);
	set_body_time(r, clock_mono_ns() - begin);
	if (status == STATUS_LIMIT && !http_memory(r->x)->refused)
		return couch_fail_set(&r->fail, COUCH_ERROR_TOO_LARGE,
				      "the request entity is too large: the limit is %zu bytes",
				      max_bytes);
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
	struct str text;

	TRY(couch_read_body(r, max_bytes, &text));
	TRY(json_value_read(text, r->arena, &body, &r->fail.err));
	if (body.kind != JSON_OBJECT_BEGIN)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "Request body must be a JSON object");
	return json_value_members(&body, r->arena, ret, ret_count, &r->fail.err);
}

/* True if the parameters of a media range (behind its ';') do not say q=0. */
static bool
range_wanted(struct str params)
{
	while (params.len) {
		const char *semicolon = memchr(params.ptr, ';', params.len);
		size_t len = semicolon ? (size_t)(semicolon - params.ptr) : params.len;
		struct str one = str_trim(str_of(params.ptr, len));

		if (str_starts_with(one, STR("q=0")) || str_starts_with(one, STR("Q=0"))) {
			for (size_t i = 3; i < one.len; i++) {
				if (one.ptr[i] >= '1' && one.ptr[i] <= '9')
					return true;
			}
			return false;
		}
		params = str_skip(params, semicolon ? len + 1 : len);
	}
	return true;
}

static bool
range_allows(struct str range, struct str type, bool wild)
{
	const char *slash = memchr(type.ptr, '/', type.len);
	size_t major = slash ? (size_t)(slash - type.ptr) + 1 : type.len;

	if (str_eq_nocase(range, type))
		return true;
	if (!wild)
		return false;
	if (str_eq(range, STR("*/*")))
		return true;
	return range.len == major + 1 && range.ptr[major] == '*' &&
	       str_eq_nocase(str_of(range.ptr, major), str_of(type.ptr, major));
}

bool
couch_accepts(const struct couch_req *r, const char *type, bool wild)
{
	struct str accept = http_request_header(r->x, STR("Accept"));

	if (!accept.ptr)
		return wild;
	while (accept.len) {
		const char *comma = memchr(accept.ptr, ',', accept.len);
		size_t len = comma ? (size_t)(comma - accept.ptr) : accept.len;
		const char *semicolon = memchr(accept.ptr, ';', len);
		size_t name = semicolon ? (size_t)(semicolon - accept.ptr) : len;

		if (range_allows(str_trim(str_of(accept.ptr, name)), str_from_cstr(type), wild) &&
		    range_wanted(str_of(accept.ptr + name, len - name)))
			return true;
		accept = str_skip(accept, comma ? len + 1 : len);
	}
	return false;
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

enum status
couch_docid_check(struct str id, struct couch_fail *fail)
{
	if (id.len == 0)
		return couch_fail_set(fail, COUCH_ERROR_ILLEGAL_DOCID,
				      "Document id must not be empty");
	if (str_eq(id, STR("_local/")))
		return couch_fail_set(fail, COUCH_ERROR_BAD_REQUEST, "Invalid _local document id.");
	if (str_eq(id, STR("_design/")))
		return couch_fail_set(fail, COUCH_ERROR_ILLEGAL_DOCID, "Illegal document id `%.*s`",
				      STR_ARG(id));
	if (id.len > REV_DOC_ID_BYTES)
		return couch_fail_set(fail, COUCH_ERROR_ILLEGAL_DOCID,
				      "Document id is too long: the limit is %d bytes",
				      REV_DOC_ID_BYTES);
	if (utf8_valid_prefix(id) != id.len)
		return couch_fail_set(fail, COUCH_ERROR_ILLEGAL_DOCID,
				      "Document id must be valid UTF-8");
	if (id.ptr[0] == '_' && !couch_is_design(id) && !couch_is_local(id))
		return couch_fail_set(fail, COUCH_ERROR_ILLEGAL_DOCID,
				      "Only reserved document ids may start with underscore.");
	return STATUS_OK;
}
