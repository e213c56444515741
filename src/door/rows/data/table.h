/*
 * Tables as this door sees them: the same ones that Cassandra's clients have, whose columns get the
 * kinds of wire/kind.h.
 *
 * A type that CQL has, too, is stored as it is there. Any other kind is a custom type of CQL,
 * 'frond.numeric': its values are bytes, in keys the ordered ones, otherwise as in messages. Where
 * the ordered bytes of a kind lose nothing, a column has a type such as 'frond.ordered.timestamp'
 * and the ordered bytes outside of keys, too: an index on it is in PostgreSQL's order then. A table
 * whose key has no hash columns has a hidden one, HIDDEN_COLUMN, in front, which is always 0,
 * so that all of its rows lie in one range in the order of their keys.
 *
 * A struct table belongs to its transaction.
 *
 * Threading: on the thread or fiber that has the transaction.
 */
#ifndef FROND_DOOR_ROWS_DATA_TABLE_H
#define FROND_DOOR_ROWS_DATA_TABLE_H

#include "catalog/caches.h"
#include "cql/type.h"
#include "door/rows/conn/request.h"
#include "door/rows/wire/kind.h"
#include "door/rows/wire/request.h"
#include "model/timed/tables/row.h"

#define HIDDEN_COLUMN "frond_all"
#define HIDDEN_TYPE   "smallint"

/* How a value of a message becomes one of CQL's type. */
enum column_form {
	FORM_NONE,    /* not at all */
	FORM_OWN,     /* the type is this door's */
	FORM_ORDERED, /* likewise, and values are ordered bytes outside of keys, too */
	FORM_SAME,    /* the bytes are the same */
	FORM_TINY,    /* tinyint, as an int2 */
	FORM_ASCII,
	FORM_DATE,    /* days since 1970, unsigned from 2^31 */
	FORM_TIME,    /* nanoseconds */
	FORM_MOMENT,  /* milliseconds since 1970 */
	FORM_VARINT,  /* as a numeric */
	FORM_DECIMAL, /* likewise */
	FORM_ADDRESS, /* an inet of all bits */
};

struct column {
	const struct table_column *stored;
	const struct cql_type *type;
	enum rows_kind kind; /* ROWS_NONE: it cannot be read or written */
	enum column_form form;
	bool ordered; /* keys of the type are in PostgreSQL's order */
};

struct table {
	struct catalog_db *db; /* held until it is closed */
	const struct table_schema *schema;
	const struct column *columns; /* in the order of the schema; they lie with `db` */
	size_t hidden;                /* 1: the first column is */
};

/* The type that a kind is stored as, in a key or outside of it; in quotes where it is this door's
 * own. Static. */
const char *rows_column_type_text(enum rows_kind kind, bool is_key);

/* Whether a type is one of this door's own, in which bytes are a value as columns have it. */
bool rows_type_has(struct str type, bool in_key, struct str bytes);

/*
 * Opens a table, which is in the arena. Fails with 42P01, or with 0A000 where it is not the one
 * that the client knows (`wanted->id`). `cache` may be NULL.
 */
MUST_USE enum status rows_table_open(struct rows_request *r, struct kv_tx *tx,
				     struct catalog_cache *cache, const struct rows_table *wanted,
				     struct arena *arena, struct table **ret);
void rows_table_close(struct table *t); /* NULL is fine */

/* The column with that id. Fails with 42703, or with 0A000 for one of ROWS_NONE. */
MUST_USE enum status rows_table_column_find(struct rows_request *r, const struct table *t,
					    uint32_t id, const struct column **ret);

/* How many columns of the key clients see. */
static inline size_t
rows_table_key_columns(const struct table *t)
{
	return t->schema->key_count - t->hidden;
}

/* Fails with 0A000 where a column of the key cannot be read. */
MUST_USE enum status rows_table_check_key(struct rows_request *r, const struct table *t);

/* ---- Values (value.c) ---- */

/* A value for a column outside of the key. Fails with 22P03 or 22003. */
MUST_USE enum status rows_column_to_scalar(struct rows_request *r, const struct column *c,
					   struct str value, struct doc_scalar *ret);
/* Appends the value of a scalar, as messages have it; null is null. STATUS_CORRUPT. */
MUST_USE enum status rows_column_put_scalar(struct rows_request *r, const struct column *c,
					    const struct doc_scalar *s, struct buf *out);
/* The same of a component of a key. */
MUST_USE enum status rows_column_put_part(struct rows_request *r, const struct column *c,
					  const struct doc_scalar *s, struct buf *out);

/*
 * The first `count` components of a key, the hidden one not counted, as the store has them: in the
 * arena, with the hidden one in front.
 */
MUST_USE enum status rows_key_parts(struct rows_request *r, const struct table *t, size_t from,
				    const struct rows_value *values, size_t count,
				    struct doc_scalar *ret);

/*
 * The key of a row, or of a partition where `count` is that of the hash columns. Fails with 42P16
 * for another count.
 */
MUST_USE enum status rows_key_make(struct rows_request *r, const struct table *t,
				   const struct rows_value *values, size_t count,
				   struct table_key *ret);

#endif
