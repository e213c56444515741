/* What RocksDB's errors mean; its C API tells them by text alone. */
#include "kv/embedded/embedded_int.h"

static bool
starts(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

enum {
	PERF_DISABLE = 1, /* rocksdb/perf_level.h */
};

void
emb_count_nothing(void)
{
	static _Thread_local bool told;

	if (told)
		return;
	rocksdb_set_perf_level(PERF_DISABLE);
	told = true;
}

bool
emb_is_incomplete(const char *rocksdb_error)
{
	return starts(rocksdb_error, "Result incomplete");
}

/* RocksDB's lock on a directory is held, by another process or an earlier opening in this one. */
static bool
is_held(const char *text)
{
	return starts(text, "IO error: While lock file: ") ||
	       starts(text, "IO error: lock hold by current process");
}

static enum status
status_of(const char *text)
{
	if (starts(text, "Corruption"))
		return STATUS_CORRUPT;
	if (is_held(text))
		return STATUS_LOCKED;
	return STATUS_IO;
}

enum status
emb_error(char *rocksdb_error, const char *what, struct err *err)
{
	enum status status = status_of(rocksdb_error);

	if (status == STATUS_LOCKED)
		err_set(err, status, "%s: in use by another process, or opened twice (%s)", what,
			rocksdb_error);
	else
		err_set(err, status, "%s: %s", what, rocksdb_error);
	rocksdb_free(rocksdb_error);
	return status;
}
