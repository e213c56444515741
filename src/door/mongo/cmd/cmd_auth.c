/* Logging in and out, and who has. */
#include <openssl/crypto.h>

#include "access/people.h"
#include "base/log.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/cmd/privileges.h"
#include "door/mongo/txn/client.h"
#include "settings/live.h"

#define ARGS_SASL_START(ARG)                                                                       \
	ARG(START_MECHANISM, "mechanism", ARG_STRING | ARG_REQUIRED)                               \
	ARG(START_PAYLOAD, "payload", ARG_BINARY | ARG_STRING | ARG_REQUIRED)                      \
	ARG(START_AUTO, "autoAuthorize", ARG_ANY)                                                  \
	ARG(START_OPTIONS, "options", ARG_OBJECT)                                                  \
	ARG(START_DB, "db", ARG_STRING)
ARGS_DEFINE(args_sasl_start, ARGS_SASL_START);

#define ARGS_SASL_CONTINUE(ARG)                                                                    \
	ARG(CONTINUE_ID, "conversationId", ARG_INT | ARG_REQUIRED)                                 \
	ARG(CONTINUE_PAYLOAD, "payload", ARG_BINARY | ARG_STRING | ARG_REQUIRED)
ARGS_DEFINE(args_sasl_continue, ARGS_SASL_CONTINUE);

#define ARGS_CONNECTION_STATUS(ARG) ARG(STATUS_PRIVILEGES, "showPrivileges", ARG_BOOL)
ARGS_DEFINE(args_connection_status, ARGS_CONNECTION_STATUS);

/* Why it failed is for the log; the client learns that it did, and when to try again. */
static enum status
login_failed(struct call *c, enum status status)
{
	struct err why = c->err;

	mongo_client_forget_login(c->client);
	if (status == STATUS_TOO_MANY || status == STATUS_FORBIDDEN)
		return call_fail(c,
				 status == STATUS_TOO_MANY ? (int)MONGO_TEMPORARILY_UNAVAILABLE
							   : (int)MONGO_AUTHENTICATION_FAILED,
				 "%s", why.text);
	if (status == STATUS_UNAUTHORIZED || status == STATUS_INVALID)
		return call_fail(c, MONGO_AUTHENTICATION_FAILED, "Authentication failed.");
	return status;
}

static void
put_step(struct call *c, struct bson_builder *b, bool done, struct str payload)
{
	bson_put_int32(b, STR("conversationId"), c->client->login.id);
	bson_put_bool(b, STR("done"), done);
	bson_put_binary(b, STR("payload"), 0, payload);
}

/* ---- PLAIN: a password in clear, so over TLS only ---- */

static enum status
plain_login(struct call *c, struct str payload, struct bson_builder *ret)
{
	struct mongo_client *client = c->client;
	struct str name;
	enum status status;

	if (!net_stream_is_secure(client->stream))
		return call_fail(c, MONGO_MECHANISM_UNAVAILABLE,
				 "PLAIN sends the password, so it is taken over TLS only");
	(void)str_cut(&payload, '\0'); /* on whose behalf: nobody else's */
	name = str_cut(&payload, '\0');
	status = visit_login(&client->entry, "plain", name, payload, &c->err);
	if (status == STATUS_NOMEM)
		return status;
	if (status != STATUS_OK)
		return login_failed(c, status);
	put_step(c, ret, true, STR(""));
	return STATUS_OK;
}

/* ---- SCRAM-SHA-256 ---- */

static enum status
scram_login(struct call *c, struct str payload, struct bson_builder *ret)
{
	struct mongo_client *client = c->client;
	struct auth_client of = visit_auth(&client->entry);
	struct settings_held *held = settings_live_hold(c->mongo->config.live);
	struct str answer;
	enum status status;

	status = auth_scram_begin(people_of(held), payload, &of, c->arena, &client->login.scram,
				  &answer, &c->err);
	settings_held_unref(held);
	if (status != STATUS_OK)
		return login_failed(c, status);
	put_step(c, ret, false, answer);
	return STATUS_OK;
}

static enum status
scram_confirm(struct call *c, struct str payload)
{
	struct mongo_client *client = c->client;
	struct mongo_login *login = &client->login;
	struct auth_client of = visit_auth(&client->entry);
	struct visitor_found found = { .arena = arena_new(VISITOR_BYTES) };
	struct settings_held *held;
	struct str answer;
	enum status status;

	if (!found.arena)
		return STATUS_NOMEM;
	held = settings_live_hold(c->mongo->config.live);
	status = auth_scram_end(login->scram, people_of(held), payload, &of, found.arena, &answer,
				&found.user, &c->err);
	settings_held_unref(held);
	if (status != STATUS_OK) {
		arena_free(found.arena);
		return login_failed(c, status);
	}
	put_step(c, c->reply, login->skips_empty, answer);
	TRY(visit_enter(&client->entry, &found, &c->err));
	if (login->skips_empty)
		mongo_client_forget_login(client);
	else
		login->confirmed = true;
	return STATUS_OK;
}

/* ---- Commands ---- */

enum status
sasl_start(struct call *c, struct str request, struct bson_builder *ret)
{
	struct mongo_client *client = c->client;
	struct bson_value mechanism, payload, skips;

	if (!bson_find(request, STR("mechanism"), &mechanism) || mechanism.type != BSON_STRING ||
	    !bson_find(request, STR("payload"), &payload) ||
	    (payload.type != BSON_BINARY && payload.type != BSON_STRING))
		return call_fail(c, MONGO_BAD_VALUE, "saslStart has a mechanism and a payload");
	mongo_client_forget_login(client);
	client->login.id++;
	client->login.skips_empty = bson_find_path(request, STR("options.skipEmptyExchange"),
						   &skips) &&
				    bson_is_true(&skips);
	if (str_eq(bson_text(&mechanism), STR("SCRAM-SHA-256")))
		return scram_login(c, bson_text(&payload), ret);
	if (str_eq(bson_text(&mechanism), STR("PLAIN")))
		return plain_login(c, bson_text(&payload), ret);
	return call_fail(c, MONGO_MECHANISM_UNAVAILABLE,
			 "Received authentication for mechanism %.*s which is not enabled",
			 (int)(bson_text(&mechanism).len < 100 ? bson_text(&mechanism).len : 100),
			 bson_text(&mechanism).ptr);
}

enum status
mongo_run_sasl_start(struct call *c)
{
	return sasl_start(c, c->body, c->reply);
}

enum status
mongo_run_sasl_continue(struct call *c)
{
	struct mongo_login *login = &c->client->login;

	if (!login->scram || call_i64(c, CONTINUE_ID, 0) != login->id)
		return call_fail(c, MONGO_PROTOCOL_ERROR, "No SASL session state found");
	if (!login->confirmed)
		return scram_confirm(c, call_text(c, CONTINUE_PAYLOAD));
	put_step(c, c->reply, true, STR(""));
	mongo_client_forget_login(c->client);
	return STATUS_OK;
}

enum status
mongo_run_logout(struct call *c)
{
	mongo_client_forget_login(c->client);
	visit_reset(&c->client->entry);
	return STATUS_OK;
}

static void
put_role(struct bson_builder *b, struct str name, struct str db)
{
	bson_begin_document(b, STR(""));
	bson_put_string(b, STR("role"), name);
	bson_put_string(b, STR("db"), db);
	bson_end(b);
}

enum status
mongo_run_connection_status(struct call *c)
{
	const struct mongo_client *client = c->client;
	const struct rights *r = &client->rights;
	bool known = client->entry.who.user.name.len;

	bson_begin_document(c->reply, STR("authInfo"));
	bson_begin_array(c->reply, STR("authenticatedUsers"));
	if (known) {
		bson_begin_document(c->reply, STR(""));
		bson_put_string(c->reply, STR("user"), client->entry.who.user.name);
		bson_put_string(c->reply, STR("db"), STR("admin"));
		bson_end(c->reply);
	}
	bson_end(c->reply);
	bson_begin_array(c->reply, STR("authenticatedUserRoles"));
	for (size_t i = 0; known && i < r->role_count; i++)
		put_role(c->reply, r->roles[i].name, r->roles[i].db);
	bson_end(c->reply);
	if (call_bool(c, STATUS_PRIVILEGES, false))
		privileges_put(c->reply, STR("authenticatedUserPrivileges"), r);
	bson_end(c->reply);
	return STATUS_OK;
}
