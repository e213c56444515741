/*
 * A selector on the first line, a document behind it. Any bytes may be refused, none may do harm;
 * what is taken means the same inside of an $and and an $or.
 *
 * The steps are bounded. Compiling n bytes sorts what is in them: n log n. Each condition looks at
 * each leaf of a document at most once, and looks it up in its list: conditions * leaves * log n.
 * Regular expressions have a limit of their own. A step more is counted for each 64 bytes of a
 * path, which may be as long as a key.
 */
#include <stdlib.h>
#include <string.h>

#include "index/collate.h"
#include "index/selector/selector.h"

enum {
	ARENA_BYTES = 16 << 20,
	MAX_BYTES = 1 << 20,
	PATH_STEPS = 2 * (KV_LIMIT_KEY_BYTES / INDEX_STEP_BYTES + 4), /* of comparing two leaves */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A document as a client has sent it. */
struct input_doc {
	struct selector_doc doc;
	size_t bytes;
};

static uint64_t
logarithm(size_t n)
{
	uint64_t log = 1;

	for (; n; n /= 2)
		log++;
	return log;
}

static void
check_steps(uint64_t steps, uint64_t most)
{
	if (steps > most)
		abort();
}

/* -1: it is refused. */
static int
matches(struct str before, struct str selector, struct str after, const struct input_doc *doc,
	struct arena *arena)
{
	struct buf text = BUF_INIT(MAX_BYTES);
	struct index_work work = { .arena = arena };
	struct selector *s;
	bool ret = false;
	bool taken;
	uint64_t size, log;

	buf_append_str(&text, before);
	buf_append_str(&text, selector);
	buf_append_str(&text, after);
	size = text.len + 16;
	log = logarithm(size);
	taken = selector_compile(buf_str(&text), &work, &s, NULL, NULL) == STATUS_OK;
	check_steps(work.steps, size * log * PATH_STEPS);
	work.steps = 0;
	taken = taken && selector_match(s, &doc->doc, &work, &ret) == STATUS_OK;
	if (!memmem(text.ptr, text.len, "$reg", 4) && !memchr(text.ptr, '\\', text.len))
		check_steps(work.steps, size * (doc->bytes + 64) * log * PATH_STEPS);
	buf_release(&text);
	return taken ? ret : -1;
}

/* With one level or condition more it may be past a limit; `{}` is a value in a list. */
static void
try_match(struct str selector, const struct input_doc *doc, struct arena *arena)
{
	int alone = matches(STR(""), selector, STR(""), doc, arena);
	int in_and = matches(STR("{\"$and\":["), selector, STR("]}"), doc, arena);
	int in_or = matches(STR("{\"$or\":["), selector, STR("]}"), doc, arena);

	if (alone >= 0 && memchr(selector.ptr, '"', selector.len) &&
	    ((in_and >= 0 && in_and != alone) || (in_or >= 0 && in_or != alone)))
		abort();
}

static void
try_fields(const struct selector_doc *doc, struct str selector, struct arena *arena)
{
	struct index_work work = { .arena = arena };
	struct selector_fields *fields = NULL;
	struct buf out = BUF_INIT(MAX_BYTES);

	if (selector_fields_compile(selector, &work, &fields, NULL, NULL) == STATUS_OK && fields &&
	    selector_fields_write(fields, doc, &work, &out) != STATUS_OK)
		abort();
	buf_release(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct doc_limits limits = { .doc_bytes = SIZE_MAX,
					   .path_bytes = KV_LIMIT_KEY_BYTES };
	struct str input = str_of(data, size);
	const char *line = size ? memchr(data, '\n', size) : NULL;
	struct arena *arena = arena_new(ARENA_BYTES);
	struct selector_special id = { .name = STR("_id") };
	struct doc doc;

	if (line && arena && leaf_parse(STR("\"id\""), arena, &id.value, NULL) == STATUS_OK) {
		struct str selector = str_of(data, (size_t)(line - input.ptr));
		struct str text = str_skip(input, selector.len + 1);

		if (doc_explode_text(text, arena, &limits, 0, &doc, NULL) == STATUS_OK) {
			const struct input_doc d = { { doc.leaves, doc.count, &id, 1 }, text.len };

			try_match(selector, &d, arena);
			try_fields(&d.doc, selector, arena);
		}
	}
	arena_free(arena);
	return 0;
}
