/*
 * What is kept of one thing lies side by side, below keys that begin alike: a document's with two
 * numbers and a name, and those of one of its versions with that version, too. RocksDB is told of
 * these beginnings, so that its bloom filters know them as they know whole keys, and looking for a
 * document's last row need not ask the tables that have none.
 *
 * Keys with the same beginning are neighbours, and the beginning alone is the first of them:
 * RocksDB relies on that, whatever the bytes.
 */
#include "kv/embedded/embedded_int.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"

/* Whether the number between `from` and `to` is KV_SPACE_VERSIONS. */
static bool
is_of_versions(struct str key, size_t from, size_t to)
{
	return to - from == 2 && key.ptr[to - 1] == KV_SPACE_VERSIONS;
}

size_t
emb_entity_len(struct str key)
{
	size_t space = tuple_skip(key, 0, TUPLE_SKIP_INT);
	size_t name = space ? tuple_skip(key, space, TUPLE_SKIP_INT) : 0;
	size_t len = name ? tuple_skip(key, name, TUPLE_SKIP_TEXT) : 0;

	if (len == 0 || !is_of_versions(key, space, name))
		return len;
	len = tuple_skip(key, len, TUPLE_SKIP_BOOL);
	len = len ? tuple_skip(key, len, TUPLE_SKIP_INT) : 0;
	return len ? tuple_skip(key, len, TUPLE_SKIP_TEXT) : 0;
}

static void
entities_destroy(void *state)
{
	(void)state;
}

static const char *
entities_name(void *state)
{
	(void)state;
	return "frond.entities"; /* kept in each table: what it means must never change */
}

static unsigned char
entities_has(void *state, const char *key, size_t len)
{
	(void)state;
	return emb_entity_len(str_of(key, len)) > 0;
}

static char *
entities_of(void *state, const char *key, size_t len, size_t *ret_len)
{
	(void)state;
	*ret_len = emb_entity_len(str_of(key, len));
	return (char *)(uintptr_t)key; /* it is not written to */
}

static unsigned char
entities_is_one(void *state, const char *key, size_t len)
{
	(void)state;
	return len && emb_entity_len(str_of(key, len)) == len;
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
	size_t len = emb_entity_len(begin);

	/* Behind the entity's last element FF would go on with it, as an escaped NUL. */
	return len && end.len > len && memcmp(begin.ptr, end.ptr, len) == 0 &&
	       ((uint8_t)end.ptr[len] < UINT8_MAX || end.len == len + 1);
}
