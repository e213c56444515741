/*
 * CouchDB's selectors (Mango, 3.5): compiled once, matched against many documents.
 *
 * A selector is a tree of conditions. Compiling normalises it as CouchDB does, because that decides
 * what a selector means: negations are pushed down to the conditions, and a condition on a field
 * that a document does not have is false, negated or not. So {"$not":{"a":1}} matches documents
 * whose `a` is not 1, and only {"$exists":false} matches those without the field. Inside
 * $elemMatch, $allMatch and $keyMapMatch CouchDB does not push negations down, and $not is the
 * opposite of what it contains; the same holds here.
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
	SELECTOR_DEPTH = 64,       /* the depth to which operators and fields may be nested */
	SELECTOR_PATH_NAMES = 128, /* names in the path of one field */
	SELECTOR_CONDITIONS = 10000,
	SELECTOR_FIELDS = 1000, /* fields in one list of fields */
	SELECTOR_REGEX_BYTES = 10000,
	SELECTOR_REGEX_NESTING = 100,
	/*
	 * The limits for matching one expression against one string. Past them the string does not
	 * match. A string of n bytes may take SELECTOR_REGEX_STEPS + n * SELECTOR_REGEX_BYTE_STEPS.
	 */
	SELECTOR_REGEX_STEPS = 250000,
	SELECTOR_REGEX_BYTE_STEPS = 16,
	SELECTOR_REGEX_KIBIBYTES = 1024,
};

/*
 * The operators that are conditions on a value: a constant, the name, and the operator that is
 * true where it is not; the operator itself if it has none. From ELEM_MATCH on, the argument is a
 * selector.
 */
#define SELECTOR_OPERATORS(OPERATOR)                                                               \
	OPERATOR(LT, "$lt", GTE)                                                                   \
	OPERATOR(LTE, "$lte", GT)                                                                  \
	OPERATOR(EQ, "$eq", NE)                                                                    \
	OPERATOR(NE, "$ne", EQ)                                                                    \
	OPERATOR(GTE, "$gte", LT)                                                                  \
	OPERATOR(GT, "$gt", LTE)                                                                   \
	OPERATOR(IN, "$in", NIN)                                                                   \
	OPERATOR(NIN, "$nin", IN)                                                                  \
	OPERATOR(EXISTS, "$exists", EXISTS)                                                        \
	OPERATOR(TYPE, "$type", TYPE)                                                              \
	OPERATOR(SIZE, "$size", SIZE)                                                              \
	OPERATOR(MOD, "$mod", MOD)                                                                 \
	OPERATOR(REGEX, "$regex", REGEX)                                                           \
	OPERATOR(BEGINS_WITH, "$beginsWith", BEGINS_WITH)                                          \
	OPERATOR(ALL, "$all", ALL)                                                                 \
	OPERATOR(ELEM_MATCH, "$elemMatch", ELEM_MATCH)                                             \
	OPERATOR(ALL_MATCH, "$allMatch", ALL_MATCH)                                                \
	OPERATOR(KEY_MAP_MATCH, "$keyMapMatch", KEY_MAP_MATCH)

/* The name that CouchDB gives an error in a selector, for answers that carry it. */
enum selector_error {
	SELECTOR_ERROR_NONE, /* the status alone says what is wrong */
	SELECTOR_ERROR_BAD_ARG,
	SELECTOR_ERROR_INVALID_OPERATOR,
	SELECTOR_ERROR_NOT_SUPPORTED,
	SELECTOR_ERROR_INVALID_SELECTOR,
	SELECTOR_ERROR_INVALID_SELECTOR_JSON,
	SELECTOR_ERROR_INVALID_FIELD_NAME,
	SELECTOR_ERROR_INVALID_FIELDS,
	SELECTOR_ERROR_INVALID_FIELD,
};

/* Returns the name, such as "bad_arg", or "" for SELECTOR_ERROR_NONE. The text is static. */
const char *selector_error_name(enum selector_error error);

struct selector;

/*
 * Compiles the JSON text of a selector into the arena of `w`. Returns STATUS_INVALID with the
 * reason that CouchDB gives, and *ret_error (unless NULL) names the error; the errors of the JSON
 * reader; STATUS_LIMIT, explained, past one of the limits above or when the arena is full; or the
 * failures of index_count().
 */
MUST_USE enum status selector_compile(struct str text, struct index_work *w, struct selector **ret,
				      enum selector_error *ret_error, struct err *err);

/* A member of a document that has no leaf: _id, _rev, _deleted, _attachments. */
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
 * *ret is true if the document matches. The arena of `w` holds after the call what it held before.
 * The steps are at most proportional to n log m, where n is the size of the document and m that of
 * the selector, for each condition that looks at all of the document. Returns STATUS_LIMIT when the
 * arena is full, STATUS_NOMEM, STATUS_CORRUPT, STATUS_UNAVAILABLE when the data of ICU cannot be
 * read, or the failures of index_count().
 */
MUST_USE enum status selector_match(const struct selector *s, const struct selector_doc *doc,
				    struct index_work *w, bool *ret);

/*
 * The names of the document's members that the selector looks at, each once and in byte order: no
 * other member changes whether a document matches. `*ret_whole` is true if it looks at the document
 * as a whole, too. In the arena. STATUS_LIMIT when that is full.
 */
MUST_USE enum status selector_members(const struct selector *s, struct arena *arena,
				      struct str **ret, size_t *ret_count, bool *ret_whole);

/*
 * Cuts the first name off a field's name: "a.b\\.c" has the names a and b.c. The name, without its
 * escapes, is in the arena. `*ret_more` is false behind the last one. STATUS_INVALID for an empty
 * name; STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status selector_name_cut(struct str *field, struct arena *arena, struct str *ret,
				       bool *ret_more);

/* ---- Lists of fields: the parts of a document that are shown ---- */

struct selector_fields;

/*
 * Compiles a JSON array of field names. *ret is NULL for an empty array, which stands for the whole
 * document. The errors are those of selector_compile().
 */
MUST_USE enum status selector_fields_compile(struct str text, struct index_work *w,
					     struct selector_fields **ret,
					     enum selector_error *ret_error, struct err *err);

/* The names of the document's members that the fields lie in, as selector_members(). */
MUST_USE enum status selector_fields_members(const struct selector_fields *fields,
					     struct arena *arena, struct str **ret,
					     size_t *ret_count);

/* Appends the fields that the document has, as a JSON object. */
MUST_USE enum status selector_fields_write(const struct selector_fields *fields,
					   const struct selector_doc *doc, struct index_work *w,
					   struct buf *out);

#endif
