/* dbHash: MD5 over the documents of a database's collections, by which two databases compare. */
#include <openssl/evp.h>

#include "base/clock.h"
#include "door/mongo/cmd/commands.h"
#include "door/mongo/plan/query.h"
#include "door/mongo/txn/mongo_int.h"
#include "loop/step.h"

enum {
	HASH_PAGE_NAMES = 1000,
	HASH_BYTES = 16,         /* of MD5 */
	HASH_BYTES_OF_STEP = 64, /* that are hashed in one step */
	UUID_SUBTYPE = 4,
	UUID_BYTES = 16,
};

#define ARGS_DB_HASH(ARG)                                                                          \
	ARG(HASH_COLLECTIONS, "collections", ARG_ARRAY)                                            \
	ARG(HASH_SKIPS_TEMPORARY, "skipTempCollections", ARG_BOOL)
ARGS_DEFINE(args_db_hash, ARGS_DB_HASH);

/* A collection, in the order of names. */
struct hashed {
	struct hashed *next;
	struct str name; /* without the database */
	uint8_t uuid[UUID_BYTES];
	char hex[2 * HASH_BYTES + 1];
};

struct hashing {
	struct call *call;
	struct str prefix; /* "db." */
	struct str after;  /* the last name of the page before */
	bool more;
	struct hashed *first, **last;
	EVP_MD_CTX *md5;
};

/* ---- Which ones ---- */

static enum status
check_names(struct call *c)
{
	struct bson_element e;
	struct bson_iter i;

	if (!call_has(c, HASH_COLLECTIONS))
		return STATUS_OK;
	for (bson_iter_begin(&i, bson_text(&c->args[HASH_COLLECTIONS].value));
	     bson_iter_read(&i, &e);)
		if (e.value.type != BSON_STRING)
			return call_fail(c, MONGO_BAD_VALUE,
					 "collections entries have to be strings");
	return STATUS_OK;
}

/* Those of the server itself are no part of what is compared. */
static bool
is_wanted(const struct call *c, struct str own)
{
	struct bson_element e;
	struct bson_iter i;

	if (str_starts_with(own, STR("system.")))
		return false;
	if (!call_has(c, HASH_COLLECTIONS) ||
	    bson_is_empty(bson_text(&c->args[HASH_COLLECTIONS].value)))
		return true;
	for (bson_iter_begin(&i, bson_text(&c->args[HASH_COLLECTIONS].value));
	     bson_iter_read(&i, &e);)
		if (str_eq(bson_text(&e.value), own))
			return true;
	return false;
}

static enum status
add_collection(struct hashing *h, struct kv_tx *tx, struct str name)
{
	struct call *c = h->call;
	struct hashed *one;
	struct catalog_db *db;
	bool is_view;

	if (!is_wanted(c, str_skip(name, h->prefix.len)))
		return STATUS_OK;
	one = arena_zalloc(c->arena, sizeof(*one));
	if (!one)
		return STATUS_LIMIT;
	TRY(catalog_open(tx, NULL, CATALOG_SPACE_MONGO, name, &db, &c->err));
	is_view = plain_options_are_view(plain_options_of(db));
	memcpy(one->uuid, db->uuid, sizeof(one->uuid));
	catalog_db_unref(db);
	if (is_view)
		return STATUS_OK;
	one->name = str_skip(name, h->prefix.len);
	*h->last = one;
	h->last = &one->next;
	return STATUS_OK;
}

static enum status
list_page(struct hashing *h, struct kv_tx *tx)
{
	struct name_range range = { .begin = h->after.ptr ? h->after : h->prefix,
				    .has_begin = true,
				    .exclusive_begin = h->after.ptr,
				    .limit = HASH_PAGE_NAMES };
	struct name_page page;

	TRY(catalog_list(tx, CATALOG_SPACE_MONGO, &range, h->call->arena, &page));
	h->more = page.more;
	for (size_t i = 0; i < page.count; i++) {
		if (!str_starts_with(page.names[i], h->prefix)) {
			h->more = false;
			break;
		}
		TRY(add_collection(h, tx, page.names[i]));
		h->after = page.names[i];
	}
	return STATUS_OK;
}

static enum status
list_all(struct hashing *h)
{
	enum status status = STATUS_OK;
	struct kv_tx *tx;

	while (status == STATUS_OK && h->more) {
		TRY(kv_begin(h->call->mongo->config.store, KV_TX_READ_ONLY, &tx));
		status = list_page(h, tx);
		kv_tx_free(tx);
	}
	return status;
}

/* ---- Hashing ---- */

static bool
md5_begin(EVP_MD_CTX *md5)
{
	return md5 && EVP_DigestInit_ex(md5, EVP_md5(), NULL) == 1;
}

static bool
md5_end(EVP_MD_CTX *md5, char hex[static 2 * HASH_BYTES + 1])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t sum[EVP_MAX_MD_SIZE];

	if (EVP_DigestFinal_ex(md5, sum, NULL) != 1)
		return false;
	for (size_t i = 0; i < HASH_BYTES; i++) {
		hex[2 * i] = digits[sum[i] >> 4];
		hex[2 * i + 1] = digits[sum[i] & 15];
	}
	hex[2 * HASH_BYTES] = '\0';
	return true;
}

/* All documents, in the order of `_id`. */
static enum status
hash_documents(struct hashing *h, struct hashed *one)
{
	struct query_ask ask = { .filter = BSON_EMPTY, .order = 1 };
	struct call *c = h->call;
	struct query q = { 0 };
	struct str ns = arena_printf(c->arena, "%.*s%.*s", STR_ARG(h->prefix), STR_ARG(one->name));
	enum status status;
	struct str doc;

	if (!ns.ptr || !md5_begin(h->md5))
		return STATUS_LIMIT;
	status = query_open(&q, c, ns, &ask);
	while (status == STATUS_OK && (status = query_next(&q, &doc)) == STATUS_OK) {
		if (EVP_DigestUpdate(h->md5, doc.ptr, doc.len) != 1)
			status = STATUS_LIMIT;
		else
			status = step_count((uint32_t)(1 + doc.len / HASH_BYTES_OF_STEP));
	}
	query_close(&q);
	if (status == STATUS_NOT_FOUND)
		status = STATUS_OK;
	TRY(status);
	return md5_end(h->md5, one->hex) ? STATUS_OK : STATUS_LIMIT;
}

static enum status
put_hashes(struct hashing *h)
{
	char hex[2 * HASH_BYTES + 1];
	struct bson_builder *b = h->call->reply;

	bson_put_string(b, STR("host"), str_from_cstr(h->call->mongo->host));
	bson_begin_document(b, STR("collections"));
	for (struct hashed *one = h->first; one; one = one->next)
		bson_put_string(b, one->name, str_from_cstr(one->hex));
	bson_end(b);
	bson_begin_array(b, STR("capped"));
	bson_end(b);
	bson_begin_document(b, STR("uuids"));
	for (struct hashed *one = h->first; one; one = one->next)
		bson_put_binary(b, one->name, UUID_SUBTYPE, str_of(one->uuid, sizeof(one->uuid)));
	bson_end(b);
	if (!md5_begin(h->md5))
		return STATUS_LIMIT;
	for (struct hashed *one = h->first; one; one = one->next)
		if (EVP_DigestUpdate(h->md5, one->hex, 2 * HASH_BYTES) != 1)
			return STATUS_LIMIT;
	if (!md5_end(h->md5, hex))
		return STATUS_LIMIT;
	bson_put_string(b, STR("md5"), str_from_cstr(hex));
	bson_put_int32(b, STR("timeMillis"),
		       (int32_t)((clock_mono_ns() - h->call->began_ns) / CLOCK_NS_PER_MS));
	return STATUS_OK;
}

static enum status
hash_all(struct hashing *h)
{
	TRY(list_all(h));
	for (struct hashed *one = h->first; one; one = one->next)
		TRY(hash_documents(h, one));
	return put_hashes(h);
}

enum status
mongo_run_db_hash(struct call *c)
{
	struct hashing h = { .call = c, .more = true };
	enum status status;

	TRY(check_names(c));
	h.last = &h.first;
	h.prefix = arena_printf(c->arena, "%.*s.", STR_ARG(c->db));
	if (!h.prefix.ptr)
		return STATUS_LIMIT;
	h.md5 = EVP_MD_CTX_new();
	status = h.md5 ? hash_all(&h) : STATUS_LIMIT;
	EVP_MD_CTX_free(h.md5);
	return status;
}
