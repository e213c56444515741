#include "index/engine/verify.h"

#include <endian.h>

#include "base/mem.h"
#include "catalog/keys.h"
#include "index/engine/build.h"
#include "index/engine/update.h"

struct verify_index {
	const struct index_def *def;
	bool compared; /* BUILDING or READY, of this process's collation */
	uint64_t expected;
	uint64_t stored;
	uint64_t missing; /* of those that a READY index has to have */
};

struct verify {
	const struct index_verify_model *model;
	struct index_verify_on on;
	struct index_work work;
	struct verify_index *indexes;
	size_t count;
};

/* ---- Definitions ---- */

/* What follows (P, INDEXES, "build", number, INDEX_BUILD_MARKS). */
static bool
is_mark(struct tuple_reader r, struct str value)
{
	struct tuple_elem e;

	return tuple_next(&r, &e) == STATUS_OK && e.kind == TUPLE_BYTES && !r.rest.len &&
	       !value.len;
}

/* (P, INDEXES, "build", number, stretch), or a mark. */
static void
check_build(struct verify *x, const struct catalog_verify_cursor *c)
{
	struct tuple_reader r = tuple_reader(c->tail);
	struct index_build_record record;
	struct err err = { 0 };
	uint64_t number, stretch;
	enum status status;
	struct str word;
	bool marks;

	if (!catalog_verify_text_next(&r, TUPLE_STRING, &word) ||
	    tuple_next_u64(&r, &number) != STATUS_OK || tuple_next_u64(&r, &stretch) != STATUS_OK) {
		catalog_verify_found(x->on.v, CATALOG_FINDING_KEY, c->pair.key,
				     "neither an index nor a part of its build");
		return;
	}
	marks = !x->on.db.kind->index_form->has_revisions && stretch == INDEX_BUILD_MARKS;
	if (marks || r.rest.len) {
		if (!marks || !is_mark(r, c->pair.value))
			catalog_verify_found(x->on.v, CATALOG_FINDING_KEY, c->pair.key,
					     "not a mark of a build");
		return;
	}
	status = index_build_record_parse(c->pair.value, x->on.arena, &record, &err);
	if (status != STATUS_OK)
		catalog_verify_unreadable(x->on.v, status, &err, c->pair.key,
					  "not how far a build is");
}

/* (P, INDEXES), (P, INDEXES, number) */
static void
check_definition(struct verify *x, const struct catalog_verify_cursor *c)
{
	struct tuple_reader r = tuple_reader(c->tail);
	struct err err = { 0 };
	struct index_def def;
	enum status status;
	uint64_t number;

	arena_clear(x->on.arena);
	if (!c->tail.len) {
		r = tuple_reader(c->pair.value);
		if (tuple_next_u64(&r, &number) != STATUS_OK || r.rest.len)
			catalog_verify_found(x->on.v, CATALOG_FINDING_VALUE, c->pair.key,
					     "not the number of the next index");
		return;
	}
	if (tuple_next_u64(&r, &number) != STATUS_OK || r.rest.len) {
		check_build(x, c);
		return;
	}
	status = index_def_parse(x->on.db.kind->index_form, c->pair.value, x->on.arena, &def, &err);
	if (status == STATUS_OK && index_def_check(&def, x->on.arena, &err) == STATUS_CORRUPT)
		status = STATUS_CORRUPT;
	if (!catalog_verify_parsed_in(x->on.v, status, x->on.arena))
		catalog_verify_unreadable(x->on.v, status, &err, c->pair.key,
					  "not the definition of an index");
}

static enum status
check_definitions(struct verify *x)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	TRY(catalog_verify_cursor_open(x->on.v, &c, INDEX_SPACE_DEFS));
	while (!c.done) {
		check_definition(x, &c);
		TRY(catalog_verify_cursor_next(x->on.v, &c));
	}
	return STATUS_OK;
}

static bool
is_compared(const struct index_def *def)
{
	return (def->state == INDEX_BUILDING || def->state == INDEX_READY) && !index_is_stale(def);
}

/* Entries of another version's texts are compared with nothing, and used for nothing. */
static void
tell_if_stale(struct verify *x, const struct index_def *def)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	if (x->on.again || !def->collation.len ||
	    (def->state != INDEX_STALE && !index_is_stale(def)))
		return;
	index_key_def(&key, &x->on.db, def->number);
	catalog_verify_found(x->on.v, x->model->finding, buf_str(&key),
			     "another version of ICU orders the texts of the index, which is not "
			     "used until it is built again");
}

/* Loads the definitions, and chooses those whose entries can be compared. */
static enum status
load_definitions(struct verify *x)
{
	const struct index_set *set;
	unsigned failures = 0;
	enum status status;

	do {
		struct err err = { 0 };

		status = x->model->load(&x->on, &err);
		if (status == STATUS_CORRUPT || status == STATUS_NEWER)
			return STATUS_OK; /* it has been told already */
		if (status != STATUS_OK)
			TRY(catalog_verify_again(x->on.v, &failures, status));
	} while (status != STATUS_OK);
	set = index_set_of(&x->on.db);
	if (!set || !set->count)
		return STATUS_OK;
	x->indexes = mem_zalloc(set->count * sizeof(*x->indexes));
	if (!x->indexes)
		return STATUS_NOMEM;
	x->count = set->count;
	for (size_t i = 0; i < set->count; i++) {
		x->indexes[i] = (struct verify_index){ .def = &set->defs[i],
						       .compared = is_compared(&set->defs[i]) };
		tell_if_stale(x, &set->defs[i]);
	}
	return STATUS_OK;
}

/* ---- From documents to entries ---- */

static enum status
look_up_entry(struct verify *x, struct verify_index *index, const struct kv_pair *pair)
{
	struct kv_future *f = NULL;
	struct str value;

	TRY(catalog_verify_get(x->on.v, pair->key, &f));
	if (!kv_future_value(f, &value)) {
		if (index->def->state == INDEX_READY) {
			index->missing++;
			catalog_verify_found(x->on.v, x->model->finding, pair->key,
					     "the document has no entry in the index");
		}
	} else if (!str_eq(value, pair->value)) {
		catalog_verify_found(x->on.v, x->model->finding, pair->key,
				     "the entry does not have the document's values");
	}
	kv_future_free(f);
	return STATUS_OK;
}

static enum status
check_document_in(struct verify *x, struct verify_index *index, struct str key,
		  const struct index_source *source)
{
	bool ready = index->def->state == INDEX_READY;
	struct index_pairs pairs = { 0 };
	enum status status = index_entries_make(&x->on.db, index->def, source, &x->work, &pairs);

	if (status == STATUS_UNSUPPORTED) {
		if (ready)
			catalog_verify_found(x->on.v, x->model->finding, key,
					     "an index cannot have this document");
		return STATUS_OK;
	}
	/* A document that is damaged is told by the check of documents. */
	if (status == STATUS_CORRUPT)
		return STATUS_OK;
	TRY(status);
	if (ready && (pairs.many & ~index->def->many))
		catalog_verify_found(x->on.v, x->model->finding, key,
				     "an index does not know of arrays or long values");
	index->expected += pairs.count;
	for (size_t i = 0; i < pairs.count; i++)
		TRY(look_up_entry(x, index, &pairs.pairs[i]));
	return STATUS_OK;
}

/* STATUS_NOT_FOUND: there is none with this id that could be read. */
static enum status
read_document(struct verify *x, struct str id, struct index_source *ret)
{
	unsigned failures = 0;

	for (;;) {
		enum status status = x->model->source(&x->on, id, ret);

		if (status == STATUS_OK || status == STATUS_NOT_FOUND)
			return status;
		TRY(catalog_verify_again(x->on.v, &failures, status));
	}
}

/* `id`: of the document whose first pair the cursor is at, in the arena. */
static enum status
check_document(struct verify *x, const struct catalog_verify_cursor *c, struct str id)
{
	struct index_source source;
	enum status status = read_document(x, id, &source);

	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	for (size_t i = 0; i < x->count; i++)
		if (x->indexes[i].compared)
			TRY(check_document_in(x, &x->indexes[i], c->pair.key, &source));
	return STATUS_OK;
}

static enum status
check_documents(struct verify *x)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	struct str id;

	TRY(catalog_verify_cursor_open(x->on.v, &c, x->model->documents));
	while (!c.done) {
		arena_clear(x->on.arena);
		if (x->model->id(&x->on, c.tail, &id))
			TRY(check_document(x, &c, id));
		TRY(catalog_verify_cursor_next(x->on.v, &c));
	}
	return STATUS_OK;
}

/* ---- From entries to documents ---- */

/* The index of an entry; `*ret_tail` is its key from behind the number. NULL: there is none. */
static struct verify_index *
index_of_entry(struct verify *x, const struct catalog_verify_cursor *c, struct str *ret_tail)
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
count_entries(struct verify *x, uint64_t *ret)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	*ret = 0;
	TRY(catalog_verify_cursor_open(x->on.v, &c, INDEX_SPACE_ENTRIES));
	while (!c.done) {
		struct str tail;
		struct verify_index *index = index_of_entry(x, &c, &tail);

		++*ret;
		if (index)
			index->stored++;
		else
			catalog_verify_found(x->on.v, x->model->finding_stray, c.pair.key,
					     "there is no such index");
		TRY(catalog_verify_cursor_next(x->on.v, &c));
	}
	return STATUS_OK;
}

/* Tells of an entry that its document does not make. */
static enum status
check_entry(struct verify *x, const struct index_def *def, const struct catalog_verify_cursor *c,
	    struct str tail)
{
	struct index_pairs pairs = { 0 };
	struct index_source source;
	struct index_entry entry;
	enum status status;

	arena_clear(x->on.arena);
	status = index_entry_parse(def, tail, c->pair.value, x->on.arena, &entry);
	if (status == STATUS_CORRUPT || status == STATUS_NEWER) {
		catalog_verify_found(x->on.v, CATALOG_FINDING_VALUE, c->pair.key,
				     "not an entry of an index");
		return STATUS_OK;
	}
	TRY(status);
	status = read_document(x, entry.id, &source);
	if (status == STATUS_OK)
		status = index_entries_make(&x->on.db, def, &source, &x->work, &pairs);
	if (status == STATUS_CORRUPT)
		return STATUS_OK;
	if (status != STATUS_NOT_FOUND && status != STATUS_UNSUPPORTED)
		TRY(status);
	for (size_t i = 0; i < pairs.count; i++)
		if (str_eq(pairs.pairs[i].key, c->pair.key))
			return STATUS_OK;
	catalog_verify_found(x->on.v, x->model->finding_stray, c->pair.key,
			     "no document has this entry");
	return STATUS_OK;
}

/* Whether there may be entries that no document has. Beside a missing one they change no sum. */
static bool
may_have_strays(const struct verify_index *index)
{
	return index->compared && (index->stored != index->expected || index->missing);
}

static enum status
check_entries(struct verify *x)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };

	TRY(catalog_verify_cursor_open(x->on.v, &c, INDEX_SPACE_ENTRIES));
	while (!c.done) {
		struct str tail;
		struct verify_index *index = index_of_entry(x, &c, &tail);

		if (index && may_have_strays(index))
			TRY(check_entry(x, index->def, &c, tail));
		TRY(catalog_verify_cursor_next(x->on.v, &c));
	}
	return STATUS_OK;
}

static enum status
check_indexes(struct verify *x, uint64_t *ret_entries)
{
	bool differ = false;

	TRY(check_definitions(x));
	TRY(load_definitions(x));
	if (x->count)
		TRY(check_documents(x));
	TRY(count_entries(x, ret_entries));
	for (size_t i = 0; i < x->count; i++)
		differ = differ || may_have_strays(&x->indexes[i]);
	return differ ? check_entries(x) : STATUS_OK;
}

/* STATUS_NOMEM; verify_end() in any case. */
static enum status
verify_begin(struct verify *x, struct catalog_verify *v, const struct index_verify_model *model)
{
	*x = (struct verify){
		.model = model,
		.on = { .v = v, .db = *v->db, .arena = arena_new(model->arena_bytes) },
	};
	x->on.db.extension = NULL;
	x->work.arena = x->on.arena;
	return x->on.arena ? STATUS_OK : STATUS_NOMEM;
}

static void
verify_end(struct verify *x)
{
	x->model->unload(x->on.db.extension);
	mem_free(x->indexes);
	arena_free(x->on.arena);
}

enum status
index_verify(struct catalog_verify *v, const struct index_verify_model *model,
	     uint64_t *ret_entries)
{
	struct verify x;
	enum status status;

	*ret_entries = 0;
	status = verify_begin(&x, v, model);
	if (status == STATUS_OK)
		status = check_indexes(&x, ret_entries);
	verify_end(&x);
	return status;
}

enum status
index_verify_total(struct catalog_verify *v, const struct index_verify_model *model, uint64_t space,
		   const uint64_t *entries)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	AUTO(buf_release) struct buf name = BUF_INIT(64);
	uint64_t count = 0;

	tuple_put_str(&name, STR(INDEX_STAT_ENTRIES));
	TRY(buf_status(&name));
	TRY(catalog_verify_cursor_open(v, &c, space));
	while (!c.done) {
		if (!str_eq(c.tail, buf_str(&name)))
			catalog_verify_found(v, CATALOG_FINDING_KEY, c.pair.key,
					     "no counter is called so");
		else if (c.pair.value.len != CATALOG_COUNTER_BYTES)
			catalog_verify_found(v, CATALOG_FINDING_VALUE, c.pair.key, "not a counter");
		else
			memcpy(&count, c.pair.value.ptr, sizeof(count));
		TRY(catalog_verify_cursor_next(v, &c));
	}
	count = le64toh(count);
	if (!entries || count == *entries)
		return STATUS_OK;
	buf_clear(&v->key);
	buf_append_str(&v->key, v->db->prefix);
	tuple_put_u64(&v->key, space);
	TRY(catalog_key_status(&v->key));
	catalog_verify_found(v, model->finding, buf_str(&v->key),
			     "the counter says %llu, and there are %llu entries",
			     (unsigned long long)count, (unsigned long long)*entries);
	return STATUS_OK;
}

/* ---- In ranges: each with the definitions of its moment ---- */

typedef enum status range_walk(struct verify *x, struct catalog_verify_range *range);

struct verify_ranges {
	const struct index_verify_model *model;
	range_walk *walk; /* NULL: the definitions are checked */
};

static enum status
walk_documents(struct verify *x, struct catalog_verify_range *range)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	struct catalog_verify *v = x->on.v;
	struct str id;

	TRY(catalog_verify_cursor_open_from(v, &c, x->model->documents, buf_str(&range->from)));
	while (!c.done) {
		enum catalog_verify_unit unit = CATALOG_VERIFY_PASS;

		arena_clear(x->on.arena);
		/* Other keys of a document follow its first one. */
		if (x->model->id(&x->on, c.tail, &id))
			unit = catalog_verify_range_unit(v, range, &c, "entries of a document");
		if (unit == CATALOG_VERIFY_END)
			return STATUS_OK;
		if (unit == CATALOG_VERIFY_CHECK)
			TRY(check_document(x, &c, id));
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

static enum status
walk_entry(struct verify *x, const struct catalog_verify_cursor *c)
{
	struct str tail;
	struct verify_index *index = index_of_entry(x, c, &tail);

	if (!index)
		catalog_verify_found(x->on.v, x->model->finding_stray, c->pair.key,
				     "there is no such index");
	return index && index->compared ? check_entry(x, index->def, c, tail) : STATUS_OK;
}

static enum status
walk_entries(struct verify *x, struct catalog_verify_range *range)
{
	AUTO(catalog_verify_cursor_close) struct catalog_verify_cursor c = { .done = true };
	struct catalog_verify *v = x->on.v;

	TRY(catalog_verify_cursor_open_from(v, &c, INDEX_SPACE_ENTRIES, buf_str(&range->from)));
	while (!c.done) {
		enum catalog_verify_unit unit = catalog_verify_range_unit(v, range, &c,
									  "an entry of an index");

		if (unit == CATALOG_VERIFY_END)
			return STATUS_OK;
		if (unit == CATALOG_VERIFY_CHECK)
			TRY(walk_entry(x, &c));
		TRY(catalog_verify_cursor_next(v, &c));
	}
	return STATUS_OK;
}

static enum status
ranges_body(struct catalog_verify *v, struct catalog_verify_range *range)
{
	const struct verify_ranges *ranges = range->arg;
	struct verify x;
	enum status status = verify_begin(&x, v, ranges->model);

	x.on.again = ranges->walk != NULL;
	if (status == STATUS_OK && !ranges->walk)
		status = check_definitions(&x);
	if (status == STATUS_OK)
		status = load_definitions(&x);
	if (status == STATUS_OK && ranges->walk && (x.count || ranges->walk == walk_entries))
		status = ranges->walk(&x, range);
	verify_end(&x);
	return status;
}

enum status
index_verify_in_ranges(struct catalog_verify *v, const struct index_verify_model *model)
{
	static range_walk *const walks[] = { NULL, walk_documents, walk_entries };
	struct verify_ranges ranges = { .model = model };

	for (size_t i = 0; i < sizeof(walks) / sizeof(walks[0]); i++) {
		ranges.walk = walks[i];
		TRY(catalog_verify_ranges(v, ranges_body, &ranges));
	}
	return STATUS_OK;
}
