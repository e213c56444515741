#include "door/redis/tips.h"

#include <stddef.h>

#include "door/redis/command.h"

/* clang-format off */
static const struct {
	const char *tips;
	const char *const *names; /* ends in NULL */
} tips[] = {
	{ "nondeterministic_output",
	  (const char *const[]){ "client|info", "client|list", "cluster|bumpepoch",
		"cluster|count-failure-reports", "cluster|getkeysinslot", "cluster|info",
		"cluster|links", "cluster|nodes", "cluster|replicas", "cluster|shards",
		"cluster|slaves", "cluster|slots", "dump", "hrandfield", "hscan", "lastsave",
		"migrate", "object|encoding", "object|freq", "object|idletime",
		"object|refcount", "pttl", "spop", "srandmember", "sscan", "time", "ttl",
		"xadd", "xautoclaim", "xclaim", "xinfo|consumers", "xpending", "xtrim",
		"zrandmember", "zscan", NULL } },
	{ "nondeterministic_output request_policy:all_nodes response_policy:special",
	  (const char *const[]){ "latency|doctor", "latency|graph", "latency|histogram",
		"latency|history", "latency|latest", NULL } },
	{ "nondeterministic_output request_policy:all_shards response_policy:special",
	  (const char *const[]){ "function|stats", "info", "memory|doctor",
		"memory|malloc-stats", "memory|stats", NULL } },
	{ "nondeterministic_output request_policy:special",
	  (const char *const[]){ "scan", NULL } },
	{ "nondeterministic_output_order",
	  (const char *const[]){ "command", "command|docs", "command|info",
		"command|list", "function|list", "hgetall", "hkeys", "hvals", "module|list",
		"sdiff", "sinter", "smembers", "sunion", NULL } },
	{ "request_policy:all_nodes nondeterministic_output",
	  (const char *const[]){ "slowlog|get", NULL } },
	{ "request_policy:all_nodes response_policy:agg_sum nondeterministic_output",
	  (const char *const[]){ "slowlog|len", NULL } },
	{ "request_policy:all_nodes response_policy:all_succeeded",
	  (const char *const[]){ "config|set", "latency|reset", "script|flush",
		"script|load", "slowlog|reset", NULL } },
	{ "request_policy:all_shards nondeterministic_output",
	  (const char *const[]){ "randomkey", NULL } },
	{ "request_policy:all_shards nondeterministic_output_order",
	  (const char *const[]){ "keys", NULL } },
	{ "request_policy:all_shards response_policy:agg_logical_and",
	  (const char *const[]){ "script|exists", NULL } },
	{ "request_policy:all_shards response_policy:agg_min",
	  (const char *const[]){ "wait", NULL } },
	{ "request_policy:all_shards response_policy:agg_sum",
	  (const char *const[]){ "dbsize", NULL } },
	{ "request_policy:all_shards response_policy:all_succeeded",
	  (const char *const[]){ "flushall", "flushdb", "function|delete",
		"function|flush", "function|load", "function|restore", "memory|purge", "ping",
		NULL } },
	{ "request_policy:all_shards response_policy:one_succeeded",
	  (const char *const[]){ "function|kill", "script|kill", NULL } },
	{ "request_policy:multi_shard",
	  (const char *const[]){ "mget", NULL } },
	{ "request_policy:multi_shard response_policy:agg_min",
	  (const char *const[]){ "msetnx", NULL } },
	{ "request_policy:multi_shard response_policy:agg_sum",
	  (const char *const[]){ "del", "exists", "touch", "unlink", NULL } },
	{ "request_policy:multi_shard response_policy:all_succeeded",
	  (const char *const[]){ "mset", NULL } },
};
/* clang-format on */

struct str
tips_of(const char *name)
{
	for (size_t i = 0; i < sizeof(tips) / sizeof(tips[0]); i++)
		if (command_names_have(tips[i].names, name))
			return str_from_cstr(tips[i].tips);
	return STR("");
}
