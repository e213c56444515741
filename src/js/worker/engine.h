/*
 * What the worker needs of something that runs JavaScript. jsc.c implements it; the fuzz target has
 * one that echoes. One thread uses an engine and its contexts.
 */
#ifndef FROND_JS_WORKER_ENGINE_H
#define FROND_JS_WORKER_ENGINE_H

#include "base/buf.h"
#include "js/bounds.h"

/* The functions of the context, in the order of the prelude's table. */
enum engine_op {
	ENGINE_MAP_BEGIN,
	ENGINE_MAP_DOCUMENT,
	ENGINE_REDUCE_BEGIN,
	ENGINE_REDUCE_GROUP,
	ENGINE_VALIDATE_BEGIN,
	ENGINE_VALIDATE_DOCUMENT,
	ENGINE_FILTER_BEGIN,
	ENGINE_FILTER_DOCUMENT,
	ENGINE_UPDATE,
	/* Those of mongo.js. */
	ENGINE_SCRIPT_BEGIN,
	ENGINE_SCRIPT_CALL,
	ENGINE_OPS,
};

/* Whose functions a context has, which decides what they see. */
enum engine_environment {
	ENGINE_COUCH, /* design documents (prelude.js) */
	ENGINE_MONGO, /* $where and its kin (mongo.js) */
};

enum {
	/* Texts of one call: the names of functions, and two more. */
	ENGINE_ARGS_MOST = JS_FUNCTIONS_MOST + 2,
};

struct engine_context;

/* How an engine reaches its user. */
struct engine_host {
	void (*log)(void *arg, struct str text);
	void *arg;
	uint64_t output_bytes; /* of one document */
};

struct engine {
	/*
	 * Makes a context of its own for a design document, or for functions of MongoDB's clients.
	 * The text has a NUL behind it. `host` outlives it. NULL if that cannot be: an answer that
	 * begins with '-' is then in `answer`.
	 */
	struct engine_context *(*load)(struct str design, enum engine_environment environment,
				       const struct engine_host *host, struct buf *answer);
	void (*unload)(struct engine_context *context);
	/*
	 * Calls a function of the context with texts, which have a NUL behind them. Replaces the
	 * content of `answer`, which src/js/worker/prelude.js tells the forms of. It always is one
	 * of an answer: what fails becomes one that begins with '-', as does a function that the
	 * context's environment does not have.
	 */
	void (*call)(struct engine_context *context, enum engine_op op, const struct str *args,
		     size_t count, struct buf *answer);
};

extern const struct engine engine_jsc;

#endif
