/*
 * Options of keyspaces and tables: what WITH may say, what is stored of it, and what clients are
 * told where nothing was said. Most mean nothing here; they are kept, since drivers and tools set
 * and show them.
 *
 * Threading: none.
 */
#ifndef FROND_DOOR_CQL_SCHEMA_OPTIONS_H
#define FROND_DOOR_CQL_SCHEMA_OPTIONS_H

#include "cql/statement.h"
#include "door/cql/schema/table.h"

/* A table's property that says that it has COMPACT STORAGE. WITH does not know it by this name. */
#define OPTIONS_COMPACT "compact_storage"

enum {
	OPTIONS_TABLE_COUNT = 21,
};

enum options_kind {
	OPTIONS_TEXT,
	OPTIONS_INT,
	OPTIONS_DOUBLE,
	OPTIONS_BOOL,
	OPTIONS_MAP,
};

struct options_value {
	enum options_kind kind;
	struct str text;
	int64_t n; /* also of a BOOL */
	double d;
	struct schema_pair *pairs;
	size_t count;
};

struct options_keyspace {
	bool durable_writes;
	struct schema_pair *replication;
	size_t replication_count;
};

/* By options_table_name(). */
struct options_table {
	struct options_value values[OPTIONS_TABLE_COUNT];
};

/* Names in their order. */
const char *options_table_name(size_t i);
/*
 * True if a statement that makes such a table anew has to say the option: those that Cassandra has
 * are always said, others where a new table would have another value.
 */
bool options_table_is_told(const struct schema_table *t, const struct options_table *options,
			   size_t i);
/* Sets *ret if the table's option `transactions` says that no transaction may write it. */
MUST_USE enum status options_forbid_transactions(struct cql *q, const struct schema_table *t,
						 bool *ret);

/* True if the timestamps that drivers send beside statements order what is written to the table. */
bool options_honour_timestamps(const struct schema_table *t);

/* What holds for a keyspace or a table, in the arena. */
MUST_USE enum status options_of_keyspace(struct cql *q, const struct table_keyspace *stored,
					 struct options_keyspace *ret);
MUST_USE enum status options_of_table(struct cql *q, const struct schema_table *t,
				      struct options_table *ret);

/*
 * Checks what CREATE or ALTER KEYSPACE says. `ret` are properties to store. Fails with Cassandra's
 * texts. `creates`: replication has to be said.
 */
MUST_USE enum status options_check_keyspace(struct cql *q, const struct cql_properties *with,
					    bool creates, struct table_property **ret,
					    size_t *ret_count);

/* What WITH says of a table. */
struct options_said {
	struct table_property *properties; /* to store */
	size_t count;
	bool sets_ttl; /* default_time_to_live was said */
	uint64_t ttl_s;
	bool sets_history; /* history_seconds was said, which is no property of the schema */
	uint64_t history_s;
};

MUST_USE enum status options_check_table(struct cql *q, const struct cql_properties *with,
					 struct options_said *ret);
/*
 * Adds what holds for a new table, without counters and COMPACT STORAGE, where WITH says nothing of
 * it, to what was said: its INSERTs pack rows, unless the timestamps of clients order its writes.
 */
void options_set_defaults(struct options_said *said);

#endif
