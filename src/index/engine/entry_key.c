/* Keys of entries: what comes before the components, and behind them. */
#include <openssl/sha.h>

#include "catalog/keys.h"
#include "index/engine/entry.h"

void
index_key_entries(struct buf *key, const struct catalog_db *db, uint64_t number)
{
	buf_set(key, db->prefix);
	tuple_put_u64(key, INDEX_SPACE_ENTRIES);
	tuple_put_u64(key, number);
}

static size_t
id_encoded_bytes(struct str id)
{
	size_t bytes = id.len + 2;

	for (size_t i = 0; i < id.len; i++)
		bytes += id.ptr[i] == 0;
	return bytes;
}

bool
index_key_put_id(struct buf *key, const struct index_form *form, struct str id)
{
	uint8_t digest[SHA256_DIGEST_LENGTH];

	if (form->id_kind == TUPLE_BYTES) {
		tuple_put_bytes(key, id);
		return false;
	}
	if (id.len <= INDEX_ID_BYTES / 2 - 1 || id_encoded_bytes(id) <= INDEX_ID_BYTES) {
		tuple_put_str(key, id);
		return false;
	}
	SHA256((const unsigned char *)id.ptr, id.len, digest);
	tuple_put_bytes(key, str_of(digest, sizeof(digest)));
	return true;
}
