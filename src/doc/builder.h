/*
 * Builds a document from events, in one pass: its leaves, or its packed text.
 *
 *     doc_builder_start(b, &options);
 *     doc_builder_begin(b, DOC_OBJECT);
 *         doc_builder_key(b, name, DOC_NO_TEXT, 0);
 *         doc_builder_text(b, content, DOC_NO_TEXT);      or doc_builder_scalar(), or begin … end
 *     doc_builder_end(b, 0, &count);
 *     doc_builder_finish(b, &built);
 *
 * The builder knows no syntax: JSON text is one caller (explode.c). It keeps the rules of the tree:
 * members in the order of their encoded names, the last of each name, positions from 0, long texts
 * in pieces, the limit of a path.
 *
 * A caller that makes something else beside the leaves (the term of a revision's hash) passes
 * marks: where it stands when a member begins and when an object ends. doc_builder_dropped() lists
 * the stretches between marks that belong to members that a later one of the same name replaced.
 *
 * Only one thread uses a builder at a time. Its buffers stay from one document to the next; what
 * doc_builder_finish() returns lives in the arena.
 */
#ifndef FROND_DOC_BUILDER_H
#define FROND_DOC_BUILDER_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"
#include "doc/scalar.h"
#include "kv/kv.h"

enum doc_container {
	DOC_ARRAY,
	DOC_OBJECT,
};

struct doc_builder;

struct doc_builder_options {
	struct arena *arena;
	size_t prefix_bytes; /* of the key prefix that the leaves will get */
	size_t path_bytes;   /* the limit of prefix and encoded path together */
	size_t packed_bytes; /* 0: leaves; else packed text of so many bytes at most */
	size_t leaves_bytes; /* that leaves may take of a transaction; 0: no such limit */
	struct err *err;     /* or NULL */
};

struct doc_span {
	size_t begin;
	size_t end;
};

struct doc_built {
	struct str packed; /* ptr NULL: leaves */
	struct kv_pair *leaves;
	size_t count;
	size_t path_bytes; /* of the longest path, encoded; those of dropped members included */
};

/* For a caller that does not have the text of a value as the packed form writes it. */
#define DOC_NO_TEXT ((struct str){ NULL, 0 })

/* NULL when out of memory. */
struct doc_builder *doc_builder_new(void);
/*
 * Counts the builder's text, path and value as used by a part of a budget, which outlives the
 * builder. Before the first document.
 */
void doc_builder_set_part(struct doc_builder *b, struct budget_part *part);
void doc_builder_free(struct doc_builder *b); /* NULL is fine */

/* Forgets the last document, and the buffers that only a large one needs. */
void doc_builder_start(struct doc_builder *b, const struct doc_builder_options *options);

/*
 * Events. The errors of all of them: STATUS_PATH_TOO_LONG and STATUS_DOC_TOO_LARGE (a value that is
 * too long for a leaf and of a kind that is not split), naming the path and the limit; STATUS_LIMIT
 * when the arena is full, or the form is too long (doc_builder_is_too_long()); STATUS_NOMEM.
 * STATUS_INVALID for a kind that the packed form does not have.
 *
 * `written`: the text or name as the packed form writes it, quotes included, if the caller has it
 * and it outlives the object; else DOC_NO_TEXT.
 */
MUST_USE enum status doc_builder_begin(struct doc_builder *b, enum doc_container container);
MUST_USE enum status doc_builder_key(struct doc_builder *b, struct str name, struct str written,
				     size_t mark);
MUST_USE enum status doc_builder_text(struct doc_builder *b, struct str text, struct str written);
MUST_USE enum status doc_builder_scalar(struct doc_builder *b, const struct doc_scalar *s);
/* Packing only: a JSON number as it is to be written. */
MUST_USE enum status doc_builder_number_text(struct doc_builder *b, struct str text);
/* `*ret_count`: the members that remain, or the elements. */
MUST_USE enum status doc_builder_end(struct doc_builder *b, size_t mark, size_t *ret_count);

/* True if what failed is that the packed text, or the leaves, would take more than the options
 * allow. */
bool doc_builder_is_too_long(const struct doc_builder *b);

/* Stretches of the caller's marks, in no order; some may lie inside others. */
struct doc_span *doc_builder_dropped(struct doc_builder *b, size_t *ret_count);

/* After the outermost container's end. */
MUST_USE enum status doc_builder_finish(struct doc_builder *b, struct doc_built *ret);

#endif
