/*
 * A Lua script that runs: a Lua state and a stack of its own, which are as if they were made for
 * this run and dropped behind it, so that no script can leave anything for another one.
 *
 * The script is a coroutine of the fiber that runs it. On its stack nothing waits: what its
 * owner does for it, and each slice of instructions, leave to the fiber, which does what is wanted
 * and enters the script again. To end a script it is not entered again; so there is nothing that a
 * script could catch, and all of its memory is known and freed.
 */
#ifndef FROND_LUA_SCRIPT_H
#define FROND_LUA_SCRIPT_H

#include <lauxlib.h>
#include <lua.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/status.h"

enum {
	SCRIPT_BYTES = 256 * 1024,              /* of the text of a script */
	SCRIPT_MEMORY_BYTES = 64 * 1024 * 1024, /* that a script may use */
	SCRIPT_ROOM_BYTES = 64 * 1024,          /* of memory_bytes that it takes or gives at once */
	SCRIPT_STACK_BYTES = 4 * 1024 * 1024,   /* reserved; used as it is touched */
	SCRIPT_SLICE_INSTRUCTIONS = 1000,       /* between two looks at the time, at most */
	SCRIPT_SLICE_BYTES = 256 * 1024,        /* with more memory a slice has fewer of them */
	SCRIPT_STEP_BYTES = 64,                 /* that are moved for about what one step costs */
	SCRIPT_READ_BYTES = 256,                /* of a text that are compiled at once */
	SCRIPT_PATTERN_BYTES = 1024,            /* of a pattern of string.find and its kin */
	SCRIPT_MSGPACK_DEPTH = 1000,            /* of tables in what cmsgpack unpacks */
	SCRIPT_JSON_DEPTH = 1000,               /* of what cjson reads and writes */
};

/* What cjson's functions of settings have set. */
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

enum script_want {
	SCRIPT_WANTS_PAUSE,
	SCRIPT_WANTS_CALL, /* what struct script_owner's `call` does */
};

/* Why a script has to end, whatever its code does. */
enum script_end {
	SCRIPT_GOES_ON,
	SCRIPT_KILLED,
	SCRIPT_TOOK_LONG,
	SCRIPT_LACKS_MEMORY, /* memory_bytes has none for it now */
};

struct script;
struct script_image;
struct script_images;

/* What differs between those who run scripts. */
struct script_owner {
	/*
	 * On the script's stack: opens the libraries and compiles the text. What `body` needs it
	 * puts into Lua's registry. It is not called where there is an image of an earlier call
	 * with the same `key`, so it may depend on nothing else. If it has answered, because the
	 * text is wrong, it sets `is_over`, and `body` is not called. May be NULL.
	 */
	lua_CFunction prepare;
	/*
	 * On the script's stack, behind that: runs the text. The argument of both is a light
	 * userdata, the script. What they raise is an error that nobody has answered, such as one
	 * for which there is no memory.
	 */
	lua_CFunction body;
	/* On the script's stack, at its end: the body has raised an error, or there is no state. */
	void (*failed)(struct script *s);
	/* On the fiber, whenever the script has left: a status ends it. */
	enum status (*look)(struct script *s);
	/* On the fiber: the script has left with SCRIPT_WANTS_CALL. A status ends it. */
	enum status (*call)(struct script *s);
};

struct script_block;

/* Zeroed, with the members before the first line between them set, it is ready to be run. */
struct script {
	struct budget_part *part;     /* of memory_bytes, from which its memory is taken */
	uint64_t random;              /* what math.random() begins with */
	uint64_t limit_ms;            /* of work of the processor; 0: none */
	struct script_images *images; /* NULL: its state is made anew */
	struct str key;               /* of SCRIPT_IMAGE_KEY_BYTES: what `prepare` depends on */

	const struct script_owner *owner;
	lua_State *lua;
	lua_State *running; /* the coroutine of Lua's that runs, or `lua` */
	bool is_sliced;     /* its instructions are counted: it is not about to begin or to end */
	int slice;          /* instructions of a slice, by how long the last ones have taken */
	size_t slice_bytes; /* what it had when the last slice began */
	struct fiber *fiber;
	struct script_image *image; /* in whose region its state is; NULL: it is all in blocks */
	struct script_block *blocks;
	bool is_over;        /* `prepare` has answered; `body` is not called */
	size_t bytes;        /* of the region's blocks and the others */
	size_t listed_bytes; /* of the others */
	size_t room_bytes;   /* that are taken of `part` for the region and the list */
	size_t stack_bytes;  /* that are taken for its stack of C */
	bool lacks_memory;   /* there was no room for more: the script has ended */
	size_t work;         /* steps of libraries since the script was last left for them */
	struct script_json json;
	struct buf scratch; /* of what runs now: a text that is being made */
	enum script_want wants;
	uint64_t began_ns;
	uint64_t look_ns;    /* before then it cannot have used up its time */
	_Atomic bool killed; /* set by any thread: it ends when it is left next */
};

/* ---- Running (script.c): on the fiber ---- */

/*
 * Runs the script until its body has returned or failed, or `look` or `call` of the owner have
 * ended it with a status, which is returned; STATUS_CANCELLED also if nobody waits for the fiber
 * any more, STATUS_NOMEM if there is no stack. All of its memory is gone behind that.
 */
MUST_USE enum status script_run(struct script *s, const struct script_owner *owner);

/* Whether it must not go on, for a `look`. Asks a clock of the system where the time may be up. */
enum script_end script_must_end(struct script *s);

/* ---- What bodies and libraries use (state.c): on the script's stack ---- */

/* The script whose state this is. */
struct script *script_of(lua_State *L);

/* Leaves to the fiber, and returns when it is entered again. */
void script_leave(struct script *s, enum script_want wants);
/* Counts the instructions of the running coroutine from 0; they are those of a new slice. */
void script_begin_slice(struct script *s);
/* Another coroutine of Lua's runs from now on. */
void script_run_thread(struct script *s, lua_State *thread);
/* lua_pcall() of what is on the stack, with all of its instructions counted. */
int script_pcall(lua_State *L, int args, int results, int handler);
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

/* A new, open buffer for a text: at most SCRIPT_MEMORY_BYTES. */
struct buf *script_scratch(lua_State *L);
/* Pushes the text; raises an error if the buffer has failed. Returns 1. */
int script_push_scratch(lua_State *L);
/* Pushes a table with the functions. */
void script_new_library(lua_State *L, const luaL_Reg *functions, size_t count);

/*
 * There is no room in memory_bytes for what the script wants: leaves to the fiber, which does not
 * enter the script again. So there is nothing that the script could catch, and it has no effect.
 */
_Noreturn void script_end_for_memory(struct script *s);

/* ---- Memory (memory.c) ---- */

/* On the fiber: an image if there is one for the key, or an empty one. */
void script_memory_begin(struct script *s);
/*
 * A Lua state for the script, whose memory is counted, is taken of the script's part of
 * memory_bytes, and is in a region or a list. `*ret_prepared`: it is of an image, and `prepare`
 * need not run. NULL: there is none.
 */
lua_State *script_memory_open(struct script *s, bool *ret_prepared);
/* Notes the state as it is now for others to come, if all of it is in the region. */
void script_memory_note(struct script *s);
/* Frees all of it and gives the room back, whatever the state is at. */
void script_memory_free(struct script *s);

/* ---- The sandbox (sandbox.c) and other libraries ---- */

/* Opens the libraries, and leaves the table of the real globals on the stack. */
void script_open_libs(lua_State *L);
/* The library `name` of the globals on top of the stack cannot be changed any more. */
void script_close_library(lua_State *L, const char *name);
/* The same, and reading what it does not have is an error. */
void script_close_strictly(lua_State *L, const char *name);
/* From here on the globals are those of the table on top of the stack, which is popped. */
void script_protect_globals(lua_State *L);
/* The same later: also for functions that are there already. */
void script_replace_globals(lua_State *L);

/* Puts functions that count what they do into the table "coroutine" on top of the stack. */
void script_mend_coroutines(lua_State *L);
/* Puts functions on patterns into the table "string", which is on top of the stack. */
void script_mend_patterns(lua_State *L);
/* Push a library each. */
void script_open_json(lua_State *L);
void script_open_bit(lua_State *L);
void script_open_msgpack(lua_State *L);
void script_open_struct(lua_State *L);

#endif
