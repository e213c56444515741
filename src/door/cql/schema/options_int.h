/* What compaction and compression of a table may say: options_map.c, for options.c. */
#ifndef FROND_DOOR_CQL_SCHEMA_OPTIONS_INT_H
#define FROND_DOOR_CQL_SCHEMA_OPTIONS_INT_H

#include "door/cql/schema/options.h"

/*
 * Bring the entries that WITH has given into the form that clients are told: names of classes with
 * their packages, newer names of options, presets. `pairs` of compression has room for one more.
 * STATUS_INVALID with Cassandra's texts.
 */
MUST_USE enum status options_compression(struct cql *q, struct schema_pair *pairs, size_t *count);
MUST_USE enum status options_compaction(struct cql *q, struct schema_pair **pairs, size_t *count);

#endif
