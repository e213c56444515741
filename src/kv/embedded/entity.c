/*
 * What is kept of one thing, such as a document, lies side by side, below keys that begin alike:
 * with two numbers and a name. RocksDB is told of these beginnings, so that its bloom filters know
 * them as they know whole keys, and looking for a document's last row need not ask the tables that
 * have none.
 */
#include "kv/embedded/embedded_int.h"
#include "kv/tuple.h"

static void
entities_destroy(void *state)
{
	(void)state;
}

static const char *
entities_name(void *state)
{
	(void)state;
	return "frond.entity"; /* kept in each table: what it means must never change */
}

static unsigned char
entities_has(void *state, const char *key, size_t len)
{
	(void)state;
	return tuple_entity_len(str_of(key, len)) > 0;
}

static char *
entities_of(void *state, const char *key, size_t len, size_t *ret_len)
{
	(void)state;
	*ret_len = tuple_entity_len(str_of(key, len));
	return (char *)(uintptr_t)key; /* it is not written to */
}

static unsigned char
entities_is_one(void *state, const char *key, size_t len)
{
	(void)state;
	return len && tuple_entity_len(str_of(key, len)) == len;
}

rocksdb_slicetransform_t *
emb_entities(void)
{
	return rocksdb_slicetransform_create(NULL, entities_destroy, entities_of, entities_has,
					     entities_is_one, entities_name);
}

bool
emb_is_within_entity(struct str begin, struct str end)
{
	size_t len = tuple_entity_len(begin);

	/* Behind the entity's last element FF would go on with it, as an escaped NUL. */
	return len && end.len > len && memcmp(begin.ptr, end.ptr, len) == 0 &&
	       ((uint8_t)end.ptr[len] < UINT8_MAX || end.len == len + 1);
}
