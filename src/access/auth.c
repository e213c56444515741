/* Who a request is from. */
#include <openssl/crypto.h>

#include "access/auth_int.h"
#include "base/base64.h"

enum {
	CREDENTIALS_BYTES = AUTH_NAME_BYTES + 1 + AUTH_PASSWORD_BYTES,
	RENEW_PART = 10, /* a cookie is renewed when it has used up this part of its time */
};

static struct str admin_role = { "_admin", sizeof("_admin") - 1 };

/* As long as no administrator is configured, every request has an administrator's rights. */
static enum status
auth_everybody(struct auth_user *ret)
{
	ret->admin = true;
	ret->roles = &admin_role;
	ret->roles_count = 1;
	return STATUS_OK;
}

/* STATUS_NOT_FOUND: these are not Basic credentials. */
static enum status
basic_check(struct auth *a, struct str header, const struct auth_client *client,
	    struct arena *arena, struct auth_who *ret, struct str *ret_tried, struct err *err)
{
	AUTO(buf_release) struct buf plain = BUF_INIT(CREDENTIALS_BYTES);
	struct str scheme, password, name;
	enum status status;

	header = str_trim(header);
	if (!auth_cut_at(&header, ' ', &scheme)) {
		scheme = header;
		header.len = 0;
	}
	if (!str_eq_nocase(scheme, STR("Basic")))
		return STATUS_NOT_FOUND;
	status = base64_decode(&plain, str_trim(header), BASE64_STANDARD);
	if (status == STATUS_NOMEM)
		return status;
	password = buf_str(&plain);
	if (status != STATUS_OK || !auth_cut_at(&password, ':', &name))
		return err_set(err, STATUS_UNAUTHORIZED, AUTH_WRONG_TEXT);
	/* What Fauxton and old browsers send to be logged out. */
	if (str_eq(name, STR("_")) && str_eq(password, STR("_")))
		return STATUS_NOT_FOUND;
	*ret_tried = arena_dup(arena, name);
	status = auth_password_check(a, name, password, client, arena, ret, err);
	if (status == STATUS_OK)
		auth_renew(a, ret, password, client, arena);
	OPENSSL_cleanse(plain.ptr, plain.len);
	/* A name that nobody has is STATUS_UNAUTHORIZED by now, so this is another failure. */
	return status;
}

void
auth_tell_login(const struct auth_client *client, struct str name, const char *method,
		enum status status, bool failing)
{
	if (client && (status == STATUS_OK || status == STATUS_UNAUTHORIZED ||
		       status == STATUS_FORBIDDEN || status == STATUS_INVALID))
		audit_login(&client->by, name, method, status, failing);
}

/* By name and password, or by a cookie. */
static enum status
known_check(struct auth *a, enum auth_method method, struct str header,
	    const struct auth_client *client, struct arena *arena, struct auth_user *ret,
	    bool *ret_failing, struct err *err)
{
	struct auth_who who = { 0 };
	struct str tried = { NULL, 0 };
	uint64_t age_s = 0;
	enum status status;

	if (method == AUTH_METHOD_BASIC)
		status = basic_check(a, header, client, arena, &who, &tried, err);
	else
		status = auth_cookie_check(a, header, client, arena, &who, &age_s, err);
	ret->tried = tried;
	if (tried.ptr)
		ret->attempt = AUTH_METHOD_BASIC;
	*ret_failing = who.failing;
	TRY(status);
	if (auth_become(&who, arena, method, ret) != STATUS_OK)
		return err_set(err, STATUS_LIMIT, "out of the request's memory");
	ret->tried = tried;
	ret->attempt = tried.ptr ? AUTH_METHOD_BASIC : AUTH_METHOD_NONE;
	ret->fresh = method == AUTH_METHOD_BASIC && who.fresh;
	ret->renew = method == AUTH_METHOD_COOKIE && age_s > a->session_s / RENEW_PART;
	return STATUS_OK;
}

/* Asks one handler after the other. STATUS_NOT_FOUND: none has found anything meant for it. */
static enum status
handlers_check(struct auth *a, struct str authorization, struct str cookie,
	       const struct auth_client *client, struct arena *arena, struct auth_user *ret,
	       bool *ret_failing, struct err *err)
{
	enum status status = STATUS_NOT_FOUND;

	for (size_t i = 0; i < a->handlers_count && status == STATUS_NOT_FOUND; i++) {
		enum auth_method method = a->handlers[i];
		struct str header = method == AUTH_METHOD_COOKIE ? cookie : authorization;

		if (method == AUTH_METHOD_PROXY) {
			status = auth_proxy_check(a, client, arena, ret, err);
			continue;
		}
		if (!header.ptr)
			continue;
		if (method == AUTH_METHOD_JWT)
			status = auth_token_check(a, header, arena, ret, err);
		else
			status = known_check(a, method, header, client, arena, ret, ret_failing,
					     err);
	}
	return status;
}

enum status
auth_check(struct auth *a, struct str authorization, struct str cookie,
	   const struct auth_client *client, struct arena *arena, struct auth_user *ret,
	   struct err *err)
{
	bool failing = false;
	enum status status;

	*ret = (struct auth_user){ .name = STR(""), .method = AUTH_METHOD_NONE };
	if (!auth_has_admins(a))
		return auth_everybody(ret);
	status = handlers_check(a, authorization, cookie, client, arena, ret, &failing, err);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	if (status != STATUS_OK || ret->fresh)
		auth_tell_login(client, ret->tried,
				ret->attempt == AUTH_METHOD_JWT ? "jwt" : "basic", status, failing);
	if (status == STATUS_NOMEM)
		return err_set(err, status, "out of memory");
	return status;
}

enum status
auth_login(struct auth *a, const char *method, struct str name, struct str password,
	   const struct auth_client *client, struct arena *arena, struct auth_user *ret,
	   struct err *err)
{
	struct auth_who who = { 0 };
	enum status status = auth_password_check(a, name, password, client, arena, &who, err);

	auth_tell_login(client, name, method, status, who.failing);
	TRY(status);
	auth_renew(a, &who, password, client, arena);
	if (auth_become(&who, arena, AUTH_METHOD_COOKIE, ret) != STATUS_OK)
		return err_set(err, STATUS_LIMIT, "out of the request's memory");
	return STATUS_OK;
}

enum status
auth_again(const struct auth *a, const struct auth_client *client, struct arena *arena,
	   struct auth_user *user, struct err *err)
{
	struct auth_who who;
	enum status status;

	if (!auth_has_admins(a) && (user->admin || !client->door.len))
		return user->admin ? STATUS_OK : STATUS_UNAUTHORIZED;
	if (user->name.len == 0)
		return user->admin ? STATUS_UNAUTHORIZED : STATUS_OK;
	if (user->method == AUTH_METHOD_JWT)
		return auth_token_again(a, user);
	if (user->method == AUTH_METHOD_PROXY)
		return auth_has_handler(a, AUTH_METHOD_PROXY) ? STATUS_OK : STATUS_UNAUTHORIZED;
	status = auth_find(a, user->name, client, arena, &who, err);
	if (status == STATUS_NOT_FOUND || status == STATUS_CORRUPT || status == STATUS_NEWER)
		return STATUS_UNAUTHORIZED;
	TRY(status);
	return auth_become(&who, arena, user->method, user);
}
