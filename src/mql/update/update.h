/*
 * Updates: operators, or a document that replaces the other one.
 *
 * Operators work path by path, in the order of the paths: names by their bytes, positions by their
 * numbers and before other names that begin with a digit. New members come in that order, too. An
 * update that is a pipeline is an array, which is the caller's to refuse.
 */
#ifndef FROND_MQL_UPDATE_H
#define FROND_MQL_UPDATE_H

#include "mql/match/match.h"

enum {
	MQL_UPDATE_PATHS = 100000,  /* that operators of one update name */
	MQL_UPDATE_STEPS = 200,     /* names in one path */
	MQL_UPDATE_PADDING = 10000, /* nulls that setting an element puts in front of it at most */
};

struct mql_update;

/*
 * `array_filters`: the array's bytes, or BSON_EMPTY. With a filter that the door has compiled for
 * the same statement, `$` stands for the position that mql_match_run() has told.
 */
MUST_USE enum status mql_update_compile(struct mql *q, struct str update, struct str array_filters,
					struct mql_update **ret);

/* What an update is to be run on, and how. */
struct mql_update_on {
	struct str document;
	int64_t position; /* for `$`; -1: none */
	bool insert;      /* an upsert inserts the document: $setOnInsert is done, too */
};

struct mql_updated {
	struct str document; /* in the arena */
	bool changed;        /* false: the same bytes */
	bool replaced;       /* by a whole document: `paths` says nothing */
	/*
	 * The paths below which something has changed, appeared or gone, none of them below
	 * another one: what bson_find_path() finds there in the new document, or nothing, is what
	 * is there now. Elements that an array has got at its end are named one by one.
	 */
	const struct str *paths;
	size_t count;
};

/*
 * A changed `_id` fails with MQL_IMMUTABLE_FIELD, unless the document is inserted. An inserted
 * document has its `_id` first, if it has one.
 */
MUST_USE enum status mql_update_run(const struct mql_update *u, struct mql *q,
				    const struct mql_update_on *on, struct mql_updated *ret);

/*
 * The document that an upsert begins with: what the filter says that fields are equal to. Fails
 * with MQL_NOT_SINGLE_VALUE where it says so twice.
 */
MUST_USE enum status mql_upsert_document(const struct mql_match *m, struct mql *q, struct str *ret);

/* True if it is a replacement, which a command may do to one document only. */
bool mql_update_is_replacement(const struct mql_update *u);

/* Adds the paths that the update looks at; steps of digits in them are positions in arrays. */
void mql_update_paths(const struct mql_update *u, struct mql_paths *ret);

#endif
