/*
 * A selector on the first line, a document behind it. Any bytes may be refused, none may do harm;
 * what is taken means the same inside of an $and and an $or.
 */
#include <stdlib.h>

#include "index/collate.h"
#include "index/selector/selector.h"

enum {
	ARENA_BYTES = 16 << 20,
	MAX_BYTES = 1 << 20,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* -1: it is refused. */
static int
matches(struct str before, struct str selector, struct str after, const struct selector_doc *doc,
	struct arena *arena)
{
	struct buf text = BUF_INIT(MAX_BYTES);
	struct selector *s;
	bool ret = false;
	bool taken;

	buf_append_str(&text, before);
	buf_append_str(&text, selector);
	buf_append_str(&text, after);
	taken = selector_compile(buf_str(&text), arena, &s, NULL, NULL) == STATUS_OK &&
		selector_match(s, doc, arena, &ret) == STATUS_OK;
	buf_release(&text);
	return taken ? ret : -1;
}

/* With one level or condition more it may be past a limit; `{}` is a value in a list. */
static void
try_match(struct str selector, const struct selector_doc *doc, struct arena *arena)
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
	struct selector_fields *fields = NULL;
	struct buf out = BUF_INIT(MAX_BYTES);

	if (selector_fields_compile(selector, arena, &fields, NULL, NULL) == STATUS_OK && fields &&
	    selector_fields_write(fields, doc, &out) != STATUS_OK)
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
			const struct selector_doc d = { doc.leaves, doc.count, &id, 1 };

			try_match(selector, &d, arena);
			try_fields(&d, selector, arena);
		}
	}
	arena_free(arena);
	return 0;
}
