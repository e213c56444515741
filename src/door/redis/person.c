#include "door/redis/person.h"

#include "door/redis/acl/command.h"
#include "door/redis/txn/pubsub.h"
#include "door/redis/txn/redis_int.h"

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

	for (int kind = 0; kind < PUBSUB_KINDS; kind++) {
		struct channel_check check = {
			.client = c,
			.command = command_find(str_from_cstr(names[kind])),
			.arena = arena,
		};

		if (!pubsub_all(c, kind, client_may_hear, &check))
			return false;
	}
	return !atomic_load(&c->monitors) ||
	       acl_allows_command(&c->acl, monitor, &STR("monitor"), 1);
}

/* What MULTI has queued was allowed then: an EXEC fails if some of it is not allowed now. */
static void
client_check_queued(struct client *c, struct arena *arena)
{
	struct str ignored;

	for (size_t i = 0; i < c->queued_count && !c->multi_failed; i++) {
		const struct unit *u = &c->queued[i];

		c->multi_failed = acl_check(&c->acl, u->command, u->argv, u->argc, arena,
					    &ignored) != ACL_ALLOWED;
	}
}

/* The person is gone. A connection that nobody has logged in to becomes one of a stranger. */
static bool
client_lose_person(struct client *c)
{
	if (c->user.name.len || client_has_subscriptions(c) || atomic_load(&c->monitors))
		return false;
	client_login_default(c);
	client_forget_multi(c);
	return true;
}

static bool
client_look_up_person(struct client *c)
{
	const struct redis_config *config = &c->redis->config;
	struct auth_client client = client_of_auth(c);
	struct arena *arena = arena_new(CLIENT_USER_BYTES);
	struct arena *scratch = net_stream_arena(c->stream);
	struct arena_mark mark = arena_mark(scratch);
	struct auth_user user;
	bool goes_on = true;

	if (!arena)
		return true;
	switch (follow_look(&c->follow, config->news, config->live, &client, &c->user, arena,
			    &user)) {
	case FOLLOW_SAME:
		arena_free(arena);
		break;
	case FOLLOW_CHANGED:
		client_become(c, &user, arena);
		client_check_queued(c, scratch);
		goes_on = client_keeps_what_it_gets(c, scratch);
		break;
	case FOLLOW_GONE:
		arena_free(arena);
		goes_on = client_lose_person(c);
		break;
	}
	arena_reset(scratch, mark);
	return goes_on;
}

bool
client_follow(struct client *c)
{
	if (!c->authenticated || follow_is_current(&c->follow, c->redis->config.news))
		return true;
	return client_look_up_person(c);
}

bool
client_may_wait(struct client *c, const struct unit *unit, struct arena *arena)
{
	struct str ignored;

	if (!c->authenticated || follow_is_current(&c->follow, c->redis->config.news))
		return true;
	return client_look_up_person(c) && c->authenticated &&
	       acl_check(&c->acl, unit->command, unit->argv, unit->argc, arena, &ignored) ==
		       ACL_ALLOWED;
}

/* True of those who wait, or are sent what others do: they may no longer. */
static bool
client_gets_more(void *arg, struct clients_entry *e)
{
	const struct client *c = (const struct client *)e;

	(void)arg;
	return c->blocked || atomic_load(&c->monitors) || client_has_subscriptions(c);
}

void
client_tell_all(void *redis)
{
	struct redis *r = redis;

	(void)clients_signal_each(&r->clients, CLIENT_LOOK, client_gets_more, NULL);
}
