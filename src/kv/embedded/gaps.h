/*
 * Stretches of keys with nothing in them, so that reads need not step over keys that were deleted.
 *
 * RocksDB keeps a deleted key, and that it was deleted, until tables are merged. Whoever reads the
 * first pair of a range steps over all of them. A queue is the worst case: each message that is
 * taken leaves its key in front of those that are still there. So a read that had to search for the
 * first pair (or the last) of a range leaves here that there is nothing in front of it, and the
 * next one begins there.
 *
 * == Why no reader misses a pair ==
 *
 * A gap [begin, end) has a version: at that version, and at all later ones, nothing is in it. A
 * write of a key in it makes it smaller, so that the key is not in it any more. As with single
 * pairs (recent.h), the thread that owns the committer enters a batch by gaps_write() when RocksDB
 * has it and before its version is published. A reader at S uses a gap only if its version is at
 * most S: writes up to S were published before the reader took S, so they have been entered.
 *
 * A gap has a name, with which all its keys begin: an entity's (embedded_int.h), if the range is
 * within one, else that of a subspace of a database. The first is a list of Redis's clients, the
 * second all documents, changes or entries of indexes of a database. A name's hash is its slot, so
 * a write of a key looks in two slots.
 *
 * A reader at S that has found nothing between two keys leaves that here unless its slot, which
 * several names share, was written above S. A write above S that has not been entered yet will find
 * the gap. After the store was opened again nothing from before counts (`floor`).
 *
 * Few stores have searches worth remembering, and each key that is written costs. So writers begin
 * to tell of keys with the first batch after a reader has wanted to leave a gap, at `since`, and a
 * reader at S leaves none unless S + 1 is `since` or later: every write above S is told of then.
 *
 * A slot keeps GAPS_EACH gaps for reads from the left and as many for reads from the right, of keys
 * up to GAPS_KEY_BYTES. A new gap is joined to one that it touches, or replaces that one.
 *
 * If it touches none and all places are taken, the time of the searches decides which gap is kept.
 * Without a gap the next search takes as long again as those by which the gap was found, so that
 * time is what the gap is worth. While a gap is not used, its worth falls: each new gap that finds
 * no place lowers the worth of all others by its own, or by that of the least one if that is less.
 * If the worth of one is 0 then, the new gap takes its place; else the new gap is not kept. Being
 * used gives a gap all of its worth again. So the gap behind which a queue begins, which saves a
 * long search, is not lost to a short one, and gaps that nobody uses make room after a while.
 *
 * A read need not begin in the gap that helps it. Whoever pushes to a list asks for the last block
 * before the new element, so the range ends further to the right each time, behind the gap. Such a
 * reader looks at what is in front of the gap, and then at what is behind it.
 *
 * Threads: gaps_begin() and gaps_write() belong to the thread that owns the committer; all else
 * but gaps_free() may be called by any thread.
 */
#ifndef FROND_KV_EMBEDDED_GAPS_H
#define FROND_KV_EMBEDDED_GAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum {
	GAPS_SLOTS = 256, /* a power of two */
	GAPS_EACH = 4,    /* of a slot, for each side */
	GAPS_KEY_BYTES = 128,
	GAPS_SEARCH_NS = 20000, /* a search for the first pair that takes longer is remembered */
};

struct gaps;

/* NULL: out of memory. */
struct gaps *gaps_new(void);
void gaps_free(struct gaps *g); /* NULL is fine */

/* A gap, as one reader may use it. */
struct gaps_found {
	struct str begin;
	struct str end;
	char begin_room[GAPS_KEY_BYTES + 1]; /* room for a NUL behind a key */
	char end_room[GAPS_KEY_BYTES + 1];
};

/*
 * A reader at `version` wants [begin, end), all of whose keys have the name in the first `name_len`
 * bytes of `begin`. Returns a part of the range with nothing in it: one where the range begins
 * (with `reverse` ends) if such a gap is known, or else further on. False: no gap is known there.
 */
bool gaps_find(struct gaps *g, struct str begin, struct str end, size_t name_len, bool reverse,
	       uint64_t version, struct gaps_found *ret);

/*
 * A reader at `version` has found that [begin, end), whose keys have that name, is empty, which
 * took `took_ns`. The first such reader leaves nothing but that writers have to tell of their keys
 * from now on.
 */
void gaps_keep(struct gaps *g, struct str begin, struct str end, size_t name_len, bool reverse,
	       uint64_t version, uint64_t took_ns);

/* A batch begins. False: nobody has to be told of its keys. */
bool gaps_begin(struct gaps *g, uint64_t version);
/* The slot of a name, which is the first `name_len` bytes of the key. */
size_t gaps_slot(struct str key, size_t name_len);
/*
 * A batch, for which gaps_begin() was true, gives the key a value at `version`, which is not
 * published yet. `slot` is that of one of the key's names.
 * False: the slot has no gap, and gets none that `version` could have to know of, so the batch need
 * not tell of its other keys of this slot.
 */
bool gaps_write(struct gaps *g, size_t slot, struct str key, uint64_t version);

/* Nothing that was known before `version` counts any more. */
void gaps_forget(struct gaps *g, uint64_t version);

#endif
