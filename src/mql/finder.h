/*
 * Finds members of documents by name, many times in the same documents: for a filter of thousands
 * of fields, or an update of as many. At first a search goes through the members one by one. Once
 * searches have passed many bytes so, a document that is searched a second time gets an index of
 * its members. So the work grows with the number of names plus the size of the documents, and not
 * with the product of the two.
 *
 * A plain value of one fiber. It borrows the documents, which must not change or move.
 */
#ifndef FROND_MQL_FINDER_H
#define FROND_MQL_FINDER_H

#include "base/arena.h"
#include "bson/bson.h"
#include "loop/step.h"

enum {
	/* In documents of fewer bytes each search goes through the members. */
	MQL_FINDER_SMALL_BYTES = 1024,
	/* As long as searches have gone through fewer bytes together, nothing is noted. */
	MQL_FINDER_FIRST_BYTES = 64 * 1024,
};

struct mql_finder_document;

struct mql_finder {
	struct arena *of; /* its limit and its part of a budget are those of the indexes */
	size_t passed_bytes;
	struct arena *own;                  /* NULL: there is nothing in it */
	struct mql_finder_document **slots; /* in `own`: by where documents lie */
	size_t slot_count;
	size_t count;
};

static inline void
mql_finder_init(struct mql_finder *f, struct arena *of)
{
	*f = (struct mql_finder){ .of = of };
}

void mql_finder_fini(struct mql_finder *f);

/* mql_finder_find() where it pays to note something. */
MUST_USE enum status mql_finder_look_up(struct mql_finder *f, struct str document, struct str name,
					struct bson_value *ret, bool *ret_there);

/*
 * Does what bson_find() does, and counts its steps. Where there is no memory for an index, it goes
 * through the members one by one.
 */
MUST_USE static inline enum status
mql_finder_find(struct mql_finder *f, struct str document, struct str name, struct bson_value *ret,
		bool *ret_there)
{
	if (document.len >= MQL_FINDER_SMALL_BYTES && f->passed_bytes >= MQL_FINDER_FIRST_BYTES)
		return mql_finder_look_up(f, document, name, ret, ret_there);
	f->passed_bytes += document.len;
	*ret_there = bson_find(document, name, ret);
	return step_count_bytes(document.len);
}

/* The same as bson_find_path(). */
MUST_USE enum status mql_finder_path(struct mql_finder *f, struct str document, struct str path,
				     struct bson_value *ret, bool *ret_there);

#endif
