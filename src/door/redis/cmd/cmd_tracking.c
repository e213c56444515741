/* CLIENT TRACKING, CACHING, TRACKINGINFO, GETREDIR (txn/tracking.h) */
#include "door/redis/cmd/commands.h"
#include "door/redis/txn/acl_log.h"
#include "door/redis/txn/others.h"
#include "door/redis/txn/redis_int.h"

enum {
	MODES = TRACKING_OPTIN | TRACKING_OPTOUT,
};

static enum status
getredir(struct call *c)
{
	struct tracking_state now;

	reply_int(c->reply, tracking_state(c->client, &now) ? (int64_t)now.redirect : -1);
	return STATUS_OK;
}

static void
put_prefix(void *arg, struct str prefix)
{
	reply_bulk(arg, prefix);
}

static enum status
trackinginfo(struct call *c)
{
	struct tracking_state now = { 0 };
	bool on = tracking_state(c->client, &now);
	const struct {
		bool holds;
		const char *name;
	} flags[] = {
		{ !on, "off" },
		{ on, "on" },
		{ now.flags & TRACKING_BCAST, "bcast" },
		{ now.flags & TRACKING_OPTIN, "optin" },
		{ c->client->caching == CACHING_YES, "caching-yes" },
		{ now.flags & TRACKING_OPTOUT, "optout" },
		{ c->client->caching == CACHING_NO, "caching-no" },
		{ now.flags & TRACKING_NOLOOP, "noloop" },
		{ now.broken, "broken_redirect" },
	};
	const size_t most = sizeof(flags) / sizeof(flags[0]);
	size_t count = 0;

	for (size_t i = 0; i < most; i++)
		count += flags[i].holds;
	reply_map(c->reply, 3);
	reply_bulk_cstr(c->reply, "flags");
	reply_set(c->reply, count);
	for (size_t i = 0; i < most; i++)
		if (flags[i].holds)
			reply_bulk_cstr(c->reply, flags[i].name);
	reply_bulk_cstr(c->reply, "redirect");
	reply_int(c->reply, on ? (int64_t)now.redirect : -1);
	reply_bulk_cstr(c->reply, "prefixes");
	reply_array(c->reply, tracking_prefixes(c->client, NULL, NULL));
	(void)tracking_prefixes(c->client, put_prefix, c->reply);
	return STATUS_OK;
}

static enum status
caching(struct call *c)
{
	struct tracking_state now = { 0 };

	(void)tracking_state(c->client, &now);
	if (!(now.flags & MODES))
		return call_error(c, STR("ERR CLIENT CACHING can be called only when the client "
					 "is in tracking mode with OPTIN or OPTOUT mode enabled"));
	if (call_arg_is(c, 2, "yes")) {
		if (!(now.flags & TRACKING_OPTIN))
			return call_error(c, STR("ERR CLIENT CACHING YES is only valid when "
						 "tracking is enabled in OPTIN mode."));
		c->client->caching = CACHING_YES;
	} else if (call_arg_is(c, 2, "no")) {
		if (!(now.flags & TRACKING_OPTOUT))
			return call_error(c, STR("ERR CLIENT CACHING NO is only valid when "
						 "tracking is enabled in OPTOUT mode."));
		c->client->caching = CACHING_NO;
	} else {
		return call_syntax_error(c);
	}
	reply_ok(c->reply);
	return STATUS_OK;
}

static enum status
parse_options(struct call *c, struct tracking_options *o, struct str *prefixes)
{
	static const struct {
		const char *name;
		unsigned flag;
	} words[] = {
		{ "bcast", TRACKING_BCAST },
		{ "optin", TRACKING_OPTIN },
		{ "optout", TRACKING_OPTOUT },
		{ "noloop", TRACKING_NOLOOP },
	};

	for (size_t i = 3; i < c->argc; i++) {
		unsigned flag = 0;
		int64_t id;

		for (size_t n = 0; n < sizeof(words) / sizeof(words[0]); n++)
			if (call_arg_is(c, i, words[n].name))
				flag = words[n].flag;
		o->flags |= flag;
		if (flag)
			continue;
		if (i + 1 == c->argc)
			return call_syntax_error(c);
		if (call_arg_is(c, i, "redirect")) {
			if (o->redirect)
				return call_error(c, STR("ERR A client can only redirect to a "
							 "single other client"));
			TRY(call_int(c, ++i, &id));
			/* There is no client of another number either. */
			o->redirect = id > 0 ? (uint64_t)id : UINT64_MAX;
		} else if (call_arg_is(c, i, "prefix")) {
			prefixes[o->prefix_count++] = c->argv[++i];
		} else {
			return call_syntax_error(c);
		}
	}
	return STATUS_OK;
}

/* What the options say together, and of what the client does already. */
static enum status
check_options(struct call *c, const struct tracking_options *o)
{
	struct tracking_state now;
	bool on = tracking_state(c->client, &now);

	if (o->prefix_count && !(o->flags & TRACKING_BCAST))
		return call_error(c, STR("ERR PREFIX option requires BCAST mode to be enabled"));
	if (on && (now.flags ^ o->flags) & TRACKING_BCAST)
		return call_error(c, STR("ERR You can't switch BCAST mode on/off before disabling "
					 "tracking for this client, and then re-enabling it with a "
					 "different mode."));
	if (o->flags & TRACKING_BCAST && o->flags & MODES)
		return call_error(c, STR("ERR OPTIN and OPTOUT are not compatible with BCAST"));
	if ((o->flags & MODES) == MODES)
		return call_error(c, STR("ERR You can't use both OPTIN mode and OPTOUT mode"));
	if (on && ((o->flags & TRACKING_OPTIN && now.flags & TRACKING_OPTOUT) ||
		   (o->flags & TRACKING_OPTOUT && now.flags & TRACKING_OPTIN)))
		return call_error(c, STR("ERR You can't switch OPTIN/OPTOUT mode before disabling "
					 "tracking for this client, and then re-enabling it with a "
					 "different mode."));
	return STATUS_OK;
}

/* With BCAST a client learns the names of keys that it has not read. */
static enum status
check_rights(struct call *c, const struct tracking_options *o)
{
	if (!(o->flags & TRACKING_BCAST) ||
	    acl_allows_reading_all(&c->client->acl, c->command, c->argv, c->argc, c->arena))
		return STATUS_OK;
	acl_log_add(c->client, &(struct acl_refusal){ .denial = ACL_DENIED_KEY,
						      .context = "toplevel",
						      .object = STR("*") });
	return call_error(c, STR("NOPERM BCAST tells of every key, and you may not read them all"));
}

static enum status
tracking(struct call *c)
{
	struct tracking_options o = { 0 };
	struct err err = { 0 };
	struct str *prefixes;

	prefixes = arena_alloc(c->arena, c->argc * sizeof(*prefixes));
	if (!prefixes)
		return STATUS_LIMIT;
	o.prefixes = prefixes;
	TRY(parse_options(c, &o, prefixes));
	if (call_arg_is(c, 2, "off")) {
		tracking_end(c->client);
		reply_ok(c->reply);
		return STATUS_OK;
	}
	if (!call_arg_is(c, 2, "on"))
		return call_syntax_error(c);
	TRY(check_options(c, &o));
	TRY(check_rights(c, &o));
	if (tracking_begin(c->client, &o, &err) != STATUS_OK)
		return call_error(c, str_from_cstr(err.text));
	if (c->redis->others) {
		enum status status = others_track(c->redis->others, &err);

		if (status != STATUS_OK) {
			tracking_end(c->client);
			return call_errorf(c, "ERR other processes cannot be asked to tell: %s",
					   err.text[0] ? err.text : status_name(status));
		}
	}
	reply_ok(c->reply);
	return STATUS_OK;
}

enum status
cmd_client_tracking(struct call *c)
{
	if (call_arg_is(c, 1, "getredir"))
		return getredir(c);
	if (call_arg_is(c, 1, "trackinginfo"))
		return trackinginfo(c);
	return call_arg_is(c, 1, "caching") ? caching(c) : tracking(c);
}
