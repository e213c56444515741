/*
 * A login knows the plain password, so it can make verifiers that are missing, or weaker than the
 * settings want.
 *
 * A person who was imported has the hash of another server, and no keys of SCRAM. The first login
 * that hashes the password makes them. A login never fails because of this: what could not be
 * written is tried again at the next login that hashes.
 *
 * An administrator whose password was given as a hash gets keys of SCRAM in the same way, in the
 * memory of this process.
 */
#include <openssl/crypto.h>
#include <pthread.h>

#include "access/auth_int.h"
#include "access/scram_table.h"
#include "kv/log.h"

/* The people whose verifiers are being made, so that of many logins at once only one makes them. */
static struct {
	pthread_mutex_t lock; /* guards what follows */
	uint8_t versions[AUTH_RENEWALS_LIMIT][KV_VERSIONSTAMP_BYTES];
	bool taken[AUTH_RENEWALS_LIMIT];
} renewals = { .lock = PTHREAD_MUTEX_INITIALIZER };

static auth_upgrade *write_upgrade;

void
auth_set_upgrade(auth_upgrade *upgrade)
{
	write_upgrade = upgrade;
}

/* Returns a place in the table, or -1 if that record has one already, or all are taken. */
static int
renewal_begin(const struct person *person)
{
	int free = -1;
	bool twice = false;

	pthread_mutex_lock(&renewals.lock);
	for (int i = 0; i < AUTH_RENEWALS_LIMIT; i++) {
		if (!renewals.taken[i])
			free = i;
		else if (memcmp(renewals.versions[i], person->version, sizeof(person->version)) ==
			 0)
			twice = true;
	}
	if (twice)
		free = -1;
	if (free >= 0) {
		renewals.taken[free] = true;
		memcpy(renewals.versions[free], person->version, sizeof(person->version));
	}
	pthread_mutex_unlock(&renewals.lock);
	return free;
}

static void
renewal_end(int at)
{
	pthread_mutex_lock(&renewals.lock);
	renewals.taken[at] = false;
	pthread_mutex_unlock(&renewals.lock);
}

/* A stronger digest, or more rounds than the settings want, stay. */
static bool
verifier_is_weak(const struct verifier *v, uint64_t rounds)
{
	return v->scheme != VERIFIER_PBKDF2 || v->digest < VERIFIER_SHA256 || v->rounds < rounds;
}

struct scram_write {
	const struct person *person; /* as it was checked */
	const struct scram *scram;
	struct arena *arena;
	struct arena_mark mark;
};

static enum status
scram_write_body(struct kv_tx *tx, void *arg)
{
	struct scram_write *w = arg;
	struct person now;

	arena_reset(w->arena, w->mark);
	TRY(person_get(tx, w->person->name, w->arena, &now, NULL));
	/* The record has changed since: the password may be another one by now. */
	if (memcmp(now.version, w->person->version, sizeof(now.version)) != 0)
		return STATUS_OK;
	now.has_scram = true;
	now.scram = *w->scram;
	return person_put(tx, &now, NULL);
}

static enum status
renew_scram(const struct person *person, struct str password, const struct auth_hashing *how,
	    struct arena *arena)
{
	struct scram_write w = { .person = person, .arena = arena, .mark = arena_mark(arena) };
	struct scram scram;

	TRY(auth_make_scram(password, how, &scram, NULL));
	w.scram = &scram;
	return kv_run(how->client->store, scram_write_body, &w, NULL, NULL);
}

static enum status
renew_hash(const struct person *person, struct str password, const struct auth_hashing *how)
{
	/* The same salt, so that the person's cookies stay valid. */
	struct verifier v = person->verifier;
	struct scram scram;

	TRY(auth_make_verifiers(password, how, &v, &scram, NULL));
	return write_upgrade(how->client, person, &v, &scram);
}

static void
renew_admin(const struct auth_who *who, struct str password, const struct auth_hashing *how)
{
	struct scram scram;

	if (!scram_admins_are_wanted() || scram_admins_find(who->verifier, &scram))
		return;
	if (auth_make_scram(password, how, &scram, NULL) == STATUS_OK)
		scram_admins_add(who->verifier, &scram);
}

void
auth_renew(const struct auth *a, const struct auth_who *who, struct str password,
	   const struct auth_client *client, struct arena *arena)
{
	const struct person *person = &who->person;
	const struct auth_hashing how = { .rounds = a->rounds,
					  .client = client,
					  .limits = a->hash_limits };
	struct arena_mark mark = arena_mark(arena);
	enum status status;
	bool upgrade;
	int at;

	if (who->fresh && who->admin)
		renew_admin(who, password, &how);
	/* A password of one door makes no verifiers that others take. */
	if (!who->fresh || !who->is_person || auth_is_at_door(who) || !client || !client->store)
		return;
	/* A standby cannot write it; the server that it follows does, at the next login there. */
	if (kv_follows(client->store))
		return;
	upgrade = a->upgrades && write_upgrade && verifier_is_weak(&person->verifier, a->rounds);
	if (!upgrade && person->has_scram && person->scram.salt_len == SCRAM_SALT_BYTES)
		return;
	at = renewal_begin(person);
	if (at < 0)
		return;
	status = upgrade ? renew_hash(person, password, &how)
			 : renew_scram(person, password, &how, arena);
	(void)status; /* the next login that hashes the password tries again */
	renewal_end(at);
	arena_reset(arena, mark);
}
