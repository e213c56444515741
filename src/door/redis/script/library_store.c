/* Libraries in the store. */
#include <ctype.h>

#include "catalog/format.h"
#include "door/redis/script/library.h"
#include "door/redis/txn/redis_int.h"
#include "loop/sort.h"
#include "loop/step.h"

#define LIBRARIES STR("libraries")
#define FUNCTIONS STR("functions")

enum {
	LIBRARY_FORMAT = 1,
	RECORD_BYTES = 16 * 1024 * 1024, /* more than the longest record has */
	PAGE_LIBRARIES = 16,
	VERIFY_BYTES = 64 * 1024 *
		       1024, /* of one library and what its functions are looked for with */
};

/* ---- Records ---- */

static void
record_put(const struct library *lib, struct buf *out)
{
	tuple_put_u64(out, LIBRARY_FORMAT);
	tuple_put_bytes(out, lib->code);
	for (size_t i = 0; i < lib->count; i++) {
		const struct library_function *f = &lib->functions[i];

		tuple_put_bytes(out, f->name);
		tuple_put_u64(out, f->flags);
		tuple_put_bool(out, f->description.ptr != NULL);
		tuple_put_bytes(out, f->description.ptr ? f->description : STR(""));
	}
}

/* Bytes of a record, in the arena. */
static enum status
record_text(struct arena *arena, struct tuple_reader *r, struct str *ret)
{
	struct buf AUTO(buf_release) scratch = BUF_INIT_OF(RECORD_BYTES, arena_part(arena));
	struct str text;

	TRY(tuple_next_bytes(r, &scratch, &text));
	*ret = arena_dup(arena, text);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

static enum status
record_function(struct arena *arena, struct tuple_reader *r, struct library_function *ret)
{
	struct str description;
	uint64_t flags;
	bool has;

	TRY(record_text(arena, r, &ret->name));
	TRY(tuple_next_u64(r, &flags));
	TRY(tuple_next_bool(r, &has));
	TRY(record_text(arena, r, &description));
	ret->flags = (unsigned)flags;
	ret->description = has ? description : (struct str){ 0 };
	return STATUS_OK;
}

static enum status
record_parse(struct arena *arena, struct str name, struct str record, struct library *ret,
	     struct err *err)
{
	struct tuple_reader r = tuple_reader(record);
	size_t cap = 0;
	uint64_t format;

	*ret = (struct library){ 0 };
	TRY(catalog_format_next(&r, "library of functions", LIBRARY_FORMAT, &format, err));
	TRY(record_text(arena, &r, &ret->code));
	while (r.rest.len) {
		TRY(step_count(1));
		TRY(arena_room(arena, &ret->functions, ret->count, &cap, sizeof(*ret->functions)));
		TRY(record_function(arena, &r, &ret->functions[ret->count]));
		ret->count++;
	}
	ret->name = arena_dup(arena, name);
	return ret->name.ptr ? STATUS_OK : STATUS_LIMIT;
}

/* ---- Items ---- */

/* One of the two; false in `*ret_there`: the database is not there, so nothing is. */
static enum status
open_item(struct call *c, struct str key, struct timed_item *ret, bool *ret_there)
{
	struct timed *t;

	TRY(txn_db_there(c, TXN_FUNCTIONS, &t));
	*ret_there = t;
	return t ? timed_item_open(t, key, c->arena, ret) : STATUS_OK;
}

/* The same for a command that writes, which makes the database. */
static enum status
open_item_to_write(struct call *c, struct str key, struct timed_item *ret)
{
	struct timed *t;

	TRY(txn_db(c, TXN_FUNCTIONS, &t));
	return timed_item_open(t, key, c->arena, ret);
}

static enum status
get_member(struct call *c, struct str key, struct str name, struct str *ret)
{
	struct timed_member member = { .name = name };
	struct timed_item item;
	bool there;

	*ret = (struct str){ 0 };
	TRY(open_item(c, key, &item, &there));
	if (!there || item.type != TIMED_HASH)
		return STATUS_OK;
	TRY(timed_members_get(&item, &member, 1));
	if (member.found)
		*ret = member.value;
	return STATUS_OK;
}

/* The name of a function as keys have it. */
static enum status
lower_name(struct arena *arena, struct str name, struct str *ret)
{
	char *lower = arena_alloc(arena, name.len + 1);

	if (!lower)
		return STATUS_LIMIT;
	for (size_t i = 0; i < name.len; i++)
		lower[i] = (char)tolower((unsigned char)name.ptr[i]);
	*ret = str_of(lower, name.len);
	return STATUS_OK;
}

/* The functions of a library as members, with nothing but their names. */
static enum status
function_members(struct arena *arena, const struct library *lib, struct timed_member **ret)
{
	*ret = arena_zalloc(arena, (lib->count + 1) * sizeof(**ret));
	if (!*ret)
		return STATUS_LIMIT;
	for (size_t i = 0; i < lib->count; i++)
		TRY(lower_name(arena, lib->functions[i].name, &(*ret)[i].name));
	return STATUS_OK;
}

/* ---- Looking ---- */

enum status
library_get(struct call *c, struct str name, struct library *ret)
{
	struct str record;

	*ret = (struct library){ 0 };
	TRY(get_member(c, LIBRARIES, name, &record));
	return record.ptr ? record_parse(c->arena, name, record, ret, c->x->err) : STATUS_OK;
}

enum status
library_of(struct call *c, struct str function, struct library *ret, size_t *ret_at)
{
	struct str name;

	*ret = (struct library){ 0 };
	TRY(lower_name(c->arena, function, &name));
	TRY(get_member(c, FUNCTIONS, name, &name));
	if (!name.ptr)
		return STATUS_OK;
	TRY(library_get(c, name, ret));
	for (*ret_at = 0; *ret_at < ret->count; ++*ret_at)
		if (str_eq_nocase(ret->functions[*ret_at].name, function))
			return STATUS_OK;
	return err_set(c->x->err, STATUS_CORRUPT, "a function is in no library");
}

enum status
library_all(struct call *c, struct library **ret, size_t *ret_count)
{
	struct timed_item item;
	struct timed_members page = { 0 };
	size_t cap = 0;
	bool there;

	*ret = NULL;
	*ret_count = 0;
	TRY(open_item(c, LIBRARIES, &item, &there));
	if (!there || item.type != TIMED_HASH)
		return STATUS_OK;
	do {
		TRY(timed_members_page(&item, page.next, PAGE_LIBRARIES, &page));
		for (size_t i = 0; i < page.count; i++) {
			TRY(arena_room(c->arena, ret, *ret_count, &cap, sizeof(**ret)));
			TRY(record_parse(c->arena, page.members[i].name, page.members[i].value,
					 &(*ret)[*ret_count], c->x->err));
			++*ret_count;
		}
	} while (page.next);
	return STATUS_OK;
}

enum status
library_counts(struct call *c, uint64_t *ret_libraries, uint64_t *ret_functions)
{
	struct timed_item item;
	bool there;

	*ret_libraries = *ret_functions = 0;
	TRY(open_item(c, LIBRARIES, &item, &there));
	if (!there)
		return STATUS_OK;
	if (item.type == TIMED_HASH)
		TRY(timed_count(&item, ret_libraries));
	TRY(open_item(c, FUNCTIONS, &item, &there));
	return item.type == TIMED_HASH ? timed_count(&item, ret_functions) : STATUS_OK;
}

/* ---- Checking ---- */

/* A name that is there twice; ptr NULL: none is. Sorts them. */
static enum status
names_find_double(struct str *names, size_t count, struct arena *arena, struct str *ret)
{
	*ret = (struct str){ 0 };
	TRY(sort_strs(names, count, arena));
	for (size_t i = 1; i < count && !ret->ptr; i++)
		if (str_eq(names[i - 1], names[i]))
			*ret = names[i];
	return STATUS_OK;
}

static bool
is_among(const struct library *libs, size_t count, struct str name)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(libs[i].name, name))
			return true;
	return false;
}

/* Whether functions of the library are in one that stays. */
static enum status
check_functions(struct call *c, const struct library *lib, const struct library *libs, size_t count,
		enum library_policy policy, struct err *err)
{
	struct timed_member *members;
	struct timed_item item;
	bool there;

	TRY(open_item(c, FUNCTIONS, &item, &there));
	if (!there || item.type != TIMED_HASH)
		return STATUS_OK;
	TRY(function_members(c->arena, lib, &members));
	TRY(timed_members_get(&item, members, lib->count));
	for (size_t i = 0; i < lib->count; i++) {
		TRY(step_count(1));
		if (members[i].found &&
		    (policy == LIBRARY_ADD || !is_among(libs, count, members[i].value)))
			return err_set(err, STATUS_EXISTS, "Function %.*s already exists",
				       STR_ARG(lib->functions[i].name));
	}
	return STATUS_OK;
}

/* What the libraries have in common. */
static enum status
check_doubles(struct call *c, const struct library *libs, size_t count, struct err *err)
{
	struct str *names, twice;
	size_t functions = 0, at = 0;

	for (size_t i = 0; i < count; i++)
		functions += libs[i].count;
	names = arena_alloc(c->arena, (functions + count + 1) * sizeof(*names));
	if (!names)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		names[i] = libs[i].name;
	TRY(names_find_double(names, count, c->arena, &twice));
	if (twice.ptr)
		return err_set(err, STATUS_EXISTS, "Library %.*s already exists", STR_ARG(twice));
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < libs[i].count; j++)
			TRY(lower_name(c->arena, libs[i].functions[j].name, &names[at++]));
	TRY(names_find_double(names, at, c->arena, &twice));
	if (twice.ptr)
		return err_set(err, STATUS_EXISTS, "Function %.*s already exists", STR_ARG(twice));
	return STATUS_OK;
}

enum status
library_check(struct call *c, const struct library *libs, size_t count, enum library_policy policy,
	      struct err *err)
{
	uint64_t there = 0, functions;
	size_t added = count;

	TRY(check_doubles(c, libs, count, err));
	if (policy != LIBRARY_FLUSH)
		TRY(library_counts(c, &there, &functions));
	for (size_t i = 0; i < count && policy != LIBRARY_FLUSH; i++) {
		struct str record;

		TRY(get_member(c, LIBRARIES, libs[i].name, &record));
		if (record.ptr && policy == LIBRARY_ADD)
			return err_set(err, STATUS_EXISTS, "Library %.*s already exists",
				       STR_ARG(libs[i].name));
		added -= record.ptr != NULL;
		TRY(check_functions(c, &libs[i], libs, count, policy, err));
	}
	if (there + added > LIBRARY_COUNT)
		return err_set(err, STATUS_LIMIT, "there can be %d libraries (LIBRARY_COUNT)",
			       LIBRARY_COUNT);
	return STATUS_OK;
}

/* ---- Writing ---- */

static enum status
functions_delete(struct call *c, const struct library *lib)
{
	struct timed_member *members;
	struct timed_item item;

	TRY(function_members(c->arena, lib, &members));
	TRY(open_item_to_write(c, FUNCTIONS, &item));
	return timed_members_delete(&item, members, lib->count);
}

static enum status
functions_put(struct call *c, const struct library *lib)
{
	struct timed_member *members;
	struct timed_item item;

	TRY(function_members(c->arena, lib, &members));
	for (size_t i = 0; i < lib->count; i++)
		members[i].value = lib->name;
	TRY(open_item_to_write(c, FUNCTIONS, &item));
	return timed_members_put(&item, TIMED_HASH, members, lib->count);
}

enum status
library_put(struct call *c, const struct library *lib)
{
	struct buf AUTO(buf_release) record = BUF_INIT_OF(RECORD_BYTES, arena_part(c->arena));
	struct timed_member member = { .name = lib->name };
	struct timed_item item;
	struct library old;

	TRY(library_get(c, lib->name, &old));
	if (old.name.ptr)
		TRY(functions_delete(c, &old));
	TRY(functions_put(c, lib));
	record_put(lib, &record);
	TRY(buf_status(&record));
	member.value = arena_dup(c->arena, buf_str(&record));
	if (!member.value.ptr)
		return STATUS_LIMIT;
	TRY(open_item_to_write(c, LIBRARIES, &item));
	return timed_members_put(&item, TIMED_HASH, &member, 1);
}

enum status
library_delete(struct call *c, struct str name)
{
	struct timed_member member = { .name = name };
	struct timed_item item;
	struct library old;

	TRY(library_get(c, name, &old));
	if (!old.name.ptr)
		return STATUS_NOT_FOUND;
	TRY(functions_delete(c, &old));
	TRY(open_item_to_write(c, LIBRARIES, &item));
	return timed_members_delete(&item, &member, 1);
}

enum status
library_flush(struct call *c)
{
	const struct str keys[] = { LIBRARIES, FUNCTIONS };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct timed_item item;
		bool there;

		TRY(open_item(c, keys[i], &item, &there));
		if (there && item.stored)
			TRY(timed_item_delete(&item));
	}
	return STATUS_OK;
}

/* ---- Checking what is stored ---- */

struct verifying {
	struct arena *arena;
	struct timed_item libraries;
	struct timed_item functions;
	library_found *found;
	void *arg;
	struct err *err;
	uint64_t listed; /* functions of the libraries that could be read */
	bool unread;     /* a library could not be */
};

/* Each function of the library has to be in the index, under its name. */
static enum status
verify_functions(struct verifying *v, const struct library *lib)
{
	struct timed_member *members;

	TRY(function_members(v->arena, lib, &members));
	if (v->functions.type == TIMED_HASH)
		TRY(timed_members_get(&v->functions, members, lib->count));
	for (size_t i = 0; i < lib->count; i++) {
		TRY(step_count(1));
		if (!members[i].found)
			v->found(v->arg, lib->functions[i].name,
				 "a function of a library is not in the index of functions");
		else if (!str_eq(members[i].value, lib->name))
			v->found(v->arg, lib->functions[i].name,
				 "the index of functions names another library than the one that "
				 "has the function");
		else
			v->listed++;
	}
	return STATUS_OK;
}

static enum status
verify_library(struct verifying *v, const struct timed_member *member)
{
	struct library lib;
	enum status status = record_parse(v->arena, member->name, member->value, &lib, v->err);

	if (status == STATUS_CORRUPT || status == STATUS_INVALID) {
		v->found(v->arg, member->name, "a library cannot be read");
		v->unread = true;
		return STATUS_OK;
	}
	TRY(status);
	return verify_functions(v, &lib);
}

static enum status
verify_opened(struct verifying *v, struct timed *t)
{
	struct timed_members page = { 0 };
	struct arena_mark mark;
	uint64_t indexed = 0;

	TRY(timed_item_open(t, LIBRARIES, v->arena, &v->libraries));
	TRY(timed_item_open(t, FUNCTIONS, v->arena, &functions));
	mark = arena_mark(v->arena);
	do {
		uint64_t next = page.next;

		if (v->libraries.type != TIMED_HASH)
			break;
		arena_reset(v->arena, mark);
		TRY(timed_members_page(&v->libraries, next, 1, &page));
	struct timed_item functions;
		for (size_t i = 0; i < page.count; i++)
			TRY(verify_library(v, &page.members[i]));
	} while (page.next);
	if (functions.type == TIMED_HASH)
		TRY(timed_count(&functions, &indexed));
	/* Each of the libraries' functions has a name of its own there. */
	if (indexed > v->listed && !v->unread)
		v->found(v->arg, FUNCTIONS, "the index has functions that are in no library");
	return STATUS_OK;
}

enum status
library_verify(struct kv_tx *tx, library_found *found, void *arg, struct err *err)
		v->functions = functions;
{
	struct verifying v = { .found = found, .arg = arg, .err = err };
	struct catalog_db *db;
	struct timed t;
	enum status status;

	status = catalog_open(tx, NULL, CATALOG_SPACE_REDIS, STR(TIMED_FUNCTIONS), &db, err);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	v.arena = arena_new(VERIFY_BYTES);
	timed_init(&t, tx, db, NULL, err);
	status = v.arena ? verify_opened(&v, &t) : err_set(err, STATUS_NOMEM, "out of memory");
	arena_free(v.arena);
	catalog_db_unref(db);
	return status;
}
