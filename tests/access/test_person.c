/*
 * Records of people: what is put is read again, in the store's keys as drawn and checked; each
 * change has another version. Verifiers: the hashes of other implementations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "access/auth.h"
#include "access/hashed_text.h"
#include "access/person.h"
#include "catalog/catalog.h"
#include "catalog/draw.h"
#include "catalog/store_format.h"
#include "catalog/verify.h"
#include "kv/keyspace.h"
#include "kv/tuple.h"
#include "store.h"

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
};

static int
setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err = { 0 };
	char path[128], url[256];

	assert_non_null(f);
	person_register();
	snprintf(f->dir, sizeof(f->dir), "/tmp/frond-person-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->arena = arena_new(16 << 20);
	assert_non_null(f->arena);
	snprintf(path, sizeof(path), "%s/store", f->dir);
	test_store_url(path, url, sizeof(url));
	if (catalog_store_open(url, &options, &f->store, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	kv_close(f->store);
	arena_free(f->arena);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

/* ---- Bodies ---- */

struct call {
	struct fixture *f;
	struct person person;
	struct str name;
	enum status found;
	size_t count;
	char names[256];
};

static enum status
body_put(struct kv_tx *tx, void *arg)
{
	return person_put(tx, &((struct call *)arg)->person, NULL);
}

static enum status
body_clear(struct kv_tx *tx, void *arg)
{
	return person_clear(tx, ((struct call *)arg)->name);
}

static enum status
body_clear_all(struct kv_tx *tx, void *arg)
{
	(void)arg;
	return person_clear_all(tx);
}

static enum status
body_get(struct kv_tx *tx, void *arg)
{
	struct call *c = arg;

	c->found = person_get(tx, c->name, c->f->arena, &c->person, NULL);
	return c->found == STATUS_NOT_FOUND ? STATUS_OK : c->found;
}

static enum status
count_one(void *arg, const struct person *person)
{
	struct call *c = arg;

	c->count++;
	strncat(c->names, person->name.ptr, person->name.len);
	strcat(c->names, " ");
	return STATUS_OK;
}

static enum status
body_each(struct kv_tx *tx, void *arg)
{
	struct call *c = arg;

	c->count = 0;
	c->names[0] = '\0';
	return person_each(tx, c->f->arena, count_one, c, NULL);
}

static struct str roles_of_jan[] = { { "cook", 4 }, { "bottle washer", 13 } };

static struct person
jan(void)
{
	struct person p = { .name = STR("jan"), .roles = roles_of_jan, .roles_count = 2 };

	p.has_verifier = true;
	p.verifier.scheme = VERIFIER_PBKDF2;
	p.verifier.digest = VERIFIER_SHA256;
	p.verifier.rounds = 10;
	p.verifier.hash_len = 32;
	verifier_make_salt(&p.verifier, 16);
	assert_true(verifier_derive(&p.verifier, STR("apple"), p.verifier.hash));
	p.has_scram = true;
	assert_true(scram_make(STR("apple"), 10, &p.scram));
	return p;
}

static void
put(struct fixture *f, struct person person)
{
	struct call c = { .f = f, .person = person };

	assert_int_equal(kv_run(f->store, body_put, &c, NULL, NULL), STATUS_OK);
}

static bool
get(struct fixture *f, const char *name, struct person *ret)
{
	struct call c = { .f = f, .name = str_from_cstr(name) };

	assert_int_equal(kv_run_read(f->store, body_get, &c, NULL), STATUS_OK);
	*ret = c.person;
	return c.found == STATUS_OK;
}

/* ---- Records ---- */

static void
person_is_read_as_it_was_put(void **state)
{
	struct fixture *f = *state;
	struct person was = jan();
	struct person is;

	put(f, was);
	assert_true(get(f, "jan", &is));
	assert_true(str_eq(is.name, STR("jan")));
	assert_int_equal(is.roles_count, 2);
	assert_true(str_eq(is.roles[1], STR("bottle washer")));
	assert_true(is.has_verifier && is.has_scram);
	assert_int_equal(is.verifier.rounds, 10);
	assert_memory_equal(is.verifier.hash, was.verifier.hash, 32);
	assert_int_equal(is.verifier.salt_len, 32);
	assert_memory_equal(is.verifier.salt, was.verifier.salt, 32);
	assert_memory_equal(&is.scram, &was.scram, sizeof(is.scram));
}

static void
person_without_a_password_has_no_verifier(void **state)
{
	struct fixture *f = *state;
	struct person is;

	put(f, (struct person){ .name = STR("ghost") });
	assert_true(get(f, "ghost", &is));
	assert_false(is.has_verifier || is.has_scram);
	assert_int_equal(is.roles_count, 0);
	assert_false(get(f, "nobody", &is));
}

static void
each_change_has_another_version(void **state)
{
	struct fixture *f = *state;
	struct person first, second;

	put(f, jan());
	assert_true(get(f, "jan", &first));
	put(f, jan());
	assert_true(get(f, "jan", &second));
	assert_true(memcmp(first.version, second.version, sizeof(first.version)) < 0);
}

static void
cleared_person_is_gone_and_others_stay(void **state)
{
	struct fixture *f = *state;
	struct call c = { .f = f, .name = STR("jan") };
	struct person is;

	put(f, jan());
	put(f, (struct person){ .name = STR("anna") });
	assert_int_equal(kv_run_read(f->store, body_each, &c, NULL), STATUS_OK);
	assert_string_equal(c.names, "anna jan ");
	assert_int_equal(kv_run(f->store, body_clear, &c, NULL, NULL), STATUS_OK);
	assert_false(get(f, "jan", &is));
	assert_true(get(f, "anna", &is));
	assert_int_equal(kv_run(f->store, body_clear_all, &c, NULL, NULL), STATUS_OK);
	assert_int_equal(kv_run_read(f->store, body_each, &c, NULL), STATUS_OK);
	assert_int_equal(c.count, 0);
}

static void
names_that_no_cookie_could_carry_are_refused(void **state)
{
	struct fixture *f = *state;
	struct call c = { .f = f, .person = { .name = STR("a:b") } };

	assert_int_equal(kv_run(f->store, body_put, &c, NULL, NULL), STATUS_INVALID);
	c.person.name = STR("");
	assert_int_equal(kv_run(f->store, body_put, &c, NULL, NULL), STATUS_INVALID);
}

static enum status
outcome_of_put(struct fixture *f, struct person person)
{
	struct call c = { .f = f, .person = person };

	return kv_run(f->store, body_put, &c, NULL, NULL);
}

static void
people_are_kept_up_to_each_limit(void **state)
{
	static char text[PERSON_ROLES_BYTES + 1];
	static struct str many[PERSON_ROLES + 1];
	struct fixture *f = *state;
	struct str one = { text, PERSON_ROLES_BYTES };
	struct person p = { .name = str_of(text, PERSON_NAME_BYTES), .roles = many };
	struct person found;

	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i <= PERSON_ROLES; i++)
		many[i] = STR("role");
	p.roles_count = PERSON_ROLES;
	assert_int_equal(outcome_of_put(f, p), STATUS_OK);
	p.roles_count++;
	assert_int_equal(outcome_of_put(f, p), STATUS_INVALID);
	p.roles_count = 0;
	p.name.len++;
	assert_int_equal(outcome_of_put(f, p), STATUS_INVALID);

	p = (struct person){ .name = STR("one role"), .roles = &one, .roles_count = 1 };
	assert_int_equal(outcome_of_put(f, p), STATUS_OK);
	assert_true(get(f, "one role", &found));
	assert_int_equal(found.roles[0].len, PERSON_ROLES_BYTES);
	one.len++;
	assert_int_equal(outcome_of_put(f, p), STATUS_INVALID);
}

static void
verifier_that_could_check_nothing_is_refused(void **state)
{
	struct fixture *f = *state;
	struct person p = jan();

	p.verifier.rounds = 0;
	assert_int_equal(outcome_of_put(f, p), STATUS_INVALID);
	p.verifier.rounds = VERIFIER_ROUNDS + 1ULL;
	assert_int_equal(outcome_of_put(f, p), STATUS_INVALID);
	p.verifier.rounds = VERIFIER_ROUNDS;
	assert_int_equal(outcome_of_put(f, p), STATUS_OK);
	p.has_verifier = false;
	p.verifier.rounds = 0;
	assert_int_equal(outcome_of_put(f, p), STATUS_OK);
	assert_false(get(f, "nobody", &p));
}

/* ---- Drawn and checked ---- */

static void
ignore_finding(const struct catalog_finding *finding, void *arg)
{
	(void)finding;
	(void)arg;
}

static enum status
body_check(struct kv_tx *tx, void *arg)
{
	const struct catalog_verify_options options = { .found = ignore_finding };
	struct catalog_verify_sum sum;
	struct call *c = arg;

	TRY(catalog_verify_store(tx, &options, &sum, NULL));
	c->count = sum.findings;
	return STATUS_OK;
}

static size_t
findings(struct fixture *f)
{
	struct call c = { .f = f };

	assert_int_equal(kv_run_read(f->store, body_check, &c, NULL), STATUS_OK);
	return c.count;
}

static enum status
body_spoil(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = BUF_INIT(100);

	(void)arg;
	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_PEOPLE);
	tuple_put_str(&key, STR("jan"));
	return kv_set(tx, buf_str(&key), STR("spoiled"));
}

static void
check_of_a_store_knows_people_and_finds_damage(void **state)
{
	struct fixture *f = *state;

	put(f, jan());
	assert_int_equal(findings(f), 0);
	assert_int_equal(kv_run(f->store, body_spoil, NULL, NULL, NULL), STATUS_OK);
	assert_int_equal(findings(f), 1);
}

static void
record_is_drawn_as_a_person(void **state)
{
	AUTO(buf_release) struct buf key = BUF_INIT(100);
	AUTO(buf_release) struct buf value = BUF_INIT(10000);
	AUTO(buf_release) struct buf drawn = BUF_INIT(10000);
	const struct person p = { .name = STR("jan"), .roles = roles_of_jan, .roles_count = 2 };

	(void)state;
	tuple_put_u64(&key, KV_ROOT);
	tuple_put_u64(&key, KV_ROOT_PEOPLE);
	tuple_put_str(&key, STR("jan"));
	person_record_put(&p, &value);
	catalog_draw_pair(NULL, buf_str(&key), buf_str(&value), &drawn);
	buf_append_byte(&drawn, '\0');
	assert_string_equal(drawn.ptr, "(\"root\", \"people\", \"jan\") = "
				       "(01000000000000000000000000, (\"cook\", \"bottle washer\"),"
				       " null, null)");
}

static void
record_of_a_newer_frond_is_told_as_that(void **state)
{
	struct fixture *f = *state;
	AUTO(buf_release) struct buf value = BUF_INIT(100);
	struct err err = { 0 };
	struct person p;

	tuple_put_u64(&value, 99);
	assert_int_equal(person_record_parse(buf_str(&value), f->arena, &p, &err), STATUS_NEWER);
	assert_int_equal(person_record_parse(STR("x"), f->arena, &p, &err), STATUS_CORRUPT);
}

static void
every_prefix_of_a_record_is_corrupt(void **state)
{
	struct fixture *f = *state;
	AUTO(buf_release) struct buf value = BUF_INIT(10000);
	struct person p = jan();

	person_record_put(&p, &value);
	for (size_t n = 0; n < value.len; n++)
		assert_int_equal(person_record_parse(str_of(value.ptr, n), f->arena, &p, NULL),
				 STATUS_CORRUPT);
	assert_int_equal(person_record_parse(buf_str(&value), f->arena, &p, NULL), STATUS_OK);
}

/* Everything of a record up to the two ways to check a password. */
static void
record_begin(struct buf *value)
{
	static const uint8_t version[KV_VERSIONSTAMP_BYTES];

	buf_clear(value);
	tuple_put_u64(value, 1);
	tuple_put_versionstamp(value, version);
	tuple_open(value);
	tuple_close(value);
}

struct parts {
	uint64_t rounds;
	size_t salt;
	size_t first; /* the hash, or the stored key */
	size_t second;
	bool more; /* behind the last */
	enum status status;
};

static void
lengths_of_verifiers_in_a_record_are_checked(void **state)
{
	static const struct parts cases[] = {
		{ 10, 16, 32, 0, false, STATUS_OK },
		{ 10, VERIFIER_SALT_BYTES, 32, 0, false, STATUS_OK },
		{ 10, VERIFIER_SALT_BYTES + 1, 32, 0, false, STATUS_CORRUPT },
		{ 10, 16, 31, 0, false, STATUS_CORRUPT },
		{ 10, 16, 33, 0, false, STATUS_CORRUPT },
		{ 10, 16, VERIFIER_HASH_BYTES + 1, 0, false, STATUS_CORRUPT },
		{ 10, 16, 32, 0, true, STATUS_CORRUPT },
		{ 0, 16, 32, 0, false, STATUS_CORRUPT },
		{ VERIFIER_ROUNDS, 16, 32, 0, false, STATUS_OK },
		{ VERIFIER_ROUNDS + 1ULL, 16, 32, 0, false, STATUS_CORRUPT },
	};
	static const char bytes[200];
	AUTO(buf_release) struct buf value = BUF_INIT(10000);
	struct fixture *f = *state;
	struct person p;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct parts *c = &cases[i];

		record_begin(&value);
		tuple_open(&value);
		tuple_put_u64(&value, VERIFIER_PBKDF2);
		tuple_put_u64(&value, VERIFIER_SHA256);
		tuple_put_u64(&value, c->rounds);
		tuple_put_str(&value, str_of(bytes, c->salt));
		tuple_put_bytes(&value, str_of(bytes, c->first));
		if (c->more)
			tuple_put_u64(&value, 1);
		tuple_close(&value);
		tuple_put_null(&value);
		if (person_record_parse(buf_str(&value), f->arena, &p, NULL) != c->status)
			fail_msg("case %zu", i);
	}
}

static void
lengths_of_scram_keys_in_a_record_are_checked(void **state)
{
	static const struct parts cases[] = {
		{ 10, SCRAM_SALT_BYTES, SCRAM_KEY_BYTES, SCRAM_KEY_BYTES, false, STATUS_OK },
		{ 10, SCRAM_SALT_BYTES - 1, SCRAM_KEY_BYTES, SCRAM_KEY_BYTES, false,
		  STATUS_CORRUPT },
		{ 10, SCRAM_SALT_BYTES + 1, SCRAM_KEY_BYTES, SCRAM_KEY_BYTES, false,
		  STATUS_CORRUPT },
		{ 10, SCRAM_SALT_SHORT_BYTES, SCRAM_KEY_BYTES, SCRAM_KEY_BYTES, false, STATUS_OK },
		{ 10, SCRAM_SALT_SHORT_BYTES - 1, SCRAM_KEY_BYTES, SCRAM_KEY_BYTES, false,
		  STATUS_CORRUPT },
		{ 10, SCRAM_SALT_BYTES, SCRAM_KEY_BYTES - 1, SCRAM_KEY_BYTES, false,
		  STATUS_CORRUPT },
		{ 10, SCRAM_SALT_BYTES, SCRAM_KEY_BYTES, SCRAM_KEY_BYTES + 1, false,
		  STATUS_CORRUPT },
		{ 10, SCRAM_SALT_BYTES, SCRAM_KEY_BYTES, SCRAM_KEY_BYTES, true, STATUS_CORRUPT },
		{ 0, SCRAM_SALT_BYTES, SCRAM_KEY_BYTES, SCRAM_KEY_BYTES, false, STATUS_CORRUPT },
		{ VERIFIER_ROUNDS, SCRAM_SALT_BYTES, SCRAM_KEY_BYTES, SCRAM_KEY_BYTES, false,
		  STATUS_OK },
		{ VERIFIER_ROUNDS + 1ULL, SCRAM_SALT_BYTES, SCRAM_KEY_BYTES, SCRAM_KEY_BYTES, false,
		  STATUS_CORRUPT },
	};
	static const char bytes[200];
	AUTO(buf_release) struct buf value = BUF_INIT(10000);
	struct fixture *f = *state;
	struct person p;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct parts *c = &cases[i];

		record_begin(&value);
		tuple_put_null(&value);
		tuple_open(&value);
		tuple_put_u64(&value, c->rounds);
		tuple_put_bytes(&value, str_of(bytes, c->salt));
		tuple_put_bytes(&value, str_of(bytes, c->first));
		tuple_put_bytes(&value, str_of(bytes, c->second));
		if (c->more)
			tuple_put_u64(&value, 1);
		tuple_close(&value);
		if (person_record_parse(buf_str(&value), f->arena, &p, NULL) != c->status)
			fail_msg("case %zu", i);
	}
	record_begin(&value);
	tuple_put_null(&value);
	tuple_put_null(&value);
	assert_int_equal(person_record_parse(buf_str(&value), f->arena, &p, NULL), STATUS_OK);
	tuple_put_null(&value);
	assert_int_equal(person_record_parse(buf_str(&value), f->arena, &p, NULL), STATUS_CORRUPT);
}

/* ---- Verifiers ---- */

static void
assert_hash(enum verifier_scheme scheme, enum verifier_digest digest, const char *hex)
{
	struct verifier v = { .scheme = scheme, .digest = digest, .rounds = 10 };
	uint8_t expected[VERIFIER_HASH_BYTES];

	memcpy(v.salt, "salt", 4);
	v.salt_len = 4;
	v.hash_len = strlen(hex) / 2;
	assert_true(verifier_is_sound(&v));
	assert_true(str_from_hex(str_from_cstr(hex), expected));
	assert_true(verifier_derive(&v, STR("secret"), v.hash));
	assert_true(verifier_has_hash(&v, expected));
	expected[0] ^= 1;
	assert_false(verifier_has_hash(&v, expected));
}

static void
members_of_a_verifier_fit_each_other(void **state)
{
	static const struct {
		enum verifier_scheme scheme;
		unsigned digest;
		uint64_t rounds;
		size_t salt, hash;
		bool sound;
	} cases[] = {
		{ VERIFIER_PBKDF2, VERIFIER_SHA1, 1, 0, 20, true },
		{ VERIFIER_PBKDF2, VERIFIER_SHA224, 1, 1, 28, true },
		{ VERIFIER_PBKDF2, VERIFIER_SHA256, VERIFIER_ROUNDS, VERIFIER_SALT_BYTES, 32,
		  true },
		{ VERIFIER_SIMPLE_PBKDF2, VERIFIER_SHA384, 1, 1, 48, true },
		{ VERIFIER_PBKDF2, VERIFIER_SHA512, 1, 1, 64, true },
		{ VERIFIER_SIMPLE, VERIFIER_SHA1, 0, 1, 20, true },
		{ VERIFIER_SIMPLE, VERIFIER_SHA256, 0, 1, 32, false },
		{ VERIFIER_PBKDF2, VERIFIER_SHA1 - 1, 1, 1, 20, false },
		{ VERIFIER_PBKDF2, VERIFIER_SHA512 + 1, 1, 1, 64, false },
		{ VERIFIER_PBKDF2, VERIFIER_SHA256, 0, 1, 32, false },
		{ VERIFIER_SIMPLE_PBKDF2, VERIFIER_SHA256, 0, 1, 32, false },
		{ VERIFIER_PBKDF2, VERIFIER_SHA256, VERIFIER_ROUNDS + 1ULL, 1, 32, false },
		{ VERIFIER_PBKDF2, VERIFIER_SHA256, 1, VERIFIER_SALT_BYTES + 1, 32, false },
		{ VERIFIER_PBKDF2, VERIFIER_SHA256, 1, 1, 31, false },
		{ VERIFIER_PBKDF2, VERIFIER_SHA256, 1, 1, 33, false },
		{ (enum verifier_scheme)0, VERIFIER_SHA1, 1, 1, 20, false },
		{ (enum verifier_scheme)4, VERIFIER_SHA1, 1, 1, 20, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct verifier v = { .scheme = cases[i].scheme,
					    .digest = (enum verifier_digest)cases[i].digest,
					    .rounds = cases[i].rounds,
					    .salt_len = cases[i].salt,
					    .hash_len = cases[i].hash };

		if (verifier_is_sound(&v) != cases[i].sound)
			fail_msg("case %zu", i);
	}
}

/* By Python's hashlib. */
static void
hashes_are_those_of_other_implementations(void **state)
{
	(void)state;
	assert_hash(VERIFIER_SIMPLE, VERIFIER_SHA1, "8152bc582f58c854f580cb101d3182813dec4afe");
	assert_hash(VERIFIER_PBKDF2, VERIFIER_SHA256,
		    "2fb151da5bf7a44c5470345b6ff0716d7279bbc9137299d5f1a5f62bb101ab9d");
	assert_hash(VERIFIER_PBKDF2, VERIFIER_SHA1, "e248fb6b13365146f8ac6307cc2228127872da6d");
	assert_hash(VERIFIER_SIMPLE_PBKDF2, VERIFIER_SHA256,
		    "be30f536b9d88ac34fbe1ce55dfe576e6935da2f6b979d003e17940c090acdf4");
}

/* The salt and the keys of the example in RFC 7677. */
static void
a_salt_is_digits_and_no_longer_than_wanted(void **state)
{
	struct verifier v;

	(void)state;
	for (size_t n = 1; n <= sizeof(v.salt) / 2; n++) {
		memset(&v, 0xaa, sizeof(v));
		verifier_make_salt(&v, n);
		assert_int_equal(v.salt_len, 2 * n);
		assert_int_equal(strspn((const char *)v.salt, "0123456789abcdef"), 2 * n);
		if (2 * n < sizeof(v.salt))
			assert_int_equal((uint8_t)v.salt[2 * n], 0xaa);
	}
}

static void
hashes_are_read_from_ini_files(void **state)
{
#define HASH40 "0123456789abcdef0123456789abcdef01234567"
#define HASH64 HASH40 "0123456789abcdef01234567"
#define SALT64 HASH40 "0123456789abcdef01234567"
	_Static_assert(VERIFIER_SALT_BYTES == 2 * 64, "SALT64 SALT64 is the longest salt");
	static const struct {
		const char *text;
		bool good;
	} cases[] = {
		{ "-pbkdf2-" HASH40 ",salt,10", true },
		{ "-pbkdf2:sha-" HASH40 ",salt,10", true },
		{ "-pbkdf2:sha256-" HASH64 ",salt,10", true },
		{ "-hashed-" HASH40 ",salt", true },
		{ "-hashed-" HASH64 ",salt", false },
		{ "-hashed-" HASH40 ",", false },
		{ "-hashed-" HASH40, false },
		{ "-hashed-" HASH40 "," SALT64 SALT64, true },
		{ "-hashed-" HASH40 "," SALT64 SALT64 "x", false },
		{ "-pbkdf2-" HASH64 ",salt,10", false },
		{ "-pbkdf2:sha256-" HASH40 ",salt,10", false },
		{ "-pbkdf2:md5-" HASH40 ",salt,10", false },
		{ "-pbkdf3-" HASH40 ",salt,10", false },
		{ "-pbkdf2-" HASH40 ",salt", false },
		{ "-pbkdf2-" HASH40 ",salt,", false },
		{ "-pbkdf2-" HASH40 ",salt,x", false },
		{ "-pbkdf2-" HASH40 ",salt,0", false },
		{ "-pbkdf2-" HASH40 ",,10", false },
		{ "-pbkdf2-" HASH40 "," SALT64 SALT64 "x,10", false },
		{ "-pbkdf2-x123456789abcdef0123456789abcdef01234567,salt,10", false },
		{ "-", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO(buf_release) struct buf out = BUF_INIT(1000);
		struct verifier v, again;

		if (hashed_text_parse(str_from_cstr(cases[i].text), &v) != cases[i].good)
			fail_msg("%s", cases[i].text);
		if (!cases[i].good || v.scheme != VERIFIER_PBKDF2)
			continue;
		hashed_text_write(&v, &out);
		assert_true(hashed_text_parse(buf_str(&out), &again));
		assert_memory_equal(&v, &again, sizeof(v));
		assert_int_equal(v.rounds, 10);
		assert_true(str_eq(str_of(v.salt, v.salt_len), STR("salt")));
	}
#undef SALT64
#undef HASH64
#undef HASH40
}

static void
scram_keys_are_those_of_the_rfc(void **state)
{
	struct scram s = { .rounds = 4096, .salt_len = SCRAM_SALT_SHORT_BYTES };
	uint8_t stored[32], server[32];

	(void)state;
	assert_true(str_from_hex(STR("5b6d99689d12358eeca04b141236fa81"), s.salt));
	assert_true(str_from_hex(
		STR("586e5df283e6dceb5c3e791d8b8528ec191e664045ce971792e2e6b5bb13e2a6"), stored));
	assert_true(str_from_hex(
		STR("c1f3cbc1c13a9d35a14c0990eed97629ea225863e566a4314ab99f3f00e5d9d5"), server));
	assert_true(scram_derive(STR("pencil"), &s));
	assert_memory_equal(s.stored_key, stored, 32);
	assert_memory_equal(s.server_key, server, 32);
}

static void
scram_salts_are_fresh(void **state)
{
	struct scram one, two;

	(void)state;
	assert_true(scram_make(STR("apple"), 2, &one) && scram_make(STR("apple"), 2, &two));
	assert_memory_not_equal(one.salt, two.salt, sizeof(one.salt));
	assert_memory_not_equal(one.stored_key, two.stored_key, sizeof(one.stored_key));
}

/* ---- Logins ---- */

enum {
	WANTED_ROUNDS = 10,
};

static unsigned upgrades;

static enum status
count_upgrade(const struct auth_client *client, const struct person *person,
	      const struct verifier *verifier, const struct scram *scram)
{
	(void)client;
	(void)scram;
	assert_true(str_eq(person->name, STR("jan")));
	assert_int_equal(verifier->scheme, VERIFIER_PBKDF2);
	assert_int_equal(verifier->digest, VERIFIER_SHA256);
	assert_int_equal(verifier->rounds, WANTED_ROUNDS);
	upgrades++;
	return STATUS_OK;
}

static void
a_login_upgrades_what_is_weaker_than_wanted(void **state)
{
	static const struct {
		enum verifier_scheme scheme;
		enum verifier_digest digest;
		uint64_t rounds;
		size_t hash_len;
		unsigned upgrades;
	} cases[] = {
		{ VERIFIER_PBKDF2, VERIFIER_SHA256, WANTED_ROUNDS, 32, 0 },
		{ VERIFIER_PBKDF2, VERIFIER_SHA256, WANTED_ROUNDS + 1, 32, 0 },
		{ VERIFIER_PBKDF2, VERIFIER_SHA512, WANTED_ROUNDS, 64, 0 },
		{ VERIFIER_PBKDF2, VERIFIER_SHA256, WANTED_ROUNDS - 1, 32, 1 },
		{ VERIFIER_PBKDF2, VERIFIER_SHA224, WANTED_ROUNDS, 28, 1 },
		{ VERIFIER_PBKDF2, VERIFIER_SHA1, WANTED_ROUNDS, 20, 1 },
		{ VERIFIER_SIMPLE_PBKDF2, VERIFIER_SHA256, WANTED_ROUNDS, 32, 1 },
	};
	struct fixture *f = *state;

	auth_set_upgrade(count_upgrade);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct call c = { .f = f, .person = jan() };
		struct verifier *v = &c.person.verifier;
		struct auth *auth = auth_new();
		const struct auth_client client = {
			.store = f->store,
			.by = { .address = STR("127.0.0.1:40312") },
		};
		struct auth_user user;
		struct err err = { 0 };

		assert_non_null(auth);
		auth_set_rounds(auth, WANTED_ROUNDS);
		v->scheme = cases[i].scheme;
		v->digest = cases[i].digest;
		v->rounds = cases[i].rounds;
		v->hash_len = cases[i].hash_len;
		assert_true(verifier_derive(v, STR("apple"), v->hash));
		assert_int_equal(kv_run(f->store, body_put, &c, NULL, NULL), STATUS_OK);
		assert_int_equal(auth_login(auth, "session", STR("jan"), STR("pear"), &client,
					    f->arena, &user, &err),
				 STATUS_UNAUTHORIZED);
		assert_int_equal(upgrades, 0);
		assert_int_equal(auth_login(auth, "session", STR("jan"), STR("apple"), &client,
					    f->arena, &user, &err),
				 STATUS_OK);
		assert_int_equal(upgrades, cases[i].upgrades);
		upgrades = 0;
		auth_free(auth);
	}
	auth_set_upgrade(NULL);
}

struct login {
	struct fixture *f;
	unsigned aheads;
};

static void
count_ahead(void *arg)
{
	(*(unsigned *)arg)++;
}

static enum status
body_login(struct kv_tx *tx, void *arg)
{
	struct login *l = arg;
	struct auth_client client = { .store = l->f->store,
				      .tx = tx,
				      .by = { .address = STR("127.0.0.1:40312") } };
	struct auth *auth = auth_new();
	struct auth_user user;
	struct err err = { 0 };
	bool read = true;

	assert_non_null(auth);
	for (int told = 0; told < 2 && read; told++) {
		uint64_t before = kv_tx_stats(tx).reads;

		client.ahead = told ? count_ahead : NULL;
		client.ahead_arg = &l->aheads;
		l->aheads = 0;
		/* Not remembered, so that the record is read each time. */
		assert_int_equal(auth_login(auth, "session", STR("jan"), STR("pear"), &client,
					    l->f->arena, &user, &err),
				 STATUS_UNAUTHORIZED);
		assert_int_equal(l->aheads, told);
		read = kv_tx_stats(tx).reads > before;
	}
	auth_free(auth);
	/* A store with faults may have failed before the read, and then another attempt reads. */
	return read ? STATUS_OK : STATUS_TX_TOO_OLD;
}

static void
a_record_is_read_in_the_request_s_transaction(void **state)
{
	struct fixture *f = *state;
	struct call c = { .f = f, .person = jan() };
	struct login l = { .f = f };

	assert_int_equal(kv_run(f->store, body_put, &c, NULL, NULL), STATUS_OK);
	assert_int_equal(kv_run_read(f->store, body_login, &l, NULL), STATUS_OK);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(person_is_read_as_it_was_put),
		T(person_without_a_password_has_no_verifier),
		T(each_change_has_another_version),
		T(cleared_person_is_gone_and_others_stay),
		T(names_that_no_cookie_could_carry_are_refused),
		T(people_are_kept_up_to_each_limit),
		T(verifier_that_could_check_nothing_is_refused),
		T(check_of_a_store_knows_people_and_finds_damage),
		T(record_is_drawn_as_a_person),
		T(record_of_a_newer_frond_is_told_as_that),
		T(every_prefix_of_a_record_is_corrupt),
		T(lengths_of_verifiers_in_a_record_are_checked),
		T(lengths_of_scram_keys_in_a_record_are_checked),
		T(a_login_upgrades_what_is_weaker_than_wanted),
		T(a_record_is_read_in_the_request_s_transaction),
		cmocka_unit_test(members_of_a_verifier_fit_each_other),
		cmocka_unit_test(hashes_are_those_of_other_implementations),
		cmocka_unit_test(a_salt_is_digits_and_no_longer_than_wanted),
		cmocka_unit_test(hashes_are_read_from_ini_files),
		cmocka_unit_test(scram_keys_are_those_of_the_rfc),
		cmocka_unit_test(scram_salts_are_fresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
