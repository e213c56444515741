/*
 * What a command is: a row of the table (table.c), and a call of it.
 *
 * A handler answers into call->reply and returns STATUS_OK, or STATUS_ANSWERED where the answer is
 * an error that the client has made; command_run() takes them for the same. Another status says
 * that the store has failed; whoever called the handler drops what it has answered. A handler that
 * works on data may be called again for one command, since a transaction may have several attempts:
 * whatever it changes outside of the transaction is an effect (txn.h), which happens after the
 * commit.
 */
#ifndef FROND_DOOR_REDIS_ACL_COMMAND_H
#define FROND_DOOR_REDIS_ACL_COMMAND_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"
#include "door/redis/wire/error.h"

struct call;
struct client;
struct redis;
struct txn;

#define REDIS_VERSION "7.0.15" /* whose answers they give */

enum command_flags {
	COMMAND_WRITE = 1 << 0,
	COMMAND_READONLY = 1 << 1,
	COMMAND_DENYOOM = 1 << 2,
	COMMAND_ADMIN = 1 << 3,
	COMMAND_PUBSUB = 1 << 4,
	COMMAND_NOSCRIPT = 1 << 5,
	COMMAND_BLOCKING = 1 << 6,
	COMMAND_LOADING = 1 << 7,
	COMMAND_STALE = 1 << 8,
	COMMAND_FAST = 1 << 9,
	COMMAND_NO_AUTH = 1 << 10,
	COMMAND_NO_MULTI = 1 << 11,
	COMMAND_ALLOW_BUSY = 1 << 12,
	COMMAND_MOVABLE_KEYS = 1 << 13,
	/* Told to clients, as Redis does; they change nothing here. */
	COMMAND_NO_ASYNC_LOADING = 1 << 14,
	COMMAND_SKIP_MONITOR = 1 << 15,
	COMMAND_SKIP_SLOWLOG = 1 << 16,
	COMMAND_ASKING = 1 << 17,
	COMMAND_NO_MANDATORY_KEYS = 1 << 18,
	/* Not told to clients: it changes what the next command of a pipeline means, or no data. */
	COMMAND_ALONE = 1 << 20,
	/* It works on all keys of a database, or on all databases. */
	COMMAND_ALL_KEYS = 1 << 21,
	/* Its first argument is the name of a subcommand. */
	COMMAND_CONTAINER = 1 << 23,
	/* It runs a script, which may write unless the command is COMMAND_READONLY. */
	COMMAND_SCRIPT = 1 << 22,
	/* It does little, as those do that clients are told to be fast. */
	COMMAND_SMALL = 1 << 24,
	/* In its transaction nothing may have been written before it. */
	COMMAND_FRESH = 1 << 25,
	/* It publishes: in a transaction where other processes are to learn of it, else in none. */
	COMMAND_PUBLISH = 1 << 26,
	/* It waits while writes are paused, since Redis would tell its replicas of it. */
	COMMAND_PAUSES = 1 << 27,
};

/* What CLIENT CACHING has said of the next command. */
enum caching {
	CACHING_UNSAID,
	CACHING_YES,
	CACHING_NO,
};

/* What a handler that serves several commands has to know of each (`how` in its row). */
enum command_how {
	HOW_LEFT = 1 << 0,       /* of a list: at its left end, else at the right */
	HOW_REVERSE = 1 << 1,    /* from the greatest, or the last, on */
	HOW_ONLY_THERE = 1 << 2, /* does nothing if the key is not there */
	HOW_ONLY_NEW = 1 << 3,   /* does nothing if the new key is there */
	HOW_STORES = 1 << 4,     /* the result goes to the key of the first argument */
	HOW_BY_SCORE = 1 << 5,   /* a range of scores; of names; without both, of ranks */
	HOW_BY_NAME = 1 << 6,
	HOW_UNION = 1 << 7, /* of several sets */
	HOW_INTER = 1 << 8,
	HOW_DIFF = 1 << 9,
	HOW_NAMES = 1 << 10,      /* answers the fields of a hash */
	HOW_VALUES = 1 << 11,     /* and their values */
	HOW_SECONDS = 1 << 12,    /* a time is in seconds, else in milliseconds */
	HOW_ABSOLUTE = 1 << 13,   /* it is since 1970, else from now on */
	HOW_PATTERNS = 1 << 14,   /* of channels */
	HOW_SHARD = 1 << 15,      /* channels of a shard */
	HOW_MULTIPLIES = 1 << 16, /* numbers, else adds to them */
};

enum {
	COMMAND_NAME_BYTES = 64, /* of a command's name, and the NUL behind it */
	CALL_SHOWN_BYTES = 128,  /* of an argument, in an error */
};

/*
 * Groups, what COMMAND DOCS and metrics call them, and the category of ACL that they are, or NULL.
 */
#define COMMAND_GROUPS_ALL(GROUP)                                                                  \
	GROUP(STRING, "string", "string")                                                          \
	GROUP(GENERIC, "generic", "keyspace")                                                      \
	GROUP(HASH, "hash", "hash")                                                                \
	GROUP(LIST, "list", "list")                                                                \
	GROUP(SET, "set", "set")                                                                   \
	GROUP(ZSET, "sorted-set", "sortedset")                                                     \
	GROUP(BITMAP, "bitmap", "bitmap")                                                          \
	GROUP(PUBSUB, "pubsub", "pubsub")                                                          \
	GROUP(TRANSACTIONS, "transactions", "transaction")                                         \
	GROUP(CONNECTION, "connection", "connection")                                              \
	GROUP(SERVER, "server", NULL)                                                              \
	GROUP(SCRIPTING, "scripting", "scripting")                                                 \
	GROUP(STREAM, "stream", "stream")                                                          \
	GROUP(GEO, "geo", "geo")                                                                   \
	GROUP(HYPERLOGLOG, "hyperloglog", "hyperloglog")                                           \
	GROUP(CLUSTER, "cluster", NULL)                                                            \
	GROUP(JSON, "json", NULL)

enum command_group {
#define COMMAND_GROUP_CONSTANT(group, name, category) GROUP_##group,
	COMMAND_GROUPS_ALL(COMMAND_GROUP_CONSTANT)
#undef COMMAND_GROUP_CONSTANT
	COMMAND_GROUPS,
};

/* Their names. */
extern const char *const command_groups[COMMAND_GROUPS];

typedef enum status command_handler(struct call *c);

struct command {
	const char *name; /* in lower case */
	int arity;        /* with the name; negative: at least so many */
	unsigned flags;
	enum command_group group;
	int first_key; /* 0: it has none at fixed places */
	int last_key;  /* negative: from the end */
	int step;
	const char *since;
	command_handler *run;

	const char *summary;
	/* Or NULL, each. */
	const char *key_flags; /* what becomes of its keys (key_specs.h): NULL: what `flags` say */
	const char *key_notes; /* what is said beside that */
	/* ACL's categories beside what follows from flags and group: "dangerous -keyspace". */
	const char *categories;
	const char *tips;    /* for proxies and clients of clusters */
	const char *refusal; /* of cmd_refused: why */
	int numkeys;         /* the place of the number of keys that the keys follow; 0: none */
	unsigned how;        /* enum command_how */
	bool not_in_scripts; /* as COMMAND_NOSCRIPT, of which COMMAND tells */
};

/* How a script was ended from outside. */
enum eval_end {
	EVAL_GOES_ON,
	EVAL_KILLED,
	EVAL_TOOK_LONG,
};

struct call {
	struct redis *redis;
	struct client *client;
	const struct command *command;
	struct str *argv;
	size_t argc;
	struct reply *reply;
	struct txn *x; /* NULL outside of a transaction */
	unsigned db;
	bool in_exec; /* it must not wait */
	bool waited;  /* it has waited, and looks again */
	bool blocks;  /* set by the handler: there is nothing yet, and it wants to wait */

	/* Scripts: the same in each attempt. */
	bool in_script; /* a script calls it */
	uint64_t script_seed;
	uint64_t script_now_ms;
	enum eval_end script_end;
	uint64_t lanes; /* that the transaction has */
	bool strays;    /* set by the handler: it would write what is in no lane of those */
	bool told;      /* set by the handler: the error that it answers was counted already */
	struct arena *arena;
};

/* The whole table, sorted by name (table.c). */
extern const struct command command_table[];
extern const size_t command_count;

/* ---- What handlers share (command.c) ---- */

/* The command of that name, in any case; NULL: there is none. */
const struct command *command_find(struct str name);
/* True if that is the command's name, in any case. */
bool command_is_named(const struct command *command, struct str name);

/* The command's name as messages have it, in upper case. */
void command_upper_name(const struct command *command, char ret[static COMMAND_NAME_BYTES]);

/*
 * The places of a call's keys in its arguments, in the arena: `*ret_count` of them.
 * STATUS_INVALID: the arguments are not as the command wants them.
 */
MUST_USE enum status command_keys(const struct command *command, const struct str *argv,
				  size_t argc, struct arena *arena, size_t **ret,
				  size_t *ret_count);

/* True if the call's only key is the argument at `first_key`, as that of most commands is. */
static inline bool
command_has_one_key(const struct command *command, size_t argc)
{
	const unsigned others = COMMAND_CONTAINER | COMMAND_MOVABLE_KEYS | COMMAND_PUBSUB;

	return command->first_key > 0 && command->last_key == command->first_key &&
	       (size_t)command->first_key < argc && !(command->flags & others);
}

/* True if that is a number of arguments that is meant by an arity, as in struct command. */
static inline bool
command_arity_takes(int arity, size_t argc)
{
	return arity > 0 ? (int64_t)argc == arity : (int64_t)argc >= -arity;
}

/* True if that is a number of arguments, with the name, that the command takes. */
static inline bool
command_takes(const struct command *command, size_t argc)
{
	return command_arity_takes(command->arity, argc);
}

/* The handler of commands that are there to be refused. */
enum status cmd_refused(struct call *c);

static inline bool
command_is_refused(const struct command *command)
{
	return command->run == cmd_refused;
}

/* Runs the command's handler. An error that the client has made is an answer like others. */
MUST_USE static inline enum status
command_run(struct call *c)
{
	enum status status = c->command->run(c);

	return status == STATUS_ANSWERED ? STATUS_OK : status;
}

/* True if its transaction must not be a read-only one. */
static inline bool
command_may_write(const struct command *command)
{
	return command->flags & COMMAND_WRITE ||
	       (command->flags & COMMAND_SCRIPT && !(command->flags & COMMAND_READONLY));
}

/* True if CLIENT PAUSE WRITE is about it, unless its script says that it does not write. */
static inline bool
command_pauses(const struct command *command)
{
	return command_may_write(command) || command->flags & COMMAND_PAUSES;
}

/* The beginning of an argument, as much as errors show. */
static inline struct str
call_shown(struct str arg)
{
	return arg.len < CALL_SHOWN_BYTES ? arg : str_of(arg.ptr, CALL_SHOWN_BYTES);
}

/* True if one of these (enum command_how) is said of the call's command. */
static inline bool
call_is(const struct call *c, unsigned how)
{
	return c->command->how & how;
}

/* True if argument `i` is that word, in any case. */
static inline bool
call_arg_is(const struct call *c, size_t i, const char *word)
{
	return i < c->argc && str_eq_nocase(c->argv[i], str_from_cstr(word));
}

/*
 * Answers an error that the client has made, as reply_error() and reply_errorf() do. The value is
 * STATUS_ANSWERED; here, so that the compiler sees which outputs are set where it is not returned.
 */
MUST_USE static inline enum status
call_error(struct call *c, struct str text)
{
	reply_error(c->reply, text);
	return STATUS_ANSWERED;
}

#define call_errorf(c, ...) (reply_errorf((c)->reply, __VA_ARGS__), STATUS_ANSWERED)

/* The errors that many commands have; likewise. */
MUST_USE static inline enum status
call_syntax_error(struct call *c)
{
	return call_error(c, STR(ERROR_SYNTAX));
}

MUST_USE static inline enum status
call_wrong_type(struct call *c)
{
	return call_error(c, STR(ERROR_WRONG_TYPE));
}

MUST_USE static inline enum status
call_not_integer(struct call *c)
{
	return call_error(c, STR(ERROR_NOT_INTEGER));
}

MUST_USE static inline enum status
call_not_float(struct call *c)
{
	return call_error(c, STR(ERROR_NOT_FLOAT));
}

MUST_USE static inline enum status
call_wrong_arity(struct call *c)
{
	return call_errorf(c, "ERR wrong number of arguments for '%s' command", c->command->name);
}

/* Of arguments that a subcommand does not take, too. */
MUST_USE enum status call_unknown_subcommand(struct call *c);

/* Reads an integer out of an argument. STATUS_ANSWERED if there is none. */
MUST_USE enum status call_int(struct call *c, size_t i, int64_t *ret);
/* The same within bounds, with Redis's text for what is not. */
MUST_USE enum status call_int_range(struct call *c, size_t i, int64_t least, int64_t most,
				    const char *text, int64_t *ret);
/* The same of how many members are wanted: a negative number wants them again and again. */
MUST_USE enum status call_count(struct call *c, size_t i, int64_t most, int64_t *ret);
MUST_USE enum status call_double(struct call *c, size_t i, double *ret);

/* Answers a help text, as CONFIG HELP does. */
enum status call_help(struct call *c, const char *const *lines, size_t count);

#endif
