#ifndef FROND_TESTS_MODEL_TIMED_TABLES_STAMPS_MODEL_H
#define FROND_TESTS_MODEL_TIMED_TABLES_STAMPS_MODEL_H

/*
 * Random operations on tables whose clients order writes by stamps, and a naive interpreter of
 * them, which remembers every deletion and goes through all of them for whatever is written.
 */
#include "base/rand.h"
#include "model/timed/tables/row.h"

enum {
	START_MS = 1000 * 1000,
	TTL_MS = 20 * 1000,
	PARTITIONS = 3,
	FIRSTS = 3,
	SECONDS = 2,
	ROWS = FIRSTS * SECONDS, /* as a row's number: the static columns */
	KEYS = 3,                /* of maps */
	ITEMS = 40,              /* of lists, those that have gone with them */
	PASTS = 30,
	BATCH = 3,
	CHANGES = 4,
	BOTH_KEYS = 3,
	FEW = 5,   /* values, and stamps of a kind, so that some are equal */
	OWN = 100, /* the column of what says that a row was inserted */
	ANY = -1,  /* every column, every key */
};

/* ---- The model ---- */

struct cell {
	bool there; /* expired or not */
	int64_t value;
	bool has_stamp;
	int64_t stamp;       /* or the moment */
	uint64_t expires_ms; /* 0: never */
};

struct list {
	struct cell items[ITEMS];
	size_t count;
};

/* Also the static columns of a partition: v is s, and m is sm. */
struct model_row {
	struct cell own, v, w, m[KEYS];
	struct list l;
};

struct model {
	struct model_row rows[PARTITIONS][ROWS + 1]; /* in the order in which they lie */
};

/* Where something is, or all of what a deletion is of. */
struct place {
	size_t partition;
	int64_t row;
	int64_t column;
	int64_t key;
	bool of_range; /* rows whose first components are from one to another */
	int64_t from, to;
	bool closed;
};

struct deletion {
	struct place place;
	int64_t stamp;
	struct deletion *next;
};

struct world {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct timed_clock clock;
	uint64_t now_ms;
	struct rand_seq r;
	struct model model;
	struct deletion *deletions; /* since the first stamp; none is ever forgotten */
	bool stamped;
	struct model pasts[PASTS];
	uint64_t pasts_us[PASTS];
	size_t past_count;
	bool has_history, has_indexes, has_long;
	int64_t next_value;
	struct err err;
};

/* ---- Operations ---- */

enum op_kind {
	OP_WRITE,
	OP_CLEAR_ROW,
	OP_CLEAR_PARTITION,
	OP_CLEAR_RANGE,
};

struct op {
	enum op_kind kind;
	bool has_stamp;
	int64_t stamp;
	size_t partition, row;
	bool inserts, has_long;
	struct timed_expiry expiry;
	struct table_change changes[CHANGES];
	size_t change_count;
	int64_t from, to;
	bool closed;
};

uint64_t below(struct world *w, uint64_t n);
struct doc_scalar number(int64_t n);
struct table_key key_of(size_t partition, size_t row, struct doc_scalar parts[BOTH_KEYS]);

struct op random_op(struct world *w, bool lists);
enum status op_run(struct timed *t, const struct op *op);
/* A list could have too many items after the operation: then it is not done. */
bool fits(const struct world *w, const struct op *op);
/* The same on the model, at the moment of the transaction. */
void model_op(struct world *w, struct model *m, const struct op *op, uint64_t now_us);

#endif
