/*
 * CQL's types: as trees, as texts, as the protocol's options.
 *
 * A type is a plain value that never changes; the native ones are static, others lie in an arena.
 * A type that was parsed from a text or a statement names user types only: cql_type_resolve() puts
 * their fields in. Any thread.
 */
#ifndef FROND_CQL_TYPE_H
#define FROND_CQL_TYPE_H

#include "cql/cql.h"

/* In the order of cql_native_types. */
enum cql_type_kind {
	CQL_TYPE_ASCII,
	CQL_TYPE_BIGINT,
	CQL_TYPE_BLOB,
	CQL_TYPE_BOOLEAN,
	CQL_TYPE_COUNTER,
	CQL_TYPE_DATE,
	CQL_TYPE_DECIMAL,
	CQL_TYPE_DOUBLE,
	CQL_TYPE_DURATION,
	CQL_TYPE_FLOAT,
	CQL_TYPE_INET,
	CQL_TYPE_INT,
	CQL_TYPE_JSONB, /* YCQL's */
	CQL_TYPE_SMALLINT,
	CQL_TYPE_TEXT, /* also "varchar" */
	CQL_TYPE_TIME,
	CQL_TYPE_TIMESTAMP,
	CQL_TYPE_TIMEUUID,
	CQL_TYPE_TINYINT,
	CQL_TYPE_UUID,
	CQL_TYPE_VARINT,
	CQL_NATIVE_COUNT,

	CQL_TYPE_LIST = CQL_NATIVE_COUNT, /* args[0] */
	CQL_TYPE_SET,                     /* args[0] */
	CQL_TYPE_MAP,                     /* args[0] -> args[1] */
	CQL_TYPE_TUPLE,                   /* args */
	CQL_TYPE_UDT,                     /* keyspace, name; once resolved: fields, args */
	CQL_TYPE_CUSTOM,                  /* name: the class */
	CQL_TYPE_EMPTY,                   /* what every type's null has: the type of NULL alone */
};

struct cql_type {
	enum cql_type_kind kind;
	/* Of all types that are inside of a frozen one, too, and of tuples always. */
	bool frozen;
	bool resolved;       /* false for a UDT without its fields, and for what contains one */
	struct str keyspace; /* UDT: where it was declared; ptr NULL: not said */
	struct str name;     /* UDT, CUSTOM */
	size_t count;        /* of args */
	const struct cql_type *const *args;
	const struct str *fields; /* UDT: names, in order */
};

/* The native types by their kinds. */
extern const struct cql_type cql_native_types[CQL_NATIVE_COUNT];
#define CQL_NATIVE(kind) (&cql_native_types[CQL_TYPE_##kind])

/* ---- Texts ---- */

/*
 * Parses a type as statements and system_schema write it: "frozen<list<int>>", "\"My\"", "ks.t",
 * "vector" names (a UDT), "'org.apache.cassandra.db.marshal.UTF8Type'" (the native type of that
 * class, or a custom one). Errors: CQL_E_TYPE_SYNTAX, CQL_E_TOO_DEEP, CQL_E_FROZEN_NATIVE.
 */
MUST_USE enum status cql_type_parse(struct cql *q, struct str text, const struct cql_type **ret);

/*
 * Appends the type as system_schema.columns has it: "frozen<map<text, int>>"; user types by their
 * name alone, quoted where that has to be.
 */
void cql_type_print(struct buf *out, const struct cql_type *type);
/* The same in the arena. On failure the text is "?". */
struct str cql_type_text(struct cql *q, const struct cql_type *type);

/* The class's name, such as "org.apache.cassandra.db.marshal.Int32Type", with what is in it. */
void cql_type_print_class(struct buf *out, const struct cql_type *type);

/* Appends a name as CQL needs it: in quotes unless it is lower case and no reserved word. */
void cql_name_print(struct buf *out, struct str name);
/* Appends a text constant: in single quotes, those inside doubled. */
void cql_text_print(struct buf *out, struct str text);

/* True if the word cannot be a name without quotes. `word` is in lower case. */
bool cql_word_is_reserved(struct str word);

/* ---- Building ---- */

/*
 * A list, set (1), map (2) or tuple of these arguments, which are copied as pointers. NULL when the
 * arena is full.
 */
const struct cql_type *cql_type_of(struct cql *q, enum cql_type_kind kind, bool frozen,
				   const struct cql_type *const *args, size_t count);
/* A user type with its fields; all is borrowed. NULL when the arena is full. */
const struct cql_type *cql_type_udt(struct cql *q, struct str keyspace, struct str name,
				    bool frozen, const struct str *fields,
				    const struct cql_type *const *args, size_t count);

/*
 * The type with all of it frozen: `frozen<>` around it and, as Cassandra does, around all inside.
 * STATUS_LIMIT when the arena is full.
 */
MUST_USE enum status cql_type_freeze(struct cql *q, const struct cql_type *type,
				     const struct cql_type **ret);

/*
 * Finds a user type. Sets *ret to a resolved UDT (frozen or not does not matter), or to NULL if
 * there is none of that name.
 */
typedef enum status cql_type_find(void *arg, struct cql *q, struct str keyspace, struct str name,
				  const struct cql_type **ret);

/*
 * Puts the fields of user types in, everywhere in the type. `keyspace` is the one of the table or
 * type that is declared: a user type of another is CQL_E_UDT_ELSEWHERE; an unknown one
 * CQL_E_UNKNOWN_TYPE_OF.
 */
MUST_USE enum status cql_type_resolve(struct cql *q, struct str keyspace,
				      const struct cql_type *type, cql_type_find *find, void *arg,
				      const struct cql_type **ret);

/*
 * Whether the type has at most CQL_TYPE_PARTS others in it, and CQL_DEPTH inside each other,
 * whatever its user types have: CQL_E_TYPE_LARGE.
 */
MUST_USE enum status cql_type_check_size(struct cql *q, const struct cql_type *type);

/*
 * The checks of a column's, a field's or an argument's type: its size; no unfrozen collection
 * inside of another or of a user type that is not frozen, no counter inside, no duration as key of
 * a map or in a set.
 */
MUST_USE enum status cql_type_check(struct cql *q, const struct cql_type *type);

/* ---- Questions ---- */

/* The same type; `frozen` counts at all levels. */
bool cql_type_eq(const struct cql_type *a, const struct cql_type *b);
/* The same values have the same bytes: `frozen` does not count. */
bool cql_type_same_bytes(const struct cql_type *a, const struct cql_type *b);

/* A list, set, map or UDT that is not frozen: its elements are cells of their own. */
bool cql_type_is_multicell(const struct cql_type *type);
bool cql_type_is_collection(const struct cql_type *type); /* a list, set or map */
bool cql_type_is_number(const struct cql_type *type);     /* counters, too */
/*
 * May be a column of a primary key: no counter, duration (anywhere inside), jsonb, nor a
 * collection or UDT that is not frozen.
 */
bool cql_type_can_be_key(const struct cql_type *type);
/* True if the type is or contains one of that kind. */
bool cql_type_has(const struct cql_type *type, enum cql_type_kind kind);
/* Is or contains this user type. */
bool cql_type_uses(const struct cql_type *type, struct str keyspace, struct str name);
/* A value of length zero is a value of this type: "empty" (or the empty text). */
bool cql_type_takes_empty(const struct cql_type *type);
/* The length of all values but empty ones; 0: they differ. */
size_t cql_type_fixed_bytes(const struct cql_type *type);
/* Values of `from` may be assigned where `to` is wanted, bytes unchanged: equal but for frozen,
 * ascii to text, bigint to counter and back, timeuuid to uuid, all to blob with `loosely`. */
bool cql_type_takes(const struct cql_type *to, const struct cql_type *from, bool loosely);
/* ALTER TYPE/TABLE of `from` to `to` keeps values and their order. */
bool cql_type_compatible(const struct cql_type *to, const struct cql_type *from);

/* ---- Protocol ---- */

/* The option's number: 0x0001 ascii … 0x0031 tuple; 0 is a custom type. */
unsigned cql_type_option(const struct cql_type *type);
/*
 * Appends an option of the protocol's version 3, 4 or 5: the number, and what follows it. A
 * duration is a custom type before version 5, and jsonb is a text: no driver knows it.
 */
void cql_type_put_option(struct buf *out, const struct cql_type *type, unsigned version);

#endif
