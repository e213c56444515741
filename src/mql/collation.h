/*
 * Collations: how strings are compared, by ICU, as MongoDB's collation documents say it.
 *
 * A collation lives on the heap until mql_collation_free(). It never changes, so threads may use it
 * at the same time. A long text is compared, or made a key of, in the thread pool: a call may let
 * other fibers run.
 */
#ifndef FROND_MQL_COLLATION_H
#define FROND_MQL_COLLATION_H

#include "mql/mql.h"

enum {
	/* When both texts are longer than this, ICU compares them in the thread pool. */
	MQL_COLLATION_OFFLOAD_BYTES = 16 * 1024,
	MQL_COLLATION_LOCALE_BYTES = 128, /* of a locale's name */
};

/* What stands in the documents: the rules are ICU's of this library, whatever its version is. */
#define MQL_COLLATION_VERSION "57.1"

struct mql_collation;

/*
 * `*ret` is NULL for the locale "simple", which compares by bytes. STATUS_UNAVAILABLE: ICU's data
 * cannot be read.
 */
MUST_USE enum status mql_collation_new(struct mql *q, struct str document,
				       struct mql_collation **ret);
void mql_collation_free(struct mql_collation *c); /* NULL is fine */

/* For struct mql, comparisons and keys; NULL for NULL. Valid as long as the collation is. */
const struct bson_texts *mql_collation_texts(const struct mql_collation *c);

/*
 * The document with all of its members, defaults of the locale among them. Two collations are the
 * same if these bytes are. Valid as long as the collation is; "" for NULL.
 */
struct str mql_collation_document(const struct mql_collation *c);
/* The same of what mql_collation_texts() has given. */
struct str mql_collation_document_of(const struct bson_texts *texts);

#endif
