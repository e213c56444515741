/*
 * Three servers of one store build the same views: a chore of the one that holds the lease. Again
 * and again the holder loses the lease in the middle of a build, as a process does that the others
 * take for dead. It goes on beside its successor for a while, and is ended in some step of it.
 */
#include "views_world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "catalog/chores.h"
#include "catalog/lease.h"

enum {
	SERVERS = 3,
	KILLS = 3,
	WRITTEN = MANY / (KILLS + 1), /* documents before the first kill, and after each */
	DOCS_A_CALL = 20,             /* of a map, which naps then: builds must not be quick */
	NAP_MS = 10,
	PAUSE_MS = 10,
	SOON_MS = 60 * 1000,
};

struct view_server {
	struct world *w;
	struct view_engine *engine;
	struct chores *chores;
	struct event killed;
	size_t docs_a_call;
	atomic_uint turns; /* that have begun */
	atomic_bool busy;  /* in a turn */
};

static void
nap(uint64_t ms)
{
	struct event never;

	event_init(&never);
	(void)event_wait(&never, clock_after_ms(ms));
}

static enum status
slow_map(void *arg, const struct view_design *design, const struct str *docs, size_t count,
	 struct arena *arena, struct view_sink *sink, size_t *ret_done,
	 struct view_error *ret_error, struct err *err)
{
	nap(NAP_MS);
	return views_functions.map(arg, design, docs, count, arena, sink, ret_done, ret_error, err);
}

static struct view_functions slow_functions; /* views_functions with slow_map() */

/* Until it fails the test, a condition that another thread brings about. */
static void
await(bool (*holds)(void *arg), void *arg)
{
	uint64_t end_ns = clock_after_ms(SOON_MS);

	while (!holds(arg)) {
		assert_true(clock_mono_ns() < end_ns);
		nap(1);
	}
}

static enum status
build_turn(void *arg, struct chore_turn *turn, struct err *err)
{
	struct view_server *s = arg;
	struct view_target target = target_of(s->w);
	struct catalog_seq least = newest(s->w);
	struct arena *arena = arena_new(WORK_BYTES);
	struct view_error error = { 0 };
	enum status status;

	if (!arena)
		return STATUS_NOMEM;
	(void)turn;
	target.functions = &slow_functions;
	target.arg = &s->docs_a_call;
	atomic_store(&s->busy, true);
	atomic_fetch_add(&s->turns, 1);
	status = view_update(s->engine, &target, &least, WAIT_FOREVER, &s->killed, arena, &error,
			     err);
	atomic_store(&s->busy, false);
	arena_free(arena);
	return status == STATUS_CANCELLED ? STATUS_OK : status;
}

static void
server_start(struct view_server *s, struct world *w)
{
	const struct view_engine_config config = { .store = w->f->store };
	struct err err = { 0 };

	*s = (struct view_server){ .w = w, .docs_a_call = DOCS_A_CALL };
	event_init(&s->killed);
	assert_int_equal(view_engine_new(&config, &s->engine, &err), STATUS_OK);
	s->chores = chores_new(w->f->store);
	assert_non_null(s->chores);
	chores_add(s->chores, &(struct chore){
				      .name = "build",
				      .run = build_turn,
				      .arg = s,
				      .leased = true,
				      .pause_ms = PAUSE_MS,
			      });
	assert_int_equal(chores_start(s->chores, &err), STATUS_OK);
}

/* Its update ends in the midst of a batch: what it has not committed is lost. */
static void
server_kill(struct view_server *s)
{
	event_set(&s->killed);
	chores_stop(s->chores);
	chores_free(s->chores);
	view_engine_free(s->engine);
}

/* Which server is in a turn. */
struct builder {
	const struct view_server *servers;
	size_t number;
};

static bool
somebody_builds(void *arg)
{
	struct builder *b = arg;

	for (b->number = 0; b->number < SERVERS; b->number++)
		if (atomic_load(&b->servers[b->number].busy))
			return true;
	return false;
}

static size_t
await_builder(const struct view_server *servers)
{
	struct builder b = { .servers = servers };

	await(somebody_builds, &b);
	return b.number;
}

struct succession {
	const struct view_server *servers;
	size_t holder;
	unsigned turns[SERVERS];
};

static bool
another_builds(void *arg)
{
	const struct succession *s = arg;

	for (size_t i = 0; i < SERVERS; i++)
		if (i != s->holder && atomic_load(&s->servers[i].turns) > s->turns[i])
			return true;
	return false;
}

static enum status
clear_lease(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf key = BUF_INIT(LEASE_KEY_BYTES);

	(void)arg;
	TRY(lease_record_key(LEASE_CHORES, STR("build"), &key));
	return kv_clear(tx, buf_str(&key));
}

/* The lease goes from the server that builds to another one, which begins to build beside it. */
static void
pass_lease(struct world *w, const struct view_server *servers)
{
	struct succession succession = { .servers = servers, .holder = await_builder(servers) };

	for (size_t i = 0; i < SERVERS; i++)
		succession.turns[i] = atomic_load(&servers[i].turns);
	while (!another_builds(&succession)) {
		/*
		 * The old holder may have been the first to ask again: it would be so each time if
		 * the lease went at the same point of their beats.
		 */
		assert_int_equal(kv_run(w->f->calm, clear_lease, NULL, NULL, NULL), STATUS_OK);
		nap(leases_beat_ms() / 2 + rand_seq_below(&w->rand, leases_beat_ms()));
	}
}

static void
views_survive_the_holders_of_their_lease(void **state)
{
	struct world *w = world_new(*state);
	struct view_server servers[SERVERS];

	slow_functions = views_functions;
	slow_functions.map = slow_map;
	put_many(w, 0, WRITTEN);
	for (size_t i = 0; i < SERVERS; i++)
		server_start(&servers[i], w);
	for (int kill = 1; kill <= KILLS; kill++) {
		size_t victim;

		pass_lease(w, servers);
		put_many(w, kill * WRITTEN, kill < KILLS ? (kill + 1) * WRITTEN : MANY);
		victim = await_builder(servers);
		nap(rand_seq_below(&w->rand, 10 * NAP_MS));
		server_kill(&servers[victim]);
		server_start(&servers[victim], w);
	}
	(void)await_builder(servers);
	for (size_t i = 0; i < SERVERS; i++)
		server_kill(&servers[i]);
	update(w);
	check_many(w, MANY);
	world_free(w);
}

static int
setup_shared(void **state)
{
	/* Reads and commits of all servers fail now and then, and the store says it is shared. */
	static const char faults[] = "shared=1,rate=0.05,delay=0.1,watch=0.1";

	assert_int_equal(setenv("FROND_TEST_FAULTS", faults, 1), 0);
	return fixture_setup(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(views_survive_the_holders_of_their_lease,
						setup_shared, fixture_teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
