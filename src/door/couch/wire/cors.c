/*
 * Cross-origin requests of browsers (CORS in the Fetch standard), with CouchDB's settings and
 * rules. The door answers a preflight that it grants before it authenticates anybody. A preflight
 * that it does not grant is treated as an ordinary OPTIONS request, whose answer lacks the headers
 * that the browser waits for.
 */
#include "door/couch/wire/cors.h"
#include "door/couch/wire/request.h"
#include "http/field.h"

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
cors_text_or(const char *text, struct str otherwise)
{
	return text ? str_from_cstr(text) : otherwise;
}

static bool
cors_list_has(struct str list, struct str wanted)
{
	struct str element;

	while (http_list_next(&list, &element))
		if (str_eq_nocase(element, wanted))
			return true;
	return false;
}

static bool
cors_list_has_all(struct str list, struct str wanted)
{
	struct str element;

	while (http_list_next(&wanted, &element))
		if (!cors_list_has(list, element))
			return false;
	return true;
}

static bool
cors_is_allowed(const struct couch_settings *settings, struct str origin)
{
	struct str origins = cors_text_or(settings->cors_origins, STR(""));

	return cors_list_has(origins, STR("*")) || cors_list_has(origins, origin);
}

bool
couch_cors_allows(const struct couch_req *r, struct str origin)
{
	return r->settings->cors && cors_is_allowed(r->settings, origin);
}

/*
 * Sets what every answer to an allowed origin has: the origin's own name, never "*", as in CouchDB.
 */
static void
cors_set_origin(struct couch_req *r, const struct couch_settings *settings, struct str origin)
{
	http_set_header(r->x, STR("Access-Control-Allow-Origin"), origin);
	if (settings->cors_credentials)
		http_set_header(r->x, STR("Access-Control-Allow-Credentials"), STR("true"));
}

static enum status
cors_answer_preflight(struct couch_req *r, const struct couch_settings *settings,
		      struct str methods, struct str wanted_headers)
{
	struct str age = arena_printf(r->arena, "%llu",
				      (unsigned long long)settings->cors_max_age_s);

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
	const struct couch_settings *settings = r->settings;
	struct str origin = http_request_header(r->x, STR("Origin"));
	struct str method = http_request_header(r->x, STR("Access-Control-Request-Method"));
	struct str headers = http_request_header(r->x, STR("Access-Control-Request-Headers"));
	struct str methods = cors_text_or(settings->cors_methods, STR(DEFAULT_METHODS));

	*ret_answered = false;
	if (!settings->cors)
		return STATUS_OK;
	/* A cache must not give one origin what was meant for another. */
	http_add_header(r->x, STR("Vary"), STR("Origin"));
	if (!origin.ptr || !cors_is_allowed(settings, origin))
		return STATUS_OK;
	cors_set_origin(r, settings, origin);
	if (str_eq(http_method(r->x), STR("OPTIONS")) && method.ptr &&
	    cors_list_has(methods, method) &&
	    cors_list_has_all(cors_text_or(settings->cors_headers, STR(DEFAULT_HEADERS)),
			      headers)) {
		*ret_answered = true;
		return cors_answer_preflight(r, settings, methods, headers.ptr ? headers : STR(""));
	}
	http_set_header(r->x, STR("Access-Control-Expose-Headers"),
			cors_text_or(settings->cors_exposed_headers, STR(DEFAULT_EXPOSED)));
	return STATUS_OK;
}
