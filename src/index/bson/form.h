/*
 * BSON documents as the engine indexes them: filters are those of mql/match/match.h, texts are
 * ordered by their bytes or by a collation (mql/collation.h), whose document is stored with all of
 * its members. Components are those of bson_key_put(). Arrays are gone through as MongoDB does
 * (entry.c). Values of intervals are struct bson_value. The order is DOC_KEY_BSON.
 */
#ifndef FROND_INDEX_BSON_FORM_H
#define FROND_INDEX_BSON_FORM_H

#include <assert.h>

#include "index/engine/def.h"
#include "mql/collation.h"
#include "mql/match/match.h"

extern const struct index_form index_bson_form;

/* What a definition of a set has in `opened`, if it has a filter or a collation. */
struct index_bson {
	const struct mql_match *match;   /* NULL without a filter */
	struct mql_collation *collating; /* NULL without a collation, and if it is not current */
};

/* False if entries of the index, which is of a set, are ordered by another version of ICU. */
static inline bool
index_bson_is_current(const struct index_def *def)
{
	const struct index_bson *opened = def->opened;

	return !def->collation.len || opened->collating;
}

/* How the entries of an index, which is of a set, order texts; NULL: by their bytes. */
static inline const struct bson_texts *
index_bson_texts(const struct index_def *def)
{
	const struct index_bson *opened = def->opened;

	assert(index_bson_is_current(def));
	return opened ? mql_collation_texts(opened->collating) : NULL;
}

#endif
