#include "rocks.h"

#include <stdio.h>
#include <stdlib.h>

#include "kv/embedded/embedded_int.h"
#include "kv/embedded/options.h"

void
rocks_must(const char *error, const char *what)
{
	if (error) {
		fprintf(stderr, "rocksdb: %s: %s\n", what, error);
		exit(1);
	}
}

rocksdb_options_t *
rocks_options(void)
{
	rocksdb_cache_t *cache = rocksdb_cache_create_lru(emb_cache_bytes());
	static struct emb_entities entities;
	rocksdb_options_t *o;

	if (emb_entities_init(&entities, NULL, NULL) != STATUS_OK)
		abort();
	o = emb_options(cache, &entities, 0, 0, true);

	rocksdb_cache_destroy(cache);
	return o;
}

rocksdb_readoptions_t *
rocks_read_options(void)
{
	rocksdb_readoptions_t *o = rocksdb_readoptions_create();

	rocksdb_readoptions_set_total_order_seek(o, 1);
	return o;
}
