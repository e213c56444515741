/* The door: made and freed. */
#include "door/mongo/mongo.h"

#include <stdio.h>

#include "base/address.h"
#include "base/address_path.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/steady.h"
#include "catalog/chores.h"
#include "catalog/keys.h"
#include "door/mongo/index/expire.h"
#include "door/mongo/index/index_supply.h"
#include "door/mongo/serve.h"
#include "door/mongo/txn/client.h"
#include "door/mongo/txn/cursor.h"
#include "door/mongo/txn/mongo_int.h"
#include "door/mongo/txn/session.h"

enum {
	SWEEP_PAUSE_MS = 5 * 60 * 1000,
	SWEEP_MORE_MS = 100,
	EXPIRE_PAUSE_MS = 1000,
	SUPPLY_PAUSE_MS = 60 * 60 * 1000,
};

struct mongo *
mongo_new(const struct mongo_config *config)
{
	const struct visit_rules rules = mongo_visit_rules(config);
	struct mongo *m = mem_zalloc(sizeof(*m));

	if (!m)
		return NULL;
	m->config = *config;
	m->started_ns = clock_mono_ns();
	m->started_ms = clock_wall_ms();
	atomic_init(&m->txn_seconds, config->settings->transaction_seconds);
	bson_object_id_new((uint32_t)(m->started_ms / 1000), m->process_id);
	clients_init(&m->clients, 0, &rules);
	catalog_caches_init(&m->caches);
	fail_points_init(&m->fail);
	txns_init(&m->txns);
	snapshots_init(&m->snapshots);
	cursors_init(&m->cursors);
	accesses_init(&m->accesses);
	usages_init(&m->usages);
	atomic_init(&m->slow_ms, config->settings->slow_ms);
	m->swept = (struct buf)CATALOG_KEY_INIT;
	m->expired = (struct buf)BUF_SHORT(EXPIRE_PLACE_BYTES);
	m->supplied = (struct buf)BUF_SHORT(INDEX_SUPPLY_PLACE_BYTES);
	m->stream = (struct net_stream_options){
		.serve = mongo_serve,
		.arg = m,
		.output_bytes = MONGO_OUTPUT_BYTES,
	};
	return m;
}

void
mongo_stop(struct mongo *m)
{
	if (m)
		cursors_end(m);
}

void
mongo_free(struct mongo *m)
{
	if (!m)
		return;
	clients_fini(&m->clients);
	expiring_fini(&m->cursors);
	txns_fini(&m->txns);
	expiring_fini(&m->snapshots);
	counts_fini(&m->accesses);
	usages_fini(&m->usages);
	buf_release(&m->swept);
	buf_release(&m->expired);
	buf_release(&m->supplied);
	catalog_caches_fini(&m->caches);
	fail_points_fini(&m->fail);
	mem_free(m);
}

static enum status
sweep_sessions(void *arg, struct chore_turn *turn, struct err *err)
{
	struct mongo *m = arg;
	uint64_t old = steady_ms() - MONGO_SESSION_MINUTES * 60 * 1000;

	return session_sweep(m->config.store, old, &m->swept, &turn->more, err);
}

static enum status
expire_transactions(void *arg, struct chore_turn *turn, struct err *err)
{
	struct mongo *m = arg;

	(void)turn;
	(void)err;
	expiring_sweep(&m->txns.table);
	expiring_sweep(&m->snapshots);
	expiring_sweep(&m->cursors);
	return STATUS_OK;
}

static enum status
expire_documents(void *arg, struct chore_turn *turn, struct err *err)
{
	struct mongo *m = arg;

	return expire_turn(m->config.store, steady_date_ms(), &m->expired, &turn->more, &turn->done,
			   err);
}

static enum status
supply_indexes(void *arg, struct chore_turn *turn, struct err *err)
{
	struct mongo *m = arg;

	TRY(index_supply_turn(m->config.store, !m->supplied_all, &m->supplied, &turn->more,
			      &turn->done, err));
	m->supplied_all = m->supplied_all || !turn->more;
	return STATUS_OK;
}

void
mongo_chores_add(struct mongo *m, struct chores *chores)
{
	chores_add(chores, &(struct chore){
				   .name = "sweep_mongo_sessions",
				   .run = sweep_sessions,
				   .arg = m,
				   .leased = true,
				   .unlisted = true,
				   .pause_ms = SWEEP_PAUSE_MS,
				   .more_ms = SWEEP_MORE_MS,
			   });
	chores_add(chores, &(struct chore){
				   .name = EXPIRE_CHORE,
				   .run = expire_documents,
				   .arg = m,
				   .leased = true,
				   .pause_ms = m->config.settings->expire_seconds * 1000,
				   .more_ms = SWEEP_MORE_MS,
			   });
	chores_add(chores, &(struct chore){
				   .name = INDEX_SUPPLY_CHORE,
				   .run = supply_indexes,
				   .arg = m,
				   .leased = true,
				   .unlisted = true,
				   .pause_ms = SUPPLY_PAUSE_MS,
				   .more_ms = SWEEP_MORE_MS,
			   });
	chores_add(chores, &(struct chore){
				   .name = "expire_mongo_transactions",
				   .run = expire_transactions,
				   .arg = m,
				   .thread = CHORE_QUICK,
				   .unlisted = true,
				   .pause_ms = EXPIRE_PAUSE_MS,
			   });
}

struct net_stream_options *
mongo_stream_options(struct mongo *m)
{
	return &m->stream;
}

void
mongo_set_address(struct mongo *m, const char *host, uint16_t port, bool tls)
{
	const struct mongo_settings *s = m->config.settings;
	bool everywhere = strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;

	if (s->told_host)
		snprintf(m->host, sizeof(m->host), "%s", s->told_host);
	else
		address_write(host, port, m->host);
	/* Drivers do not find a member of a set by the path of a Unix socket. */
	if (!s->standalone && (s->told_host || !(everywhere || tls || address_is_path(host))))
		m->set = s->replica_set;
}
