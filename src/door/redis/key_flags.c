/*
 * What commands do with their keys: for COMMAND alone. The flags are Redis 7.0.15's; those of
 * fields that expire follow Redis 8.0.
 */
#include "door/redis/key_flags.h"

/* ---- What becomes of a key ---- */

/*
 * Commands by the flags of their keys. Behind a '|' are those of the next key; the last ones are
 * those of all keys that follow. What only reads and is not listed has "RO access".
 */
static const struct {
	const char *flags;
	const char *const *names; /* ends in NULL */
} key_flags[] = {
	{ "RO", (const char *const[]){ "exists", "hexists", "hlen", "hstrlen", "llen", "memory",
				       "object", "scard", "sismember", "strlen", "touch", "type",
				       "watch", "xlen", "zcard", NULL } },
	{ "RM delete", (const char *const[]){ "del", "unlink", NULL } },
	{ "OW insert", (const char *const[]){ "msetnx", "setnx", NULL } },
	{ "OW update", (const char *const[]){ "mset", "psetex", "set", "setex", NULL } },
	{ "OW update|RO access",
	  (const char *const[]){ "bitop", "sdiffstore", "sunionstore", "zdiffstore", "zinterstore",
				 "zrangestore", "zunionstore", NULL } },
	{ "RO access|OW update", (const char *const[]){ "copy", "sort", NULL } },
	{ "RW access delete",
	  (const char *const[]){ "blmpop", "blpop", "brpop", "bzmpop", "bzpopmax", "bzpopmin",
				 "getdel", "hgetdel", "lmpop", "lpop", "rpop", "spop", "zmpop",
				 "zpopmax", "zpopmin", NULL } },
	{ "RW access delete|OW insert", (const char *const[]){ "renamenx", NULL } },
	{ "RW access delete|OW update", (const char *const[]){ "rename", NULL } },
	{ "RW access delete|RW insert",
	  (const char *const[]){ "blmove", "brpoplpush", "lmove", "rpoplpush", "smove", NULL } },
	{ "RW access update",
	  (const char *const[]){ "bitfield", "decr", "decrby", "eval", "evalsha", "getex", "getset",
				 "hgetex", "hincrby", "hincrbyfloat", "incr", "incrby",
				 "incrbyfloat", "move", "setbit", "zincrby", NULL } },
	{ "RW delete",
	  (const char *const[]){ "hdel", "lrem", "ltrim", "srem", "xdel", "xtrim", "zrem",
				 "zremrangebylex", "zremrangebyrank", "zremrangebyscore", NULL } },
	{ "RW insert", (const char *const[]){ "append", "hsetnx", "linsert", "lpush", "lpushx",
					      "rpush", "rpushx", "sadd", NULL } },
	{ "RW update|RO access", (const char *const[]){ "sinterstore", NULL } },
};

static bool
names_have(const char *const *names, const char *name)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names;
}

static bool
args_have(const struct str *argv, size_t argc, size_t from, struct str word)
{
	for (size_t i = from; i < argc; i++)
		if (str_eq_nocase(argv[i], word))
			return true;
	return false;
}

/* SET with GET reads what it replaces. */
static const char *
flags_of(const struct command *command, const struct str *argv, size_t argc)
{
	if (strcmp(command->name, "set") == 0 && args_have(argv, argc, 3, STR("get")))
		return "RW access update";
	for (size_t i = 0; i < sizeof(key_flags) / sizeof(key_flags[0]); i++)
		if (names_have(key_flags[i].names, command->name))
			return key_flags[i].flags;
	return command->flags & COMMAND_WRITE ? "RW update" : "RO access";
}

struct str
key_flags_of(const struct command *command, const struct str *argv, size_t argc, size_t key)
{
	struct str rest = str_from_cstr(flags_of(command, argv, argc));
	struct str flags;

	do
		flags = str_cut(&rest, '|');
	while (key-- && rest.len);
	return flags;
}
