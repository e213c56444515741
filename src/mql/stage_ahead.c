/*
 * Stages that look at one document at a time, and call functions in JavaScript: documents are read
 * ahead of such a stage, and it is run on all of them together (script.h). The first batch is one
 * document, so that a pipeline that wants no more calls no more; later ones are larger.
 */
#include "base/mem.h"
#include "mql/script.h"
#include "mql/stages_int.h"

/* Gives one document, and then ends. */
struct single {
	struct mql_source source;
	struct str doc;
	bool given;
};

struct ahead_row {
	struct str doc;
	struct str result; /* ptr NULL: the stage lets it go */
};

struct ahead_source {
	struct mql_source source;
	struct mql_stage_run *stage; /* on top of `single` */
	struct single single;
	struct mql_source *from;
	struct arena *arena;
	struct ahead_row *rows;
	size_t count;
	size_t at;
	size_t want;        /* documents of the next batch */
	bool ended;         /* no document comes behind the rows */
	enum status failed; /* behind the rows */
	int code;
	struct err err;
};

static enum status
single_next(struct mql_source *source, struct str *ret)
{
	struct single *s = (struct single *)source;

	if (s->given)
		return STATUS_NOT_FOUND;
	s->given = true;
	*ret = s->doc;
	return STATUS_OK;
}

static void
single_close(struct mql_source *source)
{
	(void)source;
}

static enum status
row_run(void *arg, struct mql *q, size_t i)
{
	struct ahead_source *s = arg;
	struct ahead_row *row = &s->rows[i];
	struct str out;
	enum status status;

	s->single.doc = row->doc;
	s->single.given = false;
	status = s->stage->source.next(&s->stage->source, &out);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	row->result = arena_dup(s->arena, out);
	return row->result.ptr ? STATUS_OK : mql_full(q);
}

/* Reads documents until there are as many as are wanted, or no more. */
static enum status
rows_read(struct ahead_source *s)
{
	size_t bytes = 0;

	while (s->count < s->want && bytes < MQL_AHEAD_BYTES) {
		struct str doc;
		enum status status = s->from->next(s->from, &doc);

		s->ended = status == STATUS_NOT_FOUND;
		if (s->ended)
			return STATUS_OK;
		TRY(status);
		bytes += doc.len;
		s->rows[s->count].doc = arena_dup(s->arena, doc);
		if (!s->rows[s->count++].doc.ptr)
			return mql_full(&s->stage->run->q);
	}
	return STATUS_OK;
}

/* The next batch. What fails is told when the results in front of it were given. */
static enum status
rows_fill(struct ahead_source *s)
{
	struct mql_ahead *aheads;
	struct mql *q;

	arena_clear(s->arena);
	s->count = s->at = 0;
	s->rows = arena_zalloc(s->arena, s->want * sizeof(*s->rows));
	aheads = arena_zalloc(s->arena, s->want * sizeof(*aheads));
	if (!s->rows || !aheads)
		return mql_full(&s->stage->run->q);
	for (size_t i = 0; i < s->want; i++)
		aheads[i].arena = s->arena;
	s->failed = rows_read(s);
	q = mql_stage_begin(s->stage);
	if (s->failed == STATUS_OK)
		s->failed = mql_ahead_run(q, aheads, s->count, row_run, s, &s->count);
	else
		s->count = 0;
	s->code = q->code;
	if (s->failed != STATUS_OK && q->err)
		s->err = *q->err;
	q->code = 0;
	s->want = s->want * 4 < MQL_AHEAD_DOCUMENTS ? s->want * 4 : MQL_AHEAD_DOCUMENTS;
	return STATUS_OK;
}

static enum status
ahead_fail(struct ahead_source *s)
{
	struct mql *q = &s->stage->run->q;

	q->code = s->code;
	if (q->err)
		*q->err = s->err;
	return s->failed;
}

static enum status
ahead_next(struct mql_source *source, struct str *ret)
{
	struct ahead_source *s = (struct ahead_source *)source;

	for (;;) {
		while (s->at < s->count) {
			*ret = s->rows[s->at++].result;
			if (ret->ptr)
				return STATUS_OK;
		}
		if (s->failed != STATUS_OK)
			return ahead_fail(s);
		if (s->ended)
			return STATUS_NOT_FOUND;
		TRY(rows_fill(s));
	}
}

static void
ahead_close(struct mql_source *source)
{
	struct ahead_source *s = (struct ahead_source *)source;

	s->stage->source.close(&s->stage->source);
	s->from->close(s->from);
	arena_free(s->arena);
	mem_free(s);
}

enum status
mql_stage_ahead(struct mql_stage_run *stage, struct mql_source **ret)
{
	struct ahead_source *s = mem_zalloc(sizeof(*s));

	if (!s)
		return STATUS_NOMEM;
	s->arena = arena_new(MQL_SCRATCH_BYTES);
	if (!s->arena) {
		mem_free(s);
		return STATUS_NOMEM;
	}
	arena_set_part(s->arena, stage->run->options.part);
	s->source = (struct mql_source){ ahead_next, ahead_close };
	s->single.source = (struct mql_source){ single_next, single_close };
	s->want = 1;
	s->stage = stage;
	s->from = stage->from;
	stage->from = &s->single.source;
	*ret = &s->source;
	return STATUS_OK;
}
