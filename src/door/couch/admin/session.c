/* /_session: says who the user is, logs in and logs out. */
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/admin/endpoints.h"
#include "door/couch/admin/user_doc.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"

#define COOKIE_CLEARED "AuthSession=; Version=1; Path=/; HttpOnly"

static const char *
session_method_name(enum auth_method method)
{
	switch (method) {
	case AUTH_METHOD_BASIC:
		return "default";
	case AUTH_METHOD_COOKIE:
		return "cookie";
	case AUTH_METHOD_JWT:
		return "jwt";
	case AUTH_METHOD_PROXY:
		return "proxy";
	case AUTH_METHOD_NONE:
		break;
	}
	return NULL;
}

/* As CouchDB names them: by the first word of their names in the settings. */
static void
session_write_handlers(struct couch_req *r, struct buf *out)
{
	static const enum auth_method defaults[] = { AUTH_METHOD_COOKIE, AUTH_METHOD_BASIC };
	const struct access_settings *access = settings_of(r->held->settings,
							   &access_setting_group);
	const enum auth_method *handlers = defaults;
	size_t count = sizeof(defaults) / sizeof(defaults[0]);

	if (access->handlers)
		count = auth_handlers(people_of(r->held), &handlers);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s\"%s\"", i ? "," : "", session_method_name(handlers[i]));
}

enum status
couch_session_get(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = BUF_SHORT(COUCH_SMALL_BODY_BYTES);
	const struct access_settings *access = settings_of(r->held->settings,
							   &access_setting_group);
	const char *how = session_method_name(r->user.method);

	if (r->user.name.len == 0 && couch_param_true(r, "basic"))
		return couch_fail_set(&r->fail, COUCH_ERROR_UNAUTHORIZED, "Please login.");
	buf_append_cstr(&out, "{\"ok\":true,\"userCtx\":{\"name\":");
	if (r->user.name.len)
		json_write_str(&out, r->user.name);
	else
		buf_append_cstr(&out, "null");
	buf_append_cstr(&out, ",\"roles\":");
	couch_roles_write(&r->user, &out);
	buf_append_cstr(&out, "},\"info\":{\"authentication_handlers\":[");
	session_write_handlers(r, &out);
	buf_append_byte(&out, ']');
	if (how)
		buf_printf(&out, ",\"authenticated\":\"%s\"", how);
	if (access->users_db && access->users_db[0])
		buf_append_cstr(&out, ",\"authentication_db\":\"" COUCH_USERS_DB "\"");
	buf_append_cstr(&out, "}}");
	return couch_reply(r, 200, &out);
}

/*
 * The page that a form wants the browser to go on with. It must be a path of this server, so that
 * no form can send people elsewhere.
 */
static enum status
session_redirect(struct couch_req *r, const char *param, bool *ret_set)
{
	struct str to;

	*ret_set = couch_param(r, param, &to);
	if (!*ret_set)
		return STATUS_OK;
	if (!str_starts_with(to, STR("/")) || str_starts_with(to, STR("//")))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "path must begin with a /.");
	couch_set_location_path(r, to);
	return STATUS_OK;
}

static enum status
session_refuse(struct couch_req *r)
{
	bool elsewhere;

	http_add_header(r->x, STR("Set-Cookie"), STR(COOKIE_CLEARED));
	TRY(session_redirect(r, "fail", &elsewhere));
	if (elsewhere)
		return couch_reply_str(r, 302,
				       STR("{\"error\":\"unauthorized\",\"reason\":"
					   "\"Name or password is incorrect.\"}\n"));
	return couch_fail_set(&r->fail, COUCH_ERROR_UNAUTHORIZED, "Name or password is incorrect.");
}

struct credentials {
	bool has_name;
	bool has_username;
	struct str name;
	struct str username;
	struct str password;
};

static void
session_take_credential(struct credentials *c, struct str name, struct str value)
{
	if (str_eq(name, STR("name"))) {
		c->has_name = true;
		c->name = value;
	} else if (str_eq(name, STR("username"))) {
		c->has_username = true;
		c->username = value;
	} else if (str_eq(name, STR("password"))) {
		c->password = value;
	}
}

static enum status
session_read_json_form(struct couch_req *r, struct credentials *ret)
{
	struct json_member *members;
	size_t count;

	TRY(couch_read_object(r, COUCH_SMALL_BODY_BYTES, &members, &count));
	for (size_t i = 0; i < count; i++) {
		if (members[i].value.kind == JSON_STRING)
			session_take_credential(ret, members[i].name, members[i].value.string);
	}
	return STATUS_OK;
}

static enum status
session_read_url_form(struct couch_req *r, struct credentials *ret)
{
	struct http_param *params;
	struct str body;
	size_t count;

	TRY(couch_read_body(r, COUCH_SMALL_BODY_BYTES, &body));
	if (http_parse_query(body, r->arena, &params, &count) != STATUS_OK)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST, "The form is malformed.");
	for (size_t i = 0; i < count; i++)
		session_take_credential(ret, params[i].name, params[i].value);
	return STATUS_OK;
}

static enum status
session_read_credentials(struct couch_req *r, struct credentials *ret)
{
	struct str type = http_request_header(r->x, STR("Content-Type"));

	if (str_starts_with(type, STR("application/x-www-form-urlencoded")))
		TRY(session_read_url_form(r, ret));
	else if (str_starts_with(type, STR("application/json")))
		TRY(session_read_json_form(r, ret));
	else
		return couch_fail_set(&r->fail, COUCH_ERROR_CONTENT_TYPE,
				      "Content-Type must be 'application/x-www-form-urlencoded' or "
				      "'application/json'");
	if (!ret->has_name && !ret->has_username)
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "request body must contain a username");
	if (ret->has_name && ret->has_username && !str_eq(ret->name, ret->username))
		return couch_fail_set(&r->fail, COUCH_ERROR_BAD_REQUEST,
				      "request body contains different usernames");
	if (!ret->has_name)
		ret->name = ret->username;
	return STATUS_OK;
}

/* CouchDB's spelling of the values of SameSite. */
static const char *
session_same_site(const char *setting)
{
	if (strcmp(setting, "none") == 0)
		return "None";
	return strcmp(setting, "lax") == 0 ? "Lax" : "Strict";
}

static void
session_write_attributes(struct couch_req *r, struct buf *out)
{
	const struct access_settings *access = settings_of(r->held->settings,
							   &access_setting_group);

	if (access->persistent_cookies)
		buf_printf(out, "; Max-Age=%llu",
			   (unsigned long long)auth_session_seconds(people_of(r->held)));
	buf_append_cstr(out, "; Path=/");
	if (access->cookie_domain)
		buf_printf(out, "; Domain=%s", access->cookie_domain);
	buf_append_cstr(out, "; HttpOnly");
	if (couch_is_secure(r))
		buf_append_cstr(out, "; Secure");
	if (access->same_site)
		buf_printf(out, "; SameSite=%s", session_same_site(access->same_site));
}

static enum status
session_set_cookie(struct couch_req *r, struct str name)
{
	const struct auth_client client = couch_auth_client(r);
	AUTO(buf_release) struct buf text = BUF_SHORT(COUCH_SMALL_BODY_BYTES);
	struct str cookie;
	struct str header;

	TRY(auth_make_cookie(people_of(r->held), name, &client, r->arena, &cookie));
	buf_printf(&text, "AuthSession=%.*s; Version=1", STR_ARG(cookie));
	session_write_attributes(r, &text);
	TRY(buf_status(&text));
	header = buf_dup(&text, r->arena);
	if (!header.ptr)
		return STATUS_NOMEM;
	http_add_header(r->x, STR("Set-Cookie"), header);
	return STATUS_OK;
}

enum status
couch_session_renew(struct couch_req *r)
{
	bool session = r->parts_count && str_eq(r->parts[0], STR("_session"));

	/* Sets the cookie of a user who logs in, or the empty one of a user who logs out. */
	if (!r->user.renew || (session && r->method != COUCH_GET))
		return STATUS_OK;
	return session_set_cookie(r, r->user.name);
}

enum status
couch_session_post(struct couch_req *r)
{
	struct buf AUTO(buf_release) out = BUF_SHORT(COUCH_SMALL_BODY_BYTES);
	struct credentials c = { 0 };
	struct auth_client client;
	struct auth_user user;
	bool elsewhere;
	enum status status;

	TRY(session_read_credentials(r, &c));
	client = couch_auth_client(r);
	status = auth_login(people_of(r->held), "session", c.name, c.password, &client, r->arena,
			    &user, &r->fail.err);
	r->audited = true;
	if (status == STATUS_UNAUTHORIZED)
		return session_refuse(r);
	if (status != STATUS_OK)
		return status;
	TRY(session_redirect(r, "next", &elsewhere));
	TRY(session_set_cookie(r, c.name));

	buf_append_cstr(&out, "{\"ok\":true,\"name\":");
	json_write_str(&out, c.name);
	buf_append_cstr(&out, ",\"roles\":");
	couch_roles_write(&user, &out);
	buf_append_byte(&out, '}');
	return couch_reply(r, elsewhere ? 302 : 200, &out);
}

enum status
couch_session_delete(struct couch_req *r)
{
	bool elsewhere;

	TRY(session_redirect(r, "next", &elsewhere));
	http_add_header(r->x, STR("Set-Cookie"), STR(COOKIE_CLEARED));
	return couch_reply_ok(r, elsewhere ? 302 : 200);
}
