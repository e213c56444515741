/*
 * Stretches of keys with nothing in them (kv/embedded/gaps.h): the module alone, against a history
 * of versions that is too simple to be wrong, and queues within a store.
 */
#include "fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rand.h"
#include "kv/embedded/embedded_int.h"
#include "kv/embedded/gaps.h"
#include "kv/tuple.h"

enum {
	ENTITIES = 3,
	ENTITY_BYTES = 1, /* of a key of the module's tests: the entity, and a number */
	NUMBERS = 60,
	VERSIONS = 4000,
	TOOK_NS = 1000, /* a search */
};

/* ---- Alone ---- */

struct history {
	struct gaps *gaps;
	bool there[VERSIONS][ENTITIES][NUMBERS];
	uint64_t published;
};

static struct str
key_of(char room[3], unsigned entity, unsigned number)
{
	room[0] = (char)('a' + entity);
	room[1] = (char)(' ' + number);
	room[2] = '\0';
	return str_of(room, 2);
}

/* The number of a key, or the next one if the key lies behind that one's. */
static unsigned
number_of(struct str key)
{
	return (unsigned)(key.ptr[1] - ' ') + (key.len > 2);
}

static bool
is_empty(const struct history *h, uint64_t version, unsigned entity, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		if (h->there[version][entity][i])
			return false;
	return true;
}

/* A read of the first pair, or the last, at some version; what it finds is left late. */
struct reading {
	unsigned entity, from, to; /* numbers; at first those asked for, then those found empty */
	bool reverse;
	uint64_t version;
};

static void
reading_look(const struct history *h, struct reading *r)
{
	char begin_room[3], end_room[3];
	struct str begin = key_of(begin_room, r->entity, r->from);
	struct str end = key_of(end_room, r->entity, r->to);
	unsigned from = r->from, to = r->to;
	struct gaps_found gap;

	if (gaps_find(h->gaps, begin, end, ENTITY_BYTES, r->reverse, r->version, &gap)) {
		unsigned at = number_of(gap.begin), until = number_of(gap.end);

		assert_true(at >= from && until <= to);
		assert_true(is_empty(h, r->version, r->entity, at, until));
	}
	if (r->reverse)
		while (from < to && is_empty(h, r->version, r->entity, to - 1, r->to))
			to--;
	else
		while (from < to && is_empty(h, r->version, r->entity, r->from, from + 1))
			from++;
	r->from = r->reverse ? to : r->from;
	r->to = r->reverse ? r->to : from;
}

static void
reading_keep(const struct history *h, const struct reading *r)
{
	char begin_room[3], end_room[3];
	struct str begin = key_of(begin_room, r->entity, r->from);

	gaps_keep(h->gaps, begin, key_of(end_room, r->entity, r->to), ENTITY_BYTES, r->reverse,
		  r->version, TOOK_NS);
}

static void
history_write(struct history *h, const struct reading *late, struct rand_seq *rand)
{
	uint64_t v = h->published + 1;
	bool quiet[ENTITIES] = { 0 }; /* its other keys need not be told of */
	bool tells = gaps_begin(h->gaps, v);
	char room[3];

	memcpy(h->there[v], h->there[v - 1], sizeof(h->there[v]));
	if (rand_seq_below(rand, 200) == 0)
		gaps_forget(h->gaps, v);
	for (unsigned i = 0; i < 4; i++) {
		unsigned entity = (unsigned)rand_seq_below(rand, ENTITIES);
		unsigned number = (unsigned)rand_seq_below(rand, NUMBERS);
		bool there = rand_seq_below(rand, 5) == 0;

		h->there[v][entity][number] = there;
		/* What a reader of an older version has found is kept in between. */
		if (late->to && rand_seq_below(rand, 2))
			reading_keep(h, late);
		if (tells && there && !quiet[entity])
			quiet[entity] = !gaps_write(
				h->gaps, gaps_slot(key_of(room, entity, number), ENTITY_BYTES),
				key_of(room, entity, number), v);
	}
	h->published = v;
}

static void
random_reads_and_writes_agree_with_a_history(void **state)
{
	struct history *h = calloc(1, sizeof(*h));
	struct rand_seq rand = { test_seed() };
	struct reading late = { 0 };

	(void)state;
	assert_non_null(h);
	h->gaps = gaps_new();
	assert_non_null(h->gaps);
	while (h->published < VERSIONS - 1) {
		uint64_t back = rand_seq_below(&rand, 4);
		struct reading r = { .reverse = rand_seq_below(&rand, 2) };

		if (rand_seq_below(&rand, 3) == 0)
			history_write(h, &late, &rand);
		r.entity = (unsigned)rand_seq_below(&rand, ENTITIES);
		r.from = (unsigned)rand_seq_below(&rand, 4) * 5;
		r.to = NUMBERS - (unsigned)rand_seq_below(&rand, 4) * 5;
		r.version = h->published > back ? h->published - back : h->published;
		reading_look(h, &r);
		if (rand_seq_below(&rand, 2)) {
			reading_keep(h, &r);
		} else {
			reading_keep(h, &late);
			late = r;
		}
	}
	gaps_free(h->gaps);
	free(h);
}

/* Gaps of readers at versions from `version` on are kept. */
static struct gaps *
gaps_that_are_told(uint64_t version)
{
	struct gaps *g = gaps_new();

	assert_non_null(g);
	gaps_keep(g, STR("x"), STR("y"), 1, false, version, TOOK_NS);
	assert_true(gaps_begin(g, version + 1));
	return g;
}

static void
a_reader_leaves_a_gap_only_if_all_later_writes_are_told_of(void **state)
{
	struct gaps *g = gaps_new();
	struct gaps_found gap;

	(void)state;
	assert_non_null(g);
	assert_false(gaps_begin(g, 6));
	/* A batch may be under way that nobody is told of. */
	gaps_keep(g, STR("aa"), STR("ac"), 1, false, 5, TOOK_NS);
	assert_false(gaps_find(g, STR("aa"), STR("ac"), 1, false, 7, &gap));
	assert_true(gaps_begin(g, 7));
	gaps_keep(g, STR("aa"), STR("ac"), 1, false, 5, TOOK_NS);
	assert_false(gaps_find(g, STR("aa"), STR("ac"), 1, false, 7, &gap));
	gaps_keep(g, STR("aa"), STR("ac"), 1, false, 6, TOOK_NS);
	assert_true(gaps_find(g, STR("aa"), STR("ac"), 1, false, 7, &gap));
	assert_true(gaps_begin(g, 8));
	gaps_keep(g, STR("ba"), STR("bc"), 1, false, 6, TOOK_NS);
	assert_true(gaps_find(g, STR("ba"), STR("bc"), 1, false, 8, &gap));
	gaps_free(g);
}

static void
keys_that_are_too_long_are_not_kept(void **state)
{
	struct gaps *g = gaps_that_are_told(5);
	char longest[GAPS_KEY_BYTES + 1], very_long[20 * GAPS_KEY_BYTES];
	struct gaps_found gap;
	const struct str key = str_of(longest, GAPS_KEY_BYTES);

	(void)state;
	memset(longest, 'a', sizeof(longest));
	gaps_keep(g, STR("a"), str_of(longest, sizeof(longest)), 1, false, 5, TOOK_NS);
	assert_false(gaps_find(g, STR("a"), STR("b"), 1, false, 5, &gap));
	gaps_keep(g, STR("a"), key, 1, false, 5, TOOK_NS);
	assert_true(gaps_find(g, STR("a"), STR("b"), 1, false, 5, &gap));
	assert_true(str_eq(gap.end, key));
	/* What would lie behind a key of that length has no room. */
	gaps_keep(g, STR("a"), STR("b"), 1, true, 5, TOOK_NS);
	gaps_write(g, gaps_slot(key, 1), key, 6);
	assert_false(gaps_find(g, STR("a"), STR("b"), 1, true, 6, &gap));
	/* One that is written in a gap, and would be its end, leaves those beside it alone. */
	memset(very_long, 'a', sizeof(very_long));
	gaps_keep(g, STR("ac"), STR("ad"), 1, false, 6, TOOK_NS);
	gaps_keep(g, STR("ae"), STR("af"), 1, false, 6, TOOK_NS);
	gaps_keep(g, STR("a"), STR("ab"), 1, false, 6, TOOK_NS);
	gaps_write(g, gaps_slot(key, 1), str_of(very_long, sizeof(very_long)), 7);
	assert_false(gaps_find(g, STR("a"), STR("ab"), 1, false, 7, &gap));
	assert_true(gaps_find(g, STR("ae"), STR("af"), 1, false, 7, &gap));
	assert_true(str_eq(gap.end, STR("af")));
	gaps_free(g);
}

/* ---- Every gap of a few keys ---- */

enum {
	FEW = 7, /* numbers of keys */
	VERSION = 5,
};

/* A range of keys by their numbers; none: both are the same. */
struct few {
	unsigned from, to;
};

static unsigned
least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static unsigned
most(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

/* What a read of the range finds, to the key. */
static void
assert_few(struct gaps *g, struct few range, bool reverse, uint64_t version, struct few expected)
{
	char begin[3], end[3];
	struct gaps_found gap;
	const bool found = gaps_find(g, key_of(begin, 0, range.from), key_of(end, 0, range.to),
				     ENTITY_BYTES, reverse, version, &gap);

	assert_int_equal(found, expected.from < expected.to);
	if (!found)
		return;
	assert_true(str_eq(gap.begin, key_of(begin, 0, expected.from)));
	assert_true(str_eq(gap.end, key_of(end, 0, expected.to)));
}

static void
keep_few(struct gaps *g, struct few range, bool reverse, uint64_t version)
{
	char begin[3], end[3];

	gaps_keep(g, key_of(begin, 0, range.from), key_of(end, 0, range.to), ENTITY_BYTES, reverse,
		  version, TOOK_NS);
}

/* The part of the range that the gap has. */
static struct few
few_common(struct few range, struct few gap)
{
	const struct few common = { most(range.from, gap.from), least(range.to, gap.to) };

	return common.from < common.to ? common : (struct few){ 0 };
}

static void
assert_few_everywhere(struct gaps *g, bool reverse, uint64_t version, struct few gap)
{
	for (unsigned from = 0; from < FEW; from++)
		for (unsigned to = from + 1; to <= FEW; to++) {
			const struct few range = { from, to };

			assert_few(g, range, reverse, version, few_common(range, gap));
			assert_few(g, range, !reverse, version, (struct few){ 0 });
			assert_few(g, range, reverse, version - 1, (struct few){ 0 });
		}
}

static void
a_gap_is_found_by_each_range_that_it_touches(void **state)
{
	(void)state;
	for (unsigned from = 0; from < FEW; from++)
		for (unsigned to = 0; to <= FEW; to++)
			for (int reverse = 0; reverse <= 1; reverse++) {
				struct gaps *g = gaps_that_are_told(VERSION);

				keep_few(g, (struct few){ from, to }, reverse, VERSION);
				assert_few_everywhere(g, reverse, VERSION,
						      from < to ? (struct few){ from, to }
								: (struct few){ 0 });
				gaps_forget(g, VERSION + 1);
				assert_few_everywhere(g, reverse, VERSION + 1, (struct few){ 0 });
				gaps_free(g);
			}
}

/* True if a read of the range begins in the gap. */
static bool
few_meets(struct few gap, struct few range, bool reverse)
{
	return reverse ? gap.from < range.to && range.to <= gap.to
		       : gap.from <= range.from && range.from < gap.to;
}

static void
a_gap_is_joined_to_one_that_its_read_began_in(void **state)
{
	(void)state;
	for (unsigned from = 1; from < FEW; from++)
		for (unsigned to = from + 1; to <= FEW; to++)
			for (int reverse = 0; reverse <= 1; reverse++) {
				const struct few gap = { 2, 5 }, next = { from, to };
				struct gaps *g = gaps_that_are_told(VERSION);
				struct few joined = next;

				if (few_meets(gap, next, reverse))
					joined = (struct few){ least(2, from), most(5, to) };
				keep_few(g, gap, reverse, VERSION);
				keep_few(g, next, reverse, VERSION + 1);
				if (next.from >= gap.to || next.to <= gap.from) {
					/* Both are there. */
					assert_few(g, gap, reverse, VERSION, gap);
					assert_few(g, next, reverse, VERSION + 1, next);
				} else {
					assert_few_everywhere(g, reverse, VERSION + 1, joined);
				}
				/* An older reader makes nothing older. */
				keep_few(g, joined, reverse, VERSION);
				assert_few(g, joined, reverse, VERSION, (struct few){ 0 });
				assert_few(g, joined, reverse, VERSION + 1, joined);
				gaps_free(g);
			}
}

static void
a_key_that_is_written_ends_the_gap(void **state)
{
	(void)state;
	for (unsigned number = 0; number <= FEW; number++)
		for (int reverse = 0; reverse <= 1; reverse++) {
			const struct few gap = { 2, 5 };
			struct gaps *g = gaps_that_are_told(VERSION);
			struct few left = gap;
			char room[3], end[3];
			struct gaps_found found;
			bool told;

			/* A slot without a gap need not be told of its other keys. */
			assert_true(gaps_begin(g, VERSION + 1));
			assert_false(gaps_write(g, gaps_slot(key_of(room, 0, 1), ENTITY_BYTES),
						key_of(room, 0, 1), VERSION + 1));
			keep_few(g, gap, reverse, VERSION);
			assert_few_everywhere(g, reverse, VERSION, (struct few){ 0 });
			keep_few(g, gap, reverse, VERSION + 1);
			told = gaps_write(g, gaps_slot(key_of(room, 0, number), ENTITY_BYTES),
					  key_of(room, 0, number), VERSION + 2);
			assert_true(told);
			if (!reverse && number >= gap.from && number < gap.to)
				left.to = number;
			if (left.from == left.to)
				left = (struct few){ 0 };
			if (reverse && number >= gap.from && number < gap.to) {
				/* What is behind the key stays, from the very next one on. */
				assert_true(gaps_find(g, key_of(room, 0, 0), key_of(end, 0, FEW),
						      ENTITY_BYTES, true, VERSION + 2, &found));
				assert_int_equal(found.begin.len, 3);
				assert_int_equal(found.begin.ptr[2], '\0');
				assert_int_equal(number_of(found.begin), number + 1);
				assert_true(str_eq(found.end, key_of(end, 0, gap.to)));
			} else {
				assert_few_everywhere(g, reverse, VERSION + 1, left);
			}
			/* Once the last gap has gone, nobody has to tell of keys any more. */
			assert_int_equal(gaps_write(g,
						    gaps_slot(key_of(room, 0, FEW), ENTITY_BYTES),
						    key_of(room, 0, FEW), VERSION + 2),
					 number != gap.from || reverse);
			/* A reader from before the write leaves nothing. */
			keep_few(g, (struct few){ 0, FEW }, !reverse, VERSION + 1);
			assert_few(g, gap, !reverse, VERSION + 2, (struct few){ 0 });
			gaps_free(g);
		}
}

/* Keeps a gap of its own for each number, which took so long. */
static void
keep_alone(struct gaps *g, unsigned number, bool reverse, uint64_t took_ns)
{
	char begin[8], end[8];

	(void)snprintf(begin, sizeof(begin), "e%03u.1", number);
	(void)snprintf(end, sizeof(end), "e%03u.2", number);
	gaps_keep(g, str_from_cstr(begin), str_from_cstr(end), 1, reverse, VERSION, took_ns);
}

static bool
is_kept(struct gaps *g, unsigned number, bool reverse)
{
	char begin[8], end[8];
	struct gaps_found gap;

	(void)snprintf(begin, sizeof(begin), "e%03u.1", number);
	(void)snprintf(end, sizeof(end), "e%03u.2", number);
	return gaps_find(g, str_from_cstr(begin), str_from_cstr(end), 1, reverse, VERSION, &gap);
}

/* All places are taken: short searches take each other's, and that of a long one only at last. */
static void
a_gap_that_took_long_outlasts_others(void **state)
{
	const unsigned turns = 100 * (GAPS_EACH - 1); /* until it is worth nothing, unless used */

	(void)state;
	for (int reverse = 0; reverse <= 1; reverse++) {
		struct gaps *g = gaps_that_are_told(VERSION);

		keep_alone(g, 0, reverse, 100 * TOOK_NS);
		for (unsigned i = 1; i < turns; i++) {
			keep_alone(g, i, reverse, TOOK_NS);
			assert_true(is_kept(g, i, reverse));
		}
		/* Being used makes it worth what it was. */
		assert_true(is_kept(g, 0, reverse));
		for (unsigned i = 1; i < turns; i++)
			keep_alone(g, i, reverse, TOOK_NS);
		assert_true(is_kept(g, 0, reverse));
		for (unsigned i = 1; i < turns + GAPS_EACH; i++)
			keep_alone(g, i, reverse, TOOK_NS);
		assert_false(is_kept(g, 0, reverse));
		gaps_free(g);
	}
}

/* True if one that took less finds a place though it is kept so often only. */
static bool
finds_a_place(struct gaps *g, bool reverse, unsigned times, bool others_are_used)
{
	for (unsigned i = 0; i < times; i++) {
		keep_alone(g, 0, reverse, 3 * TOOK_NS);
		for (unsigned k = 1; others_are_used && k <= GAPS_EACH; k++)
			assert_true(is_kept(g, k, reverse));
	}
	return is_kept(g, 0, reverse);
}

static void
a_gap_finds_a_place_when_the_others_are_not_used(void **state)
{
	(void)state;
	for (int reverse = 0; reverse <= 1; reverse++) {
		struct gaps *g = gaps_that_are_told(VERSION);

		for (unsigned i = 1; i <= GAPS_EACH; i++)
			keep_alone(g, i, reverse, 10 * TOOK_NS);
		assert_false(finds_a_place(g, reverse, 20, true));
		assert_false(finds_a_place(g, reverse, 3, false));
		assert_true(finds_a_place(g, reverse, 1, false));
		gaps_free(g);
	}
}

/* A gap that grows is worth all searches that it was made of. */
static void
a_gap_is_worth_all_searches_in_it(void **state)
{
	struct gaps *g = gaps_that_are_told(VERSION);
	struct gaps_found gap;

	(void)state;
	gaps_keep(g, STR("e"), STR("e1"), 1, false, VERSION, 5 * TOOK_NS);
	gaps_keep(g, STR("e0"), STR("e2"), 1, false, VERSION, 5 * TOOK_NS);
	for (unsigned i = 1; i <= GAPS_EACH - 1; i++)
		keep_alone(g, 300 + i, false, 20 * TOOK_NS);
	keep_alone(g, 400, false, 9 * TOOK_NS);
	assert_false(is_kept(g, 400, false));
	keep_alone(g, 400, false, TOOK_NS);
	assert_true(is_kept(g, 400, false));
	assert_false(gaps_find(g, STR("e"), STR("e2"), 1, false, VERSION, &gap));
	gaps_free(g);
}

/* Those that took equally long take one place after the other. */
static void
gaps_that_took_equally_long_take_turns(void **state)
{
	struct gaps *g = gaps_that_are_told(VERSION);
	struct gaps_found gap;

	(void)state;
	for (unsigned i = 0; i < 3 * GAPS_EACH; i++) {
		char begin[] = "e.1", end[] = "e.2";

		begin[1] = end[1] = (char)('a' + i);
		gaps_keep(g, str_of(begin, 3), str_of(end, 3), 1, false, VERSION, TOOK_NS);
		/* The places begin to be taken at the second one. */
		if (i == GAPS_EACH) {
			assert_true(gaps_find(g, STR("ea1"), STR("ea2"), 1, false, VERSION, &gap));
			assert_false(gaps_find(g, STR("eb1"), STR("eb2"), 1, false, VERSION, &gap));
		}
		for (unsigned k = 0; i + 1 >= 2 * GAPS_EACH && k < GAPS_EACH; k++) {
			begin[1] = end[1] = (char)('a' + i - k);
			assert_true(gaps_find(g, str_of(begin, 3), str_of(end, 3), 1, false,
					      VERSION, &gap));
		}
	}
	gaps_free(g);
}

/* Of several gaps in a range the one that it begins in is found, whichever was kept first. */
static void
the_gap_that_a_range_begins_in_is_found_first(void **state)
{
	static const struct few gaps[] = { { 1, 2 }, { 3, 4 }, { 5, 6 } };

	(void)state;
	for (size_t first = 0; first < 3; first++)
		for (size_t begun = 0; begun < 3; begun++) {
			struct gaps *g = gaps_that_are_told(VERSION);

			for (size_t i = 0; i < 3; i++)
				for (int reverse = 0; reverse <= 1; reverse++)
					keep_few(g, gaps[(first + i) % 3], reverse, VERSION);
			assert_few(g, (struct few){ gaps[begun].from, FEW }, false, VERSION,
				   gaps[begun]);
			assert_few(g, (struct few){ 0, gaps[begun].to }, true, VERSION,
				   gaps[begun]);
			gaps_free(g);
		}
}

/* What was read before the store was opened again is not known any more. */
static void
a_reader_from_before_the_forgetting_leaves_nothing(void **state)
{
	struct gaps *g = gaps_that_are_told(VERSION);
	const struct few gap = { 2, 5 };

	(void)state;
	gaps_forget(g, VERSION + 2);
	keep_few(g, gap, false, VERSION + 1);
	assert_few(g, gap, false, VERSION + 2, (struct few){ 0 });
	keep_few(g, gap, false, VERSION + 2);
	assert_few(g, gap, false, VERSION + 2, gap);
	gaps_free(g);
}

/* Entities of one slot, none of which begins like another. */
static void
entities_of_a_slot_take_the_places_of_others(void **state)
{
	struct gaps *g = gaps_that_are_told(VERSION);
	char begin[] = "..1", end[] = "..2";
	const size_t slot = gaps_slot(STR("aa"), 2);
	struct gaps_found gap;
	size_t kept = 0;

	(void)state;
	for (unsigned a = 1; a < UINT8_MAX && kept <= GAPS_EACH; a++)
		for (unsigned b = 1; b < UINT8_MAX; b++) {
			begin[0] = end[0] = (char)a;
			begin[1] = end[1] = (char)b;
			if (gaps_slot(str_of(begin, 3), 2) != slot)
				continue;
			gaps_keep(g, str_of(begin, 3), str_of(end, 3), 2, false, VERSION, TOOK_NS);
			assert_true(gaps_find(g, str_of(begin, 3), str_of(end, 3), 2, false,
					      VERSION, &gap));
			kept++;
			break;
		}
	assert_int_equal(kept, GAPS_EACH + 1);
	gaps_free(g);
}

static void
keys_of_gaps_have_so_many_bytes_at_most(void **state)
{
	char begin[GAPS_KEY_BYTES + 1], end[GAPS_KEY_BYTES + 1];
	struct gaps_found gap;

	(void)state;
	memset(begin, 'a', sizeof(begin));
	memset(end, 'b', sizeof(end));
	end[0] = 'a';
	for (size_t b = GAPS_KEY_BYTES - 1; b <= GAPS_KEY_BYTES + 1; b++)
		for (size_t e = GAPS_KEY_BYTES - 1; e <= GAPS_KEY_BYTES + 1; e++) {
			struct gaps *g = gaps_that_are_told(VERSION);
			const struct str from = str_of(begin, b), to = str_of(end, e);

			gaps_keep(g, from, to, 1, false, VERSION, TOOK_NS);
			assert_int_equal(gaps_find(g, from, to, 1, false, VERSION, &gap),
					 b <= GAPS_KEY_BYTES && e <= GAPS_KEY_BYTES);
			gaps_free(g);
		}
}

static void
without_memory_there_are_no_gaps(void **state)
{
	(void)state;
	(void)mem_fail_only(1);
	assert_null(gaps_new());
	(void)mem_fail_only(0);
	gaps_free(NULL);
}

/*
 * A key is written just when a gap around it is being kept: the end of the gap's last key cannot be
 * read at first, and the handler of that fault writes, on a path that takes no lock.
 */
static struct meeting {
	struct gaps *gaps;
	char *page;
	size_t page_bytes;
	unsigned faults;
} meeting;

static void
meeting_write(int number)
{
	(void)number;
	meeting.faults++;
	(void)mprotect(meeting.page, meeting.page_bytes, PROT_READ | PROT_WRITE);
	gaps_write(meeting.gaps, gaps_slot(STR("ab"), 1), STR("ab"), 6);
}

static void
a_key_that_is_written_while_a_gap_is_kept_is_in_none(void **state)
{
	struct sigaction handled = { .sa_handler = meeting_write }, before;
	const size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, 2 * page_bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *end = pages + page_bytes - GAPS_KEY_BYTES + 1;
	struct gaps_found gap;

	(void)state;
	assert_true(pages != MAP_FAILED);
	meeting = (struct meeting){ gaps_that_are_told(5), pages + page_bytes, page_bytes, 0 };
	memset(end, 'a', GAPS_KEY_BYTES);
	end[1] = 'c';
	assert_int_equal(mprotect(meeting.page, page_bytes, PROT_NONE), 0);
	assert_int_equal(sigaction(SIGSEGV, &handled, &before), 0);
	gaps_keep(meeting.gaps, STR("aa"), str_of(end, GAPS_KEY_BYTES), 1, false, 5, TOOK_NS);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	assert_int_equal(meeting.faults, 1);
	assert_false(gaps_find(meeting.gaps, STR("aa"), STR("ac"), 1, false, 6, &gap));
	gaps_free(meeting.gaps);
	assert_int_equal(munmap(pages, 2 * page_bytes), 0);
}

/* ---- Queues ---- */

enum {
	MESSAGES = 1500,
	PRODUCERS = 2,
	CONSUMERS = 3,
};

/* Each message is an entity of its own, and the queue all of their subspace; else it is one. */
static bool spread;

struct queue {
	struct kv_store *store;
	struct str begin, end;
	size_t name_bytes; /* that each of its keys begins with */
	struct buf begin_room, end_room;
	_Atomic uint64_t pushed;
	_Atomic uint64_t taken;
	_Atomic uint32_t times[PRODUCERS * MESSAGES]; /* each message was taken */
};

static void
queue_put_key(struct buf *key, uint64_t number)
{
	buf_clear(key);
	tuple_put_u64(key, 0);
	tuple_put_u64(key, 1);
	if (spread && number) {
		char name[24];

		(void)snprintf(name, sizeof(name), "%08llu", (unsigned long long)number);
		tuple_put_str(key, str_from_cstr(name));
	} else if (!spread) {
		tuple_put_str(key, STR("queue"));
		if (number)
			tuple_put_u64(key, number);
	}
}

/* The number in what follows the queue's name in a key. */
static uint64_t
queue_number(struct str tail)
{
	struct tuple_reader r = tuple_reader(tail);
	uint64_t number = 0;
	struct str name;

	if (!spread)
		assert_ok(tuple_next_u64(&r, &number));
	else if (tuple_next_plain(&r, TUPLE_STRING, &name))
		number = strtoull(name.ptr, NULL, 10);
	assert_true(number > 0);
	return number;
}

static void
queue_begin(struct queue *q, struct kv_store *store)
{
	const struct emb_entities *entities;

	*q = (struct queue){ .store = store };
	q->begin_room = (struct buf)BUF_INIT(100);
	q->end_room = (struct buf)BUF_INIT(100);
	queue_put_key(&q->begin_room, 0);
	queue_put_key(&q->end_room, 0);
	buf_append_byte(&q->begin_room, 0x01);
	buf_append_byte(&q->end_room, 0xfe);
	q->begin = buf_str(&q->begin_room);
	q->end = buf_str(&q->end_room);
	q->name_bytes = q->begin.len - 1;
	entities = &((struct emb_store *)store)->entities;
	assert_int_equal(emb_range_entity_len(entities, q->begin, q->end),
			 spread ? 0 : q->name_bytes);
	if (spread)
		assert_int_equal(emb_range_space_len(entities, q->begin, q->end), q->name_bytes);
}

static void
queue_end(struct queue *q)
{
	buf_release(&q->begin_room);
	buf_release(&q->end_room);
}

static void
queue_push(struct kv_tx *tx, uint64_t number)
{
	struct buf key AUTO(buf_release) = BUF_INIT(100);

	queue_put_key(&key, number);
	assert_ok(kv_set(tx, buf_str(&key), STR("message")));
}

/* The number of the first message, or the last; 0: there is none. */
static uint64_t
queue_look(const struct queue *q, struct kv_tx *tx, bool last, size_t limit)
{
	const struct kv_range_options options = { .limit = limit, .reverse = last };
	struct kv_future *f = kv_get_range(tx, q->begin, q->end, &options);
	struct kv_range range;
	uint64_t number = 0;

	assert_ok(kv_future_wait(f));
	range = kv_future_range(f);
	if (range.count)
		number = queue_number(str_skip(range.pairs[0].key, q->name_bytes));
	kv_future_free(f);
	return number;
}

static void
queue_take(struct kv_tx *tx, uint64_t number)
{
	struct buf key AUTO(buf_release) = BUF_INIT(100);

	queue_put_key(&key, number);
	assert_ok(kv_clear(tx, buf_str(&key)));
}

static void
pushed_messages(struct queue *q, uint64_t from, uint64_t to)
{
	struct kv_tx *tx = begin(q->store);

	for (uint64_t i = from; i < to; i++)
		queue_push(tx, i);
	commit(tx);
}

static void
first_message_is_found_whatever_was_taken_before(void **state)
{
	struct queue q;
	struct kv_tx *old, *tx;

	queue_begin(&q, store_of(state));
	pushed_messages(&q, 100, 400);
	old = begin_read(q.store);
	assert_int_equal(queue_look(&q, old, false, 1), 100);
	for (uint64_t i = 0; i < 100; i++) {
		tx = begin(q.store);
		assert_int_equal(queue_look(&q, tx, false, 1), 100 + i);
		queue_take(tx, 100 + i);
		assert_int_equal(queue_look(&q, tx, true, i % 2 ? 1 : 5), 399 - i);
		queue_take(tx, 399 - i);
		commit(tx);
	}
	assert_int_equal(queue_look(&q, old, false, 1), 100);
	assert_int_equal(queue_look(&q, old, true, 1), 399);
	/* In front of all, behind all, and where messages were taken. */
	pushed_messages(&q, 150, 151);
	tx = begin_read(q.store);
	assert_int_equal(queue_look(&q, tx, false, 1), 150);
	kv_tx_free(tx);
	pushed_messages(&q, 10, 11);
	pushed_messages(&q, 350, 351);
	tx = begin_read(q.store);
	assert_int_equal(queue_look(&q, tx, false, 1), 10);
	assert_int_equal(queue_look(&q, tx, true, 1), 350);
	pushed_messages(&q, 390, 391);
	assert_int_equal(queue_look(&q, tx, true, 1), 350);
	kv_tx_free(tx);
	tx = begin_read(q.store);
	assert_int_equal(queue_look(&q, tx, true, 1), 390);
	kv_tx_free(tx);
	kv_tx_free(old);
	queue_end(&q);
}

static void
one_transaction_takes_all_from_both_ends(void **state)
{
	struct queue q;
	struct kv_tx *tx;

	queue_begin(&q, store_of(state));
	pushed_messages(&q, 1, 201);
	tx = begin(q.store);
	for (uint64_t i = 1; i <= 100; i++) {
		assert_int_equal(queue_look(&q, tx, false, 1), i);
		queue_take(tx, i);
		assert_int_equal(queue_look(&q, tx, true, 1), 201 - i);
		queue_take(tx, 201 - i);
		if (i % 30 == 0) {
			queue_push(tx, i - 10);
			assert_int_equal(queue_look(&q, tx, false, 1), i - 10);
			queue_take(tx, i - 10);
		}
	}
	assert_int_equal(queue_look(&q, tx, false, 1), 0);
	assert_int_equal(queue_look(&q, tx, true, 1), 0);
	queue_push(tx, 50);
	assert_int_equal(queue_look(&q, tx, true, 1), 50);
	commit(tx);
	tx = begin_read(q.store);
	assert_int_equal(queue_look(&q, tx, false, 9), 50);
	kv_tx_free(tx);
	queue_end(&q);
}

/* ---- Any range of a queue ---- */

enum {
	PLACES = 60,
	ROUNDS = 2000,
	CHANGES = 5, /* of a round, at most */
};

/* Numbers from `from` on and below `to`: the first that is there, or the last; 0: none is. */
static uint64_t
model_look(const bool there[PLACES], uint64_t from, uint64_t to, bool last)
{
	for (uint64_t i = 0; i < to - from; i++) {
		uint64_t number = last ? to - 1 - i : from + i;

		if (there[number])
			return number;
	}
	return 0;
}

static void
check_look(struct queue *q, struct kv_tx *tx, struct rand_seq *rand, const bool there[PLACES])
{
	struct buf begin AUTO(buf_release) = BUF_INIT(100);
	struct buf end AUTO(buf_release) = BUF_INIT(100);
	uint64_t from = 1 + rand_seq_below(rand, PLACES - 2);
	uint64_t to = from + 1 + rand_seq_below(rand, PLACES - 1 - from);
	bool last = rand_seq_below(rand, 2);
	struct queue part = *q;

	queue_put_key(&begin, from);
	queue_put_key(&end, to);
	part.begin = buf_str(&begin);
	part.end = buf_str(&end);
	assert_int_equal(queue_look(&part, tx, last, 1 + rand_seq_below(rand, 8) / 7),
			 model_look(there, from, to, last));
}

static void
random_reads_see_what_is_there(void **state)
{
	bool there[PLACES] = { 0 }, changed[PLACES];
	struct rand_seq rand = { test_seed() };
	struct queue q;

	queue_begin(&q, store_of(state));
	for (int round = 0; round < ROUNDS; round++) {
		struct kv_tx *tx = begin(q.store);

		memcpy(changed, there, sizeof(there));
		for (uint64_t n = rand_seq_below(&rand, CHANGES + 1); n; n--) {
			uint64_t number = 1 + rand_seq_below(&rand, PLACES - 1);

			/* So that most are not there. */
			changed[number] = rand_seq_below(&rand, 4) == 0;
			if (changed[number])
				queue_push(tx, number);
			else
				queue_take(tx, number);
			check_look(&q, tx, &rand, changed);
		}
		check_look(&q, tx, &rand, changed);
		if (rand_seq_below(&rand, 2)) {
			commit(tx);
			memcpy(there, changed, sizeof(there));
		} else {
			kv_tx_free(tx);
		}
	}
	queue_end(&q);
}

static void *
produce(void *arg)
{
	struct queue *q = arg;
	uint64_t number;

	while ((number = atomic_fetch_add(&q->pushed, 1)) < (uint64_t)PRODUCERS * MESSAGES) {
		struct kv_tx *tx = begin(q->store);

		queue_push(tx, number + 1);
		commit(tx);
	}
	return NULL;
}

static void *
consume(void *arg)
{
	struct queue *q = arg;

	while (atomic_load(&q->taken) < (uint64_t)PRODUCERS * MESSAGES) {
		struct kv_tx *tx = begin(q->store);
		uint64_t number = queue_look(q, tx, false, 1);

		if (number)
			queue_take(tx, number);
		if (try_commit(tx) != STATUS_OK || !number)
			continue;
		atomic_fetch_add(&q->times[number - 1], 1);
		atomic_fetch_add(&q->taken, 1);
	}
	return NULL;
}

static void
threads_take_each_message_once(void **state)
{
	struct queue *q = calloc(1, sizeof(*q));
	pthread_t threads[PRODUCERS + CONSUMERS];
	struct kv_tx *tx;

	assert_non_null(q);
	queue_begin(q, store_of(state));
	for (int i = 0; i < PRODUCERS + CONSUMERS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, i < PRODUCERS ? produce : consume, q), 0);
	for (int i = 0; i < PRODUCERS + CONSUMERS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < PRODUCERS * MESSAGES; i++)
		assert_int_equal(q->times[i], 1);
	tx = begin_read(q->store);
	assert_int_equal(queue_look(q, tx, false, 1), 0);
	kv_tx_free(tx);
	queue_end(q);
	free(q);
}

static int
one_entity_setup(void **state)
{
	spread = false;
	return fixture_setup(state);
}

static int
spread_setup(void **state)
{
	spread = true;
	return fixture_setup(state);
}

#define S(name)                                                                                    \
	cmocka_unit_test_setup_teardown(name, one_entity_setup, fixture_teardown),                 \
	{                                                                                          \
#name "_apart", name, spread_setup, fixture_teardown, NULL                         \
	}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_reads_and_writes_agree_with_a_history),
		cmocka_unit_test(a_reader_leaves_a_gap_only_if_all_later_writes_are_told_of),
		cmocka_unit_test(keys_that_are_too_long_are_not_kept),
		cmocka_unit_test(a_gap_is_found_by_each_range_that_it_touches),
		cmocka_unit_test(a_gap_is_joined_to_one_that_its_read_began_in),
		cmocka_unit_test(a_key_that_is_written_ends_the_gap),
		cmocka_unit_test(a_gap_that_took_long_outlasts_others),
		cmocka_unit_test(a_gap_finds_a_place_when_the_others_are_not_used),
		cmocka_unit_test(a_gap_is_worth_all_searches_in_it),
		cmocka_unit_test(gaps_that_took_equally_long_take_turns),
		cmocka_unit_test(the_gap_that_a_range_begins_in_is_found_first),
		cmocka_unit_test(a_reader_from_before_the_forgetting_leaves_nothing),
		cmocka_unit_test(entities_of_a_slot_take_the_places_of_others),
		cmocka_unit_test(keys_of_gaps_have_so_many_bytes_at_most),
		cmocka_unit_test(without_memory_there_are_no_gaps),
		cmocka_unit_test(a_key_that_is_written_while_a_gap_is_kept_is_in_none),
		S(first_message_is_found_whatever_was_taken_before),
		S(one_transaction_takes_all_from_both_ends),
		S(random_reads_see_what_is_there),
		S(threads_take_each_message_once),
	};

	return cmocka_run_group_tests_name("gaps", tests, NULL, NULL);
}
