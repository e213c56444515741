/*
 * Cross-origin requests of browsers (the Fetch standard's CORS), with CouchDB's settings and rules:
 * a preflight that is granted is answered before anybody is authenticated; one that is not is an
 * ordinary OPTIONS request, without the headers that a browser waits for.
 */
#include "door/couch/couch_int.h"

/* CouchDB's defaults, and what frond has beyond CouchDB. */
#define DEFAULT_METHODS "CONNECT, COPY, DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, TRACE"
#define DEFAULT_HEADERS                                                                            \
	"accept, accept-language, authorization, content-encoding, content-length, "               \
	"content-range, content-type, destination, expires, if-match, last-modified, origin, "     \
	"pragma, x-couch-full-commit, x-couch-id, x-couch-persist, x-couch-request-id, "           \
	"x-couchdb-www-authenticate, x-http-method-override, x-requested-with, "                   \
	"x-couchdb-vhost-path"
#define DEFAULT_EXPOSED                                                                            \
	"content-type, cache-control, accept-ranges, etag, server, x-couch-request-id, "           \
	"x-couch-update-newrev, x-couchdb-body-time"

static struct str
text_or(const char *text, struct str otherwise)
{
	return text ? str_from_cstr(text) : otherwise;
}

static struct str
next_item(struct str *list)
{
	const char *comma = memchr(list->ptr, ',', list->len);
	size_t len = comma ? (size_t)(comma - list->ptr) : list->len;
	struct str item = str_trim(str_of(list->ptr, len));

	*list = str_skip(*list, comma ? len + 1 : len);
	return item;
}

static bool
list_has(struct str list, struct str wanted)
{
	while (list.len)
		if (str_eq_nocase(next_item(&list), wanted))
			return true;
	return false;
}

static bool
list_has_all(struct str list, struct str wanted)
{
	while (wanted.len) {
		struct str item = next_item(&wanted);

		if (item.len && !list_has(list, item))
			return false;
	}
	return true;
}

static bool
is_allowed(const struct couch_cors_config *cors, struct str origin)
{
	struct str origins = text_or(cors->origins, STR(""));

	return list_has(origins, STR("*")) || list_has(origins, origin);
}

/* What every answer to an origin has that is let in: its own name, never "*", as in CouchDB. */
static void
set_origin(struct couch_req *r, const struct couch_cors_config *cors, struct str origin)
{
	http_set_header(r->x, STR("Access-Control-Allow-Origin"), origin);
	if (cors->credentials)
		http_set_header(r->x, STR("Access-Control-Allow-Credentials"), STR("true"));
}

static enum status
answer_preflight(struct couch_req *r, const struct couch_cors_config *cors, struct str methods,
		 struct str wanted_headers)
{
	struct str age = arena_printf(r->arena, "%llu", (unsigned long long)cors->max_age_s);

	if (!age.ptr)
		return STATUS_NOMEM;
	http_set_header(r->x, STR("Access-Control-Max-Age"), age);
	http_set_header(r->x, STR("Access-Control-Allow-Methods"), methods);
	http_set_header(r->x, STR("Access-Control-Allow-Headers"), wanted_headers);
	http_set_status(r->x, 204);
	return http_send(r->x, STR(""));
}

enum status
couch_cors(struct couch_req *r, bool *ret_answered)
{
	const struct couch_cors_config *cors = &r->settings->door.cors;
	struct str origin = http_request_header(r->x, STR("Origin"));
	struct str method = http_request_header(r->x, STR("Access-Control-Request-Method"));
	struct str headers = http_request_header(r->x, STR("Access-Control-Request-Headers"));
	struct str methods = text_or(cors->methods, STR(DEFAULT_METHODS));

	*ret_answered = false;
	if (!cors->enabled)
		return STATUS_OK;
	/* A cache must not give one origin what was meant for another. */
	http_add_header(r->x, STR("Vary"), STR("Origin"));
	if (!origin.ptr || !is_allowed(cors, origin))
		return STATUS_OK;
	set_origin(r, cors, origin);
	if (str_eq(http_method(r->x), STR("OPTIONS")) && method.ptr && list_has(methods, method) &&
	    list_has_all(text_or(cors->headers, STR(DEFAULT_HEADERS)), headers)) {
		*ret_answered = true;
		return answer_preflight(r, cors, methods, headers.ptr ? headers : STR(""));
	}
	http_set_header(r->x, STR("Access-Control-Expose-Headers"),
			text_or(cors->exposed_headers, STR(DEFAULT_EXPOSED)));
	return STATUS_OK;
}
