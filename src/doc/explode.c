#include "doc/doc.h"

#include "base/clear.h"
#include "base/mem.h"
#include "doc/builder.h"
#include "doc/doc_int.h"
#include "doc/term.h"
#include "loop/step.h"

/*
 * One pass over the tokens of a JSON text feeds two receivers side by side: the builder, which
 * makes the leaves or the packed text, and the writer of the Erlang term. Special members, which
 * only CouchDB has, go to neither.
 *
 * A text that turns out too long for being packed is read again from its beginning, which has cost
 * what reading that much of it costs.
 */

enum {
	SPECIALS_FIRST = 8,
	EMPTY_BYTES = 2,                /* {} */
	SCRATCH_KEEP_BYTES = 64 * 1024, /* of each buffer, from one document to the next */
	/* Packed text is at most as long as what it is made of, but for a comma at its end. */
	TEXT_MAX_BYTES = DOC_LIMIT_MAX_BYTES + 1,

	LONG_NUMBER_DIGITS = 100,          /* longer ones count steps of their own */
	LONG_NUMBER_SQUARE_A_STEP = 30000, /* digits times digits that take a step */
};

struct doc_scratch {
	struct doc_builder *builder;
	struct doc_special *specials;
	size_t specials_count;
	size_t specials_cap;
	size_t specials_bytes; /* of the text */
	/*
	 * A fiber is in the middle of a document, and may be waiting for its next turn. Another one
	 * of the same thread must not touch the buffers.
	 */
	bool busy;
	/* Of the document that is being read: */
	struct json_reader *r;
	unsigned outside; /* containers that the value lies in */
	const char *begin;
	const char *most; /* the text may be read so far, or it is larger than the limit */
	struct arena *arena;
	const struct doc_limits *limits;
	struct err *err;
	bool packing;
	bool is_document; /* its members may be special ones */
	struct term_writer term;
};

/* ---- Limits ---- */

/* How much has been read, without the special members. */
static size_t
explode_text_bytes(const struct doc_scratch *x)
{
	return (size_t)(x->r->at - x->begin) - x->specials_bytes;
}

/* Sets how far the text may be read: special members do not count. */
static void
explode_set_most(struct doc_scratch *x)
{
	size_t rest = (size_t)(x->r->end - x->begin);
	size_t most = x->limits->doc_bytes;

	x->most = x->r->end;
	if (most < rest && x->specials_bytes < rest - most)
		x->most = x->begin + most + x->specials_bytes;
}

static inline enum status
explode_check_size(struct doc_scratch *x)
{
	if (x->r->at <= x->most)
		return STATUS_OK;
	return err_set(x->err, STATUS_DOC_TOO_LARGE, "the document is larger than %zu bytes",
		       x->limits->doc_bytes);
}

/* ---- Special members ---- */

static struct doc_special *
explode_add_special(struct doc_scratch *x)
{
	if (x->specials_count == x->specials_cap) {
		size_t cap = x->specials_cap ? 2 * x->specials_cap : SPECIALS_FIRST;
		struct doc_special *grown = mem_realloc(x->specials, cap * sizeof(*grown));

		if (!grown)
			return NULL;
		x->specials = grown;
		x->specials_cap = cap;
	}
	return &x->specials[x->specials_count++];
}

/* CouchDB has members of its own that are part of the body, for replications and access lists. */
static bool
is_special(struct str name)
{
	static const char *const of_body[] = {
		"_access",
		"_replication_id",
		"_replication_state",
		"_replication_state_reason",
		"_replication_state_time",
		"_replication_stats",
	};

	if (name.len == 0 || name.ptr[0] != '_')
		return false;
	for (size_t i = 0; i < sizeof(of_body) / sizeof(of_body[0]); i++)
		if (str_eq(name, str_from_cstr(of_body[i])))
			return false;
	return true;
}

/* The reader is at a special member's name. */
static enum status
explode_special(struct doc_scratch *x)
{
	const char *begin = x->r->token_begin;
	struct doc_special *special = explode_add_special(x);
	enum json_token token;

	if (!special)
		return err_set(x->err, STATUS_NOMEM, "no memory for taking the document apart");
	special->name = arena_dup(x->arena, x->r->text);
	if (!special->name.ptr)
		return err_set(
			x->err, STATUS_LIMIT,
			"a special member's name exceeds the memory limit of a request, %zu bytes",
			arena_limit_bytes(x->arena));
	TRY(json_next(x->r, &token));
	TRY(json_skip(x->r, token, &special->text));
	x->specials_bytes += (size_t)(x->r->at - begin) + 1; /* and a comma */
	explode_set_most(x);
	return STATUS_OK;
}

/* ---- Tokens ---- */

/* The string that the reader is at as the packed form writes it, if it stands so in the text. */
static inline struct str
explode_written(const struct doc_scratch *x)
{
	if (x->r->text.ptr != x->r->token_begin + 1)
		return DOC_NO_TEXT;
	return str_of(x->r->token_begin, x->r->text.len + 2);
}

/* Turning digits into binary takes time that grows with the square of their number. */
static enum status
explode_count_number(size_t digits)
{
	size_t n = digits < DOC_TERM_INT_DIGITS ? digits : DOC_TERM_INT_DIGITS;

	return step_count((uint32_t)(n * n / LONG_NUMBER_SQUARE_A_STEP));
}

static enum status
explode_number(struct doc_scratch *x)
{
	uint8_t magnitude[TUPLE_INT_MAX_BYTES];
	struct json_number number;
	struct doc_scalar s;

	if (x->r->text.len > LONG_NUMBER_DIGITS)
		TRY(explode_count_number(x->r->text.len));
	json_number_read(x->r->text, x->r->is_integer, &number);
	term_number(&x->term, &number);
	/* The packed form has the number's text, and its value is never asked for. */
	if (x->packing)
		return doc_builder_number_text(x->builder, x->r->text);
	json_number_scalar(&number, magnitude, &s);
	return doc_builder_scalar(x->builder, &s);
}

static enum status
explode_literal(struct doc_scratch *x, enum json_token token)
{
	struct doc_scalar s = { .kind = DOC_NULL };

	if (token == JSON_NULL) {
		term_null(&x->term);
	} else {
		s.kind = DOC_BOOL;
		s.truth = token == JSON_TRUE;
		term_bool(&x->term, s.truth);
	}
	return doc_builder_scalar(x->builder, &s);
}

static enum status
explode_end(struct doc_scratch *x, enum doc_container container)
{
	size_t count;

	/* The mark is where the last member's pair ends: before the list is ended. */
	TRY(doc_builder_end(x->builder, term_mark(&x->term), &count));
	term_end(&x->term, container, count);
	return STATUS_OK;
}

static enum status
explode_begin(struct doc_scratch *x, enum doc_container container)
{
	term_begin(&x->term, container);
	return doc_builder_begin(x->builder, container);
}

/* Passes the token that the reader is at on to the builder and to the term. */
static enum status
explode_token(struct doc_scratch *x, enum json_token token)
{
	if (token == JSON_KEY && x->r->depth == x->outside + 1 && x->is_document &&
	    is_special(x->r->text))
		return explode_special(x);
	TRY(explode_check_size(x));
	switch (token) {
	case JSON_KEY:
		TRY(doc_builder_key(x->builder, x->r->text, explode_written(x),
				    term_mark(&x->term)));
		term_key(&x->term, x->r->text);
		return STATUS_OK;
	case JSON_STRING:
		term_text(&x->term, x->r->text);
		return doc_builder_text(x->builder, x->r->text, explode_written(x));
	case JSON_NUMBER:
		return explode_number(x);
	case JSON_TRUE:
	case JSON_FALSE:
	case JSON_NULL:
		return explode_literal(x, token);
	case JSON_OBJECT_BEGIN:
		return explode_begin(x, DOC_OBJECT);
	case JSON_ARRAY_BEGIN:
		return explode_begin(x, DOC_ARRAY);
	case JSON_OBJECT_END:
		return explode_end(x, DOC_OBJECT);
	case JSON_ARRAY_END:
		return explode_end(x, DOC_ARRAY);
	case JSON_END:
		break;
	}
	return err_set(x->err, STATUS_INVALID, "not a value");
}

/* ---- What has been made ---- */

static enum status
explode_finish(struct doc_scratch *x, struct doc *ret)
{
	size_t specials_bytes = x->specials_count * sizeof(*x->specials);
	struct doc_span *dropped;
	struct doc_built built;
	struct doc doc = {
		.specials_count = x->specials_count,
		/* Among nothing but special members there is a comma less. */
		.json_bytes = explode_text_bytes(x) < EMPTY_BYTES ? EMPTY_BYTES
								  : explode_text_bytes(x),
	};
	size_t count;

	if (buf_status(&x->term.out) != STATUS_OK)
		return err_set(x->err, buf_status(&x->term.out),
			       "no memory for taking the document apart");
	TRY(doc_builder_finish(x->builder, &built));
	dropped = doc_builder_dropped(x->builder, &count);
	doc.packed = built.packed;
	doc.leaves = built.leaves;
	doc.count = built.count;
	doc.path_bytes = built.path_bytes;
	doc.term = term_copy(&x->term, dropped, count, x->arena);
	doc.specials = arena_alloc(x->arena, specials_bytes);
	if (!doc.specials || !doc.term.ptr)
		return err_set(x->err, STATUS_LIMIT,
			       "the document exceeds the memory limit of a request, %zu bytes",
			       arena_limit_bytes(x->arena));
	if (specials_bytes)
		memcpy(doc.specials, x->specials, specials_bytes);
	*ret = doc;
	return STATUS_OK;
}

/* ---- Scratch ---- */

struct doc_scratch *
doc_scratch_new(void)
{
	struct doc_scratch *x = mem_alloc(sizeof(*x));

	if (!x)
		return NULL;
	/* The term's lists are set as they begin. */
	CLEAR_BEFORE(x, term);
	term_init(&x->term);
	x->builder = doc_builder_new();
	if (x->builder)
		return x;
	mem_free(x);
	return NULL;
}

void
doc_scratch_free(struct doc_scratch *x)
{
	if (!x)
		return;
	doc_builder_free(x->builder);
	term_release(&x->term);
	mem_free(x->specials);
	mem_free(x);
}

/* Forgets the last document, and what only a large one needs. */
static void
scratch_clear(struct doc_scratch *x)
{
	term_clear(&x->term, SCRATCH_KEEP_BYTES);
	x->specials_count = 0;
	x->specials_bytes = 0;
	if (x->specials_cap * sizeof(*x->specials) > SCRATCH_KEEP_BYTES) {
		mem_free(x->specials);
		x->specials = NULL;
		x->specials_cap = 0;
	}
}

/* ---- The whole ---- */

/* Goes on to the end of the object that is `depth` containers deep, checking the text. */
static enum status
explode_skip_rest(struct json_reader *r, unsigned depth)
{
	enum json_token token;

	while (r->depth >= depth)
		TRY(json_next(r, &token));
	return STATUS_OK;
}

static enum status
explode_value(struct doc_scratch *x, enum json_token first, struct doc *ret)
{
	enum json_token token = first;
	enum status status;

	/* One call, so that the compiler puts the whole loop into one function. */
	do
		status = explode_token(x, token);
	while (status == STATUS_OK && x->r->depth > x->outside &&
	       (status = json_next(x->r, &token)) == STATUS_OK);
	if (status == STATUS_DOC_TOO_LARGE || status == STATUS_PATH_TOO_LONG) {
		enum status rest = explode_skip_rest(x->r, x->outside + 1);

		return rest == STATUS_OK ? status : rest;
	}
	TRY(status);
	return explode_finish(x, ret);
}

/*
 * Reads the value whose first token has been read: packs it if `packed_bytes` is not 0, makes
 * leaves otherwise. STATUS_LIMIT with `*ret_long` where another form may do.
 */
static enum status
explode_into(struct doc_scratch *x, struct json_reader *r, enum json_token first,
	     struct arena *arena, const struct doc_limits *limits, size_t prefix_bytes,
	     size_t packed_bytes, bool *ret_long, struct doc *ret, struct err *err)
{
	const struct doc_builder_options options = {
		.arena = arena,
		.prefix_bytes = prefix_bytes,
		.path_bytes = limits->path_bytes,
		.packed_bytes = packed_bytes,
		.leaves_bytes = limits->leaves_bytes,
		.err = err,
	};
	enum status status;

	scratch_clear(x);
	doc_builder_start(x->builder, &options);
	x->r = r;
	x->arena = arena;
	x->limits = limits;
	x->err = err;
	x->packing = packed_bytes > 0;
	x->begin = r->token_begin;
	explode_set_most(x);
	x->outside = r->depth;
	if (first == JSON_OBJECT_BEGIN || first == JSON_ARRAY_BEGIN)
		x->outside--; /* the reader is inside of the value already */
	status = explode_value(x, first, ret);
	*ret_long = status == STATUS_LIMIT && doc_builder_is_too_long(x->builder);
	if (r->failed != STATUS_OK && err && r->err && err != r->err)
		*err = *r->err;
	return status;
}

/* Packed if the text is short; else in leaves; and if they would be too many, packed after all. */
static enum status
explode_object(struct doc_scratch *scratch, struct json_reader *r, struct arena *arena,
	       const struct doc_limits *limits, size_t prefix_bytes, struct doc *ret,
	       struct err *err)
{
	const size_t forms[] = { limits->packed_bytes, 0, TEXT_MAX_BYTES };
	struct arena_mark mark = arena_mark(arena);
	const struct json_reader begin = *r;
	size_t form = limits->packed_bytes ? 0 : 1;
	bool too_long;
	enum status status;

	scratch->is_document = true;
	for (;;) {
		status = explode_into(scratch, r, JSON_OBJECT_BEGIN, arena, limits, prefix_bytes,
				      forms[form], &too_long, ret, err);
		if (!too_long || ++form == sizeof(forms) / sizeof(forms[0]))
			break;
		arena_reset(arena, mark);
		json_rewind(r, &begin);
	}
	if (form == 1)
		ret->unpackable = limits->packed_bytes;
	return status;
}

static enum status
scratch_new_or_fail(struct doc_scratch **ret, struct err *err)
{
	*ret = doc_scratch_new();
	if (!*ret)
		return err_set(err, STATUS_NOMEM, "no memory for taking the document apart");
	return STATUS_OK;
}

/*
 * Many fibers may be in the middle of a document. Memory beyond their loop's scratch counts as
 * theirs.
 */
static void
scratch_count(struct doc_scratch *own, const struct arena *arena)
{
	doc_builder_set_part(own->builder, arena_part(arena));
	own->term.out.part = arena_part(arena);
}

enum status
doc_explode(struct json_reader *r, struct doc_scratch *scratch, struct arena *arena,
	    const struct doc_limits *limits, size_t prefix_bytes, struct doc *ret, struct err *err)
{
	struct doc_scratch *own = NULL;
	enum status status;

	if (!scratch || scratch->busy) {
		TRY(scratch_new_or_fail(&own, err));
		scratch_count(own, arena);
		scratch = own;
	}
	scratch->busy = true;
	status = explode_object(scratch, r, arena, limits, prefix_bytes, ret, err);
	scratch->busy = false;
	doc_scratch_free(own);
	return status;
}

enum text_kind {
	TEXT_DOCUMENT,
	TEXT_ARRAY,
	TEXT_VALUE,
};

static enum status
explode_check_kind(enum text_kind kind, enum json_token first, struct err *err)
{
	if (kind == TEXT_DOCUMENT && first != JSON_OBJECT_BEGIN)
		return err_set(err, STATUS_INVALID, "a document must be a JSON object");
	if (kind == TEXT_ARRAY && first != JSON_ARRAY_BEGIN)
		return err_set(err, STATUS_INVALID, "this must be a JSON array");
	return STATUS_OK;
}

/* A text that is one value of that kind and nothing else. */
static enum status
explode_text(struct str text, enum text_kind kind, struct arena *arena,
	     const struct doc_limits *limits, size_t prefix_bytes, struct doc *ret, struct err *err)
{
	struct doc_scratch *scratch;
	struct json_reader r;
	enum json_token token;
	enum status status;
	bool too_long;

	TRY(scratch_new_or_fail(&scratch, err));
	scratch_count(scratch, arena);
	json_reader_init(&r, text, err);
	r.scratch.part = arena_part(arena);
	status = json_next(&r, &token);
	if (status == STATUS_OK)
		status = explode_check_kind(kind, token, err);
	if (status == STATUS_OK && kind == TEXT_DOCUMENT)
		status = explode_object(scratch, &r, arena, limits, prefix_bytes, ret, err);
	else if (status == STATUS_OK)
		status = explode_into(scratch, &r, token, arena, limits, prefix_bytes, 0, &too_long,
				      ret, err);
	if (status == STATUS_OK)
		status = json_next(&r, &token); /* nothing behind it */
	json_reader_release(&r);
	doc_scratch_free(scratch);
	return status;
}

enum status
doc_explode_text(struct str text, struct arena *arena, const struct doc_limits *limits,
		 size_t prefix_bytes, struct doc *ret, struct err *err)
{
	return explode_text(text, TEXT_DOCUMENT, arena, limits, prefix_bytes, ret, err);
}

enum status
doc_explode_array_text(struct str text, struct arena *arena, const struct doc_limits *limits,
		       struct doc *ret, struct err *err)
{
	return explode_text(text, TEXT_ARRAY, arena, limits, 0, ret, err);
}

enum status
doc_explode_value_text(struct str text, struct arena *arena, const struct doc_limits *limits,
		       struct doc *ret, struct err *err)
{
	return explode_text(text, TEXT_VALUE, arena, limits, 0, ret, err);
}

const struct doc_special *
doc_find_special(const struct doc *doc, struct str name)
{
	for (size_t i = doc->specials_count; i-- > 0;)
		if (str_eq(doc->specials[i].name, name))
			return &doc->specials[i];
	return NULL;
}
