/* MULTI and what belongs to it. EXEC itself is in serve.c, since it runs what was queued. */
#include "door/redis/cmd/commands.h"
#include "door/redis/txn/effects.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/wire/error.h"

enum status
cmd_multi(struct call *c)
{
	if (c->client->multi)
		return call_error(c, STR("ERR MULTI calls can not be nested"));
	c->client->multi = true;
	reply_ok(c->reply);
	return STATUS_OK;
}

enum status
cmd_discard(struct call *c)
{
	if (!c->client->multi)
		return call_error(c, STR("ERR DISCARD without MULTI"));
	client_forget_multi(c->client);
	effects_unwatch_all(c->client);
	reply_ok(c->reply);
	return STATUS_OK;
}

/* Never called outside of a transaction: see serve.c. */
enum status
cmd_exec(struct call *c)
{
	return call_error(c, STR("ERR EXEC without MULTI"));
}

/* The first in its transaction that has written nothing: what it reads is what is stored. */
enum status
cmd_watch(struct call *c)
{
	size_t count = c->argc - 1;
	struct timed_item **items = arena_alloc(c->arena, count * sizeof(*items));
	struct str *versions = arena_alloc(c->arena, count * sizeof(*versions));

	if (c->client->multi)
		return call_error(c, STR("ERR WATCH inside MULTI is not allowed"));
	if (c->client->watch_count + count > REDIS_WATCH_KEYS)
		return call_errorf(c, "ERR a connection may watch %d keys (REDIS_WATCH_KEYS)",
				   REDIS_WATCH_KEYS);
	if (!items || !versions)
		return STATUS_LIMIT;
	TRY(txn_items(c, c->argv + 1, count, 1, items));
	TRY(txn_versions(c, items, count, versions));
	for (size_t i = 0; i < count; i++)
		TRY(txn_watch(c, c->argv[i + 1], versions[i]));
	reply_ok(c->reply);
	return STATUS_OK;
}

enum status
cmd_unwatch(struct call *c)
{
	if (!c->in_exec)
		effects_unwatch_all(c->client);
	reply_ok(c->reply);
	return STATUS_OK;
}
