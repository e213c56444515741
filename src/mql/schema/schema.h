/*
 * $jsonSchema: JSON Schema, draft 4, with MongoDB's `bsonType`.
 *
 * A keyword says something about values of its own type only: `minimum` lets every string through.
 * Strings are compared by their bytes, whatever the collation is.
 */
#ifndef FROND_MQL_SCHEMA_H
#define FROND_MQL_SCHEMA_H

#include "mql/mql.h"

struct mql_schema;

/* `depth`: of what the schema is inside of, towards MQL_DEPTH. */
MUST_USE enum status mql_schema_compile(struct mql *q, const struct bson_value *v, unsigned depth,
					struct mql_schema **ret);
MUST_USE enum status mql_schema_run(const struct mql_schema *s, struct mql *q,
				    const struct bson_value *v, bool *ret);

/*
 * Why a value does not fulfil the schema: members of a document that is being built, as those of
 * MongoDB's `errInfo.details`.
 */
MUST_USE enum status mql_schema_explain(const struct mql_schema *s, struct mql *q,
					const struct bson_value *v, struct bson_builder *b);

#endif
