/*
 * Sets and takes out single values of a document that lies in leaves, without reading it.
 *
 * What is read and written does not depend on the size of the document: a few keys around the
 * place, all of them asked for at once, and the leaves that change. Only taking an element out of
 * the middle of an array reads and writes the elements behind it, because their positions change.
 *
 * A place is an encoded path, as leaves have it: a tuple of members' names (texts) and positions
 * (integers). Its first element is a member of the document, which is always an object. Empty
 * containers are kept right: the leaf of one goes when something is set in it, and comes when the
 * last of its children is taken out. An empty document has no leaf, and its root key is the
 * caller's.
 *
 * Everything goes through the caller's transaction, whose reads make it conflict with whoever
 * changes the same place. Packed documents have no leaves: patch.h changes those.
 */
#ifndef FROND_DOC_EDIT_H
#define FROND_DOC_EDIT_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"
#include "kv/kv.h"

enum doc_set_mode {
	DOC_SET_HERE,   /* the container must be there */
	DOC_SET_CREATE, /* containers that are missing on the way are made, as the path has them */
};

/*
 * Puts a value at `path` below the root key `root`, in place of what is there. `leaves` are the
 * value's own, their keys the encoded paths below `path` (empty for a scalar); none are an empty
 * object. A position must be one of the array's elements or the one behind the last.
 *
 * It reads at most one key for the container, and one more for each container above it where that
 * one is missing: one round trip, or two. A member of the document itself takes no read at all.
 *
 * Errors, which name the path: STATUS_NOT_FOUND if there is no container, or the array is too
 * short; STATUS_INVALID if what is there is no container of that kind, or for a path without
 * elements; STATUS_PATH_TOO_LONG, STATUS_JSON_DEPTH; STATUS_LIMIT when the arena is full; those of
 * the transaction. Nothing is written after an error.
 */
MUST_USE enum status doc_set(struct kv_tx *tx, struct str root, struct str path,
			     const struct kv_pair *leaves, size_t count, enum doc_set_mode mode,
			     struct arena *arena, struct err *err);

/*
 * Takes the value at `path` out, with everything below it; `*ret_found` is false if there is none,
 * and then nothing happens. Elements behind one that is taken out of an array move up.
 *
 * It reads at most three keys, in one round trip, and for an element the leaves of the elements
 * behind it. Errors as doc_set(), but that nothing there is no error.
 */
MUST_USE enum status doc_unset(struct kv_tx *tx, struct str root, struct str path,
			       struct arena *arena, bool *ret_found, struct err *err);

#endif
