/*
 * Terms: what stands in a statement for a value, and what a SELECT asks for. One tree for both, as
 * it was written: expr.h types it.
 */
#ifndef FROND_CQL_TERM_H
#define FROND_CQL_TERM_H

#include "cql/type.h"

enum cql_term_kind {
	CQL_TERM_NULL,
	/* Constants; `text` is what the constant says. */
	CQL_TERM_STRING,  /* without its quotes */
	CQL_TERM_INTEGER, /* digits with a sign */
	CQL_TERM_FLOAT,   /* also NaN, Infinity, -NaN, -Infinity */
	CQL_TERM_BOOLEAN, /* true or false, in lower case */
	CQL_TERM_UUID,
	CQL_TERM_BLOB, /* with its 0x */
	CQL_TERM_DURATION,
	CQL_TERM_MARKER, /* ? or :name; `marker` is its number in the statement, text its name */
	/* Literals; `args` are elements. */
	CQL_TERM_LIST,
	CQL_TERM_SET,   /* {} is a set without elements, and may become a map */
	CQL_TERM_MAP,   /* args: keys and values in turn */
	CQL_TERM_TUPLE, /* (a, b); (a) alone too */
	CQL_TERM_UDT,   /* {f: v}: fields are the names of args */
	CQL_TERM_HINT,  /* (type) args[0] */
	/* Calls. */
	CQL_TERM_FUNCTION, /* keyspace (ptr NULL), text: name; args */
	CQL_TERM_COUNT,    /* count(*) and count(1) */
	CQL_TERM_CAST,     /* CAST(args[0] AS type) */
	CQL_TERM_NEGATE,   /* -args[0] */
	CQL_TERM_ADD,      /* args[0] op args[1] */
	CQL_TERM_SUBTRACT,
	CQL_TERM_MULTIPLY,
	CQL_TERM_DIVIDE,
	CQL_TERM_MODULO,
	/* Of a row. */
	CQL_TERM_COLUMN,    /* text */
	CQL_TERM_FIELD,     /* args[0].text */
	CQL_TERM_ELEMENT,   /* args[0][args[1]] */
	CQL_TERM_SLICE,     /* args[0][args[1]..args[2]]; a NULL arg is an open end */
	CQL_TERM_JSON,      /* args[0] -> args[1] */
	CQL_TERM_JSON_TEXT, /* args[0] ->> args[1] */
};

struct cql_term {
	enum cql_term_kind kind;
	unsigned marker;
	unsigned height; /* 1 without args: CQL_DEPTH at most */
	struct str text;
	struct str keyspace;         /* FUNCTION */
	const struct cql_type *type; /* HINT, CAST: not resolved */
	size_t count;                /* of args */
	struct cql_term **args;
	const struct str *fields; /* UDT */
	size_t at, length;        /* where it stands in the statement's text */
};

/* The term as it was written, but for white space and case of names: a result column's name. */
void cql_term_print(struct buf *out, const struct cql_term *term);
struct str cql_term_text(struct cql *q, const struct cql_term *term);

#endif
