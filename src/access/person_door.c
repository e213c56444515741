/*
 * A person at a door, as it is stored:
 *
 *     format 1: (1, version, off, by, rounds, salt, (hash, …))
 */
#include "access/person_door.h"

#include <assert.h>
#include <openssl/crypto.h>

#include "access/person_int.h"
#include "base/mem.h"
#include "base/rand.h"
#include "catalog/check.h"
#include "catalog/format.h"
#include "catalog/keys.h"
#include "kv/keyspace.h"

enum {
	DOOR_FORMAT = 1,          /* the newest */
	DOOR_RECORD_BYTES = 2048, /* of the longest record, each byte of a hash escaped */
};

void
person_door_init(struct person_door *at, uint64_t rounds)
{
	assert(rounds > 0 && rounds <= VERIFIER_ROUNDS);
	*at = (struct person_door){ .off = true, .by = PERSON_DOOR_BY_LIST, .rounds = rounds };
	rand_bytes(at->salt, sizeof(at->salt));
}

bool
person_door_is_plain(const struct person_door *at)
{
	return !at->off && at->by == PERSON_DOOR_BY_OWN;
}

/* ---- Passwords ---- */

bool
person_door_digest(struct str password, char ret[static PERSON_DOOR_DIGEST_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t hash[PERSON_DOOR_HASH_BYTES];

	if (!EVP_Digest(password.ptr, password.len, hash, NULL, EVP_sha256(), NULL))
		return false;
	for (size_t i = 0; i < sizeof(hash); i++) {
		ret[2 * i] = digits[hash[i] >> 4];
		ret[2 * i + 1] = digits[hash[i] & 15];
	}
	OPENSSL_cleanse(hash, sizeof(hash));
	return true;
}

bool
person_door_hash(const struct person_door *at, struct str digest,
		 uint8_t ret[static PERSON_DOOR_HASH_BYTES])
{
	assert(digest.len == PERSON_DOOR_DIGEST_BYTES && at->rounds > 0);
	return PKCS5_PBKDF2_HMAC(digest.ptr, (int)digest.len, at->salt, sizeof(at->salt),
				 (int)at->rounds, EVP_sha256(), PERSON_DOOR_HASH_BYTES, ret) == 1;
}

size_t
person_door_find(const struct person_door *at, const uint8_t hash[static PERSON_DOOR_HASH_BYTES])
{
	size_t found = at->count;

	for (size_t i = 0; i < at->count; i++)
		if (CRYPTO_memcmp(at->hashes[i], hash, PERSON_DOOR_HASH_BYTES) == 0)
			found = i;
	return found;
}

/* ---- The record ---- */

static bool
door_is_sound(const struct person_door *at)
{
	return at->by <= PERSON_DOOR_BY_ANY && at->count <= PERSON_DOOR_PASSWORDS &&
	       (at->by == PERSON_DOOR_BY_LIST || !at->count) && at->rounds > 0 &&
	       at->rounds <= VERIFIER_ROUNDS;
}

size_t
person_door_record_put(const struct person_door *at, struct buf *value)
{
	size_t offset;

	tuple_put_u64(value, DOOR_FORMAT);
	offset = tuple_put_versionstamp(value, at->version);
	tuple_put_bool(value, at->off);
	tuple_put_u64(value, at->by);
	tuple_put_u64(value, at->rounds);
	tuple_put_bytes(value, str_of(at->salt, sizeof(at->salt)));
	tuple_open(value);
	for (size_t i = 0; i < at->count; i++)
		tuple_put_bytes(value, str_of(at->hashes[i], sizeof(at->hashes[i])));
	tuple_close(value);
	return offset;
}

/* Reads exactly `n` bytes. */
static enum status
bytes_parse(struct tuple_reader *r, uint8_t *ret, size_t n)
{
	AUTO(buf_release) struct buf scratch = BUF_SHORT(DOOR_RECORD_BYTES);
	struct str bytes;

	TRY(tuple_next_bytes(r, &scratch, &bytes));
	if (bytes.len != n)
		return STATUS_CORRUPT;
	memcpy(ret, bytes.ptr, n);
	return STATUS_OK;
}

static enum status
door_parse(struct tuple_reader r, struct person_door *ret)
{
	struct tuple_reader hashes;
	const uint8_t *version;
	uint64_t by;

	TRY(tuple_next_versionstamp(&r, &version));
	memcpy(ret->version, version, sizeof(ret->version));
	TRY(tuple_next_bool(&r, &ret->off));
	TRY(tuple_next_u64(&r, &by));
	if (by > PERSON_DOOR_BY_ANY)
		return STATUS_CORRUPT;
	ret->by = (enum person_door_by)by;
	TRY(tuple_next_u64(&r, &ret->rounds));
	TRY(bytes_parse(&r, ret->salt, sizeof(ret->salt)));
	TRY(tuple_next_nested(&r, &hashes));
	while (hashes.rest.len) {
		if (ret->count == PERSON_DOOR_PASSWORDS)
			return STATUS_CORRUPT;
		TRY(bytes_parse(&hashes, ret->hashes[ret->count++], PERSON_DOOR_HASH_BYTES));
	}
	return r.rest.len || !door_is_sound(ret) ? STATUS_CORRUPT : STATUS_OK;
}

enum status
person_door_record_parse(struct str value, struct person_door *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	enum status status;
	uint64_t format;

	*ret = (struct person_door){ 0 };
	TRY(catalog_format_next(&r, "person at a door", DOOR_FORMAT, &format, err));
	status = door_parse(r, ret);
	return status == STATUS_OK || status == STATUS_NOMEM ? status : STATUS_CORRUPT;
}

/* ---- Reading and writing ---- */

enum status
person_door_put(struct kv_tx *tx, struct str name, struct str door, const struct person_door *at,
		struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_SHORT(DOOR_RECORD_BYTES);
	size_t offset;

	assert(door.len && door.len <= PERSON_DOOR_NAME_BYTES);
	if (!person_name_is_sound(name) || (!person_door_is_plain(at) && !door_is_sound(at)))
		return err_set(err, STATUS_INVALID, "no person can be kept like this");
	TRY(person_door_key(name, door, &key));
	if (person_door_is_plain(at)) {
		TRY(kv_clear(tx, buf_str(&key)));
		return people_touch(tx);
	}
	offset = person_door_record_put(at, &value);
	TRY(buf_status(&value));
	TRY(kv_set_versionstamped_value(tx, buf_str(&key), buf_str(&value), offset));
	return people_touch(tx);
}

enum status
person_door_get(struct kv_tx *tx, struct str name, struct str door, struct person_door *ret,
		struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value;

	*ret = (struct person_door){ 0 };
	if (!person_name_is_sound(name))
		return STATUS_OK;
	TRY(person_door_key(name, door, &key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	return kv_future_value(f, &value) ? person_door_record_parse(value, ret, err) : STATUS_OK;
}

/* ---- Everybody ---- */

struct door_listing {
	struct kv_tx *tx;
	struct str door;
	struct arena *arena;
	struct arena_mark mark; /* in front of a page's people */
	person_at_door_take *take;
	void *arg;
	struct err *err;
	struct person page[PERSON_DOOR_PAGE];
	struct kv_future *asked[PERSON_DOOR_PAGE];
	size_t count;
};

/* Asks for the record of the page's last person. */
static enum status
listing_ask(struct door_listing *l)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	size_t i = l->count - 1;

	TRY(person_door_key(l->page[i].name, l->door, &key));
	l->asked[i] = kv_get(l->tx, buf_str(&key), KV_SNAPSHOT);
	return STATUS_OK;
}

static enum status
listing_take_one(struct door_listing *l, size_t i)
{
	struct person_door at = { 0 };
	struct str value;

	TRY(kv_future_wait(l->asked[i]));
	if (kv_future_value(l->asked[i], &value))
		TRY(person_door_record_parse(value, &at, l->err));
	return l->take(l->arg, &l->page[i], &at);
}

/* Hands the page on, and begins the next one. */
static enum status
listing_end_page(struct door_listing *l)
{
	enum status status = STATUS_OK;

	for (size_t i = 0; i < l->count; i++) {
		if (status == STATUS_OK)
			status = listing_take_one(l, i);
		kv_future_free(l->asked[i]);
	}
	l->count = 0;
	arena_reset(l->arena, l->mark);
	return status;
}

static enum status
listing_add(void *arg, const struct person *person)
{
	struct door_listing *l = arg;

	l->page[l->count++] = *person;
	TRY(listing_ask(l));
	return l->count == PERSON_DOOR_PAGE ? listing_end_page(l) : STATUS_OK;
}

enum status
person_at_door_each(struct kv_tx *tx, struct str door, struct arena *arena,
		    person_at_door_take *take, void *arg, struct err *err)
{
	struct door_listing *l = mem_zalloc(sizeof(*l));
	enum status status, last;

	if (!l)
		return STATUS_NOMEM;
	l->tx = tx;
	l->door = door;
	l->arena = arena;
	l->mark = arena_mark(arena);
	l->take = take;
	l->arg = arg;
	l->err = err;
	status = person_each(tx, arena, listing_add, l, err);
	last = status == STATUS_OK ? listing_end_page(l) : STATUS_OK;
	mem_free(l);
	return status == STATUS_OK ? last : status;
}

/* ---- For checks of stores ---- */

/* Tells if nobody has the name. */
static enum status
door_verify_owner(struct catalog_verify *v, struct str name, struct str at)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value;
	bool found;

	TRY(person_key(name, &key));
	TRY(catalog_verify_get(v, buf_str(&key), &f));
	found = kv_future_value(f, &value);
	kv_future_free(f);
	if (!found)
		catalog_verify_found(v, CATALOG_FINDING_KEY, at, "there is no such person");
	return STATUS_OK;
}

static void
door_verify(struct catalog_verify *v, struct tuple_reader key, const struct kv_pair *pair)
{
	struct err err = { 0 };
	struct person_door at;
	enum status status;
	struct str name, door;

	arena_clear(v->scratch);
	if (catalog_next_text(&key, TUPLE_STRING, v->scratch, false, &name) != STATUS_OK ||
	    catalog_next_text(&key, TUPLE_STRING, v->scratch, false, &door) != STATUS_OK ||
	    key.rest.len || !person_name_is_sound(name)) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, pair->key, "not a person at a door");
		return;
	}
	status = person_door_record_parse(pair->value, &at, &err);
	if (status != STATUS_OK)
		catalog_verify_unreadable(v, status, &err, pair->key,
					  "not the record of a person at a door");
	else
		v->failed = door_verify_owner(v, name, pair->key);
}

void
person_door_register(void)
{
	catalog_verify_register(KV_ROOT_DOORS, door_verify);
}
