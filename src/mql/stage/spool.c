#include "mql/stage/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "loop/wait.h"

enum {
	SPOOL_LENGTH_BYTES = 4, /* that a document begins with */
};

void
mql_spool_init(struct mql_spool *s, struct mql_stage_run *r)
{
	size_t most = r->run->options.disk ? MQL_SPILL_BYTES + BSON_MOST_BYTES
					   : r->run->options.stage_bytes;

	*s = (struct mql_spool){ .fd = -1, .tail = BUF_INIT_OF(most, r->run->options.part) };
}

void
mql_spool_fini(struct mql_spool *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	buf_release(&s->tail);
}

void
mql_spool_clear(struct mql_spool *s)
{
	s->file_bytes = 0;
	buf_clear(&s->tail);
}

uint64_t
mql_spool_end(const struct mql_spool *s)
{
	return s->file_bytes + s->tail.len;
}

/* ---- The file; these may run on a thread of the pool ---- */

struct transfer {
	struct mql_spool *spool;
	const char *directory;
	char *bytes;
	size_t count;
	uint64_t at;
	int error; /* 0: done */
};

static int
spool_open(const char *directory)
{
	char path[4096];
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR))
		return fd;
	snprintf(path, sizeof(path), "%s/frond-spill-XXXXXX", directory);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

/* `n` is what the system call has returned. */
static void
transfer_step(struct transfer *t, ssize_t n)
{
	if (n > 0) {
		t->bytes += n;
		t->count -= (size_t)n;
		t->at += (size_t)n;
	} else if (!n || errno != EINTR) {
		t->error = n ? errno : EIO;
	}
}

static void
spool_write(void *arg)
{
	struct transfer *t = arg;

	if (t->spool->fd < 0)
		t->spool->fd = spool_open(t->directory);
	if (t->spool->fd < 0)
		t->error = errno;
	while (t->count && !t->error)
		transfer_step(t, pwrite(t->spool->fd, t->bytes, t->count, (off_t)t->at));
}

static void
spool_pread(void *arg)
{
	struct transfer *t = arg;

	while (t->count && !t->error)
		transfer_step(t, pread(t->spool->fd, t->bytes, t->count, (off_t)t->at));
}

static enum status
transfer_end(const struct transfer *t, struct mql_stage_run *r)
{
	if (!t->error)
		return STATUS_OK;
	return err_set(r->run->q.err, t->error == ENOSPC ? STATUS_FULL : STATUS_IO,
		       "the temporary file of %.*s in %s: %s", STR_ARG(r->stage->name),
		       r->run->options.directory, strerrordesc_np(t->error));
}

/* ---- Putting ---- */

static enum status
spool_flush(struct mql_spool *s, struct mql_stage_run *r)
{
	struct transfer t = { .spool = s,
			      .directory = r->run->options.directory,
			      .bytes = s->tail.ptr,
			      .count = s->tail.len,
			      .at = s->file_bytes };

	assert(s->tail.len > 0);
	/*
	 * == Safety ==
	 *
	 * The fiber waits here: the tail and the file are the pool's until the write has ended, and
	 * no other fiber has this stage. Only then do the bytes count as those of the file.
	 */
	wait_offload(spool_write, &t);
	TRY(transfer_end(&t, r));
	s->file_bytes += s->tail.len;
	buf_clear(&s->tail);
	return STATUS_OK;
}

enum status
mql_spool_put(struct mql_spool *s, struct mql_stage_run *r, struct str doc)
{
	TRY(step_count_bytes(doc.len));
	buf_append_str(&s->tail, doc);
	if (buf_status(&s->tail) != STATUS_OK) {
		if (buf_status(&s->tail) == STATUS_NOMEM || r->run->options.disk)
			return buf_status(&s->tail);
		return mql_stage_no_disk(r, r->scratch);
	}
	if (r->run->options.disk && s->tail.len >= MQL_SPILL_BYTES)
		return spool_flush(s, r);
	return STATUS_OK;
}

/* ---- Reading ---- */

void
mql_spool_read(struct mql_spool_reader *reader, struct mql_spool *s, struct mql_stage_run *r,
	       uint64_t at, uint64_t end)
{
	assert(at <= end && end <= mql_spool_end(s));
	*reader = (struct mql_spool_reader){
		.spool = s,
		.at = at,
		.end = end,
		.window = BUF_INIT_OF(2 * BSON_MOST_BYTES, r->run->options.part),
		.window_at = at,
	};
}

void
mql_spool_reader_fini(struct mql_spool_reader *reader)
{
	buf_release(&reader->window);
}

/* The end of what is read from the file. */
static uint64_t
file_end(const struct mql_spool_reader *reader)
{
	uint64_t bytes = reader->spool->file_bytes;

	return reader->end < bytes ? reader->end : bytes;
}

/* A disk may give back other bytes than it got: nothing else tells of that here than lengths. */
static enum status
file_damaged(struct mql_stage_run *r)
{
	return err_set(r->run->q.err, STATUS_IO,
		       "the temporary file of %.*s in %s has other bytes than were written to it",
		       STR_ARG(r->stage->name), r->run->options.directory);
}

/* Has `count` bytes from reader->at on in the window; all of them are in the file. */
static enum status
reader_fill(struct mql_spool_reader *reader, struct mql_stage_run *r, size_t count)
{
	uint64_t left = file_end(reader) - reader->at;
	struct transfer t = { .spool = reader->spool };
	uint64_t have = reader->window_at + reader->window.len;
	size_t want = MQL_SPILL_BYTES / 8;

	assert(reader->window_at <= reader->at && count <= left);
	if (reader->at + count <= have)
		return STATUS_OK;
	buf_consume(&reader->window, (size_t)(reader->at - reader->window_at));
	reader->window_at = reader->at;
	if (want < count)
		want = count;
	if (want > left)
		want = left;
	/* The window has less than `count`, and `want` is no less. */
	assert(want > reader->window.len);
	want -= reader->window.len;
	if (!buf_reserve(&reader->window, want))
		return buf_status(&reader->window);
	t.bytes = reader->window.ptr + reader->window.len;
	t.count = want;
	t.at = reader->window_at + reader->window.len;
	wait_offload(spool_pread, &t);
	TRY(transfer_end(&t, r));
	reader->window.len += want;
	return STATUS_OK;
}

enum status
mql_spool_next(struct mql_spool_reader *reader, struct mql_stage_run *r, struct str *ret)
{
	struct mql_spool *s = reader->spool;
	const char *at;
	size_t len;

	if (reader->at >= reader->end)
		return STATUS_NOT_FOUND;
	if (reader->at >= s->file_bytes) {
		at = s->tail.ptr + (reader->at - s->file_bytes);
		len = bson_length(str_of(at, s->tail.len - (reader->at - s->file_bytes)));
	} else {
		uint64_t left = file_end(reader) - reader->at;
		uint32_t n;

		/* A document is put into the file whole. */
		if (left < BSON_EMPTY_BYTES)
			return file_damaged(r);
		TRY(reader_fill(reader, r, SPOOL_LENGTH_BYTES));
		memcpy(&n, reader->window.ptr + (reader->at - reader->window_at), sizeof(n));
		len = le32toh(n);
		if (len < BSON_EMPTY_BYTES || len > left)
			return file_damaged(r);
		TRY(reader_fill(reader, r, len));
		at = reader->window.ptr + (reader->at - reader->window_at);
	}
	*ret = str_of(at, len);
	reader->at += len;
	assert(len >= BSON_EMPTY_BYTES && reader->at <= reader->end);
	return step_count_bytes(len);
}
