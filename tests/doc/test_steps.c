/*
 * What documents cost, in steps: twice as large a document takes about twice as many, whatever its
 * shape; work ends where its steps end; and fibers that are interrupted in the middle of documents
 * do not disturb each other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "doc/doc.h"
#include "doc/packed.h"
#include "doc/patch.h"
#include "loop/pool.h"
#include "loop/step.h"
#include "loop/task.h"

enum {
	ARENA_BYTES = 256 << 20,
	TEXT_BYTES = 16 << 20,
	ITEMS = 8000,
};

static const struct doc_limits limits = { .doc_bytes = DOC_LIMIT_MAX_BYTES,
					  .path_bytes = KV_LIMIT_KEY_BYTES };

/* ---- Shapes of documents, of n items each ---- */

static void
append_sorted(struct buf *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s\"a%08zu\":%zu", i ? "," : "", i, i);
}

static void
append_unsorted(struct buf *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s\"a%08zu\":%zu", i ? "," : "", i * 7919 % n, i);
}

static void
append_doubles(struct buf *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s\"a%08zu\":%zu", i ? "," : "", i % 3, i);
}

static void
append_array(struct buf *out, size_t n)
{
	buf_append_cstr(out, "\"a\":[0");
	for (size_t i = 0; i < n; i++)
		buf_printf(out, ",%zu.5", i);
	buf_append_byte(out, ']');
}

static void
append_string(struct buf *out, size_t n)
{
	buf_append_cstr(out, "\"a\":\"");
	for (size_t i = 0; i < n * 16; i++)
		buf_append_byte(out, 'x');
	buf_append_byte(out, '"');
}

static const struct shape {
	const char *name;
	void (*append)(struct buf *out, size_t n);
} shapes[] = {
	{ "members in order", append_sorted }, { "members out of order", append_unsorted },
	{ "doubles", append_doubles },         { "an array", append_array },
	{ "a string", append_string },
};

static void
make_text(const struct shape *shape, size_t n, struct buf *out)
{
	buf_append_byte(out, '{');
	shape->append(out, n);
	buf_append_byte(out, '}');
	assert_int_equal(buf_status(out), STATUS_OK);
}

/* ---- Counting ---- */

static enum status
work_explode(struct str text, struct arena *arena)
{
	struct doc doc;

	return doc_explode_text(text, arena, &limits, 0, &doc, NULL);
}

static enum status
work_pack(struct str text, struct arena *arena)
{
	struct doc_limits packing = limits;
	struct doc doc;

	packing.packed_bytes = DOC_LIMIT_MAX_BYTES;
	return doc_explode_text(text, arena, &packing, 0, &doc, NULL);
}

static enum status
work_assemble(struct str text, struct arena *arena)
{
	struct str packed;
	struct doc doc;

	TRY(doc_explode_text(text, arena, &limits, 0, &doc, NULL));
	return doc_pack(doc.leaves, doc.count, DOC_LIMIT_MAX_BYTES, arena, &packed);
}

static enum status
work_merge(struct str text, struct arena *arena)
{
	struct doc_patch patch;
	struct doc doc, result;

	TRY(doc_explode_text(text, arena, &limits, 0, &doc, NULL));
	TRY(doc_patch_read(DOC_PATCH_MERGE, text, arena, &patch, NULL));
	return doc_patch_apply(&patch, doc.leaves, doc.count, &limits, 0, arena, &result, NULL);
}

static enum status
work_patch(struct str text, struct arena *arena)
{
	AUTO(buf_release) struct buf ops = BUF_INIT(TEXT_BYTES);
	struct doc_patch patch;
	struct doc doc, result;

	buf_append_cstr(&ops, "[{\"op\":\"add\",\"path\":\"/copy\",\"value\":");
	buf_append_str(&ops, text);
	buf_append_cstr(&ops, "},{\"op\":\"test\",\"path\":\"/copy\",\"value\":");
	buf_append_str(&ops, text);
	buf_append_cstr(&ops, "}]");
	TRY(doc_explode_text(text, arena, &limits, 0, &doc, NULL));
	TRY(doc_patch_read(DOC_PATCH_JSON, buf_str(&ops), arena, &patch, NULL));
	return doc_patch_apply(&patch, doc.leaves, doc.count, &limits, 0, arena, &result, NULL);
}

static enum status (*const works[])(struct str text, struct arena *arena) = {
	work_explode, work_pack, work_assemble, work_merge, work_patch,
};

static enum status
count_steps(size_t work, struct str text, uint64_t limit, uint64_t *ret_steps)
{
	struct arena *arena = arena_new(ARENA_BYTES);
	struct step_meter meter;
	enum status status;

	assert_non_null(arena);
	step_init(&meter);
	meter.limit = limit;
	step_enter(&meter);
	status = works[work](text, arena);
	step_leave();
	*ret_steps = meter.used;
	arena_free(arena);
	return status;
}

static void
twice_the_document_takes_twice_the_steps(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		AUTO(buf_release) struct buf once = BUF_INIT(TEXT_BYTES);
		AUTO(buf_release) struct buf twice = BUF_INIT(TEXT_BYTES);

		make_text(&shapes[i], ITEMS, &once);
		make_text(&shapes[i], 2 * ITEMS, &twice);
		for (size_t w = 0; w < sizeof(works) / sizeof(works[0]); w++) {
			uint64_t a, b;

			assert_int_equal(count_steps(w, buf_str(&once), 0, &a), STATUS_OK);
			assert_int_equal(count_steps(w, buf_str(&twice), 0, &b), STATUS_OK);
			if (a < once.len / 64 || b > a * 5 / 2)
				fail_msg("%s: work %zu takes %llu steps, and for twice as much "
					 "%llu",
					 shapes[i].name, w, (unsigned long long)a,
					 (unsigned long long)b);
		}
	}
}

static void
work_ends_where_its_steps_end(void **state)
{
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);

	(void)state;
	make_text(&shapes[0], 4 * ITEMS, &text);
	for (size_t w = 0; w < sizeof(works) / sizeof(works[0]); w++) {
		uint64_t all, used;

		assert_int_equal(count_steps(w, buf_str(&text), 0, &all), STATUS_OK);
		assert_int_equal(count_steps(w, buf_str(&text), all / 4, &used), STATUS_STEPS);
		assert_true(used < all);
	}
}

/* An object out of order in an object out of order, and so on: each moves all that is in it. */
static void
what_is_moved_again_and_again_is_counted(void **state)
{
	AUTO(buf_release) struct buf text = BUF_INIT(TEXT_BYTES);
	uint64_t flat, nested;

	(void)state;
	make_text(&shapes[3], ITEMS, &text);
	assert_int_equal(count_steps(0, buf_str(&text), 0, &flat), STATUS_OK);
	buf_clear(&text);
	for (int i = 0; i < 400; i++)
		buf_append_cstr(&text, "{\"b\":");
	make_text(&shapes[3], ITEMS, &text);
	for (int i = 0; i < 400; i++)
		buf_append_cstr(&text, ",\"a\":0}");
	assert_int_equal(count_steps(0, buf_str(&text), 0, &nested), STATUS_OK);
	assert_true(nested > flat + 400 * ITEMS * sizeof(struct kv_pair) / 1024);
}

/* ---- Fibers that share buffers ---- */

enum {
	FIBERS = 4,
};

static struct loop loop;
static struct doc_scratch *scratch;
static size_t left;
static size_t in_the_middle; /* fibers that take a document apart */
static size_t most_in_the_middle;

struct reader {
	struct buf text;
	struct arena *arena;
	struct doc doc;
	enum status status;
};

static void
read_document(void *arg)
{
	struct reader *me = arg;
	struct json_reader r;
	enum json_token token;

	if (++in_the_middle > most_in_the_middle)
		most_in_the_middle = in_the_middle;
	json_reader_init(&r, buf_str(&me->text), NULL);
	me->status = json_next(&r, &token);
	if (me->status == STATUS_OK)
		me->status = doc_explode(&r, scratch, me->arena, &limits, 0, &me->doc, NULL);
	json_reader_release(&r);
	in_the_middle--;
	if (--left == 0)
		loop_stop(&loop);
}

static void
fibers_share_buffers_without_disturbing_each_other(void **state)
{
	struct loop_config config = { .task_bytes = 1 << 20 };
	struct reader readers[FIBERS];
	struct err err;

	(void)state;
	assert_int_equal(pool_new(1, &config.pool, &err), STATUS_OK);
	assert_int_equal(loop_init(&loop, &config, &err), STATUS_OK);
	scratch = doc_scratch_new();
	assert_non_null(scratch);
	left = FIBERS;
	for (size_t i = 0; i < FIBERS; i++) {
		readers[i] = (struct reader){ .text = BUF_INIT(TEXT_BYTES),
					      .arena = arena_new(ARENA_BYTES) };
		assert_non_null(readers[i].arena);
		make_text(&shapes[i], 4 * ITEMS, &readers[i].text);
		assert_int_equal(task_spawn(&loop, read_document, &readers[i]), STATUS_OK);
	}
	loop_run(&loop);
	loop_fini(&loop);
	pool_free(config.pool);
	doc_scratch_free(scratch);
	assert_true(most_in_the_middle > 1);
	for (size_t i = 0; i < FIBERS; i++) {
		struct doc alone;

		assert_int_equal(readers[i].status, STATUS_OK);
		assert_int_equal(doc_explode_text(buf_str(&readers[i].text), readers[i].arena,
						  &limits, 0, &alone, NULL),
				 STATUS_OK);
		assert_int_equal(readers[i].doc.count, alone.count);
		assert_int_equal(readers[i].doc.term.len, alone.term.len);
		assert_memory_equal(readers[i].doc.term.ptr, alone.term.ptr, alone.term.len);
		for (size_t k = 0; k < alone.count; k++)
			assert_true(str_eq(readers[i].doc.leaves[k].key, alone.leaves[k].key) &&
				    str_eq(readers[i].doc.leaves[k].value, alone.leaves[k].value));
		arena_free(readers[i].arena);
		buf_release(&readers[i].text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(twice_the_document_takes_twice_the_steps),
		cmocka_unit_test(work_ends_where_its_steps_end),
		cmocka_unit_test(what_is_moved_again_and_again_is_counted),
		cmocka_unit_test(fibers_share_buffers_without_disturbing_each_other),
	};

	return cmocka_run_group_tests_name("steps of documents", tests, NULL, NULL);
}
