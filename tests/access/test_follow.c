/* Following people who have logged in: what is counted as a change, and what becomes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "access/auth.h"
#include "access/follow.h"
#include "access/people.h"
#include "access/person.h"
#include "access/visitor.h"
#include "base/arena_apart.h"
#include "base/log.h"
#include "base/mem.h"
#include "catalog/chores.h"
#include "catalog/store_format.h"
#include "store.h"

enum {
	ROUNDS = 10, /* of a password */
	LOOKS = 3,
};

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct settings *settings;
	struct settings_live *live;
	struct people_news *news;
	struct arena *arena;
	struct chores *chores;
	_Atomic unsigned told;
	_Atomic unsigned turns; /* of the chore behind the one that looks */
};

/* What taking the settings answers, once it has done so. */
static _Atomic enum status take_fails;

enum status __real_settings_live_take(struct settings_live *live, struct settings_held **cached,
				      enum kv_tx_kind kind, struct settings_held **ret,
				      struct kv_tx **ret_tx, struct err *err);
enum status __wrap_settings_live_take(struct settings_live *live, struct settings_held **cached,
				      enum kv_tx_kind kind, struct settings_held **ret,
				      struct kv_tx **ret_tx, struct err *err);

enum status
__wrap_settings_live_take(struct settings_live *live, struct settings_held **cached,
			  enum kv_tx_kind kind, struct settings_held **ret, struct kv_tx **ret_tx,
			  struct err *err)
{
	TRY(__real_settings_live_take(live, cached, kind, ret, ret_tx, err));
	return take_fails;
}

static int
setup(void **state)
{
	static const struct setting_group *const groups[] = { &access_setting_group,
							      &log_setting_group };
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	struct err err = { 0 };
	char url[256];

	assert_non_null(f);
	person_register();
	test_make_dir("follow", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	if (catalog_store_open(url, &options, &f->store, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	f->arena = arena_new(1 << 20);
	f->settings = settings_new(groups, 2);
	assert_non_null(f->settings);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	people_news_free(f->news);
	settings_live_free(f->live);
	settings_free(f->settings);
	arena_free(f->arena);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

/* An administrator, before begin(). */
static void
add_root(struct fixture *f)
{
	assert_int_equal(settings_set_person(f->settings, STR("root"),
					     STR("-pbkdf2-00112233445566778899aabbccddeeff"
						 "00112233,salt,10"),
					     false, NULL),
			 STATUS_OK);
}

/* With the settings as they are then. */
static void
begin(struct fixture *f)
{
	struct err err = { 0 };

	if (settings_live_new(f->store, f->settings, &people_live_ops, NULL, &f->live, &err) !=
	    STATUS_OK)
		fail_msg("%s", err.text);
	f->news = people_news_new(f->store, f->live);
	assert_non_null(f->news);
}

/* ---- People ---- */

struct change {
	const char *password; /* NULL: the person goes */
	struct str *roles;
	size_t roles_count;
};

static enum status
change_body(struct kv_tx *tx, void *arg)
{
	const struct change *c = arg;
	struct person p = { .name = STR("jan"),
			    .roles = c->roles,
			    .roles_count = c->roles_count,
			    .has_verifier = true };

	if (!c->password)
		return person_clear(tx, p.name);
	p.verifier.scheme = VERIFIER_PBKDF2;
	p.verifier.digest = VERIFIER_SHA256;
	p.verifier.rounds = ROUNDS;
	p.verifier.hash_len = 32;
	/* Another password has another salt, by which it is told from the one before. */
	memset(p.verifier.salt, c->password[0], 16);
	p.verifier.salt_len = 16;
	assert_true(verifier_derive(&p.verifier, str_from_cstr(c->password), p.verifier.hash));
	return person_put(tx, &p, NULL);
}

static void
change(struct fixture *f, const char *password, const char *role, const char *other)
{
	struct str roles[] = { str_from_cstr(role ? role : ""), str_from_cstr(other ? other : "") };
	struct change c = { password, roles, (size_t) !!role + !!other };

	assert_int_equal(kv_run(f->store, change_body, &c, NULL, NULL), STATUS_OK);
}

static struct auth_user
log_in(struct fixture *f, const struct auth_client *client)
{
	struct settings_held *held = settings_live_hold(f->live);
	struct err err = { 0 };
	struct auth_user user;

	if (auth_login(people_of(held), "session", STR("jan"), STR("apple"), client, f->arena,
		       &user, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	settings_held_unref(held);
	return user;
}

/* ---- The news ---- */

static void
tell(void *arg)
{
	((struct fixture *)arg)->told++;
}

static enum status
count_turn(void *arg, struct chore_turn *turn, struct err *err)
{
	(void)turn;
	(void)err;
	((struct fixture *)arg)->turns++;
	return STATUS_OK;
}

/* Has the chore look at least once. Its thread runs what is due in the order it was added in. */
static void
look(struct fixture *f)
{
	for (unsigned i = 0; i < 2; i++) {
		unsigned before = f->turns;

		chores_hurry(f->chores, "follow_people");
		chores_hurry(f->chores, "count_turns");
		while (f->turns == before)
			usleep(1000);
	}
}

static void
each_change_of_a_person_is_counted_and_told_once(void **state)
{
	struct fixture *f = *state;
	struct err err = { 0 };

	begin(f);
	f->chores = chores_new(NULL);
	assert_non_null(f->chores);
	people_news_listen(f->news, tell, f);
	people_news_listen(f->news, tell, f);
	people_news_chores_add(f->news, f->chores);
	chores_add(f->chores, &(struct chore){ .name = "count_turns",
					       .run = count_turn,
					       .arg = f,
					       .thread = CHORE_QUICK,
					       .pause_ms = UINT32_MAX });
	assert_int_equal(people_news_count(f->news), 1);
	assert_int_equal(chores_start(f->chores, &err), STATUS_OK);
	/* Since somebody may have logged in before the first look. */
	look(f);
	assert_int_equal(people_news_count(f->news), 2);
	change(f, "apple", "cook", NULL);
	for (unsigned i = 0; i < LOOKS; i++)
		look(f);
	assert_int_equal(people_news_count(f->news), 3);
	change(f, "apple", "waiter", NULL); /* the stamp is as long as before */
	for (unsigned i = 0; i < LOOKS; i++)
		look(f);
	assert_int_equal(people_news_count(f->news), 4);
	assert_int_equal(settings_live_reload(f->live, &err), STATUS_OK);
	for (unsigned i = 0; i < LOOKS; i++)
		look(f);
	assert_int_equal(people_news_count(f->news), 5);
	chores_stop(f->chores);
	chores_free(f->chores);
	assert_int_equal(f->told, 2 * 4);
	people_news_changed(f->news); /* by this process */
	assert_int_equal(people_news_count(f->news), 6);
	assert_int_equal(f->told, 2 * 5);
	people_news_changed(NULL);
	assert_int_equal(people_news_count(NULL), 0);
}

/* The chore's own settings cannot be read, and then they can. */
static void
a_look_that_fails_tells_of_nothing(void **state)
{
	struct fixture *f = *state;
	struct err err = { 0 };
	uint64_t before;

	begin(f);
	f->chores = chores_new(NULL);
	assert_non_null(f->chores);
	people_news_chores_add(f->news, f->chores);
	chores_add(f->chores, &(struct chore){ .name = "count_turns",
					       .run = count_turn,
					       .arg = f,
					       .thread = CHORE_QUICK,
					       .pause_ms = UINT32_MAX });
	assert_int_equal(chores_start(f->chores, &err), STATUS_OK);
	look(f);
	before = people_news_count(f->news);
	take_fails = STATUS_IO;
	change(f, "apple", "cook", NULL);
	for (unsigned i = 0; i < LOOKS; i++)
		look(f);
	assert_int_equal(people_news_count(f->news), before);
	take_fails = STATUS_OK;
	while (people_news_count(f->news) == before)
		look(f);
	assert_int_equal(people_news_count(f->news), before + 1);
	chores_stop(f->chores);
	chores_free(f->chores);
}

/* ---- Somebody on a connection ---- */

static enum follow_result
follow(struct fixture *f, struct follow *seen, const struct auth_client *client,
       const struct auth_user *user, struct auth_user *ret)
{
	enum follow_result result = follow_look(seen, f->news, f->live, client, user, f->arena,
						ret);

	assert_true(follow_is_current(seen, f->news));
	people_news_changed(f->news);
	assert_false(follow_is_current(seen, f->news));
	return result;
}

static void
somebody_gets_other_roles_or_goes(void **state)
{
	struct fixture *f = *state;
	const struct auth_client client = { .store = f->store, .by.address = STR("::1") };
	struct auth_user user, now;
	struct follow seen = { 0 };

	add_root(f);
	begin(f);
	change(f, "apple", "cook", "waiter");
	user = log_in(f, &client);
	assert_int_equal(follow(f, &seen, &client, &user, &now), FOLLOW_SAME);
	change(f, "apple", "cook", "washer");
	assert_int_equal(follow(f, &seen, &client, &user, &now), FOLLOW_CHANGED);
	assert_int_equal(now.roles_count, 2);
	assert_true(str_eq(now.roles[1], STR("washer")));
	assert_int_equal(now.method, user.method);
	change(f, "apple", "washer", "waiter");
	assert_int_equal(follow(f, &seen, &client, &user, &now), FOLLOW_CHANGED);
	change(f, "apple", "cook", NULL);
	assert_int_equal(follow(f, &seen, &client, &user, &now), FOLLOW_CHANGED);
	user = now;
	assert_int_equal(follow(f, &seen, &client, &user, &now), FOLLOW_SAME);
	change(f, "pear", "cook", NULL);
	assert_int_equal(follow(f, &seen, &client, &user, &now), FOLLOW_GONE);
	change(f, "apple", "cook", NULL);
	assert_int_equal(follow(f, &seen, &client, &user, &now), FOLLOW_SAME);
	change(f, NULL, NULL, NULL);
	assert_int_equal(follow(f, &seen, &client, &user, &now), FOLLOW_GONE);
	/* Nobody in particular was in charge before there was an administrator. */
	assert_int_equal(follow(f, &seen, &client, &(struct auth_user){ .admin = true }, &now),
			 FOLLOW_GONE);
}

static void
without_administrators_nobody_in_particular_is_in_charge(void **state)
{
	struct fixture *f = *state;
	const struct auth_client client = { .store = f->store, .by.address = STR("::1") };
	struct auth_client at_door = client;
	struct auth_user user, now;
	struct follow seen = { 0 };

	begin(f);
	at_door.door = STR("redis");
	assert_int_equal(follow(f, &seen, &client, &(struct auth_user){ .admin = true }, &now),
			 FOLLOW_SAME);
	assert_int_equal(follow(f, &seen, &at_door, &(struct auth_user){ .admin = true }, &now),
			 FOLLOW_SAME);
	/* People have no rights of their own there, but at a door that has passwords. */
	user = (struct auth_user){ .name = STR("jan") };
	assert_int_equal(follow(f, &seen, &client, &user, &now), FOLLOW_GONE);
	assert_int_equal(follow(f, &seen, &at_door, &user, &now), FOLLOW_GONE);
	change(f, "apple", "cook", NULL);
	user = log_in(f, &at_door);
	assert_int_equal(follow(f, &seen, &at_door, &user, &now), FOLLOW_SAME);
	assert_int_equal(follow(f, &seen, &client, &user, &now), FOLLOW_GONE);
}

/* ---- Visitors ---- */

static void
a_copy_of_somebody_is_whole_or_none(const struct visitor *v)
{
	struct visitor_found copy;
	bool done = false;

	/* Each allocation fails once, and those behind it do not. */
	arena_set_apart(true);
	for (uint64_t n = 1; !done; n++) {
		(void)mem_fail_only(n);
		done = visitor_copy(v, &copy);
		assert_int_equal(done, mem_fail_only(0) < n);
	}
	arena_set_apart(false);
	assert_true(str_eq(copy.user.name, v->user.name));
	assert_ptr_not_equal(copy.user.name.ptr, v->user.name.ptr);
	assert_int_equal(copy.user.roles_count, v->user.roles_count);
	for (size_t i = 0; i < copy.user.roles_count; i++)
		assert_true(str_eq(copy.user.roles[i], v->user.roles[i]));
	arena_free(copy.arena);
}

static void
a_visitor_is_nobody_until_somebody_logs_in(void **state)
{
	struct fixture *f = *state;
	const struct auth_client client = { .store = f->store, .by.address = STR("::1") };
	struct visitor v = { 0 };
	struct visitor_found found;
	struct err err = { 0 };

	add_root(f);
	begin(f);
	visitor_reset(&v, f->live);
	assert_false(v.authenticated || v.user.admin || visitor_is_limited(&v));
	assert_true(visitor_is_current(&v, f->news)); /* there is nobody to look up */
	change(f, "apple", "cook", "waiter");
	assert_int_equal(
		visitor_login(f->live, "session", STR("jan"), STR("pear"), &client, &found, &err),
		STATUS_UNAUTHORIZED);
	assert_int_equal(
		visitor_login(f->live, "session", STR("jan"), STR("apple"), &client, &found, &err),
		STATUS_OK);
	visitor_enter(&v, &found);
	assert_true(v.authenticated && visitor_is_limited(&v));
	assert_false(visitor_is_current(&v, f->news));
	assert_int_equal(visitor_look(&v, f->news, f->live, &client, &found), FOLLOW_SAME);
	assert_true(visitor_is_current(&v, f->news));
	a_copy_of_somebody_is_whole_or_none(&v);
	change(f, "apple", "cook", NULL);
	people_news_changed(f->news);
	assert_false(visitor_is_current(&v, f->news));
	assert_int_equal(visitor_look(&v, f->news, f->live, &client, &found), FOLLOW_CHANGED);
	visitor_change(&v, &found);
	assert_int_equal(v.user.roles_count, 1);
	assert_true(visitor_is_current(&v, f->news));
	visitor_reset(&v, f->live);
	assert_false(v.authenticated || v.user.name.len);
	visitor_release(&v);
}

static void
without_administrators_every_visitor_is_one(void **state)
{
	struct fixture *f = *state;
	struct visitor v = { 0 };

	begin(f);
	visitor_reset(&v, f->live);
	assert_true(v.authenticated && v.user.admin);
	assert_false(visitor_is_limited(&v));
	visitor_release(&v);
	assert_false(v.authenticated || v.user.admin);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define WITH_STORE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		WITH_STORE(each_change_of_a_person_is_counted_and_told_once),
		WITH_STORE(a_look_that_fails_tells_of_nothing),
		WITH_STORE(somebody_gets_other_roles_or_goes),
		WITH_STORE(without_administrators_nobody_in_particular_is_in_charge),
		WITH_STORE(a_visitor_is_nobody_until_somebody_logs_in),
		WITH_STORE(without_administrators_every_visitor_is_one),
	};

	return cmocka_run_group_tests_name("follow", tests, NULL, NULL);
}
