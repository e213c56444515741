/* A store of what can be read out of a damaged one: the new store, and its way to its place. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/big_endian.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/parent.h"
#include "kv/embedded/directory.h"
#include "kv/embedded/kept.h"
#include "kv/embedded/embedded_int.h"
#include "kv/embedded/salvage_int.h"
#include "kv/keyspace.h"

enum {
	DIRECTORY_MODE = 0777, /* as the process's umask leaves it */
	BATCH_BYTES = 1024 * 1024,
	MICROSECONDS_PER_MS = 1000,
	FORMAT_KEY_BYTES = 16,
	TOLD_KEYS = 4096, /* between two times that it is told how far it is */
};

#define HALF_SUFFIX    ".salvaging"
#define SCRATCH_SUFFIX ".salvaging/manifest"
#define HALF_SCHEME    "embedded:"

struct salvage {
	const char *source;
	char target[PATH_MAX];
	char half[PATH_MAX]; /* where the store is put together */
	char scratch[PATH_MAX];
	struct salvage_files files;
	struct salvage_spans losses;
	struct emb_store *store;
	rocksdb_writebatch_t *batch;
	rocksdb_writeoptions_t *write_options;
	size_t batch_bytes;
	struct buf format_key;
	bool has_format;
	uint64_t version;
	struct kv_salvage_sum sum;
	struct err *err;
};

/* ---- Writing ---- */

static enum status
salvage_write(struct salvage *s)
{
	char *error = NULL;

	rocksdb_write(s->store->db, s->write_options, s->batch, &error);
	rocksdb_writebatch_clear(s->batch);
	s->batch_bytes = 0;
	return error ? emb_error(error, "writing the new store", s->err) : STATUS_OK;
}

static uint64_t
number_of(struct str bytes)
{
	uint64_t number = 0;

	for (size_t i = 0; i < bytes.len && i < sizeof(number); i++)
		number = number << 8 | (uint8_t)bytes.ptr[i];
	return number;
}

/* The new store has another history, follows nobody and was not replaced. */
static bool
is_of_history(struct str key)
{
	return str_eq(key, EMB_KEY_HISTORY) || str_eq(key, EMB_KEY_FOLLOWS) ||
	       str_eq(key, EMB_KEY_PROMOTED) || str_eq(key, EMB_KEY_LINK);
}

static enum status
salvage_take_pair(void *arg, struct str key, struct str value, struct err *err)
{
	struct salvage *s = arg;

	(void)err; /* the same as s->err */
	if (str_eq(key, EMB_KEY_VERSION)) {
		s->version = number_of(value);
		return STATUS_OK;
	}
	if (is_of_history(key))
		return STATUS_OK;
	if (str_eq(key, buf_str(&s->format_key)))
		s->has_format = true;
	rocksdb_writebatch_put(s->batch, key.ptr, key.len, value.ptr, value.len);
	s->batch_bytes += key.len + value.len;
	if (++s->sum.keys % TOLD_KEYS == 0)
		salvage_files_tell(&s->files, s->sum.keys);
	s->sum.bytes += key.len + value.len;
	return s->batch_bytes < BATCH_BYTES ? STATUS_OK : salvage_write(s);
}

/* As a restored store: the version lies above those that any reader can have seen. */
static enum status
salvage_write_version(struct salvage *s)
{
	uint64_t version = clock_wall_ms() * MICROSECONDS_PER_MS;
	struct str key = EMB_KEY_VERSION;
	char bytes[sizeof(version)];

	if (version <= s->version)
		version = s->version + 1;
	big_endian_put_64(bytes, version);
	rocksdb_writebatch_put(s->batch, key.ptr, key.len, bytes, sizeof(bytes));
	return salvage_write(s);
}

static enum status
salvage_flush(struct salvage *s)
{
	rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
	char *error = NULL;

	rocksdb_flushoptions_set_wait(options, 1);
	rocksdb_flush(s->store->db, options, &error);
	rocksdb_flushoptions_destroy(options);
	return error ? emb_error(error, "writing the new store", s->err) : STATUS_OK;
}

static enum status
salvage_fill(struct salvage *s)
{
	tuple_put_u64(&s->format_key, KV_ROOT);
	tuple_put_u64(&s->format_key, KV_ROOT_FORMAT);
	TRY(buf_status(&s->format_key));
	TRY(salvage_merge(&s->files, &s->losses, salvage_take_pair, s, s->err));
	TRY(salvage_write_version(s));
	return salvage_flush(s);
}

/* Makes the store, and writes to it past the log: a flush brings all of it to the disk. */
static enum status
salvage_make(struct salvage *s)
{
	const struct kv_options options = { .shape = s->files.how->shape, .create = true };
	struct kv_store *base;
	enum status status;

	TRY(kv_engine_embedded.open(str_from_cstr(s->half), &options, &base, s->err));
	s->store = (struct emb_store *)base;
	s->batch = rocksdb_writebatch_create();
	s->write_options = rocksdb_writeoptions_create();
	rocksdb_writeoptions_disable_WAL(s->write_options, 1);
	s->format_key = BUF_INIT(FORMAT_KEY_BYTES);
	/* Nobody has a transaction on it, so that the committer writes nothing. */
	status = salvage_fill(s);
	buf_release(&s->format_key);
	rocksdb_writeoptions_destroy(s->write_options);
	rocksdb_writebatch_destroy(s->batch);
	kv_engine_embedded.close(base);
	return status;
}

/* ---- Places ---- */

static enum status
salvage_paths(struct salvage *s, struct str target)
{
	while (target.len > 1 && target.ptr[target.len - 1] == '/')
		target.len--;
	if (target.len == 0)
		return err_set(s->err, STATUS_INVALID, "embedded: needs the path of a directory");
	if (target.len + sizeof(SCRATCH_SUFFIX) > sizeof(s->scratch))
		return err_set(s->err, STATUS_INVALID, "the path of the store is too long");
	(void)snprintf(s->target, sizeof(s->target), "%.*s", STR_ARG(target));
	(void)snprintf(s->half, sizeof(s->half), "%.*s%s", STR_ARG(target), HALF_SUFFIX);
	(void)snprintf(s->scratch, sizeof(s->scratch), "%.*s%s", STR_ARG(target), SCRATCH_SUFFIX);
	return STATUS_OK;
}

/* Nothing may be written into the source, so the target must lie elsewhere. */
static enum status
salvage_check_apart(struct salvage *s)
{
	char parent[PATH_MAX];
	char *slash, *real, *source;
	enum status status = STATUS_OK;

	(void)snprintf(parent, sizeof(parent), "%s", s->target);
	slash = strrchr(parent, '/');
	if (slash)
		slash[slash == parent] = '\0';
	real = realpath(slash ? parent : ".", NULL);
	source = realpath(s->source, NULL);
	if (real && source &&
	    (strcmp(real, source) == 0 ||
	     (str_starts_with(str_from_cstr(real), str_from_cstr(source)) &&
	      real[strlen(source)] == '/')))
		status = err_set(s->err, STATUS_INVALID, "%s lies in %s, which is only read",
				 s->target, s->source);
	free(real);
	free(source);
	return status;
}

/* Holds the lock that RocksDB holds on a store that is open, if the store has the file for it. */
static enum status
salvage_lock(struct salvage *s, int *ret)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

	*ret = openat(s->files.dir, "LOCK", O_RDONLY | O_CLOEXEC);
	if (*ret < 0 || fcntl(*ret, F_SETLK, &lock) == 0)
		return STATUS_OK;
	close(*ret);
	*ret = -1;
	return err_set(s->err, STATUS_LOCKED, "%s: in use by another process", s->source);
}

static enum status
salvage_make_directories(struct salvage *s)
{
	bool empty = true;
	enum status status = emb_directory_is_empty(s->target, &empty, s->err);

	if (status != STATUS_NOT_FOUND)
		TRY(status);
	if (!empty)
		return err_set(s->err, STATUS_EXISTS, "%s is not empty", s->target);
	if (mkdir(s->half, DIRECTORY_MODE) != 0)
		return err_set(s->err, errno == EEXIST ? STATUS_EXISTS : STATUS_IO,
			       "cannot make %s: %s", s->half, strerror(errno));
	if (mkdir(s->scratch, DIRECTORY_MODE) == 0)
		return STATUS_OK;
	status = err_set(s->err, STATUS_IO, "cannot make %s: %s", s->scratch, strerror(errno));
	emb_directory_remove(s->half);
	return status;
}

static enum status
salvage_move_to_place(struct salvage *s)
{
	TRY(emb_directory_sync_all(s->half, s->err));
	if (rename(s->half, s->target) != 0)
		return err_set(s->err, STATUS_IO, "cannot rename %s to %s: %s", s->half, s->target,
			       strerror(errno));
	return parent_sync(s->target, s->err);
}

/* ---- The whole ---- */

static void
salvage_tell(struct salvage *s)
{
	for (size_t i = 0; i < s->losses.count; i++) {
		const struct salvage_span *span = &s->losses.all[i];
		struct kv_loss loss = { .text = span->text,
					.has_keys = span->has_keys,
					.after = span->begin,
					.until = span->end,
					.elsewhere = span->keys };

		s->files.how->lost(s->files.how->arg, &loss);
	}
	s->sum.logs = s->files.log_count;
	for (size_t i = 0; i < s->files.table_count; i++)
		s->sum.tables += s->files.tables[i].taken;
}

static enum status
salvage_run(struct salvage *s)
{
	char url[PATH_MAX + sizeof(HALF_SCHEME)];
	enum status status = salvage_files_read(&s->files, s->source, s->scratch, &s->losses,
						s->err);

	emb_directory_remove(s->scratch);
	TRY(status);
	TRY(salvage_make(s));
	salvage_tell(s);
	(void)snprintf(url, sizeof(url), "%s%s", HALF_SCHEME, s->half);
	TRY(s->files.how->finish(url, s->has_format, s->files.how->arg, s->err));
	return salvage_move_to_place(s);
}

static enum status
salvage_open_source(struct salvage *s)
{
	enum status status;
	int lock;

	s->files.dir = open(s->source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->files.dir < 0)
		return err_set(s->err, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s",
			       s->source, strerror(errno));
	status = salvage_lock(s, &lock);
	if (status == STATUS_OK)
		status = salvage_make_directories(s);
	if (status == STATUS_OK) {
		status = salvage_run(s);
		if (status != STATUS_OK) {
			emb_directory_remove(s->scratch);
			emb_directory_remove(s->half);
		}
	}
	if (lock >= 0)
		close(lock);
	close(s->files.dir);
	return status;
}

enum status
emb_salvage(struct str source, struct str target, const struct kv_salvage_how *how,
	    struct kv_salvage_sum *ret, struct err *err)
{
	struct salvage *s = mem_zalloc(sizeof(*s));
	char *path = mem_strdup(source);
	enum status status = STATUS_NOMEM;

	if (s && path) {
		s->source = path;
		s->files.how = how;
		s->err = err;
		s->files.arena = arena_new(SALVAGE_ARENA_BYTES);
		status = s->files.arena ? salvage_paths(s, target) : STATUS_NOMEM;
		if (status == STATUS_OK)
			status = salvage_check_apart(s);
		if (status == STATUS_OK)
			status = salvage_open_source(s);
		*ret = s->sum;
		arena_free(s->files.arena);
	}
	if (status != STATUS_OK && !err->text[0])
		status = err_set(err, status, "%s", status_name(status));
	mem_free(path);
	mem_free(s);
	return status;
}
