/* The chore that builds indexes, and clears dropped ones. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metric.h"
#include "base/quote.h"
#include "base/thread.h"
#include "base/timespec.h"
#include "catalog/chore_pass.h"
#include "catalog/chores.h"
#include "catalog/keys.h"
#include "catalog/tally.h"
#include "index/engine/build.h"
#include "index/engine/settings.h"

enum {
	BUILDER_TURN_MS = 1000, /* of a turn, behind which other chores have theirs */
	BUILDER_PAUSE_MS = 250, /* between two looks for work */
	BUILDER_FAILED_MS = 2000,
	BUILDER_LOOK_STEPS = 8,  /* steps between two looks at the clock, and between two rests */
	BUILDER_DATABASES = 100, /* with work, that a turn looks at */
	BUILDER_NICE = 10,       /* requests have the processor first */
	BUILDER_ARENA_BYTES = 4 * 1024 * 1024,
	BUILDER_SURVEY_PAGE = 200, /* databases that one transaction of the survey looks at */
};

METRIC_GAUGE(builds_running, "frond_index_builds_running", METRIC_NUMBER,
	     "Indexes that this process is building at the moment.");

/* Static: a process has one store, and one chore of this name. */
struct builder {
	struct index_builder_options options;
	bool surveyed;
	uint64_t after; /* the number of the database that the last turn ended with */
};

/* ---- Building one index, side by side ---- */

/* The threads of one turn at one index. */
struct team {
	const struct index_builder_options *options;
	const struct index_build_key *key;
	uint64_t until_ns;
	atomic_bool over; /* finished, or failed */
	/* Of the first thread that fails; the others stop. */
	atomic_bool failed;
	enum status status;
	struct err err;
};

struct member {
	struct team *team;
	unsigned number;
	pthread_t thread;
	bool started;
};

/* Sleeps as long as the percentage says for work that has taken from `begin_ns` until now. */
static void
member_rest(const struct team *t, uint64_t begin_ns)
{
	uint64_t worked = clock_mono_ns() - begin_ns;
	uint64_t rest = worked * (100 - t->options->percent) / t->options->percent;
	const struct timespec pause = timespec_of_ns(rest);

	(void)nanosleep(&pause, NULL);
}

static void
member_run(struct member *m)
{
	struct team *t = m->team;
	uint64_t preferred = (uint64_t)m->number * INDEX_BUILD_STRETCHES / t->options->threads;

	while (!atomic_load(&t->over) && clock_mono_ns() < t->until_ns) {
		uint64_t begin_ns = clock_mono_ns();
		enum index_state state;
		struct err err = { 0 };
		enum status status = index_build_run(t->options->store, t->key, preferred,
						     BUILDER_LOOK_STEPS, &state, &err);

		if (status != STATUS_OK || state != INDEX_BUILDING)
			atomic_store(&t->over, true);
		if (status != STATUS_OK && !atomic_exchange(&t->failed, true)) {
			t->status = status;
			t->err = err;
		}
		member_rest(t, begin_ns);
	}
}

static void *
member_main(void *arg)
{
	/* Linux gives each thread a priority of its own. */
	thread_set_nice(BUILDER_NICE);
	thread_set_name("index build");
	member_run(arg);
	return NULL;
}

/* Builds for the rest of a turn. A thread that cannot be started is done without. */
static enum status
team_run(const struct index_builder_options *options, const struct index_build_key *key,
	 uint64_t until_ns, bool *ret_more, struct err *err)
{
	struct team team = { .options = options, .key = key, .until_ns = until_ns };
	struct member members[INDEX_BUILD_THREADS_MAX];
	unsigned started = 0;

	assert(options->threads && options->threads <= INDEX_BUILD_THREADS_MAX);
	metric_gauge_add(&builds_running, 1);
	for (unsigned i = 0; i < options->threads; i++) {
		members[i] = (struct member){ .team = &team, .number = i };
		members[i].started = pthread_create(&members[i].thread, NULL, member_main,
						    &members[i]) == 0;
		started += members[i].started;
	}
	if (!started)
		member_run(&members[0]);
	for (unsigned i = 0; i < options->threads; i++)
		if (members[i].started)
			pthread_join(members[i].thread, NULL);
	metric_gauge_add(&builds_running, -1);
	*ret_more = !atomic_load(&team.over);
	if (!atomic_load(&team.failed))
		return STATUS_OK;
	*err = team.err;
	return team.status;
}

/* ---- Dropped indexes, and those of another collation ---- */

struct upkeep {
	const struct index_work_entry *entry;
	struct arena *arena;
	struct catalog_db *db; /* as the transaction sees it; NULL: it is gone */
	bool more;
	uint64_t building;               /* the number of an index that is to be built; 0: none */
	bool moving;                     /* nothing can be done at present */
	const struct index_def *renewed; /* by another one of its terms; NULL: none */
};

static void
upkeep_close(struct upkeep *u)
{
	catalog_db_unref(u->db);
	u->db = NULL;
}

static enum status
upkeep_open(struct kv_tx *tx, struct upkeep *u)
{
	enum status status;

	upkeep_close(u);
	arena_clear(u->arena);
	u->more = u->moving = false;
	u->building = 0;
	u->renewed = NULL;
	status = catalog_open(tx, NULL, u->entry->space, u->entry->db_name, &u->db, kv_tx_err(tx));
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	if (u->db->number != u->entry->db_number)
		upkeep_close(u);
	u->moving = u->db && catalog_db_check_writable(u->db, kv_tx_err(tx)) != STATUS_OK;
	return STATUS_OK;
}

struct clearing {
	struct upkeep *upkeep;
	const struct index_def *def;
};

static enum status
upkeep_clear_entries(struct index_writer *writer, void *arg)
{
	const struct clearing *c = arg;

	return index_clear(writer, c->def, INDEX_CLEAR_ENTRIES, &c->upkeep->more);
}

/* Clears a stretch of an index that nobody keeps; then the definition, if it is a dropped one. */
static enum status
upkeep_clear(struct kv_tx *tx, struct upkeep *u, const struct index_def *def)
{
	struct clearing c = { u, def };

	TRY(index_writer_run(tx, u->db, index_documents_of(u->db)->list, u->arena, u->arena,
			     upkeep_clear_entries, &c));
	if (u->more || def->state != INDEX_DROPPED)
		return STATUS_OK;
	u->more = true; /* there may be other indexes to look after */
	return index_forget(tx, u->db, def);
}

/*
 * Does the next thing to be done for a database. When nothing is left to do, clears the key that
 * lists the database as one with work (index_work_note()).
 */
static enum status
upkeep_body(struct kv_tx *tx, void *arg)
{
	struct upkeep *u = arg;
	const struct index_set *set;
	uint64_t number;

	TRY(upkeep_open(tx, u));
	if (!u->db || !index_documents_of(u->db))
		return index_work_clear(tx, u->entry->db_number);
	if (u->moving)
		return STATUS_OK;
	set = index_set_of(u->db);
	for (size_t i = 0; set && i < set->count; i++) {
		const struct index_def *def = &set->defs[i];

		if (def->state == INDEX_DROPPED || def->state == INDEX_FAILED)
			TRY(upkeep_clear(tx, u, def));
		if (u->more)
			return STATUS_OK;
		if (def->state == INDEX_STALE || index_is_stale(def)) {
			u->more = true;
			u->renewed = def;
			return index_renew(tx, u->db, def, &number, kv_tx_err(tx));
		}
		if (def->state == INDEX_BUILDING)
			u->building = def->number;
	}
	/* No cache was asked, so all definitions have been read with a conflict range: no work can
	 * have come meanwhile. */
	return u->building ? STATUS_OK : index_work_clear(tx, u->entry->db_number);
}

static void
upkeep_log(const struct upkeep *u)
{
	if (u->renewed)
		log_event(LOG_LEVEL_WARN, "index_renewed",
			  "db=\"%s\" index=\"%s\" made_with=\"%s\" reason=\"another version of ICU "
			  "orders its texts\"",
			  QUOTE_SHOW(u->entry->db_name), QUOTE_SHOW(u->renewed->name),
			  QUOTE_SHOW(u->renewed->collator));
}

/* Looks after one database until the turn ends. */
static enum status
database_run(struct builder *b, const struct index_work_entry *entry, uint64_t until_ns,
	     struct arena *arena, bool *ret_more, struct err *err)
{
	struct upkeep u = { .entry = entry, .arena = arena, .more = true };
	enum status status = STATUS_OK;

	while (status == STATUS_OK && u.more && clock_mono_ns() < until_ns) {
		status = kv_run(b->options.store, upkeep_body, &u, NULL, err);
		if (status == STATUS_OK)
			upkeep_log(&u);
	}
	upkeep_close(&u);
	*ret_more = u.more;
	if (status != STATUS_OK || !u.building)
		return status;
	return team_run(&b->options,
			&(struct index_build_key){ .space = entry->space,
						   .db_name = entry->db_name,
						   .db_number = entry->db_number,
						   .number = u.building,
						   .claims = true },
			until_ns, ret_more, err);
}

/* ---- The survey at the start ---- */

struct survey {
	struct buf last;
	struct arena *arena;
	bool more;
};

/* Finds indexes of another collation, which a process with another version of ICU has made. */
static enum status
survey_body(struct kv_tx *tx, void *arg)
{
	AUTO(buf_release) struct buf last = CATALOG_KEY_INIT;
	struct survey *s = arg;
	struct catalog_page page;
	enum status status;

	arena_clear(s->arena);
	buf_append_buf(&last, &s->last);
	status = catalog_all(tx, &last, BUILDER_SURVEY_PAGE, s->arena, &page, kv_tx_err(tx));
	if (status != STATUS_OK) { /* the page would have begun with this database */
		page = (struct catalog_page){ .more = true };
		TRY(chore_pass_over(INDEX_CHORE_BUILD, buf_str(&last), status, kv_tx_err(tx)));
	}
	for (size_t i = 0; i < page.count; i++) {
		struct catalog_db *db = &page.dbs[i];

		status = index_documents_of(db) ? index_work_survey(tx, db, kv_tx_err(tx))
						: STATUS_OK;
		if (status != STATUS_OK)
			TRY(chore_pass_over(INDEX_CHORE_BUILD, db->name, status, kv_tx_err(tx)));
	}
	s->more = page.more;
	buf_set_buf(&s->last, &last);
	return buf_status(&s->last);
}

static enum status
builder_survey(struct builder *b, struct arena *arena, struct err *err)
{
	struct survey s = { .last = CATALOG_KEY_INIT, .arena = arena, .more = true };
	enum status status = STATUS_OK;

	while (status == STATUS_OK && s.more)
		status = kv_run(b->options.store, survey_body, &s, NULL, err);
	buf_release(&s.last);
	b->surveyed = status == STATUS_OK;
	return status;
}

/* ---- A turn ---- */

struct work {
	uint64_t after;
	struct arena *arena;
	struct index_work_entry *entries;
	size_t count;
};

static enum status
work_body(struct kv_tx *tx, void *arg)
{
	struct work *w = arg;

	arena_clear(w->arena);
	return index_work_list(tx, w->after, BUILDER_DATABASES, w->arena, &w->entries, &w->count);
}

static enum status
builder_work(struct builder *b, struct arena *list, struct arena *scratch, struct chore_turn *turn,
	     struct err *err)
{
	struct work w = { .after = b->after, .arena = list };
	uint64_t until_ns = clock_after_ms(BUILDER_TURN_MS);
	enum status status;

	TRY(kv_run_read(b->options.store, work_body, &w, err));
	/* The next turn goes on behind the last database of this one: each has its turns. */
	turn->more = b->after != 0;
	b->after = 0;
	for (size_t i = 0; i < w.count; i++) {
		bool more = false;

		status = database_run(b, &w.entries[i], until_ns, scratch, &more, err);
		if (status != STATUS_OK) {
			more = false;
			TRY(chore_pass_over(INDEX_CHORE_BUILD, w.entries[i].db_name, status, err));
		}
		turn->more |= more;
		turn->done++;
		if (clock_mono_ns() >= until_ns) {
			b->after = w.entries[i].db_number;
			turn->more = true;
			return STATUS_OK;
		}
	}
	/* Work that cannot be done now stays listed, and is not to keep others from their turns. */
	if (w.count == BUILDER_DATABASES)
		b->after = w.entries[w.count - 1].db_number;
	return STATUS_OK;
}

static enum status
builder_turn(void *arg, struct chore_turn *turn, struct err *err)
{
	struct arena *list = arena_new(BUILDER_ARENA_BYTES);
	struct arena *scratch = arena_new(INDEX_BUILD_ARENA_BYTES);
	struct builder *b = arg;
	enum status status = list && scratch ? STATUS_OK : STATUS_NOMEM;

	if (status == STATUS_OK && !b->surveyed)
		status = builder_survey(b, scratch, err);
	if (status == STATUS_OK)
		status = builder_work(b, list, scratch, turn, err);
	arena_free(list);
	arena_free(scratch);
	return status;
}

void
index_chores_add(struct chores *chores, const struct index_builder_options *options)
{
	static struct builder builder;

	assert(options->threads >= 1 && options->percent >= 1 && options->percent <= 100);
	builder = (struct builder){ .options = *options };
	if (builder.options.threads > INDEX_BUILD_THREADS_MAX)
		builder.options.threads = INDEX_BUILD_THREADS_MAX;
	chores_add(chores, &(struct chore){
				   .name = INDEX_CHORE_BUILD,
				   .run = builder_turn,
				   .arg = &builder,
				   .leased = true,
				   .unlisted = true, /* each build is listed (build_progress.c) */
				   .pause_ms = BUILDER_PAUSE_MS,
				   .more_ms = 1,
				   .failed_ms = BUILDER_FAILED_MS,
			   });
}
