/* What RocksDB's errors mean. Its C API gives nothing but their text. */
#include "kv/embedded/embedded_int.h"

static bool
text_starts_with(const char *text, const char *prefix)
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
	return text_starts_with(rocksdb_error, "Result incomplete");
}

/* RocksDB's lock on a directory is held, by another process or an earlier opening in this one. */
static bool
error_is_lock(const char *text)
{
	return text_starts_with(text, "IO error: While lock file: ") ||
	       text_starts_with(text, "IO error: lock hold by current process");
}

static enum status
error_status(const char *text)
{
	if (text_starts_with(text, "Corruption"))
		return STATUS_CORRUPT;
	if (error_is_lock(text))
		return STATUS_LOCKED;
	return STATUS_IO;
}

enum status
emb_error(char *rocksdb_error, const char *what, struct err *err)
{
	enum status status = error_status(rocksdb_error);

	if (status == STATUS_LOCKED)
		err_set(err, status, "%s: in use by another process, or opened twice (%s)", what,
			rocksdb_error);
	else
		err_set(err, status, "%s: %s", what, rocksdb_error);
	rocksdb_free(rocksdb_error);
	return status;
}
