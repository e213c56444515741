/* The form of a body, for those that write it. */
#ifndef FROND_MODEL_BODY_INT_H
#define FROND_MODEL_BODY_INT_H

#include "doc/root.h"
#include "model/revisioned/body.h"
#include "model/revisioned/revisioned_int.h"

/* A body as it is going to be stored. */
struct rev_body {
	struct doc_root root;   /* but for `more` */
	struct kv_pair *leaves; /* EXPLODED */
	size_t count;
	struct str text; /* CHUNKED: what is to be written; ptr NULL: it is in the store already */
};

struct rev_body_limits {
	size_t prefix_bytes; /* of the key of every leaf */
	size_t packed_bytes; /* a text that is not longer is packed */
	size_t leaves_bytes; /* leaves that take more of a transaction become a text in chunks */
};

/* Those of a revision in the database, as its scheme has them. */
struct rev_body_limits rev_body_limits(const struct catalog_db *db, struct str id);

/*
 * Chooses the form, whatever form the document came in. What a CHUNKED body is named by is new and
 * random. STATUS_LIMIT when the arena is full; STATUS_DOC_TOO_LARGE.
 */
MUST_USE enum status rev_body_choose(const struct doc *doc, const struct rev_body_limits *limits,
				     struct arena *arena, struct rev_body *ret);

#endif
