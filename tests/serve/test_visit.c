/* Who is on a connection: people who change while they are there, as a door's commands see it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "access/people.h"
#include "access/person.h"
#include "base/clock.h"
#include "base/log.h"
#include "catalog/store_format.h"
#include "loop/asking.h"
#include "loop/step.h"
#include "loop/task.h"
#include "net/memory.h"
#include "net/session.h"
#include "serve/beside.h"
#include "serve/clients.h"
#include "store.h"

enum {
	ROUNDS = 10,        /* of a password */
	LONG_BYTES = 50000, /* of a role */
	BUDGET_BYTES = 1024 * 1024,
	LOG_BYTES = 64 * 1024,
};

static const struct visit_command anybody = { .is_open = true };
static const struct visit_command always = { .is_open = true, .always = true };

/* A door's struct for a connection. */
struct client {
	struct clients_entry entry; /* first */
	struct str role;            /* in the person's arena: what it makes of the roles */
	unsigned known, forgotten, changes, looks;
	bool cannot_tell;  /* what its person may */
	bool depends;      /* on others' records */
	bool changes_end;  /* the connection */
	bool nobodys_ends; /* where nobody has logged in */
};

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct settings *settings;
	struct settings_live *live;
	struct people_news *news;
	struct visit_rules rules;
	struct clients all;
	struct client client;
};

/* ---- The door ---- */

static const char *const classes[] = { "any" };

OPS_DOOR(door, "visits", classes, LOG_LEVEL_INFO, clients_end_op_of);

static enum status
client_know(struct clients_entry *e, const struct visitor_found *found, struct err *err)
{
	struct client *c = (struct client *)e;

	if (c->cannot_tell)
		return err_set(err, STATUS_FULL, "what people may cannot be read");
	c->role = found->user.roles_count ? found->user.roles[0] : STR("");
	c->known++;
	return STATUS_OK;
}

static void
client_forget(struct clients_entry *e)
{
	struct client *c = (struct client *)e;

	c->role = STR("");
	c->forgotten++;
}

static bool
client_depends(const struct clients_entry *e)
{
	return ((const struct client *)e)->depends;
}

static bool
client_changed(struct clients_entry *e)
{
	struct client *c = (struct client *)e;

	c->changes++;
	return !c->changes_end;
}

static bool
client_look_nobody(struct clients_entry *e)
{
	struct client *c = (struct client *)e;

	c->looks++;
	e->who.undecided = false;
	return !c->nobodys_ends;
}

/* ---- The fixture ---- */

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
	test_make_dir("visit", f->dir, sizeof(f->dir));
	test_store_url(f->dir, url, sizeof(url));
	if (catalog_store_open(url, &options, &f->store, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	f->settings = settings_new(groups, 2);
	assert_non_null(f->settings);
	assert_int_equal(settings_set_person(f->settings, STR("root"),
					     STR("-pbkdf2-00112233445566778899aabbccddeeff"
						 "00112233,salt,10"),
					     false, NULL),
			 STATUS_OK);
	if (settings_live_new(f->store, f->settings, &people_live_ops, NULL, &f->live, &err) !=
	    STATUS_OK)
		fail_msg("%s", err.text);
	f->news = people_news_new(f->store, f->live);
	assert_non_null(f->news);
	f->rules = (struct visit_rules){ .door = "visits",
					 .nobody = STR("nobody"),
					 .store = f->store,
					 .live = f->live,
					 .news = f->news,
					 .know = client_know,
					 .forget = client_forget };
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	clients_remove(&f->client.entry);
	clients_entry_fini(&f->client.entry);
	clients_fini(&f->all);
	people_news_free(f->news);
	settings_live_free(f->live);
	settings_free(f->settings);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

/* A connection begins at a door with these rules. */
static struct clients_entry *
begin(struct fixture *f)
{
	struct clients_entry *e = &f->client.entry;

	clients_init(&f->all, 0, &f->rules);
	clients_entry_init(e, &f->all, NULL);
	visit_reset(e);
	clients_add(e);
	assert_string_equal(e->user, "nobody");
	assert_false(e->who.authenticated);
	return e;
}

struct change {
	const char *password; /* NULL: the person goes */
	struct str role;
};

static enum status
change_body(struct kv_tx *tx, void *arg)
{
	struct change *c = arg;
	struct person p = {
		.name = STR("jan"), .roles = &c->role, .roles_count = 1, .has_verifier = true
	};

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
change(struct fixture *f, const char *password, const char *role)
{
	struct change c = { password, str_from_cstr(role) };

	assert_int_equal(kv_run(f->store, change_body, &c, NULL, NULL), STATUS_OK);
	people_news_changed(f->news);
}

static void
log_in(struct clients_entry *e)
{
	struct err err = { 0 };

	if (visit_login(e, "password", STR("jan"), STR("apple"), &err) != STATUS_OK)
		fail_msg("%s", err.text);
	assert_string_equal(e->user, "jan");
	assert_true(e->limited);
}

/* A command comes. */
static void
admit(struct clients_entry *e)
{
	struct err err = { 0 };

	if (visit_admit(e, &anybody, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	clients_leave(e);
}

/* ---- Tests ---- */

static void
each_command_is_of_the_person_as_now(void **state)
{
	struct fixture *f = *state;
	struct clients_entry *e = begin(f);
	struct client *c = &f->client;
	struct err err = { 0 };

	assert_int_equal(visit_login(e, "password", STR("jan"), STR("apple"), &err),
			 STATUS_UNAUTHORIZED);
	assert_int_equal(visit_audit_by(e).user.len, 0);
	change(f, "apple", "cook");
	log_in(e);
	assert_true(str_eq(visit_audit_by(e).user, STR("jan")));
	assert_true(str_eq(c->role, STR("cook")));
	admit(e);
	assert_int_equal(c->known, 1); /* nothing has changed since the login */
	change(f, "apple", "waiter");
	assert_false(visit_is_current(e));
	admit(e);
	assert_true(str_eq(c->role, STR("waiter")));
	assert_true(visit_is_current(e));
	assert_int_equal(e->followed, people_news_count(f->news));
	change(f, "apple", "guest");
	assert_int_equal(visit_admit(e, &always, NULL), STATUS_OK);
	clients_leave(e);
	assert_true(str_eq(c->role, STR("guest")));
	/* Another password: whoever gave the old one is nobody now. */
	change(f, "pear", "guest");
	admit(e);
	assert_string_equal(e->user, "nobody");
	assert_false(e->who.authenticated || e->limited);
	assert_int_equal(c->forgotten, 2);
	change(f, "apple", "guest");
	log_in(e);
	visit_reset(e);
	assert_string_equal(e->user, "nobody");
}

/* The log goes to a file from here on, whose lines refusals_end() counts. */
static int log_before, log_file;

static void
refusals_begin(void)
{
	char path[] = "/tmp/frond-visit-XXXXXX";

	log_file = mkstemp(path);
	assert_true(log_file >= 0);
	(void)unlink(path);
	(void)fflush(stderr);
	log_before = dup(STDERR_FILENO);
	assert_int_equal(dup2(log_file, STDERR_FILENO), STDERR_FILENO);
}

/* Each refusal has this in its line; returns how many there are. */
static size_t
refusals_end(const char *expected)
{
	static char text[LOG_BYTES];
	size_t count = 0;
	ssize_t n;

	(void)fflush(stderr);
	n = pread(log_file, text, sizeof(text) - 1, 0);
	assert_int_equal(dup2(log_before, STDERR_FILENO), STDERR_FILENO);
	(void)close(log_before);
	(void)close(log_file);
	assert_true(n >= 0);
	text[n] = '\0';
	for (char *at = text; (at = strstr(at, "event=refused")); at++) {
		assert_non_null(strstr(at, expected));
		count++;
	}
	return count;
}

static void
what_is_for_those_who_have_logged_in_is_refused_to_others_in_one_line(void **state)
{
	const struct visit_command find = { .name = STR("find") };
	const struct visit_command abort = { .name = STR("abort"), .always = true };
	struct fixture *f = *state;
	struct clients_entry *e;
	struct err err = { 0 };

	f->rules.no_login = "NOAUTH";
	e = begin(f);
	refusals_begin();
	assert_int_equal(visit_admit(e, &find, &err), STATUS_UNAUTHORIZED);
	assert_string_equal(err.text, "nobody has logged in");
	clients_leave(e);
	assert_int_equal(refusals_end("method=find path=\"\" status=NOAUTH left_out=0 user=\"\""),
			 1);
	refusals_begin();
	assert_int_equal(visit_admit(e, &abort, NULL), STATUS_UNAUTHORIZED);
	admit(e);
	assert_int_equal(refusals_end("method=abort"), 1);
	change(f, "apple", "cook");
	log_in(e);
	refusals_begin();
	assert_int_equal(visit_admit(e, &find, &err), STATUS_OK);
	clients_leave(e);
	/* The person is gone, and nobody has logged in again. */
	change(f, NULL, "");
	assert_int_equal(visit_admit(e, &find, &err), STATUS_UNAUTHORIZED);
	clients_leave(e);
	assert_int_equal(refusals_end("method=find"), 1);
}

static void
an_operation_that_its_person_has_no_right_to_ends_with_one_line(void **state)
{
	const struct visit_refused refused = { STR("shop"), STR("books") },
				   at = { STR("shop"), STR("") };
	struct fixture *f = *state;
	struct clients_entry *e = begin(f);
	struct ops_op beside = { 0 };

	change(f, "apple", "cook");
	log_in(e);
	for (size_t i = 0; i < 2; i++) {
		refusals_begin();
		assert_int_equal(visit_admit(e, &anybody, NULL), STATUS_OK);
		clients_op_begin(e, &door, "find", STR(""), 0, STR(""), STR(""));
		visit_op_end(e, &e->op, i ? &refused : NULL);
		clients_leave(e);
		assert_int_equal(refusals_end("method=find path=\"shop.books\" status=Unauthorized "
					      "left_out=0 user=\"jan\""),
				 i);
	}
	refusals_begin();
	assert_true(beside_enter(e, 1));
	assert_int_equal(beside_admit(e, &beside, &anybody, NULL), STATUS_OK);
	beside_op_begin(e, &beside, &door, "count", 0);
	visit_op_end(e, &beside, &at);
	ops_leave(&beside);
	beside_leave(e);
	assert_int_equal(refusals_end("method=count path=\"shop\" status=Unauthorized"), 1);
	refusals_begin();
	visit_refuse(e, STR("sort"), STR("weights"));
	assert_int_equal(refusals_end("method=sort path=\"weights\" status=Unauthorized"), 1);
}

static void
what_cannot_be_told_stays_and_is_asked_again(void **state)
{
	struct fixture *f = *state;
	struct clients_entry *e = begin(f);
	struct client *c = &f->client;
	struct err err = { 0 };

	change(f, "apple", "cook");
	c->cannot_tell = true;
	assert_int_equal(visit_login(e, "password", STR("jan"), STR("apple"), &err), STATUS_FULL);
	assert_false(e->who.authenticated);
	c->cannot_tell = false;
	log_in(e);
	admit(e);
	change(f, "apple", "waiter");
	c->cannot_tell = true;
	admit(e);
	assert_true(str_eq(c->role, STR("cook")));
	c->cannot_tell = false;
	admit(e);
	assert_true(str_eq(c->role, STR("waiter")));
}

static void
what_others_give_is_asked_for_though_the_person_is_the_same(void **state)
{
	struct fixture *f = *state;
	struct client *c = &f->client;
	struct clients_entry *e;

	f->rules.depends = client_depends;
	e = begin(f);
	change(f, "apple", "cook");
	log_in(e);
	admit(e);
	assert_int_equal(c->known, 1);
	c->depends = true;
	people_news_changed(f->news);
	admit(e);
	assert_int_equal(c->known, 2);
	c->cannot_tell = true;
	people_news_changed(f->news);
	admit(e);
	assert_false(visit_is_current(e));
	c->cannot_tell = false;
	admit(e);
	assert_true(visit_is_current(e));
	assert_true(str_eq(c->role, STR("cook")));
}

static void
a_connection_ends_with_its_person_or_rights_if_its_door_wants_that(void **state)
{
	struct fixture *f = *state;
	struct client *c = &f->client;
	struct err err = { 0 };
	struct clients_entry *e;

	f->rules.changed = client_changed;
	f->rules.ends_with_person = true;
	e = begin(f);
	change(f, "apple", "cook");
	log_in(e);
	change(f, "apple", "waiter");
	admit(e);
	assert_int_equal(c->changes, 1);
	c->changes_end = true;
	change(f, "apple", "cook");
	assert_int_equal(visit_admit(e, &anybody, &err), STATUS_CANCELLED);
	assert_string_equal(err.text, "the person has gone");
	/* It may have been a wait below a command that found that: the next one finds it, too. */
	c->changes_end = false;
	assert_int_equal(visit_admit(e, &anybody, &err), STATUS_CANCELLED);
	change(f, NULL, "");
	assert_int_equal(visit_follow(e), STATUS_CANCELLED);
}

static void
a_door_looks_itself_what_nobody_may(void **state)
{
	struct fixture *f = *state;
	struct client *c = &f->client;
	struct clients_entry *e;

	f->rules.look_nobody = client_look_nobody;
	e = begin(f);
	admit(e);
	assert_int_equal(c->looks, 0);
	e->who.undecided = true;
	admit(e);
	assert_int_equal(c->looks, 1);
	c->nobodys_ends = e->who.undecided = true;
	assert_int_equal(visit_admit(e, &always, NULL), STATUS_CANCELLED);
	clients_leave(e);
	/* Somebody is never undecided. */
	change(f, "apple", "cook");
	log_in(e);
	admit(e);
	assert_int_equal(c->looks, 2);
}

static void
the_person_stays_while_operations_run_beside(void **state)
{
	struct fixture *f = *state;
	struct clients_entry *e = begin(f);
	struct client *c = &f->client;
	struct ops_op op = { 0 };

	change(f, "apple", "cook");
	log_in(e);
	assert_false(beside_enter(e, 1)); /* nobody has looked since the login */
	admit(e);
	assert_true(beside_enter(e, 2));
	assert_int_equal(beside_admit(e, &op, &anybody, NULL), STATUS_OK);
	change(f, "apple", "waiter");
	assert_false(beside_enter(e, 1));
	admit(e);
	assert_true(str_eq(c->role, STR("cook")));
	ops_leave(&op);
	beside_leave(e);
	beside_leave(e);
	admit(e);
	assert_true(str_eq(c->role, STR("waiter")));
	assert_true(beside_enter(e, 1));
	beside_leave(e);
}

static void
what_is_kept_of_a_person_counts_in_the_memory_of_all(void **state)
{
	struct fixture *f = *state;
	struct clients_entry *e = begin(f);
	struct budget budget;
	struct budget_part of;
	char role[LONG_BYTES];
	size_t used;

	budget_init(&budget, BUDGET_BYTES);
	budget_part_init(&of, &budget);
	net_memory_part_init(&e->person, &of, false);
	net_memory_part_keep(&e->person);
	change(f, "apple", "cook");
	assert_int_equal(budget_held(&budget), 0);
	log_in(e);
	used = e->person.used_bytes;
	assert_true(used > 0 && budget_held(&budget) >= used);
	memset(role, 'x', sizeof(role) - 1);
	role[sizeof(role) - 1] = '\0';
	change(f, "apple", role);
	admit(e);
	assert_true(e->person.used_bytes > LONG_BYTES);
	assert_true(budget_held(&budget) > LONG_BYTES);
	visit_reset(e);
	assert_int_equal(e->person.used_bytes, 0);
	assert_int_equal(budget_held(&budget), 0);
	log_in(e);
	budget_part_release(&e->person);
	budget_fini(&budget);
	net_memory_part_init(&e->person, NULL, false);
}

static enum status
may_as_cook(void *arg)
{
	return str_eq(((struct client *)arg)->role, STR("cook")) ? STATUS_OK : STATUS_FORBIDDEN;
}

static void
a_command_that_waits_asks_what_its_person_may_now(void **state)
{
	struct fixture *f = *state;
	struct clients_entry *e = begin(f);
	struct net_session session = { 0 };

	event_init(&session.closed);
	event_init(&session.stopping);
	e->op.session = &session;
	change(f, "apple", "cook");
	log_in(e);
	assert_int_equal(visit_admit(e, &anybody, NULL), STATUS_OK);
	clients_op_begin(e, &door, "wait", STR(""), 0, STR(""), STR(""));
	visit_may(e, may_as_cook, &f->client);
	assert_int_equal(visit_check_waiting(e), STATUS_OK);
	people_news_changed(f->news);
	assert_int_equal(visit_check_waiting(e), STATUS_OK);
	change(f, "apple", "waiter");
	assert_int_equal(visit_check_waiting(e), STATUS_FORBIDDEN);
	e->op.until_ns = 1;
	assert_int_equal(visit_check_waiting(e), STATUS_TIMEOUT);
	e->op.until_ns = 0;
	/* Where the door says nothing, the person has to be there. */
	visit_may(e, NULL, NULL);
	change(f, "apple", "cook");
	assert_int_equal(visit_check_waiting(e), STATUS_OK);
	change(f, NULL, "");
	assert_int_equal(visit_check_waiting(e), STATUS_UNAUTHORIZED);
	visit_may(e, may_as_cook, &f->client);
	visit_op_end(e, &e->op, NULL);
	assert_null(e->may.ask);
	event_set(&session.stopping);
	assert_int_equal(visit_check_waiting(e), STATUS_CANCELLED);
	e->op.session = NULL;
}

/* As if the thread were the fiber of this task. */
static void
begin_work(struct fixture *f, struct task *task, struct net_session *session)
{
	struct clients_entry *e = begin(f);

	*session = (struct net_session){ 0 };
	event_init(&session->lost);
	event_init(&session->closed);
	event_init(&session->stopping);
	*task = (struct task){ 0 };
	step_init(&task->steps);
	step_enter(&task->steps);
	e->op.session = session;
	change(f, "apple", "cook");
	log_in(e);
	assert_int_equal(visit_admit(e, &anybody, NULL), STATUS_OK);
	clients_op_begin(e, &door, "wait", STR(""), 0, STR(""), STR(""));
}

static void
end_work(struct fixture *f)
{
	struct clients_entry *e = &f->client.entry;

	visit_op_end(e, &e->op, NULL);
	assert_int_equal(step_ask_waiting(), STATUS_OK);
	assert_int_equal(e->who.former_count, 0);
	e->op.session = NULL;
	step_leave();
}

static void
a_wait_below_the_door_ends_with_the_person_and_the_operation(void **state)
{
	struct fixture *f = *state;
	struct clients_entry *e = &f->client.entry;
	struct net_session session;
	struct task task;
	struct event never;
	struct event *events[] = { &never };
	size_t which;

	begin_work(f, &task, &session);
	event_init(&never);
	visit_may(e, may_as_cook, &f->client);
	assert_int_equal(wait_asking(events, 1, clock_after_ms(1), &which), STATUS_OK);
	assert_int_equal(which, 1);
	change(f, "apple", "waiter");
	assert_int_equal(wait_asking(events, 1, WAIT_FOREVER, &which), STATUS_FORBIDDEN);
	change(f, "apple", "cook");
	assert_int_equal(step_ask_waiting(), STATUS_OK);
	e->op.until_ns = 1;
	assert_int_equal(wait_asking(events, 1, WAIT_FOREVER, &which), STATUS_TIMEOUT);
	e->op.until_ns = 0;
	/* That the peer has sent its end does not end it: it may wait for the answer. */
	event_set(&session.closed);
	assert_int_equal(step_ask_waiting(), STATUS_OK);
	event_set(&session.lost);
	assert_int_equal(wait_asking(events, 1, WAIT_FOREVER, &which), STATUS_CANCELLED);
	e->op.ends = OPS_FINISHES;
	assert_int_equal(step_ask_waiting(), STATUS_OK);
	end_work(f);
}

static void
what_points_to_a_person_lasts_as_long_as_the_command(void **state)
{
	struct fixture *f = *state;
	struct clients_entry *e = &f->client.entry;
	struct net_session session;
	struct task task;
	struct audit_by by;
	struct str role;

	begin_work(f, &task, &session);
	by = visit_audit_by(e);
	role = f->client.role;
	for (int i = 0; i < VISITOR_FORMER; i++) {
		change(f, "apple", i % 2 ? "cook" : "waiter");
		assert_int_equal(step_ask_waiting(), STATUS_OK);
	}
	assert_true(str_eq(by.user, STR("jan")) && str_eq(role, STR("cook")));
	/* What is kept for one command is bounded. */
	change(f, "apple", "waiter");
	assert_int_equal(step_ask_waiting(), STATUS_CANCELLED);
	end_work(f);
	assert_int_equal(visit_admit(e, &anybody, NULL), STATUS_OK);
	assert_true(str_eq(f->client.role, STR("waiter")));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_command_is_of_the_person_as_now),
		TEST(what_is_for_those_who_have_logged_in_is_refused_to_others_in_one_line),
		TEST(an_operation_that_its_person_has_no_right_to_ends_with_one_line),
		TEST(what_cannot_be_told_stays_and_is_asked_again),
		TEST(what_others_give_is_asked_for_though_the_person_is_the_same),
		TEST(a_connection_ends_with_its_person_or_rights_if_its_door_wants_that),
		TEST(a_door_looks_itself_what_nobody_may),
		TEST(the_person_stays_while_operations_run_beside),
		TEST(what_is_kept_of_a_person_counts_in_the_memory_of_all),
		TEST(a_command_that_waits_asks_what_its_person_may_now),
		TEST(a_wait_below_the_door_ends_with_the_person_and_the_operation),
		TEST(what_points_to_a_person_lasts_as_long_as_the_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
