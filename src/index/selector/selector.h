/*
 * CouchDB's selectors (Mango, 3.5): compiled once, matched against many documents.
 *
 * A selector is a tree of conditions. Compiling normalises it as CouchDB does, which is part of
 * what a selector means: negations are pushed down to the conditions, and a condition on a field
 * that a document does not have is false, negated or not ({"$not":{"a":1}} wants an `a` that is not
 * 1); only {"$exists":false} wants no field. Inside $elemMatch, $allMatch and $keyMapMatch CouchDB
 * does not push, and $not is simply the opposite; so it is here.
 *
 * Matching reads the leaves of the fields that are named and builds no tree. Values compare by view
 * collation (index/collate.h); the document's own _id compares byte by byte, as ids are ordered.
 *
 * Where this differs from CouchDB: $nor works inside of $elemMatch; $mod by 0 is refused when the
 * selector is read; divisors and remainders have 64 bits; $text, which needs a full-text index, is
 * not supported; members of objects are compared in key order.
 *
 * A compiled selector lives in its arena, is never changed and may be matched by several threads.
 */
#ifndef FROND_INDEX_SELECTOR_SELECTOR_H
#define FROND_INDEX_SELECTOR_SELECTOR_H

#include "index/leaf.h"

enum {
	SELECTOR_TEXT_BYTES = 1 << 20,
	SELECTOR_DEPTH = 64,       /* operators and fields inside each other */
	SELECTOR_PATH_NAMES = 128, /* names in the path of one field */
	SELECTOR_CONDITIONS = 10000,
	SELECTOR_FIELDS = 1000, /* in one list of fields */
	SELECTOR_REGEX_BYTES = 10000,
	SELECTOR_REGEX_NESTING = 100,
	/* What one expression may cost for one string; past it the string does not match. */
	SELECTOR_REGEX_STEPS = 1000000,
	SELECTOR_REGEX_KIBIBYTES = 1024,
};

/* What is wrong with a selector: CouchDB's names, for answers that carry them. */
enum selector_error {
	SELECTOR_ERROR_NONE, /* the status speaks for itself */
	SELECTOR_ERROR_BAD_ARG,
	SELECTOR_ERROR_INVALID_OPERATOR,
	SELECTOR_ERROR_NOT_SUPPORTED,
	SELECTOR_ERROR_INVALID_SELECTOR,
	SELECTOR_ERROR_INVALID_SELECTOR_JSON,
	SELECTOR_ERROR_INVALID_FIELD_NAME,
	SELECTOR_ERROR_INVALID_FIELDS,
	SELECTOR_ERROR_INVALID_FIELD,
};

/* "bad_arg"; "" for SELECTOR_ERROR_NONE. Static. */
const char *selector_error_name(enum selector_error error);

struct selector;

/*
 * Compiles a selector's JSON text. Errors: STATUS_INVALID with the reason that CouchDB gives and
 * *ret_error (may be NULL) saying which; the JSON reader's; STATUS_LIMIT, explained, past one of
 * the limits above, or when the arena is full.
 */
MUST_USE enum status selector_compile(struct str text, struct arena *arena, struct selector **ret,
				      enum selector_error *ret_error, struct err *err);

/* A member of a document that is no leaf: _id, _rev, _deleted, _attachments. */
struct selector_special {
	struct str name;
	struct leaf_value value;
};

/* A document to match: its leaves, as struct rev_doc or struct doc has them, and the specials. */
struct selector_doc {
	const struct kv_pair *leaves;
	size_t count;
	const struct selector_special *specials;
	size_t specials_count;
};

/*
 * *ret: whether the document matches. `scratch` is as it was afterwards. STATUS_LIMIT when it is
 * full, STATUS_NOMEM, STATUS_CORRUPT, STATUS_UNAVAILABLE (ICU).
 */
MUST_USE enum status selector_match(const struct selector *s, const struct selector_doc *doc,
				    struct arena *scratch, bool *ret);

/* ---- Lists of fields: what of a document is shown ---- */

struct selector_fields;

/*
 * Compiles a JSON array of field names; *ret is NULL for an empty one, which means the whole
 * document. Errors as above.
 */
MUST_USE enum status selector_fields_compile(struct str text, struct arena *arena,
					     struct selector_fields **ret,
					     enum selector_error *ret_error, struct err *err);

/* Appends the fields that the document has, as a JSON object. */
MUST_USE enum status selector_fields_write(const struct selector_fields *fields,
					   const struct selector_doc *doc, struct buf *out);

#endif
