/*
 * A Lua script that runs: a Lua state and a stack of its own, made for one run and then dropped, so
 * that no script can leave anything for another one.
 *
 * The script is a coroutine of the fiber that runs the transaction. On the script's stack nothing
 * waits: a call of a command and each slice of instructions leave to the fiber, which does what is
 * wanted and enters the script again. To end a script it is not entered again; so there is nothing
 * that a script could catch, and all of its memory is in a list that is freed.
 */
#ifndef FROND_DOOR_REDIS_SCRIPT_SCRIPT_H
#define FROND_DOOR_REDIS_SCRIPT_SCRIPT_H

#include <lauxlib.h>
#include <lua.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "door/redis/acl/command.h"

enum {
	SCRIPT_BYTES = 256 * 1024,              /* of the text of a script */
	SCRIPT_MEMORY_BYTES = 64 * 1024 * 1024, /* that a script may use */
	SCRIPT_ROOM_BYTES = 64 * 1024,          /* of memory_bytes that it takes or gives at once */
	SCRIPT_CACHE_ENTRIES = 4096,            /* scripts that EVALSHA finds */
	SCRIPT_CACHE_BYTES = 32 * 1024 * 1024,  /* of their texts together */
	SCRIPT_STACK_BYTES = 4 * 1024 * 1024,   /* reserved; used as it is touched */
	SCRIPT_SLICE_INSTRUCTIONS = 1000,       /* between two looks at the time, at most */
	SCRIPT_SLICE_BYTES = 256 * 1024,        /* with more memory a slice has fewer of them */
	SCRIPT_STEP_BYTES = 64,                 /* that are moved for about what one step costs */
	SCRIPT_READ_BYTES = 256,                /* of a text that are compiled at once */
	SCRIPT_PATTERN_BYTES = 1024,            /* of a pattern of string.find and its kin */
	SCRIPT_REPLY_DEPTH = 128,               /* of tables in what a script returns */
	SCRIPT_MSGPACK_DEPTH = 1000,            /* of tables in what cmsgpack unpacks */
	SCRIPT_JSON_DEPTH = 1000,               /* of what cjson reads and writes */
	SCRIPT_SHA_CHARS = 40,
};

/* What a script's first line says: "#!lua flags=no-writes". */
struct script_flags {
	size_t shebang_bytes;
	bool no_writes;
};

struct script_json {
	bool sparse_convert;
	int sparse_ratio;
	int sparse_safe;
	int encode_depth;
	int decode_depth;
	int precision;
	int encode_invalid; /* 0: an error, 1: as they are, 2: null */
	bool decode_invalid;
};

struct script_block;

enum script_want {
	SCRIPT_WANTS_PAUSE,
	SCRIPT_WANTS_CALL,
};

struct script {
	struct call *call; /* of EVAL */
	struct str text;
	char sha[SCRIPT_SHA_CHARS + 1];
	struct script_flags flags;
	bool read_only;
	bool compiles_only; /* SCRIPT LOAD */
	const struct str *keys;
	size_t key_count;
	const struct str *args;
	size_t arg_count;

	lua_State *lua;
	lua_State *running; /* the coroutine of Lua's that runs, or `lua` */
	bool is_sliced;     /* its instructions are counted: it is not about to begin or to end */
	int slice;          /* instructions of a slice, by how long the last ones have taken */
	size_t slice_bytes; /* what it had when the last slice began */
	struct fiber *fiber;
	struct script_block *blocks;
	size_t bytes;       /* of the blocks */
	size_t room_bytes;  /* that are taken for them of the client's part of memory_bytes */
	bool lacks_memory;  /* there was no room for more: the script has ended */
	size_t work;        /* steps of libraries since the script was last left for them */
	struct reply reply; /* of EVAL, in the client's buffer */
	bool is_sound;      /* its text is Lua */
	int resp;           /* of redis.call */
	unsigned db;
	uint64_t random;
	struct script_json json;
	struct buf scratch; /* of what runs now: a text that is being made */
	struct buf answer;  /* of a command */

	enum script_want wants;
	struct call inner;
	struct reply inner_reply;
	uint64_t began_ns;
	uint64_t limit_ms; /* of work of the processor; 0: none */
	uint64_t look_ns;  /* before then it cannot have used it up */
	struct err err;    /* of SCRIPT LOAD, which has no transaction that could tell */

	/* The list of scripts that run has a lock. */
	_Atomic bool killed;
	struct script *next;
	struct script **link;
};

/* ---- Running (script.c) ---- */

/*
 * Runs the script, and answers it. A status is the store's, or STATUS_CANCELLED: the commands want
 * lanes that the job does not have.
 */
MUST_USE enum status script_run(struct script *s);

/* SCRIPT KILL: false if there is none. */
bool script_kill_all(struct redis *r);

/* ---- What libraries use (script_state.c): on the script's stack ---- */

/* The script whose state this is. */
struct script *script_of(lua_State *L);

/* Leaves to the fiber, and returns when it is entered again. */
void script_leave(struct script *s, enum script_want wants);
/* Counts the instructions of the running coroutine from 0; they are those of a new slice. */
void script_begin_slice(struct script *s);
/* Another coroutine of Lua's runs from now on. */
void script_run_thread(struct script *s, lua_State *thread);
/*
 * Counts what a library does: a step costs about as much as an instruction of Lua's. After a slice
 * of them it leaves, and others have their turn; a script that is over is not entered again. So
 * what a library holds meanwhile has to be Lua's, or the struct's.
 */
void script_work(lua_State *L, size_t steps);

/*
 * Compiles a text, and leaves its function or an error on the stack: 0 or Lua's code. It leaves to
 * the fiber between pieces of the text: some texts take Lua's compiler a time that grows with the
 * square of their length. A text that was compiled already could break the interpreter, and is an
 * error.
 */
int script_compile(lua_State *L, struct str text, const char *name);

/* {err = text} on the stack; a text without "-" gets the code ERR. */
void script_push_error(lua_State *L, const char *text);
/* Marks the error on top of the stack, a table, as one that was counted (stats.h). */
void script_mark_told(lua_State *L);
bool script_error_is_told(lua_State *L);
/* A new, open buffer for a text: at most SCRIPT_MEMORY_BYTES. Raises an error if it has failed. */
struct buf *script_scratch(lua_State *L);
int script_push_scratch(lua_State *L);
/* Pushes a table with the functions. */
void script_new_library(lua_State *L, const luaL_Reg *functions, size_t count);

/*
 * There is no room in memory_bytes for what the script wants: leaves to the fiber, which does not
 * enter the script again. So there is nothing that the script could catch, and it has no effect.
 */
_Noreturn void script_end_for_memory(struct script *s);

/* ---- Memory (script_memory.c) ---- */

/*
 * A Lua state for the script, whose memory is counted, is taken of the client's part of
 * memory_bytes, and is in a list. NULL: there is none.
 */
lua_State *script_memory_open(struct script *s);
/* Frees all of it and gives the room back, whatever the state is at. */
void script_memory_free(struct script *s);

/* ---- The sandbox (script_lib.c), redis.* (script_api.c), and other libraries ---- */

/* Opens the libraries, and leaves the table of the real globals on the stack. */
void script_open_libs(lua_State *L);
/* From here on the globals are those of the table on top of the stack, which is popped. */
void script_protect_globals(lua_State *L);

void script_open_redis(lua_State *L);
/* Puts functions that count what they do into the table "coroutine" on top of the stack. */
void script_mend_coroutines(lua_State *L);
void script_open_json(lua_State *L);
void script_open_bit(lua_State *L);
void script_open_msgpack(lua_State *L);
void script_open_struct(lua_State *L);
/* Puts functions on patterns into the table "string", which is on top of the stack. */
void script_mend_patterns(lua_State *L);

/* ---- Conversions (script_reply.c) ---- */

/* Pushes what a command has answered. */
void script_push_answer(lua_State *L, struct str answer);
/* Answers what is on top of the stack, and pops it. */
void script_reply(lua_State *L, struct script *s, int depth);

/* ---- The cache of a process (script_cache.c) ---- */

struct script_cache;

struct script_cache *script_cache_new(void);
void script_cache_free(struct script_cache *cache);

void script_sha(struct str text, char ret[static SCRIPT_SHA_CHARS + 1]);
/* A copy of the text in the arena; `ptr` NULL: it has none, or the arena is full. */
struct str script_cache_find(struct script_cache *cache, struct str sha, struct arena *arena);
bool script_cache_has(struct script_cache *cache, struct str sha);
/* Adds it; the scripts that were used longest ago go where there is no room. */
MUST_USE enum status script_cache_add(struct script_cache *cache, const char *sha, struct str text);
void script_cache_clear(struct script_cache *cache);
size_t script_cache_count(struct script_cache *cache);

#endif
