/*
 * Which files of a damaged store count, and what they have lost.
 *
 * The manifest names the tables. RocksDB reads a copy of it in a directory without tables: so
 * nothing is written into the source, and damage to tables does not matter.
 *
 * Tables that the manifest does not name have been merged into others, and may have keys that were
 * deleted since. Such a table is left out, unless it is newer than all that are named. All tables
 * are taken if the manifest cannot be read, or names one that is gone.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "kv/embedded/directory.h"
#include "kv/embedded/salvage_int.h"

enum {
	MANIFEST_MOST_BYTES = 1 << 30,
	NAME_BYTES = 64,
	OPEN_FILES = 16, /* of the copy, which has none */
	INFO_LOG_FATAL = 4,
};

#define MANIFEST_PREFIX "MANIFEST-"

enum status
salvage_spans_add(struct salvage_spans *spans, struct arena *arena, const struct salvage_span *span)
{
	TRY(arena_room(arena, &spans->all, spans->count, &spans->cap, sizeof(*spans->all)));
	spans->all[spans->count++] = *span;
	return STATUS_OK;
}

static enum status
lose(struct salvage_files *f, struct salvage_spans *losses, const struct salvage_span *span,
     struct str text)
{
	struct salvage_span told = *span;

	if (!text.ptr)
		return STATUS_NOMEM;
	told.text = text.ptr;
	return salvage_spans_add(losses, f->arena, &told);
}

/* ---- The directory ---- */

/* The number of a file "NNNNNN.sst", say. False if it is called otherwise. */
static bool
name_number(const char *name, const char *suffix, uint64_t *ret)
{
	char *end;

	if (*name < '0' || *name > '9')
		return false;
	*ret = strtoull(name, &end, 10);
	return strcmp(end, suffix) == 0;
}

static enum status
files_add_table(struct salvage_files *f, uint64_t number, const char *name)
{
	struct str copy = arena_printf(f->arena, "%s", name);

	if (!copy.ptr)
		return STATUS_NOMEM;
	TRY(arena_room(f->arena, &f->tables, f->table_count, &f->table_cap, sizeof(*f->tables)));
	f->tables[f->table_count++] = (struct salvage_table){ .number = number, .name = copy.ptr };
	return STATUS_OK;
}

static enum status
files_add(struct salvage_files *f, const char *name)
{
	uint64_t number;
	struct str copy;

	if (name_number(name, ".sst", &number)) {
		TRY(files_add_table(f, number, name));
		f->tables[f->table_count - 1].present = true;
		return STATUS_OK;
	}
	if (!name_number(name, ".log", &number))
		return STATUS_OK;
	copy = arena_printf(f->arena, "%s", name);
	if (!copy.ptr)
		return STATUS_NOMEM;
	TRY(arena_room(f->arena, &f->logs, f->log_count, &f->log_cap, sizeof(*f->logs)));
	f->logs[f->log_count++] = (struct raw_log){ .name = copy.ptr };
	return STATUS_OK;
}

static int
compare_tables(const void *a, const void *b)
{
	const struct salvage_table *x = a;
	const struct salvage_table *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static int
compare_logs(const void *a, const void *b)
{
	uint64_t x = strtoull(((const struct raw_log *)a)->name, NULL, 10);
	uint64_t y = strtoull(((const struct raw_log *)b)->name, NULL, 10);

	return (x > y) - (x < y);
}

/* Also finds the newest manifest, in case nothing names it: `newest` is empty if there is none. */
static enum status
files_list(struct salvage_files *f, const char *path, char newest[NAME_BYTES], struct err *err)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	enum status status = STATUS_OK;

	if (!dir)
		return err_set(err, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s", path,
			       strerror(errno));
	newest[0] = '\0';
	while (status == STATUS_OK && (entry = readdir(dir))) {
		status = files_add(f, entry->d_name);
		if (strncmp(entry->d_name, MANIFEST_PREFIX, strlen(MANIFEST_PREFIX)) == 0 &&
		    strlen(entry->d_name) < NAME_BYTES && strcmp(entry->d_name, newest) > 0)
			(void)snprintf(newest, NAME_BYTES, "%s", entry->d_name);
	}
	closedir(dir);
	if (f->table_count)
		qsort(f->tables, f->table_count, sizeof(*f->tables), compare_tables);
	if (f->log_count)
		qsort(f->logs, f->log_count, sizeof(*f->logs), compare_logs);
	if (status == STATUS_OK && !f->table_count && !f->log_count)
		return err_set(err, STATUS_NOT_FOUND, "%s has no table and no log of a store",
			       path);
	return status;
}

/* ---- The manifest ---- */

static enum status
scratch_write(const char *scratch, const char *name, const void *bytes, size_t len, struct err *err)
{
	char path[PATH_MAX];
	FILE *file;
	bool ok;

	if (snprintf(path, sizeof(path), "%s/%s", scratch, name) >= (int)sizeof(path))
		return err_set(err, STATUS_INVALID, "the path of the store is too long");
	file = fopen(path, "we");
	ok = file && fwrite(bytes, 1, len, file) == len;
	if (file && fclose(file) != 0)
		ok = false;
	return ok ? STATUS_OK : err_set(err, STATUS_IO, "writing %s: %s", path, strerror(errno));
}

static enum status
scratch_fill(const struct salvage_files *f, const char *scratch, const char *manifest,
	     struct err *err)
{
	char current[NAME_BYTES + 1];
	enum status status;
	size_t len;
	uint64_t size;
	uint8_t *bytes;

	TRY(raw_size(f->dir, manifest, &size, err));
	if (size > MANIFEST_MOST_BYTES)
		return err_set(err, STATUS_CORRUPT, "it is too large");
	bytes = mem_alloc((size_t)size + 1);
	len = (size_t)size;
	status = bytes ? raw_read(f->dir, manifest, 0, bytes, &len, err) : STATUS_NOMEM;
	if (status == STATUS_OK)
		status = scratch_write(scratch, manifest, bytes, len, err);
	mem_free(bytes);
	TRY(status);
	len = (size_t)snprintf(current, sizeof(current), "%s\n", manifest);
	return scratch_write(scratch, "CURRENT", current, len, err);
}

static struct salvage_table *
files_find(struct salvage_files *f, uint64_t number)
{
	for (size_t i = 0; i < f->table_count; i++)
		if (f->tables[i].number == number)
			return &f->tables[i];
	return NULL;
}

/* Notes that the manifest has a table, which may not be there. */
static enum status
files_note_listed(struct salvage_files *f, const rocksdb_livefiles_t *live, int at)
{
	const char *name = rocksdb_livefiles_name(live, at);
	struct salvage_table *table;
	uint64_t number;
	const char *key;
	size_t len;

	name += name[0] == '/';
	if (!name_number(name, ".sst", &number))
		return STATUS_OK;
	table = files_find(f, number);
	if (!table) {
		TRY(files_add_table(f, number, name));
		table = &f->tables[f->table_count - 1];
	}
	table->listed = true;
	key = rocksdb_livefiles_smallestkey(live, at, &len);
	table->smallest = arena_dup(f->arena, str_of(key, len));
	key = rocksdb_livefiles_largestkey(live, at, &len);
	table->largest = arena_dup(f->arena, str_of(key, len));
	return table->smallest.ptr && table->largest.ptr ? STATUS_OK : STATUS_NOMEM;
}

/* Has RocksDB read the copy. `*ret_why`: why it cannot, or NULL. */
static enum status
manifest_read(struct salvage_files *f, const char *scratch, char **ret_why)
{
	rocksdb_options_t *options = rocksdb_options_create();
	const rocksdb_livefiles_t *live;
	enum status status = STATUS_OK;
	rocksdb_t *db;

	/* The tables are not there, and need not be looked at. */
	rocksdb_options_set_paranoid_checks(options, 0);
	rocksdb_options_set_max_open_files(options, OPEN_FILES);
	rocksdb_options_set_info_log_level(options, INFO_LOG_FATAL);
	db = rocksdb_open_for_read_only(options, scratch, 0, ret_why);
	rocksdb_options_destroy(options);
	if (*ret_why)
		return STATUS_OK;
	live = rocksdb_livefiles(db);
	for (int i = 0; status == STATUS_OK && i < rocksdb_livefiles_count(live); i++)
		status = files_note_listed(f, live, i);
	rocksdb_livefiles_destroy(live);
	rocksdb_close(db);
	f->has_manifest = true;
	return status;
}

static enum status
manifest_take(struct salvage_files *f, const char *scratch, const char *manifest,
	      struct salvage_spans *losses)
{
	static const struct salvage_span nowhere;
	struct err why = { 0 };
	char *error = NULL;
	enum status status = scratch_fill(f, scratch, manifest, &why);

	if (status == STATUS_NOMEM)
		return status;
	if (status == STATUS_OK)
		TRY(manifest_read(f, scratch, &error));
	if (f->has_manifest)
		return STATUS_OK;
	status = lose(
		f, losses, &nowhere,
		arena_printf(f->arena,
			     "%s cannot be read (%s): all tables that are there are taken, so "
			     "what was deleted or changed lately may be as it was before",
			     manifest, error ? error : why.text));
	rocksdb_free(error);
	return status;
}

static enum status
manifest_find(struct salvage_files *f, const char *path, const char *scratch, const char *newest,
	      struct salvage_spans *losses)
{
	static const struct salvage_span nowhere;
	struct emb_manifest manifest;
	struct stat st;
	bool named;

	emb_manifest_look(path, &manifest);
	named = strncmp(manifest.name, MANIFEST_PREFIX, strlen(MANIFEST_PREFIX)) == 0 &&
		!strchr(manifest.name, '/') && fstatat(f->dir, manifest.name, &st, 0) == 0;
	if (!named && !newest[0])
		return lose(f, losses, &nowhere,
			    arena_printf(f->arena,
					 "there is no MANIFEST: all tables that are there are "
					 "taken, so what was deleted or changed lately may be as "
					 "it was before"));
	if (!named)
		TRY(lose(f, losses, &nowhere,
			 arena_printf(f->arena,
				      "CURRENT names no MANIFEST that is there: %s is taken",
				      newest)));
	return manifest_take(f, scratch, named ? manifest.name : newest, losses);
}

/* ---- Tables ---- */

/* Which of the tables that are there count. */
static void
tables_choose(struct salvage_files *f)
{
	bool trusted = f->has_manifest;
	uint64_t newest = 0;

	for (size_t i = 0; i < f->table_count; i++) {
		if (!f->tables[i].listed)
			continue;
		trusted = trusted && f->tables[i].present;
		if (f->tables[i].number > newest)
			newest = f->tables[i].number;
	}
	for (size_t i = 0; i < f->table_count; i++) {
		struct salvage_table *t = &f->tables[i];

		t->taken = t->present && (t->listed || !trusted || t->number > newest);
	}
}

/* A span's begin is the first key in it. */
static struct str
key_behind(struct salvage_files *f, struct str key)
{
	char *bytes = arena_bytes(f->arena, key.len + 1);

	if (!bytes)
		return (struct str){ NULL, 0 };
	if (key.len)
		memcpy(bytes, key.ptr, key.len);
	bytes[key.len] = '\0';
	return str_of(bytes, key.len + 1);
}

/* Tells of a part of a table, between the keys that the manifest and the blocks beside it know. */
static enum status
table_lose(struct salvage_files *f, const struct salvage_table *t, const struct raw_gap *gap,
	   struct salvage_spans *losses)
{
	struct salvage_span span = { .has_keys = true, .end = gap->after };

	if (gap->before.len)
		span.begin = key_behind(f, gap->before);
	else
		span.begin = t->listed ? t->smallest : STR("");
	if (!span.end.ptr && t->listed)
		span.end = key_behind(f, t->largest);
	return lose(f, losses, &span,
		    arena_printf(f->arena, "%s is damaged from byte %llu to %llu", t->name,
				 (unsigned long long)gap->begin, (unsigned long long)gap->end));
}

/* The last gap may be what a table has behind its data. */
static bool
gap_is_tail(const struct salvage_table *t, const struct raw_gap *gap)
{
	return !t->raw.told && !gap->after.ptr && t->listed && gap->before.len &&
	       str_cmp(gap->before, t->largest) >= 0;
}

static enum status
table_report(struct salvage_files *f, const struct salvage_table *t, struct salvage_spans *losses)
{
	struct salvage_span all = { .has_keys = true };

	if (t->raw.told && t->raw.entries >= t->raw.told_entries)
		return STATUS_OK;
	for (size_t i = 0; i < t->raw.gap_count; i++)
		if (!gap_is_tail(t, &t->raw.gaps[i]))
			TRY(table_lose(f, t, &t->raw.gaps[i], losses));
	if (!t->raw.told || t->raw.range_count >= t->raw.told_ranges)
		return STATUS_OK;
	all.begin = t->listed ? t->smallest : STR("");
	if (t->listed)
		all.end = key_behind(f, t->largest);
	return lose(f, losses, &all,
		    arena_printf(f->arena,
				 "%s has lost %llu deletions of ranges: what they deleted may be "
				 "there again",
				 t->name,
				 (unsigned long long)(t->raw.told_ranges - t->raw.range_count)));
}

static enum status
table_read(struct salvage_files *f, struct salvage_table *t, struct salvage_spans *losses)
{
	struct salvage_span all = { .has_keys = true, .begin = t->smallest };
	struct err why = { 0 };
	enum status status;

	if (t->listed)
		all.end = key_behind(f, t->largest);
	if (!t->present)
		return lose(f, losses, &all, arena_printf(f->arena, "%s is not there", t->name));
	if (!t->taken)
		return STATUS_OK;
	status = raw_table_survey(f->dir, t->name, f->arena, &t->raw, &why);
	if (status == STATUS_OK)
		return table_report(f, t, losses);
	if (status == STATUS_NOMEM || status == STATUS_LIMIT)
		return status;
	return lose(f, losses, &all,
		    arena_printf(f->arena, "%s cannot be read: %s", t->name, why.text));
}

/* ---- Logs ---- */

static enum status
log_read(struct salvage_files *f, size_t at, struct salvage_spans *losses)
{
	static const struct salvage_span nowhere;
	struct raw_log *log = &f->logs[at];
	struct err why = { 0 };
	enum status status = raw_log_read(f->dir, log->name, f->arena, log, &why);

	if (status == STATUS_NOMEM || status == STATUS_LIMIT)
		return status;
	if (status != STATUS_OK)
		return lose(f, losses, &nowhere,
			    arena_printf(f->arena, "the log %s cannot be read: %s", log->name,
					 why.text));
	for (size_t i = 0; i < log->hole_count; i++) {
		const struct raw_hole *hole = &log->holes[i];

		/* What a crash leaves at the end was never acknowledged. */
		if (i + 1 == log->hole_count && (f->torn || hole->cut))
			continue;
		TRY(lose(f, losses, &nowhere,
			 arena_printf(f->arena,
				      "the log %s is damaged from byte %llu to %llu: the "
				      "transactions there are lost",
				      log->name, (unsigned long long)hole->begin,
				      (unsigned long long)hole->end)));
	}
	return STATUS_OK;
}

/* ---- All ---- */

static uint64_t
file_bytes(const struct salvage_files *f, const char *name)
{
	struct err ignored;
	uint64_t size;

	return raw_size(f->dir, name, &size, &ignored) == STATUS_OK ? size : 0;
}

void
salvage_files_tell(const struct salvage_files *f, uint64_t keys)
{
	if (f->how->told)
		f->how->told(f->how->arg, f->bytes, f->total, keys);
}

enum status
salvage_files_read(struct salvage_files *f, const char *path, const char *scratch,
		   struct salvage_spans *losses, struct err *err)
{
	char newest[NAME_BYTES];
	struct err why = { 0 };
	struct log_torn torn;

	TRY(files_list(f, path, newest, err));
	f->torn = emb_logs_check(path, &torn, &why) == STATUS_OK && torn.number;
	TRY(manifest_find(f, path, scratch, newest, losses));
	tables_choose(f);
	for (size_t i = 0; i < f->table_count; i++)
		f->total += f->tables[i].taken ? file_bytes(f, f->tables[i].name) : 0;
	for (size_t i = 0; i < f->log_count; i++)
		f->total += file_bytes(f, f->logs[i].name);
	for (size_t i = 0; i < f->table_count; i++) {
		TRY(table_read(f, &f->tables[i], losses));
		f->bytes += f->tables[i].taken ? file_bytes(f, f->tables[i].name) : 0;
		salvage_files_tell(f, 0);
	}
	for (size_t i = 0; i < f->log_count; i++) {
		TRY(log_read(f, i, losses));
		f->bytes += file_bytes(f, f->logs[i].name);
		salvage_files_tell(f, 0);
	}
	return STATUS_OK;
}
