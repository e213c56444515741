/*
 * The Erlang external term of a document's body, as CouchDB's term_to_binary({[{K, V}...]},
 * [{minor_version, 1}]) has it without the leading version byte 131: members in the order in which
 * they came, special members left out, of members with equal names the last one. MD5 of it is part
 * of a revision's hash.
 *
 * The writer gets the same events as the builder (builder.h). Only one thread uses a writer at a
 * time; it owns its buffer, which stays from one document to the next.
 */
#ifndef FROND_DOC_TERM_H
#define FROND_DOC_TERM_H

#include "doc/builder.h"
#include "doc/doc_int.h"
#include "doc/json.h"

/* A list that has begun. */
struct term_list {
	size_t at;      /* where it starts */
	bool all_bytes; /* it holds nothing but integers from 0 to 255, so far */
};

struct term_writer {
	struct buf out;
	size_t depth; /* lists that have begun, and one more for what the whole term is in */
	struct term_list lists[JSON_DEPTH_LIMIT + 2];
};

void term_init(struct term_writer *t);
void term_release(struct term_writer *t);

/* Forgets the last document, and the buffer if it is larger than `keep_bytes`. */
void term_clear(struct term_writer *t, size_t keep_bytes);

/* Where the writer stands: a mark for the builder. */
static inline size_t
term_mark(const struct term_writer *t)
{
	return t->out.len;
}

void term_begin(struct term_writer *t, enum doc_container container);
void term_key(struct term_writer *t, struct str name);
void term_text(struct term_writer *t, struct str text);
void term_null(struct term_writer *t);
void term_bool(struct term_writer *t, bool value);
void term_number(struct term_writer *t, const struct json_number *n);
/* `count`: the members that remain, or the elements. */
void term_end(struct term_writer *t, enum doc_container container, size_t count);

/*
 * The whole term in the arena, without the stretches that `dropped` lists, which is sorted for it.
 * ptr is NULL when the arena is full.
 */
struct str term_copy(const struct term_writer *t, struct doc_span *dropped, size_t count,
		     struct arena *arena);

#endif
