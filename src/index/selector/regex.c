/*
 * $regex: PCRE2 over bytes, as in Erlang's module re without options.
 *
 * An expression may take exponential time, and one call of PCRE2 cannot be left. So each expression
 * is compiled twice. A short string is first matched by the plain code, with a match limit so low
 * that the call cannot take long; most matches end there. Any other match runs code with a callout
 * in front of each item of the expression; in front of some where it is long (base/callouts.h). The
 * callout counts steps, and so lets other fibers run while the match is under way: everything that
 * PCRE2 uses meanwhile lies on the fiber's stack and in the arena of the request.
 *
 * The steps and the memory of a match are bounded. A string for which an expression would take more
 * does not match, as in CouchDB.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/callouts.h"
#include "base/metric.h"
#include "index/selector/selector_int.h"
#include "loop/wait.h"

enum {
	/*
	 * A quick match tries at most this many starts, each with at most so many calls of PCRE2's
	 * inner function, each of which scans at most the string.
	 */
	REGEX_QUICK_BYTES = 128,
	REGEX_QUICK_CALLS = 50,
	/*
	 * Longer patterns are compiled in the thread pool: PCRE2 calls itself for groups that refer
	 * to each other, and may need more stack than a fiber has.
	 */
	REGEX_SHORT_PATTERN_BYTES = 256,
	REGEX_COMPILE_STEPS = 64, /* of an expression, with one more for each byte */
	REGEX_MATCH_STEPS = 8,    /* of a quick match, with one more for REGEX_STEP_BYTES */
	REGEX_STEP_BYTES = 16,
};

METRIC_COUNTER(regex_given_up, "frond_regex_limits_total", METRIC_NUMBER,
	       "How often a string was taken not to match a $regex because the match reached the "
	       "limit of its steps or of its memory.");

struct selector_regex {
	/* All in the selector's arena, and never freed on their own. */
	pcre2_code *plain;
	pcre2_code *counted; /* with a callout before each item */
	pcre2_match_context *quick;
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

/* ---- Compiling ---- */

struct regex_compilation {
	struct str pattern;
	struct arena *arena;
	struct selector_regex *regex;
	enum status status;
};

static enum status
regex_compile_code(pcre2_compile_context *context, struct str pattern, uint32_t options,
		   pcre2_code **ret)
{
	PCRE2_SIZE offset;
	int error;

	*ret = pcre2_compile((PCRE2_SPTR)pattern.ptr, pattern.len, options, &error, &offset,
			     context);
	if (*ret)
		return STATUS_OK;
	return error == PCRE2_ERROR_HEAP_FAILED ? STATUS_LIMIT : STATUS_INVALID;
}

static enum status
regex_compile_both(struct regex_compilation *c)
{
	pcre2_general_context *general = pcre2_general_context_create(regex_alloc, regex_free,
								      c->arena);
	pcre2_compile_context *context;
	struct str sparse;

	if (!general)
		return STATUS_LIMIT;
	context = pcre2_compile_context_create(general);
	c->regex->quick = pcre2_match_context_create(general);
	if (!context || !c->regex->quick)
		return STATUS_LIMIT;
	(void)pcre2_set_parens_nest_limit(context, SELECTOR_REGEX_NESTING);
	(void)pcre2_set_match_limit(c->regex->quick, REGEX_QUICK_CALLS);
	TRY(regex_compile_code(context, c->pattern, 0, &c->regex->plain));
	if (!callouts_are_sparse(c->pattern))
		return regex_compile_code(context, c->pattern, PCRE2_AUTO_CALLOUT,
					  &c->regex->counted);
	sparse = callouts_put(c->pattern, c->arena);
	return sparse.ptr ? regex_compile_code(context, sparse, 0, &c->regex->counted)
			  : STATUS_LIMIT;
}

static void
regex_compile_run(void *arg)
{
	struct regex_compilation *c = arg;

	c->status = regex_compile_both(c);
}

enum status
selector_regex_compile(struct str pattern, struct index_work *w, struct selector_regex **ret)
{
	struct regex_compilation c = { .pattern = pattern, .arena = w->arena };

	if (pattern.len > SELECTOR_REGEX_BYTES)
		return STATUS_INVALID;
	TRY(index_count(w, REGEX_COMPILE_STEPS + (uint32_t)pattern.len));
	c.regex = arena_zalloc(w->arena, sizeof(*c.regex));
	if (!c.regex)
		return STATUS_LIMIT;
	/* Nothing else uses the arena while this fiber waits. */
	if (pattern.len > REGEX_SHORT_PATTERN_BYTES)
		wait_offload(regex_compile_run, &c);
	else
		regex_compile_run(&c);
	*ret = c.regex;
	return c.status;
}

/* ---- Matching ---- */

/* One match that counts its steps. */
struct regex_match {
	struct index_work *work;
	uint64_t left; /* steps until it is given up */
	size_t at;     /* the place in the string at the last callout */
	enum status status;
};

/* Called by PCRE2 before each item of the expression. Any other number than 0 ends the match. */
static int
regex_count_item(pcre2_callout_block *block, void *arg)
{
	struct regex_match *m = arg;
	size_t at = block->current_position;
	size_t moved = at > m->at ? at - m->at : m->at - at;
	size_t steps = 1 + moved / INDEX_STEP_BYTES;

	m->at = at;
	if (steps > m->left)
		return PCRE2_ERROR_MATCHLIMIT;
	m->left -= steps;
	m->status = index_count(m->work, (uint32_t)steps);
	return m->status == STATUS_OK ? 0 : PCRE2_ERROR_CALLOUT;
}

/* Returns PCRE2's code for the match; NOMEMORY also when the arena is full. */
static int
regex_match_counted(const struct selector_regex *regex, pcre2_general_context *general,
		    struct str text, struct regex_match *m)
{
	pcre2_match_data *data = pcre2_match_data_create(1, general);
	pcre2_match_context *context = pcre2_match_context_create(general);

	if (!data || !context)
		return PCRE2_ERROR_NOMEMORY;
	/* The limits of PCRE2 hold for each start in the string; that of `m` for all together. */
	(void)pcre2_set_match_limit(context, SELECTOR_REGEX_STEPS);
	(void)pcre2_set_depth_limit(context, SELECTOR_REGEX_STEPS);
	(void)pcre2_set_heap_limit(context, SELECTOR_REGEX_KIBIBYTES);
	(void)pcre2_set_callout(context, regex_count_item, m);
	return pcre2_match(regex->counted, (PCRE2_SPTR)text.ptr, text.len, 0, 0, data, context);
}

static int
regex_match_quickly(const struct selector_regex *regex, pcre2_general_context *general,
		    struct str text)
{
	pcre2_match_data *data = pcre2_match_data_create(1, general);

	if (!data)
		return PCRE2_ERROR_NOMEMORY;
	return pcre2_match(regex->plain, (PCRE2_SPTR)text.ptr, text.len, 0, 0, data, regex->quick);
}

enum status
selector_regex_match(const struct selector_regex *regex, struct str text, struct index_work *w,
		     bool *ret)
{
	struct arena_mark mark = arena_mark(w->arena);
	pcre2_general_context *general = pcre2_general_context_create(regex_alloc, regex_free,
								      w->arena);
	struct regex_match m = {
		.work = w,
		.left = SELECTOR_REGEX_STEPS + (uint64_t)text.len * SELECTOR_REGEX_BYTE_STEPS,
	};
	int code = PCRE2_ERROR_MATCHLIMIT;

	if (!general)
		return STATUS_LIMIT;
	TRY(index_count(w, REGEX_MATCH_STEPS + (uint32_t)(text.len / REGEX_STEP_BYTES)));
	if (text.len <= REGEX_QUICK_BYTES)
		code = regex_match_quickly(regex, general, text);
	if (code == PCRE2_ERROR_MATCHLIMIT)
		code = regex_match_counted(regex, general, text, &m);
	arena_reset(w->arena, mark);
	TRY(m.status);
	if (code == PCRE2_ERROR_NOMEMORY)
		return STATUS_LIMIT;
	if (code == PCRE2_ERROR_MATCHLIMIT || code == PCRE2_ERROR_DEPTHLIMIT ||
	    code == PCRE2_ERROR_HEAPLIMIT)
		metric_add(&regex_given_up, 1);
	*ret = code >= 0;
	return STATUS_OK;
}
