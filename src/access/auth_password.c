/* Checking passwords, and hashing new ones. Hashing is slow on purpose, so fibers take turns. */
#include <assert.h>
#include <openssl/crypto.h>

#include "access/auth_int.h"
#include "access/hashed_text.h"
#include "access/scram_table.h"
#include "base/metric.h"
#include "base/quote.h"
#include "base/rand.h"
#include "loop/wait.h"

enum {
	SALT_BYTES = 16,
	HASHED_TEXT_BYTES = 2 * VERIFIER_HASH_BYTES + VERIFIER_SALT_BYTES + 64,
};

/* The key of a lock-out's entry is a digest of the address and the name, keyed with this text. */
static const char lockout_purpose[] = "lock-out";

/* The secret makes other digests, too. With this text in front, no salt equals one of them. */
static const char salt_purpose[] = "salt of a password";

enum password_outcome {
	PASSWORD_REMEMBERED,
	PASSWORD_RIGHT,
	PASSWORD_WRONG,
	PASSWORD_LOCKED,
	PASSWORD_OUTCOMES,
};

static const char *const password_outcomes[PASSWORD_OUTCOMES] = {
	[PASSWORD_REMEMBERED] = "remembered",
	[PASSWORD_RIGHT] = "right",
	[PASSWORD_WRONG] = "wrong",
	[PASSWORD_LOCKED] = "locked",
};

METRIC_COUNTERS(
	password_checks, "frond_auth_password_checks_total", METRIC_NUMBER,
	"Passwords that were checked: right lately and remembered, or right or wrong by the "
	"slow hash; wrong also for unknown names. Locked: refused after too many failures.",
	"outcome", password_outcomes);

/*
 * Waits for the fiber's turn to hash. After STATUS_OK, either `turn->outcome` holds the result of
 * another fiber that hashed the same, or the caller hashes and then calls hash_queue_leave().
 */
static enum status
queue_enter(struct hash_turn *turn, const struct hash_queue_limits *limits,
	    const struct auth_client *client, struct err *err)
{
	switch (hash_queue_enter(turn, limits, client ? client->gone : NULL)) {
	case HASH_QUEUE_TURN:
		turn->outcome = 0;
		return STATUS_OK;
	case HASH_QUEUE_SHARED:
		return turn->outcome ? STATUS_OK
				     : err_set(err, STATUS_NOMEM, "cannot hash a password");
	case HASH_QUEUE_GONE:
		return turn->ended;
	case HASH_QUEUE_FULL:
		break;
	}
	METRIC_REFUSED("hash_queue");
	return err_set(err, STATUS_TOO_MANY,
		       "Too many logins wait for their passwords to be hashed: the limit, "
		       "hash_queue, is %zu. Try again later.",
		       limits->waiting);
}

/* ---- Setting a password ---- */

enum status
auth_check_plain(struct str name, struct str password, struct err *err)
{
	if (password.len > 0 && password.len <= AUTH_PASSWORD_BYTES)
		return STATUS_OK;
	return err_set(err, STATUS_INVALID,
		       "the password of administrator \"%s\" has %zu bytes; allowed are 1 to %d",
		       QUOTE_SHOW(name), password.len, AUTH_PASSWORD_BYTES);
}

/* Makes the text of a salt: CouchDB hashes its digits, not the bytes that they stand for. */
static enum status
make_salt(struct str name, struct str secret, struct verifier *v)
{
	AUTO(buf_release) struct buf data = BUF_INIT(sizeof(salt_purpose) + AUTH_NAME_BYTES);
	AUTO(buf_release) struct buf text = BUF_INIT(2 * SALT_BYTES);
	uint8_t digest[AUTH_DIGEST_BYTES];

	if (secret.len == 0) {
		verifier_make_salt(v, SALT_BYTES);
		return STATUS_OK;
	}
	buf_append(&data, salt_purpose, sizeof(salt_purpose));
	buf_append_str(&data, name);
	TRY(buf_status(&data));
	TRY(auth_keyed_digest((const uint8_t *)secret.ptr, secret.len, buf_str(&data), digest));
	buf_append_hex(&text, str_of(digest, SALT_BYTES));
	TRY(buf_status(&text));
	memcpy(v->salt, text.ptr, text.len);
	v->salt_len = text.len;
	return STATUS_OK;
}

struct slow_derive {
	struct str password;
	struct verifier *verifier; /* or NULL */
	struct scram *scram;       /* or NULL */
	uint64_t rounds;           /* of SCRAM */
	bool computed;
};

static void
slow_derive(void *arg)
{
	struct slow_derive *d = arg;

	d->computed = (!d->verifier ||
		       verifier_derive(d->verifier, d->password, d->verifier->hash)) &&
		      (!d->scram || scram_make(d->password, d->rounds, d->scram));
}

static enum status
compute_in_turn(void (*fn)(void *arg), void *arg, const struct auth_hashing *how, struct err *err)
{
	struct hash_turn turn = { 0 };

	if (!how->client) {
		wait_compute(fn, arg);
		return STATUS_OK;
	}
	address_block_of(how->client->by.address, &turn.address);
	rand_bytes(turn.key, sizeof(turn.key)); /* so no other fiber shares the result */
	TRY(queue_enter(&turn, &how->limits, how->client, err));
	wait_compute(fn, arg);
	hash_queue_leave(&turn, &how->limits, 0);
	return STATUS_OK;
}

static enum status
derive_in_turn(struct slow_derive *d, const struct auth_hashing *how, struct err *err)
{
	TRY(compute_in_turn(slow_derive, d, how, err));
	return d->computed ? STATUS_OK : err_set(err, STATUS_NOMEM, "cannot hash a password");
}

enum status
auth_hash_password(struct str name, struct str password, const struct auth_hashing *how,
		   struct arena *arena, struct str *ret, struct err *err)
{
	struct buf AUTO(buf_release) text = BUF_INIT(HASHED_TEXT_BYTES);
	struct verifier v = { .scheme = VERIFIER_PBKDF2,
			      .digest = VERIFIER_SHA256,
			      .rounds = how->rounds,
			      .hash_len = AUTH_DIGEST_BYTES };
	struct scram scram;
	struct slow_derive d = { .password = password,
				 .verifier = &v,
				 .scram = scram_admins_are_wanted() ? &scram : NULL,
				 .rounds = how->rounds };

	assert(how->rounds > 0 && how->rounds <= AUTH_ROUNDS_LIMIT);
	TRY(auth_check_plain(name, password, err));
	TRY(make_salt(name, how->secret, &v));
	TRY(derive_in_turn(&d, how, err));
	if (d.scram)
		scram_admins_add(&v, d.scram);
	hashed_text_write(&v, &text);
	TRY(buf_status(&text));
	*ret = buf_dup(&text, arena);
	return ret->ptr ? STATUS_OK : err_set(err, STATUS_NOMEM, "out of memory");
}

enum status
auth_make_verifiers(struct str password, const struct auth_hashing *how, struct verifier *verifier,
		    struct scram *scram, struct err *err)
{
	struct slow_derive d = {
		.password = password, .verifier = verifier, .scram = scram, .rounds = how->rounds
	};

	assert(how->rounds > 0 && how->rounds <= AUTH_ROUNDS_LIMIT);
	if (password.len > AUTH_PASSWORD_BYTES)
		return err_set(err, STATUS_INVALID, "a password has at most %d bytes",
			       AUTH_PASSWORD_BYTES);
	verifier->scheme = VERIFIER_PBKDF2;
	verifier->digest = VERIFIER_SHA256;
	verifier->rounds = how->rounds;
	verifier->hash_len = AUTH_DIGEST_BYTES;
	if (verifier->salt_len == 0)
		verifier_make_salt(verifier, SALT_BYTES);
	return derive_in_turn(&d, how, err);
}

struct slow_digest {
	const struct person_door *at;
	struct str digest;
	uint8_t *hash;
	bool computed;
};

static void
slow_digest(void *arg)
{
	struct slow_digest *d = arg;

	d->computed = person_door_hash(d->at, d->digest, d->hash);
}

enum status
auth_hash_at_door(const struct person_door *at, struct str digest, const struct auth_hashing *how,
		  uint8_t *ret, struct err *err)
{
	struct slow_digest d = { .at = at, .digest = digest, .hash = ret };

	TRY(compute_in_turn(slow_digest, &d, how, err));
	return d.computed ? STATUS_OK : err_set(err, STATUS_NOMEM, "cannot hash a password");
}

enum status
auth_make_scram(struct str password, const struct auth_hashing *how, struct scram *ret,
		struct err *err)
{
	struct slow_derive d = { .password = password, .scram = ret, .rounds = how->rounds };

	assert(how->rounds > 0 && how->rounds <= AUTH_ROUNDS_LIMIT);
	return derive_in_turn(&d, how, err);
}

/* ---- Checking one ---- */

struct slow_check {
	const struct verifier *verifier;
	const struct person_door *at; /* instead, where the password is one of a door; else NULL */
	struct str password;
	bool matches;
	bool computed;
};

static void
check_at_door(struct slow_check *check)
{
	char digest[PERSON_DOOR_DIGEST_BYTES];
	uint8_t hash[PERSON_DOOR_HASH_BYTES];

	check->computed = person_door_digest(check->password, digest) &&
			  person_door_hash(check->at, str_of(digest, sizeof(digest)), hash);
	check->matches = check->computed && person_door_find(check->at, hash) < check->at->count;
	OPENSSL_cleanse(digest, sizeof(digest));
	OPENSSL_cleanse(hash, sizeof(hash));
}

static void
slow_check(void *arg)
{
	struct slow_check *check = arg;
	uint8_t hash[VERIFIER_HASH_BYTES];

	if (check->at) {
		check_at_door(check);
		return;
	}
	check->computed = verifier_derive(check->verifier, check->password, hash);
	check->matches = check->computed && verifier_has_hash(check->verifier, hash);
	OPENSSL_cleanse(hash, sizeof(hash));
}

/*
 * Makes a verifier for a name that nobody has, so that the time of an answer does not tell whether
 * the name exists. Its hash is random bytes, which no password matches. Its rounds are those of the
 * settings, which most people have, or those of one administrator. The name decides which, so the
 * same unknown name always takes the same time.
 */
static enum status
nobody_like_somebody(const struct auth *a, struct str name, const struct auth_client *client,
		     struct verifier *ret)
{
	bool people = client && client->store;
	uint8_t digest[AUTH_DIGEST_BYTES];
	size_t choices = a->count + (people || a->count == 0);
	size_t choice;

	TRY(auth_keyed_digest(a->memory_key, AUTH_SECRET_BYTES, name, digest));
	choice = digest[0] % choices;
	*ret = (struct verifier){ .scheme = VERIFIER_PBKDF2,
				  .digest = VERIFIER_SHA256,
				  .rounds = a->rounds,
				  .hash_len = AUTH_DIGEST_BYTES };
	if (choice < a->count)
		*ret = a->admins[choice]->verifier;
	else
		verifier_make_salt(ret, SALT_BYTES);
	rand_bytes(ret->hash, sizeof(ret->hash));
	return STATUS_OK;
}

/* The result of slow_check(), which fibers with the same question share. */
enum {
	OUTCOME_NOT_COMPUTED,
	OUTCOME_MATCHES,
	OUTCOME_DIFFERS,
};

/* Fibers that check the same name and password against the same record share one hash. */
static void
turn_init(const struct person_proof *proof, const struct auth_client *client, struct hash_turn *ret)
{
	_Static_assert(sizeof(*proof) <= HASH_QUEUE_KEY_BYTES, "a key has room");
	memset(ret, 0, sizeof(*ret));
	address_block_of(client ? client->by.address : STR(""), &ret->address);
	memcpy(ret->key, proof, sizeof(*proof));
}

/* Computes the hash when it is the fiber's turn, or takes the result of another fiber. */
static enum status
check_in_turn(struct auth *a, struct slow_check *check, struct hash_turn *turn,
	      const struct auth_client *client, struct err *err)
{
	enum status status = queue_enter(turn, &a->hash_limits, client, err);

	TRY(status);
	if (turn->outcome == OUTCOME_NOT_COMPUTED) {
		wait_compute(slow_check, check);
		if (check->computed)
			turn->outcome = check->matches ? OUTCOME_MATCHES : OUTCOME_DIFFERS;
		hash_queue_leave(turn, &a->hash_limits, turn->outcome);
	}
	check->computed = turn->outcome != OUTCOME_NOT_COMPUTED;
	check->matches = turn->outcome == OUTCOME_MATCHES;
	return STATUS_OK;
}

bool
auth_lockout_key(const struct auth *a, struct str name, const struct auth_client *client,
		 const struct auth_who *who, struct lockout_key *ret)
{
	AUTO(buf_release) struct buf b = BUF_INIT(AUTH_NAME_BYTES + 64 + AUTH_DIGEST_BYTES);
	struct address_block address;
	uint8_t digest[AUTH_DIGEST_BYTES];

	if (a->lockout.mode == LOCKOUT_OFF || !client || client->by.address.len == 0)
		return false;
	address_block_of(client->by.address, &address);
	buf_append(&b, address.bytes, sizeof(address.bytes));
	/* A person's key changes with the password. That of an unknown name is all zeros. */
	buf_append(&b, who->cookie_key, sizeof(who->cookie_key));
	buf_append_str(&b, name);
	if (buf_status(&b) != STATUS_OK ||
	    auth_keyed_digest((const uint8_t *)lockout_purpose, sizeof(lockout_purpose),
			      buf_str(&b), digest) != STATUS_OK)
		return false;
	memcpy(ret->bytes, digest, sizeof(ret->bytes));
	return true;
}

enum status
auth_lockout_check(const struct auth *a, const struct lockout_key *key, struct auth_who *who,
		   struct err *err)
{
	if (!key || !lockout_reached(&a->lockout, key))
		return STATUS_OK;
	who->failing = true;
	if (a->lockout.mode != LOCKOUT_ENFORCE)
		return STATUS_OK;
	metric_add_at(&password_checks, PASSWORD_LOCKED, 1);
	return err_set(err, STATUS_FORBIDDEN, AUTH_LOCKED_TEXT);
}

enum status
auth_password_is_wrong(struct err *err)
{
	metric_add_at(&password_checks, PASSWORD_WRONG, 1);
	return err_set(err, STATUS_UNAUTHORIZED, AUTH_WRONG_TEXT);
}

void
auth_password_is_right(void)
{
	metric_add_at(&password_checks, PASSWORD_RIGHT, 1);
}

/*
 * What the password is checked against; neither verifier nor door: none is right. True if any is
 * right.
 */
static bool
choose_check(const struct auth *a, const struct auth_who *who, struct slow_check *ret)
{
	if (who->at.off)
		return false;
	if (who->at.by == PERSON_DOOR_BY_ANY)
		return !auth_has_admins(a);
	if (who->at.by == PERSON_DOOR_BY_OWN)
		ret->verifier = who->verifier;
	else if (who->at.count)
		ret->at = &who->at;
	return false;
}

enum status
auth_password_check(struct auth *a, struct str name, struct str password,
		    const struct auth_client *client, struct arena *arena, struct auth_who *ret,
		    struct err *err)
{
	struct person_proof proof = { .digest = { 0 } };
	struct slow_check check = { .password = password };
	struct lockout_key at;
	const struct lockout_key *key; /* NULL: failures are not counted */
	struct verifier nobody;
	struct hash_turn turn;
	enum status status;
	bool has; /* there is something that the password may match */

	if (password.len > AUTH_PASSWORD_BYTES || name.len > AUTH_NAME_BYTES)
		return auth_password_is_wrong(err);
	status = auth_find(a, name, client, arena, ret, err);
	if (status != STATUS_OK && status != STATUS_NOT_FOUND)
		return status;
	key = auth_lockout_key(a, name, client, ret, &at) ? &at : NULL;
	TRY(auth_lockout_check(a, key, ret, err));
	TRY(person_proof_digest(name, password, &proof));
	memcpy(proof.identity, ret->identity, sizeof(proof.identity));
	if (choose_check(a, ret, &check))
		return STATUS_OK;
	has = check.verifier || check.at;
	if (status == STATUS_OK && has && person_cache_has(&proof)) {
		metric_add_at(&password_checks, PASSWORD_REMEMBERED, 1);
		return STATUS_OK;
	}
	if (!has) {
		TRY(nobody_like_somebody(a, name, client, &nobody));
		check.verifier = &nobody;
	}
	turn_init(&proof, client, &turn);
	TRY(check_in_turn(a, &check, &turn, client, err));
	if (!check.computed)
		return err_set(err, STATUS_NOMEM, "cannot hash a password");
	/*
	 * Many passwords may be tried at once. Those beyond the threshold do not learn whether they
	 * were right.
	 */
	TRY(auth_lockout_check(a, key, ret, err));
	if (!has || !check.matches) {
		if (key)
			lockout_count(&a->lockout, key);
		return auth_password_is_wrong(err);
	}
	auth_password_is_right();
	person_cache_add(&proof);
	ret->fresh = true;
	return STATUS_OK;
}
