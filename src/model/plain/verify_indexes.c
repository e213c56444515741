/*
 * Checks the indexes of a collection in both directions: every document's entries are there, as the
 * document makes them, and there are no others. The second is seen by the number of entries; only
 * where that is wrong, each entry is compared with its document.
 *
 * While an index is being built, documents may lack their entries. One that is FAILED or DROPPED
 * has entries that nobody keeps.
 */
#include <endian.h>

#include "base/mem.h"
#include "catalog/check.h"
#include "model/plain/index.h"
#include "model/plain/plain_int.h"

#define PLAIN_FINDING_INDEX       "plain_index"       /* an entry that is not as its document */
#define PLAIN_FINDING_INDEX_STRAY "plain_index_stray" /* an entry that no document has */

enum {
	VERIFY_ARENA_BYTES = 256 * 1024 * 1024,
};

struct verify_index {
	const struct index_def *def;
	bool compared; /* BUILDING or READY */
	uint64_t expected;
	uint64_t stored;
};

struct verify_indexes {
	struct catalog_verify *v;
	struct arena *arena;
	struct index_work work;
	struct verify_index *indexes;
	size_t count;
	struct catalog_db db; /* v->db with its definitions */
	struct plain plain;
};

/* ---- Definitions ---- */

/* (P, INDEXES, "build", number, stretch), or a mark. */
static void
check_build(struct verify_indexes *x, const struct catalog_verify_cursor *c)
{
	struct tuple_reader r = tuple_reader(c->tail);
	struct index_build_record record;
	struct err err = { 0 };
	uint64_t number, stretch;
	struct tuple_elem e;
	enum status status;
	struct str word;

	if (!catalog_verify_text_next(&r, TUPLE_STRING, &word) ||
	    tuple_next_u64(&r, &number) != STATUS_OK || tuple_next_u64(&r, &stretch) != STATUS_OK ||
	    (stretch == INDEX_BUILD_MARKS) != (r.rest.len > 0)) {
		catalog_verify_found(x->v, CATALOG_FINDING_KEY, c->pair.key,
				     "neither an index nor a part of its build");
		return;
	}
	if (r.rest.len) {
		if (tuple_next(&r, &e) != STATUS_OK || e.kind != TUPLE_BYTES || r.rest.len ||
		    c->pair.value.len)
			catalog_verify_found(x->v, CATALOG_FINDING_KEY, c->pair.key,
					     "not a mark of a build");
		return;
	}
	status = index_build_record_parse(c->pair.value, x->arena, &record, &err);
	if (status != STATUS_OK)
		catalog_verify_unreadable(x->v, status, &err, c->pair.key,
					  "not how far a build is");
}

/* (P, INDEXES), (P, INDEXES, number) */
static void
check_definition(struct verify_indexes *x, const struct catalog_verify_cursor *c)
{
	struct tuple_reader r = tuple_reader(c->tail);
	struct err err = { 0 };
	struct index_def def;
	enum status status;
	uint64_t number;

	arena_clear(x->arena);
	if (!c->tail.len) {
		r = tuple_reader(c->pair.value);
		if (tuple_next_u64(&r, &number) != STATUS_OK || r.rest.len)
			catalog_verify_found(x->v, CATALOG_FINDING_VALUE, c->pair.key,
					     "not the number of the next index");
		return;
	}
	if (tuple_next_u64(&r, &number) != STATUS_OK || r.rest.len) {
		check_build(x, c);
		return;
	}
	status = index_def_parse(c->pair.value, x->arena, &def, &err);
	if (status != STATUS_OK)
		catalog_verify_unreadable(x->v, status, &err, c->pair.key,
					  "not the definition of an index");
}

static enum status
check_definitions(struct verify_indexes *x)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	TRY(catalog_verify_cursor_open(x->v, &c, INDEX_SPACE_DEFS));
	while (!c.done) {
		check_definition(x, &c);
		TRY(catalog_verify_cursor_next(x->v, &c));
	}
	return STATUS_OK;
}

/* Loads the definitions into x->db, and chooses those whose entries can be compared. */
static enum status
load_definitions(struct verify_indexes *x)
{
	const struct index_set *set;
	unsigned failures = 0;
	enum status status;

	do {
		struct err err = { 0 };

		status = plain_extend(x->v->tx, &x->db, &x->db.extension, &err);
		if (status == STATUS_CORRUPT || status == STATUS_NEWER)
			return STATUS_OK; /* it has been told already */
		if (status != STATUS_OK)
			TRY(catalog_verify_again(x->v, &failures, status));
	} while (status != STATUS_OK);
	set = index_set_of(&x->db);
	if (!set || !set->count)
		return STATUS_OK;
	x->indexes = mem_zalloc(set->count * sizeof(*x->indexes));
	if (!x->indexes)
		return STATUS_NOMEM;
	x->count = set->count;
	for (size_t i = 0; i < set->count; i++) {
		const struct index_def *def = &set->defs[i];

		x->indexes[i].def = def;
		x->indexes[i].compared = def->flags & INDEX_BSON && (def->state == INDEX_BUILDING ||
								     def->state == INDEX_READY);
	}
	return STATUS_OK;
}

/* ---- From documents to entries ---- */

static enum status
look_up_entry(struct verify_indexes *x, const struct index_def *def, const struct kv_pair *pair)
{
	struct kv_future *f = NULL;
	struct str value;

	TRY(catalog_verify_get(x->v, pair->key, &f));
	if (!kv_future_value(f, &value)) {
		if (def->state == INDEX_READY)
			catalog_verify_found(x->v, PLAIN_FINDING_INDEX, pair->key,
					     "the document has no entry in the index");
	} else if (!str_eq(value, pair->value)) {
		catalog_verify_found(x->v, PLAIN_FINDING_INDEX, pair->key,
				     "the entry does not have the document's values");
	}
	kv_future_free(f);
	return STATUS_OK;
}

static enum status
check_document(struct verify_indexes *x, struct str key, struct str id, struct str document)
{
	const struct index_source source = plain_index_source(id, document);

	for (size_t i = 0; i < x->count; i++) {
		struct verify_index *index = &x->indexes[i];
		struct index_refusal refusal;
		struct index_pairs pairs;
		enum status status;

		if (!index->compared)
			continue;
		status = index_bson_entries_make(&x->db, index->def, &source, &x->work, &pairs,
						 &refusal);
		if (status == STATUS_UNSUPPORTED && index->def->state == INDEX_READY)
			catalog_verify_found(x->v, PLAIN_FINDING_INDEX, key,
					     "an index cannot have this document");
		if (status == STATUS_UNSUPPORTED)
			continue;
		TRY(status);
		if (index->def->state == INDEX_READY && (pairs.many & ~index->def->many))
			catalog_verify_found(x->v, PLAIN_FINDING_INDEX, key,
					     "an index does not know that there are arrays");
		index->expected += pairs.count;
		for (size_t k = 0; k < pairs.count; k++)
			TRY(look_up_entry(x, index->def, &pairs.pairs[k]));
	}
	return STATUS_OK;
}

/* The document with that key of an `_id`. STATUS_NOT_FOUND also for one that cannot be read. */
static enum status
read_document(struct verify_indexes *x, struct str id, struct str *ret)
{
	unsigned failures = 0;

	for (;;) {
		struct plain_got got;
		struct err err = { 0 };
		enum status status;

		plain_init(&x->plain, x->v->tx, &x->db, 0, &err);
		status = plain_ask_key(&x->plain, id, KV_SNAPSHOT, x->arena, &got);
		if (status == STATUS_OK)
			status = plain_wait(&x->plain, &got, KV_SNAPSHOT, x->arena, ret);
		if (status == STATUS_CORRUPT || status == STATUS_NEWER)
			return STATUS_NOT_FOUND; /* told by the check of documents */
		if (status == STATUS_OK || status == STATUS_NOT_FOUND)
			return status;
		TRY(catalog_verify_again(x->v, &failures, status));
	}
}

static enum status
check_documents(struct verify_indexes *x)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	TRY(catalog_verify_cursor_open(x->v, &c, PLAIN_SPACE_RECORDS));
	while (!c.done) {
		struct tuple_reader r = tuple_reader(c.tail);
		struct str id, document;
		enum status status;

		arena_clear(x->arena);
		/* A longer key is that of a leaf. */
		if (catalog_next_text(&r, TUPLE_BYTES, x->arena, true, &id) == STATUS_OK &&
		    !r.rest.len) {
			status = read_document(x, id, &document);
			if (status == STATUS_OK)
				status = check_document(x, c.pair.key, id, document);
			if (status != STATUS_NOT_FOUND)
				TRY(status);
		}
		TRY(catalog_verify_cursor_next(x->v, &c));
	}
	return STATUS_OK;
}

/* ---- From entries to documents ---- */

/* The index of an entry; `*ret_tail` is its key from behind the number. NULL: there is none. */
static struct verify_index *
index_of_entry(struct verify_indexes *x, const struct catalog_verify_cursor *c,
	       struct str *ret_tail)
{
	struct tuple_reader r = tuple_reader(c->tail);
	uint64_t number;

	if (tuple_next_u64(&r, &number) != STATUS_OK)
		return NULL;
	*ret_tail = r.rest;
	for (size_t i = 0; i < x->count; i++)
		if (x->indexes[i].def->number == number)
			return &x->indexes[i];
	return NULL;
}

static enum status
count_entries(struct verify_indexes *x, uint64_t *ret)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	*ret = 0;
	TRY(catalog_verify_cursor_open(x->v, &c, INDEX_SPACE_ENTRIES));
	while (!c.done) {
		struct str tail;
		struct verify_index *index = index_of_entry(x, &c, &tail);

		++*ret;
		if (index)
			index->stored++;
		else
			catalog_verify_found(x->v, PLAIN_FINDING_INDEX_STRAY, c.pair.key,
					     "there is no such index");
		TRY(catalog_verify_cursor_next(x->v, &c));
	}
	return STATUS_OK;
}

/* Tells of an entry that its document does not make. */
static enum status
check_entry(struct verify_indexes *x, const struct index_def *def,
	    const struct catalog_verify_cursor *c, struct str tail)
{
	struct index_pairs pairs = { 0 };
	struct index_refusal refusal;
	struct index_source source;
	struct index_entry entry;
	struct str document;
	enum status status;

	arena_clear(x->arena);
	status = index_entry_parse(def, tail, c->pair.value, x->arena, &entry);
	if (status == STATUS_CORRUPT || status == STATUS_NEWER) {
		catalog_verify_found(x->v, CATALOG_FINDING_VALUE, c->pair.key,
				     "not an entry of an index");
		return STATUS_OK;
	}
	TRY(status);
	status = read_document(x, entry.id, &document);
	if (status == STATUS_OK) {
		source = plain_index_source(entry.id, document);
		status = index_bson_entries_make(&x->db, def, &source, &x->work, &pairs, &refusal);
	}
	if (status != STATUS_NOT_FOUND && status != STATUS_UNSUPPORTED)
		TRY(status);
	for (size_t i = 0; i < pairs.count; i++)
		if (str_eq(pairs.pairs[i].key, c->pair.key))
			return STATUS_OK;
	catalog_verify_found(x->v, PLAIN_FINDING_INDEX_STRAY, c->pair.key,
			     "no document has this entry");
	return STATUS_OK;
}

static enum status
check_entries(struct verify_indexes *x)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	TRY(catalog_verify_cursor_open(x->v, &c, INDEX_SPACE_ENTRIES));
	while (!c.done) {
		struct str tail;
		struct verify_index *index = index_of_entry(x, &c, &tail);

		if (index && index->compared && index->stored != index->expected)
			TRY(check_entry(x, index->def, &c, tail));
		TRY(catalog_verify_cursor_next(x->v, &c));
	}
	return STATUS_OK;
}

/* (P, STATS, "entry_count") */
static enum status
check_total(struct verify_indexes *x, uint64_t entries)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	AUTO(buf_release) struct buf name = BUF_INIT(64);
	uint64_t count = 0;

	tuple_put_str(&name, STR(INDEX_STAT_ENTRIES));
	TRY(buf_status(&name));
	TRY(catalog_verify_cursor_open(x->v, &c, PLAIN_SPACE_STATS));
	while (!c.done) {
		if (!str_eq(c.tail, buf_str(&name)))
			catalog_verify_found(x->v, CATALOG_FINDING_KEY, c.pair.key,
					     "no counter is called so");
		else if (c.pair.value.len != CATALOG_COUNTER_BYTES)
			catalog_verify_found(x->v, CATALOG_FINDING_VALUE, c.pair.key,
					     "not a counter");
		else
			memcpy(&count, c.pair.value.ptr, sizeof(count));
		TRY(catalog_verify_cursor_next(x->v, &c));
	}
	if (le64toh(count) == entries)
		return STATUS_OK;
	plain_key_space(&x->v->key, x->v->db, PLAIN_SPACE_STATS);
	catalog_verify_found(x->v, PLAIN_FINDING_INDEX, buf_str(&x->v->key),
			     "the counter says %llu, and there are %llu entries",
			     (unsigned long long)le64toh(count), (unsigned long long)entries);
	return STATUS_OK;
}

static enum status
check_indexes(struct verify_indexes *x)
{
	bool differ = false;
	uint64_t entries;

	TRY(check_definitions(x));
	TRY(load_definitions(x));
	if (x->count)
		TRY(check_documents(x));
	TRY(count_entries(x, &entries));
	for (size_t i = 0; i < x->count; i++)
		differ = differ ||
			 (x->indexes[i].compared && x->indexes[i].stored != x->indexes[i].expected);
	if (differ)
		TRY(check_entries(x));
	TRY(check_total(x, entries));
	return catalog_verify_tallies(x->v);
}

enum status
plain_verify_indexes(struct catalog_verify *v)
{
	struct verify_indexes x = { .v = v, .arena = arena_new(VERIFY_ARENA_BYTES) };
	enum status status = STATUS_NOMEM;

	x.db = *v->db;
	x.db.extension = NULL;
	x.work.arena = x.arena;
	if (x.arena)
		status = check_indexes(&x);
	plain_extension_free(x.db.extension);
	mem_free(x.indexes);
	arena_free(x.arena);
	return status;
}
