/*
 * What commands do with their keys. The flags are Redis 7.0.15's; those of fields that expire
 * follow Redis 8.0.
 */
#include "door/redis/key_specs.h"

#include "door/redis/subcommand.h"

#define SET_NOTES      "RW and ACCESS due to the optional `GET` argument"
#define BITFIELD_NOTES "This command allows both access and modification of the key"
#define GETEX_NOTES    "RW and UPDATE because it changes the TTL"
#define XADD_NOTES     "UPDATE instead of INSERT because of the optional trimming feature"
#define EVAL_NOTES                                                                                 \
	"We cannot tell how the keys will be used so we assume the worst, "                        \
	"RW and UPDATE"
#define EVAL_RO_NOTES                                                                              \
	"We cannot tell how the keys will be used so we assume the worst, "                        \
	"RO and ACCESS"
#define PFCOUNT_NOTES                                                                              \
	"RW because it may change the internal representation of the key, and propagate to "       \
	"replicas"
#define SORT_BY_NOTES                                                                              \
	"For the optional BY/GET keyword. It is marked 'unknown' because the key names derive "    \
	"from the content of the key we sort"
#define SORT_STORE_NOTES                                                                           \
	"For the optional STORE keyword. It is marked 'unknown' because the keyword can appear "   \
	"anywhere in the argument array"

/* ---- What becomes of a key ---- */

/*
 * Commands by the flags of their keys. Behind a '|' are those of the next key; the last ones are
 * those of all keys that follow. A command that is not listed has "RW update" if it writes, else
 * "RO access".
 */
static const struct {
	const char *flags;
	const char *const *names; /* ends in NULL */
} key_flags[] = {
	{ "not_key", (const char *const[]){ "spublish", "ssubscribe", "sunsubscribe", NULL } },
	{ "RO", (const char *const[]){ "exists", "hexists", "hlen", "hstrlen", "llen", "memory",
				       "object", "scard", "sismember", "strlen", "touch", "type",
				       "watch", "xlen", "zcard", NULL } },
	{ "RM delete", (const char *const[]){ "del", "unlink", NULL } },
	{ "RO access",
	  (const char *const[]){ "georadius", "georadiusbymember", "xreadgroup", NULL } },
	{ "OW insert", (const char *const[]){ "msetnx", "setnx", NULL } },
	{ "OW update",
	  (const char *const[]){ "mset", "psetex", "restore", "restore-asking", "setex", NULL } },
	{ "OW update|RO access", (const char *const[]){ "bitop", "geosearchstore", "sdiffstore",
							"sunionstore", "zdiffstore", "zinterstore",
							"zrangestore", "zunionstore", NULL } },
	{ "RO access|OW update", (const char *const[]){ "copy", "sort", NULL } },
	{ "RW access", (const char *const[]){ "pfcount", "pfdebug", NULL } },
	{ "RW access delete",
	  (const char *const[]){ "blmpop", "blpop", "brpop", "bzmpop", "bzpopmax", "bzpopmin",
				 "getdel", "hgetdel", "lmpop", "lpop", "migrate", "rpop", "spop",
				 "zmpop", "zpopmax", "zpopmin", NULL } },
	{ "RW access delete|OW insert", (const char *const[]){ "renamenx", NULL } },
	{ "RW access delete|OW update", (const char *const[]){ "rename", NULL } },
	{ "RW access delete|RW insert",
	  (const char *const[]){ "blmove", "brpoplpush", "lmove", "rpoplpush", "smove", NULL } },
	{ "RW access insert|RO access", (const char *const[]){ "pfmerge", NULL } },
	{ "RW access update",
	  (const char *const[]){ "decr", "decrby", "eval", "evalsha", "fcall", "getex", "getset",
				 "hgetex", "hincrby", "hincrbyfloat", "incr", "incrby",
				 "incrbyfloat", "move", "setbit", "zincrby", NULL } },
	{ "RW access update variable_flags", (const char *const[]){ "bitfield", "set", NULL } },
	{ "RW delete",
	  (const char *const[]){ "hdel", "lrem", "ltrim", "srem", "xautoclaim", "xdel",
				 "xgroup|delconsumer", "xgroup|destroy", "xtrim", "zrem",
				 "zremrangebylex", "zremrangebyrank", "zremrangebyscore", NULL } },
	{ "RW insert", (const char *const[]){ "append", "hsetnx", "linsert", "lpush", "lpushx",
					      "pfadd", "rpush", "rpushx", "sadd", "xgroup|create",
					      "xgroup|createconsumer", NULL } },
	{ "RW update|RO access", (const char *const[]){ "sinterstore", NULL } },
};

/* The flags in the table of a command or of a subcommand; NULL: it is not there. */
static const char *
flags_named(const char *name)
{
	for (size_t i = 0; i < sizeof(key_flags) / sizeof(key_flags[0]); i++)
		if (command_names_have(key_flags[i].names, name))
			return key_flags[i].flags;
	return NULL;
}

/* The flags of all keys, with '|' between them. */
static const char *
flags_of(const struct command *command, const struct subcommand *sub)
{
	unsigned flags = sub ? sub->flags : command->flags;
	char name[SUBCOMMAND_NAME_BYTES];
	const char *named = NULL;

	if (sub) {
		subcommand_name(command, sub, name);
		named = flags_named(name);
	}
	if (!named)
		named = flags_named(command->name);
	if (named)
		return named;
	return flags & COMMAND_WRITE ? "RW update" : "RO access";
}

static bool
args_have(const struct str *argv, size_t argc, size_t from, struct str word)
{
	for (size_t i = from; i < argc; i++)
		if (str_eq_nocase(argv[i], word))
			return true;
	return false;
}

/* The flags of the keys of a call whose arguments tell them; NULL: they do not. */
static const char *
flags_by_args(const struct command *command, const struct str *argv, size_t argc)
{
	if (strcmp(command->name, "set") == 0)
		return args_have(argv, argc, 3, STR("get")) ? "RW access update" : "OW update";
	if (strcmp(command->name, "bitfield") == 0)
		return args_have(argv, argc, 2, STR("set")) ||
				       args_have(argv, argc, 2, STR("incrby"))
			       ? "RW access update"
			       : "RO access";
	return NULL;
}

struct str
key_flags_of(const struct command *command, const struct str *argv, size_t argc, size_t key)
{
	const char *text = flags_by_args(command, argv, argc);
	struct str rest, flags;

	if (!text)
		text = flags_of(command, subcommand_called(command, argv, argc));
	rest = str_from_cstr(text);
	do
		flags = str_cut(&rest, '|');
	while (key-- && rest.len);
	return flags;
}

void
key_rights_of(const struct command *command, const struct str *argv, size_t argc, size_t key,
	      bool *ret_reads, bool *ret_writes)
{
	struct str rest = key_flags_of(command, argv, argc, key);

	*ret_reads = *ret_writes = false;
	while (rest.len) {
		struct str word = str_cut(&rest, ' ');

		*ret_reads |= str_eq(word, STR("access"));
		*ret_writes |= str_eq(word, STR("insert")) || str_eq(word, STR("update")) ||
			       str_eq(word, STR("delete"));
	}
}

/* ---- Where the keys are ---- */

static const char *
notes_of(const char *name)
{
	static const struct {
		const char *name;
		const char *notes;
	} notes[] = {
		{ "bitfield", BITFIELD_NOTES }, { "eval", EVAL_NOTES },
		{ "eval_ro", EVAL_RO_NOTES },   { "fcall", EVAL_NOTES },
		{ "fcall_ro", EVAL_RO_NOTES },  { "getex", GETEX_NOTES },
		{ "pfcount", PFCOUNT_NOTES },   { "set", SET_NOTES },
		{ "xadd", XADD_NOTES },
	};

	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
		if (strcmp(notes[i].name, name) == 0)
			return notes[i].notes;
	return NULL;
}

/*
 * Adds the keys of some commands that follow a word, or that only their values tell. Returns how
 * many specs these are.
 */
static size_t
add_special_specs(const struct command *command, struct key_spec *ret)
{
	const char *name = command->name;
	const struct key_spec by = { .flags = STR("RO access"),
				     .notes = SORT_BY_NOTES,
				     .unknown = true };
	const struct key_spec to = { .flags = STR("OW update"),
				     .notes = SORT_STORE_NOTES,
				     .unknown = true };
	const struct key_spec behind = { .flags = STR("OW update"), .step = 1 };
	bool by_member = strcmp(name, "georadiusbymember") == 0;
	bool sorts = strcmp(name, "sort") == 0;

	if (sorts || strcmp(name, "sort_ro") == 0) {
		ret[0] = by;
		ret[1] = to;
		return sorts ? 2 : 1;
	}
	if (by_member || strcmp(name, "georadius") == 0) {
		ret[0] = ret[1] = behind;
		ret[0].at = ret[1].at = by_member ? 5 : 6;
		ret[0].word = "STORE";
		ret[1].word = "STOREDIST";
		return 2;
	}
	if (strcmp(name, "migrate") == 0) {
		ret[0] = (struct key_spec){ .flags = STR("RW access delete incomplete"),
					    .word = "KEYS",
					    .at = -2,
					    .last = -1,
					    .step = 1 };
		return 1;
	}
	return 0;
}

/*
 * Adds the keys at fixed places, and takes their flags off `flags`. Each has flags of its own, up
 * to the last flags, which the keys from there on share. If `leaves_flags`, all of the fixed keys
 * share the first ones, and the others are those of keys elsewhere.
 */
static size_t
add_fixed_specs(const struct command *command, struct str *flags, bool leaves_flags,
		struct key_spec ret[static KEY_SPECS])
{
	int at = command->first_key;
	size_t count = 0;

	do {
		struct key_spec *s = &ret[count++];

		*s = (struct key_spec){ .flags = str_cut(flags, '|'), .at = at++, .step = 1 };
		if (!flags->len || leaves_flags) {
			bool from_end = command->last_key < 0;

			s->last = from_end ? command->last_key : command->last_key - s->at;
			s->step = command->step;
		}
	} while (flags->len && !leaves_flags && count < KEY_SPECS);
	return count;
}

size_t
key_specs_of(const struct command *command, const struct subcommand *sub,
	     struct key_spec ret[static KEY_SPECS])
{
	struct str flags = str_from_cstr(flags_of(command, sub));
	bool of_group = strcmp(command->name, "xreadgroup") == 0;
	size_t counted = command_counted_keys(command);
	size_t count = 0, special;

	if (sub) {
		ret[0] = (struct key_spec){ .flags = flags, .at = sub->key, .step = 1 };
		return sub->key > 0;
	}
	if (command->first_key > 0)
		count = add_fixed_specs(command, &flags,
					counted || strcmp(command->name, "sort") == 0, ret);
	if (counted)
		ret[count++] = (struct key_spec){ .flags = str_cut(&flags, '|'),
						  .at = (int)counted,
						  .counted = true,
						  .step = 1 };
	if (of_group || strcmp(command->name, "xread") == 0)
		ret[count++] = (struct key_spec){ .flags = STR("RO access"),
						  .word = "STREAMS",
						  .at = of_group ? 4 : 1,
						  .last = -1,
						  .step = 1,
						  .limit = 2 };
	special = add_special_specs(command, &ret[count]);
	if (count)
		ret[0].notes = notes_of(command->name);
	return count + special;
}
