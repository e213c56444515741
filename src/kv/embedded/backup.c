/*
 * Backups by RocksDB's backup engine. Opening that engine already tidies its directory, so even a
 * listing would disturb a backup that another process is making. Therefore everything here that
 * uses the directory holds a lock on it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/big_endian.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/parent.h"
#include "kv/backup.h"
#include "kv/embedded/directory.h"
#include "kv/embedded/handle.h"
#include "kv/embedded/kept.h"
#include "kv/embedded/reopen.h"
#include "kv/embedded/upkeep.h"

enum {
	DIRECTORY_MODE = 0777, /* as the process's umask leaves it */
	COPY_THREADS = 2,
	MICROSECONDS_PER_MS = 1000,
};

#define META_DIRECTORY   "meta" /* what every backup directory has */
#define RESTORING_SUFFIX ".restoring"

/* ---- The backup engine ---- */

struct backups {
	rocksdb_backup_engine_t *engine;
	rocksdb_env_t *env;
	int lock; /* the directory itself, held */
};

static void
backups_close(struct backups *b)
{
	if (b->engine)
		rocksdb_backup_engine_close(b->engine);
	if (b->env)
		rocksdb_env_destroy(b->env);
	if (b->lock >= 0)
		close(b->lock);
}

static enum status
backups_lock(struct backups *b, const char *dir, struct err *err)
{
	b->lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (b->lock < 0)
		return err_set(err, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s", dir,
			       strerror(errno));
	if (flock(b->lock, LOCK_EX | LOCK_NB) == 0)
		return STATUS_OK;
	if (errno == EWOULDBLOCK)
		return err_set(err, STATUS_LOCKED, "another backup or restore is using %s", dir);
	return err_set(err, STATUS_IO, "locking %s: %s", dir, strerror(errno));
}

/*
 * With the lock held: STATUS_OK if it is a directory of backups or, with `create`, may become one.
 */
static enum status
backups_check_directory(const struct backups *b, const char *dir, bool create, struct err *err)
{
	bool empty = false;
	struct stat st;

	if (fstatat(b->lock, META_DIRECTORY, &st, 0) == 0 && S_ISDIR(st.st_mode))
		return STATUS_OK;
	TRY(emb_directory_is_empty(dir, &empty, err));
	if (!create)
		return err_set(err, STATUS_NOT_FOUND, "there are no backups in %s", dir);
	if (!empty)
		return err_set(err, STATUS_INVALID, "%s is not empty and holds no backups", dir);
	return STATUS_OK;
}

static enum status
backups_open_engine(struct backups *b, const char *dir, bool create, struct err *err)
{
	rocksdb_backup_engine_options_t *options;
	char *error = NULL;

	TRY(backups_lock(b, dir, err));
	TRY(backups_check_directory(b, dir, create, err));
	b->env = rocksdb_create_default_env();
	options = rocksdb_backup_engine_options_create(dir);
	rocksdb_backup_engine_options_set_max_background_operations(options, COPY_THREADS);
	/* What has been committed when a backup begins is flushed for it; logs grow meanwhile. */
	rocksdb_backup_engine_options_set_backup_log_files(options, 0);
	b->engine = rocksdb_backup_engine_open_opts(options, b->env, &error);
	rocksdb_backup_engine_options_destroy(options);
	return error ? emb_error(error, dir, err) : STATUS_OK;
}

static enum status
backups_open(struct backups *b, const char *dir, bool create, struct err *err)
{
	enum status status;

	*b = (struct backups){ .lock = -1 };
	if (create && mkdir(dir, DIRECTORY_MODE) == 0)
		TRY(parent_sync(dir, err));
	else if (create && errno != EEXIST)
		return err_set(err, STATUS_IO, "cannot make %s: %s", dir, strerror(errno));
	status = backups_open_engine(b, dir, create, err);
	if (status != STATUS_OK)
		backups_close(b);
	return status;
}

static struct kv_backup
backups_info_at(const rocksdb_backup_engine_info_t *info, int at)
{
	return (struct kv_backup){
		.id = rocksdb_backup_engine_info_backup_id(info, at),
		.time_s = (uint64_t)rocksdb_backup_engine_info_timestamp(info, at),
		.bytes = rocksdb_backup_engine_info_size(info, at),
	};
}

/* The backup of that id, or the newest for 0. */
static enum status
backups_find(struct backups *b, const char *dir, uint32_t id, struct kv_backup *ret,
	     struct err *err)
{
	const rocksdb_backup_engine_info_t *info = rocksdb_backup_engine_get_backup_info(b->engine);
	int count = rocksdb_backup_engine_info_count(info);
	bool found = false;

	for (int i = 0; i < count; i++) {
		struct kv_backup backup = backups_info_at(info, i);

		if (id ? backup.id == id : !found || backup.id > ret->id) {
			*ret = backup;
			found = true;
		}
	}
	rocksdb_backup_engine_info_destroy(info);
	if (found)
		return STATUS_OK;
	if (id)
		return err_set(err, STATUS_NOT_FOUND, "there is no backup %u in %s", id, dir);
	return err_set(err, STATUS_NOT_FOUND, "there are no backups in %s", dir);
}

/* ---- Making, listing, removing ---- */

static enum status
backups_make_and_check(struct backups *b, rocksdb_t *db, const char *dir, struct kv_backup *ret,
		       struct err *err)
{
	char *error = NULL;

	rocksdb_backup_engine_create_new_backup_flush(b->engine, db, 1, &error);
	if (error)
		return emb_error(error, "making a backup", err);
	TRY(backups_find(b, dir, 0, ret, err));
	/* Compares the files' lengths with what has been written, which is known only now. */
	rocksdb_backup_engine_verify_backup(b->engine, ret->id, &error);
	return error ? emb_error(error, "checking the backup", err) : STATUS_OK;
}

enum status
emb_backup_create(struct kv_store *base, const char *dir, struct kv_backup *ret, struct err *err)
{
	struct emb_store *store = (struct emb_store *)base;
	struct gate_pass pass;
	enum status status;
	struct backups b;

	if (base->read_only)
		return err_set(err, STATUS_FORBIDDEN, "the store is open for reading only");
	TRY(emb_reopen_refuse_disk(store, err));
	TRY(backups_open(&b, dir, true, err));
	status = emb_handle_use_long(store, &pass, err);
	if (status == STATUS_OK) {
		status = backups_make_and_check(&b, store->db, dir, ret, err);
		emb_handle_leave_long(store, pass);
	}
	backups_close(&b);
	return status;
}

enum status
kv_backup_list(const char *dir, struct kv_backup **ret, size_t *ret_count, struct err *err)
{
	const rocksdb_backup_engine_info_t *info;
	enum status status = STATUS_OK;
	struct kv_backup *list;
	struct backups b;
	size_t count;

	TRY(backups_open(&b, dir, false, err));
	info = rocksdb_backup_engine_get_backup_info(b.engine);
	count = (size_t)rocksdb_backup_engine_info_count(info);
	list = mem_alloc((count ? count : 1) * sizeof(*list));
	if (list) {
		for (size_t i = 0; i < count; i++)
			list[i] = backups_info_at(info, (int)i);
		*ret = list;
		*ret_count = count;
	} else {
		status = err_set(err, STATUS_NOMEM, "out of memory");
	}
	rocksdb_backup_engine_info_destroy(info);
	backups_close(&b);
	return status;
}

enum status
kv_backup_prune(const char *dir, uint32_t keep, struct err *err)
{
	enum status status = STATUS_OK;
	struct backups b;
	char *error = NULL;

	if (keep == 0)
		return err_set(err, STATUS_INVALID, "at least one backup must be kept");
	TRY(backups_open(&b, dir, false, err));
	rocksdb_backup_engine_purge_old_backups(b.engine, keep, &error);
	if (error)
		status = emb_error(error, "removing old backups", err);
	backups_close(&b);
	return status;
}

/* ---- Restoring ---- */

struct restore {
	const char *dir;
	uint32_t id;
	char *path; /* where the store will be */
	char *half; /* where it is put together */
	const struct kv_restore *how;
	struct kv_backup backup;
	struct err *err;
};

static enum status
restore_check_target(const struct restore *r)
{
	bool empty = true;
	enum status status = emb_directory_is_empty(r->path, &empty, r->err);

	if (status != STATUS_NOT_FOUND)
		TRY(status);
	if (!empty)
		return err_set(r->err, STATUS_EXISTS, "%s is not empty", r->path);
	if (mkdir(r->half, DIRECTORY_MODE) == 0)
		return STATUS_OK;
	if (errno == EEXIST)
		return err_set(r->err, STATUS_EXISTS,
			       "%s is there: what another restore has left, or still uses; remove "
			       "it first",
			       r->half);
	return err_set(r->err, STATUS_IO, "cannot make %s: %s", r->half, strerror(errno));
}

static enum status
restore_copy_files(struct restore *r)
{
	rocksdb_restore_options_t *options;
	struct err damage = { 0 };
	struct backups b;
	char *error = NULL;
	enum status status;

	TRY(backups_open(&b, r->dir, false, r->err));
	status = backups_find(&b, r->dir, r->id, &r->backup, r->err);
	if (status == STATUS_OK) {
		options = rocksdb_restore_options_create();
		rocksdb_backup_engine_restore_db_from_backup(b.engine, r->half, r->half, options,
							     r->backup.id, &error);
		rocksdb_restore_options_destroy(options);
	}
	if (error)
		status = emb_error(error, "restoring the backup", r->err);
	backups_close(&b);
	if (status == STATUS_CORRUPT &&
	    emb_backup_find_damage(r->dir, r->backup.id, &damage) == STATUS_CORRUPT)
		return err_set(r->err, status, "%s", damage.text);
	return status;
}

static enum status
restore_open_half(struct restore *r, struct kv_store **ret)
{
	struct kv_options options = { .shape = r->how->shape };
	enum status status = kv_engine_embedded.open(str_from_cstr(r->half), &options, ret, r->err);

	if (status != STATUS_FORBIDDEN)
		return status;
	/* The backup is of a standby, or of a first that was replaced. */
	options.follows = true;
	return kv_engine_embedded.open(str_from_cstr(r->half), &options, ret, r->err);
}

/*
 * Stores restored from one backup one after the other would go through the same versions, and a
 * reader who follows them would take what is new for what it has seen. With a version from the
 * clock each begins above those before it: no store commits a group every microsecond.
 * It is another history, too, so standbys of the store that was backed up do not go on with it. The
 * backup of a standby becomes a store of its own, which follows nobody.
 */
static enum status
restore_raise_version(struct restore *r)
{
	const struct str history_key = EMB_KEY_HISTORY, promoted_key = EMB_KEY_PROMOTED,
			 follows_key = EMB_KEY_FOLLOWS;
	rocksdb_writebatch_t *batch;
	uint64_t version = clock_wall_ms() * MICROSECONDS_PER_MS;
	struct str key = EMB_KEY_VERSION;
	char bytes[sizeof(uint64_t)];
	struct emb_store *store;
	struct kv_store *base;
	char *error = NULL;

	TRY(restore_open_half(r, &base));
	store = (struct emb_store *)base;
	if (version <= store->versions.published)
		version = store->versions.published + 1;
	big_endian_put_64(bytes, version);
	/* Nobody has a transaction on it, so that the committer writes nothing. */
	batch = rocksdb_writebatch_create();
	rocksdb_writebatch_delete(batch, history_key.ptr, history_key.len);
	rocksdb_writebatch_delete(batch, promoted_key.ptr, promoted_key.len);
	rocksdb_writebatch_delete(batch, follows_key.ptr, follows_key.len);
	rocksdb_writebatch_put(batch, key.ptr, key.len, bytes, sizeof(bytes));
	rocksdb_write(store->db, store->write_options, batch, &error);
	rocksdb_writebatch_destroy(batch);
	kv_engine_embedded.close(base);
	return error ? emb_error(error, "restoring the backup", r->err) : STATUS_OK;
}

/* What the log has behind the backup, while the store still has the backup's version. */
static enum status
restore_go_forward(struct restore *r)
{
	struct kv_store *store;
	enum status status;

	if (!r->how->log)
		return STATUS_OK;
	TRY(restore_open_half(r, &store));
	status = emb_log_forward(store, r->how->log, r->err);
	kv_engine_embedded.close(store);
	return status;
}

static enum status
restore_finish(struct restore *r)
{
	struct kv_store *store;
	enum status status;

	if (!r->how->finish)
		return STATUS_OK;
	TRY(restore_open_half(r, &store));
	status = r->how->finish(store, r->how->arg, r->err);
	kv_engine_embedded.close(store);
	return status;
}

static enum status
restore_move_to_place(struct restore *r)
{
	TRY(emb_directory_sync_all(r->half, r->err));
	if (rename(r->half, r->path) != 0)
		return err_set(r->err, STATUS_IO, "cannot rename %s to %s: %s", r->half, r->path,
			       strerror(errno));
	return parent_sync(r->path, r->err);
}

static enum status
restore_run(struct restore *r)
{
	enum status status;

	TRY(restore_check_target(r));
	status = restore_copy_files(r);
	if (status == STATUS_OK)
		status = restore_go_forward(r);
	if (status == STATUS_OK)
		status = restore_raise_version(r);
	if (status == STATUS_OK)
		status = restore_finish(r);
	if (status == STATUS_OK)
		status = restore_move_to_place(r);
	if (status != STATUS_OK)
		emb_directory_remove(r->half);
	return status;
}

enum status
emb_backup_restore(const char *dir, uint32_t id, struct str address, const struct kv_restore *how,
		   struct kv_backup *ret, struct err *err)
{
	struct restore r = { .dir = dir, .id = id, .how = how, .err = err };
	struct buf half AUTO(buf_release) = BUF_INIT(EMB_PATH_BYTES);
	enum status status;

	while (address.len > 1 && address.ptr[address.len - 1] == '/')
		address.len--;
	if (address.len == 0)
		return err_set(err, STATUS_INVALID, "embedded: needs the path of a directory");
	buf_append_str(&half, address);
	buf_append_cstr(&half, RESTORING_SUFFIX);
	buf_append_byte(&half, '\0');
	status = buf_status(&half);
	if (status != STATUS_OK)
		return err_set(err, status, "the path of the store is too long");
	r.half = half.ptr;
	r.path = mem_strdup(address);
	status = r.path ? restore_run(&r) : err_set(err, STATUS_NOMEM, "out of memory");
	mem_free(r.path);
	if (status == STATUS_OK)
		*ret = r.backup;
	return status;
}
