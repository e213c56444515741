/*
 * The keyspaces that every server of Cassandra's protocol has, made up at each read: what drivers
 * ask of a node (system), what they ask of the schema (system_schema), and tables of which nothing
 * is kept here, so that a question about them is answered with no rows.
 *
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_DOOR_CQL_SCHEMA_SYSTEM_H
#define FROND_DOOR_CQL_SCHEMA_SYSTEM_H

#include "cql/value.h"
#include "door/cql/schema/table.h"

struct settings_live;
struct traces;

enum {
	SYSTEM_ADDRESS_BYTES = 16, /* of an address: IPv6 */
};

/* What the server tells of itself. */
struct schema_server {
	struct str cluster, data_center, rack, release_version, language_version;
	uint8_t address[SYSTEM_ADDRESS_BYTES]; /* at which the client has reached it */
	size_t address_len;                    /* 4 or 16 */
	uint16_t port;
	const uint8_t *host_id;     /* a UUID */
	struct settings_live *live; /* whom the settings name (system_auth) */
	struct budget_part *part;   /* that counts the memory for reading people */
	struct traces *traces;      /* what requests have done (system_traces) */
	struct str user;            /* who asks, and with which credential */
	const uint8_t *user_key;
	bool admin; /* and may read what others have done */
};

/* True for a keyspace that is made up, which nobody changes. */
bool schema_keyspace_is_system(struct str keyspace);

/* STATUS_NOT_FOUND; STATUS_LIMIT when the arena is full. */
MUST_USE enum status schema_system_open(struct cql *q, struct str keyspace, struct str name,
					struct schema_table **ret);

/* The rows of such a table, in its order. */
struct schema_rows {
	struct cql_value *values; /* row by row, `table->count` each */
	size_t count;
	size_t cap;            /* private */
	struct schema_all all; /* of which the values are: open until schema_rows_close() */
};

/* Also of rows that could not be made. */
void schema_rows_close(struct schema_rows *rows);

/*
 * Makes up the rows. `only`: of a table whose partition key is keyspace_name, those of that one
 * alone; empty: all. STATUS_LIMIT when the arena is full; errors of the store.
 */
MUST_USE enum status schema_system_rows(struct cql *q, struct schema_types *types,
					const struct schema_server *server,
					const struct schema_table *t, struct str only,
					struct schema_rows *ret);

/* The version of the schema: a UUID made of the stamp of its latest change. */
void schema_version_uuid(const uint8_t stamp[static TABLE_STAMP_BYTES], uint8_t ret[static 16]);

#endif
