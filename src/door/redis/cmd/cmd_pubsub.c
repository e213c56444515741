/* Publishing and subscribing. */
#include "door/redis/cmd/commands.h"
#include "door/redis/txn/effects.h"
#include "door/redis/txn/others.h"
#include "door/redis/txn/pubsub.h"
#include "door/redis/txn/redis_int.h"
#include "door/redis/wire/error.h"
#include "door/redis/wire/glob.h"
#include "loop/step.h"

/* What the command subscribes to. */
static enum pubsub_kind
kind_of(const struct call *c)
{
	return call_is(c, HOW_PATTERNS) ? PUBSUB_PATTERN
	       : call_is(c, HOW_SHARD)  ? PUBSUB_SHARD
					: PUBSUB_CHANNEL;
}

/* What the client is told it has: of channels and patterns together, or of shard channels. */
static int64_t
subscriptions_shown(const struct client *c, enum pubsub_kind kind)
{
	if (kind == PUBSUB_SHARD)
		return (int64_t)c->subscription_count[PUBSUB_SHARD];
	return (int64_t)(c->subscription_count[PUBSUB_CHANNEL] +
			 c->subscription_count[PUBSUB_PATTERN]);
}

static void
answer_subscription(struct call *c, enum pubsub_kind kind, const struct str *name)
{
	reply_push(c->reply, 3);
	reply_bulk_cstr(c->reply, c->command->name);
	if (name)
		reply_bulk(c->reply, *name);
	else
		reply_null(c->reply);
	reply_int(c->reply, subscriptions_shown(c->client, kind));
}

/* From now on the client gets what is published, also by other processes. */
static enum status
subscribe_one(struct call *c, enum pubsub_kind kind, struct str name, struct err *err)
{
	enum status status = pubsub_subscribe(c->client, kind, name, err);

	if (status != STATUS_OK || !c->redis->others)
		return status;
	status = others_listen(c->redis->others, err);
	if (status != STATUS_OK)
		pubsub_unsubscribe(c->client, kind, name);
	return status;
}

enum status
cmd_subscribe(struct call *c)
{
	enum pubsub_kind kind = kind_of(c);
	struct err err = { 0 };

	if (c->in_exec && c->reply->version == 2)
		return call_errorf(c, "ERR %s is not allowed in a transaction", c->command->name);
	for (size_t i = 1; i < c->argc; i++) {
		enum status status;

		step_pause(PUBSUB_STEPS);
		status = subscribe_one(c, kind, c->argv[i], &err);
		if (status != STATUS_OK) {
			error_reply_status(c->reply, status, &err);
			return STATUS_OK;
		}
		answer_subscription(c, kind, &c->argv[i]);
	}
	return STATUS_OK;
}

enum status
cmd_unsubscribe(struct call *c)
{
	enum pubsub_kind kind = kind_of(c);
	struct str name;

	for (size_t i = 1; i < c->argc; i++) {
		step_pause(PUBSUB_STEPS);
		pubsub_unsubscribe(c->client, kind, c->argv[i]);
		answer_subscription(c, kind, &c->argv[i]);
	}
	if (c->argc > 1)
		return STATUS_OK;
	if (!pubsub_any(c->client, kind, &name))
		answer_subscription(c, kind, NULL);
	while (pubsub_any(c->client, kind, &name)) {
		struct str copy = arena_dup(c->arena, name);

		if (!copy.ptr)
			return STATUS_LIMIT;
		step_pause(PUBSUB_STEPS);
		pubsub_unsubscribe(c->client, kind, name);
		answer_subscription(c, kind, &copy);
	}
	return STATUS_OK;
}

/* ---- Publishing ---- */

enum status
cmd_publish(struct call *c)
{
	bool shard = call_is(c, HOW_SHARD);

	atomic_fetch_add_explicit(&c->redis->published, 1, memory_order_relaxed);
	if (c->x) {
		/* It goes out after the commit. */
		reply_int(c->reply, (int64_t)pubsub_receivers(c->redis, shard, c->argv[1]));
		return txn_publish(c, shard ? EFFECT_SPUBLISH : EFFECT_PUBLISH, c->argv[1],
				   c->argv[2]);
	}
	reply_int(c->reply, (int64_t)effects_publish(c->redis, shard, c->argv[1], c->argv[2]));
	return STATUS_OK;
}

/* ---- PUBSUB ---- */

struct channels {
	struct call *call;
	struct str pattern;
	size_t count;
};

static void
channels_take(void *arg, struct str name)
{
	struct channels *ch = arg;

	if (!glob_matches(ch->pattern, name, false))
		return;
	reply_bulk(ch->call->reply, name);
	ch->count++;
}

static enum status
pubsub_channels(struct call *c, enum pubsub_kind kind)
{
	struct channels ch = { .call = c, .pattern = c->argc == 3 ? c->argv[2] : STR("*") };
	size_t place = reply_later(c->reply);

	pubsub_each(c->redis, kind, channels_take, &ch);
	reply_later_end(c->reply, place, '*', ch.count);
	return STATUS_OK;
}

static enum status
pubsub_numsub(struct call *c, enum pubsub_kind kind)
{
	reply_array(c->reply, 2 * (c->argc - 2));
	for (size_t i = 2; i < c->argc; i++) {
		reply_bulk(c->reply, c->argv[i]);
		reply_int(c->reply, (int64_t)pubsub_subscribers(c->redis, kind, c->argv[i]));
	}
	return STATUS_OK;
}

enum status
cmd_pubsub(struct call *c)
{
	static const char *const help[] = {
		"CHANNELS [<pattern>]",
		"    Return the currently active channels matching a <pattern> (default: '*').",
		"NUMPAT",
		"    Return number of subscriptions to patterns.",
		"NUMSUB [<channel> ...]",
		"    Return the number of subscribers for the specified channels, excluding",
		"    pattern subscriptions(default: no channels).",
		"SHARDCHANNELS [<pattern>]",
		"    Return the currently active shard level channels matching a <pattern>",
		"    (default: '*').",
		"SHARDNUMSUB [<shardchannel> ...]",
		"    Return the number of subscribers for the specified shard level channel(s)",
	};

	if (call_arg_is(c, 1, "help") && c->argc == 2)
		return call_help(c, help, sizeof(help) / sizeof(help[0]));
	if (call_arg_is(c, 1, "channels") && c->argc <= 3)
		return pubsub_channels(c, PUBSUB_CHANNEL);
	if (call_arg_is(c, 1, "shardchannels") && c->argc <= 3)
		return pubsub_channels(c, PUBSUB_SHARD);
	if (call_arg_is(c, 1, "numsub"))
		return pubsub_numsub(c, PUBSUB_CHANNEL);
	if (call_arg_is(c, 1, "shardnumsub"))
		return pubsub_numsub(c, PUBSUB_SHARD);
	if (call_arg_is(c, 1, "numpat") && c->argc == 2) {
		pthread_rwlock_rdlock(&c->redis->pubsub_lock);
		reply_int(c->reply, (int64_t)c->redis->channels[PUBSUB_PATTERN].count);
		pthread_rwlock_unlock(&c->redis->pubsub_lock);
		return STATUS_OK;
	}
	return call_unknown_subcommand(c);
}
