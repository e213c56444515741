/*
 * A script of EVAL's: a script in Lua (lua/script.h) whose calls are commands of a transaction. Its
 * owner is the fiber that runs the transaction.
 */
#ifndef FROND_DOOR_REDIS_SCRIPT_EVAL_H
#define FROND_DOOR_REDIS_SCRIPT_EVAL_H

#include "door/redis/acl/command.h"
#include "lua/image.h"
#include "lua/script.h"

enum {
	EVAL_CACHE_ENTRIES = 4096,           /* scripts that EVALSHA finds */
	EVAL_CACHE_BYTES = 32 * 1024 * 1024, /* of their texts together */
	EVAL_REPLY_DEPTH = 128,              /* of tables in what a script returns */
	EVAL_SHA_CHARS = 40,
};

/* What a script's first line says: "#!lua flags=no-writes". */
struct eval_flags {
	size_t shebang_bytes;
	bool no_writes;
};

struct eval {
	struct script script; /* first: script_of() is the struct */
	struct call *call;    /* of EVAL */
	struct str text;
	struct str function; /* FCALL: that the text, a library, registers; else ptr NULL */
	char sha[EVAL_SHA_CHARS + 1]; /* of the text */
	char image_key[SCRIPT_IMAGE_KEY_BYTES];
	struct eval_flags flags;
	bool read_only;
	bool compiles_only; /* SCRIPT LOAD */
	bool reads;         /* it has called a command that only reads */
	const struct str *keys;
	size_t key_count;
	const struct str *args;
	size_t arg_count;

	struct reply reply; /* of EVAL, in the client's buffer */
	size_t reply_from;  /* where it begins there */
	bool is_sound;      /* its text is Lua */
	int resp;           /* of redis.call */
	unsigned db;
	struct buf answer; /* of a command */
	struct call inner;
	struct reply inner_reply;
	uint64_t began_ns;
	struct err err; /* of SCRIPT LOAD, which has no transaction that could tell */

	/* The list of scripts that run has a lock. */
	struct eval *next;
	struct eval **link;
};

_Static_assert((int)SCRIPT_IMAGE_KEY_BYTES == EVAL_SHA_CHARS + 1, "the kind is behind the hash");

static inline struct eval *
eval_of(lua_State *L)
{
	return (struct eval *)script_of(L);
}

/* ---- Running (eval.c) ---- */

/*
 * Runs the script, and answers it. A status is the store's, or STATUS_CANCELLED: the commands want
 * lanes that the job does not have.
 */
MUST_USE enum status eval_run(struct eval *e);

/*
 * SCRIPT KILL, or FUNCTION KILL: ends all scripts that are no functions, or all functions, that run
 * in this process. False: there is none.
 */
bool eval_kill_all(struct redis *r, bool functions);
/* Answers {name, command, duration_ms} of a function that runs; false, and nothing: none does. */
bool eval_tell_function(struct redis *r, struct reply *reply);

/* ---- redis.* (eval_api.c) ---- */

/* Pushes the table `redis`. */
void eval_open_redis(lua_State *L);
/* The same for bodies of libraries: registering functions, the log, the version. */
void eval_open_redis_to_load(lua_State *L, lua_CFunction registering);

/* ---- Errors (eval_error.c) ---- */

/* {err = text} on the stack; a text without "-" gets the code ERR. */
void eval_push_error(lua_State *L, const char *text);
/* What an error becomes where it is raised: {err=, source=, line=}. A handler of lua_pcall(). */
int eval_note_error(lua_State *L);
/* Marks the error on top of the stack, a table, as one that was counted (stats.h). */
void eval_mark_told(lua_State *L);
bool eval_error_is_told(lua_State *L);
/* pcall, as Redis has it: of an error that is a table, the text is caught. */
int eval_pcall(lua_State *L);

/* ---- Conversions (eval_reply.c) ---- */

/* Pushes what a command has answered. */
void eval_push_answer(lua_State *L, struct str answer);
/* Answers what is on top of the stack, and pops it. */
void eval_reply(lua_State *L, struct eval *e, int depth);

/* ---- The cache of a process (eval_cache.c) ---- */

struct eval_cache;

struct eval_cache *eval_cache_new(void);
void eval_cache_free(struct eval_cache *cache);

void eval_sha(struct str text, char ret[static EVAL_SHA_CHARS + 1]);
/* A copy of the text in the arena; `ptr` NULL: it has none, or the arena is full. */
struct str eval_cache_find(struct eval_cache *cache, struct str sha, struct arena *arena);
bool eval_cache_has(struct eval_cache *cache, struct str sha);
/* Adds it; the scripts that were used longest ago go where there is no room. */
MUST_USE enum status eval_cache_add(struct eval_cache *cache, const char *sha, struct str text);
void eval_cache_clear(struct eval_cache *cache);
size_t eval_cache_count(struct eval_cache *cache);
size_t eval_cache_bytes(struct eval_cache *cache);

#endif
