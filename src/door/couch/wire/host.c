#include "door/couch/wire/host.h"

#include "base/address.h"
#include "door/couch/wire/cors.h"

#define LOOPBACK_NAMES "localhost, 127.0.0.1 or [::1]"

/* True if the origin is a page that the loopback serves, such as "http://localhost:8080". */
static bool
host_is_own_origin(struct str origin)
{
	static const struct str schemes[] = { { "http://", 7 }, { "https://", 8 } };

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (str_starts_with(origin, schemes[i]))
			return address_names_loopback(str_skip(origin, schemes[i].len));
	return false;
}

/* True for methods that change nothing, and whose answer no foreign page can read. */
static bool
host_is_harmless(struct str method)
{
	return str_eq(method, STR("GET")) || str_eq(method, STR("HEAD")) ||
	       str_eq(method, STR("OPTIONS"));
}

enum status
couch_check_host(struct couch_req *r)
{
	struct str host;
	struct str origin;

	if (auth_has_admins(people_of(r->held)))
		return STATUS_OK;
	host = http_request_header(r->x, STR("Host"));
	if (host.ptr && !address_names_loopback(host))
		return couch_fail_set(
			&r->fail, COUCH_ERROR_FORBIDDEN,
			"This server has no administrator, so it answers only to requests whose "
			"Host header is " LOOPBACK_NAMES ": a web page could have given its own "
			"name this address. Use one of these, or set an administrator.");
	if (host_is_harmless(http_method(r->x)))
		return STATUS_OK;
	origin = http_request_header(r->x, STR("Origin"));
	if (!origin.ptr || host_is_own_origin(origin) || couch_cors_allows(r, origin))
		return STATUS_OK;
	return couch_fail_set(&r->fail, COUCH_ERROR_FORBIDDEN,
			      "This server has no administrator, so pages of other origins than "
			      "the loopback's may change nothing unless [cors] origins has them. "
			      "Allow the origin, or set an administrator.");
}
