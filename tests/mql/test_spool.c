#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "mql/stage/spool.h"

#include "mql_case.h"

enum {
	DOCUMENTS = 3000,       /* those of test_documents(): about 3 MB, so two parts and a tail */
	PAD_BYTES = 2000,       /* of the longest one */
	SMALL_BYTES = 4 * 1024, /* that a stage without files keeps */
};

/* The error that a file without a name is refused with; 0: it is not. */
static int refused;
/* What happens to reads and writes of the file. */
static struct {
	size_t most; /* bytes at once; 0: no limit */
	int error;   /* 0: a call that fails has no bytes */
	int in_vain; /* how many more calls fail with it */
} io;

int __real_open64(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);
ssize_t __real_pwrite64(int fd, const void *bytes, size_t count, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t count, off_t at);
ssize_t __real_pread64(int fd, void *bytes, size_t count, off_t at);
ssize_t __wrap_pread64(int fd, void *bytes, size_t count, off_t at);

int
__wrap_open64(const char *path, int flags, mode_t mode)
{
	if (refused && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = refused;
		return -1;
	}
	return __real_open64(path, flags, mode);
}

static bool
io_fails(size_t *count, ssize_t *ret)
{
	errno = io.error ? io.error : EINTR;
	*ret = io.error ? -1 : 0;
	if (io.in_vain && io.in_vain--)
		return true;
	if (io.most && *count > io.most)
		*count = io.most;
	return false;
}

ssize_t
__wrap_pwrite64(int fd, const void *bytes, size_t count, off_t at)
{
	ssize_t failed;

	return io_fails(&count, &failed) ? failed : __real_pwrite64(fd, bytes, count, at);
}

ssize_t
__wrap_pread64(int fd, void *bytes, size_t count, off_t at)
{
	ssize_t failed;

	return io_fails(&count, &failed) ? failed : __real_pread64(fd, bytes, count, at);
}

/* A stage, as a spool needs one. */
struct test_stage {
	struct mql_run run;
	struct mql_stage stage;
	struct mql_stage_run r;
	struct err err;
	char directory[32];
};

static void
test_stage_init(struct test_stage *t, bool disk)
{
	*t = (struct test_stage){ .stage = { .name = STR("$sort") },
				  .directory = "/tmp/frond-spool-XXXXXX" };
	assert_non_null(mkdtemp(t->directory));
	t->run = (struct mql_run){
		.q = { .arena = arena_new(CASE_BYTES), .err = &t->err },
		.options = { .disk = disk, .directory = t->directory, .stage_bytes = SMALL_BYTES },
	};
	t->r = (struct mql_stage_run){
		.stage = &t->stage,
		.run = &t->run,
		.scratch = arena_new(CASE_BYTES),
	};
}

/* Nothing is left in the folder, even if the file is still open. */
static void
test_stage_fini(struct test_stage *t)
{
	assert_int_equal(rmdir(t->directory), 0);
	arena_free(t->run.q.arena);
	arena_free(t->r.scratch);
}

/* {"_id": n, "pad": a text whose length depends on n} */
static struct str
test_document(struct buf *out, int n)
{
	static char pad[PAD_BYTES];
	struct bson_builder b;

	buf_clear(out);
	bson_builder_init(&b, out);
	bson_begin(&b);
	bson_put_int32(&b, STR("_id"), n);
	bson_put_string(&b, STR("pad"), str_of(pad, (size_t)n * 7919 % PAD_BYTES));
	bson_end(&b);
	return buf_str(out);
}

/* Puts those from `from` on; `ends` has where each of them ends. */
static enum status
put_documents(struct mql_spool *s, struct test_stage *t, int from, int to, uint64_t *ends)
{
	struct buf doc = BUF_INIT(CASE_BYTES);
	enum status status = STATUS_OK;

	for (int i = from; i < to && status == STATUS_OK; i++) {
		status = mql_spool_put(s, &t->r, test_document(&doc, i));
		ends[i] = mql_spool_end(s);
	}
	buf_release(&doc);
	return status;
}

static void
assert_reads(struct mql_spool *s, struct test_stage *t, int from, int to, const uint64_t *ends)
{
	struct buf doc = BUF_INIT(CASE_BYTES);
	struct mql_spool_reader reader;
	struct str got;

	mql_spool_read(&reader, s, &t->r, from ? ends[from - 1] : 0, to ? ends[to - 1] : 0);
	for (int i = from; i < to; i++) {
		assert_int_equal(mql_spool_next(&reader, &t->r, &got), STATUS_OK);
		assert_true(str_eq(got, test_document(&doc, i)));
	}
	assert_int_equal(mql_spool_next(&reader, &t->r, &got), STATUS_NOT_FOUND);
	mql_spool_reader_fini(&reader);
	buf_release(&doc);
}

static void
documents_come_back_from_a_file_and_from_memory(void **state)
{
	static const int parts[][2] = { { 0, DOCUMENTS },
					{ 0, 0 },
					{ 0, 1 },
					{ 700, 900 },
					{ 1000, 1300 },
					{ 2000, DOCUMENTS },
					{ DOCUMENTS - 1, DOCUMENTS } };
	static uint64_t ends[DOCUMENTS];
	struct test_stage t;
	struct mql_spool s;

	(void)state;
	test_stage_init(&t, true);
	mql_spool_init(&s, &t.r);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(put_documents(&s, &t, 0, DOCUMENTS, ends), STATUS_OK);
		assert_true(s.file_bytes >= 2 * MQL_SPILL_BYTES && s.tail.len);
		for (size_t i = 0; i < CASES(parts); i++)
			assert_reads(&s, &t, parts[i][0], parts[i][1], ends);
		mql_spool_clear(&s);
		assert_int_equal(mql_spool_end(&s), 0);
	}
	/* What is put later, behind what has been read. */
	assert_int_equal(put_documents(&s, &t, 0, 1, ends), STATUS_OK);
	assert_reads(&s, &t, 0, 1, ends);
	assert_int_equal(put_documents(&s, &t, 1, DOCUMENTS, ends), STATUS_OK);
	assert_reads(&s, &t, 0, DOCUMENTS, ends);
	mql_spool_fini(&s);
	test_stage_fini(&t);
}

static void
a_file_is_without_a_name_on_any_filesystem(void **state)
{
	static const int errors[] = { 0, EOPNOTSUPP, EISDIR };
	static uint64_t ends[DOCUMENTS];

	(void)state;
	for (size_t i = 0; i < CASES(errors); i++) {
		struct test_stage t;
		struct mql_spool s;
		struct stat st;

		test_stage_init(&t, true);
		mql_spool_init(&s, &t.r);
		refused = errors[i];
		assert_int_equal(put_documents(&s, &t, 0, DOCUMENTS, ends), STATUS_OK);
		refused = 0;
		assert_int_equal(fstat(s.fd, &st), 0);
		assert_int_equal(st.st_nlink, 0);
		assert_int_equal(st.st_mode & 0777, 0600);
		assert_int_equal(st.st_size, s.file_bytes);
		assert_reads(&s, &t, 0, DOCUMENTS, ends);
		test_stage_fini(&t);
		mql_spool_fini(&s);
	}
}

static void
a_file_that_is_refused_fails_the_stage(void **state)
{
	static uint64_t ends[DOCUMENTS];
	struct test_stage t;
	struct mql_spool s;

	(void)state;
	test_stage_init(&t, true);
	mql_spool_init(&s, &t.r);
	refused = EACCES;
	assert_int_equal(put_documents(&s, &t, 0, DOCUMENTS, ends), STATUS_IO);
	assert_non_null(strstr(t.err.text, strerror(EACCES)));
	assert_int_equal(s.fd, -1);
	refused = ENOSPC;
	assert_int_equal(put_documents(&s, &t, 0, DOCUMENTS, ends), STATUS_FULL);
	refused = 0;
	mql_spool_fini(&s);
	test_stage_fini(&t);
}

static void
interrupted_and_short_reads_and_writes_go_on(void **state)
{
	static uint64_t ends[DOCUMENTS];
	struct test_stage t;
	struct mql_spool s;

	(void)state;
	test_stage_init(&t, true);
	mql_spool_init(&s, &t.r);
	io.most = MQL_SPILL_BYTES / 100;
	io.error = EINTR;
	io.in_vain = 3;
	assert_int_equal(put_documents(&s, &t, 0, DOCUMENTS, ends), STATUS_OK);
	assert_int_equal(io.in_vain, 0);
	io.in_vain = 3;
	assert_reads(&s, &t, 0, DOCUMENTS, ends);
	assert_int_equal(io.in_vain, 0);
	io.most = 0;
	mql_spool_fini(&s);
	test_stage_fini(&t);
}

/* The status of all documents from the beginning to `end`, one after the other. */
static enum status
read_status(struct test_stage *t, struct mql_spool *s, uint64_t end)
{
	struct mql_spool_reader reader;
	enum status status;
	struct str got;

	t->err = (struct err){ 0 };
	mql_spool_read(&reader, s, &t->r, 0, end);
	do
		status = mql_spool_next(&reader, &t->r, &got);
	while (status == STATUS_OK);
	mql_spool_reader_fini(&reader);
	return status;
}

static void
failing_reads_and_writes_fail_the_stage(void **state)
{
	static const struct {
		int error;
		enum status status;
		int told;
	} cases[] = {
		{ ENOSPC, STATUS_FULL, ENOSPC },
		{ EIO, STATUS_IO, EIO },
		{ 0, STATUS_IO, EIO },
	};
	static uint64_t ends[DOCUMENTS];

	(void)state;
	for (size_t i = 0; i < CASES(cases); i++) {
		struct test_stage t;
		struct mql_spool s;

		test_stage_init(&t, true);
		mql_spool_init(&s, &t.r);
		io.error = cases[i].error;
		io.in_vain = 1;
		assert_int_equal(put_documents(&s, &t, 0, DOCUMENTS, ends), cases[i].status);
		assert_int_equal(io.in_vain, 0);
		assert_non_null(strstr(t.err.text, strerror(cases[i].told)));
		mql_spool_clear(&s);
		assert_int_equal(put_documents(&s, &t, 0, DOCUMENTS, ends), STATUS_OK);
		io.in_vain = 1;
		assert_int_equal(read_status(&t, &s, ends[9]), cases[i].status);
		assert_int_equal(io.in_vain, 0);
		assert_non_null(strstr(t.err.text, strerror(cases[i].told)));
		assert_int_equal(read_status(&t, &s, ends[9]), STATUS_NOT_FOUND);
		mql_spool_fini(&s);
		test_stage_fini(&t);
	}
}

/* A program whose standard input is closed gets its descriptor for the next file. */
static void
a_file_may_be_descriptor_zero(void **state)
{
	static const int errors[] = { 0, EOPNOTSUPP };
	static uint64_t ends[DOCUMENTS];
	int input = dup(STDIN_FILENO);

	(void)state;
	for (size_t i = 0; i < CASES(errors); i++) {
		struct test_stage t;
		struct mql_spool s;

		test_stage_init(&t, true);
		mql_spool_init(&s, &t.r);
		close(STDIN_FILENO);
		/* What a call that succeeds leaves in errno decides nothing. */
		errno = EOPNOTSUPP;
		refused = errors[i];
		assert_int_equal(put_documents(&s, &t, 0, DOCUMENTS, ends), STATUS_OK);
		refused = 0;
		assert_int_equal(s.fd, 0);
		assert_reads(&s, &t, 0, DOCUMENTS, ends);
		test_stage_fini(&t);
		mql_spool_fini(&s);
		assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
	}
	if (input >= 0) {
		dup2(input, STDIN_FILENO);
		close(input);
	}
}

/* Empty documents, one that is longer than what is read at once, and one that fills the memory. */
static void
documents_of_all_lengths_come_back(void **state)
{
	static const size_t lengths[] = { BSON_EMPTY_BYTES, MQL_SPILL_BYTES / 4, BSON_EMPTY_BYTES,
					  0, BSON_EMPTY_BYTES };
	struct buf bytes = BUF_INIT(2 * MQL_SPILL_BYTES);
	struct mql_spool_reader reader;
	struct test_stage t;
	struct mql_spool s;
	struct str got;

	(void)state;
	test_stage_init(&t, true);
	mql_spool_init(&s, &t.r);
	assert_true(buf_reserve(&bytes, MQL_SPILL_BYTES));
	memset(bytes.ptr, 0, MQL_SPILL_BYTES);
	for (size_t i = 0; i < CASES(lengths); i++) {
		size_t len = lengths[i] ? lengths[i] : MQL_SPILL_BYTES - mql_spool_end(&s);
		uint32_t written = htole32((uint32_t)len);

		memcpy(bytes.ptr, &written, sizeof(written));
		assert_int_equal(mql_spool_put(&s, &t.r, str_of(bytes.ptr, len)), STATUS_OK);
		if (!lengths[i])
			assert_int_equal(s.file_bytes, MQL_SPILL_BYTES);
	}
	for (size_t n = 1; n <= CASES(lengths); n++) {
		uint64_t end = 0;

		for (size_t i = 0; i < n; i++)
			end += i == 3 ? MQL_SPILL_BYTES - end : lengths[i];
		mql_spool_read(&reader, &s, &t.r, 0, end);
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(mql_spool_next(&reader, &t.r, &got), STATUS_OK);
			assert_true(!lengths[i] || got.len == lengths[i]);
		}
		assert_int_equal(mql_spool_next(&reader, &t.r, &got), STATUS_NOT_FOUND);
		mql_spool_reader_fini(&reader);
	}
	buf_release(&bytes);
	mql_spool_fini(&s);
	test_stage_fini(&t);
}

static void
a_file_with_other_bytes_is_refused(void **state)
{
	static uint64_t ends[DOCUMENTS];
	/* Lengths of the second document, of which the last one ends 3 bytes before the part. */
	const int32_t lengths[] = { 0, -1, BSON_EMPTY_BYTES - 1, INT32_MAX, 0, 0 };
	struct test_stage t;
	struct mql_spool s;

	(void)state;
	test_stage_init(&t, true);
	mql_spool_init(&s, &t.r);
	assert_int_equal(put_documents(&s, &t, 0, DOCUMENTS, ends), STATUS_OK);
	assert_int_equal(read_status(&t, &s, ends[3]), STATUS_NOT_FOUND);
	for (size_t i = 0; i < CASES(lengths); i++) {
		int32_t length = lengths[i];

		if (i >= 4)
			length = (int32_t)(ends[3] - ends[0]) + (i == 4 ? 1 : -3);
		assert_int_equal(pwrite(s.fd, &length, sizeof(length), (off_t)ends[0]),
				 sizeof(length));
		assert_int_equal(read_status(&t, &s, ends[3]), STATUS_IO);
		assert_non_null(strstr(t.err.text, "has other bytes than were written to it"));
	}
	assert_int_equal(ftruncate(s.fd, (off_t)ends[0] + 2), 0);
	assert_int_equal(read_status(&t, &s, ends[3]), STATUS_IO);
	assert_non_null(strstr(t.err.text, strerror(EIO)));
	mql_spool_fini(&s);
	test_stage_fini(&t);
}

static void
without_files_it_keeps_what_a_stage_may(void **state)
{
	static const size_t limits[] = { SMALL_BYTES, 2 * MQL_SPILL_BYTES };
	static uint64_t ends[DOCUMENTS];

	(void)state;
	for (size_t i = 0; i < CASES(limits); i++) {
		struct test_stage t;
		struct mql_spool s;

		test_stage_init(&t, false);
		t.run.options.stage_bytes = limits[i];
		mql_spool_init(&s, &t.r);
		assert_int_equal(put_documents(&s, &t, 0, DOCUMENTS, ends), STATUS_INVALID);
		assert_int_equal(t.run.q.code, MQL_NO_DISK_USE);
		assert_int_equal(s.fd, -1);
		assert_true(mql_spool_end(&s) > limits[i] - PAD_BYTES - 100);
		mql_spool_fini(&s);
		test_stage_fini(&t);
	}
}

/* Neither is a reason to ask for files. */
static void
short_memory_and_endless_documents_are_told_as_such(void **state)
{
	static uint64_t ends[1];
	const size_t endless = MQL_SPILL_BYTES + BSON_MOST_BYTES + 1;
	char *bytes = calloc(1, endless);

	(void)state;
	for (int disk = 0; disk < 2; disk++) {
		struct test_stage t;
		struct mql_spool s;

		test_stage_init(&t, disk);
		mql_spool_init(&s, &t.r);
		(void)mem_fail_after(2); /* the first one is the test's own document */
		assert_int_equal(put_documents(&s, &t, 0, 1, ends), STATUS_NOMEM);
		(void)mem_fail_after(0);
		assert_int_equal(t.run.q.code, 0);
		mql_spool_fini(&s);
		mql_spool_init(&s, &t.r);
		assert_int_equal(mql_spool_put(&s, &t.r, str_of(bytes, endless)),
				 disk ? STATUS_LIMIT : STATUS_INVALID);
		assert_int_equal(t.run.q.code, disk ? 0 : MQL_NO_DISK_USE);
		mql_spool_fini(&s);
		test_stage_fini(&t);
	}
	free(bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(documents_come_back_from_a_file_and_from_memory),
		cmocka_unit_test(a_file_is_without_a_name_on_any_filesystem),
		cmocka_unit_test(a_file_that_is_refused_fails_the_stage),
		cmocka_unit_test(a_file_may_be_descriptor_zero),
		cmocka_unit_test(interrupted_and_short_reads_and_writes_go_on),
		cmocka_unit_test(failing_reads_and_writes_fail_the_stage),
		cmocka_unit_test(documents_of_all_lengths_come_back),
		cmocka_unit_test(a_file_with_other_bytes_is_refused),
		cmocka_unit_test(without_files_it_keeps_what_a_stage_may),
		cmocka_unit_test(short_memory_and_endless_documents_are_told_as_such),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
