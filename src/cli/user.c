/* frond user ACTION [NAME]: the people of a store or of a server, as documents of _users. */
#include "cli/user.h"

#include <stdio.h>

#include "access/person.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "doc/json.h"
#include "doc/json_value.h"
#include "door/couch/couch.h"

#define USER_ID_PREFIX "org.couchdb.user:"

enum {
	OPTION_STORE = 's',
	OPTION_TO = 't',
	OPTION_ROLES = 'r',
};

struct user_args;

struct user_call {
	const struct user_args *args;
	struct user_place *place;
	struct arena *arena;
	struct str name;
	struct str id;
	struct str password;
};

struct user_action {
	const char *name;
	bool takes_name;
	bool takes_roles;
	bool takes_password;
	enum status (*run)(struct user_call *c, struct err *err);
};

struct user_args {
	const char *store;
	const char *to;
	const char *roles; /* separated by commas; NULL: not given */
	const char *name;
	const struct user_action *action;
};

static const struct argp_option argp_options[] = {
	{ "store", OPTION_STORE, "URL", 0, "The store of these people (default " CLI_STORE ")", 0 },
	{ "to", OPTION_TO, "URL", 0,
	  "The people of a server, http://[NAME:PASSWORD@]HOST:PORT, instead of a store's", 0 },
	{ "roles", OPTION_ROLES, "A,B", 0, "What roles somebody who is added has (default none)",
	  0 },
	{ 0 },
};

static const char argp_doc[] =
	"Add, list and remove the people who may log in, and set their passwords.\v"
	"  add NAME       makes a user, who must not be there already\n"
	"  list           a line of JSON for everybody: {\"name\":...,\"roles\":[...]}\n"
	"  remove NAME    deletes a user\n"
	"  password NAME  sets another password, and leaves the rest as it is\n"
	"\n"
	"A password is the first line of standard input; on a terminal it is asked for, and not "
	"shown.\n"
	"\n"
	"Administrators are no such people: settings name them (\"frond config\").\n"
	"\n" CLI_EXIT_TEXT;

/* ---- Documents ---- */

/* Appends the members of the existing document, without those of its password. */
static enum status
user_append_old(struct str old, struct arena *arena, struct buf *out, struct err *err)
{
	struct json_member *members;
	struct json_value value;
	bool any = false;
	size_t count;

	TRY(json_value_read(old, arena, &value, err));
	TRY(json_value_members(&value, arena, &members, &count, err));
	buf_append_byte(out, '{');
	for (size_t i = 0; i < count; i++) {
		if (str_eq(members[i].name, STR("password")))
			continue;
		if (any)
			buf_append_byte(out, ',');
		any = true;
		json_write_str(out, members[i].name);
		buf_append_byte(out, ':');
		buf_append_str(out, members[i].value.text);
	}
	return STATUS_OK;
}

/* Appends the roles of the option --roles as a JSON array. */
static void
user_append_roles(const char *roles, struct buf *out)
{
	struct str rest = str_from_cstr(roles ? roles : "");
	bool any = false;

	buf_append_byte(out, '[');
	while (rest.len) {
		const char *comma = memchr(rest.ptr, ',', rest.len);
		size_t len = comma ? (size_t)(comma - rest.ptr) : rest.len;

		if (len && any)
			buf_append_byte(out, ',');
		if (len)
			json_write_str(out, str_of(rest.ptr, len));
		any = any || len;
		rest = str_skip(rest, comma ? len + 1 : len);
	}
	buf_append_byte(out, ']');
}

static enum status
user_no_such(const struct user_call *c, struct err *err)
{
	return err_set(err, STATUS_NOT_FOUND, "there is no user \"%s\"", c->args->name);
}

/* Writes the document in `text`, and says so. */
static enum status
user_put(struct user_call *c, struct buf *text, bool create, const char *done, struct err *err)
{
	enum status status = buf_status(text);

	if (status == STATUS_OK)
		status = c->place->put(c->place, c->id, buf_str(text), create, NULL, c->arena, err);
	if (status == STATUS_DOC_CONFLICT)
		return err_set(err, status, "somebody else has written user \"%s\" meanwhile",
			       c->args->name);
	TRY(status);
	printf("user \"%s\" %s\n", c->args->name, done);
	return STATUS_OK;
}

/* ---- Actions ---- */

static enum status
user_add(struct user_call *c, struct err *err)
{
	AUTO(buf_release) struct buf text = BUF_INIT(COUCH_USER_DOC_BYTES);
	struct str old;
	enum status status = c->place->get(c->place, c->id, c->arena, &old, err);

	if (status == STATUS_OK)
		return err_set(err, STATUS_EXISTS, "there is a user \"%s\" already", c->args->name);
	if (status != STATUS_NOT_FOUND)
		return status;
	*err = (struct err){ 0 };
	buf_append_cstr(&text, "{\"_id\":");
	json_write_str(&text, c->id);
	buf_append_cstr(&text, ",\"name\":");
	json_write_str(&text, c->name);
	buf_append_cstr(&text, ",\"roles\":");
	user_append_roles(c->args->roles, &text);
	buf_append_cstr(&text, ",\"type\":\"user\",\"password\":");
	json_write_str(&text, c->password);
	buf_append_byte(&text, '}');
	return user_put(c, &text, true, "added", err);
}

static enum status
user_set_password(struct user_call *c, struct err *err)
{
	AUTO(buf_release) struct buf text = BUF_INIT(COUCH_USER_DOC_BYTES);
	struct str old;
	enum status status = c->place->get(c->place, c->id, c->arena, &old, err);

	if (status == STATUS_NOT_FOUND)
		return user_no_such(c, err);
	TRY(status);
	TRY(user_append_old(old, c->arena, &text, err));
	buf_append_cstr(&text, ",\"password\":");
	json_write_str(&text, c->password);
	buf_append_byte(&text, '}');
	return user_put(c, &text, false, "has another password", err);
}

static enum status
user_remove(struct user_call *c, struct err *err)
{
	AUTO(buf_release) struct buf text = BUF_INIT(COUCH_USER_DOC_BYTES);
	const struct json_value *rev;
	struct json_member *members;
	struct json_value value;
	struct str old;
	size_t count;
	enum status status = c->place->get(c->place, c->id, c->arena, &old, err);

	if (status == STATUS_NOT_FOUND)
		return user_no_such(c, err);
	TRY(status);
	TRY(json_value_read(old, c->arena, &value, err));
	TRY(json_value_members(&value, c->arena, &members, &count, err));
	rev = json_value_find(members, count, "_rev");
	if (!rev)
		return err_set(err, STATUS_INVALID, "the document of \"%s\" has no _rev",
			       c->args->name);
	buf_append_cstr(&text, "{\"_id\":");
	json_write_str(&text, c->id);
	buf_append_cstr(&text, ",\"_rev\":");
	buf_append_str(&text, rev->text);
	buf_append_cstr(&text, ",\"_deleted\":true}");
	return user_put(c, &text, false, "removed", err);
}

static enum status
user_print(void *arg, struct str name, struct str roles, struct err *err)
{
	AUTO(buf_release) struct buf line = BUF_INIT(COUCH_USER_DOC_BYTES);

	(void)arg;
	(void)err;
	buf_append_cstr(&line, "{\"name\":");
	json_write_str(&line, name);
	buf_append_cstr(&line, ",\"roles\":");
	buf_append_str(&line, roles);
	buf_append_cstr(&line, "}\n");
	TRY(buf_status(&line));
	fwrite(line.ptr, 1, line.len, stdout); /* cli_finish_output() looks for failures */
	return STATUS_OK;
}

static enum status
user_list(struct user_call *c, struct err *err)
{
	return c->place->list(c->place, user_print, NULL, err);
}

static const struct user_action actions[] = {
	{ "add", true, true, true, user_add },
	{ "list", false, false, false, user_list },
	{ "remove", true, false, false, user_remove },
	{ "password", true, false, true, user_set_password },
};

enum {
	ACTIONS_COUNT = sizeof(actions) / sizeof(actions[0]),
};

/* ---- The command ---- */

static const struct user_action *
user_find_action(const char *name, struct argp_state *state)
{
	for (size_t i = 0; i < ACTIONS_COUNT; i++)
		if (strcmp(actions[i].name, name) == 0)
			return &actions[i];
	argp_error(state, "\"%s\" is none of add, list, remove, password", name);
	return NULL;
}

static bool
user_is_text(const char *text)
{
	struct str s = str_from_cstr(text);

	return utf8_valid_prefix(s) == s.len;
}

static void
user_check_args(const struct user_args *args, struct argp_state *state)
{
	if (!args->action)
		argp_error(state, "add, list, remove or password?");
	else if (args->action->takes_name && !args->name)
		argp_error(state, "whom? %s needs a name", args->action->name);
	else if (!args->action->takes_name && args->name)
		argp_error(state, "%s takes no name", args->action->name);
	else if (args->roles && !args->action->takes_roles)
		argp_error(state, "--roles works with add only");
	if (args->store && args->to)
		argp_error(state, "--store and --to exclude each other");
	if (args->name &&
	    (!person_name_is_sound(str_from_cstr(args->name)) || !user_is_text(args->name)))
		argp_error(state, "a name has 1 to %d bytes of UTF-8, and no \":\"",
			   PERSON_NAME_BYTES);
	if (args->roles && !user_is_text(args->roles))
		argp_error(state, "--roles: not valid UTF-8");
}

static error_t
user_parse_option(int key, char *text, struct argp_state *state)
{
	struct user_args *args = state->input;

	switch (key) {
	case OPTION_STORE:
		args->store = cli_parse_store("store", text, state);
		return 0;
	case OPTION_TO:
		args->to = text;
		return 0;
	case OPTION_ROLES:
		args->roles = text;
		return 0;
	case ARGP_KEY_ARG:
		if (!args->action)
			args->action = user_find_action(text, state);
		else if (!args->name)
			args->name = text;
		else
			argp_error(state, "one name at a time");
		return 0;
	case ARGP_KEY_END:
		user_check_args(args, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Opens the store, or makes a client of the server. Returns false after a complaint. */
static bool
user_open_place(struct user_call *c)
{
	const struct kv_options options = { .create = c->args->action->run == user_add };
	struct kv_store *store = NULL;
	struct err err = { 0 };
	enum status status;

	if (c->args->to) {
		status = user_place_server(c->args->to, &c->place, &err);
	} else {
		/* cli_open_store() has printed why it failed. */
		if (cli_open_store(c->args->store ? c->args->store : CLI_STORE, &options, &store) !=
		    STATUS_OK)
			return false;
		status = user_place_store(store, &c->place, &err);
	}
	if (status != STATUS_OK)
		cli_complain("%s", err.text[0] ? err.text : status_name(status));
	return status == STATUS_OK;
}

/* The password is asked for first, so that a store is not kept open while somebody types. */
static int
user_run_action(struct user_call *c)
{
	const struct user_args *args = c->args;
	struct err err = { 0 };
	enum status status = STATUS_OK;

	if (args->name) {
		c->name = str_from_cstr(args->name);
		c->id = arena_printf(c->arena, USER_ID_PREFIX "%s", args->name);
		status = c->id.ptr ? STATUS_OK : STATUS_NOMEM;
	}
	if (status == STATUS_OK && args->action->takes_password)
		status = user_read_password(c->name, c->arena, &c->password, &err);
	if (status == STATUS_OK) {
		if (!user_open_place(c))
			return CLI_FAILED;
		status = args->action->run(c, &err);
		c->place->free(c->place);
	}
	if (status == STATUS_OK)
		return cli_finish_output();
	cli_complain("%s", err.text[0] ? err.text : status_name(status));
	return CLI_FAILED;
}

static int
run_user(int argc, char **argv)
{
	static const struct argp argp = { .options = argp_options,
					  .parser = user_parse_option,
					  .args_doc = "add|list|remove|password [NAME]",
					  .doc = argp_doc };
	struct user_args args = { 0 };
	struct user_call call = { .args = &args };
	int code = CLI_FAILED;

	cli_parse(&argp, argc, argv, &args);
	call.arena = arena_new(USER_ARENA_BYTES);
	if (call.arena)
		code = user_run_action(&call);
	else
		cli_complain("out of memory");
	arena_free(call.arena);
	return code;
}

const struct cli_command cli_user = { "user", "add, list and remove people, set passwords",
				      run_user };
