/* Tokens in the Authorization header, and which handlers there are. */
#include "access/auth_int.h"
#include "access/jwt_cache.h"
#include "base/steady.h"
#include "base/metric.h"
#include "base/quote.h"

_Static_assert((int)JWT_NAME_BYTES == (int)AUTH_NAME_BYTES, "a token's name is a name");

enum token_outcome {
	TOKEN_REMEMBERED,
	TOKEN_RIGHT,
	TOKEN_WRONG,
	TOKEN_OUTCOMES,
};

static const char *const token_outcomes[TOKEN_OUTCOMES] = {
	[TOKEN_REMEMBERED] = "remembered",
	[TOKEN_RIGHT] = "right",
	[TOKEN_WRONG] = "wrong",
};

METRIC_COUNTERS(token_checks, "frond_auth_token_checks_total", METRIC_NUMBER,
		"JSON Web Tokens that were checked: right lately and remembered, or right or wrong "
		"by their signature and claims.",
		"outcome", token_outcomes);

/* ---- Handlers ---- */

/* As CouchDB's setting calls them. */
static const struct {
	const char *name;
	enum auth_method method;
} handler_names[] = {
	{ "cookie_authentication_handler", AUTH_METHOD_COOKIE },
	{ "default_authentication_handler", AUTH_METHOD_BASIC },
	{ "jwt_authentication_handler", AUTH_METHOD_JWT },
	{ "proxy_authentication_handler", AUTH_METHOD_PROXY },
	{ "proxy_authentification_handler", AUTH_METHOD_PROXY }, /* as CouchDB once spelt it */
};

static bool
handler_find(struct str module, struct str name, enum auth_method *ret)
{
	if (!str_eq(module, STR("chttpd_auth")) && !str_eq(module, STR("couch_httpd_auth")))
		return false;
	for (size_t i = 0; i < sizeof(handler_names) / sizeof(handler_names[0]); i++) {
		if (str_eq(name, str_from_cstr(handler_names[i].name))) {
			*ret = handler_names[i].method;
			return true;
		}
	}
	return false;
}

/* "{module, name}", moved from `rest` with the comma behind it. */
static bool
handler_next(struct str *rest, enum auth_method *ret)
{
	struct str module, name, behind;

	*rest = str_trim(*rest);
	if (!rest->len || rest->ptr[0] != '{')
		return false;
	*rest = str_skip(*rest, 1);
	if (!auth_cut_at(rest, ',', &module) || !auth_cut_at(rest, '}', &name))
		return false;
	if (!auth_cut_at(rest, ',', &behind)) {
		behind = *rest;
		*rest = (struct str){ 0 };
	} else if (!str_trim(*rest).len) {
		return false;
	}
	behind = str_trim(behind);
	/* The lists that CouchDB's own tests set end in ")", and CouchDB takes them. */
	if (!rest->len && str_eq(behind, STR(")")))
		behind.len = 0;
	return !behind.len && handler_find(str_trim(module), str_trim(name), ret);
}

enum status
auth_set_handlers(struct auth *a, struct str text, struct err *err)
{
	enum auth_method handlers[AUTH_HANDLERS_LIMIT];
	struct str rest = text;
	size_t count = 0;

	do {
		if (count == AUTH_HANDLERS_LIMIT || !handler_next(&rest, &handlers[count]))
			return err_set(
				err, STATUS_INVALID,
				"[chttpd] authentication_handlers: \"%s\" is no list of at most %d "
				"{chttpd_auth, NAME_authentication_handler} with a NAME of cookie, "
				"default, jwt, proxy",
				QUOTE_SHOW(text), AUTH_HANDLERS_LIMIT);
		count++;
	} while (rest.len);
	memcpy(a->handlers, handlers, sizeof(handlers));
	a->handlers_count = count;
	return STATUS_OK;
}

size_t
auth_handlers(const struct auth *a, const enum auth_method **ret)
{
	*ret = a->handlers;
	return a->handlers_count;
}

bool
auth_has_handler(const struct auth *a, enum auth_method method)
{
	for (size_t i = 0; i < a->handlers_count; i++)
		if (a->handlers[i] == method)
			return true;
	return false;
}

/* ---- Tokens ---- */

void
auth_set_tokens(struct auth *a, struct jwt_rules *rules)
{
	jwt_rules_free(a->tokens);
	a->tokens = rules;
}

static bool
roles_have_admin(const struct str *roles, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(roles[i], STR("_admin")))
			return true;
	return false;
}

static enum status
token_check(struct auth *a, struct str token, struct arena *arena, struct jwt_claims *ret,
	    bool *ret_fresh, struct err *err)
{
	uint64_t now_s = steady_date_ms() / 1000;
	struct jwt_cache_key key;
	enum status status;

	*ret_fresh = false;
	if (token.len > JWT_TOKEN_BYTES)
		return jwt_check(a->tokens, token, now_s, arena, ret, err);
	if (jwt_cache_key_of(a->tokens, token, &key) != STATUS_OK)
		return err_set(err, STATUS_NOMEM, "out of memory");
	status = jwt_cache_find(&key, now_s, arena, ret);
	if (status == STATUS_OK)
		metric_add_at(&token_checks, TOKEN_REMEMBERED, 1);
	if (status == STATUS_LIMIT)
		return err_set(err, status, "out of the request's memory");
	if (status != STATUS_NOT_FOUND)
		return status;
	status = jwt_check(a->tokens, token, now_s, arena, ret, err);
	if (status == STATUS_INVALID || status == STATUS_UNAUTHORIZED || status == STATUS_NOT_FOUND)
		metric_add_at(&token_checks, TOKEN_WRONG, 1);
	TRY(status);
	metric_add_at(&token_checks, TOKEN_RIGHT, 1);
	jwt_cache_add(&key, ret);
	*ret_fresh = true;
	return STATUS_OK;
}

enum status
auth_token_check(struct auth *a, struct str header, struct arena *arena, struct auth_user *ret,
		 struct err *err)
{
	struct jwt_claims claims;
	enum status status;
	struct str scheme;
	bool fresh;

	header = str_trim(header);
	if (!a->tokens || !auth_cut_at(&header, ' ', &scheme) ||
	    !str_eq_nocase(scheme, STR("bearer")))
		return STATUS_NOT_FOUND;
	ret->attempt = AUTH_METHOD_JWT;
	status = token_check(a, str_trim(header), arena, &claims, &fresh, err);
	/* To auth_check() the status would say that there is no token. */
	ret->lacks_roles = status == STATUS_NOT_FOUND;
	TRY(ret->lacks_roles ? STATUS_INVALID : status);
	*ret = (struct auth_user){
		.name = claims.name,
		.roles = claims.roles,
		.roles_count = claims.roles_count,
		.admin = roles_have_admin(claims.roles, claims.roles_count),
		.method = AUTH_METHOD_JWT,
		.attempt = AUTH_METHOD_JWT,
		.fresh = fresh,
		.tried = claims.name,
		.until_s = claims.until_s,
	};
	memcpy(ret->key, claims.key, sizeof(ret->key));
	return STATUS_OK;
}

bool
auth_is_over(const struct auth_user *user)
{
	return user->method == AUTH_METHOD_JWT && user->until_s <= steady_date_ms() / 1000;
}

enum status
auth_token_again(const struct auth *a, const struct auth_user *user)
{
	if (!a->tokens || !auth_has_handler(a, AUTH_METHOD_JWT) || auth_is_over(user) ||
	    !jwt_rules_have_key(a->tokens, user->key))
		return STATUS_UNAUTHORIZED;
	return STATUS_OK;
}
