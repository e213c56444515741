/* Loads the definitions of a database, creates them and changes their states. */
#include "index/engine/build.h"
#include "index/engine/def.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#include "base/mem.h"
#include "catalog/keys.h"
#include "index/versions.h"

enum {
	/* The memory of all definitions of a database, with their compiled filters. */
	SET_BYTES = 64 * 1024 * 1024,
	STAMP_ORDER_LAST = 0xffff,
};

/* A set and what it lies in. */
struct owned_set {
	struct index_set set; /* first: what callers hold */
	struct arena *arena;
	struct index_def *defs; /* as set.defs, while they are read */
	size_t cap;
};

/* ---- What orders texts ---- */

static pthread_once_t collator_once = PTHREAD_ONCE_INIT;
static char collator_text[INDEX_COLLATOR_BYTES];
static char locales_text[INDEX_COLLATOR_BYTES];

static void
collator_read(void)
{
	struct index_versions versions;

	index_versions_read(&versions);
	if (!versions.collator[0])
		return;
	(void)snprintf(collator_text, sizeof(collator_text), "%s/%s", versions.algorithm,
		       versions.collator);
	(void)snprintf(locales_text, sizeof(locales_text), "%s/%s/%s", versions.library,
		       versions.algorithm, versions.collator);
}

struct str
index_collator(bool of_locales)
{
	(void)pthread_once(&collator_once, collator_read);
	return str_from_cstr(of_locales ? locales_text : collator_text);
}

static bool
def_uses_icu(const struct index_def *def)
{
	return def->order == DOC_KEY_COUCH || def->collation.len;
}

/* What compares texts by their bytes does so whatever the version of ICU. */
static struct str
def_collator(const struct index_def *def)
{
	return def_uses_icu(def) ? index_collator(def->collation.len) : STR("");
}

static bool
def_is_of_this_collator(const struct index_def *def)
{
	return str_eq(def->collator, def_collator(def));
}

/* ---- Keys ---- */

/* (P, INDEXES), which has the number that the next index gets. */
static void
key_defs(struct buf *key, const struct catalog_db *db)
{
	buf_set(key, db->prefix);
	tuple_put_u64(key, INDEX_SPACE_DEFS);
}

void
index_key_def(struct buf *key, const struct catalog_db *db, uint64_t number)
{
	key_defs(key, db);
	tuple_put_u64(key, number);
}

void
index_key_build(struct buf *key, const struct catalog_db *db, uint64_t number)
{
	key_defs(key, db);
	tuple_put_str(key, STR("build"));
	tuple_put_u64(key, number);
}

void
index_key_mark(struct buf *key, const struct catalog_db *db, uint64_t number, struct str id)
{
	index_key_build(key, db, number);
	tuple_put_u64(key, INDEX_BUILD_MARKS);
	if (id.len)
		tuple_put_bytes(key, id);
}

/* ---- Loading ---- */

/* index_set_free(), or who has given the arena, closes it again. */
static enum status
def_open(struct index_def *def, bool is_current, struct arena *arena, struct err *err)
{
	if (!def->filter.ptr && !def->collation.len)
		return STATUS_OK;
	return def->form->open(def, is_current, arena, err);
}

static void
def_close(struct index_def *def)
{
	if (def->opened && def->form->close)
		def->form->close(def->opened);
}

/* What a definition says has been checked when the index was created. */
static enum status
def_open_stored(struct index_def *def, struct arena *arena, struct err *err)
{
	bool is_current = def->state != INDEX_DROPPED && def_is_of_this_collator(def);
	enum status status = def_open(def, is_current, arena, err);

	return status == STATUS_INVALID ? STATUS_CORRUPT : status;
}

enum status
index_def_check(struct index_def *def, struct arena *arena, struct err *err)
{
	enum status status = def_open_stored(def, arena, err);

	def_close(def);
	return status;
}

static enum status
index_set_add(struct owned_set *o, const struct index_form *form, struct str key_tail,
	      struct str value, struct err *err)
{
	struct tuple_reader r = tuple_reader(key_tail);
	struct index_def *def;
	enum status status;
	uint64_t number;

	TRY(tuple_next_u64(&r, &number));
	if (r.rest.len)
		return STATUS_CORRUPT;
	TRY(catalog_array_grow(o->arena, (void **)&o->defs, sizeof(*o->defs), o->set.count,
			       &o->cap));
	o->set.defs = o->defs;
	def = &o->defs[o->set.count];
	status = index_def_parse(form, value, o->arena, def, err);
	if (status == STATUS_OK) {
		def->number = number;
		o->set.count++; /* from here on index_set_free() knows of it */
		status = def_open_stored(def, o->arena, err);
	}
	if (status == STATUS_CORRUPT)
		return err_set(err, status, "The definition of the index %llu is damaged.",
			       (unsigned long long)number);
	return status;
}

static bool
def_may_use_rev(const struct index_def *def)
{
	if (!def->form->has_revisions)
		return false;
	for (size_t i = 0; i < def->column_count; i++)
		if (str_eq(def->columns[i].path[0], STR("_rev")))
			return true;
	return def->filter.ptr;
}

static enum status
set_choose_kept(struct owned_set *o)
{
	struct index_set *set = &o->set;

	set->kept = arena_alloc(o->arena, (set->count + 1) * sizeof(*set->kept));
	if (!set->kept)
		return STATUS_NOMEM;
	for (size_t i = 0; i < set->count; i++) {
		const struct index_def *def = &set->defs[i];

		if (index_is_stale(def))
			set->any_stale = true;
		if (index_is_stale(def) ||
		    (def->state != INDEX_BUILDING && def->state != INDEX_READY))
			continue;
		set->kept[set->kept_count++] = def;
		set->any_rev = set->any_rev || def_may_use_rev(def);
		set->any_unique = set->any_unique || (def->flags & INDEX_UNIQUE);
	}
	return STATUS_OK;
}

/*
 * Whatever writes a definition touches the metadata version, except for index_forget(), which
 * clears one that nobody goes by any more. So a transaction that has read that version reads
 * definitions without a conflict of their own, and outlives the forgetting.
 */
static enum status
set_read(struct kv_tx *tx, const struct catalog_db *db, struct owned_set **ret, struct err *err)
{
	AUTO(buf_release) struct buf lo = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;
	AUTO(kv_scan_release) struct kv_scan scan = { 0 };
	const struct kv_range_options options = { .mode = db->by_version ? KV_SNAPSHOT : KV_READ };
	struct kv_pair pair;
	enum status status;
	size_t prefix_len;

	key_defs(&lo, db);
	key_defs(&hi, db);
	prefix_len = lo.len;
	/* Numbers of indexes, and nothing of what builds note, which is below a text. */
	buf_append_byte(&lo, TUPLE_CODE_INT_ZERO);
	buf_append_byte(&hi, TUPLE_CODE_INT_MOST + 1);
	TRY(catalog_key_status(&lo));
	TRY(catalog_key_status(&hi));
	TRY(kv_scan_init(&scan, tx, buf_str(&lo), buf_str(&hi), &options));
	while ((status = kv_scan_next(&scan, &pair)) == STATUS_OK) {
		if (!*ret) {
			*ret = mem_zalloc(sizeof(**ret));
			if (!*ret)
				return STATUS_NOMEM;
			(*ret)->arena = arena_new(SET_BYTES);
			if (!(*ret)->arena)
				return STATUS_NOMEM;
		}
		TRY(index_set_add(*ret, db->kind->index_form, str_skip(pair.key, prefix_len),
				  pair.value, err));
	}
	if (status != STATUS_NOT_FOUND)
		return status;
	return *ret ? set_choose_kept(*ret) : STATUS_OK;
}

enum status
index_set_load(struct kv_tx *tx, const struct catalog_db *db, void **ret, struct err *err)
{
	struct owned_set *set = NULL;
	enum status status = set_read(tx, db, &set, err);

	if (status != STATUS_OK) {
		index_set_free(set);
		return status;
	}
	*ret = set;
	return STATUS_OK;
}

void
index_set_free(void *set)
{
	struct owned_set *o = set;

	if (!o)
		return;
	for (size_t i = 0; i < o->set.count; i++)
		def_close(&o->defs[i]);
	arena_free(o->arena);
	mem_free(o);
}

enum status
index_set_has_room(struct kv_tx *tx, const struct catalog_db *db, size_t most, bool *ret,
		   struct err *err)
{
	const struct index_set *known = index_set_of(db);
	struct owned_set *now = NULL;
	enum status status;

	*ret = !known || known->count < most;
	if (*ret)
		return STATUS_OK;
	status = set_read(tx, db, &now, err);
	*ret = !now || now->set.count < most;
	index_set_free(now);
	return status;
}

const struct index_def *
index_find(const struct catalog_db *db, uint64_t number)
{
	const struct index_set *set = index_set_of(db);

	for (size_t i = 0; set && i < set->count; i++)
		if (set->defs[i].number == number)
			return &set->defs[i];
	return NULL;
}

bool
index_build_wants(const struct index_def *def, const struct catalog_seq *seq)
{
	return catalog_seq_cmp(seq, &def->created) <= 0;
}

bool
index_set_builds(const struct index_set *set, const struct catalog_seq *seq)
{
	for (size_t i = 0; i < set->kept_count; i++)
		if (set->kept[i]->state == INDEX_BUILDING && index_build_wants(set->kept[i], seq))
			return true;
	return false;
}

bool
index_is_stale(const struct index_def *def)
{
	return (def->state == INDEX_BUILDING || def->state == INDEX_READY) &&
	       !def_is_of_this_collator(def);
}

bool
index_is_readable(const struct index_def *def)
{
	return def->state == INDEX_READY && def_is_of_this_collator(def);
}

/* ---- Creating ---- */

static enum status
terms_check_columns(const struct index_def *terms, struct err *err)
{
	if (terms->column_count == 0)
		return err_set(err, STATUS_INVALID, "An index needs at least one field.");
	if (terms->column_count + terms->carried > INDEX_COLUMNS)
		return err_set(err, STATUS_LIMIT, "An index has at most %d fields.", INDEX_COLUMNS);
	for (size_t i = 0; i < terms->column_count + terms->carried; i++) {
		if (terms->columns[i].path_count == 0)
			return err_set(err, STATUS_INVALID, "A field of an index has no name.");
		if (terms->columns[i].path_count > INDEX_PATH_NAMES)
			return err_set(err, STATUS_LIMIT,
				       "The path of an index's field has at most %d names.",
				       INDEX_PATH_NAMES);
	}
	return STATUS_OK;
}

static enum status
terms_check_form(const struct index_def *terms, struct err *err)
{
	struct arena *arena = arena_new(SET_BYTES);
	struct index_def def = *terms;
	enum status status;

	if (!arena)
		return STATUS_NOMEM;
	def.opened = NULL;
	status = def_open(&def, true, arena, err);
	if (status == STATUS_OK && def.collation.len)
		status = def.form->check_collation(&def, err);
	def_close(&def);
	arena_free(arena);
	return status;
}

static enum status
terms_check(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *terms,
	    struct err *err)
{
	bool has_room;

	TRY(index_set_has_room(tx, db, INDEX_DEFS, &has_room, err));
	if (!has_room)
		return err_set(err, STATUS_LIMIT, "A database has at most %d indexes.", INDEX_DEFS);
	if (terms->name.len > INDEX_TEXT_BYTES || terms->owner.len > INDEX_TEXT_BYTES)
		return err_set(err, STATUS_LIMIT, "The name of an index has at most %d bytes.",
			       INDEX_TEXT_BYTES);
	if (terms->spec.len > INDEX_SPEC_BYTES)
		return err_set(err, STATUS_LIMIT, "An index is described by at most %d bytes.",
			       INDEX_SPEC_BYTES);
	if (terms->collation.len > terms->form->collation_bytes)
		return err_set(err, STATUS_INVALID, "This index can have no such collation.");
	if (terms->filter.ptr && terms->filter.len > INDEX_FILTER_BYTES)
		return err_set(err, STATUS_LIMIT, "A partial filter has at most %d bytes.",
			       INDEX_FILTER_BYTES);
	TRY(terms_check_columns(terms, err));
	return terms_check_form(terms, err);
}

static enum status
number_allocate(struct kv_tx *tx, const struct catalog_db *db, uint64_t *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf next = BUF_INIT(16);
	uint64_t number = 1;
	struct kv_future *f;
	struct str value;

	key_defs(&key, db);
	TRY(catalog_key_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (kv_future_value(f, &value)) {
		struct tuple_reader r = tuple_reader(value);

		TRY(tuple_next_u64(&r, &number));
	}
	tuple_put_u64(&next, number + 1);
	TRY(buf_status(&next));
	*ret = number;
	return kv_set(tx, buf_str(&key), buf_str(&next));
}

enum status
index_create(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *terms,
	     uint64_t *ret_number, struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(INDEX_RECORD_BYTES);
	struct index_def def = *terms;
	size_t offset;

	assert(terms->state == INDEX_BUILDING || terms->state == INDEX_READY);
	TRY(catalog_db_check_writable(db, err));
	def.form = db->kind->index_form;
	def.flags |= def.form->flag;
	TRY(terms_check(tx, db, &def, err));
	def.collator = def_collator(&def);
	if (def_uses_icu(&def) && def.collator.len == 0)
		return err_set(err, STATUS_UNAVAILABLE, "The data of ICU cannot be read.");
	def.failure = STR("");
	def.created = (struct catalog_seq){ 0 };
	if (def.form->has_revisions) {
		def.created.bytes[0] = db->incarnation;
		/* Documents of this very transaction are below: nobody knew of the index then. */
		catalog_stamp(STAMP_ORDER_LAST, def.created.bytes + 1);
	}
	offset = index_def_put(&value, &def);
	if (buf_status(&value) == STATUS_LIMIT)
		return err_set(err, STATUS_LIMIT, "A definition of an index has at most %d bytes.",
			       INDEX_RECORD_BYTES);
	TRY(buf_status(&value));
	TRY(number_allocate(tx, db, ret_number));
	index_key_def(&key, db, *ret_number);
	TRY(catalog_key_status(&key));
	if (def.form->has_revisions)
		TRY(kv_set_versionstamped_value(tx, buf_str(&key), buf_str(&value), offset));
	else
		TRY(kv_set(tx, buf_str(&key), buf_str(&value)));
	if (def.state == INDEX_BUILDING)
		TRY(index_work_note(tx, db));
	return kv_touch_metadata_version(tx);
}

/* ---- Changing ---- */

/* Writes the definition anew. */
static enum status
def_write(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *now)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(INDEX_RECORD_BYTES + INDEX_TEXT_BYTES);

	index_key_def(&key, db, now->number);
	TRY(catalog_key_status(&key));
	(void)index_def_put(&value, now);
	TRY(buf_status(&value));
	TRY(kv_set(tx, buf_str(&key), buf_str(&value)));
	return kv_touch_metadata_version(tx);
}

enum status
index_state_set(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def,
		enum index_state state, struct str failure)
{
	struct index_def now = *def;

	now.state = state;
	now.failure = failure.len > INDEX_TEXT_BYTES ? str_of(failure.ptr, INDEX_TEXT_BYTES)
						     : failure;
	if (state == INDEX_DROPPED || state == INDEX_STALE || state == INDEX_FAILED)
		TRY(index_work_note(tx, db));
	return def_write(tx, db, &now);
}

enum status
index_spec_set(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def,
	       struct str spec, struct err *err)
{
	struct index_def now = *def;

	assert(def->form->format != INDEX_FORMAT_LEAST);
	if (spec.len > INDEX_SPEC_BYTES)
		return err_set(err, STATUS_LIMIT, "An index is described by at most %d bytes.",
			       INDEX_SPEC_BYTES);
	now.spec = spec;
	return def_write(tx, db, &now);
}

/* Reads the definition as this transaction sees it, with a conflict. */
static enum status
def_read(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def,
	 struct arena *arena, struct index_def *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value;

	index_key_def(&key, db, def->number);
	TRY(catalog_key_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_CORRUPT;
	TRY(index_def_parse(def->form, value, arena, ret, kv_tx_err(tx)));
	ret->number = def->number;
	return STATUS_OK;
}

enum status
index_many_note(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def,
		uint64_t many)
{
	struct arena *arena = arena_new(SET_BYTES);
	struct index_def now;
	enum status status = arena ? def_read(tx, db, def, arena, &now) : STATUS_NOMEM;

	if (status == STATUS_OK && (now.many | many) != now.many) {
		now.many |= many;
		status = def_write(tx, db, &now);
	}
	arena_free(arena);
	return status;
}

enum status
index_drop(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def)
{
	return index_state_set(tx, db, def, INDEX_DROPPED, STR(""));
}

enum status
index_renew(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def,
	    uint64_t *ret_number, struct err *err)
{
	struct index_def terms = *def;

	terms.state = INDEX_BUILDING;
	TRY(index_drop(tx, db, def));
	return index_create(tx, db, &terms, ret_number, err);
}

enum status
index_forget(struct kv_tx *tx, const struct catalog_db *db, const struct index_def *def)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;

	assert(def->state == INDEX_DROPPED);
	index_key_def(&key, db, def->number);
	TRY(catalog_key_status(&key));
	TRY(kv_clear(tx, buf_str(&key)));
	index_key_build(&key, db, def->number);
	buf_append_buf(&end, &key);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&key));
	TRY(catalog_key_status(&end));
	return kv_clear_range(tx, buf_str(&key), buf_str(&end));
}
