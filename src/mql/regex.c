/*
 * PCRE2, compiled twice: as index/selector has it, a short string is first matched by plain code
 * with a match limit so low that the call cannot take long. Any other match runs code with a
 * callout before each item, which counts steps and so lets other fibers run in the middle of the
 * match; a long pattern of plain characters has fewer of them (base/callouts.h).
 * All memory is the arena's.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/callouts.h"
#include "loop/wait.h"
#include "mql/mql_int.h"
#include "mql/regex.h"

enum {
	REGEX_QUICK_BYTES = 128,
	REGEX_QUICK_CALLS = 50,
	/* Longer patterns are compiled in the thread pool, which has longer stacks than fibers. */
	REGEX_SHORT_PATTERN_BYTES = 256,
	REGEX_COMPILE_STEPS = 64,
	REGEX_MATCH_STEPS = 8,
	REGEX_STEP_BYTES = 16,
	REGEX_ERROR_BYTES = 120,
};

struct mql_regex {
	pcre2_code *plain;
	pcre2_code *counted;
	uint32_t groups;
};

static void *
regex_alloc(size_t n, void *arena)
{
	return arena_alloc(arena, n);
}

static void
regex_free(void *p, void *arena)
{
	(void)p;
	(void)arena;
}

struct regex_compilation {
	struct mql *q;
	struct str pattern;
	uint32_t options;
	struct mql_regex *regex;
	enum status status;
};

static enum status
regex_compile_code(struct regex_compilation *c, pcre2_compile_context *context, struct str pattern,
		   uint32_t options, pcre2_code **ret)
{
	char text[REGEX_ERROR_BYTES];
	PCRE2_SIZE offset;
	int error;

	*ret = pcre2_compile((PCRE2_SPTR)pattern.ptr, pattern.len, c->options | options, &error,
			     &offset, context);
	if (*ret)
		return STATUS_OK;
	if (error == PCRE2_ERROR_HEAP_FAILED)
		return mql_full(c->q);
	if (pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof(text)) < 0)
		text[0] = '\0';
	return mql_fail(c->q, 51091, "Regular expression is invalid: %s", text);
}

static enum status
regex_compile_counted(struct regex_compilation *c, pcre2_compile_context *context)
{
	struct str sparse;

	if (!callouts_are_sparse(c->pattern))
		return regex_compile_code(c, context, c->pattern, PCRE2_AUTO_CALLOUT,
					  &c->regex->counted);
	sparse = callouts_put(c->pattern, c->q->arena);
	return sparse.ptr ? regex_compile_code(c, context, sparse, 0, &c->regex->counted)
			  : mql_full(c->q);
}

static enum status
regex_compile_both(struct regex_compilation *c)
{
	pcre2_general_context *general = pcre2_general_context_create(regex_alloc, regex_free,
								      c->q->arena);
	pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;

	if (!context)
		return mql_full(c->q);
	(void)pcre2_set_parens_nest_limit(context, MQL_REGEX_NESTING);
	TRY(regex_compile_code(c, context, c->pattern, 0, &c->regex->plain));
	TRY(regex_compile_counted(c, context));
	(void)pcre2_pattern_info(c->regex->plain, PCRE2_INFO_CAPTURECOUNT, &c->regex->groups);
	return STATUS_OK;
}

static void
regex_compile_run(void *arg)
{
	struct regex_compilation *c = arg;

	c->status = regex_compile_both(c);
}

static enum status
regex_options(struct mql *q, struct str options, uint32_t *ret)
{
	/* Patterns come out of checked BSON, and are UTF-8. */
	*ret = PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_NEVER_BACKSLASH_C;
	for (size_t i = 0; i < options.len; i++) {
		switch (options.ptr[i]) {
		case 'i':
			*ret |= PCRE2_CASELESS;
			break;
		case 'm':
			*ret |= PCRE2_MULTILINE;
			break;
		case 's':
			*ret |= PCRE2_DOTALL;
			break;
		case 'x':
			*ret |= PCRE2_EXTENDED;
			break;
		case 'u':
			break;
		default:
			return mql_fail(q, 51108, "invalid flag in regex options: %c",
					options.ptr[i]);
		}
	}
	return STATUS_OK;
}

enum status
mql_regex_compile(struct mql *q, struct str pattern, struct str options, struct mql_regex **ret)
{
	struct regex_compilation c = { .q = q, .pattern = pattern };

	TRY(regex_options(q, options, &c.options));
	if (pattern.len > MQL_REGEX_BYTES)
		return mql_fail(q, 51091, "Regular expression is too long: %zu bytes of %d",
				pattern.len, MQL_REGEX_BYTES);
	if (memchr(pattern.ptr, 0, pattern.len))
		return mql_fail(q, 51109,
				"Regular expression cannot contain an embedded null byte");
	TRY(step_count(REGEX_COMPILE_STEPS + (uint32_t)pattern.len));
	c.regex = arena_zalloc(q->arena, sizeof(*c.regex));
	if (!c.regex)
		return mql_full(q);
	/* Nothing else uses the arena while this fiber waits. */
	if (pattern.len > REGEX_SHORT_PATTERN_BYTES)
		wait_offload(regex_compile_run, &c);
	else
		regex_compile_run(&c);
	TRY(c.status);
	*ret = c.regex;
	return STATUS_OK;
}

uint32_t
mql_regex_groups(const struct mql_regex *regex)
{
	return regex->groups;
}

struct regex_match {
	uint64_t left;
	size_t at;
	enum status status;
};

/* Called by PCRE2 before each item. Any other number than 0 ends the match. */
static int
regex_count_item(pcre2_callout_block *block, void *arg)
{
	struct regex_match *m = arg;
	size_t at = block->current_position;
	size_t steps = 1 + (at > m->at ? at - m->at : m->at - at) / STEP_COPIED_BYTES;

	m->at = at;
	if (steps > m->left)
		return PCRE2_ERROR_MATCHLIMIT;
	m->left -= steps;
	m->status = step_count((uint32_t)steps);
	return m->status == STATUS_OK ? 0 : PCRE2_ERROR_CALLOUT;
}

static int
regex_run(const struct mql_regex *regex, struct str text, size_t from, struct regex_match *m,
	  pcre2_match_data *data, pcre2_match_context *context)
{
	int code = PCRE2_ERROR_MATCHLIMIT;

	if (text.len <= REGEX_QUICK_BYTES) {
		(void)pcre2_set_match_limit(context, REGEX_QUICK_CALLS);
		code = pcre2_match(regex->plain, (PCRE2_SPTR)text.ptr, text.len, from,
				   PCRE2_NO_UTF_CHECK, data, context);
	}
	if (code != PCRE2_ERROR_MATCHLIMIT)
		return code;
	(void)pcre2_set_match_limit(context, MQL_REGEX_STEPS);
	(void)pcre2_set_depth_limit(context, MQL_REGEX_STEPS);
	(void)pcre2_set_heap_limit(context, MQL_REGEX_KIBIBYTES);
	(void)pcre2_set_callout(context, regex_count_item, m);
	return pcre2_match(regex->counted, (PCRE2_SPTR)text.ptr, text.len, from, PCRE2_NO_UTF_CHECK,
			   data, context);
}

enum status
mql_regex_match(const struct mql_regex *regex, struct mql *q, struct str text, size_t from,
		bool *ret, const size_t **ret_places)
{
	size_t count = 2 * ((size_t)regex->groups + 1);
	size_t *places = ret_places ? arena_alloc(q->arena, count * sizeof(*places)) : NULL;
	struct arena_mark mark = arena_mark(q->arena);
	pcre2_general_context *general = pcre2_general_context_create(regex_alloc, regex_free,
								      q->arena);
	struct regex_match m = {
		.left = MQL_REGEX_STEPS + (uint64_t)text.len * MQL_REGEX_BYTE_STEPS,
		.at = from,
	};
	pcre2_match_data *data;
	pcre2_match_context *context;
	size_t end = text.len, gone;
	int code;

	if ((ret_places && !places) || !general)
		return mql_full(q);
	data = pcre2_match_data_create(ret_places ? (uint32_t)count / 2 : 1, general);
	context = pcre2_match_context_create(general);
	if (!data || !context)
		return mql_full(q);
	if (!text.ptr)
		text.ptr = "";
	code = regex_run(regex, text, from, &m, data, context);
	if (code >= 0)
		end = pcre2_get_ovector_pointer(data)[1];
	if (code >= 0 && places)
		memcpy(places, pcre2_get_ovector_pointer(data), count * sizeof(*places));
	arena_reset(q->arena, mark);
	TRY(m.status);
	/* What is behind the match is counted when it is looked at. */
	gone = end > from ? end - from : 0;
	TRY(step_count(REGEX_MATCH_STEPS + (uint32_t)(gone / REGEX_STEP_BYTES)));
	if (code == PCRE2_ERROR_NOMEMORY)
		return mql_full(q);
	if (code < 0 && code != PCRE2_ERROR_NOMATCH)
		return mql_fail(q, 51156,
				"Error occurred while executing the regular expression. Result "
				"code: %d",
				code);
	*ret = code >= 0;
	if (ret_places)
		*ret_places = places;
	return STATUS_OK;
}
