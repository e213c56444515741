/*
 * A standby's side of kv/log.h: making it of a copy, applying a first's log, promoting it.
 *
 * == Why a standby is exact ==
 *
 * What is applied are the first's own batches, each of which ends with the version that it makes. A
 * standby commits nothing of its own, so its version, which is written and synced with the data,
 * says exactly which batches it has. All batches of one answer are joined to one, which is written
 * and synced once: after a crash either all of them are there or none, and no write begins before
 * the one in front of it is on the disk, as logs.c relies on.
 *
 * == Why its readers see one version ==
 *
 * Joined batches are applied in the same order as the committer writes a batch of its own
 * (committer.c). Readers keep the old version until the end: first RocksDB gets all of the join,
 * then the caches in front of RocksDB are emptied, and then the new version is published. The
 * watches of the written keys are completed last, so that whoever they wake reads the new values. A
 * join has whole transactions of the first, and no reader sees a version in the middle of it.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/big_endian.h"
#include "base/clock.h"
#include "base/parent.h"
#include "base/rand.h"
#include "kv/embedded/directory.h"
#include "kv/embedded/gaps.h"
#include "kv/embedded/handle.h"
#include "kv/embedded/kept.h"
#include "kv/embedded/log_record.h"
#include "kv/embedded/reopen.h"
#include "kv/embedded/upkeep.h"
#include "kv/embedded/watch_int.h"
#include "loop/pause.h"

#define COPYING_SUFFIX  ".copying"
#define REPLACED_SUFFIX ".replaced"

enum {
	BYTE_BITS = 8,
	TAKE_PAUSE_MS = 5,
	VERSION_BYTES = sizeof(uint64_t),
	LENGTH_AT = VERSION_BYTES,
	CRC_AT = LENGTH_AT + sizeof(uint32_t),
};

/* ---- Records ---- */

enum status
kv_log_record(struct str records, uint64_t *ret_version, struct str *ret, struct err *err)
{
	struct str payload;

	if (records.len < KV_LOG_HEADER_BYTES)
		return STATUS_NOT_FOUND;
	payload.len = big_endian_32(records.ptr + LENGTH_AT);
	if (payload.len > KV_LOG_RECORD_BYTES)
		return err_set(err, STATUS_CORRUPT, "a record of the log has %zu bytes",
			       payload.len);
	if (records.len - KV_LOG_HEADER_BYTES < payload.len)
		return STATUS_NOT_FOUND;
	payload.ptr = records.ptr + KV_LOG_HEADER_BYTES;
	if (kept_crc(payload) != big_endian_32(records.ptr + CRC_AT))
		return err_set(err, STATUS_CORRUPT,
			       "a record of the log does not match its checksum");
	*ret_version = big_endian_64(records.ptr);
	*ret = payload;
	return STATUS_OK;
}

/* ---- Applying ---- */

/*
 * What the committer does when it makes a batch (committer.c). Nobody signals that it is free, and
 * it is busy only while the store is being opened again, so this looks now and then.
 */
static void
standby_take_committer(struct emb_store *store)
{
	struct emb_queue *q = &store->queue;
	bool taken = false;

	while (!taken) {
		pthread_mutex_lock(&q->lock);
		taken = !q->busy;
		q->busy = true;
		pthread_mutex_unlock(&q->lock);
		if (!taken)
			wait_pause(TAKE_PAUSE_MS);
	}
}

static void
standby_leave_committer(struct emb_store *store)
{
	struct emb_queue *q = &store->queue;

	pthread_mutex_lock(&q->lock);
	q->busy = false;
	pthread_cond_signal(&q->filled);
	pthread_mutex_unlock(&q->lock);
}

/* Joins the batches of all records that are newer than `version` into one. */
static enum status
standby_join(struct emb_store *store, struct str records, uint64_t version, struct buf *ret,
	     uint64_t *ret_version, struct err *err)
{
	static const char header[KEPT_BATCH_HEADER_BYTES];
	uint8_t history[KV_LOG_HISTORY_BYTES] = { 0 };
	size_t len = sizeof(history);
	uint64_t count = 0;

	TRY(emb_handle_read(store, EMB_KEY_HISTORY, (char *)history, &len, err));
	buf_append(ret, header, sizeof(header));
	*ret_version = version;
	while (records.len) {
		struct str payload;
		struct log_link link;
		uint64_t made;
		enum status status = kv_log_record(records, &made, &payload, err);

		if (status == STATUS_NOT_FOUND)
			return err_set(err, STATUS_CORRUPT, "the log ends within a record");
		TRY(status);
		records = str_skip(records, KV_LOG_HEADER_BYTES + payload.len);
		link = log_link_of(payload.ptr, payload.len);
		if (payload.len < KEPT_BATCH_HEADER_BYTES || !made || link.version != made)
			return err_set(err, STATUS_CORRUPT,
				       "a record of the log does not make the version %llu",
				       (unsigned long long)made);
		if (made <= *ret_version)
			continue;
		if (!link.linked || link.before != *ret_version)
			return err_set(err, STATUS_CORRUPT,
				       "the log misses commits between the versions %llu and %llu",
				       (unsigned long long)*ret_version, (unsigned long long)made);
		if (memcmp(link.history, history, sizeof(link.history)) != 0)
			return err_set(err, STATUS_DOC_CONFLICT,
				       "the version %llu of the log is of another history",
				       (unsigned long long)made);
		for (size_t i = sizeof(uint32_t); i--;)
			count += (uint64_t)(uint8_t)payload.ptr[KEPT_COUNT_AT + i]
				 << (BYTE_BITS * i);
		buf_append_str(ret, str_skip(payload, KEPT_BATCH_HEADER_BYTES));
		*ret_version = made;
	}
	TRY(buf_status(ret));
	if (count > UINT32_MAX)
		return err_set(err, STATUS_LIMIT, "too many changes at once");
	for (size_t i = 0; i < sizeof(uint32_t); i++)
		ret->ptr[KEPT_COUNT_AT + i] = (char)(uint8_t)(count >> (BYTE_BITS * i));
	return STATUS_OK;
}

static enum status
complete_watches(void *arg, const struct kv_log_key *key)
{
	watches_written(arg, key->key, key->end);
	return STATUS_OK;
}

static enum status
standby_write(struct emb_store *store, struct str batch, uint64_t version, struct err *err)
{
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
	const struct log_link none = { 0 };
	rocksdb_writebatch_t *writes;
	uint64_t written;
	char *error = NULL;
	bool known;

	TRY(emb_reopen_refuse_disk(store, err));
	TRY(emb_versions_hold(store));
	writes = rocksdb_writebatch_create_from(batch.ptr, batch.len);
	rocksdb_write(store->db, store->write_options, writes, &error);
	rocksdb_writebatch_destroy(writes);
	if (error)
		return emb_reopen_write_failed(store, error, &known, err);
	recent_forget(store->recent, version);
	gaps_forget(store->gaps, version);
	TRY(emb_handle_versions(store, &written, metadata, err));
	if (written != version)
		return err_set(err, STATUS_CORRUPT, "the log of version %llu has made version %llu",
			       (unsigned long long)version, (unsigned long long)written);
	(void)emb_versions_publish(store, version, metadata, NULL);
	if (watches_count(store->watches) &&
	    kept_tell_keys(str_skip(batch, KEPT_BATCH_HEADER_BYTES), &none, complete_watches,
			   store->watches, NULL) != STATUS_OK)
		watches_complete_all(store->watches);
	return STATUS_OK;
}

enum status
kv_log_apply(struct kv_store *base, struct str records, struct err *err)
{
	AUTO(buf_release) struct buf batch = BUF_INIT(2 * KV_LOG_RECORD_BYTES);
	struct emb_store *store = (struct emb_store *)base;
	uint64_t before = kv_log_published(base);
	enum status status;
	uint64_t version;

	TRY(standby_join(store, records, before, &batch, &version, err));
	if (version == before)
		return STATUS_OK;
	standby_take_committer(store);
	status = standby_write(store, buf_str(&batch), version, err);
	standby_leave_committer(store);
	return status;
}

/* ---- Being behind ---- */

bool
kv_follows(const struct kv_store *base)
{
	return base->follows;
}

void
kv_log_heard(struct kv_store *base, uint64_t first)
{
	struct emb_store *store = (struct emb_store *)base;
	uint64_t version = kv_log_published(base);

	atomic_store_explicit(&store->heard.behind, first > version ? first - version : 0,
			      memory_order_relaxed);
	if (first <= version)
		atomic_store_explicit(&store->heard.equal_ns, clock_mono_ns(),
				      memory_order_relaxed);
}

struct kv_log_behind
kv_log_behind(const struct kv_store *base)
{
	const struct emb_store *store = (const struct emb_store *)base;

	if (!base->follows)
		return (struct kv_log_behind){ 0 };
	return (struct kv_log_behind){
		.versions = atomic_load_explicit(&store->heard.behind, memory_order_relaxed),
		.ns = clock_mono_ns() -
		      atomic_load_explicit(&store->heard.equal_ns, memory_order_relaxed),
	};
}

/* ---- A copy ---- */

/* Removes the directory of a store, with the archive of its log; what cannot be removed stays. */
static void
store_remove(const char *path)
{
	char archive[PATH_MAX];

	if (snprintf(archive, sizeof(archive), "%s/" KEPT_ARCHIVE, path) < (int)sizeof(archive))
		emb_directory_remove(archive);
	emb_directory_remove(path);
}

/* The place that the URL names, with a suffix. */
static enum status
copy_path(const char *url, const char *suffix, char ret[PATH_MAX], struct err *err)
{
	struct str path = str_from_cstr(url);
	const struct str scheme = STR("embedded:");

	if (!str_starts_with(path, scheme) || path.len == scheme.len)
		return err_set(err, STATUS_UNSUPPORTED,
			       "a standby is a directory: expected embedded:DIRECTORY");
	path = str_skip(path, scheme.len);
	while (path.len > 1 && path.ptr[path.len - 1] == '/')
		path.len--;
	if (snprintf(ret, PATH_MAX, "%.*s%s", STR_ARG(path), suffix) >= PATH_MAX)
		return err_set(err, STATUS_INVALID, "the path of the store is too long");
	return STATUS_OK;
}

enum status
kv_log_copy_make(const char *url, const struct kv_shape *shape, struct kv_store **ret,
		 struct err *err)
{
	/* Its format and version come with the copy, over those of a new store. */
	const struct kv_options options = { .create = true, .shape = shape };
	char path[PATH_MAX];

	TRY(copy_path(url, COPYING_SUFFIX, path, err));
	store_remove(path);
	return kv_engine_embedded.open(str_from_cstr(path), &options, ret, err);
}

enum status
kv_log_copy_load(struct kv_store *base, struct str record, struct err *err)
{
	struct emb_store *store = (struct emb_store *)base;
	rocksdb_writeoptions_t *options;
	rocksdb_writebatch_t *writes;
	char *error = NULL;

	if (record.len < KEPT_BATCH_HEADER_BYTES)
		return err_set(err, STATUS_CORRUPT, "a record of the copy is too short");
	/* A copy that a crash interrupts is begun anew, so it needs no log. */
	options = rocksdb_writeoptions_create();
	rocksdb_writeoptions_disable_WAL(options, 1);
	writes = rocksdb_writebatch_create_from(record.ptr, record.len);
	rocksdb_write(store->db, options, writes, &error);
	rocksdb_writebatch_destroy(writes);
	rocksdb_writeoptions_destroy(options);
	return error ? emb_error(error, "writing the copy", err) : STATUS_OK;
}

/* Brings all to the disk, with the mark of a standby last. */
static enum status
copy_finish(struct emb_store *store, struct err *err)
{
	const struct str key = EMB_KEY_FOLLOWS;
	static const char value[VERSION_BYTES] = { KEPT_STANDBY };
	char *error = NULL;

	TRY(emb_compact_flush(store, err));
	rocksdb_put(store->db, store->write_options, key.ptr, key.len, value, sizeof(value),
		    &error);
	return error ? emb_error(error, "writing the copy", err) : STATUS_OK;
}

static enum status
copy_move(const char *from, const char *to, const char *replaced, struct err *err)
{
	store_remove(replaced);
	if (rename(to, replaced) != 0 && errno != ENOENT)
		return err_set(err, STATUS_IO, "cannot rename %s: %s", to, strerror(errno));
	if (rename(from, to) != 0)
		return err_set(err, STATUS_IO, "cannot rename %s to %s: %s", from, to,
			       strerror(errno));
	TRY(parent_sync(to, err));
	store_remove(replaced);
	return STATUS_OK;
}

enum status
kv_log_copy_place(struct kv_store *base, const char *url, struct err *err)
{
	char from[PATH_MAX], to[PATH_MAX], replaced[PATH_MAX];
	enum status status = copy_finish((struct emb_store *)base, err);

	kv_close(base);
	TRY(status);
	TRY(copy_path(url, COPYING_SUFFIX, from, err));
	TRY(copy_path(url, "", to, err));
	TRY(copy_path(url, REPLACED_SUFFIX, replaced, err));
	return copy_move(from, to, replaced, err);
}

/* ---- Promoting ---- */

enum status
kv_log_promote_begin(struct kv_store *base, struct err *err)
{
	const struct str history_key = EMB_KEY_HISTORY, follows_key = EMB_KEY_FOLLOWS,
			 promoted_key = EMB_KEY_PROMOTED;
	char promoted[KV_LOG_HISTORY_BYTES + VERSION_BYTES], history[KV_LOG_HISTORY_BYTES];
	static const char promotes[VERSION_BYTES] = { KEPT_PROMOTES };
	struct emb_store *store = (struct emb_store *)base;
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];
	struct kv_log_position now;
	rocksdb_writebatch_t *batch;
	char *error = NULL;

	TRY(kv_log_position(base, &now, err));
	if (!now.follows)
		return err_set(err, STATUS_INVALID, "%s is no standby", store->path);
	if (now.promotes) {
		emb_reopen_leads(store);
		return STATUS_OK;
	}
	memcpy(promoted, now.history, KV_LOG_HISTORY_BYTES);
	stamp_write(stamp, now.version, 0);
	memcpy(promoted + KV_LOG_HISTORY_BYTES, stamp, VERSION_BYTES);
	rand_bytes(history, sizeof(history));
	batch = rocksdb_writebatch_create();
	rocksdb_writebatch_put(batch, history_key.ptr, history_key.len, history, sizeof(history));
	rocksdb_writebatch_put(batch, promoted_key.ptr, promoted_key.len, promoted,
			       sizeof(promoted));
	rocksdb_writebatch_put(batch, follows_key.ptr, follows_key.len, promotes, sizeof(promotes));
	rocksdb_write(store->db, store->write_options, batch, &error);
	rocksdb_writebatch_destroy(batch);
	if (error)
		return emb_error(error, "promoting the standby", err);
	emb_reopen_leads(store);
	return STATUS_OK;
}

enum status
kv_log_promote_end(struct kv_store *base, struct err *err)
{
	struct emb_store *store = (struct emb_store *)base;
	const struct str follows_key = EMB_KEY_FOLLOWS;
	char *error = NULL;

	rocksdb_delete(store->db, store->write_options, follows_key.ptr, follows_key.len, &error);
	return error ? emb_error(error, "promoting the standby", err) : STATUS_OK;
}
