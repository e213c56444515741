/*
 * Stages that look at one document at a time, and call functions in JavaScript: documents are read
 * ahead of such a stage, and it is run on all of them together (struct mql_batch).
 */
#include "base/mem.h"
#include "mql/expr/script.h"
#include "mql/stage/stages_int.h"

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
	struct mql_batch batch;
	struct ahead_row *rows; /* in the batch's arena */
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

	/* The stage reads this one document; calling it again would find its source at the end. */
	assert(s->stage->from == &s->single.source);
	s->single.doc = row->doc;
	s->single.given = false;
	status = s->stage->source.next(&s->stage->source, &out);
	if (status == STATUS_NOT_FOUND)
		return STATUS_OK;
	TRY(status);
	row->result = arena_dup(s->batch.arena, out);
	return row->result.ptr ? STATUS_OK : mql_full(q);
}

static enum status
ahead_row_read(void *arg, size_t *ret_bytes)
{
	struct ahead_source *s = arg;
	struct ahead_row *row = &s->rows[s->batch.count];
	struct str doc;

	TRY(s->from->next(s->from, &doc));
	*ret_bytes = doc.len;
	row->doc = arena_dup(s->batch.arena, doc);
	return row->doc.ptr ? STATUS_OK : mql_full(&s->stage->run->q);
}

/* Reads the next batch and evaluates it. */
static enum status
ahead_rows_fill(struct ahead_source *s)
{
	struct mql_batch *b = &s->batch;

	s->rows = mql_batch_begin(b, sizeof(*s->rows));
	if (!s->rows)
		return mql_full(&s->stage->run->q);
	mql_batch_read(b, ahead_row_read, s);
	mql_batch_run(b, mql_stage_begin(s->stage), row_run, s);
	return STATUS_OK;
}

static enum status
ahead_next(struct mql_source *source, struct str *ret)
{
	struct ahead_source *s = (struct ahead_source *)source;
	struct mql_batch *b = &s->batch;

	assert(b->at <= b->count);
	for (;;) {
		while (b->at < b->count) {
			*ret = s->rows[b->at++].result;
			if (ret->ptr)
				return STATUS_OK;
		}
		if (b->failed != STATUS_OK)
			return mql_batch_failure(b, &s->stage->run->q);
		if (b->ended)
			return STATUS_NOT_FOUND;
		TRY(ahead_rows_fill(s));
	}
}

static void
ahead_close(struct mql_source *source)
{
	struct ahead_source *s = (struct ahead_source *)source;

	s->stage->source.close(&s->stage->source);
	s->from->close(s->from);
	mql_batch_fini(&s->batch);
	mem_free(s);
}

enum status
mql_stage_ahead(struct mql_stage_run *stage, struct mql_source **ret)
{
	struct ahead_source *s = mem_zalloc(sizeof(*s));

	if (!s)
		return STATUS_NOMEM;
	if (mql_batch_init(&s->batch, MQL_SCRATCH_BYTES, stage->run->options.part) != STATUS_OK) {
		mem_free(s);
		return STATUS_NOMEM;
	}
	s->source = (struct mql_source){ ahead_next, ahead_close };
	s->single.source = (struct mql_source){ single_next, single_close };
	/* The stage is closed by this source, and the stage's own source as well. */
	assert(stage->from && stage->stage->calls);
	s->stage = stage;
	s->from = stage->from;
	stage->from = &s->single.source;
	*ret = &s->source;
	return STATUS_OK;
}
