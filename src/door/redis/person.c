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

/* The rights have changed. True if the connection goes on. */
static bool
client_check_what_it_has(struct clients_entry *e)
{
	struct client *c = (struct client *)e;
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
client_look_up_default(struct clients_entry *e)
{
	struct client *c = (struct client *)e;
	struct visitor *who = &e->who;
	uint64_t count = people_news_count(c->redis->config.news);
	bool was_decided = !who->undecided, was_in = who->authenticated;
	bool gets_nothing = !client_has_subscriptions(c) && !atomic_load(&c->monitors);
	bool open = users_are_open(c->redis);

	if (!open && !gets_nothing)
		return false;
	visit_reset(e);
	if (!open) {
		client_forget_multi(c);
		return true;
	}
	if (who->undecided)
		return gets_nothing;
	if (was_decided)
		who->authenticated = was_in;
	who->follow.seen = count;
	return client_check_what_it_has(e);
}

struct visit_rules
person_visit_rules(const struct redis_config *config)
{
	struct visit_rules rules = client_visit_rules(config);

	rules.look_nobody = client_look_up_default;
	rules.changed = client_check_what_it_has;
	return rules;
}

static bool
client_may_run(const struct person_waits *w, const struct unit *u)
{
	struct client *c = w->client;
	struct str ignored;

	if (u->command->flags & COMMAND_NO_AUTH)
		return true;
	return c->entry.who.authenticated &&
	       acl_check(&c->acl, u->command, u->argv, u->argc, w->arena, &ignored) == ACL_ALLOWED;
}

/* For visit_may(). */
static enum status
client_may_wait(void *arg)
{
	const struct person_waits *w = arg;

	for (size_t i = 0; i < w->count; i++) {
		const struct unit *u = &w->units[i];

		if (!client_may_run(w, u))
			return STATUS_UNAUTHORIZED;
		for (size_t j = 0; u->is_exec && j < u->queued_count; j++)
			if (!client_may_run(w, &u->queued[j]))
				return STATUS_UNAUTHORIZED;
	}
	return STATUS_OK;
}

void
person_wait(struct person_waits *w)
{
	visit_may(&w->client->entry, client_may_wait, w);
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
