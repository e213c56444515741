/*
 * The settings that hold now, and how they change while servers run.
 *
 * Administrators change settings in the store, which all servers of it share. What a request goes
 * by is one object that never changes, which it holds from its first byte to its last: the
 * settings that the process was started with, over them those of the store, and what has been
 * derived from both (the people that may log in). A change makes a new object; requests under way
 * keep theirs.
 *
 * A settings_live is used from any thread. A settings_held is immutable and counted.
 */
#ifndef FROND_SETTINGS_LIVE_H
#define FROND_SETTINGS_LIVE_H

#include <stdatomic.h>

#include "catalog/stored_settings.h"
#include "kv/kv.h"
#include "settings/settings.h"

/* What is derived from settings whenever they change. */
struct settings_live_ops {
	/* Refuses settings that must not hold, or makes `*ret`. On any thread. */
	enum status (*derive)(void *arg, const struct settings *settings, void **ret,
			      struct err *err);
	void (*drop)(void *derived);
	/*
	 * May be NULL. `made` is about to hold instead of `former`, and nobody uses it yet. On any
	 * thread; must not wait.
	 */
	void (*succeed)(void *made, const void *former);
};

/* Fields are for reading only. */
struct settings_held {
	atomic_uint refs;
	uint64_t generation;
	uint8_t version[KV_VERSIONSTAMP_TX_BYTES]; /* the metadata version they were read at */
	struct settings *settings;
	void *derived;
	const struct settings_live_ops *ops;
};

struct settings_live;

/*
 * Lays what the store has over the settings of a program that is no server: once, not as they
 * change. Errors of the store; STATUS_INVALID, explained.
 */
MUST_USE enum status settings_read_stored(struct settings *settings, struct kv_store *store,
					  struct err *err);

/*
 * Settings as a process is started with them, until settings_live_reload(). All arguments are the
 * caller's and outlive it. STATUS_NOMEM; errors of derive().
 */
MUST_USE enum status settings_live_new(struct kv_store *store, const struct settings *started,
				       const struct settings_live_ops *ops, void *arg,
				       struct settings_live **ret, struct err *err);
void settings_live_free(struct settings_live *live); /* NULL is fine */

/* Makes what the store has now the settings that hold. Errors of the store and of derive(). */
MUST_USE enum status settings_live_reload(struct settings_live *live, struct err *err);

/* The settings that hold in this process, with a new reference. */
struct settings_held *settings_live_hold(struct settings_live *live);
/* The generation of these: one load, which tells whether settings that were copied still hold. */
uint64_t settings_live_generation(const struct settings_live *live);
struct settings_held *settings_held_ref(struct settings_held *held);
void settings_held_unref(struct settings_held *held); /* NULL is fine */

/*
 * For a request. `*cached` is the calling thread's own reference, which spares it the lock that
 * others may hold, and is renewed. In front of a store that others write to, too, the store is
 * asked first whether there are newer settings, so that what another server has answered holds
 * here: one read version for each request. `*ret` has a new reference also when this fails.
 *
 * `*ret_tx` is then the transaction of that kind that has asked, whose read version is known: what
 * the request reads in it costs no other one. It is the caller's; NULL if nothing was asked.
 */
MUST_USE enum status settings_live_take(struct settings_live *live, struct settings_held **cached,
					enum kv_tx_kind kind, struct settings_held **ret,
					struct kv_tx **ret_tx, struct err *err);

/*
 * What is set on this server and for all of them, as the transaction sees it, in the arena, sorted
 * by section and name. STATUS_LIMIT; errors of the store.
 */
MUST_USE enum status settings_live_list(const struct settings_live *live, struct kv_tx *tx,
					struct arena *arena, struct catalog_setting **ret_items,
					size_t *ret_count, struct err *err);

/* The status and the reason of a change that would be refused. Uses the arena. */
MUST_USE enum status settings_live_check(const struct settings_live *live, struct kv_tx *tx,
					 const struct catalog_setting *change, struct arena *arena,
					 struct err *err);

/* Makes the logs of the process follow the setting of their level. */
void settings_apply_log_level(const struct settings *settings);

#endif
