#include "door/redis/txn.h"

#include "base/clock.h"
#include "door/redis/redis_int.h"

void
txn_init(struct txn *x, struct redis *r, struct kv_tx *tx, struct catalog_cache *cache,
	 struct arena *arena, struct err *err)
{
	*x = (struct txn){ .redis = r, .tx = tx, .cache = cache, .arena = arena, .err = err };
	x->effects_end = &x->effects;
}

void
txn_forget(struct txn *x)
{
	for (size_t i = 0; i < REDIS_DATABASES; i++) {
		catalog_db_unref(x->dbs[i].db);
		x->dbs[i] = (struct txn_db){ 0 };
	}
	memset(x->slots, 0, sizeof(x->slots));
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
	buf[0] = '1';
	buf[1] = (char)('0' + db - 10);
	return str_of(buf, 2);
}

static enum status
txn_open_db(struct txn *x, unsigned db, bool writes)
{
	struct txn_db *d = &x->dbs[db];
	struct err ignored = { 0 };
	char text[TXN_NAME_BYTES];
	struct str name = txn_db_name(db, text);
	enum status status;

	status = catalog_open(x->tx, x->cache, CATALOG_SPACE_REDIS, name, &d->db, &ignored);
	if (status == STATUS_NOT_FOUND && writes) {
		TRY(timed_items_create(x->tx, name, x->err));
		status = catalog_open(x->tx, NULL, CATALOG_SPACE_REDIS, name, &d->db, x->err);
	}
	d->missing = status == STATUS_NOT_FOUND;
	if (d->missing)
		return STATUS_OK;
	if (status != STATUS_OK)
		return err_set(x->err, status, "%s", ignored.text);
	d->opened = true;
	timed_init(&d->timed, x->tx, d->db, NULL, x->err);
	if (x->at_us)
		timed_at_us(&d->timed, x->at_us);
	return STATUS_OK;
}

enum status
txn_db(struct call *c, unsigned db, struct timed **ret)
{
	struct txn_db *d = &c->x->dbs[db];
	bool writes = c->command->flags & COMMAND_WRITE;

	if (!d->opened && (!d->missing || writes))
		TRY(txn_open_db(c->x, db, writes));
	*ret = d->opened ? &d->timed : NULL;
	return STATUS_OK;
}

enum status
txn_db_there(struct call *c, unsigned db, struct timed **ret)
{
	struct txn_db *d = &c->x->dbs[db];

	if (!d->opened && !d->missing)
		TRY(txn_open_db(c->x, db, false));
	*ret = d->opened ? &d->timed : NULL;
	return STATUS_OK;
}

/* ---- Items ---- */

static struct txn_item **
item_slot(struct txn *x, unsigned db, struct str key)
{
	return &x->slots[(str_hash(key) + db) % TXN_SLOTS];
}

static struct txn_item *
item_find(struct txn *x, unsigned db, struct str key)
{
	struct txn_item *i = *item_slot(x, db, key);

	while (i && (i->db != db || !str_eq(i->item.key, key)))
		i = i->next;
	return i;
}

/* Asks for the header of an item that the transaction does not have. */
static enum status
item_ask(struct call *c, unsigned db, struct str key, struct txn_item **ret)
{
	struct txn *x = c->x;
	struct txn_item **slot = item_slot(x, db, key);
	struct txn_item *i = arena_zalloc(x->arena, sizeof(*i));
	struct timed *t;

	if (!i)
		return STATUS_LIMIT;
	i->db = db;
	i->item.key = key;
	TRY(txn_db(c, db, &t));
	*ret = i;
	if (!t)
		return STATUS_OK; /* it is not kept: another command may create the database */
	TRY(timed_item_ask(t, key, x->arena, &i->item));
	i->next = *slot;
	*slot = i;
	return STATUS_OK;
}

static void
count_lookup(struct call *c, const struct timed_item *item)
{
	if (!(c->command->flags & COMMAND_READONLY))
		return;
	atomic_fetch_add_explicit(item->type == TIMED_LEAF ? &c->redis->misses : &c->redis->hits, 1,
				  memory_order_relaxed);
}

enum status
txn_item_of(struct call *c, unsigned db, struct str key, struct timed_item **ret)
{
	struct txn_item *i = item_find(c->x, db, key);

	if (!i)
		TRY(item_ask(c, db, key, &i));
	if (i->item.t)
		TRY(timed_item_wait(&i->item));
	*ret = &i->item;
	count_lookup(c, *ret);
	return STATUS_OK;
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
	for (size_t i = 0; i < count; i++) {
		struct txn_item *found = item_find(c->x, c->db, keys[i * step]);

		if (!found)
			TRY(item_ask(c, c->db, keys[i * step], &found));
		ret[i] = &found->item;
	}
	for (size_t i = 0; i < count; i++) {
		if (ret[i]->t)
			TRY(timed_item_wait(ret[i]));
		count_lookup(c, ret[i]);
	}
	return STATUS_OK;
}

enum status
txn_now_ms(struct call *c, uint64_t *ret)
{
	struct timed *t;

	TRY(txn_db(c, c->db, &t));
	*ret = t && t->now_us ? t->now_us / 1000 : clock_wall_ms();
	return STATUS_OK;
}

/* ---- Effects ---- */

static enum status
effect_add(struct call *c, const struct effect *effect)
{
	struct effect *e = arena_alloc(c->x->arena, sizeof(*e));

	if (!e)
		return STATUS_LIMIT;
	*e = *effect;
	e->next = NULL;
	*c->x->effects_end = e;
	c->x->effects_end = &e->next;
	return STATUS_OK;
}

enum status
txn_changed_in(struct call *c, unsigned db, struct str key, enum event_class class,
	       const char *event)
{
	return effect_add(c, &(struct effect){ .kind = EFFECT_EVENT,
					       .class = class,
					       .changes = true,
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
