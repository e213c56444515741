#include "door/redis/txn/txn.h"

#include "base/clear.h"
#include "base/err_clear.h"
#include "base/hash.h"
#include "base/steady.h"
#include "door/redis/acl/subcommand.h"
#include "door/redis/txn/notify.h"
#include "door/redis/txn/redis_int.h"
#include "loop/step.h"

void
txn_init(struct txn *x, struct redis *r, struct kv_tx *tx, struct catalog_cache *cache,
	 struct arena *arena, struct err *err)
{
	CLEAR_BEFORE(x, slots);
	x->redis = r;
	x->tx = tx;
	x->cache = cache;
	x->arena = arena;
	x->err = err;
	x->effects_end = &x->effects;
	x->moment = tracking_moment(r);
}

/*
 * The earlier of a moment and the soonest expiry in the database, by the steady clock of this
 * process; 0: none.
 */
static uint64_t
soonest_with(uint64_t ms, const struct timed *t)
{
	uint64_t own_ms = t->soonest_ms - t->ahead_us / 1000;

	return t->soonest_ms && (!ms || own_ms < ms) ? own_ms : ms;
}

uint64_t
txn_soonest(const struct txn *x)
{
	uint64_t ms = x->soonest_ms, now_ms;

	for (uint32_t left = x->looked_for; left; left &= left - 1) {
		const struct txn_db *d = x->dbs[__builtin_ctz(left)];

		if (d)
			ms = soonest_with(ms, &d->timed);
	}
	if (!ms)
		return UINT64_MAX;
	now_ms = steady_ms();
	return ms > now_ms ? ms - now_ms : 0;
}

void
txn_forget(struct txn *x)
{
	for (uint32_t left = x->looked_for; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);

		if (x->dbs[i]) {
			x->soonest_ms = soonest_with(x->soonest_ms, &x->dbs[i]->timed);
			timed_maps_return(&x->dbs[i]->timed);
			catalog_db_unref(x->dbs[i]->db);
		}
		x->dbs[i] = NULL;
		x->missing[i] = false;
	}
	x->looked_for = 0;
	x->slots_used = 0;
	x->slots_set = 0;
	if (x->items.count)
		hash_table_clear(&x->items);
	x->cache = NULL; /* it does not know what this transaction has done */
}

void
txn_fini(struct txn *x)
{
	txn_forget(x);
}

/* ---- Databases ---- */

struct str
txn_db_name(unsigned db, char buf[static TXN_NAME_BYTES])
{
	if (db < 10) {
		buf[0] = (char)('0' + db);
		return str_of(buf, 1);
	}
	if (db == TXN_FUNCTIONS)
		return STR(TIMED_FUNCTIONS);
	buf[0] = '1';
	buf[1] = (char)('0' + db - 10);
	return str_of(buf, 2);
}

static enum status
txn_open_db(struct txn *x, unsigned db, bool writes)
{
	struct txn_db *d = arena_alloc(x->arena, sizeof(*d));
	char text[TXN_NAME_BYTES];
	struct str name = txn_db_name(db, text);
	struct err ignored;
	enum status status;

	if (!d)
		return STATUS_LIMIT;
	err_clear(&ignored);
	status = catalog_open(x->tx, x->cache, CATALOG_SPACE_REDIS, name, &d->db, &ignored);
	if (status == STATUS_NOT_FOUND && writes) {
		TRY(timed_items_create(x->tx, name, x->err));
		status = catalog_open(x->tx, NULL, CATALOG_SPACE_REDIS, name, &d->db, x->err);
	}
	x->missing[db] = status == STATUS_NOT_FOUND;
	if (status == STATUS_OK || x->missing[db])
		x->looked_for |= UINT32_C(1) << db;
	if (x->missing[db])
		return STATUS_OK;
	if (status != STATUS_OK)
		return err_set(x->err, status, "%s", ignored.text);
	x->dbs[db] = d;
	timed_init(&d->timed, x->tx, d->db, NULL, x->err);
	if (x->at_us)
		timed_at_date_us(&d->timed, x->at_us);
	d->timed.stages = &x->stages;
	d->timed.maps = x->redis->maps;
	return STATUS_OK;
}

enum status
txn_open(struct txn *x, unsigned db, struct timed **ret)
{
	TRY(txn_open_db(x, db, true));
	*ret = &x->dbs[db]->timed;
	return STATUS_OK;
}

enum status
txn_db(struct call *c, unsigned db, struct timed **ret)
{
	struct txn *x = c->x;
	bool writes = c->command->flags & COMMAND_WRITE;

	if (!x->dbs[db] && (!x->missing[db] || writes))
		TRY(txn_open_db(x, db, writes));
	*ret = x->dbs[db] ? &x->dbs[db]->timed : NULL;
	return STATUS_OK;
}

enum status
txn_db_there(struct call *c, unsigned db, struct timed **ret)
{
	struct txn *x = c->x;

	if (!x->dbs[db] && !x->missing[db])
		TRY(txn_open_db(x, db, false));
	*ret = x->dbs[db] ? &x->dbs[db]->timed : NULL;
	return STATUS_OK;
}

enum status
txn_db_count(struct call *c, unsigned db, uint64_t *ret)
{
	struct timed *t;

	*ret = 0;
	TRY(txn_db_there(c, db, &t));
	return t ? timed_items_count(t, ret) : STATUS_OK;
}

/* ---- Effects: what is to happen ---- */

static enum status
message_write(struct txn *x, enum messages_kind kind, struct str channel, struct str message)
{
	return messages_put(x->tx, &x->messages,
			    &(struct messages_message){
				    .origin = x->redis->origin,
				    .kind = kind,
				    .channel = channel,
				    .message = message,
			    },
			    x->err);
}

static enum status
event_write(void *x, struct str channel, struct str message)
{
	return message_write(x, MESSAGES_PUBLISH, channel, message);
}

/*
 * What other processes are to learn is written with the transaction. That a key was missed is found
 * by transactions that may not write.
 */
static enum status
effect_write(struct txn *x, const struct effect *e)
{
	if (!x->redis->others)
		return STATUS_OK;
	if (e->kind == EFFECT_EVENT && e->class != EVENT_MISS)
		return notify_each(x->redis, e, event_write, x);
	if (e->kind == EFFECT_PUBLISH)
		return message_write(x, MESSAGES_PUBLISH, e->key, e->message);
	if (e->kind == EFFECT_SPUBLISH)
		return message_write(x, MESSAGES_SPUBLISH, e->key, e->message);
	return STATUS_OK;
}

enum status
txn_ask_tracked(struct txn *x)
{
	return x->redis->others ? trackers_any(x->tx, &x->redis->trackers, &x->tracked) : STATUS_OK;
}

enum status
txn_tell_tracked(struct txn *x)
{
	struct messages_keys keys;
	enum status status;

	if (!x->tracked)
		return STATUS_OK;
	messages_keys_init(&keys);
	for (const struct effect *e = x->effects; e; e = e->next) {
		if (tracking_is_about(e))
			messages_keys_add(&keys, e->key);
		else if (e->kind == EFFECT_FLUSH || e->kind == EFFECT_SWAP)
			messages_keys_add_all(&keys);
	}
	status = messages_put_keys(x->tx, &x->messages, x->redis->origin, &keys);
	messages_keys_release(&keys);
	return status;
}

static enum status
effect_add_to(struct txn *x, const struct effect *effect)
{
	struct effect *e = arena_alloc(x->arena, sizeof(*e));

	if (!e)
		return STATUS_LIMIT;
	*e = *effect;
	e->next = NULL;
	*x->effects_end = e;
	x->effects_end = &e->next;
	return effect_write(x, e);
}

static enum status
effect_add(struct call *c, const struct effect *effect)
{
	return effect_add_to(c->x, effect);
}

/* ---- Items ---- */

/* The item in a chain of entries, of which it is the first member; NULL: it is not there. */
static struct txn_item *
chain_find(struct hash_entry *e, uint64_t hash, unsigned db, struct str key)
{
	for (; e; e = e->next) {
		struct txn_item *i = (struct txn_item *)e;

		if (e->hash == hash && i->db == db && str_eq(i->item.key, key))
			return i;
	}
	return NULL;
}

static unsigned
slot_of(uint64_t hash)
{
	return (unsigned)(hash >> 48) % TXN_SLOTS;
}

/* The first entry of the slot's chain; NULL: it has none. */
static struct hash_entry *
slot_chain(const struct txn *x, unsigned slot)
{
	return x->slots_set & UINT64_C(1) << slot ? x->slots[slot] : NULL;
}

static struct txn_item *
item_find(struct txn *x, unsigned db, struct str key)
{
	struct txn_item *i;
	uint64_t hash;

	if (!x->slots_used)
		return NULL;
	hash = hash_quick(key);
	i = chain_find(slot_chain(x, slot_of(hash)), hash, db, key);
	if (i || !x->items.count)
		return i;
	hash = hash_keyed(db, key);
	return chain_find(hash_table_find(&x->items, hash), hash, db, key);
}

static struct txn_item *
item_new(struct txn *x, unsigned db, struct str key)
{
	struct txn_item *i = arena_zalloc(x->arena, sizeof(*i));

	if (i) {
		i->db = db;
		i->item.key = key;
	}
	return i;
}

static enum status
item_keep(struct txn *x, struct txn_item *i)
{
	struct hash_entry *e = &i->entry;
	unsigned slot;

	if (x->slots_used == TXN_SLOTS) {
		e->hash = hash_keyed(i->db, i->item.key);
		return hash_table_add(&x->items, e) ? STATUS_OK : STATUS_NOMEM;
	}
	e->hash = hash_quick(i->item.key);
	slot = slot_of(e->hash);
	e->next = slot_chain(x, slot);
	x->slots[slot] = e;
	x->slots_set |= UINT64_C(1) << slot;
	x->slots_used++;
	return STATUS_OK;
}

bool
txn_lacks(struct txn *x, unsigned db, struct str key)
{
	const struct txn_item *i = item_find(x, db, key);

	return i && i->item.type == TIMED_LEAF;
}

/*
 * Asks for the header of an item that the transaction does not have yet. Where there is no
 * database, the transaction does not keep the item: another command may create the database.
 */
static enum status
item_ask(struct call *c, unsigned db, struct str key, struct txn_item **ret)
{
	struct txn *x = c->x;
	struct txn_item *i;
	struct timed *t;

	TRY(step_count(1));
	TRY(txn_db(c, db, &t));
	i = item_new(x, db, key);
	if (!i)
		return STATUS_LIMIT;
	*ret = i;
	if (!t)
		return STATUS_OK;
	TRY(timed_item_ask(t, key, x->arena, &i->item));
	return item_keep(x, i);
}

static enum status
lookup_tells(struct call *c, const struct txn_item *i, enum event_class class, const char *event)
{
	return effect_add(c, &(struct effect){ .kind = EFFECT_EVENT,
					       .class = class,
					       .event = event,
					       .db = i->db,
					       .key = i->item.key });
}

/* Whoever wants to write finds a key that has expired, and removes it. */
static enum status
lookup_expired(struct call *c, struct txn_item *i)
{
	enum timed_swept swept;

	TRY(timed_item_sweep(&i->item, &swept));
	if (swept == TIMED_SWEPT_NOTHING)
		return STATUS_OK;
	if (swept == TIMED_SWEPT_EXPIRED)
		return lookup_tells(c, i, EVENT_EXPIRED, "expired");
	TRY(lookup_tells(c, i, EVENT_HASH, "hexpired"));
	return lookup_tells(c, i, EVENT_GENERIC, "del");
}

bool
txn_count_look(struct call *c, const struct timed_item *item)
{
	bool missed = item->type == TIMED_LEAF;

	atomic_fetch_add_explicit(missed ? &c->redis->misses : &c->redis->hits, 1,
				  memory_order_relaxed);
	return missed;
}

static enum status
lookup_count(struct call *c, const struct timed_item *item)
{
	if (!txn_count_look(c, item) ||
	    !(atomic_load_explicit(&c->redis->events, memory_order_relaxed) & EVENT_MISS))
		return STATUS_OK;
	return txn_event(c, item->key, EVENT_MISS, "keymiss");
}

/* A command has asked for the item, and now has it. */
static enum status
lookup_end(struct call *c, struct txn_item *i)
{
	if (i->item.t)
		TRY(timed_item_wait(&i->item));
	if (c->command->flags & COMMAND_READONLY) {
		if (i->item.stored && i->item.type == TIMED_LEAF && !c->x->at_us)
			c->x->met_expired = true;
		TRY(lookup_count(c, &i->item));
	} else if (c->command->flags & COMMAND_WRITE && i->item.type == TIMED_LEAF) {
		TRY(lookup_expired(c, i));
	}
	i->was_there = i->item.type != TIMED_LEAF;
	return STATUS_OK;
}

enum status
txn_looked_up(struct call *c, const struct timed_item *item)
{
	return c->command->flags & COMMAND_READONLY ? STATUS_OK : lookup_count(c, item);
}

enum status
txn_item_of(struct call *c, unsigned db, struct str key, struct timed_item **ret)
{
	struct txn_item *i = item_find(c->x, db, key);

	if (!i)
		TRY(item_ask(c, db, key, &i));
	*ret = &i->item;
	return lookup_end(c, i);
}

enum status
txn_item(struct call *c, struct str key, struct timed_item **ret)
{
	return txn_item_of(c, c->db, key, ret);
}

enum status
txn_items(struct call *c, const struct str *keys, size_t count, size_t step,
	  struct timed_item **ret)
{
	struct txn_item **found = arena_alloc(c->x->arena, count * sizeof(struct txn_item *));

	if (!found)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++) {
		found[i] = item_find(c->x, c->db, keys[i * step]);
		if (!found[i])
			TRY(item_ask(c, c->db, keys[i * step], &found[i]));
	}
	for (size_t i = 0; i < count; i++) {
		ret[i] = &found[i]->item;
		TRY(lookup_end(c, found[i]));
	}
	return STATUS_OK;
}

void
txn_asking_send(struct txn_asking *a)
{
	if (a->count)
		timed_items_ask(a->t, a->items, a->count);
	a->count = 0;
}

enum status
txn_ask_soon(struct call *c, unsigned db, struct str key, struct txn_asking *a)
{
	struct txn_item *i;
	struct timed *t;

	/* Commands about one key often follow each other, and this is sooner than looking it up. */
	if (a->count && a->db == db && str_eq(a->items[a->count - 1]->key, key))
		return STATUS_OK;
	if (item_find(c->x, db, key))
		return STATUS_OK;
	TRY(step_count(1));
	TRY(txn_db_there(c, db, &t));
	if (!t)
		return STATUS_OK;
	if (a->count == KV_MANY || a->db != db)
		txn_asking_send(a);
	a->db = db;
	a->t = t;
	i = item_new(c->x, db, key);
	if (!i)
		return STATUS_LIMIT;
	TRY(timed_item_name(t, key, c->x->arena, &i->item));
	TRY(item_keep(c->x, i));
	a->items[a->count++] = &i->item;
	return STATUS_OK;
}

enum status
txn_ask(struct call *c, unsigned db, struct str key)
{
	struct txn_asking a = { .count = 0 };
	enum status status = txn_ask_soon(c, db, key, &a);

	txn_asking_send(&a);
	return status;
}

enum status
txn_versions(struct call *c, struct timed_item *const *items, size_t count, struct str *ret)
{
	struct kv_future **asked = arena_alloc(c->x->arena, (count + 1) * sizeof(*asked));

	if (!asked)
		return STATUS_LIMIT;
	for (size_t i = 0; i < count; i++)
		TRY(timed_item_version_ask(items[i], &asked[i]));
	for (size_t i = 0; i < count; i++)
		TRY(timed_item_version(items[i], asked[i], &ret[i]));
	return STATUS_OK;
}

enum status
txn_now_ms(struct call *c, uint64_t *ret)
{
	struct timed *t;

	TRY(txn_db(c, c->db, &t));
	if (t)
		TRY(timed_now(t));
	*ret = t ? t->now_us / 1000 : steady_ms();
	return STATUS_OK;
}

int64_t
txn_ahead_ms(struct call *c)
{
	const struct txn_db *d = c->x->dbs[c->db];

	return d ? timed_ahead_ms(&d->timed) : steady_ahead_ms();
}

/* ---- Effects ---- */

static enum status
effect_new(struct call *c, unsigned db, struct str key)
{
	struct txn_item *i;

	if (!(atomic_load_explicit(&c->redis->events, memory_order_relaxed) & EVENT_NEW))
		return STATUS_OK;
	i = item_find(c->x, db, key);
	if (!i || i->was_there || i->item.type == TIMED_LEAF)
		return STATUS_OK;
	i->was_there = true;
	return effect_add(c, &(struct effect){ .kind = EFFECT_EVENT,
					       .class = EVENT_NEW,
					       .event = "new",
					       .db = db,
					       .key = key });
}

enum status
txn_is_new(struct call *c, unsigned db, struct str key)
{
	struct txn_item *i = item_find(c->x, db, key);

	if (i)
		i->was_there = false;
	return effect_new(c, db, key);
}

enum status
txn_changed_in(struct call *c, unsigned db, struct str key, enum event_class class,
	       const char *event)
{
	TRY(effect_new(c, db, key));
	return effect_add(c, &(struct effect){ .kind = EFFECT_EVENT,
					       .class = class,
					       .changes = true,
					       .client = c->client,
					       .event = event,
					       .db = db,
					       .key = key });
}

enum status
txn_changed(struct call *c, struct str key, enum event_class class, const char *event)
{
	return txn_changed_in(c, c->db, key, class, event);
}

enum status
txn_event(struct call *c, struct str key, enum event_class class, const char *event)
{
	return effect_add(c, &(struct effect){ .kind = EFFECT_EVENT,
					       .class = class,
					       .event = event,
					       .db = c->db,
					       .key = key });
}

enum status
txn_flushed(struct call *c, unsigned db)
{
	return effect_add(c, &(struct effect){ .kind = EFFECT_FLUSH, .db = db });
}

enum status
txn_watch(struct call *c, struct str key, struct str version)
{
	return effect_add(c, &(struct effect){ .kind = EFFECT_WATCH,
					       .db = c->db,
					       .key = key,
					       .message = version,
					       .client = c->client });
}

enum status
txn_called(struct call *c, struct str answer, uint64_t ns, bool refused)
{
	struct str error = { 0 };

	if (answer.len && answer.ptr[0] == '-') {
		error = arena_dup(c->arena, answer);
		if (!error.ptr)
			return STATUS_LIMIT;
	}
	return effect_add(c, &(struct effect){ .kind = EFFECT_CALL,
					       .db = c->db,
					       .command = c->command,
					       .argv = c->argv,
					       .argc = c->argc,
					       .ns = ns,
					       .message = error,
					       .refused = refused });
}

static const char *
call_context(const struct call *c)
{
	if (c->in_script)
		return "lua";
	return c->in_exec ? "multi" : "toplevel";
}

enum status
txn_denied(struct call *c, enum acl_denial denial, struct str object)
{
	char name[SUBCOMMAND_NAME_BYTES];

	if (denial == ACL_DENIED_COMMAND)
		object = subcommand_name_call(c->command, c->argv, c->argc, name);
	object = arena_dup(c->arena, object);
	if (!object.ptr)
		return STATUS_LIMIT;
	return effect_add(c, &(struct effect){ .kind = EFFECT_DENY,
					       .key = object,
					       .client = c->client,
					       .denial = denial,
					       .context = call_context(c) });
}

enum status
txn_shown(struct txn *x, struct client *client, unsigned db, const struct command *command,
	  struct str *argv, size_t argc)
{
	return effect_add_to(x, &(struct effect){ .kind = EFFECT_SHOW,
						  .db = db,
						  .client = client,
						  .command = command,
						  .argv = argv,
						  .argc = argc });
}

enum status
txn_publish(struct call *c, enum effect_kind kind, struct str channel, struct str message)
{
	return effect_add(c, &(struct effect){ .kind = kind, .key = channel, .message = message });
}

/* ---- Exchanging databases ---- */

/* Whether the database is there; one that is to be exchanged is made. */
static enum status
swap_prepare(struct call *c, unsigned db, bool make, bool *ret)
{
	char buf[TXN_NAME_BYTES];
	struct timed *t;

	TRY(txn_db_there(c, db, &t));
	*ret = t != NULL;
	return t || !make ? STATUS_OK
			  : timed_items_create(c->x->tx, txn_db_name(db, buf), c->x->err);
}

enum status
txn_swap(struct call *c, unsigned a, unsigned b)
{
	char first[TXN_NAME_BYTES], second[TXN_NAME_BYTES];
	bool has_a, has_b;

	if (a == b)
		return STATUS_OK;
	TRY(swap_prepare(c, a, false, &has_a));
	TRY(swap_prepare(c, b, has_a, &has_b));
	if (has_b && !has_a)
		TRY(swap_prepare(c, a, true, &has_a));
	if (!has_a && !has_b)
		return STATUS_OK;
	TRY(catalog_swap(c->x->tx, CATALOG_SPACE_REDIS, txn_db_name(a, first),
			 txn_db_name(b, second), c->x->err));
	txn_forget(c->x);
	TRY(effect_add(c, &(struct effect){ .kind = EFFECT_SWAP, .db = a }));
	return effect_add(c, &(struct effect){ .kind = EFFECT_SWAP, .db = b });
}
