/*
 * What operations on people answer when a call of the store fails, when their memory ends and when
 * what they read is damaged; and by what they conflict (probe.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "access/person.h"
#include "access/person_door.h"
#include "catalog/store_format.h"
#include "probe.h"
#include "store.h"

struct world {
	char dir[64];
	struct kv_store *store;
};

static void
say(struct probe *p, struct str s)
{
	buf_append_str(&p->said, s);
	buf_append_byte(&p->said, '|');
}

static enum status
say_person(void *arg, const struct person *person)
{
	struct probe *p = arg;

	say(p, person->name);
	for (size_t i = 0; i < person->roles_count; i++)
		say(p, person->roles[i]);
	if (person->has_verifier) {
		buf_printf(&p->said, "%d %d %llu", person->verifier.scheme, person->verifier.digest,
			   (unsigned long long)person->verifier.rounds);
		say(p, str_of(person->verifier.salt, person->verifier.salt_len));
		say(p, str_of(person->verifier.hash, person->verifier.hash_len));
	}
	if (person->has_scram)
		buf_printf(&p->said, "%llu", (unsigned long long)person->scram.rounds);
	say(p, str_of(person->version, sizeof(person->version)));
	return STATUS_OK;
}

static struct str roles[] = { { "cook", 4 }, { "bottle washer", 13 } };

/* Salts and hashes that are always the same, so that what is stored is. */
static struct person
jan(void)
{
	struct person p = { .name = STR("jan"), .roles = roles, .roles_count = 2 };

	p.has_verifier = true;
	p.verifier.scheme = VERIFIER_PBKDF2;
	p.verifier.digest = VERIFIER_SHA256;
	p.verifier.rounds = 10;
	p.verifier.hash_len = 32;
	p.verifier.salt_len = 16;
	memset(p.verifier.salt, 's', 16);
	memset(p.verifier.hash, 'h', 32);
	return p;
}

static struct person
ada(void)
{
	return (struct person){ .name = STR("ada") };
}

static enum status
put(struct probe *p)
{
	const struct person one = jan();

	probe_begin(p);
	return person_put(p->tx, &one, &p->err);
}

static enum status
get_of(struct probe *p, const char *name)
{
	struct person found;

	probe_begin(p);
	TRY(person_get(p->tx, str_from_cstr(name), p->arena, &found, &p->err));
	return say_person(p, &found);
}

static enum status
get(struct probe *p)
{
	return get_of(p, "jan");
}

static enum status
get_without_password(struct probe *p)
{
	return get_of(p, "ada");
}

static enum status
get_nobody(struct probe *p)
{
	return get_of(p, "nobody");
}

static enum status
clear(struct probe *p)
{
	probe_begin(p);
	return person_clear(p->tx, STR("jan"));
}

static enum status
clear_nobody(struct probe *p)
{
	probe_begin(p);
	return person_clear(p->tx, STR("nobody"));
}

static enum status
clear_all(struct probe *p)
{
	probe_begin(p);
	return person_clear_all(p->tx);
}

static enum status
each(struct probe *p)
{
	probe_begin(p);
	return person_each(p->tx, p->arena, say_person, p, &p->err);
}

/* ---- At a door ---- */

static struct person_door
at_door(void)
{
	struct person_door at = { .by = PERSON_DOOR_BY_LIST, .rounds = 10, .count = 2 };

	memset(at.salt, 's', sizeof(at.salt));
	memset(at.hashes, 'h', sizeof(at.hashes));
	return at;
}

static enum status
put_at_door(struct probe *p)
{
	const struct person_door at = at_door();

	probe_begin(p);
	return person_door_put(p->tx, STR("jan"), STR("redis"), &at, &p->err);
}

static enum status
put_plain_at_door(struct probe *p)
{
	const struct person_door at = { .by = PERSON_DOOR_BY_OWN };

	probe_begin(p);
	return person_door_put(p->tx, STR("jan"), STR("redis"), &at, &p->err);
}

static enum status
get_at(struct probe *p, const char *door)
{
	struct person_door at;

	probe_begin(p);
	TRY(person_door_get(p->tx, STR("jan"), str_from_cstr(door), &at, &p->err));
	buf_printf(&p->said, "%d %d %llu %zu", at.off, at.by, (unsigned long long)at.rounds,
		   at.count);
	say(p, str_of(at.salt, sizeof(at.salt)));
	say(p, str_of(at.hashes, sizeof(at.hashes)));
	return STATUS_OK;
}

static enum status
get_at_door(struct probe *p)
{
	return get_at(p, "redis");
}

static enum status
get_at_another(struct probe *p)
{
	return get_at(p, "other");
}

static const struct probe_op people[] = {
	{ "put", put, "ok, conflicts 0 0+0" },
	{ "get", get, "ok, conflicts 1 0+0; 1: C/CNC~C~C~C~C~C~C" },
	{ "get one without a password", get_without_password, "ok, conflicts 1 0+0; 1: C/CNC~C" },
	{ "get nobody", get_nobody, "not_found, conflicts 1 0+0" },
	{ "clear", clear, "ok, conflicts 0 0+0" },
	{ "clear nobody", clear_nobody, "ok, conflicts 0 0+0" },
	{ "clear all", clear_all, "ok, conflicts 0 0+0" },
	{ "put at a door", put_at_door, "ok, conflicts 0 0+0" },
	{ "put plain at a door", put_plain_at_door, "ok, conflicts 0 0+0" },
	{ "get at a door", get_at_door, "ok, conflicts 1 0+0; 1: C/CNCOC~C~C~C~C" },
	{ "get at another door", get_at_another, "ok, conflicts 1 0+0" },
	{ "each", each, "ok, conflicts 0 0+0; 1: O/O 2: C/CNC~C 3: C/CNC~C~C~C~C~C~C" },
	{ "verify", probe_verify,
	  "ok, conflicts 0 0+0; 1: ~/~O 2: ~/O 3: ~/~O~ 4: ~/~O~O~O~O~O~O~ 5: ~/~O~O~O~O~O~ "
	  "6: ~O~/~O~O~O 7-8: O/O" },
};

static enum status
fill_body(struct kv_tx *tx, void *arg)
{
	const struct person first = jan(), second = ada();
	const struct person_door at = at_door();

	(void)arg;
	TRY(person_put(tx, &first, NULL));
	TRY(person_door_put(tx, first.name, STR("redis"), &at, NULL));
	return person_put(tx, &second, NULL);
}

static int
setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct world *w = calloc(1, sizeof(*w));
	struct err err = { 0 };
	char url[256];

	test_show_failures();
	person_register();
	person_door_register();
	test_make_dir("probe", w->dir, sizeof(w->dir));
	probe_store_url(w->dir, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &w->store, &err), STATUS_OK);
	assert_int_equal(kv_run(w->store, fill_body, NULL, NULL, &err), STATUS_OK);
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;

	kv_close(w->store);
	test_remove_tree(w->dir);
	free(w);
	return 0;
}

static void
people_hand_failures_on(void **state)
{
	struct world *w = *state;

	probe_each(w->store, w, people, sizeof(people) / sizeof(people[0]));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(people_hand_failures_on, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
