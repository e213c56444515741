#include "kv/embedded/reopen.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/metric.h"
#include "kv/embedded/directory.h"
#include "kv/embedded/gaps.h"
#include "kv/embedded/handle.h"
#include "kv/embedded/watch_int.h"

static const char *const state_names[] = {
	[KV_STORE_OPEN] = "open",     [KV_STORE_FULL] = "full", [KV_STORE_READ_ONLY] = "read_only",
	[KV_STORE_FAILED] = "failed", [KV_STORE_LOST] = "lost", [KV_STORE_STANDBY] = "standby",
};

METRIC_GAUGES(stores, "frond_store_state", METRIC_NUMBER,
	      "Directories that are open, by state: open ones take writes; full, read_only and "
	      "failed ones and standbys are read only; a lost one serves nothing.",
	      "state", state_names);
METRIC_COUNTER(reopenings, "frond_store_reopenings_total", METRIC_NUMBER,
	       "How often a directory was opened again inside the process after its disk was full "
	       "or had failed.");
METRIC_COUNTER(failed_writes, "frond_store_failed_writes_total", METRIC_NUMBER,
	       "Writes to a directory's log that have failed.");

/* ---- States ---- */

/* The state of a store whose disk is well. */
static enum kv_store_state
state_well(const struct emb_store *store)
{
	return store->base.follows ? KV_STORE_STANDBY : KV_STORE_OPEN;
}

void
emb_reopen_init(struct emb_store *store, const struct kv_options *options)
{
	struct emb_health *h = &store->health;

	atomic_init(&h->state, state_well(store));
	pthread_mutex_init(&h->lock, NULL);
	h->create = options->create;
	h->syncs = !options->no_sync;
	h->probe_ms = options->probe_ms ? options->probe_ms : EMB_PROBE_MS;
	h->due_ns = WAIT_FOREVER;
	h->told = options->told;
	h->told_arg = options->told_arg;
	metric_gauge_add_at(&stores, state_well(store), 1);
}

void
emb_reopen_fini(struct emb_store *store)
{
	metric_gauge_add_at(&stores, emb_reopen_state(store), -1);
	pthread_mutex_destroy(&store->health.lock);
}

static enum kv_store_state
state_of_text(const char *text)
{
	if (strstr(text, strerror(ENOSPC)) || strstr(text, strerror(EDQUOT)))
		return KV_STORE_FULL;
	if (strstr(text, strerror(EROFS)) || strstr(text, strerror(EACCES)))
		return KV_STORE_READ_ONLY;
	return KV_STORE_FAILED;
}

/*
 * The last part of RocksDB's text, such as "No space left on device". The parts before it name
 * files, which clients need not know; the log has them.
 */
static const char *
reason_of_text(const char *text)
{
	const char *colon;

	while ((colon = strstr(text, ": ")))
		text = colon + 2;
	return text;
}

/* Enters a state. Whoever opened the store is told if it is another one. */
static void
health_set(struct emb_store *store, enum kv_store_state state, const char *why)
{
	struct emb_health *h = &store->health;
	const struct kv_store_event event = {
		.state = state,
		.before = emb_reopen_state(store),
		.version = store->versions.published,
		.reason = why,
	};

	pthread_mutex_lock(&h->lock);
	err_set(&h->why, STATUS_IO, "%s", why);
	atomic_store_explicit(&h->state, state, memory_order_relaxed);
	pthread_mutex_unlock(&h->lock);
	if (event.before == state)
		return;
	metric_gauge_add_at(&stores, event.before, -1);
	metric_gauge_add_at(&stores, state, 1);
	if (h->told)
		h->told(h->told_arg, &event);
}

void
emb_reopen_leads(struct emb_store *store)
{
	store->base.follows = false;
	health_set(store, KV_STORE_OPEN, "");
}

enum status
emb_reopen_refuse(struct emb_store *store, struct err *err)
{
	enum kv_store_state state = emb_reopen_state(store);
	const char *reason;
	struct err why;

	if (__builtin_expect(state == KV_STORE_OPEN, 1))
		return STATUS_OK;
	pthread_mutex_lock(&store->health.lock);
	why = store->health.why;
	pthread_mutex_unlock(&store->health.lock);
	reason = reason_of_text(why.text);
	switch (state) {
	case KV_STORE_OPEN:
		break;
	case KV_STORE_FULL:
		return err_set(err, STATUS_FULL,
			       "the store's disk is full, and takes writes again when it has room "
			       "(%s)",
			       reason);
	case KV_STORE_READ_ONLY:
		return err_set(err, STATUS_UNAVAILABLE,
			       "the store's disk cannot be written to, and is only read (%s)",
			       reason);
	case KV_STORE_FAILED:
		return err_set(err, STATUS_UNAVAILABLE,
			       "the store's disk has failed, and takes writes again when it has "
			       "been reopened (%s)",
			       reason);
	case KV_STORE_LOST:
		return err_set(err, STATUS_CORRUPT, "%s", why.text);
	case KV_STORE_STANDBY:
		return err_set(err, STATUS_STANDBY,
			       "this server is a standby, and takes no writes: they go to the one "
			       "that it follows");
	}
	return STATUS_OK;
}

enum status
emb_reopen_refuse_disk(struct emb_store *store, struct err *err)
{
	return emb_reopen_state(store) == KV_STORE_STANDBY ? STATUS_OK
							   : emb_reopen_refuse(store, err);
}

/* ---- Failures ---- */

/*
 * When to try again. A full disk is looked at often, since that costs little. After another failure
 * the store is opened again at once; but if it fails again soon, each pause is twice as long as the
 * one before.
 */
static void
health_schedule(struct emb_store *store)
{
	struct emb_health *h = &store->health;
	uint64_t now_ns = clock_mono_ns();
	bool soon = h->reopened_at_ns &&
		    now_ns - h->reopened_at_ns < EMB_REOPEN_SOON_MS * CLOCK_NS_PER_MS;

	switch (emb_reopen_state(store)) {
	case KV_STORE_OPEN:
	case KV_STORE_STANDBY:
	case KV_STORE_LOST:
		h->due_ns = WAIT_FOREVER;
		break;
	case KV_STORE_FULL:
	case KV_STORE_READ_ONLY:
		h->due_ns = clock_after_ms(h->probe_ms);
		break;
	case KV_STORE_FAILED:
		if (!soon) {
			h->pause_ms = h->probe_ms;
			h->due_ns = now_ns;
			h->reopened_at_ns = now_ns; /* or begun, which is as soon */
			break;
		}
		h->due_ns = clock_after_ms(h->pause_ms);
		h->pause_ms *= 2;
		if (h->pause_ms > EMB_REOPEN_LONGEST_MS)
			h->pause_ms = EMB_REOPEN_LONGEST_MS;
		break;
	}
}

/*
 * True if nothing has been written to the newest log but what has failed: RocksDB begins a log with
 * each memtable, and what it has written is in there.
 */
static bool
reopen_log_is_new(struct emb_store *store)
{
	uint64_t entries;

	return store->db && store->health.writable &&
	       rocksdb_property_int(store->db, "rocksdb.num-entries-active-mem-table", &entries) ==
		       0 &&
	       entries == 0;
}

enum status
emb_reopen_write_failed(struct emb_store *store, char *error, bool *ret_known, struct err *err)
{
	enum kv_store_state state = state_of_text(error);
	struct err why = { 0 };
	struct err cut = { 0 };

	(void)emb_error(error, "writing to the disk", &why);
	metric_add(&failed_writes, 1);
	atomic_fetch_add_explicit(&store->health.failed_writes, 1, memory_order_relaxed);
	/* Before anybody hears of the failure: it has to be true, also after a crash. */
	*ret_known = emb_logs_cut(store->path, store->versions.published, reopen_log_is_new(store),
				  &cut) == STATUS_OK;
	health_set(store, state, why.text);
	health_schedule(store);
	if (!*ret_known)
		return err_set(err, STATUS_IO,
			       "writing to the disk: %s; whether it has been stored is not known, "
			       "since taking it back has failed, too: %s",
			       reason_of_text(why.text), reason_of_text(cut.text));
	return err_set(err, state == KV_STORE_FULL ? STATUS_FULL : STATUS_IO,
		       "writing to the disk: %s", reason_of_text(why.text));
}

/* ---- Opening again ---- */

/* Opens for writing or, if that fails, for reading. The state that follows, explained in `why`. */
static enum kv_store_state
reopen_open(struct emb_store *store, bool log_is_new, struct err *why)
{
	struct err reading = { 0 };
	enum kv_store_state state;
	enum status status;

	status = emb_logs_cut(store->path, store->versions.published, log_is_new, why);
	if (status == STATUS_OK)
		status = emb_handle_open(store, why);
	if (status == STATUS_OK)
		return state_well(store);
	/* Acknowledged bytes cannot be read any more, and trying again does not help. */
	if (status == STATUS_CORRUPT)
		return KV_STORE_LOST;
	state = state_of_text(why->text);
	if (emb_handle_open_to_read(store, &reading) == STATUS_OK)
		return state;
	err_set(why, STATUS_IO, "%s", reading.text);
	return reading.status == STATUS_CORRUPT ? KV_STORE_LOST : KV_STORE_FAILED;
}

/* With the gate closed, and nothing left of the old handle: makes a new one and looks at it. */
static enum kv_store_state
reopen_replace(struct emb_store *store, struct err *why)
{
	uint8_t metadata[KV_VERSIONSTAMP_TX_BYTES];
	uint64_t published = store->versions.published;
	enum kv_store_state state;
	enum status status;
	uint64_t version;
	bool log_is_new;

	/* Only the old handle can tell. */
	log_is_new = reopen_log_is_new(store);
	emb_handle_close(store);
	state = reopen_open(store, log_is_new, why);
	if (!store->db)
		return state;
	status = emb_handle_versions(store, &version, metadata, why);
	if (status == STATUS_OK && version < published)
		status = err_set(why, STATUS_CORRUPT,
				 "the store's disk has lost what it had acknowledged: version %llu "
				 "is there, and %llu was the last",
				 (unsigned long long)version, (unsigned long long)published);
	if (status != STATUS_OK) {
		emb_handle_close(store);
		return status == STATUS_CORRUPT ? KV_STORE_LOST : KV_STORE_FAILED;
	}
	recent_forget(store->recent, version);
	gaps_forget(store->gaps, version);
	emb_versions_reopened(store, version, metadata);
	if (version > published)
		watches_complete_all(store->watches);
	return state;
}

uint64_t
emb_reopen_due_ns(const struct emb_store *store)
{
	return store->health.due_ns;
}

/* True if the disk has room and takes writes. Otherwise the state says what it has not. */
static bool
reopen_disk_is_well(struct emb_store *store)
{
	uint64_t room = EMB_ROOM_BYTES + EMB_ROOM_LOGS * emb_logs_bytes(store->path);
	int error = emb_directory_probe(store->path, room, store->health.syncs);

	if (error)
		health_set(store, state_of_text(strerror(error)), strerror(error));
	return error == 0;
}

/* Backups are waited for. Compactions are told to give up, which they do soon. */
static bool
reopen_has_long_uses(struct emb_store *store)
{
	if (atomic_load(&store->health.long_uses) == 0)
		return false;
	if (store->db)
		rocksdb_disable_manual_compaction(store->db);
	return true;
}

bool
emb_reopen_try(struct emb_store *store)
{
	struct emb_health *h = &store->health;
	enum kv_store_state state;
	struct err why = { 0 };

	assert(emb_reopen_state(store) != state_well(store));
	if (!reopen_disk_is_well(store)) {
		health_schedule(store);
		return false;
	}
	if (reopen_has_long_uses(store) ||
	    !gate_close(&store->gate, clock_after_ms(EMB_CLOSE_WAIT_MS))) {
		h->due_ns = clock_after_ms(h->probe_ms);
		return false;
	}
	emb_versions_let_go(store);
	state = reopen_replace(store, &why);
	gate_open(&store->gate);
	h->reopened_at_ns = clock_mono_ns();
	if (state == state_well(store)) {
		metric_add(&reopenings, 1);
		atomic_fetch_add_explicit(&h->reopenings, 1, memory_order_relaxed);
	}
	health_set(store, state, why.text);
	health_schedule(store);
	return true;
}

enum status
emb_reopen_first(struct emb_store *store, bool reads_if_unwritable, struct err *err)
{
	struct err why = { 0 };
	enum status status = emb_handle_open(store, &why);
	enum kv_store_state state = state_of_text(why.text);

	if (status == STATUS_OK)
		return STATUS_OK;
	if (status != STATUS_IO || !reads_if_unwritable || state == KV_STORE_FAILED ||
	    emb_handle_open_to_read(store, NULL) != STATUS_OK)
		return err_set(err, status, "%s", why.text);
	health_set(store, state, why.text);
	health_schedule(store);
	return STATUS_OK;
}
