/* CLIENT */
#include "access/people.h"
#include "base/clock.h"
#include "door/redis/cmd/commands.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/txn/user.h"
#include "door/redis/wire/error.h"

enum {
	LIST_BYTES = 64 * 1024 * 1024,
};

enum client_type {
	TYPE_ANY,
	TYPE_NORMAL,
	TYPE_PUBSUB,
	TYPE_NONE, /* master, replica: there are none */
};

static enum status
read_type(struct call *c, size_t i, enum client_type *ret)
{
	if (call_arg_is(c, i, "normal"))
		*ret = TYPE_NORMAL;
	else if (call_arg_is(c, i, "pubsub"))
		*ret = TYPE_PUBSUB;
	else if (call_arg_is(c, i, "master") || call_arg_is(c, i, "replica") ||
		 call_arg_is(c, i, "slave"))
		*ret = TYPE_NONE;
	else
		return call_errorf(c, "ERR Unknown client type '%.*s'",
				   STR_ARG(call_shown(c->argv[i])));
	return STATUS_OK;
}

static bool
is_of_type(struct client *c, enum client_type type)
{
	return type == TYPE_ANY ||
	       type == (client_has_subscriptions(c) ? TYPE_PUBSUB : TYPE_NORMAL);
}

static enum status
read_id(struct call *c, size_t i, uint64_t *ret)
{
	if (str_to_u64(c->argv[i], ret) && *ret)
		return STATUS_OK;
	return call_error(c, STR("ERR Invalid client ID"));
}

/* Which clients CLIENT LIST tells of. */
struct listing {
	struct call *call;
	enum client_type type;
	size_t ids; /* the argument that their ids begin with; 0: there are none */
	struct buf *out;
};

static void
list_one(void *arg, struct clients_entry *e)
{
	const struct listing *l = arg;
	struct client *one = (struct client *)e;
	bool wanted = !l->ids && is_of_type(one, l->type);
	uint64_t id;

	for (size_t i = l->ids; l->ids && i < l->call->argc && !wanted; i++)
		wanted = str_to_u64(l->call->argv[i], &id) && id == e->id;
	if (!wanted)
		return;
	client_describe(one, l->out);
	buf_append_byte(l->out, '\n');
}

static enum status
client_list(struct call *c)
{
	AUTO(buf_release) struct buf out = BUF_INIT_OF(LIST_BYTES, c->client->part);
	struct listing l = { .call = c, .type = TYPE_ANY, .out = &out };
	uint64_t id;

	if (c->argc == 4 && call_arg_is(c, 2, "type")) {
		TRY(read_type(c, 3, &l.type));
	} else if (c->argc > 3 && call_arg_is(c, 2, "id")) {
		l.ids = 3;
		for (size_t i = 3; i < c->argc; i++)
			TRY(read_id(c, i, &id));
	} else if (c->argc != 2) {
		return call_syntax_error(c);
	}
	clients_each(&c->redis->clients, list_one, &l);
	TRY(buf_status(&out));
	reply_verbatim(c->reply, buf_str(&out));
	return STATUS_OK;
}

static enum status
client_info(struct call *c)
{
	AUTO(buf_release) struct buf out = BUF_INIT_OF(LIST_BYTES, c->client->part);

	clients_see(&c->client->entry, list_one, &(struct listing){ .call = c, .out = &out });
	TRY(buf_status(&out));
	reply_verbatim(c->reply, buf_str(&out));
	return STATUS_OK;
}

/* ---- KILL ---- */

struct kill {
	struct str addr, laddr, user;
	uint64_t id;
	enum client_type type;
	bool skip_me;
	struct client *self; /* of whom the command is */
	bool ends_self;
};

static enum status
kill_parse(struct call *c, struct kill *k)
{
	for (size_t i = 2; i < c->argc; i += 2) {
		if (i + 1 == c->argc)
			return call_syntax_error(c);
		if (call_arg_is(c, i, "id")) {
			int64_t id;

			TRY(call_int_range(c, i + 1, 1, INT64_MAX,
					   "client-id should be greater than 0", &id));
			k->id = (uint64_t)id;
		} else if (call_arg_is(c, i, "type")) {
			TRY(read_type(c, i + 1, &k->type));
		} else if (call_arg_is(c, i, "addr")) {
			k->addr = c->argv[i + 1];
		} else if (call_arg_is(c, i, "laddr")) {
			k->laddr = c->argv[i + 1];
		} else if (call_arg_is(c, i, "user")) {
			k->user = c->argv[i + 1];
		} else if (call_arg_is(c, i, "skipme") &&
			   (call_arg_is(c, i + 1, "yes") || call_arg_is(c, i + 1, "no"))) {
			k->skip_me = call_arg_is(c, i + 1, "yes");
		} else {
			return call_syntax_error(c);
		}
	}
	return STATUS_OK;
}

/* Whether there is a person of the name. */
static enum status
user_exists(struct call *c, struct str name, bool *ret)
{
	struct settings_held *held = settings_live_hold(c->redis->config.live);
	const struct auth_client client = { .store = c->redis->config.store, .door = USER_DOOR };
	struct auth_user user = { .name = name, .method = AUTH_METHOD_BASIC };
	struct err ignored = { 0 };
	enum status status = auth_again(people_of(held), &client, c->arena, &user, &ignored);

	settings_held_unref(held);
	*ret = status == STATUS_OK || str_eq(name, USER_DEFAULT);
	return status == STATUS_UNAUTHORIZED ? STATUS_OK : status;
}

/* CLIENT KILL USER of nobody is an error. */
static enum status
kill_check_user(struct call *c, const struct kill *k)
{
	bool exists = true;

	if (k->user.ptr)
		TRY(user_exists(c, k->user, &exists));
	if (exists)
		return STATUS_OK;
	return call_errorf(c, "ERR No such user '%.*s'", STR_ARG(call_shown(k->user)));
}

/* For clients_signal_each(). The client itself ends after its answer, and is not signalled. */
static bool
kill_wants(void *arg, struct clients_entry *e)
{
	struct client *one = (struct client *)e;
	struct kill *k = arg;

	if (k->skip_me && one == k->self)
		return false;
	if (k->addr.ptr && !str_eq(k->addr, str_from_cstr(e->peer)))
		return false;
	if (k->laddr.ptr && !str_eq(k->laddr, str_from_cstr(one->local)))
		return false;
	if (k->user.ptr && !str_eq(k->user, str_from_cstr(e->user)))
		return false;
	if ((k->id && k->id != e->id) || !is_of_type(one, k->type))
		return false;
	k->ends_self = k->ends_self || one == k->self;
	return one != k->self;
}

static enum status
client_kill(struct call *c)
{
	struct kill k = { .skip_me = true, .self = c->client };
	bool old = c->argc == 3;
	size_t count;

	if (c->argc == 2)
		return call_error(c, STR("ERR wrong number of arguments for 'client|kill' "
					 "command"));
	if (old) {
		k.addr = c->argv[2];
		k.skip_me = false;
	} else {
		TRY(kill_parse(c, &k));
	}
	TRY(kill_check_user(c, &k));
	count = clients_signal_each(&c->redis->clients, CLIENT_KILLED, kill_wants, &k);
	if (k.ends_self) {
		c->client->end = CLIENT_ENDS;
		count++;
	}
	if (!old)
		reply_int(c->reply, (int64_t)count);
	else if (count)
		reply_ok(c->reply);
	else
		return call_error(c, STR("ERR No such client"));
	return STATUS_OK;
}

/* ---- The rest ---- */

static bool
is_blocked(void *id, struct clients_entry *e)
{
	return e->id == *(const uint64_t *)id && ((const struct client *)e)->blocked;
}

static enum status
client_unblock(struct call *c)
{
	unsigned signal = CLIENT_UNBLOCKED;
	int64_t id;

	if (c->argc > 4)
		return call_wrong_arity(c);
	if (c->argc == 4 && call_arg_is(c, 3, "error"))
		signal = CLIENT_UNBLOCKED_ERR;
	else if (c->argc == 4 && !call_arg_is(c, 3, "timeout")) {
		return call_error(c, STR("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
	}
	TRY(call_int(c, 2, &id));
	reply_int(c->reply, (int64_t)clients_signal_each(&c->redis->clients, signal, is_blocked,
							 &(uint64_t){ (uint64_t)id }));
	return STATUS_OK;
}

static enum status
client_pause(struct call *c)
{
	int64_t ms;

	if (c->argc < 3 || c->argc > 4)
		return call_wrong_arity(c);
	if (c->argc == 4 && !call_arg_is(c, 3, "all") && !call_arg_is(c, 3, "write"))
		return call_error(c, STR("ERR CLIENT PAUSE mode must be WRITE or ALL"));
	TRY(call_int_range(c, 2, INT64_MIN, INT64_MAX, "timeout is not an integer or out of range",
			   &ms));
	if (ms < 0)
		return call_error(c, STR("ERR timeout is negative"));
	atomic_store(&c->redis->paused_writes_only, call_arg_is(c, 3, "write"));
	atomic_store(&c->redis->paused_until_ns, client_after_ms((uint64_t)ms));
	reply_ok(c->reply);
	return STATUS_OK;
}

static enum status
client_unpause(struct call *c)
{
	atomic_store(&c->redis->paused_until_ns, 0);
	(void)clients_signal_each(&c->redis->clients, CLIENT_LOOK, NULL, NULL);
	reply_ok(c->reply);
	return STATUS_OK;
}

static enum status
client_set_text(struct call *c, struct buf *to, struct str value, const char *refusal)
{
	if (!conn_name_is_sound(value))
		return call_error(c, str_from_cstr(refusal));
	clients_set_text(&c->client->entry, to, value);
	reply_ok(c->reply);
	return STATUS_OK;
}

static enum status
client_setinfo(struct call *c)
{
	if (call_arg_is(c, 2, "lib-name"))
		return client_set_text(c, &c->client->lib_name, c->argv[3],
				       "ERR lib-name cannot contain spaces, newlines or special "
				       "characters.");
	if (call_arg_is(c, 2, "lib-ver"))
		return client_set_text(c, &c->client->lib_version, c->argv[3],
				       "ERR lib-ver cannot contain spaces, newlines or special "
				       "characters.");
	return call_errorf(c, "ERR Unrecognized option '%.*s'", STR_ARG(call_shown(c->argv[2])));
}

static enum status
client_reply_mode(struct call *c)
{
	struct client *client = c->client;

	if (call_arg_is(c, 2, "on")) {
		client->reply_off = client->reply_skip = client->reply_skip_next = false;
		reply_ok(c->reply);
	} else if (call_arg_is(c, 2, "off")) {
		client->reply_off = true;
	} else if (call_arg_is(c, 2, "skip")) {
		client->reply_skip_next = !client->reply_off;
	} else {
		return call_syntax_error(c);
	}
	return STATUS_OK;
}

static enum status
client_flag(struct call *c, _Atomic bool *flag)
{
	if (!call_arg_is(c, 2, "on") && !call_arg_is(c, 2, "off"))
		return call_syntax_error(c);
	atomic_store(flag, call_arg_is(c, 2, "on"));
	reply_ok(c->reply);
	return STATUS_OK;
}

enum status
cmd_client(struct call *c)
{
	static const char *const help[] = {
		"GETNAME",
		"    Return the name of the current connection.",
		"ID",
		"    Return the ID of the current connection.",
		"INFO",
		"    Return information about the current client connection.",
		"KILL <ip:port>",
		"    Kill connection made from <ip:port>.",
		"KILL <option> <value> [<option> <value> [...]]",
		"    Kill connections. Options are:",
		"    * ADDR (<ip:port>|<unixsocket>:0)",
		"      Kill connections made from the specified address",
		"    * LADDR (<ip:port>|<unixsocket>:0)",
		"      Kill connections made to specified local address",
		"    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
		"      Kill connections by type.",
		"    * USER <username>",
		"      Kill connections authenticated by <username>.",
		"    * SKIPME (YES|NO)",
		"      Skip killing current connection (default: yes).",
		"LIST [options ...]",
		"    Return information about client connections. Options:",
		"    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
		"      Return clients of specified type.",
		"UNPAUSE",
		"    Stop the current client pause, resuming traffic.",
		"PAUSE <timeout> [WRITE|ALL]",
		"    Suspend all, or just write, clients for <timeout> milliseconds.",
		"REPLY (ON|OFF|SKIP)",
		"    Control the replies sent to the current connection.",
		"SETNAME <name>",
		"    Assign the name <name> to the current connection.",
		"UNBLOCK <clientid> [TIMEOUT|ERROR]",
		"    Unblock the specified blocked client.",
		"NO-EVICT (ON|OFF)",
		"    Protect current client connection from eviction.",
	};
	struct client *client = c->client;

	if (call_arg_is(c, 1, "help") && c->argc == 2)
		return call_help(c, help, sizeof(help) / sizeof(help[0]));
	if (call_arg_is(c, 1, "id") && c->argc == 2) {
		reply_int(c->reply, (int64_t)client->entry.id);
		return STATUS_OK;
	}
	if (call_arg_is(c, 1, "getname") && c->argc == 2) {
		reply_bulk_if(c->reply, client->entry.name.len, buf_str(&client->entry.name));
		return STATUS_OK;
	}
	if (call_arg_is(c, 1, "setname") && c->argc == 3)
		return client_set_text(c, &client->entry.name, c->argv[2],
				       "ERR Client names cannot contain spaces, newlines or "
				       "special characters.");
	if (call_arg_is(c, 1, "setinfo") && c->argc == 4)
		return client_setinfo(c);
	if (call_arg_is(c, 1, "list"))
		return client_list(c);
	if (call_arg_is(c, 1, "info") && c->argc == 2)
		return client_info(c);
	if (call_arg_is(c, 1, "kill"))
		return client_kill(c);
	if (call_arg_is(c, 1, "unblock") && c->argc >= 3)
		return client_unblock(c);
	if (call_arg_is(c, 1, "pause"))
		return client_pause(c);
	if (call_arg_is(c, 1, "unpause") && c->argc == 2)
		return client_unpause(c);
	if (call_arg_is(c, 1, "reply") && c->argc == 3)
		return client_reply_mode(c);
	if (call_arg_is(c, 1, "no-evict") && c->argc == 3)
		return client_flag(c, &client->no_evict);
	if (call_arg_is(c, 1, "no-touch") && c->argc == 3)
		return client_flag(c, &client->no_touch);
	if (call_arg_is(c, 1, "tracking") || call_arg_is(c, 1, "caching") ||
	    call_arg_is(c, 1, "trackinginfo") || call_arg_is(c, 1, "getredir"))
		return cmd_client_tracking(c);
	return call_unknown_subcommand(c);
}
