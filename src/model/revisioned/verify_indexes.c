/*
 * Checks indexes in both directions: every document's entries are there, as its body makes them,
 * and there are no others. The second is seen by the number of entries; only where that is wrong,
 * each entry is compared with its document.
 *
 * While an index is being built, documents may lack their entries. One that is FAILED, DROPPED or
 * STALE has entries that nobody keeps, and one of another collation cannot be compared.
 */
#include "base/mem.h"
#include "model/revisioned/indexed_docs.h"
#include "model/revisioned/record.h"
#include "model/revisioned/verify_int.h"

enum {
	VERIFY_INDEX_ARENA_BYTES = 64 * 1024 * 1024, /* of one document and its entries */
};

struct verify_index {
	const struct index_def *def;
	bool compared; /* BUILDING or READY, of this process's collation */
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
};

/* ---- Definitions ---- */

/* (P, INDEXES), (P, INDEXES, number), (P, INDEXES, "build", number, stretch) */
static enum status
definition_check(struct verify_indexes *x, const struct catalog_verify_cursor *c)
{
	struct tuple_reader r = tuple_reader(c->tail);
	struct index_build_record record;
	struct index_def def;
	struct err err = { 0 };
	uint64_t number, stretch;
	enum status status;
	struct str word;

	arena_clear(x->arena);
	if (c->tail.len == 0) {
		r = tuple_reader(c->pair.value);
		if (tuple_next_u64(&r, &number) != STATUS_OK || r.rest.len)
			catalog_verify_found(x->v, CATALOG_FINDING_VALUE, c->pair.key,
					     "not the number of the next index");
		return STATUS_OK;
	}
	if (tuple_next_u64(&r, &number) == STATUS_OK && r.rest.len == 0) {
		status = index_def_parse(c->pair.value, x->arena, &def, &err);
		if (status != STATUS_OK)
			catalog_verify_unreadable(x->v, status, &err, c->pair.key,
						  "not the definition of an index");
		return STATUS_OK;
	}
	r = tuple_reader(c->tail);
	if (!catalog_verify_text_next(&r, TUPLE_STRING, &word) ||
	    tuple_next_u64(&r, &number) != STATUS_OK || tuple_next_u64(&r, &stretch) != STATUS_OK ||
	    r.rest.len) {
		catalog_verify_found(x->v, CATALOG_FINDING_KEY, c->pair.key,
				     "neither an index nor a part of its build");
		return STATUS_OK;
	}
	status = index_build_record_parse(c->pair.value, x->arena, &record, &err);
	if (status != STATUS_OK)
		catalog_verify_unreadable(x->v, status, &err, c->pair.key,
					  "not how far a build is");
	return STATUS_OK;
}

static enum status
definitions_check(struct verify_indexes *x)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	TRY(catalog_verify_cursor_open(x->v, &c, REV_SUBSPACE_INDEXES));
	while (!c.done) {
		TRY(definition_check(x, &c));
		TRY(catalog_verify_cursor_next(x->v, &c));
	}
	return STATUS_OK;
}

/* Loads the definitions into x->db, and chooses those whose entries can be compared. */
static enum status
definitions_load(struct verify_indexes *x)
{
	const struct index_set *set;
	struct err err = { 0 };

	x->db = *x->v->db;
	x->db.extension = NULL;
	if (index_set_load(x->v->tx, &x->db, &x->db.extension, &err) != STATUS_OK)
		return STATUS_OK; /* what cannot be read has been told already */
	set = index_set_of(&x->db);
	if (!set || set->count == 0)
		return STATUS_OK;
	x->indexes = mem_zalloc(set->count * sizeof(*x->indexes));
	if (!x->indexes)
		return STATUS_NOMEM;
	x->count = set->count;
	for (size_t i = 0; i < set->count; i++) {
		const struct index_def *def = &set->defs[i];

		x->indexes[i].def = def;
		x->indexes[i].compared = (def->state == INDEX_BUILDING ||
					  def->state == INDEX_READY) &&
					 !index_is_outdated(def);
	}
	return STATUS_OK;
}

/* ---- From documents to entries ---- */

static enum status
document_read(struct verify_indexes *x, struct str id, struct rev_doc *ret)
{
	unsigned failures = 0;

	for (;;) {
		enum status status = rev_doc_read(x->v->tx, &x->db, id, x->arena, ret);

		if (status == STATUS_OK || status == STATUS_NOT_FOUND || status == STATUS_DELETED)
			return status;
		TRY(catalog_verify_again(x->v, &failures, status));
	}
}

static enum status
entry_look_up(struct verify_indexes *x, const struct index_def *def, const struct kv_pair *pair)
{
	struct kv_future *f = NULL;
	struct str value;
	enum status status;

	status = catalog_verify_get(x->v, pair->key, &f);
	if (status != STATUS_OK)
		return status;
	if (!kv_future_value(f, &value)) {
		if (def->state == INDEX_READY)
			catalog_verify_found(x->v, REV_FINDING_INDEX, pair->key,
					     "the document has no entry in the index");
	} else if (!str_eq(value, pair->value)) {
		catalog_verify_found(x->v, REV_FINDING_INDEX, pair->key,
				     "the entry does not have the document's values");
	}
	kv_future_free(f);
	return STATUS_OK;
}

static enum status
document_check(struct verify_indexes *x, struct str id)
{
	struct index_source source;
	struct rev_doc doc;
	enum status status = document_read(x, id, &doc);

	if (status == STATUS_NOT_FOUND || status == STATUS_DELETED)
		return STATUS_OK; /* told by the check of documents */
	TRY(status);
	TRY(rev_index_source(&x->db, id, &doc, x->arena, &source));
	for (size_t i = 0; i < x->count; i++) {
		struct verify_index *index = &x->indexes[i];
		struct index_pairs pairs = { 0 };

		if (!index->compared)
			continue;
		TRY(index_entries_make(&x->db, index->def, &source, &x->work, &pairs));
		index->expected += pairs.count;
		for (size_t k = 0; k < pairs.count; k++)
			TRY(entry_look_up(x, index->def, &pairs.pairs[k]));
	}
	return STATUS_OK;
}

static enum status
documents_check(struct verify_indexes *x)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	TRY(catalog_verify_cursor_open(x->v, &c, REV_SUBSPACE_ALL_DOCS));
	while (!c.done) {
		struct tuple_reader r = tuple_reader(c.tail);
		struct str id;

		arena_clear(x->arena);
		if (catalog_next_text(&r, TUPLE_STRING, x->arena, true, &id) == STATUS_OK &&
		    rev_id_is_indexed(id))
			TRY(document_check(x, id));
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
entries_count(struct verify_indexes *x)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	TRY(catalog_verify_cursor_open(x->v, &c, REV_SUBSPACE_ENTRIES));
	while (!c.done) {
		struct str tail;
		struct verify_index *index = index_of_entry(x, &c, &tail);

		if (index)
			index->stored++;
		else
			catalog_verify_found(x->v, REV_FINDING_INDEX_STRAY, c.pair.key,
					     "there is no such index");
		TRY(catalog_verify_cursor_next(x->v, &c));
	}
	return STATUS_OK;
}

/* Tells of an entry that its document does not make. */
static enum status
entry_check(struct verify_indexes *x, const struct index_def *def,
	    const struct catalog_verify_cursor *c, struct str tail)
{
	struct index_pairs pairs = { 0 };
	struct index_source source;
	struct index_entry entry;
	struct rev_doc doc;
	enum status status;

	arena_clear(x->arena);
	status = index_entry_parse(def, tail, c->pair.value, x->arena, &entry);
	if (status == STATUS_CORRUPT || status == STATUS_NEWER) {
		catalog_verify_found(x->v, CATALOG_FINDING_VALUE, c->pair.key,
				     "not an entry of an index");
		return STATUS_OK;
	}
	TRY(status);
	status = document_read(x, entry.id, &doc);
	if (status == STATUS_OK) {
		TRY(rev_index_source(&x->db, entry.id, &doc, x->arena, &source));
		TRY(index_entries_make(&x->db, def, &source, &x->work, &pairs));
	} else if (status != STATUS_NOT_FOUND && status != STATUS_DELETED) {
		return status;
	}
	for (size_t i = 0; i < pairs.count; i++)
		if (str_eq(pairs.pairs[i].key, c->pair.key))
			return STATUS_OK;
	catalog_verify_found(x->v, REV_FINDING_INDEX_STRAY, c->pair.key,
			     "no document has this entry");
	return STATUS_OK;
}

static enum status
entries_check(struct verify_indexes *x)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	TRY(catalog_verify_cursor_open(x->v, &c, REV_SUBSPACE_ENTRIES));
	while (!c.done) {
		struct str tail;
		struct verify_index *index = index_of_entry(x, &c, &tail);

		if (index && index->compared && index->stored != index->expected)
			TRY(entry_check(x, index->def, &c, tail));
		TRY(catalog_verify_cursor_next(x->v, &c));
	}
	return STATUS_OK;
}

static enum status
indexes_check(struct verify_indexes *x)
{
	bool differ = false;

	TRY(definitions_check(x));
	TRY(definitions_load(x));
	if (x->count)
		TRY(documents_check(x));
	TRY(entries_count(x));
	for (size_t i = 0; i < x->count; i++)
		differ = differ ||
			 (x->indexes[i].compared && x->indexes[i].stored != x->indexes[i].expected);
	return differ ? entries_check(x) : STATUS_OK;
}

enum status
verify_indexes(struct catalog_verify *v)
{
	struct verify_indexes x = { .v = v, .arena = arena_new(VERIFY_INDEX_ARENA_BYTES) };
	enum status status = STATUS_NOMEM;

	x.work.arena = x.arena;
	if (x.arena)
		status = indexes_check(&x);
	index_set_free(x.db.extension);
	mem_free(x.indexes);
	arena_free(x.arena);
	return status;
}
