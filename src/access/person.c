/*
 * A person as it is stored:
 *
 *     format 1: (1, version, (role, …), verifier, scram)
 *
 * verifier: null, or (scheme, digest, rounds, salt, hash). scram: null, or (rounds, salt,
 * StoredKey, ServerKey). The version is the stamp of the transaction that has written it.
 */
#include "access/person_int.h"

#include "catalog/check.h"
#include "catalog/format.h"
#include "catalog/keys.h"
#include "kv/keyspace.h"

enum {
	PERSON_FORMAT = 1, /* the newest */
};

bool
person_name_is_sound(struct str name)
{
	return name.len > 0 && name.len <= PERSON_NAME_BYTES && !memchr(name.ptr, ':', name.len);
}

bool
person_roles_fit(const struct str *roles, size_t count)
{
	size_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += roles[i].len;
	return count <= PERSON_ROLES && bytes <= PERSON_ROLES_BYTES;
}

/* ---- The record ---- */

static void
verifier_put(const struct verifier *v, struct buf *value)
{
	tuple_open(value);
	tuple_put_u64(value, v->scheme);
	tuple_put_u64(value, v->digest);
	tuple_put_u64(value, v->rounds);
	tuple_put_str(value, str_of(v->salt, v->salt_len));
	tuple_put_bytes(value, str_of(v->hash, v->hash_len));
	tuple_close(value);
}

static void
scram_put(const struct scram *s, struct buf *value)
{
	tuple_open(value);
	tuple_put_u64(value, s->rounds);
	tuple_put_bytes(value, str_of(s->salt, s->salt_len));
	tuple_put_bytes(value, str_of(s->stored_key, sizeof(s->stored_key)));
	tuple_put_bytes(value, str_of(s->server_key, sizeof(s->server_key)));
	tuple_close(value);
}

size_t
person_record_put(const struct person *person, struct buf *value)
{
	size_t offset;

	tuple_put_u64(value, PERSON_FORMAT);
	offset = tuple_put_versionstamp(value, person->version);
	tuple_open(value);
	for (size_t i = 0; i < person->roles_count; i++)
		tuple_put_str(value, person->roles[i]);
	tuple_close(value);
	if (person->has_verifier)
		verifier_put(&person->verifier, value);
	else
		tuple_put_null(value);
	if (person->has_scram)
		scram_put(&person->scram, value);
	else
		tuple_put_null(value);
	return offset;
}

static enum status
roles_parse(struct tuple_reader *r, struct arena *arena, struct person *ret)
{
	struct tuple_reader roles;
	size_t cap = 0;

	TRY(tuple_next_nested(r, &roles));
	while (roles.rest.len) {
		struct str role;

		TRY(catalog_next_text(&roles, TUPLE_STRING, arena, true, &role));
		TRY(catalog_array_grow(arena, (void **)&ret->roles, sizeof(*ret->roles),
				       ret->roles_count, &cap));
		ret->roles[ret->roles_count++] = role;
	}
	return STATUS_OK;
}

/* Reads bytes: exactly `n` of them, or at most `n` if `ret_len` is given. */
static enum status
bytes_parse(struct tuple_reader *r, enum tuple_kind kind, size_t most, struct arena *arena,
	    void *ret, size_t *ret_len)
{
	struct str bytes;

	TRY(catalog_next_text(r, kind, arena, false, &bytes));
	if (bytes.len > most || (!ret_len && bytes.len != most))
		return STATUS_CORRUPT;
	memcpy(ret, bytes.ptr, bytes.len);
	if (ret_len)
		*ret_len = bytes.len;
	return STATUS_OK;
}

/* The next element, if it is not null, as a tuple. */
static enum status
optional_next(struct tuple_reader *r, struct tuple_reader *ret, bool *ret_there)
{
	struct tuple_reader peek = *r;
	struct tuple_elem e;

	if (tuple_next(&peek, &e) != STATUS_OK)
		return STATUS_CORRUPT;
	*ret_there = e.kind != TUPLE_NULL;
	if (*ret_there)
		return tuple_next_nested(r, ret);
	*r = peek;
	return STATUS_OK;
}

static enum status
verifier_parse(struct tuple_reader *r, struct arena *arena, struct person *ret)
{
	struct verifier *v = &ret->verifier;
	struct tuple_reader parts;
	uint64_t scheme, digest;

	TRY(optional_next(r, &parts, &ret->has_verifier));
	if (!ret->has_verifier)
		return STATUS_OK;
	TRY(tuple_next_u64(&parts, &scheme));
	TRY(tuple_next_u64(&parts, &digest));
	TRY(tuple_next_u64(&parts, &v->rounds));
	TRY(bytes_parse(&parts, TUPLE_STRING, sizeof(v->salt), arena, v->salt, &v->salt_len));
	TRY(bytes_parse(&parts, TUPLE_BYTES, sizeof(v->hash), arena, v->hash, &v->hash_len));
	v->scheme = (enum verifier_scheme)scheme;
	v->digest = (enum verifier_digest)digest;
	return verifier_is_sound(v) && !parts.rest.len ? STATUS_OK : STATUS_CORRUPT;
}

static enum status
scram_parse(struct tuple_reader *r, struct arena *arena, struct person *ret)
{
	struct scram *s = &ret->scram;
	struct tuple_reader parts;

	TRY(optional_next(r, &parts, &ret->has_scram));
	if (!ret->has_scram)
		return STATUS_OK;
	TRY(tuple_next_u64(&parts, &s->rounds));
	TRY(bytes_parse(&parts, TUPLE_BYTES, sizeof(s->salt), arena, s->salt, &s->salt_len));
	if (s->salt_len != SCRAM_SALT_BYTES && s->salt_len != SCRAM_SALT_SHORT_BYTES)
		return STATUS_CORRUPT;
	TRY(bytes_parse(&parts, TUPLE_BYTES, sizeof(s->stored_key), arena, s->stored_key, NULL));
	TRY(bytes_parse(&parts, TUPLE_BYTES, sizeof(s->server_key), arena, s->server_key, NULL));
	return parts.rest.len || s->rounds == 0 || s->rounds > VERIFIER_ROUNDS ? STATUS_CORRUPT
									       : STATUS_OK;
}

static enum status
record_parse(struct tuple_reader r, struct arena *arena, struct person *ret)
{
	const uint8_t *version;

	TRY(tuple_next_versionstamp(&r, &version));
	memcpy(ret->version, version, sizeof(ret->version));
	TRY(roles_parse(&r, arena, ret));
	TRY(verifier_parse(&r, arena, ret));
	TRY(scram_parse(&r, arena, ret));
	return r.rest.len ? STATUS_CORRUPT : STATUS_OK;
}

enum status
person_record_parse(struct str value, struct arena *arena, struct person *ret, struct err *err)
{
	struct tuple_reader r = tuple_reader(value);
	enum status status;
	uint64_t format;

	*ret = (struct person){ .roles_count = 0 };
	TRY(catalog_format_next(&r, "person", PERSON_FORMAT, &format, err));
	status = record_parse(r, arena, ret);
	if (status == STATUS_OK || status == STATUS_NOMEM || status == STATUS_LIMIT)
		return status;
	return STATUS_CORRUPT;
}

/* ---- Keys ---- */

static void
people_key(struct buf *key)
{
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_PEOPLE);
}

enum status
person_key(struct str name, struct buf *key)
{
	people_key(key);
	tuple_put_str(key, name);
	return catalog_key_status(key);
}

enum status
person_watch_key(struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	people_key(&key);
	TRY(catalog_key_status(&key));
	*ret = buf_dup(&key, arena);
	return ret->ptr ? STATUS_OK : STATUS_LIMIT;
}

enum status
person_door_key(struct str name, struct str door, struct buf *key)
{
	tuple_put_u64(key, KV_ROOT);
	tuple_put_u64(key, KV_ROOT_DOORS);
	if (name.len)
		tuple_put_str(key, name);
	if (door.len)
		tuple_put_str(key, door);
	return catalog_key_status(key);
}

/* Clears all keys below `key`, which becomes the first of them. */
static enum status
clear_below(struct kv_tx *tx, struct buf *key)
{
	AUTO(buf_release) struct buf hi = CATALOG_KEY_INIT;

	buf_append_buf(&hi, key);
	buf_append_byte(&hi, CATALOG_KEY_LAST);
	buf_append_byte(key, CATALOG_KEY_NEXT);
	TRY(catalog_key_status(key));
	TRY(catalog_key_status(&hi));
	return kv_clear_range(tx, buf_str(key), buf_str(&hi));
}

enum status
people_touch(struct kv_tx *tx)
{
	static const char stamp[KV_VERSIONSTAMP_BYTES];
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	people_key(&key);
	TRY(catalog_key_status(&key));
	return kv_set_versionstamped_value(tx, buf_str(&key), str_of(stamp, sizeof(stamp)), 0);
}

/* ---- Reading and writing ---- */

enum status
person_put(struct kv_tx *tx, const struct person *person, struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf value = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	size_t offset;

	if (!person_name_is_sound(person->name) ||
	    !person_roles_fit(person->roles, person->roles_count) ||
	    (person->has_verifier && !verifier_is_sound(&person->verifier)))
		return err_set(err, STATUS_INVALID, "no person can be kept like this");
	TRY(person_key(person->name, &key));
	offset = person_record_put(person, &value);
	TRY(buf_status(&value));
	TRY(kv_set_versionstamped_value(tx, buf_str(&key), buf_str(&value), offset));
	return people_touch(tx);
}

enum status
person_clear(struct kv_tx *tx, struct str name)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf doors = CATALOG_KEY_INIT;

	TRY(person_key(name, &key));
	TRY(kv_clear(tx, buf_str(&key)));
	TRY(person_door_key(name, STR(""), &doors));
	TRY(clear_below(tx, &doors));
	return people_touch(tx);
}

enum status
person_clear_all(struct kv_tx *tx)
{
	AUTO(buf_release) struct buf people = CATALOG_KEY_INIT;
	AUTO(buf_release) struct buf doors = CATALOG_KEY_INIT;

	people_key(&people);
	TRY(clear_below(tx, &people));
	TRY(person_door_key(STR(""), STR(""), &doors));
	TRY(clear_below(tx, &doors));
	return people_touch(tx);
}

enum status
person_get(struct kv_tx *tx, struct str name, struct arena *arena, struct person *ret,
	   struct err *err)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	struct kv_future *f;
	struct str value;

	if (!person_name_is_sound(name))
		return STATUS_NOT_FOUND;
	TRY(person_key(name, &key));
	f = kv_get(tx, buf_str(&key), KV_READ);
	TRY(kv_future_wait(f));
	if (!kv_future_value(f, &value))
		return STATUS_NOT_FOUND;
	TRY(person_record_parse(value, arena, ret, err));
	ret->name = arena_dup(arena, name);
	return ret->name.ptr ? STATUS_OK : STATUS_LIMIT;
}

struct listing {
	struct arena *arena;
	person_take *take;
	void *arg;
	struct err *err;
};

static enum status
listing_take(void *arg, struct tuple_reader key, struct str value)
{
	struct listing *l = arg;
	struct person person;
	struct str name;

	if (!key.rest.len)
		return STATUS_OK; /* the pair (ROOT, 11), which is not a person */
	TRY(person_record_parse(value, l->arena, &person, l->err));
	TRY(catalog_next_text(&key, TUPLE_STRING, l->arena, true, &name));
	person.name = name;
	return l->take(l->arg, &person);
}

enum status
person_each(struct kv_tx *tx, struct arena *arena, person_take *take, void *arg, struct err *err)
{
	struct listing l = { arena, take, arg, err };

	return catalog_root_scan(tx, KV_ROOT_PEOPLE, listing_take, &l);
}

/* ---- For checks of stores ---- */

static void
person_verify(struct catalog_verify *v, struct tuple_reader key, const struct kv_pair *pair)
{
	struct err err = { 0 };
	struct person person;
	enum status status;
	struct str name;

	if (!key.rest.len) {
		if (pair->value.len != KV_VERSIONSTAMP_BYTES)
			catalog_verify_found(v, CATALOG_FINDING_VALUE, pair->key,
					     "not a versionstamp");
		return;
	}
	arena_clear(v->scratch);
	if (catalog_next_text(&key, TUPLE_STRING, v->scratch, false, &name) != STATUS_OK ||
	    key.rest.len || !person_name_is_sound(name)) {
		catalog_verify_found(v, CATALOG_FINDING_KEY, pair->key, "not a person's name");
		return;
	}
	status = person_record_parse(pair->value, v->scratch, &person, &err);
	if (status != STATUS_OK)
		catalog_verify_unreadable(v, status, &err, pair->key, "not a person's record");
}

void
person_register(void)
{
	catalog_verify_register(KV_ROOT_PEOPLE, person_verify);
}
