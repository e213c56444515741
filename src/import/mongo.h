/* What the parts of an import from MongoDB's protocol share. */
#ifndef FROND_IMPORT_MONGO_H
#define FROND_IMPORT_MONGO_H

#include <mongoc/mongoc.h>

#include "import/import.h"

enum {
	MONGO_BATCH_DOCS = 1000,
	MONGO_BATCH_BYTES = 8 * 1024 * 1024,
	MONGO_NAME_BYTES = 512,                    /* of a database, or of a collection */
	MONGO_NS_BYTES = 2 * MONGO_NAME_BYTES + 2, /* of both, with a point between them */
};

struct mongo {
	struct import *import;
	mongoc_client_t *source;
	mongoc_client_t *target;
	const char *only; /* the database that the URL names; NULL: all */
	bool has_stream;  /* the source tells what is changed meanwhile */

	/* The state: what is done, and where the collection is that is not. */
	bson_t done;  /* names as members */
	bson_t place; /* {"ns": "db.collection", "_id": …}, or empty */
	bson_t token; /* of the change stream, or empty */
};

/* ---- mongo_state.c ---- */

/* The reason of a driver's error, as one of ours. */
MUST_USE enum status mongo_failed(const char *what, const bson_error_t *why, struct err *err);

MUST_USE enum status mongo_state_read(struct mongo *m, struct err *err);
MUST_USE enum status mongo_state_write(struct mongo *m, struct err *err);

/* ---- mongo_copy.c ---- */

/* Copies a collection: its options, documents and indexes. */
MUST_USE enum status mongo_copy_collection(struct mongo *m, const char *db, const bson_t *info,
					   struct err *err);
/* Makes a view. */
MUST_USE enum status mongo_copy_view(struct mongo *m, const char *db, const bson_t *info,
				     struct err *err);

/* Applies one event of a change stream. */
MUST_USE enum status mongo_apply(struct mongo *m, const bson_t *event, struct err *err);

#endif
