#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "catalog/store_format.h"
#include "model/plain/plain.h"
#include "store.h"

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	(void)arg;
	TRY(plain_create(tx, STR(PACKED), PLAIN_PACKED, BSON_EMPTY, NULL));
	return plain_create(tx, STR(EXPLODED), PLAIN_EXPLODED, BSON_EMPTY, NULL);
}

int
fixture_setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char url[256];

	test_show_failures();
	plain_register();
	test_make_dir("plain", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, &f->err), STATUS_OK);
	f->arena = arena_new(ARENA_BYTES);
	assert_int_equal(kv_run(f->store, create_body, NULL, NULL, &f->err), STATUS_OK);
	*state = f;
	return 0;
}

int
fixture_teardown(void **state)
{
	struct fixture *f = *state;

	arena_free(f->arena);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}
