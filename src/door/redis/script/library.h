/*
 * Libraries of functions (FUNCTION, FCALL): texts in Lua whose bodies register functions. They lie
 * in a database of their own in Redis's name space, "functions", so they are written in
 * transactions, every process has the same ones, and backups, dumps and checks know them:
 *
 *     item "libraries", a hash: name of a library → (format, code, (name, flags, description)…)
 *     item "functions", a hash: name of a function, in lower case → name of its library
 *
 * No process keeps any of it: whoever calls a function reads both in its transaction.
 */
#ifndef FROND_DOOR_REDIS_SCRIPT_LIBRARY_H
#define FROND_DOOR_REDIS_SCRIPT_LIBRARY_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

struct budget_part;
struct call;
struct kv_store;
struct kv_tx;
struct lua_State;
struct timed;

enum {
	LIBRARY_FUNCTIONS = 1000, /* of one library */
	LIBRARY_COUNT = 1000,
	LIBRARY_NAME_BYTES = 512,         /* of a library, of a function */
	LIBRARY_DESCRIPTION_BYTES = 4096, /* of a function */
	LIBRARY_LOAD_MS = 500,            /* of work of the processor, to register functions */
};

enum library_flag {
	LIBRARY_NO_WRITES = 1 << 0,
	LIBRARY_ALLOW_OOM = 1 << 1,
	LIBRARY_ALLOW_STALE = 1 << 2,
	LIBRARY_NO_CLUSTER = 1 << 3,
	LIBRARY_CROSS_SLOT = 1 << 4,
};

struct library_function {
	struct str name;
	struct str description; /* ptr NULL: it has none */
	unsigned flags;         /* enum library_flag */
};

struct library {
	struct str name;
	struct str code; /* all of it, with the first line */
	struct library_function *functions;
	size_t count;
};

/* ---- Flags (library.c) ---- */

/* The bit of a flag of that name, in any case; 0: there is none. */
unsigned library_flag(struct str name);
/* The name of the flag whose bit is 1 << `at`; NULL: there are no more. */
const char *library_flag_name(unsigned at);

/* ---- Running bodies (library.c): on the script's stack ---- */

/*
 * Opens the libraries of a state whose text is the body of a library: functions are registered, and
 * nothing else of Redis's can be called. `learner` NULL: what is registered is kept for
 * library_find() only. An error handler lies at the bottom of the stack behind that.
 */
struct library_learner;
void library_open(struct lua_State *L, struct library_learner *learner);
/* Runs the body of the code. 0, or Lua's code and an error on top of the stack. */
int library_run(struct lua_State *L, struct str code);
/* No function is registered any more, and those that are see what functions see. */
void library_close(struct lua_State *L);
/* Pushes the function of that name, or nil. */
void library_find(struct lua_State *L, struct str function);

/* ---- Learning (library.c) ---- */

/*
 * Runs the code once and tells what it registers: texts are copied into the arena, but the code.
 * Any thread, and within a transaction. STATUS_INVALID, explained in Redis's words, for what is
 * wrong with the code; STATUS_NOMEM, STATUS_LIMIT, STATUS_CANCELLED.
 */
MUST_USE enum status library_learn(struct str code, struct budget_part *part, struct arena *arena,
				   struct library *ret, struct err *err);

/* ---- What is stored (library_store.c) ---- */

/* The libraries as a transaction sees them. */
struct libraries {
	struct timed *t;     /* of their database; NULL: it is not there, so there are none */
	struct arena *arena; /* all that is read lies here */
	struct err *err;     /* what is wrong with a library that is stored */
};

/* Those of a call, in its transaction (library_call.c). */
MUST_USE enum status libraries_of_call(struct call *c, struct libraries *ret);
/* The same for one that is about to write a library: the database is made if it is not there. */
MUST_USE enum status libraries_to_write(struct call *c, struct libraries *ret);

/* Looks for a library; `ret->name.ptr` is NULL if there is none. */
MUST_USE enum status library_get(const struct libraries *libs, struct str name,
				 struct library *ret);
/* The library that has the function, in any case, and which of its functions that is; likewise. */
MUST_USE enum status library_of(const struct libraries *libs, struct str function,
				struct library *ret, size_t *ret_at);

/*
 * True if there is such a function and it says `no-writes`, by a transaction of its own: for those
 * who ask before a call. False also if that cannot be read.
 */
bool library_says_no_writes(struct kv_store *store, struct str function, struct arena *arena);

enum library_policy {
	LIBRARY_ADD,     /* none of these names may be there */
	LIBRARY_REPLACE, /* in the place of those with the same names */
	LIBRARY_FLUSH,   /* in the place of all that there are */
};

/*
 * Whether the libraries can be written together. STATUS_EXISTS, explained in Redis's words: a name
 * of theirs or of a function is taken, or there twice; STATUS_LIMIT, explained: too many. Nothing
 * is written.
 */
MUST_USE enum status library_check(const struct libraries *there, const struct library *libs,
				   size_t count, enum library_policy policy, struct err *err);
/* Writes libraries together that were checked so; the database is there. */
MUST_USE enum status library_write(const struct libraries *to, const struct library *libs,
				   size_t count, enum library_policy policy);
/* STATUS_NOT_FOUND: there is none. */
MUST_USE enum status library_delete(const struct libraries *from, struct str name);
MUST_USE enum status library_flush(const struct libraries *libs);

/* All libraries, in the order of a hash of their names. */
MUST_USE enum status library_all(const struct libraries *libs, struct library **ret,
				 size_t *ret_count);
MUST_USE enum status library_counts(const struct libraries *libs, uint64_t *ret_libraries,
				    uint64_t *ret_functions);

/* Is told of a library or a function that does not fit, and of what is wrong with it. */
typedef void library_found(void *arg, struct str name, const char *text);
/*
 * Compares the libraries with the index of their functions, both ways, in a transaction that reads.
 * STATUS_NEWER for a library that a newer frond has written; failures of reads.
 */
MUST_USE enum status library_verify(struct kv_tx *tx, library_found *found, void *arg,
				    struct err *err);

#endif
