/*
 * Functions in JavaScript that clients send: $where, $function, $accumulator.
 *
 * Running them is done by whoever has set mql.scripts; here they are compiled, and their arguments
 * and results become text and values. Values cross as bson/tagged.h writes them.
 *
 * A call takes a way to another process, so calls are made in batches where many documents are at
 * hand: each document is evaluated up to its first call, the calls of all of them are made at once,
 * and the documents are evaluated again with the answers (struct mql_ahead). An evaluation has no
 * effects, so doing it again changes nothing.
 */
#ifndef FROND_MQL_SCRIPT_H
#define FROND_MQL_SCRIPT_H

#include "mql/expr/expr.h"

enum {
	MQL_SCRIPT_BYTES = 64 << 20, /* of the text of one call's arguments, or of its result */
	MQL_AHEAD_CALLS = 8, /* of one document that are made in batches; later ones are not */
	MQL_AHEAD_DOCUMENTS = 256, /* of a batch */
	MQL_AHEAD_BYTES = 1 << 20, /* of documents: a batch that has so many takes no further one */
	/* Of a batch, answers included: behind one that has more, batches grow no further. */
	MQL_AHEAD_MEMORY = 4 << 20,
	/* Failures, as MongoDB numbers them. */
	MQL_SCRIPT_FAILED = 139,
	MQL_SCRIPT_NO_WHERE = 6108304,
	MQL_SCRIPT_NO_ENGINE = 31264,
	MQL_SCRIPT_INTERRUPTED = 11601,
};

enum mql_script_kind {
	MQL_SCRIPT_WHERE, /* an ask is a document; the result is true or false */
	MQL_SCRIPT_CALL,  /* an array of arguments; a value */
	/* {"i": arguments of init} or {"s": state}, {"a": arguments, "f": it ends}; a state */
	MQL_SCRIPT_ACCUMULATE,
};

/* One function, or several that belong together. Immutable. */
struct mql_script {
	enum mql_script_kind kind;
	struct str text; /* a JSON object of sources by name */
};

struct mql_script_result {
	struct str text;
	/* The function threw, unless the name is empty: "TypeError", and a reason as JSON text. */
	struct str error_name;
	struct str error_reason;
};

/* Who runs functions. */
struct mql_scripts {
	/* Fails where none is run, and says why. */
	enum status (*check)(const struct mql_scripts *s, struct err *err);
	/*
	 * Calls a function once for each ask. What a function throws is its result; a failure that
	 * is not one document's fails the whole, with mql_script_fail(). Results lie in q->arena.
	 */
	enum status (*run)(const struct mql_scripts *s, struct mql *q,
			   const struct mql_script *script, const struct str *asks, size_t count,
			   struct mql_script_result *ret);
};

/* MQL_SCRIPT_FAILED with "name: reason"; the reason is JSON text. */
MUST_USE enum status mql_script_fail(struct mql *q, struct str name, struct str reason_json);

/* ---- Compiling ---- */

struct mql_script_source {
	const char *name;
	struct str source;
};

/* Fails with `code` where no functions are run, and with MQL_BAD_VALUE inside a validator. */
MUST_USE enum status mql_script_new(struct mql *q, enum mql_script_kind kind, int code,
				    const struct mql_script_source *sources, size_t count,
				    const struct mql_script **ret);

/* True for a string and for code, which sources may be. */
static inline bool
mql_is_source(const struct bson_value *v)
{
	return v->type == BSON_STRING || v->type == BSON_CODE;
}

/* The value of an expression that is to be a source, if that is constant. */
MUST_USE enum status mql_expr_source(struct mql *q, const struct bson_value *v,
				     const struct mql_scope *scope, bool *ret_constant,
				     struct bson_value *ret);

/* ---- Calls ---- */

/* The text of a value, in q->arena. */
MUST_USE enum status mql_script_text(struct mql *q, const struct bson_value *v, bool ints,
				     struct str *ret);
/* The value that a result is, in q->arena. */
MUST_USE enum status mql_script_value(struct mql *q, struct str text, struct bson_value *ret);

/* Calls a script with an ask; the result's text is in q->arena. */
MUST_USE enum status mql_script_call(const struct mql_script *s, struct mql *q, struct str ask,
				     struct str *ret);
/* Whether $where lets a document through. */
MUST_USE enum status mql_script_where(const struct mql_script *s, struct mql *q,
				      struct str document, bool *ret);

/* ---- Batches ---- */

/* What is known ahead for an evaluation: the answers to its first calls. */
struct mql_ahead {
	struct arena *arena; /* asks and answers lie there */
	struct {
		const struct mql_script *script;
		struct mql_script_result result;
	} known[MQL_AHEAD_CALLS];
	size_t count;
	size_t used;
	const struct mql_script *script; /* the call that it waits for; NULL: none */
	struct str ask;
	bool done;
};

/*
 * Evaluates `count` items, with q->ahead set to an item of `aheads`, as often as it takes. `eval`
 * keeps an item's result; it is called again for one whose calls were not known. `*ret_done` items
 * were evaluated when this returns: all of them after STATUS_OK, and after a failure those in front
 * of the item that failed.
 */
MUST_USE enum status mql_ahead_run(struct mql *q, struct mql_ahead *aheads, size_t count,
				   enum status (*eval)(void *arg, struct mql *q, size_t i),
				   void *arg, size_t *ret_done);

/*
 * Items that are read ahead, and evaluated together. The first batch is one item, so that whoever
 * wants no more calls no more; later ones are larger. Whoever has one reads its fields, and keeps
 * `count`, `at` and `ended` right; items and what they refer to lie in its arena.
 */
struct mql_batch {
	struct arena *arena; /* owned; NULL: there are no batches */
	size_t count;
	size_t at;          /* of the item that is given next */
	size_t want;        /* items of the next batch */
	bool ended;         /* nothing comes behind the items */
	enum status failed; /* behind the items */

	/* Private. */
	struct mql_ahead *aheads;
	int code;
	struct err err;
};

/* `bytes` limits the memory of a batch, which is counted in `part`. STATUS_NOMEM. */
MUST_USE enum status mql_batch_init(struct mql_batch *b, size_t bytes, struct budget_part *part);
void mql_batch_fini(struct mql_batch *b);

/*
 * Begins a batch without items, and returns room for `want` of so many bytes, cleared. NULL: there
 * is no memory for them.
 */
void *mql_batch_begin(struct mql_batch *b, size_t item_bytes);

/*
 * Reads items of a batch that has begun, until there are as many as are wanted, MQL_AHEAD_BYTES of
 * documents, or no more. `read` puts the next document into item `b->count`, and says how many
 * bytes the document has; STATUS_NOT_FOUND: there is none. Any other failure is kept in `failed`.
 */
void mql_batch_read(struct mql_batch *b, enum status (*read)(void *arg, size_t *ret_bytes),
		    void *arg);

/*
 * Evaluates the items as mql_ahead_run() does. A failure of one item, or of mql_batch_read(), is
 * kept with its code and text: the caller gives the items in front of it first, and reports it
 * then, by mql_batch_failure(). If the store has failed, `count` is 0, so that no item is given.
 */
void mql_batch_run(struct mql_batch *b, struct mql *q,
		   enum status (*eval)(void *arg, struct mql *q, size_t i), void *arg);
/* Gives `q` the code and the text again, and returns `failed`. */
MUST_USE enum status mql_batch_failure(const struct mql_batch *b, struct mql *q);

#endif
