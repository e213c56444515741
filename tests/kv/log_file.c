#include "log_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/big_endian.h"
#include "kv/embedded/kept.h"
#include "kv/embedded/log_record.h"

void
log_file_init(struct log_file *f)
{
	*f = (struct log_file){ .bytes = BUF_INIT(LOG_FILE_MOST_BYTES) };
	crc_make_table(f->crc_table);
}

void
log_file_fini(struct log_file *f)
{
	buf_release(&f->bytes);
}

static void
put_little(uint8_t *to, uint64_t n, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(n >> 8 * i);
}

void
log_file_mend(struct log_file *f, size_t at)
{
	uint8_t *header = (uint8_t *)f->bytes.ptr + at;
	uint32_t crc = crc_add(f->crc_table, crc_begin, header[LOG_RECORD_TYPE]);

	for (size_t i = 0; i < log_record_length(header); i++)
		crc = crc_add(f->crc_table, crc, header[LOG_HEADER_BYTES + i]);
	put_little(header, crc_finish(crc), sizeof(crc));
}

void
log_file_add_record(struct log_file *f, uint8_t type, struct str payload)
{
	uint8_t header[LOG_HEADER_BYTES] = { 0 };
	size_t at = f->bytes.len;

	put_little(header + LOG_RECORD_LENGTH, payload.len, 2);
	header[LOG_RECORD_TYPE] = type;
	buf_append(&f->bytes, header, sizeof(header));
	buf_append_str(&f->bytes, payload);
	assert_int_equal(buf_status(&f->bytes), STATUS_OK);
	log_file_mend(f, at);
}

void
log_file_add(struct log_file *f, uint8_t byte, size_t count)
{
	while (count--)
		buf_append_byte(&f->bytes, (char)byte);
}

/* What is left of the block; less than a header is filled with zeros. */
static size_t
room_in_block(struct log_file *f)
{
	size_t left = LOG_BLOCK_BYTES - f->bytes.len % LOG_BLOCK_BYTES;

	if (left >= LOG_HEADER_BYTES)
		return left - LOG_HEADER_BYTES;
	log_file_add(f, 0, left);
	return LOG_BLOCK_BYTES - LOG_HEADER_BYTES;
}

void
log_file_add_batch(struct log_file *f, struct str payload)
{
	bool first = true, last;

	assert_true(f->count < LOG_FILE_BATCHES);
	do {
		size_t room = room_in_block(f);
		size_t n = payload.len < room ? payload.len : room;
		uint8_t type = LOG_FILE_MIDDLE;

		last = n == payload.len;
		if (first)
			f->batches[f->count].begin = f->bytes.len;
		if (first)
			type = last ? LOG_RECORD_FULL : LOG_RECORD_FIRST;
		else if (last)
			type = LOG_RECORD_LAST;
		log_file_add_record(f, type, str_of(payload.ptr, n));
		payload = str_skip(payload, n);
		first = false;
	} while (!last);
	f->batches[f->count++].end = f->bytes.len;
}

void
log_file_write(const struct log_file *f, int dir, const char *name, size_t len)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_true(len <= f->bytes.len);
	assert_int_equal(write(fd, f->bytes.ptr, len), len);
	close(fd);
}

/* ---- What batches consist of ---- */

void
log_batch_begin(struct buf *b, uint64_t sequence, uint32_t count)
{
	uint8_t header[12];

	put_little(header, sequence, 8);
	put_little(header + 8, count, 4);
	buf_append(b, header, sizeof(header));
}

static void
put_bytes(struct buf *b, struct str s)
{
	size_t n = s.len;

	for (; n > 0x7f; n >>= 7)
		buf_append_byte(b, (char)(n | 0x80));
	buf_append_byte(b, (char)n);
	buf_append_str(b, s);
}

void
log_batch_entry(struct buf *b, uint8_t type, struct str key, struct str value)
{
	buf_append_byte(b, (char)type);
	put_bytes(b, key);
	if (value.ptr)
		put_bytes(b, value);
}

void
log_batch_link(struct buf *b, uint64_t before, uint64_t time_ms, const char history[8])
{
	uint8_t value[24];

	big_endian_put_64(value, before);
	big_endian_put_64(value + 8, time_ms);
	memcpy(value + 16, history, 8);
	log_batch_entry(b, 1, STR("\xff/link"), str_of((const char *)value, sizeof(value)));
}

void
log_batch_version_end(struct buf *b, uint64_t version)
{
	uint8_t value[8];

	big_endian_put_64(value, version);
	log_batch_entry(b, 1, STR("\xff/version"), str_of((const char *)value, sizeof(value)));
}

/* ---- A directory of logs ---- */

int
log_dir_setup(void **state)
{
	struct log_dir *d = calloc(1, sizeof(*d));

	assert_non_null(d);
	fixture_make_dir(&d->dir);
	snprintf(d->archive, sizeof(d->archive), "%s/" KEPT_ARCHIVE, d->dir.dir);
	assert_int_equal(mkdir(d->archive, 0700), 0);
	d->fd = open(d->dir.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(d->fd >= 0);
	log_file_init(&d->file);
	*state = d;
	return 0;
}

int
log_dir_teardown(void **state)
{
	struct log_dir *d = *state;
	struct fixture archive = { 0 };

	snprintf(archive.dir, sizeof(archive.dir), "%.250s", d->archive);
	fixture_remove_dir(&archive);
	log_file_fini(&d->file);
	close(d->fd);
	fixture_remove_dir(&d->dir);
	free(d);
	return 0;
}

void
log_dir_anew(struct log_dir *d)
{
	log_file_fini(&d->file);
	log_file_init(&d->file);
}

void
log_dir_add_version(struct log_dir *d, uint64_t version, size_t value_bytes)
{
	AUTO(buf_release) struct buf b = BUF_INIT(LOG_FILE_MOST_BYTES);
	AUTO(buf_release) struct buf value = BUF_INIT(LOG_FILE_MOST_BYTES);

	buf_append_byte(&value, 'v');
	for (size_t n = 1; n < value_bytes; n++)
		buf_append_byte(&value, (uint8_t)('A' + (n + version) % 26));
	log_batch_begin(&b, 3 * version, 3);
	log_batch_entry(&b, 1, STR("key"), buf_str(&value));
	log_batch_link(&b, version - 1, 1000 * version, "history");
	log_batch_version_end(&b, version);
	log_file_add_batch(&d->file, buf_str(&b));
}

void
log_dir_write(struct log_dir *d, const char *name, size_t len)
{
	log_file_write(&d->file, d->fd, name, len);
}
