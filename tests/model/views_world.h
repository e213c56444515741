/*
 * A world of documents with views, and a naive model of them: whatever is asked is answered by
 * sorting and adding all rows. The functions are in C: nothing here needs a worker.
 */
#ifndef FROND_TESTS_MODEL_VIEWS_WORLD_H
#define FROND_TESTS_MODEL_VIEWS_WORLD_H

#include "base/rand.h"
#include "fixture.h"
#include "index/view/build.h"
#include "index/view/read.h"

enum {
	DOCS = 60,   /* of the random workload */
	EDITS = 40,  /* of a round, at most */
	PAIRS = 4,   /* rows of a document, at most */
	MANY = 4500, /* documents of a first build in several steps */
	BATCH = 250,
	QUESTIONS = 40, /* after each round */
	WORK_BYTES = 64 * 1024 * 1024,
	GROUPS_PAGE = 7,
};

/*
 * A document has "rows", [[key, value], …], which "pairs" emits; "ids" emits its id once,
 * with what is in "more" as its value. "own" sums up values, like _sum.
 */
extern const char views_design_text[];

enum {
	PAIRS_MAP = 0,
	IDS_MAP = 1,
};

/* A key is a number, a word, or an array [number, word]. */
struct naive_key {
	int kind; /* 0: number, 1: word, 2: array */
	int number;
	char word[8];
};

struct naive_row {
	struct naive_key key;
	char id[16];
	int value;
};

struct naive_doc {
	char id[16];
	char rev[64];
	bool live;
	int count;
	struct naive_key keys[PAIRS];
	int values[PAIRS];
};

struct world {
	struct fixture *f;
	struct rand_seq rand;
	struct view_engine *engine;
	struct view_design design;
	struct naive_doc docs[DOCS];
	struct naive_row rows[DOCS * PAIRS];
	size_t row_count;
};

/* A question, and which rows of the naive model answer it. */
struct asked {
	struct kv_tx *tx;
	struct index_work w;
	struct view_group group;
	struct view_question question;
	struct view_range range;
	size_t low; /* rows [low, high) */
	size_t high;
};

extern const struct view_functions views_functions;

/* What "own" has been given of rows, as prints, while it is counted. */
struct asked_reduces {
	bool counting;
	uint64_t prints[2000];
	size_t count;
	size_t again; /* was given before */
};
extern struct asked_reduces asked_reduces;

struct world *world_new(struct fixture *f);
/* Checks the whole database, too. */
void world_free(struct world *w);

/* Writes the design document, which tells fixture_check() what is in sums. */
void world_put_design(struct world *w);

/* ---- Edits ---- */

void doc_put(struct world *w, struct naive_doc *doc);
void edit_randomly(struct world *w, size_t edits);
/* Documents m00000 and so on with one row each, [[i % 3, "x"], 1]. */
void put_many(struct world *w, int from, int to);

/* ---- Updating ---- */

struct view_target target_of(struct world *w);
struct catalog_seq newest(struct world *w);
/* Brings the views up to date. */
void update(struct world *w);
/* Waits until no update is under way. A request is answered before its update ends. */
void updates_end(struct world *w);
/* How far the group is built. */
enum view_phase phase_of(struct world *w);

/* ---- Reading ---- */

void naive_rows(struct world *w);
void asked_open(struct world *w, struct asked *a);
void asked_close(struct asked *a);
/* A page with its values. */
void groups_page(struct world *w, struct asked *a, const struct view_reducing *reducing,
		 const struct view_groups_options *options, size_t most, struct view_results *ret);
/* Asks all kinds of questions, and compares the answers with the naive model's. */
void check_all(struct world *w);
/* There are so many documents of put_many(). */
void check_many(struct world *w, size_t docs);

/* A build of the world's design, which begins nothing by itself. */
struct view_build build_of(struct world *w, const struct view_functions *functions);

#endif
