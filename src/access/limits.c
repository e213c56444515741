#include "access/limits.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "access/settings.h"
#include "base/address.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/metric.h"
#include "catalog/admit.h"
#include "loop/task.h"
#include "settings/live.h"

/*
 * An entry keeps one time for each thing that is counted (`paid_ns`). Taking something moves that
 * time into the future by what the thing costs at the limit's rate. A thing may be taken while that
 * time is less than a window ahead of now. An entry whose times have all passed restricts nothing
 * and can be forgotten.
 */

enum limits_thing {
	LIMITS_REQUESTS,
	LIMITS_BYTES,
	LIMITS_DATABASES,
	LIMITS_THINGS,
};

enum {
	LIMITS_WAYS = 8, /* entries of a set; a key has one set */
	LIMITS_SETS = LIMITS_ENTRIES / LIMITS_WAYS,
	LIMITS_LOCKS = 64,
	LIMITS_WINDOW_S = 1,
	LIMITS_DATABASES_WINDOW_S = 3600,
	LIMITS_DEBT_S = 3600, /* the longest wait that one request can cause */
};

#define LIMITS_NS_PER_S (1000 * CLOCK_NS_PER_MS)

struct limits_entry {
	uint64_t key; /* 0: free */
	uint64_t paid_ns[LIMITS_THINGS];
	uint64_t open;
};

/* What a limit may be of: each has limits of its own. */
enum limits_of {
	LIMITS_OF_ADDRESS,
	LIMITS_OF_PERSON,
	LIMITS_OF_COUNT,
};

struct limits {
	struct settings_live *live;             /* NULL: limits_set() alone sets them */
	pthread_mutex_t locks[LIMITS_LOCKS];    /* set n uses lock n % LIMITS_LOCKS */
	_Atomic(struct limits_entry *) entries; /* NULL until there is a limit */

	/*
	 * What holds, as the settings of that generation have it. Written with `copying`, so that
	 * no older settings come after newer ones; read without, so that most requests find by two
	 * loads that there is no limit.
	 */
	pthread_mutex_t copying;
	_Atomic uint64_t generation;                             /* UINT64_MAX: none yet */
	_Atomic uint64_t counts[LIMITS_OF_COUNT][LIMITS_THINGS]; /* 0: no limit */
	_Atomic uint64_t person_open;                            /* likewise */
	atomic_bool any[LIMITS_OF_COUNT];                        /* one of them is set */
};

static enum status limits_admit_database(enum catalog_space space, struct str name,
					 struct err *err);

struct limits *
limits_new(struct settings_live *live)
{
	struct limits *l = mem_zalloc(sizeof(*l));

	if (!l)
		return NULL;
	l->live = live;
	atomic_init(&l->generation, UINT64_MAX);
	pthread_mutex_init(&l->copying, NULL);
	for (size_t i = 0; i < LIMITS_LOCKS; i++)
		pthread_mutex_init(&l->locks[i], NULL);
	/* It asks the limits that a claim was made with: it is one for all of them, and stays. */
	catalog_admit_by(limits_admit_database);
	return l;
}

void
limits_free(struct limits *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < LIMITS_LOCKS; i++)
		pthread_mutex_destroy(&l->locks[i]);
	pthread_mutex_destroy(&l->copying);
	mem_free(atomic_load(&l->entries));
	mem_free(l);
}

/* ---- Entries ---- */

static struct limits_entry *
limits_entries(struct limits *l)
{
	struct limits_entry *known = atomic_load_explicit(&l->entries, memory_order_acquire);
	struct limits_entry *made;

	if (known)
		return known;
	made = mem_zalloc(LIMITS_ENTRIES * sizeof(*made));
	if (made && !atomic_compare_exchange_strong(&l->entries, &known, made)) {
		mem_free(made);
		return known;
	}
	return made;
}

static pthread_mutex_t *
limits_lock_of(struct limits *l, uint64_t key)
{
	return &l->locks[key % LIMITS_SETS % LIMITS_LOCKS];
}

static uint64_t
entry_quiet_ns(const struct limits_entry *e)
{
	uint64_t latest = 0;

	for (size_t i = 0; i < LIMITS_THINGS; i++)
		latest = e->paid_ns[i] > latest ? e->paid_ns[i] : latest;
	return latest;
}

/*
 * Finds the entry of a key; called with the set's lock held. If there is none and `make` is true,
 * the key takes the place of the entry that was idle longest. Returns NULL if there is none and
 * `make` is false, or if every entry of the set has requests under way.
 */
static struct limits_entry *
limits_entry_of(struct limits_entry *entries, uint64_t key, bool make)
{
	struct limits_entry *set = entries + key % LIMITS_SETS * LIMITS_WAYS;
	struct limits_entry *oldest = NULL;

	assert(key); /* 0 is a free entry's */
	for (size_t i = 0; i < LIMITS_WAYS; i++) {
		struct limits_entry *e = &set[i];

		if (e->key == key)
			return e;
		if (!e->open && (!oldest || entry_quiet_ns(e) < entry_quiet_ns(oldest)))
			oldest = e;
	}
	if (!make || !oldest)
		return NULL;
	assert(!oldest->open); /* a claim would count it down later */
	*oldest = (struct limits_entry){ .key = key };
	return oldest;
}

/* ---- Taking ---- */

struct limits_rate {
	uint64_t count;    /* 0: no limit */
	uint64_t window_s; /* `count` things are admitted in so many seconds */
};

/* The time that `n` things cost at that rate, at most LIMITS_DEBT_S. */
static uint64_t
rate_price_ns(struct limits_rate rate, uint64_t n)
{
	uint64_t most = LIMITS_DEBT_S * LIMITS_NS_PER_S;
	uint64_t each_ps = rate.window_s * LIMITS_NS_PER_S * 1000 / rate.count;

	return each_ps && n > most * 1000 / each_ps ? most : n * each_ps / 1000;
}

/* The time until the next thing may be taken; 0: it may be taken now. */
static uint64_t
entry_wait_ns(const struct limits_entry *e, enum limits_thing thing, struct limits_rate rate,
	      uint64_t now_ns)
{
	uint64_t window_ns = rate.window_s * LIMITS_NS_PER_S;
	uint64_t ahead_ns = e->paid_ns[thing] > now_ns ? e->paid_ns[thing] - now_ns : 0;
	uint64_t price_ns;

	if (rate.count == 0)
		return 0;
	price_ns = thing == LIMITS_BYTES ? 1 : rate_price_ns(rate, 1);
	if (ahead_ns + price_ns <= window_ns)
		return 0;
	return ahead_ns + price_ns - window_ns;
}

static void
entry_pay(struct limits_entry *e, enum limits_thing thing, struct limits_rate rate, uint64_t n,
	  uint64_t now_ns)
{
	if (rate.count == 0)
		return;
	if (e->paid_ns[thing] < now_ns)
		e->paid_ns[thing] = now_ns;
	e->paid_ns[thing] += rate_price_ns(rate, n);
}

/* ---- What holds ---- */

void
limits_set(struct limits *l, const struct access_settings *s)
{
	const uint64_t counts[LIMITS_OF_COUNT][LIMITS_THINGS] = {
		[LIMITS_OF_ADDRESS] = { [LIMITS_REQUESTS] = s->address_requests,
					[LIMITS_BYTES] = s->address_bytes,
					[LIMITS_DATABASES] = s->address_databases },
		[LIMITS_OF_PERSON] = { [LIMITS_REQUESTS] = s->person_requests,
				       [LIMITS_BYTES] = s->person_bytes,
				       [LIMITS_DATABASES] = s->person_databases },
	};
	bool any[LIMITS_OF_COUNT] = { [LIMITS_OF_PERSON] = s->person_open != 0 };

	for (size_t of = 0; of < LIMITS_OF_COUNT; of++) {
		for (size_t i = 0; i < LIMITS_THINGS; i++) {
			atomic_store(&l->counts[of][i], counts[of][i]);
			any[of] = any[of] || counts[of][i];
		}
	}
	atomic_store(&l->person_open, s->person_open);
	for (size_t of = 0; of < LIMITS_OF_COUNT; of++)
		atomic_store(&l->any[of], any[of]);
}

static void
limits_follow(struct limits *l)
{
	struct settings_held *held;

	pthread_mutex_lock(&l->copying);
	held = settings_live_hold(l->live);
	limits_set(l, settings_of(held->settings, &access_setting_group));
	atomic_store(&l->generation, held->generation);
	settings_held_unref(held);
	pthread_mutex_unlock(&l->copying);
}

/* True if there is a limit of that kind. */
static bool
limits_hold(struct limits *l, enum limits_of of)
{
	if (l->live && settings_live_generation(l->live) !=
			       atomic_load_explicit(&l->generation, memory_order_relaxed))
		limits_follow(l);
	return atomic_load_explicit(&l->any[of], memory_order_relaxed);
}

bool
limits_any(struct limits *l)
{
	return limits_hold(l, LIMITS_OF_ADDRESS) ||
	       atomic_load_explicit(&l->any[LIMITS_OF_PERSON], memory_order_relaxed);
}

static struct limits_rate
limits_rate_of(struct limits *l, enum limits_of of, enum limits_thing thing)
{
	return (struct limits_rate){
		.count = atomic_load_explicit(&l->counts[of][thing], memory_order_relaxed),
		.window_s = thing == LIMITS_DATABASES ? LIMITS_DATABASES_WINDOW_S : LIMITS_WINDOW_S,
	};
}

static enum status
limits_refuse(struct limits_claim *claim, const char *name, uint64_t limit, const char *what,
	      uint64_t wait_ns, struct err *err)
{
	claim->retry_s = wait_ns / LIMITS_NS_PER_S + 1;
	return err_set(err, STATUS_TOO_MANY,
		       "%s: the limit, [limits] %s, is %llu. Try again in %llu s.", what, name,
		       (unsigned long long)limit, (unsigned long long)claim->retry_s);
}

/* Refuses what would exceed the limit of this thing. */
static enum status
limits_refuse_rate(struct limits_claim *claim, enum limits_of of, enum limits_thing thing,
		   uint64_t limit, uint64_t wait_ns, struct err *err)
{
	static const char *const names[] = {
		"address_requests", "address_bytes", "address_databases",
		"person_requests",  "person_bytes",  "person_databases",
	};
	static const char *const reasons[] = {
		"too many requests a second of one address",
		"too many bytes a second of one address",
		"too many databases created from one address",
		"too many requests a second of one person",
		"too many bytes a second of one person",
		"too many databases created by one person",
	};
	size_t at = of * LIMITS_THINGS + thing;

	METRIC_COUNTERS(refusals, METRIC_REFUSALS_NAME, METRIC_NUMBER, METRIC_REFUSALS_HELP,
			"limit", names);
	metric_add_at(&refusals, at, 1);
	return limits_refuse(claim, names[at], limit, reasons[at], wait_ns, err);
}

/* With the set's lock held. */
static enum status
entry_enter(struct limits_claim *claim, struct limits_entry *e, enum limits_of of, struct err *err)
{
	static const enum limits_thing things[] = { LIMITS_REQUESTS, LIMITS_BYTES };
	struct limits *l = claim->limits;
	uint64_t open = of == LIMITS_OF_PERSON ? atomic_load(&l->person_open) : 0;
	uint64_t now_ns = clock_mono_ns();

	for (size_t i = 0; i < sizeof(things) / sizeof(*things); i++) {
		struct limits_rate rate = limits_rate_of(l, of, things[i]);
		uint64_t wait_ns = entry_wait_ns(e, things[i], rate, now_ns);

		if (wait_ns)
			return limits_refuse_rate(claim, of, things[i], rate.count, wait_ns, err);
	}
	if (open && !claim->open && e->open >= open) {
		METRIC_REFUSED("person_open");
		return limits_refuse(claim, "person_open", open,
				     "too many requests of one person at a time", 0, err);
	}
	entry_pay(e, LIMITS_REQUESTS, limits_rate_of(l, of, LIMITS_REQUESTS), 1, now_ns);
	if (of == LIMITS_OF_PERSON && !claim->open) {
		e->open++;
		claim->open = true;
	}
	return STATUS_OK;
}

static enum status
limits_enter(struct limits_claim *claim, struct limits *l, uint64_t key, enum limits_of of,
	     struct err *err)
{
	struct limits_entry *entries = limits_entries(l);
	struct limits_entry *e;
	enum status status;

	if (!entries)
		return err_set(err, STATUS_NOMEM, "there is no memory to count for [limits]");
	assert(!claim->limits || claim->limits == l);
	claim->limits = l;
	pthread_mutex_lock(limits_lock_of(l, key));
	e = limits_entry_of(entries, key, true);
	/* If every entry of the set has requests under way, this one is admitted uncounted. */
	status = e ? entry_enter(claim, e, of, err) : STATUS_OK;
	pthread_mutex_unlock(limits_lock_of(l, key));
	if (status == STATUS_OK && e && of == LIMITS_OF_PERSON)
		claim->person = key;
	else if (status == STATUS_OK && e)
		claim->address = key;
	return status;
}

/* A key is never 0, which marks a free entry. */
static uint64_t
limits_key(bool person, struct str bytes)
{
	uint64_t key = hash_keyed(person, bytes);

	return key ? key : 1;
}

/*
 * Finds the entry of a key, or makes it if `make` is true, and leaves its set locked. Returns NULL,
 * with nothing locked, if there is none.
 */
static struct limits_entry *
limits_find(struct limits *l, uint64_t key, bool make)
{
	struct limits_entry *entries = make ? limits_entries(l) : atomic_load(&l->entries);
	struct limits_entry *e;

	if (!key || !entries)
		return NULL;
	pthread_mutex_lock(limits_lock_of(l, key));
	e = limits_entry_of(entries, key, make);
	if (!e)
		pthread_mutex_unlock(limits_lock_of(l, key));
	return e;
}

/* What bytes are paid for: those of a request that was admitted, or others. */
enum limits_payment {
	LIMITS_PAYS_REQUEST,
	LIMITS_PAYS_OPEN, /* likewise, of one that is counted in the entry's `open` and ends */
	LIMITS_PAYS_ELSE,
};

static void
limits_pay(struct limits *l, uint64_t key, enum limits_of of, uint64_t bytes,
	   enum limits_payment payment)
{
	struct limits_entry *e = limits_find(l, key, payment == LIMITS_PAYS_ELSE);

	/* An entry with requests under way is never forgotten. */
	assert(e || payment != LIMITS_PAYS_OPEN);
	if (!e)
		return;
	entry_pay(e, LIMITS_BYTES, limits_rate_of(l, of, LIMITS_BYTES), bytes, clock_mono_ns());
	if (payment == LIMITS_PAYS_OPEN) {
		assert(e->open);
		e->open--;
	}
	pthread_mutex_unlock(limits_lock_of(l, key));
}

/* ---- For a request ---- */

/* The key of an address. */
static uint64_t
limits_address_key(struct str peer)
{
	struct address_block block;

	address_block_of(peer, &block);
	return limits_key(false, str_of((const char *)block.bytes, sizeof(block.bytes)));
}

enum status
limits_enter_address(struct limits_claim *claim, struct limits *l, struct str peer, struct err *err)
{
	if (!limits_hold(l, LIMITS_OF_ADDRESS))
		return STATUS_OK;
	return limits_enter(claim, l, limits_address_key(peer), LIMITS_OF_ADDRESS, err);
}

enum status
limits_enter_person(struct limits_claim *claim, struct limits *l, struct str name, struct err *err)
{
	uint64_t key;

	if (!limits_hold(l, LIMITS_OF_PERSON))
		return STATUS_OK;
	key = limits_key(true, name);
	/* The connection was somebody else's when the claim began. */
	if (claim->open && claim->person != key) {
		limits_pay(l, claim->person, LIMITS_OF_PERSON, 0, LIMITS_PAYS_OPEN);
		claim->open = false;
		claim->person = 0;
	}
	return limits_enter(claim, l, key, LIMITS_OF_PERSON, err);
}

static enum status
limits_database_of(struct limits_claim *claim, uint64_t key, enum limits_of of, struct err *err)
{
	struct limits *l = claim->limits;
	struct limits_entry *e = limits_find(l, key, false);
	struct limits_rate rate;
	uint64_t now_ns = clock_mono_ns();
	uint64_t wait_ns;

	if (!e)
		return STATUS_OK;
	rate = limits_rate_of(l, of, LIMITS_DATABASES);
	wait_ns = entry_wait_ns(e, LIMITS_DATABASES, rate, now_ns);
	if (!wait_ns)
		entry_pay(e, LIMITS_DATABASES, rate, 1, now_ns);
	pthread_mutex_unlock(limits_lock_of(l, key));
	return wait_ns ? limits_refuse_rate(claim, of, LIMITS_DATABASES, rate.count, wait_ns, err)
		       : STATUS_OK;
}

enum status
limits_take_database(struct limits_claim *claim, enum catalog_space space, struct str name,
		     struct err *err)
{
	uint64_t database = hash_keyed(space, name);

	if (!claim->limits || claim->database == database)
		return STATUS_OK;
	TRY(limits_database_of(claim, claim->person, LIMITS_OF_PERSON, err));
	TRY(limits_database_of(claim, claim->address, LIMITS_OF_ADDRESS, err));
	claim->database = database;
	return STATUS_OK;
}

/* Asked by catalog_create(), on the fiber that creates the database. */
static enum status
limits_admit_database(enum catalog_space space, struct str name, struct err *err)
{
	struct limits_claim *claim = task_works_for();

	return claim ? limits_take_database(claim, space, name, err) : STATUS_OK;
}

struct limits_claim *
limits_work_under(struct limits_claim *claim)
{
	return task_work_for(claim);
}

void
limits_count_bytes(struct limits *l, const struct limits_claim *claim, struct str peer,
		   struct str person, uint64_t bytes)
{
	if (!claim->address && limits_hold(l, LIMITS_OF_ADDRESS))
		limits_pay(l, limits_address_key(peer), LIMITS_OF_ADDRESS, bytes, LIMITS_PAYS_ELSE);
	if (!claim->person && person.len && limits_hold(l, LIMITS_OF_PERSON))
		limits_pay(l, limits_key(true, person), LIMITS_OF_PERSON, bytes, LIMITS_PAYS_ELSE);
}

void
limits_leave(struct limits_claim *claim, uint64_t bytes)
{
	if (!claim->limits)
		return;
	limits_pay(claim->limits, claim->address, LIMITS_OF_ADDRESS, bytes, LIMITS_PAYS_REQUEST);
	limits_pay(claim->limits, claim->person, LIMITS_OF_PERSON, bytes,
		   claim->open ? LIMITS_PAYS_OPEN : LIMITS_PAYS_REQUEST);
	*claim = (struct limits_claim){ 0 };
}
