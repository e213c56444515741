/* Private to system*.c: definitions of tables that are made up, and how their rows are. */
#ifndef FROND_DOOR_CQL_SCHEMA_SYSTEM_INT_H
#define FROND_DOOR_CQL_SCHEMA_SYSTEM_INT_H

#include "door/cql/schema/system.h"

struct schema_system;

/* Rows that are being made. */
struct system_making {
	struct cql *q;
	struct schema_types *types;
	const struct schema_server *server;
	const struct schema_table *table;
	struct str only;                     /* the keyspace that is asked for; empty: all */
	const struct schema_system *systems; /* all of them */
	size_t system_count;
	struct schema_rows *rows;
};

struct schema_system {
	const char *keyspace;
	const char *name;
	/* Columns: "name type|name type". */
	const char *partition;
	const char *clustering;
	const char *regular;
	enum status (*rows)(struct system_making *m); /* NULL: there are none */
};

/* system_make.c: STATUS_LIMIT when the arena is full. */
MUST_USE enum status schema_system_make(struct cql *q, const struct schema_system *s,
					struct schema_table **ret);

/* system_rows.c */
enum status system_local_rows(struct system_making *m);
enum status system_keyspaces_rows(struct system_making *m);
enum status system_tables_rows(struct system_making *m);
enum status system_columns_rows(struct system_making *m);
enum status system_dropped_rows(struct system_making *m);
enum status system_types_rows(struct system_making *m);
enum status system_indexes_rows(struct system_making *m);
enum status system_index_info_rows(struct system_making *m);
enum status system_virtual_keyspaces_rows(struct system_making *m);
enum status system_virtual_tables_rows(struct system_making *m);
enum status system_virtual_columns_rows(struct system_making *m);
enum status system_roles_rows(struct system_making *m);
enum status system_members_rows(struct system_making *m);
enum status system_permissions_rows(struct system_making *m);

/* system_traces.c */
enum status system_sessions_rows(struct system_making *m);
enum status system_events_rows(struct system_making *m);

/* ---- A row of them (system_rows.c) ---- */

/* A new one, whose columns are null. STATUS_LIMIT when the arena is full; here and below. */
MUST_USE enum status system_row_begin(struct system_making *m, struct cql_value **ret);
/* Puts bytes that last as long as the rows into the column of that name. */
void system_row_put(struct system_making *m, struct cql_value *row, const char *column,
		    struct str bytes);
/* An integer of so many bytes. */
MUST_USE enum status system_row_put_int(struct system_making *m, struct cql_value *row,
					const char *column, int64_t n, size_t width);
/* A list, a set, or a map (keys and values by turns; `count` of them together). */
MUST_USE enum status system_row_put_texts(struct system_making *m, struct cql_value *row,
					  const char *column, const struct str *texts, size_t count,
					  bool is_map);

#endif
