/*
 * Counters by range that are set by hand: what tending makes of them, to the key, and what is read
 * of them. Keys and ranges are texts:
 *
 *     "a20 b5"        the keys a00 to a19, and b00 to b04
 *     "-b:20 b-:5"    20 keys from the beginning up to b, five from there to the end
 *     "-b:x"          no range up to b any more
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "catalog/stretches.h"
#include "catalog/store_format.h"
#include "catalog/tally_int.h"
#include "kv/engine.h"
#include "store.h"
#include "tiny.h"

enum {
	FEW = 4, /* keys of a new range in a small database */
	ARENA_BYTES = 16 * 1024 * 1024,
	TEXT_BYTES = 8192,
};

static const struct catalog_tally_sizes few = { FEW, 2 };

#define LETTER "\2" /* with which a string in a tuple begins */

struct fixture {
	char dir[64];
	struct kv_store *store;
	struct arena *arena;
	struct catalog_tallies *tallies;
	struct catalog_cache *cache;
	struct catalog_db *db;
	const char *name; /* of the database */
	const char *keys; /* to put, to take away or to count */
	const char *ranges;
	int change;            /* of the keys */
	size_t alike;          /* bytes with which long keys begin */
	char text[TEXT_BYTES]; /* the ranges that there are */
	uint64_t number;
};

static int
setup(void **state)
{
	const struct kv_options options = { .create = true, .no_sync = true };
	struct fixture *f = calloc(1, sizeof(*f));
	char path[128], url[256];

	assert_non_null(f);
	tiny_register();
	test_make_dir("ranges", f->dir, sizeof(f->dir));
	snprintf(path, sizeof(path), "%s/store", f->dir);
	test_store_url(path, url, sizeof(url));
	assert_int_equal(catalog_store_open(url, &options, &f->store, NULL), STATUS_OK);
	f->arena = arena_new(ARENA_BYTES);
	f->tallies = catalog_tallies_new();
	f->cache = catalog_cache_new();
	assert_true(f->arena && f->tallies && f->cache);
	catalog_cache_share(f->cache, f->tallies);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	catalog_db_unref(f->db);
	catalog_cache_free(f->cache);
	catalog_tallies_free(f->tallies);
	arena_free(f->arena);
	kv_close(f->store);
	test_remove_tree(f->dir);
	free(f);
	return 0;
}

static void
run(struct fixture *f, kv_body *body)
{
	struct err err = { 0 };

	if (kv_run(f->store, body, f, NULL, &err) != STATUS_OK)
		fail_msg("%s", err.text);
}

/* ---- Keys ---- */

static enum status
key_write(struct kv_tx *tx, struct fixture *f, struct str id)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	catalog_key_list(&key, f->db, 0);
	tuple_put_str(&key, id);
	TRY(catalog_key_status(&key));
	return f->change > 0 ? kv_set(tx, buf_str(&key), STR("")) : kv_clear(tx, buf_str(&key));
}

/* The number of keys of the list as a whole. */
static enum status
total_add(struct kv_tx *tx, struct fixture *f, int64_t change)
{
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;
	const struct catalog_tally_list *list = &f->db->kind->lists[0];

	buf_append_str(&key, f->db->prefix);
	tuple_put_u64(&key, list->totals);
	tuple_put_str(&key, str_from_cstr(list->total_names[0]));
	TRY(catalog_key_status(&key));
	return catalog_counter_add(tx, &key, change);
}

static enum status
keys_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	char letter, id[16];
	int count, len;

	for (const char *at = f->keys; sscanf(at, " %c%d%n", &letter, &count, &len) == 2;
	     at += len) {
		for (int i = 0; i < count; i++) {
			int n = snprintf(id, sizeof(id), "%c%02d", letter, i);

			TRY(key_write(tx, f, str_of(id, (size_t)n)));
		}
		TRY(total_add(tx, f, f->change * count));
	}
	return STATUS_OK;
}

/* ---- Ranges ---- */

static struct str
bound(struct fixture *f, const char *from, size_t len, struct str none)
{
	return len ? arena_printf(f->arena, LETTER "%.*s", (int)len, from) : none;
}

static enum status
ranges_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	AUTO(buf_release) struct buf key = CATALOG_KEY_INIT;

	for (const char *at = f->ranges; *at; at += strspn(at, " ")) {
		size_t lo = strcspn(at, "-"), hi = strcspn(at + lo + 1, ":");
		char *end;
		const char *value = at + lo + 1 + hi + 1;
		long count = strtol(value, &end, 10);

		catalog_key_range(&key, f->db, 0, bound(f, at, lo, STR("")),
				  bound(f, at + lo + 1, hi, CATALOG_TALLY_END));
		TRY(catalog_key_status(&key));
		TRY(*value == 'x' ? kv_clear(tx, buf_str(&key))
				  : catalog_counter_add(tx, &key, count));
		at = end + (*value == 'x');
	}
	return STATUS_OK;
}

static struct str
bound_text(struct str s)
{
	return str_eq(s, CATALOG_TALLY_END) || !s.len ? STR("") : str_skip(s, 1);
}

static enum status
look_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	struct catalog_ranges all;
	size_t len = 0;

	TRY(catalog_ranges_read(tx, f->db, 0, f->arena, &all));
	f->text[0] = '\0';
	for (size_t i = 0; i < all.count && len < TEXT_BYTES; i++) {
		struct str lo = bound_text(all.ranges[i].lo), hi = bound_text(all.ranges[i].hi);

		len += (size_t)snprintf(f->text + len, TEXT_BYTES - len, "%s%.*s-%.*s:%lld",
					i ? " " : "", STR_ARG(lo), STR_ARG(hi),
					(long long)all.ranges[i].count);
	}
	return STATUS_OK;
}

static void
assert_ranges(struct fixture *f, const char *expected)
{
	run(f, look_body);
	if (strcmp(f->text, expected) != 0)
		fail_msg("of %s %s: \"%s\", and not \"%s\"", f->keys, f->ranges, f->text, expected);
}

/* ---- A database of them ---- */

static enum status
create_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	return tiny_create(tx, str_from_cstr(f->name), NULL);
}

static enum status
open_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;

	catalog_db_unref(f->db);
	f->db = NULL;
	return catalog_open(tx, f->cache, (enum catalog_space)TINY_SPACE, str_from_cstr(f->name),
			    &f->db, NULL);
}

static void
make(struct fixture *f, const char *name, const char *keys, const char *ranges)
{
	f->name = name;
	f->keys = keys;
	f->ranges = ranges;
	f->change = 1;
	run(f, create_body);
	run(f, open_body);
	run(f, keys_body);
	run(f, ranges_body);
}

uint64_t __real_clock_mono_ns(void);
uint64_t __wrap_clock_mono_ns(void);

static _Thread_local uint64_t now_ms;  /* 0: the clock goes as it does */
static _Thread_local uint64_t look_ms; /* and each look at it takes so long */

uint64_t
__wrap_clock_mono_ns(void)
{
	if (!now_ms)
		return __real_clock_mono_ns();
	now_ms += look_ms;
	return now_ms * CLOCK_NS_PER_MS;
}

/* As another process: it reads the ranges that there are now. */
static void
reopen(struct fixture *f)
{
	catalog_db_unref(f->db);
	f->db = NULL;
	catalog_cache_free(f->cache);
	f->cache = catalog_cache_new();
	assert_non_null(f->cache);
	catalog_cache_share(f->cache, f->tallies);
	run(f, open_body);
}

static bool
tend(struct fixture *f)
{
	struct err err = { 0 };
	bool more;

	if (catalog_tally_tend(f->store, f->db, &few, &more, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	return more;
}

/* ---- Commits: they are counted, and a writer may come in front of one ---- */

static const struct kv_engine *true_engine;
static struct kv_engine counting;
static unsigned commits;
static struct fixture *meets; /* whose keys and ranges are written then; NULL: nobody's */
static unsigned meets_at;     /* the number of that commit */

static struct kv_future *
commit_counted(struct kv_tx *tx)
{
	struct fixture *f = ++commits == meets_at ? meets : NULL;

	if (f) {
		meets = NULL;
		f->store->engine = true_engine;
		run(f, keys_body);
		run(f, ranges_body);
		f->store->engine = &counting;
	}
	return true_engine->commit(tx);
}

static bool
tend_counted(struct fixture *f)
{
	bool more;

	true_engine = f->store->engine;
	counting = *true_engine;
	counting.commit = commit_counted;
	commits = 0;
	f->store->engine = &counting;
	more = tend(f);
	f->store->engine = true_engine;
	return more;
}

/* ---- What tending makes of ranges ---- */

static void
ranges_are_split_and_merged_to_the_key(void **state)
{
	static const struct {
		const char *keys, *ranges;
		const char *then;
		const char *last; /* after a second call; NULL: nothing was left to do */
		unsigned commits;
	} cases[] = {
		{ "", "", "", NULL, 1 },
		{ "a5", "", "-:5", NULL, 2 },
		{ "a8", "-:8", "-:8", NULL, 1 },
		{ "a9", "-:9", "-:9 a08-:0", "-a04:4 a04-a08:5 a08-:0", 2 },
		{ "a20", "-:20", "-:20 a19-:0",
		  "-a04:4 a04-a1:6 a1-a14:4 a14-a18:4 a18-a19:2 a19-:0", 2 },
		/* While writers are busy each call opens a last range: older ones are folded. */
		{ "a9 b9", "-:9 a08-:9", "-a08:8 a08-:10 b08-:0",
		  "-a08:8 a08-b03:4 b03-b07:4 b07-b08:2 b08-:0", 3 },
		{ "a9 b9 c12", "-:9 a08-:9 b08-:12", "-a08:8 a08-b08:9 b08-:13 c11-:0",
		  "-a08:8 a08-b08:9 b08-c04:5 c04-c1:6 c1-c11:2 c11-:0", 3 },
		{ "a20 b3", "-b:20 b-:3", "-a04:4 a04-a1:6 a1-a14:4 a14-a18:4 a18-b:2 b-:3", NULL,
		  3 },
		/* Nobody counts the keys of a range that is not too large: this one is wrong. */
		{ "a7 b4", "-b:8 b-:3", "-b:8 b-:3", NULL, 1 },
		{ "a8 b3", "-b:8 b-:3", "-b:8 b-:3", NULL, 1 },
		{ "a9 b3", "-b:9 b-:3", "-a04:4 a04-b:5 b-:3", NULL, 3 },
		{ "a9 b9 c3", "-b:9 b-c:9 c-:3", "-a04:4 a04-b:5 b-b04:4 b04-c:5 c-:3", NULL, 4 },
		{ "a2 b2 c1", "-b:2 b-c:2 c-:1", "-c:4 c-:1", "-c:4 c-:1", 1 },
		{ "a2 b3 c1", "-b:2 b-c:3 c-:1", "-b:2 b-c:3 c-:1", NULL, 1 },
		{ "a1 b1 c1 d1 e1 g1", "-b:1 b-c:1 c-d:1 d-e:1 e-f:1 f-:1", "-e:4 e-f:1 f-:1",
		  "-e:4 e-f:1 f-:1", 1 },
		{ "a1 b1 d1", "-b:1 b-c:1 d-:1", "-c:2 d-:1", "-c:2 d-:1", 1 },
		{ "a1 c1 d1 e1", "-b:1 c-d:1 d-e:1 e-:1", "-b:1 c-e:2 e-:1", "-b:1 c-e:2 e-:1", 1 },
		{ "a1 c1 e9", "-b:1 c-d:1 d-:9", "-b:1 c-d:1 d-:9 e08-:0",
		  "-b:1 c-d:1 d-e04:4 e04-e08:5 e08-:0", 2 },
		{ "a4 b4", "-c:4 b-:4", "-b:4 b-c:4 c-:0", NULL, 2 },
		{ "a4 b4 c5", "-c:8 c-:5", "-c:8 c-:5", NULL, 1 },
		{ "a5 b7", "-c:5 b-:7", "-b:5 b-c:7 c-:0", NULL, 2 },
		{ "a5 b7 c2", "-c:5 b-c:7 c-:2", "-b:5 b-c:7 c-:2", NULL, 3 },
		{ "a5 b7 c2", "-d:5 b-c:7 c-:2", "-b:5 b-c:7 c-d:2 d-:0", NULL, 2 },
		{ "a5 b7 c2 e2", "-d:5 b-c:9 e-:2", "-b:5 b-c:7 c-d:2 e-:2", NULL, 3 },
		{ "a2 b2 c2 d2 e2 f2", "-f:10 f-:2", "-c:4 c-e:4 e-f:2 f-:2", NULL, 3 },
		{ "a3 b3 c3 d3 e3 f3", "-f:15 f-:3", "-b:3 b-d:6 d-e:3 e-f:3 f-:3", NULL, 3 },
		{ "a2 b1 c7 d4 e5 f6", "-f:19 f-:6", "-c:3 c-d:7 d-e:4 e-f:5 f-:6", NULL, 3 },
		{ "a6 b1 c6 d2 e7 f1", "-g:23 g-:0", "-b:6 b-c03:4 c03-d:3 d-e02:4 e02-g:6 g-:0",
		  NULL, 3 },
		{ "a1 b9 c1 d1", "-d:11 d-:1", "-b03:4 b03-d:7 d-:1", NULL, 3 },
		{ "a10 b1 c1", "-c:11 c-:1", "-a04:4 a04-c:7 c-:1", NULL, 3 },
		{ "a7 b2 c1", "-c:9 c-:1", "-a04:4 a04-b:3 b-c:2 c-:1", NULL, 3 },
		{ "a8 b1 c1", "-c:9 c-:1", "-a04:4 a04-c:5 c-:1", NULL, 3 },
		{ "a6 b3 c1", "-c:9 c-:1", "-b:6 b-c:3 c-:1", NULL, 3 },
		{ "a30 b1", "-b:30 b-:1", "-a05:5 a05-a1:5 a1-a15:5 a15-a2:5 a2-a25:5 a25-b:5 b-:1",
		  NULL, 3 },
		{ "a24 b1", "-b:24 b-:1", "-a05:5 a05-a1:5 a1-a15:5 a15-a2:5 a2-b:4 b-:1", NULL,
		  3 },
		{ "a25 b24 c1", "-b:25 b-:25", "-a1:10 a1-a2:10 a2-b:5 b-:25 c00-:0",
		  "-a1:10 a1-a2:10 a2-b:5 b-b1:10 b1-b2:10 b2-c00:5 c00-:0", 3 },
		{ "a25 b24 c1", "-:40 b-:10", "-a1:10 a1-a2:10 a2-b:5 b-:25 c00-:0",
		  "-a1:10 a1-a2:10 a2-b:5 b-b1:10 b1-b2:10 b2-c00:5 c00-:0", 3 },
		{ "a25 b24 c1", "-:12 b-c:24 b-:14",
		  "-a1:10 a1-a2:10 a2-b:5 b-b1:10 b1-b2:10 b2-c:4 c-:1", NULL, 2 },
		{ "a3 b1", "-:3", "-:4", NULL, 2 },
		{ "a3 b1", "-:5", "-:4", NULL, 2 },
		{ "a3 b1 c1", "-b:4 b-c:0 c-:1", "-c:4 c-:1", "-c:4 c-:1", 1 },
		{ "a3 b1 c1", "-b:3 b-c:1 c-:1", "-c:4 c-:1", "-c:4 c-:1", 1 },
		{ "a3 b3 c2 d1", "-b:3 b-c:3 c-d:2 d-:1", "-b:3 b-c:3 c-d:2 d-:1", NULL, 1 },
		{ "a3 b5 c9", "-b:3 b-:14", "-b:3 b-:14 c08-:0",
		  "-b:3 b-c:5 c-c04:4 c04-c08:5 c08-:0", 2 },
		{ "a2 b2 c9", "-b:2 b-c:2 c-:9", "-c:4 c-:9 c08-:0",
		  "-c:4 c-c04:4 c04-c08:5 c08-:0", 2 },
		{ "a2 b2 c1", "-b:6 b-c:-2 c-:1", "-b:6 b-c:-2 c-:1", NULL, 1 },
		{ "a2 b2 c1", "-c:6 b-c:-2 c-:1", "-c:4 c-:1", "-c:4 c-:1", 3 },
		{ "a90 b90 c90 d90 e90 f90 g90 h90 i90 j90 k90 l90 m90 n90 o90 "
		  "p90 q90 r90 s90 t90 z1",
		  "-b:90 b-c:90 c-d:90 d-e:90 e-f:90 f-g:90 g-h:90 h-i:90 "
		  "i-j:90 j-k:90 k-l:90 l-m:90 m-n:90 n-o:90 o-p:90 p-q:90 "
		  "q-r:90 r-s:90 s-t:90 t-u:90 u-:1",
		  "-a4:40 a4-b:50 b-b4:40 b4-c:50 c-c4:40 c4-d:50 d-d4:40 "
		  "d4-e:50 e-e4:40 e4-f:50 f-f4:40 f4-g:50 g-g4:40 g4-h:50 "
		  "h-h4:40 h4-i:50 i-i4:40 i4-j:50 j-j4:40 j4-k:50 k-k4:40 "
		  "k4-l:50 l-l4:40 l4-m:50 m-m4:40 m4-n:50 n-n4:40 n4-o:50 "
		  "o-o4:40 o4-p:50 p-p4:40 p4-q:50 q-q4:40 q4-r:50 r-s:90 "
		  "s-t:90 t-u:90 u-:1",
		  "-a4:40 a4-b:50 b-b4:40 b4-c:50 c-c4:40 c4-d:50 d-d4:40 "
		  "d4-e:50 e-e4:40 e4-f:50 f-f4:40 f4-g:50 g-g4:40 g4-h:50 "
		  "h-h4:40 h4-i:50 i-i4:40 i4-j:50 j-j4:40 j4-k:50 k-k4:40 "
		  "k4-l:50 l-l4:40 l4-m:50 m-m4:40 m4-n:50 n-n4:40 n4-o:50 "
		  "o-o4:40 o4-p:50 p-p4:40 p4-q:50 q-q4:40 q4-r:50 r-r4:40 "
		  "r4-s:50 s-s4:40 s4-t:50 t-t4:40 t4-u:50 u-:1",
		  18 },
		{ "a1 b1 c1 d1 e1 f1 g1 h1 i1 j1 k1 l1 m1 n1 o1 p1 q1 r1 s1 t1 z1",
		  "-b:1 b-c:1 c-d:1 d-e:1 e-f:1 f-g:1 g-h:1 h-i:1 i-j:1 j-k:1 "
		  "k-l:1 l-m:1 m-n:1 n-o:1 o-p:1 p-q:1 q-r:1 r-s:1 s-t:1 t-u:1 "
		  "u-:1",
		  "-e:4 e-i:4 i-m:4 m-q:4 q-u:4 u-:1", "-e:4 e-i:4 i-m:4 m-q:4 q-u:4 u-:1", 1 },
	};
	struct fixture *f = *state;
	char name[16];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool more;

		snprintf(name, sizeof(name), "%zu", i);
		make(f, name, cases[i].keys, cases[i].ranges);
		more = tend_counted(f);
		assert_ranges(f, cases[i].then);
		assert_int_equal(more, cases[i].last != NULL);
		if (commits != cases[i].commits)
			fail_msg("of %s %s: %u commits", f->keys, f->ranges, commits);
		if (!more)
			continue;
		assert_false(tend(f));
		assert_ranges(f, cases[i].last);
	}
}

static void
a_writer_who_comes_between_loses_no_key(void **state)
{
	static const struct {
		const char *keys, *ranges;
		const char *late_keys, *late_ranges; /* of the writer */
		const char *then, *last;
		unsigned commits; /* of the first call */
		unsigned late_at; /* the commit that the writer comes in front of */
	} cases[] = {
		{ "a9 b1", "-b:9 b-:1", "", "", "-a04:4 a04-b:5 b-:1", "-a04:4 a04-b:5 b-:1", 3,
		  1 },
		{ "a9 b1", "-b:9 b-:1", "c1", "b-:1", "-a04:4 a04-b:5 b-:2", "-a04:4 a04-b:5 b-:2",
		  3, 1 },
		{ "a9 b1", "-b:9 b-:1", "A1", "-b:1", "-a03:0 -b:10 a03-a07:0 a07-b:0 b-:1",
		  "-a03:4 a03-a07:4 a07-b:2 b-:1", 2, 1 },
		{ "a9 b1", "-b:9 b-:1", "A1", "-a04:1", "-a04:5 a04-b:5 b-:1",
		  "-a04:5 a04-b:5 b-:1", 3, 1 },
		{ "a20 b1", "-b:20 b-:1", "c2", "-b:1 b-:1",
		  "-a04:0 -b:21 a04-a1:0 a1-a14:0 a14-a18:0 a18-b:0 b-:2",
		  "-a04:4 a04-a1:6 a1-a14:4 a14-a18:4 a18-b:3 b-:2", 2, 1 },
		{ "a20 b1", "-b:20 b-:1", "c2", "-c:1 b-:1",
		  "-a04:4 a04-a1:6 a1-a14:4 a14-a18:4 a18-c:3 c-:2",
		  "-a04:4 a04-a1:6 a1-a14:4 a14-a18:4 a18-c:3 c-:2", 4, 1 },
		{ "a2 b2 c1", "-b:2 b-c:2 c-:1", "A1", "-b:1", "-b:1 -c:4 c-:1", "-b:3 b-c:2 c-:1",
		  1, 1 },
		{ "a2 b2 c1", "-b:2 b-c:2 c-:1", "d1", "-b:-1 b-:2", "-b:-1 -c:4 b-:2 c-:1",
		  "-c:4 c-:2", 1, 1 },
		{ "a9", "-:9", "b2", "-:2", "-:11 a08-:0", "-a04:4 a04-a08:5 a08-:2", 2, 1 },
		{ "a9", "-:9", "b9", "-:9", "-:18 a08-:0",
		  "-a04:4 a04-a08:5 a08-b04:4 b04-b08:5 b08-:0", 2, 1 },
		{ "a9 b9 c1", "-b:9 b-c:9 c-:1", "A1", "-b:1",
		  "-a03:0 -b:10 a03-a07:0 a07-b:0 b-c:9 c-:1",
		  "-a03:4 a03-a07:4 a07-b:2 b-b04:4 b04-c:5 c-:1", 2, 1 },
		{ "a9 b9 c1", "-b:9 b-c:9 c-:1", "A1", "-d:1",
		  "-a04:5 a04-b:5 b-b04:4 b04-c:5 c-d:1 d-:0",
		  "-a04:5 a04-b:5 b-b04:4 b04-c:5 c-d:1 d-:0", 5, 1 },
		{ "a4 b4 c1", "-c:4 b-c:4 c-:1", "A1", "-c:1", "-b:0 -c:5 b-c:4 c-:1",
		  "-b:5 b-c:4 c-:1", 2, 1 },
		{ "a4 b4 c1", "-c:4 b-c:4 c-:1", "A1", "-b:1", "-b:5 b-c:4 c-:1", "-b:5 b-c:4 c-:1",
		  3, 1 },
		{ "a5", "", "b1", "-:1", "-:6", "-:6", 2, 1 },
		{ "a9 b9 e1", "-b:9 b-c:9 c-d:0 d-:1", "", "b-d:0",
		  "-a04:4 a04-b:5 b-b04:4 b04-c:5 c-d:0 d-:1",
		  "-a04:4 a04-b:5 b-b04:4 b04-c:5 c-d:0 d-:1", 6, 1 },
		{ "a9 b9 e1", "-b:9 b-c:9 d-:1", "", "b-d:0",
		  "-a04:4 a04-b:5 b-b04:4 b04-c:5 c-d:0 d-:1",
		  "-a04:4 a04-b:5 b-b04:4 b04-c:5 c-d:0 d-:1", 6, 1 },
		{ "a9 b9 e1", "-b:9 b-c:9 d-:1", "", "b-b1:0",
		  "-a04:4 a04-b:5 b-b04:4 b04-b1:5 b1-c:0 d-:1",
		  "-a04:4 a04-b:5 b-b04:4 b04-b1:5 b1-c:0 d-:1", 4, 1 },
		{ "a9 b9 e1", "-b:9 b-c:9 d-:1", "", "b04-c:0",
		  "-a04:4 a04-b:5 b-b04:4 b04-c:5 d-:1", "-a04:4 a04-b:5 b-b04:4 b04-c:5 d-:1", 4,
		  1 },
		{ "a13 b13 c13 e1", "-b:13 b-c:13 c-d:13 d-:1", "", "b-d:0",
		  "-a06:6 a06-a1:4 a1-b:3 b-b06:6 b06-b1:4 b1-c:3 c-c06:6 "
		  "c06-c1:4 c1-d:3 d-:1",
		  "-a06:6 a06-a1:4 a1-b:3 b-b06:6 b06-b1:4 b1-c:3 c-c06:6 "
		  "c06-c1:4 c1-d:3 d-:1",
		  7, 1 },
		/* A region that is folded by itself, and meanwhile begins later than it did. */
		{ "a9 e1", "-b:9 b-c:0 b-b1:0 d-:1", "b20", "b-c:x b-b1:x -b04:4 b04-c:16",
		  "-a04:4 a04-b:5 b-b04:4 b04-b1:6 b1-b15:5 b15-c:5 d-:1",
		  "-a04:4 a04-b:5 b-b04:4 b04-b1:6 b1-b15:5 b15-c:5 d-:1", 7, 1 },
		/* Or has been folded by another process when it is tried again. */
		{ "a9 b5 e1", "-b:9 b-c:3 b-b5:2 d-:1", "", "b-b5:x b-c:2",
		  "-a04:4 a04-b:5 b-c:5 d-:1", "-a04:4 a04-b:5 b-c:5 d-:1", 5, 3 },
	};
	struct fixture *f = *state;
	char name[16];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool more;

		snprintf(name, sizeof(name), "%zu", i);
		make(f, name, cases[i].keys, cases[i].ranges);
		f->keys = cases[i].late_keys;
		f->ranges = cases[i].late_ranges;
		meets = f;
		meets_at = cases[i].late_at;
		more = tend_counted(f);
		assert_null(meets);
		assert_ranges(f, cases[i].then);
		if (commits != cases[i].commits)
			fail_msg("of %s %s: %u commits", f->keys, f->ranges, commits);
		for (int k = 0; k < 20 && more; k++)
			more = tend(f);
		assert_false(more);
		assert_ranges(f, cases[i].last);
	}
}

/* Keys that begin with so many bytes that are alike. */
static enum status
long_keys_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	char *id = arena_alloc(f->arena, f->alike + 1);

	memset(id, 'a', f->alike);
	for (int i = 0; i < f->change; i++) {
		id[f->alike] = (char)('0' + i);
		TRY(key_write(tx, f, str_of(id, f->alike + 1)));
	}
	return total_add(tx, f, f->change);
}

static size_t
ranges_there(struct fixture *f)
{
	size_t count = 1;

	run(f, look_body);
	for (const char *at = f->text; (at = strchr(at, ' ')); at++)
		count++;
	return count;
}

/* Where the place between two keys is told by more bytes than a bound has, no range ends. */
static void
ranges_end_where_a_bound_is_not_too_long(void **state)
{
	static const struct {
		int alike;
		const char *ranges;
		size_t then;
		bool opened; /* the last range has no keys */
	} cases[] = {
		/* In between: a letter of the tuple, and the byte that differs. */
		{ CATALOG_MARK_BYTES - 2, "-z:9 z-:0", 3, true },
		{ CATALOG_MARK_BYTES - 1, "-z:9 z-:0", 2, true },
		/* At the end: the whole key, and the byte behind it. */
		{ CATALOG_MARK_BYTES - 4, "-:9", 2, true },
		{ CATALOG_MARK_BYTES - 3, "-:9", 2, false },
	};
	struct fixture *f = *state;
	char name[16];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(name, sizeof(name), "%zu", i);
		make(f, name, "", cases[i].ranges);
		f->alike = (size_t)cases[i].alike;
		f->change = 9;
		run(f, long_keys_body);
		(void)tend(f);
		if (ranges_there(f) != cases[i].then)
			fail_msg("case %zu: %zu ranges", i, ranges_there(f));
		assert_int_equal(strcmp(f->text + strlen(f->text) - 2, ":0") == 0, cases[i].opened);
	}
}

static enum status
many_keys_body(struct kv_tx *tx, void *arg)
{
	struct fixture *f = arg;
	char id[16];

	for (int i = 0; i < f->change; i++) {
		int n = snprintf(id, sizeof(id), "%04d", i);

		TRY(key_write(tx, f, str_of(id, (size_t)n)));
	}
	return total_add(tx, f, f->change);
}

/* Of the usual sizes: as many as four new ones have stay together. */
static void
a_range_is_cut_above_four_times_a_new_one(void **state)
{
	enum {
		MOST = CATALOG_TALLY_CUT * CATALOG_TALLY_KEYS,
	};
	struct fixture *f = *state;
	char name[16], ranges[32];

	for (int more = 0; more < 2; more++) {
		bool left;

		snprintf(name, sizeof(name), "%d", more);
		snprintf(ranges, sizeof(ranges), "-z:%d z-:0", MOST + more);
		make(f, name, "", ranges);
		f->change = MOST + more;
		run(f, many_keys_body);
		assert_int_equal(catalog_tally_tend(f->store, f->db, NULL, &left, NULL), STATUS_OK);
		assert_ranges(f, more ? "-02:200 02-04:200 04-06:200 06-08:200 08-z:225 z-:0"
				      : "-z:1024 z-:0");
	}
}

/* ---- What is read of ranges ---- */

typedef enum status read_fn(struct kv_tx *tx, struct fixture *f, struct buf *said);

/* Says `count` parts, "b c d/20": where they are cut, and the keys of all. */
static enum status
cut_parts(struct kv_tx *tx, struct fixture *f, size_t parts, struct buf *said)
{
	struct str bounds[8];
	uint64_t keys;
	size_t count;

	TRY(catalog_tally_cut(tx, f->db, 0, parts, f->arena, bounds, &count, &keys));
	for (size_t i = 0; i < count; i++)
		buf_printf(said, "%s%.*s", i ? " " : "", STR_ARG(bound_text(bounds[i])));
	buf_printf(said, "/%llu", (unsigned long long)keys);
	return STATUS_OK;
}

static enum status
read_cuts(struct kv_tx *tx, struct fixture *f, struct buf *said)
{
	for (size_t parts = 1; parts <= 4; parts++) {
		TRY(cut_parts(tx, f, parts, said));
		buf_append_str(said, parts < 4 ? STR(", ") : STR(""));
	}
	return STATUS_OK;
}

static enum status
read_stretches(struct kv_tx *tx, struct fixture *f, struct buf *said)
{
	struct catalog_stretch *stretches;
	size_t count;

	TRY(catalog_tally_stretches(tx, f->db, 0, f->arena, &stretches, &count));
	for (size_t i = 0; i < count; i++)
		buf_printf(said, "%s%.*s-%.*s:%llu", i ? " " : "",
			   STR_ARG(bound_text(stretches[i].lo)),
			   STR_ARG(bound_text(stretches[i].hi)),
			   (unsigned long long)stretches[i].keys);
	return STATUS_OK;
}

struct reading {
	struct fixture *f;
	read_fn *fn;
	struct buf *said;
};

static enum status
read_body(struct kv_tx *tx, void *arg)
{
	struct reading *r = arg;

	buf_clear(r->said);
	return r->fn(tx, r->f, r->said);
}

static void
assert_reads(struct fixture *f, read_fn *fn, enum status expected, const char *text)
{
	AUTO(buf_release) struct buf said = BUF_INIT(TEXT_BYTES);
	struct reading r = { f, fn, &said };
	enum status status = kv_run_read(f->store, read_body, &r, NULL);

	buf_append_byte(&said, '\0');
	assert_int_equal(status, expected);
	if (status == STATUS_OK && strcmp(said.ptr, text) != 0)
		fail_msg("of %s: \"%s\", and not \"%s\"", f->ranges, said.ptr, text);
}

static void
parts_and_stretches_are_told_by_ranges(void **state)
{
	static const struct {
		const char *keys, *ranges;
		enum status status; /* of asking for stretches */
		const char *stretches;
		const char *cuts; /* in one to four parts */
	} cases[] = {
		{ "", "", STATUS_OK, "", "/0, /0, /0, /0" },
		{ "a5", "-:5", STATUS_OK, "-:5", "/5, /5, /5, /5" },
		{ "a5", "-:4", STATUS_OK, "", "/5, /5, /5, /5" },
		{ "a5 b5 c5 d5", "-b:5 b-c:5 c-d:5 d-:5", STATUS_OK, "-b:5 b-c:5 c-d:5 d-:5",
		  "/20, c/20, c d/20, b c d/20" },
		{ "a5 b5 c5 d5", "-c:5 b-c:5 c-d:5 d-:5", STATUS_OK, "-c:10 c-d:5 d-:5",
		  "/20, c/20, c d/20, b c d/20" },
		{ "a5 b5 c5 d5", "-c:15 b-c:-5 c-d:5 c-:5", STATUS_OK, "-c:10 c-:10",
		  "/20, b/20, b c/20, b c/20" },
		{ "a5 b5 c5 d5", "-b:5 b-d:5 c-:10", STATUS_OK, "-b:5 b-:15",
		  "/20, c/20, c/20, b c/20" },
		{ "a5 b5 c5 d5", "-b:5 b-e:8 b01-c:2 d-e:5 e-:0", STATUS_OK, "-b:5 b-e:15 e-:0",
		  "/20, b01/20, b01 d/20, b b01 d/20" },
		{ "a9 b1 c1 d1", "-b:9 b-c:1 c-d:1 d-:1", STATUS_OK, "-b:9 b-c:1 c-d:1 d-:1",
		  "/12, b/12, b c/12, b c d/12" },
		{ "a1 b1 c1 d9", "-b:1 b-c:1 c-d:1 d-:9", STATUS_OK, "-b:1 b-c:1 c-d:1 d-:9",
		  "/12, /12, /12, d/12" },
		{ "a4 b4 c3", "-b:4 b-c:4 c-:3", STATUS_OK, "-b:4 b-c:4 c-:3",
		  "/11, c/11, b c/11, b c/11" },
		{ "a5", "-a:-1 a-:6", STATUS_CORRUPT, "", "/5, /5, /5, /5" },
		{ "a5 b1", "a-b:5 b-:1", STATUS_OK, "a-b:5 b-:1", "/6, b/6, b/6, b/6" },
		{ "a5", "-a:0 a-b:5 b-:0", STATUS_OK, "-a:0 a-b:5 b-:0", "/5, b/5, b/5, b/5" },
	};
	struct fixture *f = *state;
	char name[16];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(name, sizeof(name), "%zu", i);
		make(f, name, cases[i].keys, cases[i].ranges);
		assert_reads(f, read_stretches, cases[i].status, cases[i].stretches);
		assert_reads(f, read_cuts, STATUS_OK, cases[i].cuts);
	}
}

/* In front of each of these places, and behind: by counters and, within a region, by keys. */
static enum status
read_ranks(struct kv_tx *tx, struct fixture *f, struct buf *said)
{
	static const char *const places[] = { "a", "a03", "b", "b01", "c", "d", "e" };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct str at = arena_printf(f->arena, LETTER "%s", places[i]);
		uint64_t before, behind;

		TRY(catalog_tally_rank(tx, f->db, 0, at, false, &before));
		TRY(catalog_tally_rank(tx, f->db, 0, at, true, &behind));
		buf_printf(said, "%s%llu+%llu", i ? " " : "", (unsigned long long)before,
			   (unsigned long long)behind);
	}
	return STATUS_OK;
}

/* Some counters are wrong, so that what they say is told from what is counted by keys. */
static void
places_are_counted_by_ranges_and_within_them_by_keys(void **state)
{
	static const struct {
		const char *ranges;
		enum status status;
		const char *ranks;
	} cases[] = {
		{ "-:14", STATUS_OK, "0+14 3+11 5+9 6+8 9+5 12+2 14+0" },
		{ "-:13", STATUS_OK, "0+14 3+11 5+9 6+8 9+5 12+2 14+0" },
		{ "-b:5 b-c:4 c-:5", STATUS_OK, "0+14 3+11 5+9 6+8 9+5 12+2 14+0" },
		{ "-b:105 b-c:4 c-:-95", STATUS_CORRUPT, "" },
		{ "-b:105 b-c:-96 c-:5", STATUS_CORRUPT, "" },
		{ "-c:105 b-c:-96 c-:5", STATUS_OK, "0+14 3+11 5+9 6+8 9+5 12+2 14+0" },
		{ "-c:9 b-d:3 d-:2", STATUS_OK, "0+14 3+11 5+9 6+8 9+5 12+2 14+0" },
		{ "-d:9 b-c:3 c-d:0 d-:2", STATUS_OK, "0+14 3+11 5+9 6+8 9+5 12+2 14+0" },
		{ "a03-b:9 b-c:3 d-:2", STATUS_OK, "0+14 0+14 9+5 10+5 12+2 12+2 14+0" },
	};
	struct fixture *f = *state;
	char name[16];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(name, sizeof(name), "%zu", i);
		make(f, name, "a5 b4 c3 d2", cases[i].ranges);
		assert_reads(f, read_ranks, cases[i].status, cases[i].ranks);
	}
}

/* ---- Estimates ---- */

static void
assert_estimate(struct fixture *f, const char *begin, const char *end, bool knows, uint64_t keys)
{
	struct str from = arena_printf(f->arena, LETTER "%s", begin);
	struct str to = end ? arena_printf(f->arena, LETTER "%s", end) : CATALOG_TALLY_END;
	uint64_t estimate = 0;

	assert_int_equal(catalog_tally_estimate(f->db, 0, from, to, &estimate), knows);
	if (estimate != keys)
		fail_msg("from %s to %s: %llu", begin, end ? end : "the end",
			 (unsigned long long)estimate);
}

/* Of as many ranges as it takes: 32 places where ranges meet, or one fewer. */
static void
keys_are_estimated_from_some_ranges_on(void **state)
{
	struct fixture *f = *state;
	static char keys[512], ranges[1024];
	size_t keys_len, len;

	for (int least = 31; least <= 32; least++) {
		bool knows = least == 32;

		keys_len = len = 0;
		for (int i = 0; i < least; i++) {
			char letter = (char)('A' + i);

			keys_len += (size_t)snprintf(keys + keys_len, sizeof(keys) - keys_len,
						     "%c10 ", letter);
			len += (size_t)snprintf(ranges + len, sizeof(ranges) - len, "%.1s-%c:10 ",
						i ? &letter : "", letter + 1);
		}
		snprintf(keys + keys_len, sizeof(keys) - keys_len, "~7");
		snprintf(ranges + len, sizeof(ranges) - len, "%c-:7", 'A' + least);
		make(f, knows ? "1" : "0", keys, ranges);
		reopen(f);
		if (!knows) {
			assert_estimate(f, "A", "B", false, 0);
			continue;
		}
		/* Within one range all of it; of several all but half of the first and the last. */
		assert_estimate(f, "B", "B05", true, 10);
		assert_estimate(f, "A", "B", true, 10);
		assert_estimate(f, "B", "D", true, 20);
		assert_estimate(f, "B", NULL, true, 320 + 7 / 2 - 10 - 5);
		assert_estimate(f, "~", NULL, true, 7);
		assert_estimate(f, "", "A", true, 10);
	}
}

/* ---- When a database is tended ---- */

static bool
is_tended(struct fixture *f, bool now)
{
	uint64_t noted = atomic_load(&f->db->tally->noted);
	struct err err = { 0 };
	bool more;

	assert_true(noted > 0);
	if (catalog_tallies_tend(f->tallies, f->store, now, &more, &err) != STATUS_OK)
		fail_msg("%s", err.text);
	assert_int_equal(more, f->db->tally->more);
	return atomic_load(&f->db->tally->noted) != noted;
}

static void
a_database_is_tended_after_a_time_or_many_changes(void **state)
{
	struct fixture *f = *state;

	now_ms = 1000000;
	make(f, "1", "a5", "-:5");
	catalog_tally_note(f->db, 1);
	assert_int_equal(f->tallies->queued, 1);
	assert_true(is_tended(f, false)); /* the first time */
	assert_int_equal(f->tallies->queued, 0);
	catalog_tally_note(f->db, 0);
	assert_int_equal(f->tallies->queued, 0);
	/* The time. */
	catalog_tally_note(f->db, 1);
	assert_false(is_tended(f, false));
	assert_int_equal(f->tallies->queued, 1);
	now_ms += CATALOG_TALLY_IDLE_MS - 1;
	assert_false(is_tended(f, false));
	now_ms++;
	assert_true(is_tended(f, false));
	/* The changes. */
	catalog_tally_note(f->db, 2 * CATALOG_TALLY_KEYS - 1);
	assert_false(is_tended(f, false));
	catalog_tally_note(f->db, 1);
	assert_int_equal(f->tallies->queued, 1);
	assert_true(is_tended(f, false));
	/* Whoever asks for it now. */
	catalog_tally_note(f->db, 1);
	assert_true(is_tended(f, true));
	/* A thread does it by itself. */
	catalog_tally_note(f->db, 1);
	atomic_store(&f->db->tally->tending, 1);
	assert_false(is_tended(f, true));
	atomic_store(&f->db->tally->tending, 0);
	assert_true(is_tended(f, true));
	now_ms = 0;
}

static void
a_database_of_many_ranges_is_tended_after_more_changes(void **state)
{
	struct fixture *f = *state;
	static char keys[512], ranges[1024];
	size_t keys_len = 0, len = 0;
	uint64_t due;

	for (int i = 0; i < 50; i++) {
		char letter = (char)('A' + i);

		keys_len += (size_t)snprintf(keys + keys_len, sizeof(keys) - keys_len, "%c1 ",
					     letter);
		len += (size_t)snprintf(ranges + len, sizeof(ranges) - len, "%.1s-%.1s:1 ",
					i ? &letter : "",
					i < 49 ? &(char){ (char)(letter + 1) } : "");
	}
	now_ms = 1000000;
	make(f, "1", keys, ranges);
	reopen(f);
	due = CATALOG_TALLY_DUE_KEYS * 50;
	assert_true(due > CATALOG_TALLY_KEYS);
	f->db->tally->tended_ns = now_ms * CLOCK_NS_PER_MS;
	catalog_tally_note(f->db, due - 1);
	assert_false(is_tended(f, false));
	catalog_tally_note(f->db, 1);
	assert_true(is_tended(f, false));
	now_ms = 0;
}

static void
a_database_that_is_slow_to_tend_is_tended_less_often(void **state)
{
	struct fixture *f = *state;
	uint64_t took_ms;

	now_ms = 1000000;
	make(f, "1", "a5", "-:5");
	catalog_tally_note(f->db, 1);
	look_ms = 10;
	assert_true(is_tended(f, false));
	look_ms = 0;
	/* The store looks at the clock, too. */
	took_ms = f->db->tally->took_ns / CLOCK_NS_PER_MS;
	assert_true(took_ms >= 10);
	catalog_tally_note(f->db, 100 * CATALOG_TALLY_KEYS);
	now_ms += CATALOG_TALLY_PAUSES * took_ms - 1;
	assert_false(is_tended(f, false));
	now_ms++;
	assert_true(is_tended(f, false));
	catalog_tally_note(f->db, 100 * CATALOG_TALLY_KEYS);
	assert_true(is_tended(f, false));
	now_ms = 0;
}

/* The last range is opened, and can be split only after writers have learned of that. */
static void
a_database_that_is_not_done_is_tended_sooner(void **state)
{
	struct fixture *f = *state;

	now_ms = 1000000;
	make(f, "1", "", "");
	f->keys = "a1100";
	f->ranges = "-:1100";
	run(f, keys_body);
	run(f, ranges_body);
	catalog_tally_note(f->db, 1);
	assert_true(is_tended(f, true));
	assert_true(f->db->tally->more);
	assert_int_equal(f->tallies->queued, 1);
	catalog_tally_note(f->db, 1);
	assert_int_equal(f->tallies->queued, 1);
	now_ms += CATALOG_TALLY_MORE_MS - 1;
	assert_false(is_tended(f, false));
	now_ms++;
	assert_true(is_tended(f, false));
	assert_false(f->db->tally->more);
	assert_int_equal(f->tallies->queued, 0);
	now_ms = 0;
}

static void
a_full_queue_takes_no_database(void **state)
{
	struct fixture *f = *state;
	struct catalog_tally *tally;

	make(f, "1", "", "");
	tally = f->db->tally;
	f->tallies->queued = CATALOG_TALLIES_QUEUE;
	catalog_tally_note(f->db, 1);
	assert_int_equal(f->tallies->queued, CATALOG_TALLIES_QUEUE);
	assert_false(atomic_load(&tally->queued));
	f->tallies->queued = CATALOG_TALLIES_QUEUE - 1;
	catalog_tally_note(f->db, 1);
	assert_int_equal(f->tallies->queued, CATALOG_TALLIES_QUEUE);
	assert_ptr_equal(f->tallies->queue[CATALOG_TALLIES_QUEUE - 1], tally);
	assert_true(atomic_load(&tally->queued));
	f->tallies->queued = 0;
	catalog_tally_unref(tally);
}

/* An answer that counts many keys asks for tending. */
static enum status
read_worn(struct kv_tx *tx, struct fixture *f, struct buf *said)
{
	struct str at = arena_printf(f->arena, LETTER "b");
	uint64_t before;

	TRY(catalog_tally_rank(tx, f->db, 0, at, false, &before));
	buf_printf(said, "%llu", (unsigned long long)before);
	return STATUS_OK;
}

static void
an_answer_that_counts_many_keys_asks_for_tending(void **state)
{
	struct fixture *f = *state;
	char text[16];

	/* The counters do not add up, so all keys in front of the place are counted. */
	make(f, "1", "", "-:1");
	f->keys = "a4096 A4096 c1";
	run(f, keys_body);
	snprintf(text, sizeof(text), "%d", CATALOG_TALLY_WORN);
	assert_reads(f, read_worn, STATUS_OK, text);
	assert_int_equal(f->tallies->queued, 0);
	f->keys = "B1";
	run(f, keys_body);
	snprintf(text, sizeof(text), "%d", CATALOG_TALLY_WORN + 1);
	assert_reads(f, read_worn, STATUS_OK, text);
	assert_int_equal(f->tallies->queued, 1);
}

static void
an_answer_that_counts_many_keys_of_both_sides_asks_for_tending(void **state)
{
	struct fixture *f = *state;

	make(f, "1", "", "-:8192");
	f->keys = "a4096 c4096";
	run(f, keys_body);
	assert_reads(f, read_worn, STATUS_OK, "4096");
	assert_int_equal(f->tallies->queued, 0);
	f->keys = "A500 d500";
	f->ranges = "-:1000";
	run(f, keys_body);
	run(f, ranges_body);
	assert_reads(f, read_worn, STATUS_OK, "4596");
	assert_int_equal(f->tallies->queued, 1);
}

/* A long stretch costs no more keys at either end than in a short one. */
static void
an_answer_near_an_end_counts_few_keys(void **state)
{
	struct fixture *f = *state;

	make(f, "1", "", "-:20001");
	f->keys = "a20000 c1";
	run(f, keys_body);
	assert_reads(f, read_worn, STATUS_OK, "20000");
	assert_int_equal(f->tallies->queued, 0);
}

/* Some way along one range with so many keys that they are counted from both sides. */
static enum status
read_long(struct kv_tx *tx, struct fixture *f, struct buf *said)
{
	for (int i = 0; i <= 9000; i += 1500) {
		struct str at = arena_printf(f->arena, LETTER "%c%02d", 'a' + i / 3000, i % 3000);
		uint64_t before, behind;

		TRY(catalog_tally_rank(tx, f->db, 0, at, false, &before));
		TRY(catalog_tally_rank(tx, f->db, 0, at, true, &behind));
		buf_printf(said, "%llu+%llu ", (unsigned long long)before,
			   (unsigned long long)behind);
	}
	return STATUS_OK;
}

static void
places_in_a_long_range_are_counted_from_the_nearer_side(void **state)
{
	struct fixture *f = *state;
	/* a1500 lies behind a15 and in front of a16, and so on. */
	const char *ranks = "0+9000 567+8433 3000+6000 3567+5433 6000+3000 6567+2433 9000+0 ";

	make(f, "1", "a3000 b3000 c3000", "-:9000");
	assert_reads(f, read_long, STATUS_OK, ranks);
	/* Keys that are in no range: the whole list is one region. */
	f->ranges = "-:-700";
	run(f, ranges_body);
	assert_reads(f, read_long, STATUS_OK, ranks);
}

int
main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(ranges_are_split_and_merged_to_the_key),
		CASE(a_writer_who_comes_between_loses_no_key),
		CASE(a_range_is_cut_above_four_times_a_new_one),
		CASE(ranges_end_where_a_bound_is_not_too_long),
		CASE(parts_and_stretches_are_told_by_ranges),
		CASE(places_are_counted_by_ranges_and_within_them_by_keys),
		CASE(keys_are_estimated_from_some_ranges_on),
		CASE(a_database_is_tended_after_a_time_or_many_changes),
		CASE(a_database_of_many_ranges_is_tended_after_more_changes),
		CASE(a_database_that_is_slow_to_tend_is_tended_less_often),
		CASE(a_database_that_is_not_done_is_tended_sooner),
		CASE(a_full_queue_takes_no_database),
		CASE(an_answer_that_counts_many_keys_asks_for_tending),
		CASE(an_answer_that_counts_many_keys_of_both_sides_asks_for_tending),
		CASE(an_answer_near_an_end_counts_few_keys),
		CASE(places_in_a_long_range_are_counted_from_the_nearer_side),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
