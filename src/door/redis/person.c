#include "door/redis/person.h"

#include "door/redis/acl/subcommand.h"
#include "door/redis/txn/acl_log.h"
#include "door/redis/txn/pubsub.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/txn/user.h"

struct channel_check {
	struct client *client;
	const struct command *command;
	struct arena *arena;
};

static bool
client_may_hear(void *arg, struct str channel)
{
	struct channel_check *check = arg;
	const struct str argv[] = { str_from_cstr(check->command->name), channel };
	struct str ignored;

	return acl_check(&check->client->acl, check->command, argv, 2, check->arena, &ignored) ==
	       ACL_ALLOWED;
}

/* True if the person may still have all that the connection gets by itself. */
static bool
client_keeps_what_it_gets(struct client *c, struct arena *arena)
{
	static const char *const names[PUBSUB_KINDS] = { "subscribe", "psubscribe", "ssubscribe" };
	const struct command *monitor = command_find(STR("monitor"));
	const struct str tracking[] = { STR("client"), STR("tracking") };
	struct tracking_state tracked;

	for (int kind = 0; kind < PUBSUB_KINDS; kind++) {
		struct channel_check check = {
			.client = c,
			.command = command_find(str_from_cstr(names[kind])),
			.arena = arena,
		};

		if (!pubsub_all(c, kind, client_may_hear, &check))
			return false;
	}
	if (tracking_state(c, &tracked) && tracked.flags & TRACKING_BCAST &&
	    !acl_allows_reading_all(&c->acl, command_find(tracking[0]), tracking, 2, arena))
		return false;
	return !atomic_load(&c->monitors) ||
	       acl_allows_command(&c->acl, monitor, &STR("monitor"), 1);
}

/* What MULTI has queued was allowed then: an EXEC fails if some of it is not allowed now. */
static void
client_check_queued(struct client *c, struct arena *arena)
{
	for (size_t i = 0; i < c->queued_count && !c->multi_failed; i++) {
		const struct unit *u = &c->queued[i];
		char name[SUBCOMMAND_NAME_BYTES];
		enum acl_denial denial;
		struct str object;

		denial = acl_check(&c->acl, u->command, u->argv, u->argc, arena, &object);
		if (denial == ACL_ALLOWED)
			continue;
		if (denial == ACL_DENIED_COMMAND)
			object = subcommand_name_call(u->command, u->argv, u->argc, name);
		acl_log_add(c, &(struct acl_refusal){
				       .denial = denial, .context = "multi", .object = object });
		c->multi_failed = true;
	}
}

/* The person is gone. A connection that nobody has logged in to becomes one of a stranger. */
static bool
client_lose_person(struct client *c)
{
	if (!c->anonymous || client_has_subscriptions(c) || atomic_load(&c->monitors))
		return false;
	client_login_default(c);
	client_forget_multi(c);
	return true;
}

/* The rights have changed. True if the connection goes on. */
static bool
client_check_what_it_has(struct client *c)
{
	struct arena *scratch = net_stream_arena(c->stream);
	struct arena_mark mark = arena_mark(scratch);
	bool goes_on;

	client_check_queued(c, scratch);
	goes_on = client_keeps_what_it_gets(c, scratch);
	arena_reset(scratch, mark);
	return goes_on;
}

/*
 * Of a connection that nobody has logged in to: `default` may be another one. Whoever is in stays,
 * as in Redis, also if `default` now wants a password or is off.
 */
static bool
client_look_up_default(struct client *c)
{
	uint64_t count = people_news_count(c->redis->config.news);
	bool was_in = c->who.authenticated;

	if (!users_are_open(c->redis))
		return client_lose_person(c);
	client_login_default(c);
	if (c->undecided)
		return !client_has_subscriptions(c) && !atomic_load(&c->monitors);
	c->who.authenticated = was_in;
	c->request.stranger = !was_in;
	c->who.follow.seen = count;
	return client_check_what_it_has(c);
}

static bool
client_look_up_person(struct client *c)
{
	const struct redis_config *config = &c->redis->config;
	struct auth_client client = client_of_auth(c);
	struct visitor_found found;

	switch (visitor_look(&c->who, config->news, config->live, &client, &found)) {
	case FOLLOW_SAME:
		break;
	case FOLLOW_CHANGED:
		client_become(c, &found);
		return client_check_what_it_has(c);
	case FOLLOW_GONE:
		return client_lose_person(c);
	}
	return true;
}

/* Looks who it is now. True if the connection goes on. */
static bool
client_look(struct client *c)
{
	bool goes_on = c->anonymous ? client_look_up_default(c) : client_look_up_person(c);

	if (goes_on)
		atomic_store(&c->followed, c->who.follow.seen);
	return goes_on;
}

bool
client_follow(struct client *c)
{
	if (c->undecided)
		client_login_default(c);
	if (visitor_is_current(&c->who, c->redis->config.news))
		return true;
	return client_look(c);
}

bool
client_may_wait(struct client *c, const struct unit *unit, struct arena *arena)
{
	struct str ignored;

	if (visitor_is_current(&c->who, c->redis->config.news))
		return true;
	return client_look(c) && c->who.authenticated &&
	       acl_check(&c->acl, unit->command, unit->argv, unit->argc, arena, &ignored) ==
		       ACL_ALLOWED;
}

/* What they wait for, or are sent, they may not have any more. */
static bool
entry_gets_more(void *arg, struct clients_entry *e)
{
	(void)arg;
	return client_gets_more((const struct client *)e);
}

void
client_tell_all(void *redis)
{
	struct redis *r = redis;

	(void)clients_signal_each(&r->clients, CLIENT_LOOK, entry_gets_more, NULL);
}
