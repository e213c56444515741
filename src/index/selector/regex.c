/*
 * $regex: PCRE2 over bytes, as Erlang's re has it without options. What an expression may cost is
 * bounded, in steps and in memory; where it would cost more the string does not match, as in
 * CouchDB.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/mem.h"
#include "index/selector/selector_int.h"

struct selector_regex {
	pcre2_code *code;             /* in the selector's arena, and never freed on its own */
	pcre2_match_context *context; /* likewise */
};

static void *
arena_take(size_t n, void *arena)
{
	return arena_alloc(arena, n);
}

static void
arena_leave(void *p, void *arena)
{
	(void)p;
	(void)arena;
}

static void *
heap_take(size_t n, void *data)
{
	(void)data;
	return mem_alloc(n);
}

static void
heap_leave(void *p, void *data)
{
	(void)data;
	mem_free(p);
}

static enum status
compile_in(pcre2_general_context *general, struct str pattern, struct selector_regex *ret)
{
	pcre2_compile_context *compile = pcre2_compile_context_create(general);
	PCRE2_SIZE offset;
	int code;

	ret->context = pcre2_match_context_create(general);
	if (!compile || !ret->context)
		return STATUS_LIMIT;
	(void)pcre2_set_parens_nest_limit(compile, SELECTOR_REGEX_NESTING);
	(void)pcre2_set_match_limit(ret->context, SELECTOR_REGEX_STEPS);
	(void)pcre2_set_depth_limit(ret->context, SELECTOR_REGEX_STEPS);
	(void)pcre2_set_heap_limit(ret->context, SELECTOR_REGEX_KIBIBYTES);
	ret->code = pcre2_compile((PCRE2_SPTR)pattern.ptr, pattern.len, 0, &code, &offset, compile);
	if (ret->code)
		return STATUS_OK;
	return code == PCRE2_ERROR_HEAP_FAILED ? STATUS_LIMIT : STATUS_INVALID;
}

enum status
selector_regex_compile(struct str pattern, struct arena *arena, struct selector_regex **ret)
{
	pcre2_general_context *general = pcre2_general_context_create(arena_take, arena_leave,
								      arena);
	struct selector_regex *regex = arena_zalloc(arena, sizeof(*regex));

	if (!general || !regex)
		return STATUS_LIMIT;
	if (pattern.len > SELECTOR_REGEX_BYTES)
		return STATUS_INVALID;
	TRY(compile_in(general, pattern, regex));
	*ret = regex;
	return STATUS_OK;
}

enum status
selector_regex_match(const struct selector_regex *regex, struct str text, bool *ret)
{
	pcre2_general_context *general = pcre2_general_context_create(heap_take, heap_leave, NULL);
	pcre2_match_data *data = general ? pcre2_match_data_create(1, general) : NULL;
	int code = PCRE2_ERROR_NOMEMORY;

	if (data)
		code = pcre2_match(regex->code, (PCRE2_SPTR)text.ptr, text.len, 0, 0, data,
				   regex->context);
	pcre2_match_data_free(data);
	pcre2_general_context_free(general);
	if (code == PCRE2_ERROR_NOMEMORY)
		return STATUS_NOMEM;
	*ret = code >= 0;
	return STATUS_OK;
}
