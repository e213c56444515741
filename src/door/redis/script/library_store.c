/* Libraries in the store: nothing here knows clients or their calls. */
#include <assert.h>
#include <ctype.h>

#include "catalog/format.h"
#include "door/redis/script/library.h"
#include "loop/sort.h"
#include "loop/step.h"
#include "model/timed/items/items.h"

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
open_item(const struct libraries *libs, struct str key, struct timed_item *ret, bool *ret_there)
{
	*ret_there = libs->t;
	return libs->t ? timed_item_open(libs->t, key, libs->arena, ret) : STATUS_OK;
}

static enum status
open_item_to_write(const struct libraries *libs, struct str key, struct timed_item *ret)
{
	assert(libs->t && "whoever writes has made the database");
	return timed_item_open(libs->t, key, libs->arena, ret);
}

static enum status
get_member(const struct libraries *libs, struct str key, struct str name, struct str *ret)
{
	struct timed_member member = { .name = name };
	struct timed_item item;
	bool there;

	*ret = (struct str){ 0 };
	TRY(open_item(libs, key, &item, &there));
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
library_get(const struct libraries *libs, struct str name, struct library *ret)
{
	struct str record;

	*ret = (struct library){ 0 };
	TRY(get_member(libs, LIBRARIES, name, &record));
	return record.ptr ? record_parse(libs->arena, name, record, ret, libs->err) : STATUS_OK;
}

enum status
library_of(const struct libraries *libs, struct str function, struct library *ret, size_t *ret_at)
{
	struct str name;

	*ret = (struct library){ 0 };
	TRY(lower_name(libs->arena, function, &name));
	TRY(get_member(libs, FUNCTIONS, name, &name));
	if (!name.ptr)
		return STATUS_OK;
	TRY(library_get(libs, name, ret));
	for (*ret_at = 0; *ret_at < ret->count; ++*ret_at)
		if (str_eq_nocase(ret->functions[*ret_at].name, function))
			return STATUS_OK;
	return err_set(libs->err, STATUS_CORRUPT, "a function is in no library");
}

struct asked_function {
	struct str name;
	struct arena *arena;
	bool no_writes;
};

static enum status
ask_body(struct kv_tx *tx, void *arg)
{
	struct asked_function *a = arg;
	struct err ignored = { 0 };
	struct libraries libs = { .arena = a->arena, .err = &ignored };
	struct catalog_db *db;
	struct library lib;
	struct timed t;
	enum status status;
	size_t at;

	a->no_writes = false;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_REDIS, STR(TIMED_FUNCTIONS), &db, &ignored));
	timed_init(&t, tx, db, NULL, &ignored);
	libs.t = &t;
	status = library_of(&libs, a->name, &lib, &at);
	if (status == STATUS_OK && lib.name.ptr)
		a->no_writes = lib.functions[at].flags & LIBRARY_NO_WRITES;
	catalog_db_unref(db);
	return status;
}

bool
library_says_no_writes(struct kv_store *store, struct str function, struct arena *arena)
{
	struct asked_function a = { .name = function, .arena = arena };
	struct arena_mark mark = arena_mark(arena);
	enum status status = kv_run_read(store, ask_body, &a, NULL);

	arena_reset(arena, mark);
	return status == STATUS_OK && a.no_writes;
}

enum status
library_all(const struct libraries *libs, struct library **ret, size_t *ret_count)
{
	struct timed_item item;
	struct timed_members page = { 0 };
	size_t cap = 0;
	bool there;

	*ret = NULL;
	*ret_count = 0;
	TRY(open_item(libs, LIBRARIES, &item, &there));
	if (!there || item.type != TIMED_HASH)
		return STATUS_OK;
	do {
		TRY(timed_members_page(&item, page.next, PAGE_LIBRARIES, &page));
		for (size_t i = 0; i < page.count; i++) {
			TRY(arena_room(libs->arena, ret, *ret_count, &cap, sizeof(**ret)));
			TRY(record_parse(libs->arena, page.members[i].name, page.members[i].value,
					 &(*ret)[*ret_count], libs->err));
			++*ret_count;
		}
	} while (page.next);
	return STATUS_OK;
}

enum status
library_counts(const struct libraries *libs, uint64_t *ret_libraries, uint64_t *ret_functions)
{
	struct timed_item item;
	bool there;

	*ret_libraries = *ret_functions = 0;
	TRY(open_item(libs, LIBRARIES, &item, &there));
	if (!there)
		return STATUS_OK;
	if (item.type == TIMED_HASH)
		TRY(timed_count(&item, ret_libraries));
	TRY(open_item(libs, FUNCTIONS, &item, &there));
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
check_functions(const struct libraries *there, const struct library *lib,
		const struct library *libs, size_t count, enum library_policy policy,
		struct err *err)
{
	struct timed_member *members;
	struct timed_item item;
	bool any;

	TRY(open_item(there, FUNCTIONS, &item, &any));
	if (!any || item.type != TIMED_HASH)
		return STATUS_OK;
	TRY(function_members(there->arena, lib, &members));
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
check_doubles(struct arena *arena, const struct library *libs, size_t count, struct err *err)
{
	struct str *names, twice;
	size_t functions = 0, at = 0;

	for (size_t i = 0; i < count; i++)
		functions += libs[i].count;
	names = arena_alloc(arena, (functions + count + 1) * sizeof(*names));
	if (!names)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		names[i] = libs[i].name;
	TRY(names_find_double(names, count, arena, &twice));
	if (twice.ptr)
		return err_set(err, STATUS_EXISTS, "Library %.*s already exists", STR_ARG(twice));
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < libs[i].count; j++)
			TRY(lower_name(arena, libs[i].functions[j].name, &names[at++]));
	TRY(names_find_double(names, at, arena, &twice));
	if (twice.ptr)
		return err_set(err, STATUS_EXISTS, "Function %.*s already exists", STR_ARG(twice));
	return STATUS_OK;
}

enum status
library_check(const struct libraries *there, const struct library *libs, size_t count,
	      enum library_policy policy, struct err *err)
{
	uint64_t stored = 0, functions;
	size_t added = count;

	TRY(check_doubles(there->arena, libs, count, err));
	if (policy != LIBRARY_FLUSH)
		TRY(library_counts(there, &stored, &functions));
	for (size_t i = 0; i < count && policy != LIBRARY_FLUSH; i++) {
		struct str record;

		TRY(get_member(there, LIBRARIES, libs[i].name, &record));
		if (record.ptr && policy == LIBRARY_ADD)
			return err_set(err, STATUS_EXISTS, "Library %.*s already exists",
				       STR_ARG(libs[i].name));
		added -= record.ptr != NULL;
		TRY(check_functions(there, &libs[i], libs, count, policy, err));
	}
	if (stored + added > LIBRARY_COUNT)
		return err_set(err, STATUS_LIMIT, "there can be %d libraries (LIBRARY_COUNT)",
			       LIBRARY_COUNT);
	return STATUS_OK;
}

/* ---- Writing ---- */

static enum status
functions_delete(const struct libraries *libs, const struct library *lib)
{
	struct timed_member *members;
	struct timed_item item;

	TRY(function_members(libs->arena, lib, &members));
	TRY(open_item_to_write(libs, FUNCTIONS, &item));
	return timed_members_delete(&item, members, lib->count);
}

static enum status
functions_put(const struct libraries *libs, const struct library *lib)
{
	struct timed_member *members;
	struct timed_item item;

	TRY(function_members(libs->arena, lib, &members));
	for (size_t i = 0; i < lib->count; i++)
		members[i].value = lib->name;
	TRY(open_item_to_write(libs, FUNCTIONS, &item));
	return timed_members_put(&item, TIMED_HASH, members, lib->count);
}

static enum status
library_put(const struct libraries *to, const struct library *lib)
{
	struct buf AUTO(buf_release) record = BUF_INIT_OF(RECORD_BYTES, arena_part(to->arena));
	struct timed_member member = { .name = lib->name };
	struct timed_item item;

	TRY(functions_put(to, lib));
	record_put(lib, &record);
	TRY(buf_status(&record));
	member.value = buf_dup(&record, to->arena);
	if (!member.value.ptr)
		return STATUS_LIMIT;
	TRY(open_item_to_write(to, LIBRARIES, &item));
	return timed_members_put(&item, TIMED_HASH, &member, 1);
}

enum status
library_write(const struct libraries *to, const struct library *libs, size_t count,
	      enum library_policy policy)
{
	if (policy == LIBRARY_FLUSH)
		TRY(library_flush(to));
	/*
	 * All old ones go before the first new one comes: a function may move from one of them to
	 * another.
	 */
	for (size_t i = 0; i < count && policy == LIBRARY_REPLACE; i++) {
		enum status status = library_delete(to, libs[i].name);

		if (status != STATUS_NOT_FOUND)
			TRY(status);
	}
	for (size_t i = 0; i < count; i++)
		TRY(library_put(to, &libs[i]));
	return STATUS_OK;
}

enum status
library_delete(const struct libraries *from, struct str name)
{
	struct timed_member member = { .name = name };
	struct timed_item item;
	struct library old;

	TRY(library_get(from, name, &old));
	if (!old.name.ptr)
		return STATUS_NOT_FOUND;
	TRY(functions_delete(from, &old));
	TRY(open_item_to_write(from, LIBRARIES, &item));
	return timed_members_delete(&item, &member, 1);
}

enum status
library_flush(const struct libraries *libs)
{
	const struct str keys[] = { LIBRARIES, FUNCTIONS };

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct timed_item item;
		bool there;

		TRY(open_item(libs, keys[i], &item, &there));
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
	struct timed_item functions;
	struct arena_mark mark;
	uint64_t indexed = 0;

	TRY(timed_item_open(t, LIBRARIES, v->arena, &v->libraries));
	TRY(timed_item_open(t, FUNCTIONS, v->arena, &functions));
	mark = arena_mark(v->arena);
	do {
		uint64_t next = page.next;

		if (v->libraries.type != TIMED_HASH)
			break;
		/* What an item remembers of its last read lies in the arena, too. */
		arena_reset(v->arena, mark);
		v->functions = functions;
		TRY(timed_members_page(&v->libraries, next, 1, &page));
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
