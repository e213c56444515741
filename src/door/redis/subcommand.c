#include "door/redis/subcommand.h"

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
	{ "acl", "cat", -2, 0, CONN },
	{ "acl", "deluser", -3, 0, RULE },
	{ "acl", "dryrun", -4, 0, RULE },
	{ "acl", "genpass", -2, 0, CONN },
	{ "acl", "getuser", 3, 0, RULE },
	{ "acl", "help", 2, 0, TELL },
	{ "acl", "list", 2, 0, RULE },
	{ "acl", "load", 2, 0, RULE },
	{ "acl", "log", -2, 0, RULE },
	{ "acl", "save", 2, 0, RULE },
	{ "acl", "setuser", -3, 0, RULE },
	{ "acl", "users", 2, 0, RULE },
	{ "acl", "whoami", 2, 0, CONN },
	{ "client", "caching", 3, 0, CONN },
	{ "client", "getname", 2, 0, CONN },
	{ "client", "getredir", 2, 0, CONN },
	{ "client", "help", 2, 0, TELL },
	{ "client", "id", 2, 0, CONN },
	{ "client", "info", 2, 0, CONN },
	{ "client", "kill", -3, 0, RULE },
	{ "client", "list", -2, 0, RULE },
	{ "client", "no-evict", 3, 0, RULE },
	{ "client", "no-touch", 3, 0, CONN },
	{ "client", "pause", -3, 0, RULE },
	{ "client", "reply", 3, 0, CONN },
	{ "client", "setinfo", 4, 0, CONN },
	{ "client", "setname", 3, 0, CONN },
	{ "client", "tracking", -3, 0, CONN },
	{ "client", "trackinginfo", 2, 0, CONN },
	{ "client", "unblock", -3, 0, RULE },
	{ "client", "unpause", 2, 0, RULE },
	{ "cluster", "addslots", -3, 0, MOVES },
	{ "cluster", "addslotsrange", -4, 0, MOVES },
	{ "cluster", "bumpepoch", 2, 0, MOVES },
	{ "cluster", "count-failure-reports", 3, 0, SLOTS },
	{ "cluster", "countkeysinslot", 3, 0, COMMAND_STALE },
	{ "cluster", "delslots", -3, 0, MOVES },
	{ "cluster", "delslotsrange", -4, 0, MOVES },
	{ "cluster", "failover", -2, 0, MOVES },
	{ "cluster", "flushslots", 2, 0, MOVES },
	{ "cluster", "forget", 3, 0, MOVES },
	{ "cluster", "getkeysinslot", 4, 0, COMMAND_STALE },
	{ "cluster", "help", 2, 0, TELL },
	{ "cluster", "info", 2, 0, COMMAND_STALE },
	{ "cluster", "keyslot", 3, 0, COMMAND_STALE },
	{ "cluster", "links", 2, 0, COMMAND_STALE },
	{ "cluster", "meet", -4, 0, MOVES },
	{ "cluster", "myid", 2, 0, COMMAND_STALE },
	{ "cluster", "nodes", 2, 0, COMMAND_STALE },
	{ "cluster", "replicas", 3, 0, SLOTS },
	{ "cluster", "replicate", 3, 0, MOVES },
	{ "cluster", "reset", -2, 0, COMMAND_ADMIN | COMMAND_NOSCRIPT | COMMAND_STALE },
	{ "cluster", "saveconfig", 2, 0, MOVES },
	{ "cluster", "set-config-epoch", 3, 0, MOVES },
	{ "cluster", "setslot", -4, 0, MOVES },
	{ "cluster", "shards", 2, 0, COMMAND_STALE },
	{ "cluster", "slaves", 3, 0, SLOTS },
	{ "cluster", "slots", 2, 0, COMMAND_STALE },
	{ "command", "count", 2, 0, TELL },
	{ "command", "docs", -2, 0, TELL },
	{ "command", "getkeys", -4, 0, TELL },
	{ "command", "getkeysandflags", -4, 0, TELL },
	{ "command", "help", 2, 0, TELL },
	{ "command", "info", -2, 0, TELL },
	{ "command", "list", -2, 0, TELL },
	{ "config", "get", -3, 0, RULE },
	{ "config", "help", 2, 0, TELL },
	{ "config", "resetstat", 2, 0, RULE },
	{ "config", "rewrite", 2, 0, RULE },
	{ "config", "set", -4, 0, RULE },
	{ "function", "delete", 3, 0, COMMAND_WRITE | COMMAND_NOSCRIPT },
	{ "function", "dump", 2, 0, COMMAND_NOSCRIPT },
	{ "function", "flush", -2, 0, COMMAND_WRITE | COMMAND_NOSCRIPT },
	{ "function", "help", 2, 0, TELL },
	{ "function", "kill", 2, 0, COMMAND_NOSCRIPT | COMMAND_ALLOW_BUSY },
	{ "function", "list", -2, 0, COMMAND_NOSCRIPT },
	{ "function", "load", -3, 0, COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_NOSCRIPT },
	{ "function", "restore", -3, 0, COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_NOSCRIPT },
	{ "function", "stats", 2, 0, COMMAND_NOSCRIPT | COMMAND_ALLOW_BUSY },
	{ "latency", "doctor", 2, 0, RULE },
	{ "latency", "graph", 3, 0, RULE },
	{ "latency", "help", 2, 0, TELL },
	{ "latency", "histogram", -2, 0, RULE },
	{ "latency", "history", 3, 0, RULE },
	{ "latency", "latest", 2, 0, RULE },
	{ "latency", "reset", -2, 0, RULE },
	{ "memory", "doctor", 2, 0, 0 },
	{ "memory", "help", 2, 0, TELL },
	{ "memory", "malloc-stats", 2, 0, 0 },
	{ "memory", "purge", 2, 0, 0 },
	{ "memory", "stats", 2, 0, 0 },
	{ "memory", "usage", -3, 2, COMMAND_READONLY },
	{ "module", "help", 2, 0, TELL },
	{ "module", "list", 2, 0, COMMAND_ADMIN | COMMAND_NOSCRIPT },
	{ "module", "load", -3, 0, COMMAND_ADMIN | COMMAND_NOSCRIPT | COMMAND_NO_ASYNC_LOADING },
	{ "module", "loadex", -3, 0, COMMAND_ADMIN | COMMAND_NOSCRIPT | COMMAND_NO_ASYNC_LOADING },
	{ "module", "unload", 3, 0, COMMAND_ADMIN | COMMAND_NOSCRIPT | COMMAND_NO_ASYNC_LOADING },
	{ "object", "encoding", 3, 2, COMMAND_READONLY },
	{ "object", "freq", 3, 2, COMMAND_READONLY },
	{ "object", "help", 2, 0, TELL },
	{ "object", "idletime", 3, 2, COMMAND_READONLY },
	{ "object", "refcount", 3, 2, COMMAND_READONLY },
	{ "pubsub", "channels", -2, 0, TELL | COMMAND_PUBSUB },
	{ "pubsub", "help", 2, 0, TELL },
	{ "pubsub", "numpat", 2, 0, TELL | COMMAND_PUBSUB },
	{ "pubsub", "numsub", -2, 0, TELL | COMMAND_PUBSUB },
	{ "pubsub", "shardchannels", -2, 0, TELL | COMMAND_PUBSUB },
	{ "pubsub", "shardnumsub", -2, 0, TELL | COMMAND_PUBSUB },
	{ "script", "debug", 3, 0, COMMAND_NOSCRIPT },
	{ "script", "exists", -3, 0, COMMAND_NOSCRIPT },
	{ "script", "flush", -2, 0, COMMAND_NOSCRIPT },
	{ "script", "help", 2, 0, TELL },
	{ "script", "kill", 2, 0, COMMAND_NOSCRIPT | COMMAND_ALLOW_BUSY },
	{ "script", "load", 3, 0, COMMAND_NOSCRIPT | COMMAND_STALE },
	{ "slowlog", "get", -2, 0, TELL | COMMAND_ADMIN },
	{ "slowlog", "help", 2, 0, TELL },
	{ "slowlog", "len", 2, 0, TELL | COMMAND_ADMIN },
	{ "slowlog", "reset", 2, 0, TELL | COMMAND_ADMIN },
	{ "xgroup", "create", -5, 2, COMMAND_WRITE | COMMAND_DENYOOM },
	{ "xgroup", "createconsumer", 5, 2, COMMAND_WRITE | COMMAND_DENYOOM },
	{ "xgroup", "delconsumer", 5, 2, COMMAND_WRITE },
	{ "xgroup", "destroy", 4, 2, COMMAND_WRITE },
	{ "xgroup", "help", 2, 0, TELL },
	{ "xgroup", "setid", -5, 2, COMMAND_WRITE },
	{ "xinfo", "consumers", 4, 2, COMMAND_READONLY },
	{ "xinfo", "groups", 3, 2, COMMAND_READONLY },
	{ "xinfo", "help", 2, 0, TELL },
	{ "xinfo", "stream", -3, 2, COMMAND_READONLY },
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
