#include "door/redis/acl/subcommand.h"

#include <assert.h>
#include <stdio.h>

/* What most of them are: about a connection, for administrators, or a text that helps. */
#define CONN  (COMMAND_NOSCRIPT | COMMAND_LOADING | COMMAND_STALE)
#define RULE  (COMMAND_ADMIN | COMMAND_NOSCRIPT | COMMAND_LOADING | COMMAND_STALE)
#define TELL  (COMMAND_LOADING | COMMAND_STALE)
#define SLOTS (COMMAND_ADMIN | COMMAND_STALE)
/* Those that change which node has what. */
#define MOVES (SLOTS | COMMAND_NO_ASYNC_LOADING)

/* clang-format off */
const struct subcommand subcommand_table[] = {
	{ "acl", "cat", -2, 0, .flags = CONN },
	{ "acl", "deluser", -3, 0, .flags = RULE },
	{ "acl", "dryrun", -4, 0, .flags = RULE },
	{ "acl", "genpass", -2, 0, .flags = CONN },
	{ "acl", "getuser", 3, 0, .flags = RULE },
	{ "acl", "help", 2, 0, .flags = TELL },
	{ "acl", "list", 2, 0, .flags = RULE },
	{ "acl", "load", 2, 0, .flags = RULE },
	{ "acl", "log", -2, 0, .flags = RULE },
	{ "acl", "save", 2, 0, .flags = RULE },
	{ "acl", "setuser", -3, 0, .flags = RULE },
	{ "acl", "users", 2, 0, .flags = RULE },
	{ "acl", "whoami", 2, 0, .flags = CONN },
	{ "client", "caching", 3, 0, .flags = CONN },
	{ "client", "getname", 2, 0, .flags = CONN },
	{ "client", "getredir", 2, 0, .flags = CONN },
	{ "client", "help", 2, 0, .flags = TELL },
	{ "client", "id", 2, 0, .flags = CONN },
	{ "client", "info", 2, 0, .flags = CONN, .tips = "nondeterministic_output" },
	{ "client", "kill", -3, 0, .flags = RULE },
	{ "client", "list", -2, 0, .flags = RULE, .tips = "nondeterministic_output" },
	{ "client", "no-evict", 3, 0, .flags = RULE },
	{ "client", "no-touch", 3, 0, .flags = CONN },
	{ "client", "pause", -3, 0, .flags = RULE },
	{ "client", "reply", 3, 0, .flags = CONN },
	{ "client", "setinfo", 4, 0, .flags = CONN },
	{ "client", "setname", 3, 0, .flags = CONN },
	{ "client", "tracking", -3, 0, .flags = CONN },
	{ "client", "trackinginfo", 2, 0, .flags = CONN },
	{ "client", "unblock", -3, 0, .flags = RULE },
	{ "client", "unpause", 2, 0, .flags = RULE },
	{ "cluster", "addslots", -3, 0, .flags = MOVES },
	{ "cluster", "addslotsrange", -4, 0, .flags = MOVES },
	{ "cluster", "bumpepoch", 2, 0, .flags = MOVES, .tips = "nondeterministic_output" },
	{ "cluster", "count-failure-reports", 3, 0, .flags = SLOTS,
	  .tips = "nondeterministic_output" },
	{ "cluster", "countkeysinslot", 3, 0, .flags = COMMAND_STALE },
	{ "cluster", "delslots", -3, 0, .flags = MOVES },
	{ "cluster", "delslotsrange", -4, 0, .flags = MOVES },
	{ "cluster", "failover", -2, 0, .flags = MOVES },
	{ "cluster", "flushslots", 2, 0, .flags = MOVES },
	{ "cluster", "forget", 3, 0, .flags = MOVES },
	{ "cluster", "getkeysinslot", 4, 0, .flags = COMMAND_STALE,
	  .tips = "nondeterministic_output" },
	{ "cluster", "help", 2, 0, .flags = TELL },
	{ "cluster", "info", 2, 0, .flags = COMMAND_STALE, .tips = "nondeterministic_output" },
	{ "cluster", "keyslot", 3, 0, .flags = COMMAND_STALE },
	{ "cluster", "links", 2, 0, .flags = COMMAND_STALE, .tips = "nondeterministic_output" },
	{ "cluster", "meet", -4, 0, .flags = MOVES },
	{ "cluster", "myid", 2, 0, .flags = COMMAND_STALE },
	{ "cluster", "nodes", 2, 0, .flags = COMMAND_STALE, .tips = "nondeterministic_output" },
	{ "cluster", "replicas", 3, 0, .flags = SLOTS, .tips = "nondeterministic_output" },
	{ "cluster", "replicate", 3, 0, .flags = MOVES },
	{ "cluster", "reset", -2, 0, .flags = COMMAND_ADMIN | COMMAND_NOSCRIPT | COMMAND_STALE },
	{ "cluster", "saveconfig", 2, 0, .flags = MOVES },
	{ "cluster", "set-config-epoch", 3, 0, .flags = MOVES },
	{ "cluster", "setslot", -4, 0, .flags = MOVES },
	{ "cluster", "shards", 2, 0, .flags = COMMAND_STALE, .tips = "nondeterministic_output" },
	{ "cluster", "slaves", 3, 0, .flags = SLOTS, .tips = "nondeterministic_output" },
	{ "cluster", "slots", 2, 0, .flags = COMMAND_STALE, .tips = "nondeterministic_output" },
	{ "command", "count", 2, 0, .flags = TELL },
	{ "command", "docs", -2, 0, .flags = TELL, .tips = "nondeterministic_output_order" },
	{ "command", "getkeys", -4, 0, .flags = TELL },
	{ "command", "getkeysandflags", -4, 0, .flags = TELL },
	{ "command", "help", 2, 0, .flags = TELL },
	{ "command", "info", -2, 0, .flags = TELL, .tips = "nondeterministic_output_order" },
	{ "command", "list", -2, 0, .flags = TELL, .tips = "nondeterministic_output_order" },
	{ "config", "get", -3, 0, .flags = RULE },
	{ "config", "help", 2, 0, .flags = TELL },
	{ "config", "resetstat", 2, 0, .flags = RULE },
	{ "config", "rewrite", 2, 0, .flags = RULE },
	{ "config", "set", -4, 0, .flags = RULE,
	  .tips = "request_policy:all_nodes response_policy:all_succeeded" },
	{ "function", "delete", 3, 0, .flags = COMMAND_WRITE | COMMAND_NOSCRIPT,
	  .tips = "request_policy:all_shards response_policy:all_succeeded" },
	{ "function", "dump", 2, 0, .flags = COMMAND_NOSCRIPT },
	{ "function", "flush", -2, 0, .flags = COMMAND_WRITE | COMMAND_NOSCRIPT,
	  .tips = "request_policy:all_shards response_policy:all_succeeded" },
	{ "function", "help", 2, 0, .flags = TELL },
	{ "function", "kill", 2, 0, .flags = COMMAND_NOSCRIPT | COMMAND_ALLOW_BUSY,
	  .tips = "request_policy:all_shards response_policy:one_succeeded" },
	{ "function", "list", -2, 0, .flags = COMMAND_NOSCRIPT,
	  .tips = "nondeterministic_output_order" },
	{ "function", "load", -3, 0, .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_NOSCRIPT,
	  .tips = "request_policy:all_shards response_policy:all_succeeded" },
	{ "function", "restore", -3, 0,
	  .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_NOSCRIPT,
	  .tips = "request_policy:all_shards response_policy:all_succeeded" },
	{ "function", "stats", 2, 0, .flags = COMMAND_NOSCRIPT | COMMAND_ALLOW_BUSY,
	  .tips = "nondeterministic_output request_policy:all_shards response_policy:special" },
	{ "latency", "doctor", 2, 0, .flags = RULE,
	  .tips = "nondeterministic_output request_policy:all_nodes response_policy:special" },
	{ "latency", "graph", 3, 0, .flags = RULE,
	  .tips = "nondeterministic_output request_policy:all_nodes response_policy:special" },
	{ "latency", "help", 2, 0, .flags = TELL },
	{ "latency", "histogram", -2, 0, .flags = RULE,
	  .tips = "nondeterministic_output request_policy:all_nodes response_policy:special" },
	{ "latency", "history", 3, 0, .flags = RULE,
	  .tips = "nondeterministic_output request_policy:all_nodes response_policy:special" },
	{ "latency", "latest", 2, 0, .flags = RULE,
	  .tips = "nondeterministic_output request_policy:all_nodes response_policy:special" },
	{ "latency", "reset", -2, 0, .flags = RULE,
	  .tips = "request_policy:all_nodes response_policy:all_succeeded" },
	{ "memory", "doctor", 2, 0, .flags = 0,
	  .tips = "nondeterministic_output request_policy:all_shards response_policy:special" },
	{ "memory", "help", 2, 0, .flags = TELL },
	{ "memory", "malloc-stats", 2, 0, .flags = 0,
	  .tips = "nondeterministic_output request_policy:all_shards response_policy:special" },
	{ "memory", "purge", 2, 0, .flags = 0,
	  .tips = "request_policy:all_shards response_policy:all_succeeded" },
	{ "memory", "stats", 2, 0, .flags = 0,
	  .tips = "nondeterministic_output request_policy:all_shards response_policy:special" },
	{ "memory", "usage", -3, 2, .flags = COMMAND_READONLY },
	{ "module", "help", 2, 0, .flags = TELL },
	{ "module", "list", 2, 0, .flags = COMMAND_ADMIN | COMMAND_NOSCRIPT,
	  .tips = "nondeterministic_output_order" },
	{ "module", "load", -3, 0,
	  .flags = COMMAND_ADMIN | COMMAND_NOSCRIPT | COMMAND_NO_ASYNC_LOADING },
	{ "module", "loadex", -3, 0,
	  .flags = COMMAND_ADMIN | COMMAND_NOSCRIPT | COMMAND_NO_ASYNC_LOADING },
	{ "module", "unload", 3, 0,
	  .flags = COMMAND_ADMIN | COMMAND_NOSCRIPT | COMMAND_NO_ASYNC_LOADING },
	{ "object", "encoding", 3, 2, .flags = COMMAND_READONLY,
	  .tips = "nondeterministic_output" },
	{ "object", "freq", 3, 2, .flags = COMMAND_READONLY, .tips = "nondeterministic_output" },
	{ "object", "help", 2, 0, .flags = TELL },
	{ "object", "idletime", 3, 2, .flags = COMMAND_READONLY,
	  .tips = "nondeterministic_output" },
	{ "object", "refcount", 3, 2, .flags = COMMAND_READONLY,
	  .tips = "nondeterministic_output" },
	{ "pubsub", "channels", -2, 0, .flags = TELL | COMMAND_PUBSUB },
	{ "pubsub", "help", 2, 0, .flags = TELL },
	{ "pubsub", "numpat", 2, 0, .flags = TELL | COMMAND_PUBSUB },
	{ "pubsub", "numsub", -2, 0, .flags = TELL | COMMAND_PUBSUB },
	{ "pubsub", "shardchannels", -2, 0, .flags = TELL | COMMAND_PUBSUB },
	{ "pubsub", "shardnumsub", -2, 0, .flags = TELL | COMMAND_PUBSUB },
	{ "script", "debug", 3, 0, .flags = COMMAND_NOSCRIPT },
	{ "script", "exists", -3, 0, .flags = COMMAND_NOSCRIPT,
	  .tips = "request_policy:all_shards response_policy:agg_logical_and" },
	{ "script", "flush", -2, 0, .flags = COMMAND_NOSCRIPT,
	  .tips = "request_policy:all_nodes response_policy:all_succeeded" },
	{ "script", "help", 2, 0, .flags = TELL },
	{ "script", "kill", 2, 0, .flags = COMMAND_NOSCRIPT | COMMAND_ALLOW_BUSY,
	  .tips = "request_policy:all_shards response_policy:one_succeeded" },
	{ "script", "load", 3, 0, .flags = COMMAND_NOSCRIPT | COMMAND_STALE,
	  .tips = "request_policy:all_nodes response_policy:all_succeeded" },
	{ "slowlog", "get", -2, 0, .flags = TELL | COMMAND_ADMIN,
	  .tips = "request_policy:all_nodes nondeterministic_output" },
	{ "slowlog", "help", 2, 0, .flags = TELL },
	{ "slowlog", "len", 2, 0, .flags = TELL | COMMAND_ADMIN,
	  .tips = "request_policy:all_nodes response_policy:agg_sum nondeterministic_output" },
	{ "slowlog", "reset", 2, 0, .flags = TELL | COMMAND_ADMIN,
	  .tips = "request_policy:all_nodes response_policy:all_succeeded" },
	{ "xgroup", "create", -5, 2, .flags = COMMAND_WRITE | COMMAND_DENYOOM,
	  .key_flags = "RW insert" },
	{ "xgroup", "createconsumer", 5, 2, .flags = COMMAND_WRITE | COMMAND_DENYOOM,
	  .key_flags = "RW insert" },
	{ "xgroup", "delconsumer", 5, 2, .flags = COMMAND_WRITE, .key_flags = "RW delete" },
	{ "xgroup", "destroy", 4, 2, .flags = COMMAND_WRITE, .key_flags = "RW delete" },
	{ "xgroup", "help", 2, 0, .flags = TELL },
	{ "xgroup", "setid", -5, 2, .flags = COMMAND_WRITE },
	{ "xinfo", "consumers", 4, 2, .flags = COMMAND_READONLY,
	  .tips = "nondeterministic_output" },
	{ "xinfo", "groups", 3, 2, .flags = COMMAND_READONLY },
	{ "xinfo", "help", 2, 0, .flags = TELL },
	{ "xinfo", "stream", -3, 2, .flags = COMMAND_READONLY },
};
/* clang-format on */

const size_t subcommand_count = sizeof(subcommand_table) / sizeof(subcommand_table[0]);

const struct subcommand *
subcommands_of(const struct command *command, size_t *ret_count)
{
	size_t first = 0, end;

	while (first < subcommand_count &&
	       strcmp(subcommand_table[first].container, command->name) != 0)
		first++;
	end = first;
	while (end < subcommand_count &&
	       strcmp(subcommand_table[end].container, command->name) == 0)
		end++;
	*ret_count = end - first;
	return &subcommand_table[first];
}

const struct subcommand *
subcommand_find(const struct command *command, struct str name)
{
	size_t count;
	const struct subcommand *first = subcommands_of(command, &count);

	for (size_t i = 0; i < count; i++)
		if (str_eq_nocase(name, str_from_cstr(first[i].name)))
			return &first[i];
	return NULL;
}

const struct subcommand *
subcommand_called(const struct command *command, const struct str *argv, size_t argc)
{
	if (!(command->flags & COMMAND_CONTAINER) || argc < 2)
		return NULL;
	return subcommand_find(command, argv[1]);
}

struct str
subcommand_name(const struct command *command, const struct subcommand *sub,
		char room[static SUBCOMMAND_NAME_BYTES])
{
	int len = snprintf(room, SUBCOMMAND_NAME_BYTES, "%s%s%s", command->name, sub ? "|" : "",
			   sub ? sub->name : "");

	assert(len > 0 && len < SUBCOMMAND_NAME_BYTES);
	return str_of(room, (size_t)len);
}

struct str
subcommand_name_call(const struct command *command, const struct str *argv, size_t argc,
		     char room[static SUBCOMMAND_NAME_BYTES])
{
	return subcommand_name(command, subcommand_called(command, argv, argc), room);
}

bool
subcommand_is_admin(const struct command *command, const struct str *argv, size_t argc)
{
	const struct subcommand *sub = subcommand_called(command, argv, argc);

	return (command->flags | (sub ? sub->flags : 0)) & COMMAND_ADMIN;
}

/* The `distance`-th argument in front of that one is the word. */
static bool
follows_word(const struct str *argv, size_t i, size_t distance, struct str word)
{
	return i > distance && str_eq_nocase(argv[i - distance], word);
}

bool
subcommand_arg_is_secret(const struct command *command, const struct str *argv, size_t i)
{
	const char *name = command->name;
	static const struct str settings[] = { STR("requirepass"), STR("masterauth"),
					       STR("masteruser") };

	if (strcmp(name, "auth") == 0)
		return i > 0;
	if (strcmp(name, "hello") == 0)
		return follows_word(argv, i, 1, STR("auth")) ||
		       follows_word(argv, i, 2, STR("auth"));
	if (strcmp(name, "acl") == 0)
		return i > 1 && str_eq_nocase(argv[1], STR("setuser"));
	if (strcmp(name, "migrate") == 0)
		return follows_word(argv, i, 1, STR("auth")) ||
		       follows_word(argv, i, 1, STR("auth2")) ||
		       follows_word(argv, i, 2, STR("auth2"));
	if (strcmp(name, "config") != 0 || i < 3 || i % 2 == 0)
		return false;
	for (size_t k = 0; k < sizeof(settings) / sizeof(settings[0]); k++)
		if (str_eq_nocase(argv[i - 1], settings[k]))
			return true;
	return false;
}
