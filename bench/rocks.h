/* RocksDB with the settings that the embedded engine gives it (src/kv/embedded/options.c). */
#ifndef FROND_BENCH_ROCKS_H
#define FROND_BENCH_ROCKS_H

#include <rocksdb/c.h>

/* Free with rocksdb_options_destroy(). */
rocksdb_options_t *rocks_options(void);

/* For reading any keys. Free with rocksdb_readoptions_destroy(). */
rocksdb_readoptions_t *rocks_read_options(void);

/* Ends the process when `error` is one. */
void rocks_must(const char *error, const char *what);

#endif
