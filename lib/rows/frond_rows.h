/*
 * frond-rows: the protocol for rows as its client. docs/ROWS.md has what requests and kinds mean;
 * this has one function for each request, and needs nothing but libc and OpenSSL.
 *
 * A connection has one request under way at a time, and every function blocks until its answer
 * is there, unless a comment says otherwise. Functions return true, or false with the reason in
 * frows_failure(). What an answer gives is the connection's, and valid until its next request,
 * unless a comment says otherwise.
 *
 * Threading: a connection belongs to one thread at a time; there is nothing else that is shared.
 */
#ifndef FROND_ROWS_H
#define FROND_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FROWS_VERSION = 4,
	FROWS_VERSION_LEAST = 2,       /* of a server that can still be talked to: no estimates */
	FROWS_FRONT_BYTES = 64 * 1024, /* of requests that wait to go with the next one */
	FROWS_ID_BYTES = 16,
	FROWS_KEY_COLUMNS = 32,
	FROWS_STAMP_BYTES = 10,
	FROWS_NAME_BYTES = 1000,               /* of an index in a failure, likewise */
	FROWS_TEXT_BYTES = 1000,               /* of a failure's text; what is beyond is cut */
	FROWS_ANSWER_BYTES = 64 * 1024 * 1024, /* of an answer; a longer one is no answer */
};

enum frows_kind {
	FROWS_NONE = 0,
	FROWS_BOOL,
	FROWS_INT2,
	FROWS_INT4,
	FROWS_INT8,
	FROWS_FLOAT4,
	FROWS_FLOAT8,
	FROWS_NUMERIC,
	FROWS_TEXT,
	FROWS_BYTES,
	FROWS_DATE,
	FROWS_TIME,
	FROWS_TIMETZ,
	FROWS_TIMESTAMP,
	FROWS_TIMESTAMPTZ,
	FROWS_INTERVAL,
	FROWS_UUID,
	FROWS_INET,
	FROWS_MACADDR,
	FROWS_MACADDR8,
	FROWS_BITS,
	FROWS_OTHER,
};

enum frows_role {
	FROWS_HASH = 1,
	FROWS_RANGE = 2,
	FROWS_STATIC = 3,
	FROWS_REGULAR = 4,
};

/* A value in the bytes of its kind. */
struct frows_value {
	const void *ptr;
	int32_t len; /* or one of these */
};
enum {
	FROWS_NULL = -1,
	FROWS_ABSENT = -2, /* of a write: the column stays as it is */
};

struct frows_text {
	const char *ptr; /* UTF-8, without a NUL at its end */
	size_t len;
};

/* Why a request has failed. */
struct frows_failure {
	char state[6]; /* SQLSTATE; "08006": the connection is lost */
	int32_t row;   /* of the request, which it is about, from 0; -1: none */
	char text[FROWS_TEXT_BYTES];
	char index[FROWS_NAME_BYTES]; /* 23505: the unique index, or empty: it is the key */
};

struct frows;

/* ---- Connections ---- */

struct frows_where {
	const char
		*host; /* a name or an address; or the path of a Unix socket, from its slash on */
	const char *port; /* not looked at where `host` is a path */
	const char *user; /* NULL: nobody logs in */
	const char *password;
	bool tls;            /* the server's certificate is checked, for `host`, which is no path */
	const char *ca_file; /* by the authorities in this file; NULL: by the system's */
	int timeout_ms;      /* of connecting, and of each wait for an answer, which may take half a
			      * second more; 0: none */
	/*
	 * Asked while the socket is waited for: at each signal, and twice a second. True: the wait
	 * ends, and with it the connection; the failure is 57014. NULL: nobody is asked.
	 */
	bool (*interrupted)(void *arg);
	void *interrupted_arg;
};

/*
 * Connects, and logs in. `*ret` is there even after a failure, which it then has, unless memory is
 * short (NULL); frows_close() frees it.
 */
bool frows_open(const struct frows_where *where, struct frows **ret);
void frows_close(struct frows *c); /* NULL is fine */

const struct frows_failure *frows_failure(const struct frows *c);
/* False once the connection is lost: nothing but frows_close() is left. */
bool frows_is_open(const struct frows *c);
/*
 * Whether the connection is lost since its other side has closed it, maybe before the last request:
 * one that only reads may be made again by another connection. False after a timeout.
 */
bool frows_was_closed(const struct frows *c);
/* Looks whether the server has closed the connection, without asking it anything. */
bool frows_is_alive(struct frows *c);

bool frows_ping(struct frows *c);

/* ---- Transactions ---- */

bool frows_begin(struct frows *c, bool read_only);
/* `stamp` may be NULL: FROWS_STAMP_BYTES that grow with each commit; zeros: nothing was written. */
bool frows_commit(struct frows *c, uint8_t *stamp);
/*
 * Sends COMMIT, and waits for nothing: frows_write_wait() does, as for a write that was sent. If
 * the connection is lost meanwhile, it is not known whether the transaction has committed: 08007.
 */
bool frows_commit_send(struct frows *c);
bool frows_rollback(struct frows *c);
/*
 * The same without a round trip of their own. BEGIN goes with the next request, which fails as it
 * does; ROLLBACK goes at once, and its answer is read before the next one. At a server of version 4
 * and later nothing is done that has gone behind a BEGIN that fails, and ROLLBACK has to follow.
 */
void frows_begin_later(struct frows *c, bool read_only);
void frows_rollback_later(struct frows *c);
/*
 * The transaction reads what is committed now, if nothing that it has read was changed since; its
 * own writes stay. *ret_moved: it does; otherwise it reads what it did before, as it always does at
 * a server of version 3. frows_refresh_later() goes with the next request; behind that
 * frows_refreshed() tells, also if the transaction has begun there.
 */
bool frows_refresh(struct frows *c, bool *ret_moved);
void frows_refresh_later(struct frows *c);
bool frows_refreshed(const struct frows *c);
bool frows_savepoint(struct frows *c, uint32_t *ret);
bool frows_release(struct frows *c, uint32_t savepoint);
bool frows_rollback_to(struct frows *c, uint32_t savepoint);

/* ---- Schemas ---- */

bool frows_schema_create(struct frows *c, const char *schema);
bool frows_schema_drop(struct frows *c, const char *schema);
/* Names one by one: frows_name_next() until false. */
bool frows_schemas(struct frows *c);
/* Tables behind `after` (NULL or empty: from the first one). Behind the names of an answer,
 * frows_names_after() tells where to go on; empty: there are no more. */
bool frows_tables(struct frows *c, const char *schema, const char *after);
bool frows_name_next(struct frows *c, struct frows_text *ret);
struct frows_text frows_names_after(const struct frows *c);

struct frows_column {
	uint32_t id; /* what requests name it by */
	struct frows_text name;
	enum frows_kind kind;
	enum frows_role role;
	bool descending;
	bool ordered;           /* keys are in PostgreSQL's order */
	struct frows_text type; /* in CQL */
};

/* A table as it was told: all of it is the struct's, until frows_table_free(). */
struct frows_table {
	uint8_t id[FROWS_ID_BYTES];
	struct frows_column *columns;
	size_t count;
	size_t key_count;
	void *memory;
};

bool frows_table(struct frows *c, const char *schema, const char *table, struct frows_table *ret);
void frows_table_free(struct frows_table *t);

/*
 * About how many rows the table has, without reading it all: for planning. `*ret_exact`: it is the
 * number. Fails with 0A000 at a server of version 2.
 */
bool frows_estimate(struct frows *c, const char *schema, const char *table, uint64_t *ret_rows,
		    bool *ret_exact);

/* A column that is to be: the key's first. */
struct frows_new {
	const char *name;
	enum frows_kind kind;
	enum frows_role role;
	bool descending;
};

/* `id` may be NULL. */
bool frows_table_create(struct frows *c, const char *schema, const char *table,
			const struct frows_new *columns, size_t count, uint8_t *id);
/* Names of columns to drop; pairs of names, of columns of the key, to rename. */
bool frows_table_alter(struct frows *c, const char *schema, const char *table,
		       const struct frows_new *add, size_t add_count, const char *const *drop,
		       size_t drop_count, const char *const *rename, size_t rename_count);
bool frows_table_drop(struct frows *c, const char *schema, const char *table);
bool frows_table_empty(struct frows *c, const char *schema, const char *table);

/* A table in a request. `id`: the one that is meant, or NULL: whichever has this name. */
struct frows_of {
	const char *schema;
	const char *table;
	const uint8_t *id;
};

/* ---- Indexes ---- */

struct frows_index_column {
	uint32_t id;
	bool descending;
	bool ordered; /* entries are in PostgreSQL's order of its values; in answers */
};

enum frows_condition_op {
	FROWS_CONDITION_EQ = 0,
	FROWS_CONDITION_NE = 1,
	FROWS_CONDITION_LT = 2,
	FROWS_CONDITION_LE = 3,
	FROWS_CONDITION_GT = 4,
	FROWS_CONDITION_GE = 5,
	FROWS_CONDITION_NOT_NULL = 6,
};

struct frows_condition {
	uint32_t column;
	enum frows_condition_op op;
	struct frows_value value; /* null of FROWS_CONDITION_NOT_NULL */
};

/* An index: as it was told, or as it is to be. */
struct frows_index {
	uint32_t number; /* in answers, as are `ready`, `failed` and `known` */
	struct frows_text name;
	bool unique;
	bool ready;  /* rows can be found by it, if it is known */
	bool failed; /* its build has found rows with the same values */
	bool known;  /* its columns can be told; if not, it is one of Cassandra's clients alone */
	bool groups; /* rows with equal values in its first columns lie together in it */
	const struct frows_index_column *columns;
	size_t count;
	const uint32_t *included;
	size_t included_count;
	/* Only rows that fulfil all of these have entries. */
	const struct frows_condition *conditions;
	size_t condition_count;
};

/* Those of a table: all of it is the struct's, until frows_indexes_free(). */
struct frows_indexes {
	struct frows_index *all;
	size_t count;
	void *memory;
};

bool frows_indexes(struct frows *c, const char *schema, const char *table,
		   struct frows_indexes *ret);
void frows_indexes_free(struct frows_indexes *x);
/* `spec`: the conditions, as people read them; NULL: there are none. `ret`: its number. */
bool frows_index_create(struct frows *c, const struct frows_of *of, const struct frows_index *index,
			const char *spec, uint32_t *ret);
/*
 * Goes on with its build for a while: to be called until it is ready or has failed, and then with
 * frows_name_next() for what it has found.
 */
bool frows_index_build(struct frows *c, const struct frows_of *of, uint32_t number, bool *ret_ready,
		       bool *ret_failed);
bool frows_index_drop(struct frows *c, const char *schema, const char *index);
/* Whose index it is: a name for frows_name_next(). */
bool frows_index_find(struct frows *c, const char *schema, const char *index);

/* ---- Rows ---- */

enum frows_bound {
	FROWS_NO_BOUND = 0,
	FROWS_INCLUSIVE = 1,
	FROWS_EXCLUSIVE = 2,
};

struct frows_edge {
	enum frows_bound kind;
	const struct frows_value *values;
	size_t count;
};

enum frows_test {
	FROWS_INTERVAL_TEST = 0,
	FROWS_IS_NULL = 1,
	FROWS_IS_NOT_NULL = 2,
};

struct frows_filter {
	uint32_t column;
	enum frows_test test;
	enum frows_bound from_kind, to_kind;
	struct frows_value from, to;
};

enum frows_sum {
	FROWS_COUNT = 1,
	FROWS_SUM = 2,
	FROWS_LEAST = 3,
	FROWS_GREATEST = 4,
};

struct frows_scan {
	struct frows_of of;
	bool reverse;
	uint32_t index; /* by this index, and in its order; 0: by the key */
	const uint32_t *columns;
	const enum frows_sum *sums; /* one for each column: sums come in place of rows; or NULL */
	size_t column_count;
	const struct frows_value *equal; /* the first columns of the key, or of the index */
	size_t equal_count;
	struct frows_edge from, to; /* of those behind them, in the order of the table */
	const struct frows_filter *filters;
	size_t filter_count;
	uint32_t rows;   /* of a page; 0: no limit */
	uint32_t bytes;  /* of a page, about; 0: as the server likes */
	uint32_t sample; /* each row by the chance of this over 2^32; 0: all */
	bool only_count; /* sums of no column: how many rows there are */
	/*
	 * With sums: one of each group of rows that have so many columns of the key equal, from the
	 * first, or of an index that has `groups`. Pages have rows then, of the values of these
	 * columns, the number of rows as an int8, and the sums; the last group of a page may go on
	 * as the first one of the next.
	 */
	size_t groups; /* 0: no groups */
};

/*
 * Asks for a page of rows: the first one, or with `goes_on` the one behind the last page of the
 * same scan. frows_scan_row() gives the rows, and frows_has_more() tells whether others are left.
 */
bool frows_scan_page(struct frows *c, const struct frows_scan *scan, bool goes_on);
/*
 * The same for whoever has several scans under way: a copy of what frows_scan_place() gives behind
 * a page asks for the one behind it. A place of no bytes is the beginning.
 */
bool frows_scan_page_at(struct frows *c, const struct frows_scan *scan, struct frows_value place);
struct frows_value frows_scan_place(const struct frows *c);
/* The next row of the page: a value for each column. False: the page has no more. */
bool frows_scan_row(struct frows *c, struct frows_value *values);
/* Of a page of sums without groups: how many rows there were, and a value for each column. */
uint64_t frows_scan_sums(struct frows *c, struct frows_value *values);
bool frows_has_more(const struct frows *c);

/* Rows by their keys: frows_get(), frows_get_key() for each, frows_get_run(), frows_get_row(). */
void frows_get(struct frows *c, const struct frows_of *of, const uint32_t *columns, size_t count);
void frows_get_key(struct frows *c, const struct frows_value *key, size_t count);
bool frows_get_run(struct frows *c);
/* The next one in the order of the keys. False: there are no more. `*ret_found`: it is there. */
bool frows_get_row(struct frows *c, bool *ret_found, struct frows_value *values);

enum frows_op {
	FROWS_INSERT = 1,
	FROWS_INSERT_NEW = 2,
	FROWS_UPDATE = 3,
	FROWS_PUT = 4,
	FROWS_REPLACE = 5,
	FROWS_DELETE = 6,
	FROWS_DELETE_ANY = 7,
};

/* Writes: frows_write(), frows_write_row() for each, frows_write_run(), frows_write_done(). */
void frows_write(struct frows *c, const struct frows_of *of, const uint32_t *columns, size_t count);
/* `values`: one for each column; none of a deletion. */
void frows_write_row(struct frows *c, enum frows_op op, const struct frows_value *key,
		     size_t key_count, const struct frows_value *values);
/* How long the request is so far: the server takes `frows_request_most()` bytes. */
size_t frows_request_bytes(const struct frows *c);
size_t frows_request_most(const struct frows *c);
bool frows_write_run(struct frows *c);
/*
 * In place of frows_write_run(), in a transaction: the rows go with the next request, which fails
 * as they do, and nobody hears what happened to each of them. What does not fit into
 * FROWS_FRONT_BYTES goes at once.
 */
bool frows_write_later(struct frows *c);
/*
 * In two halves, for whoever makes the next request meanwhile: sends the rows, and waits for what
 * was sent before them, which it then fails as. What becomes of these rows tells the next
 * frows_write_send(), or frows_write_wait(). Any other request waits first, too, and is not sent
 * where that fails; but those that roll back are, and then nobody is told.
 */
bool frows_write_send(struct frows *c);
bool frows_write_wait(struct frows *c);
/* Of each row in order: true if something happened. */
bool frows_write_done(struct frows *c, bool *ret_done);

/* ---- Numbers as bytes ---- */

/* Writes a number of 2, 4 or 8 bytes, big-endian. */
void frows_put_int(uint8_t *to, int64_t n, size_t bytes);
/* Reads one, with its sign. */
int64_t frows_int(struct frows_value v);
void frows_put_float8(uint8_t to[8], double d);
double frows_float8(struct frows_value v);

#endif
