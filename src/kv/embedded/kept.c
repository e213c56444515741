#include "kv/embedded/kept.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/big_endian.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "base/steady.h"
#include "kv/embedded/handle.h"
#include "kv/embedded/log_record.h"

enum {
	/* RocksDB looks at the age of what is in the archive, which frond bounds by its size. */
	ARCHIVE_SECONDS = INT_MAX,
	VERSION_BYTES = sizeof(uint64_t),
	SEEN_MS = 60 * 1000, /* a follower that has not asked for so long is away */
};

METRIC_COLLECTED(kept_log_bytes, METRIC_KIND_GAUGE, "frond_store_kept_log_bytes", METRIC_BYTES,
		 "Bytes of the log that are kept for standbys.");
METRIC_COLLECTED(followers, METRIC_KIND_GAUGE, "frond_followers", METRIC_NUMBER,
		 "Standbys that have asked for the log within the last minute.");
METRIC_COLLECTED(
	behind_versions, METRIC_KIND_GAUGE, "frond_followers_behind_versions", METRIC_NUMBER,
	"How many versions the standby that is furthest behind has not got, those that are "
	"away included.");
METRIC_COLLECTED(behind_time, METRIC_KIND_GAUGE, "frond_followers_behind_seconds", METRIC_SECONDS,
		 "For how long that standby has not had all that was committed; 0: it has.");
METRIC_COLLECTED(behind_bytes, METRIC_KIND_GAUGE, "frond_followers_behind_bytes", METRIC_BYTES,
		 "About how many bytes of the log that standby has not got.");

/* ---- The bound ---- */

void
kv_log_prune(struct kv_store *base)
{
	struct emb_store *store = (struct emb_store *)base;
	uint64_t bytes = 0;
	uint64_t *numbers;
	size_t count;

	if (base->engine != &kv_engine_embedded || !store->kept ||
	    kept_list(store->path, false, &numbers, &count, NULL) != STATUS_OK)
		return;
	while (count--) {
		bytes += kept_file_bytes(store->path, numbers[count]);
		if (bytes > store->kept->log_bytes)
			kept_remove(store->path, numbers[count]);
	}
	mem_free(numbers);
}

/* ---- Metrics ---- */

static void
kept_collect(void *arg)
{
	struct emb_store *store = arg;
	struct kept *k = store->kept;
	uint64_t published = kv_log_published(&store->base);
	const struct kept_place all = { 0 };
	struct kept_follower furthest = { 0 };
	uint64_t now_ns = clock_mono_ns();
	uint64_t present = 0;

	pthread_mutex_lock(&k->lock);
	for (size_t i = 0; i < KV_LOG_FOLLOWERS; i++) {
		const struct kept_follower *f = &k->followers[i];

		if (!f->name[0])
			continue;
		if (now_ns - f->seen_ns < SEEN_MS * CLOCK_NS_PER_MS)
			present++;
		if (!furthest.name[0] || f->acked < furthest.acked)
			furthest = *f;
	}
	pthread_mutex_unlock(&k->lock);
	metric_report(&kept_log_bytes, 0, kept_bytes_behind(store->path, &all));
	metric_report(&followers, 0, present);
	if (!furthest.name[0])
		return;
	metric_report(&behind_versions, 0,
		      published > furthest.acked ? published - furthest.acked : 0);
	metric_report(&behind_time, 0, published > furthest.acked ? now_ns - furthest.equal_ns : 0);
	metric_report(&behind_bytes, 0,
		      published > furthest.acked ? kept_bytes_behind(store->path, &furthest.place)
						 : 0);
}

/* ---- Opening ---- */

static bool
kept_has_archive(const char *path)
{
	char name[PATH_MAX];
	struct stat st;

	return snprintf(name, sizeof(name), "%s/" KEPT_ARCHIVE, path) < (int)sizeof(name) &&
	       stat(name, &st) == 0 && S_ISDIR(st.st_mode);
}

bool
emb_kept_options(struct emb_store *store, const struct kv_options *options)
{
	if (options->read_only || (!options->log_bytes && !kept_has_archive(store->path)))
		return false;
	rocksdb_options_set_WAL_ttl_seconds(store->options, ARCHIVE_SECONDS);
	return true;
}

/* Writes the mark (kept.h), and the name of a history if the store has none. */
static enum status
kept_mark(struct emb_store *store, uint8_t history[KV_LOG_HISTORY_BYTES], struct err *err)
{
	const struct str history_key = EMB_KEY_HISTORY;
	const struct str version_key = EMB_KEY_VERSION;
	uint8_t stamp[KV_VERSIONSTAMP_TX_BYTES];
	size_t len = KV_LOG_HISTORY_BYTES;
	rocksdb_writebatch_t *batch;
	char *error = NULL;

	TRY(emb_handle_read(store, history_key, (char *)history, &len, err));
	if (len != KV_LOG_HISTORY_BYTES)
		rand_bytes(history, KV_LOG_HISTORY_BYTES);
	stamp_write(stamp, store->versions.published, 0);
	batch = rocksdb_writebatch_create();
	rocksdb_writebatch_put(batch, history_key.ptr, history_key.len, (const char *)history,
			       KV_LOG_HISTORY_BYTES);
	rocksdb_writebatch_put(batch, version_key.ptr, version_key.len, (const char *)stamp,
			       VERSION_BYTES);
	rocksdb_write(store->db, store->write_options, batch, &error);
	rocksdb_writebatch_destroy(batch);
	return error ? emb_error(error, "marking the log", err) : STATUS_OK;
}

static enum status
kept_check_follows(struct emb_store *store, const struct kv_options *options, struct err *err)
{
	size_t len = VERSION_BYTES;
	char value[VERSION_BYTES];

	if (options->read_only)
		return STATUS_OK;
	TRY(emb_handle_read(store, EMB_KEY_FOLLOWS, value, &len, err));
	if (len && !options->follows && value[0] == KEPT_REPLACED)
		return err_set(err, STATUS_FORBIDDEN,
			       "a standby of %s has taken its place: it is read only until \"frond "
			       "promote\" makes it a first of its own",
			       store->path);
	if (len && !options->follows)
		return err_set(err, STATUS_FORBIDDEN,
			       "%s is a standby of another store: it is read only until \"frond "
			       "promote\" makes it a first",
			       store->path);
	if (!len && options->follows)
		return err_set(err, STATUS_INVALID, "%s is a store of its own, and no standby",
			       store->path);
	return STATUS_OK;
}

enum status
emb_kept_begin(struct emb_store *store, const struct kv_options *options, struct err *err)
{
	enum status status;
	struct kept *k;

	TRY(kept_check_follows(store, options, err));
	/* A full or read-only disk takes no mark, so it feeds no standby until the next start. */
	if (!store->keeps_log || !store->health.writable)
		return STATUS_OK;
	k = mem_zalloc(sizeof(*k));
	if (!k)
		return err_set(err, STATUS_NOMEM, "out of memory");
	status = kept_mark(store, k->history, err);
	if (status != STATUS_OK) {
		mem_free(k);
		return status;
	}
	k->log_bytes = options->log_bytes;
	pthread_mutex_init(&k->lock, NULL);
	store->kept = k;
	k->collector = (struct metric_collector){ .collect = kept_collect, .arg = store };
	metric_collector_add(&k->collector);
	return STATUS_OK;
}

void
emb_kept_put_link(const struct emb_store *store, rocksdb_writebatch_t *writes)
{
	const struct str key = EMB_KEY_LINK;
	uint8_t value[LOG_LINK_VALUE_BYTES];

	if (!store->kept)
		return;
	/* The committer's thread, the only one that publishes. */
	big_endian_put_64(value, store->versions.published);
	big_endian_put_64(value + LOG_LINK_TIME, steady_date_ms());
	memcpy(value + LOG_LINK_HISTORY, store->kept->history, LOG_LINK_HISTORY_BYTES);
	rocksdb_writebatch_put(writes, key.ptr, key.len, (const char *)value, sizeof(value));
}

void
emb_kept_end(struct emb_store *store)
{
	struct kept *k = store->kept;

	if (!k)
		return;
	metric_collector_remove(&k->collector);
	pthread_mutex_destroy(&k->lock);
	mem_free(k);
	store->kept = NULL;
}
