#include "door/cql/run/news.h"

#include <assert.h>

#include "catalog/chores.h"
#include "door/cql/schema/snapshot.h"
#include "kv/state.h"

#define NEWS_CHORE "tell_cql_schemas"

static void
news_tell(void *arg, enum schema_change change, const struct schema_entry *entry)
{
	static const char *const changes[] = { [SCHEMA_CREATED] = "CREATED",
					       [SCHEMA_UPDATED] = "UPDATED",
					       [SCHEMA_DROPPED] = "DROPPED" };
	static const char *const targets[] = {
		[SCHEMA_KEYSPACE] = "KEYSPACE", [SCHEMA_TYPE] = "TYPE", [SCHEMA_TABLE] = "TABLE"
	};
	const struct cql_schema_change told = { .change = changes[change],
						.target = targets[entry->target],
						.keyspace = entry->keyspace,
						.object = entry->object };

	cql_tell_schema_change(arg, &told);
}

/* ---- The chore ---- */

struct stamp_reading {
	uint8_t stamp[TABLE_STAMP_BYTES];
};

static enum status
stamp_body(struct kv_tx *tx, void *arg)
{
	struct stamp_reading *s = arg;

	return table_schemas_stamp(tx, s->stamp);
}

/* A turn of the chore, which alone replaces a snapshot that is there. */
static enum status
news_look(void *arg, struct chore_turn *turn, struct err *err)
{
	struct cql_door *door = arg;
	struct schema_snapshot *known = atomic_load(&door->known), *now;
	struct stamp_reading s = { 0 };
	enum status status;

	(void)turn;
	if (!known)
		return STATUS_OK;
	TRY(kv_run_read(door->config.store, stamp_body, &s, err));
	if (memcmp(s.stamp, known->stamp, sizeof(s.stamp)) == 0)
		return STATUS_OK;
	status = schema_snapshot_read(door->config.store, &now, err);
	if (status == STATUS_LIMIT)
		/* Nobody can tell what has changed: drivers ask for all of it anew. */
		cql_end_registered(door);
	TRY(status);
	schema_snapshot_compare(known, now, news_tell, door);
	/*
	 * A connection puts a snapshot there only while there is none, and never reads one. So this
	 * one is still there, since nobody else replaces it, and nobody reads it when it is freed.
	 */
	known = atomic_exchange(&door->known, now);
	assert(known && known != now);
	schema_snapshot_free(known);
	return STATUS_OK;
}

void
cql_news_chores_add(struct cql_door *door, struct chores *chores)
{
	if (!kv_is_shared(door->config.store))
		return;
	door->chores = chores;
	chores_add(chores, &(struct chore){
				   .name = NEWS_CHORE,
				   .run = news_look,
				   .arg = door,
				   .thread = CHORE_QUICK,
				   .unlisted = true,
				   .pause_ms = NEWS_LOOK_MS,
			   });
}

void
cql_news_fini(struct cql_door *door)
{
	schema_snapshot_free(atomic_load(&door->known));
}

/* ---- Connections ---- */

enum status
cql_news_begin(struct cql_door *door, struct err *err)
{
	struct schema_snapshot *none = NULL, *first;

	/* One that is there is not younger than the registration: what it lacks is told. */
	if (!door->chores || atomic_load(&door->known))
		return STATUS_OK;
	TRY(schema_snapshot_read(door->config.store, &first, err));
	if (!atomic_compare_exchange_strong(&door->known, &none, first))
		schema_snapshot_free(first);
	return STATUS_OK;
}

void
cql_news_committed(struct cql_door *door, const struct cql_schema_change *change)
{
	if (door->chores)
		chores_hurry(door->chores, NEWS_CHORE);
	else
		cql_tell_schema_change(door, change);
}
