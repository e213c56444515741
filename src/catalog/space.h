/*
 * Name spaces of databases. Names of one never collide with another's: each door has its own.
 *
 * Stored: never renumber. Names of CouchDB's are kept without a number of their space, as they were
 * before there were others. Threading: none.
 */
#ifndef FROND_CATALOG_SPACE_H
#define FROND_CATALOG_SPACE_H

#include "base/str.h"

enum catalog_space {
	CATALOG_SPACE_COUCH = 1,
	CATALOG_SPACE_ROWS = 2,  /* of model/timed/rows, which no door reaches */
	CATALOG_SPACE_REDIS = 3, /* of Redis's door: "0", "1", … */
	CATALOG_SPACE_MONGO = 4, /* of MongoDB's door: "db.collection" */
	CATALOG_SPACE_TABLE = 5, /* of tables: "keyspace.table" */
	CATALOG_SPACES_MAX = 255,
};

/*
 * What people write before the name of a database, so that one text names it: "rows:", "redis:",
 * "mongo:", "table:"; nothing for a database of CouchDB's. Static.
 */
const char *catalog_space_prefix(enum catalog_space space);

/* Cuts that off the text, and returns the name space. */
enum catalog_space catalog_space_cut(struct str *name);

#endif
