/*
 * What frond rows and the dumps of rows share. JSON values stand for scalars and maps of rows
 * (rows_value.c), for keys and paths (rows_row.c). All of it belongs to one thread.
 */
#ifndef FROND_CLI_ROWS_H
#define FROND_CLI_ROWS_H

#include "base/arena.h"
#include "base/buf.h"
#include "cli/cli.h"
#include "doc/json_value.h"
#include "model/timed/rows/rows.h"
#include "model/timed/tables/deletions.h"
#include "model/timed/tables/tables.h"

/*
 * Reads a scalar: null, true, a number, a text, or {"$type": …} for another type. In the arena.
 * STATUS_INVALID, explained.
 */
MUST_USE enum status rows_scalar_read(const struct json_value *value, struct arena *arena,
				      struct doc_scalar *ret, struct err *err);

/* Appends the JSON text that rows_scalar_read() reads back. */
void rows_scalar_write(const struct doc_scalar *s, struct buf *ret);

/* Leaves that were gathered from a value, with their paths. */
struct rows_values {
	struct timed_value *values;
	size_t count;
	size_t cap;
};

/*
 * Gathers the leaves of a scalar or a map, {"key": …} or {"$map": [[key, …], …]}, below the path
 * `above`. In the arena. STATUS_INVALID, explained.
 */
MUST_USE enum status rows_values_read(const struct json_value *value,
				      const struct timed_path *above, struct arena *arena,
				      struct rows_values *ret, struct err *err);

/* The path with one more step. ptr NULL in `steps` when the arena is full. */
struct timed_path rows_path_below(const struct timed_path *above, struct timed_step step,
				  struct arena *arena);

/* ---- Keys and paths (rows_row.c) ---- */

/* The components that the object's members have, up to the first that is missing. In the arena. */
MUST_USE enum status rows_key_read(const struct timed_schema *schema,
				   const struct json_member *fields, size_t count,
				   struct arena *arena, struct timed_key *ret, struct err *err);
/* STATUS_INVALID, explained, if the key has fewer components than `least`. */
MUST_USE enum status rows_key_check(const struct timed_schema *schema, const struct timed_key *key,
				    size_t least, struct err *err);
MUST_USE enum status rows_column_read(const struct timed_schema *schema, struct str name,
				      struct timed_step *ret, struct err *err);
/* `list` NULL is the empty path. In a table the first step is the name of a column. */
MUST_USE enum status rows_path_read(const struct timed_schema *schema,
				    const struct json_value *list, struct arena *arena,
				    struct timed_path *ret, struct err *err);
void rows_key_write(const struct timed_schema *schema, const struct doc_scalar *key,
		    struct buf *out);
void rows_path_write(const struct timed_schema *schema, const struct timed_path *path,
		     struct buf *out);

/* The name of a type in what is written; static. */
const char *rows_type_name(enum timed_type type);
/* TIMED_TYPES if it is none. NULL is fine. */
enum timed_type rows_type_read(const struct json_value *value);

/* ---- Tables in dumps (load_tables.c): names of kinds and storages; static. ---- */

const char *tables_kind_name(enum table_column_kind kind);
const char *tables_deletion_name(enum table_deletion_kind kind);
const char *tables_storage_name(enum table_storage storage);

/* ---- Moments (moment.c) ---- */

#define CLI_MOMENT_TEXT                                                                            \
	"2026-11-21T15:52:37.782Z, a time of day (15:52, the latest), seconds since 1970 "         \
	"(1795276357s), seconds ago (-90), now, or microseconds since 1970"

/*
 * Reads a moment that somebody wrote, as CLI_MOMENT_TEXT says; times are UTC. Also "…ms" and
 * "…us". `*ret_us` is in microseconds since 1970. False if it is none of them.
 */
bool cli_parse_moment(struct str text, uint64_t *ret_us);

#endif
