#include "kv/embedded/handle.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/big_endian.h"
#include "base/clock.h"
#include "kv/embedded/directory.h"
#include "kv/embedded/options.h"
#include "loop/pause.h"

enum {
	DIRECTORY_MODE = 0755,
	/* Openings for reading only, beside a process whose files change meanwhile, and the pause
	 * between them. */
	READ_ATTEMPTS = 50,
	READ_PAUSE_MS = 20,
	/*
	 * A record that another process is writing over the filling of its log (fill.h) may be seen
	 * by half, which looks like damage for some microseconds.
	 */
	CORRUPT_ATTEMPTS = 3,
	CORRUPT_PAUSE_MS = 2,
};

/*
 * An opening that finds no room half way leaves new files behind, which take what room there is. So
 * the disk is asked first. What is wrong with a directory that is not there, RocksDB tells itself.
 */
static enum status
handle_check_room(const struct emb_store *store, struct err *err)
{
	int error;

	if (store->health.create)
		(void)mkdir(store->path, DIRECTORY_MODE);
	error = emb_directory_probe(store->path, 0, store->health.syncs);
	if (error == 0 || error == ENOENT)
		return STATUS_OK;
	return err_set(err, STATUS_IO, "%s: writing a file to try whether there is room: %s",
		       store->path, strerror(error));
}

static enum status
handle_check_logs(struct emb_store *store, struct log_torn *ret_torn, struct err *err)
{
	struct err why = { 0 };
	enum status status = emb_logs_check(store->path, ret_torn, &why);

	emb_options_expect_torn(store->options, status == STATUS_OK && ret_torn->number);
	if (status != STATUS_CORRUPT)
		return status == STATUS_OK ? status : err_set(err, status, "%s", why.text);
	return err_set(err, status,
		       "%s: %s; restore a backup, or see \"Damaged files\" in OPERATING.md",
		       store->path, why.text);
}

/* RocksDB's reason for not opening the store. It names tables, but not damaged logs. */
static enum status
handle_error(const struct emb_store *store, char *error, struct err *err)
{
	enum status status = emb_error(error, store->path, err);
	struct err why = { 0 };

	if (status != STATUS_CORRUPT || emb_logs_find_damage(store->path, &why) != STATUS_CORRUPT)
		return status;
	return err_set(err, STATUS_CORRUPT,
		       "%s: %s; restore a backup, or see \"Damaged files\" in OPERATING.md",
		       store->path, why.text);
}

enum status
emb_handle_open(struct emb_store *store, struct err *err)
{
	const char *name = "default";
	enum status status = STATUS_OK;
	struct log_torn torn;
	char *error = NULL;
	int torn_fd;

	assert(!store->db && !store->family);
	TRY(handle_check_room(store, err));
	TRY(handle_check_logs(store, &torn, err));
	torn_fd = torn.number ? emb_logs_open_torn(store->path, &torn) : -1;
	if (torn.number && torn_fd < 0 && errno != ENOENT)
		return err_set(err, STATUS_IO, "%s: opening its log %06llu.log: %s", store->path,
			       (unsigned long long)torn.number, strerror(errno));
	store->db = rocksdb_open_column_families(store->options, store->path, 1, &name,
						 (const rocksdb_options_t *const *)&store->options,
						 &store->family, &error);
	store->health.writable = !error;
	/* Only now: until RocksDB has its lock, another process may be writing this log. */
	if (!error && torn_fd >= 0)
		status = emb_logs_end_torn(torn_fd, &torn, err);
	if (torn_fd >= 0)
		close(torn_fd);
	if (status != STATUS_OK)
		emb_handle_close(store);
	if (!error)
		return status;
	store->db = NULL;
	if (!store->health.create && strstr(error, "does not exist")) {
		rocksdb_free(error);
		return err_set(err, STATUS_NOT_FOUND, "there is no store at %s", store->path);
	}
	return handle_error(store, error, err);
}

static enum status
handle_try_to_read(struct emb_store *store, struct err *err)
{
	struct log_torn torn;
	char *error = NULL;

	TRY(handle_check_logs(store, &torn, err));
	store->health.writable = false;
	store->db = rocksdb_open_for_read_only(store->options, store->path, 0, &error);
	if (!error)
		return STATUS_OK;
	store->db = NULL;
	return handle_error(store, error, err);
}

/*
 * Opens a store that another process may be writing to. RocksDB reads the manifest, the directory
 * and the logs one after another. If a log becomes a table in between and is deleted, RocksDB has
 * neither of the two, and still replays the later logs: the store would have a hole. So an opening
 * counts only if the manifest, to which every such change is written, has not changed during it.
 */
enum status
emb_handle_open_to_read(struct emb_store *store, struct err *err)
{
	struct emb_manifest before;
	struct emb_manifest after;
	int corrupt = 0;

	assert(!store->db);
	for (int attempts = 0; attempts < READ_ATTEMPTS; attempts++) {
		struct err why = { 0 };
		enum status status;
		bool again;

		emb_manifest_look(store->path, &before);
		if (!before.name[0])
			return err_set(err, STATUS_NOT_FOUND, "there is no store at %s",
				       store->path);
		status = handle_try_to_read(store, &why);
		emb_manifest_look(store->path, &after);
		again = status == STATUS_CORRUPT && ++corrupt < CORRUPT_ATTEMPTS;
		if (emb_manifest_eq(&before, &after) && !again)
			return status == STATUS_OK ? status : err_set(err, status, "%s", why.text);
		emb_handle_close(store);
		wait_pause(again ? CORRUPT_PAUSE_MS : READ_PAUSE_MS);
	}
	return err_set(err, STATUS_UNAVAILABLE,
		       "%s: another process changes the store faster than it can be opened",
		       store->path);
}

void
emb_handle_close(struct emb_store *store)
{
	if (store->family)
		rocksdb_column_family_handle_destroy(store->family);
	store->family = NULL;
	if (store->db)
		rocksdb_close(store->db);
	store->db = NULL;
	fill_reset(&store->fill);
}

enum status
emb_handle_read(struct emb_store *store, struct str key, char *ret, size_t *len, struct err *err)
{
	rocksdb_pinnableslice_t *slice;
	char *error = NULL;
	size_t found = 0;
	const char *value;

	slice = rocksdb_get_pinned(store->db, store->read_latest, key.ptr, key.len, &error);
	if (error)
		return emb_error(error, "reading the store's format", err);
	value = slice ? rocksdb_pinnableslice_value(slice, &found) : NULL;
	if (found <= *len && value)
		memcpy(ret, value, found);
	rocksdb_pinnableslice_destroy(slice);
	if (found > *len)
		return err_set(err, STATUS_CORRUPT, "the store's format is not known");
	*len = found;
	return STATUS_OK;
}

enum status
emb_handle_versions(struct emb_store *store, uint64_t *ret_version,
		    uint8_t ret_metadata[KV_VERSIONSTAMP_TX_BYTES], struct err *err)
{
	uint8_t version[sizeof(uint64_t)] = { 0 };
	size_t len = sizeof(version);

	TRY(emb_handle_read(store, EMB_KEY_VERSION, (char *)version, &len, err));
	if (len != sizeof(version))
		return err_set(err, STATUS_CORRUPT, "the store does not know its version");
	len = KV_VERSIONSTAMP_TX_BYTES;
	memset(ret_metadata, 0, len);
	TRY(emb_handle_read(store, EMB_KEY_METADATA, (char *)ret_metadata, &len, err));
	*ret_version = big_endian_64(version);
	return STATUS_OK;
}

enum status
emb_handle_use(struct emb_store *store, struct gate_pass *ret, struct err *err)
{
	uint64_t deadline_ns = 0;

	while (!gate_enter(&store->gate, ret)) {
		if (!deadline_ns)
			deadline_ns = clock_after_ms(EMB_SWITCH_WAIT_MS);
		if (!gate_wait(&store->gate, deadline_ns))
			return err_set(err, STATUS_UNAVAILABLE,
				       "the store has been being opened again for %d ms",
				       EMB_SWITCH_WAIT_MS);
	}
	if (store->db)
		return STATUS_OK;
	gate_leave(*ret);
	return err_set(err, STATUS_UNAVAILABLE,
		       "the store cannot be opened again after a failure of its disk");
}

enum status
emb_handle_use_long(struct emb_store *store, struct gate_pass *ret, struct err *err)
{
	enum status status;

	atomic_fetch_add(&store->health.long_uses, 1);
	status = emb_handle_use(store, ret, err);
	if (status != STATUS_OK)
		atomic_fetch_sub(&store->health.long_uses, 1);
	return status;
}

void
emb_handle_leave_long(struct emb_store *store, struct gate_pass pass)
{
	gate_leave(pass);
	atomic_fetch_sub(&store->health.long_uses, 1);
}
