#include "catalog/salvage.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/rand.h"
#include "base/steady.h"
#include "catalog/catalog_int.h"
#include "catalog/move_int.h"
#include "catalog/records.h"
#include "catalog/store_format.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"

enum {
	NUMBERS_ARENA_BYTES = 64 * 1024 * 1024,
	SALVAGE_NAMES = 1000,
	TEXT_BYTES = 512,
};

struct salvage {
	struct kv_store *store;
	const struct catalog_salvage_kind *const *kinds;
	catalog_salvage_told *told;
	void *arg;
	struct arena *arena;
	uint64_t *numbers; /* that belong to a database, or to one that is deleted or comes */
	size_t count;
	size_t cap;
	uint64_t number;                 /* of the database that is looked at */
	bool found;                      /* there is one */
	uint64_t greatest;               /* of all numbers that keys begin with */
	const char *made;                /* by the kind */
	struct str known;                /* its name, if it has a description */
	const struct catalog_kind *kind; /* of it; NULL: nothing tells */
	char name[CATALOG_NAME_BYTES + 1];
	struct err *err;
};

static void salvage_tell(struct salvage *s, const char *fmt, ...) PRINTF(2, 3);

static void
salvage_tell(struct salvage *s, const char *fmt, ...)
{
	char text[TEXT_BYTES];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	s->told(s->arg, text);
}

/* ---- Numbers that are known ---- */

static enum status
number_add(struct salvage *s, uint64_t number)
{
	TRY(catalog_array_grow(s->arena, (void **)&s->numbers, sizeof(*s->numbers), s->count,
			       &s->cap));
	s->numbers[s->count++] = number;
	return STATUS_OK;
}

static bool
number_is_known(const struct salvage *s, uint64_t number)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->numbers[i] == number)
			return true;
	return false;
}

static enum status
take_dropped(void *arg, struct tuple_reader key, struct str value)
{
	uint64_t number;

	(void)value;
	return tuple_next_u64(&key, &number) == STATUS_OK ? number_add(arg, number) : STATUS_OK;
}

static enum status
take_kept(void *arg, struct tuple_reader key, struct str value)
{
	uint64_t ms;

	return tuple_next_u64(&key, &ms) == STATUS_OK ? take_dropped(arg, key, value) : STATUS_OK;
}

/* A description that a newer frond wrote cannot be read, but its number can. */
static enum status
take_description(void *arg, struct tuple_reader key, struct str value)
{
	struct catalog_db db = { 0 };
	struct err err = { 0 };

	(void)key;
	return catalog_description_parse(value, &db, &err) == STATUS_OK ? number_add(arg, db.number)
									: STATUS_OK;
}

/* A database that comes from another store has a number, and no description. */
static enum status
take_move(void *arg, struct tuple_reader key, struct str value)
{
	struct salvage *s = arg;
	struct catalog_move move = { 0 };
	struct err err = { 0 };

	(void)key;
	return catalog_move_parse(value, s->arena, &move, &err) == STATUS_OK && move.number
		       ? number_add(s, move.number)
		       : STATUS_OK;
}

static enum status
numbers_body(struct kv_tx *tx, void *arg)
{
	struct salvage *s = arg;

	arena_clear(s->arena);
	s->numbers = NULL;
	s->count = s->cap = 0;
	TRY(catalog_root_scan(tx, KV_ROOT_DATABASES, take_description, s));
	TRY(catalog_root_scan(tx, KV_ROOT_DROPPED, take_dropped, s));
	TRY(catalog_root_scan(tx, KV_ROOT_MOVES, take_move, s));
	return catalog_root_scan(tx, KV_ROOT_KEPT, take_kept, s);
}

/* ---- Databases without a description ---- */

/* The first number from `s->number` on that keys begin with. */
static enum status
next_number_body(struct kv_tx *tx, void *arg)
{
	const struct kv_range_options one = { .limit = 1, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	struct salvage *s = arg;
	struct kv_range range;
	struct tuple_reader r;
	struct kv_future *f;

	tuple_put_u64(&begin, s->number);
	TRY(catalog_key_status(&begin));
	f = kv_get_range(tx, buf_str(&begin), STR("\xff"), &one);
	TRY(kv_future_wait(f));
	range = kv_future_range(f);
	s->found = false;
	if (!range.count)
		return STATUS_OK;
	r = tuple_reader(range.pairs[0].key);
	s->found = tuple_next_u64(&r, &s->number) == STATUS_OK;
	return STATUS_OK;
}

static enum status
space_is_used(struct kv_tx *tx, const struct catalog_db *db, uint64_t space, bool *ret)
{
	const struct kv_range_options one = { .limit = 1, .mode = KV_SNAPSHOT };
	AUTO(buf_release) struct buf begin = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf end = CATALOG_KEY_INIT;
	struct kv_future *f;

	buf_append_str(&begin, db->prefix);
	tuple_put_u64(&begin, space);
	buf_append_buf(&end, &begin);
	buf_append_byte(&end, CATALOG_KEY_LAST);
	TRY(catalog_key_status(&begin));
	TRY(catalog_key_status(&end));
	f = kv_get_range(tx, buf_str(&begin), buf_str(&end), &one);
	TRY(kv_future_wait(f));
	*ret = kv_future_range(f).count > 0;
	return STATUS_OK;
}

/* Writes the nth name that may do. Redis's databases have small numbers, beginning with 0. */
static void
name_write(struct salvage *s, unsigned n)
{
	if (n == 0)
		(void)snprintf(s->name, sizeof(s->name), "salvaged_%llu",
			       (unsigned long long)s->number);
	else if (n == 1)
		(void)snprintf(s->name, sizeof(s->name), "salvaged.n%llu",
			       (unsigned long long)s->number);
	else
		(void)snprintf(s->name, sizeof(s->name), "%u", n - 2);
}

/* A name that the kind allows and nobody has. */
static enum status
name_find(struct kv_tx *tx, struct salvage *s, const struct catalog_kind *kind)
{
	for (unsigned n = 0; n < SALVAGE_NAMES; n++) {
		struct str name;
		struct catalog_db db;
		enum status status;

		name_write(s, n);
		name = str_from_cstr(s->name);
		if (kind->check_name(name, NULL) != STATUS_OK)
			continue;
		status = catalog_description_get(tx, kind->space, name, &db, s->err);
		if (status != STATUS_OK)
			return status == STATUS_NOT_FOUND ? STATUS_OK : status;
	}
	return err_set(s->err, STATUS_LIMIT, "no name is free for a database without one");
}

static enum status
adopt_as(struct kv_tx *tx, struct salvage *s, const struct catalog_salvage_kind *kind,
	 struct catalog_db *db)
{
	TRY(name_find(tx, s, kind->kind));
	db->name = str_from_cstr(s->name);
	db->kind = kind->kind;
	db->created_ms = steady_ms();
	rand_bytes(db->uuid, sizeof(db->uuid));
	TRY(catalog_store_incarnation(tx, &db->incarnation));
	TRY(kind->adopt(tx, db, db->options, &s->made, s->err));
	if (kind->kind->number != CATALOG_KIND_REVISIONED)
		TRY(catalog_store_format_raise(tx, CATALOG_STORE_FORMAT_KINDS));
	TRY(catalog_description_set(tx, db));
	s->kind = kind->kind;
	return kv_touch_metadata_version(tx);
}

static enum status
adopt_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;
	struct salvage *s = arg;
	struct catalog_db db = { .number = s->number };
	bool used = false;

	tuple_put_u64(&prefix, s->number);
	TRY(catalog_key_status(&prefix));
	db.prefix = buf_str(&prefix);
	s->made = NULL;
	s->kind = NULL;
	for (size_t i = 0; s->kinds[i]; i++) {
		TRY(space_is_used(tx, &db, s->kinds[i]->own_space, &used));
		if (used)
			return adopt_as(tx, s, s->kinds[i], &db);
	}
	/* Nothing of it tells what it was: it is cleared as one that was deleted. */
	return catalog_drop_begin(tx, s->kinds[0]->kind, s->number, 0);
}

static enum status
orphans_adopt(struct salvage *s)
{
	for (s->number = KV_FIRST_PREFIX;; s->number++) {
		TRY(kv_run_read(s->store, next_number_body, s, s->err));
		if (!s->found)
			return STATUS_OK;
		s->greatest = s->number;
		if (number_is_known(s, s->number))
			continue;
		TRY(kv_run(s->store, adopt_body, s, NULL, s->err));
		if (s->kind)
			salvage_tell(s,
				     "the description of a database is lost, with its name: it is "
				     "called \"%s\" now, a database of the kind \"%s\"",
				     s->name, s->kind->name);
		else
			salvage_tell(s,
				     "the description of a database is lost, with all that would "
				     "tell what it was: its number was %llu",
				     (unsigned long long)s->number);
	}
}

/* ---- Databases that have one ---- */

static enum status
mend_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf prefix = CATALOG_KEY_INIT;
	struct salvage *s = arg;
	uint64_t options[CATALOG_OPTIONS] = { 0 };
	struct catalog_db db = { .number = s->number, .name = s->known };

	tuple_put_u64(&prefix, s->number);
	TRY(catalog_key_status(&prefix));
	db.prefix = buf_str(&prefix);
	s->made = NULL;
	for (size_t i = 0; s->kinds[i]; i++)
		if (s->kinds[i]->kind == s->kind)
			return s->kinds[i]->adopt(tx, &db, options, &s->made, s->err);
	return STATUS_OK;
}

static enum status
database_mend(struct salvage *s, const struct catalog_db *db)
{
	s->number = db->number;
	s->kind = db->kind;
	s->known = db->name;
	TRY(kv_run(s->store, mend_body, s, NULL, s->err));
	if (s->made)
		salvage_tell(s, "database \"%.*s\" has lost %s", STR_ARG(db->name), s->made);
	return STATUS_OK;
}

static enum status
databases_mend(struct salvage *s)
{
	struct catalog_walk walk;
	enum status status = catalog_walk_begin(&walk);

	while (status == STATUS_OK && walk.page.more) {
		status = catalog_walk_next(&walk, s->store, s->err);
		for (size_t i = 0; status == STATUS_OK && i < walk.page.count; i++)
			status = database_mend(s, &walk.page.dbs[i]);
	}
	catalog_walk_end(&walk);
	return status;
}

/* ---- The store's own keys ---- */

static enum status
root_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = CATALOG_KEY_INIT;
	struct salvage *s = arg;
	struct tuple_reader r;
	struct kv_future *f;
	uint64_t next = 0;
	struct str found;

	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_NEXT_PREFIX);
	TRY(catalog_key_status(&key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (kv_future_value(f, &found)) {
		r = tuple_reader(found);
		if (tuple_next_u64(&r, &next) != STATUS_OK)
			next = 0;
	}
	if (next > s->greatest || !s->greatest)
		return STATUS_OK;
	tuple_put_u64(&value, s->greatest + 1);
	TRY(catalog_key_status(&value));
	return kv_set(tx, buf_str(&key), buf_str(&value));
}

static enum status
format_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return catalog_store_format_raise(tx, CATALOG_STORE_FORMAT);
}

static enum status
salvage_run(struct salvage *s, bool has_format)
{
	if (!has_format)
		TRY(kv_run(s->store, format_body, s, NULL, s->err));
	TRY(kv_run_read(s->store, numbers_body, s, s->err));
	TRY(orphans_adopt(s));
	/* Before anything takes a number. */
	TRY(kv_run(s->store, root_body, s, NULL, s->err));
	return databases_mend(s);
}

enum status
catalog_salvage(struct kv_store *store, bool has_format,
		const struct catalog_salvage_kind *const *kinds, catalog_salvage_told *told,
		void *arg, struct err *err)
{
	struct salvage s = { .store = store,
			     .kinds = kinds,
			     .told = told,
			     .arg = arg,
			     .arena = arena_new(NUMBERS_ARENA_BYTES),
			     .err = err };
	enum status status = s.arena ? salvage_run(&s, has_format) : STATUS_NOMEM;

	arena_free(s.arena);
	return status;
}
