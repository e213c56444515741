/*
 * The blocks of a table that are whole, found by going through the file: the index is not needed,
 * nor the footer, nor the filter. A table has its blocks with data in front, in the order of keys,
 * then those of filters and of the index, a block with deletions of ranges, and its properties,
 * which say how many entries there were.
 *
 * Behind bytes that are no block the next one is looked for at each byte. A value may have the
 * bytes of a block in it, which somebody has put there; so a block with data counts only if its
 * keys lie behind those of the block before.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "kv/embedded/raw.h"

enum {
	PAGE_BYTES = 4096, /* what a disk that fails is asked for at a time */
};

/* ---- Files ---- */

enum status
raw_size(int dir, const char *name, uint64_t *ret, struct err *err)
{
	struct stat st;

	if (fstatat(dir, name, &st, 0) != 0)
		return err_set(err, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO, "%s: %s", name,
			       strerror(errno));
	*ret = (uint64_t)st.st_size;
	return STATUS_OK;
}

/* Reads what the disk gives, page by page where it gives not all. */
static void
read_pages(int fd, uint64_t at, uint8_t *to, size_t len)
{
	for (size_t done = 0; done < len;) {
		size_t page = len - done < PAGE_BYTES ? len - done : PAGE_BYTES;
		ssize_t n = pread(fd, to + done, page, (off_t)(at + done));

		if (n < (ssize_t)page)
			memset(to + done + (n > 0 ? n : 0), 0, page - (size_t)(n > 0 ? n : 0));
		done += page;
	}
}

enum status
raw_read(int dir, const char *name, uint64_t at, uint8_t *to, size_t *len, struct err *err)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	size_t done = 0, size;
	struct stat st;
	ssize_t n = 1;

	if (fd < 0 || fstat(fd, &st) != 0) {
		enum status status = err_set(err, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO,
					     "%s: %s", name, strerror(errno));
		if (fd >= 0)
			close(fd);
		return status;
	}
	size = (size_t)st.st_size;
	at = at < size ? at : size;
	*len = *len < size - at ? *len : size - at;
	while (done < *len && n > 0) {
		n = pread(fd, to + done, *len - done, (off_t)(at + done));
		if (n > 0)
			done += (size_t)n;
	}
	if (done < *len)
		read_pages(fd, at + done, to + done, *len - done);
	close(fd);
	return STATUS_OK;
}

/* ---- What a block is ---- */

enum block_kind {
	BLOCK_DATA,
	BLOCK_RANGES,     /* deletions of ranges */
	BLOCK_PROPERTIES, /* what the table says of itself */
	BLOCK_OTHER,      /* of the index, of filters; or with entries that are in no order */
};

struct survey {
	struct raw_table *table;
	struct arena *arena;
	struct raw_finder finder;
	struct buf last;  /* the last key that was read */
	struct buf first; /* the first key of the block */
	struct buf newer; /* the last key of the block */
	uint64_t at;
};

static void
table_tell(struct raw_table *t, struct str key, struct str value)
{
	uint64_t number;

	if (!str_starts_with(key, STR("rocksdb.")) || !raw_varint(&value, &number) || value.len)
		return;
	if (str_eq(key, STR("rocksdb.num.entries")))
		t->told_entries = number;
	else if (str_eq(key, STR("rocksdb.num.range-deletions")))
		t->told_ranges = number;
	else if (str_eq(key, STR("rocksdb.data.size"))) {
		t->told_bytes = number;
		t->told = true;
	}
}

static enum status
survey_add_range(struct survey *s, const struct raw_entry *entry)
{
	struct raw_table *t = s->table;
	struct raw_entry *all = arena_grow(s->arena, t->ranges, t->range_count, &t->range_cap,
					   sizeof(*all));

	if (!all)
		return STATUS_NOMEM;
	t->ranges = all;
	all[t->range_count] = *entry;
	all[t->range_count].key = arena_dup(s->arena, entry->key);
	all[t->range_count].value = arena_dup(s->arena, entry->value);
	if (!all[t->range_count].key.ptr || !all[t->range_count].value.ptr)
		return STATUS_NOMEM;
	t->range_count++;
	t->entries++;
	return STATUS_OK;
}

/* Looks at all that the block has. `*ret_count`: entries. */
static enum status
survey_judge(struct survey *s, enum block_kind *ret, uint64_t *ret_count)
{
	struct str key, value;
	struct raw_entry entry;
	bool ranges = false;

	*ret = BLOCK_OTHER;
	*ret_count = 0;
	buf_clear(&s->newer);
	buf_append_buf(&s->newer, &s->last);
	while (raw_block_next(&s->finder.walk, &key, &value)) {
		if (!raw_entry_parse(key, value, &entry)) {
			table_tell(s->table, key, value);
			*ret = s->table->told ? BLOCK_PROPERTIES : BLOCK_OTHER;
			if (*ret == BLOCK_OTHER && !str_starts_with(key, STR("rocksdb.")))
				return STATUS_OK;
			continue;
		}
		if (!*ret_count)
			ranges = entry.type == RAW_DELETE_RANGE;
		if (ranges != (entry.type == RAW_DELETE_RANGE) || *ret == BLOCK_PROPERTIES)
			return STATUS_OK;
		++*ret_count;
		if (ranges)
			continue;
		/* The same key may be there several times, the newest first. */
		if (str_cmp(entry.key, buf_str(&s->newer)) < 0)
			return STATUS_OK;
		if (*ret_count == 1)
			buf_set(&s->first, entry.key);
		buf_set(&s->newer, entry.key);
	}
	TRY(buf_status(&s->newer));
	TRY(buf_status(&s->first));
	if (*ret_count)
		*ret = ranges ? BLOCK_RANGES : BLOCK_DATA;
	return STATUS_OK;
}

/* ---- Going through the file ---- */

/* What lies between the last block and this place was no block. `after`: the key behind it. */
static enum status
survey_add_gap(struct survey *s, uint64_t begin, uint64_t end, struct str after)
{
	struct raw_table *t = s->table;
	struct raw_gap *all;

	if (begin == end)
		return STATUS_OK;
	all = arena_grow(s->arena, t->gaps, t->gap_count, &t->gap_cap, sizeof(*all));
	if (!all)
		return STATUS_NOMEM;
	t->gaps = all;
	all[t->gap_count] = (struct raw_gap){
		.begin = begin,
		.end = end,
		.before = buf_dup(&s->last, s->arena),
	};
	if (after.ptr)
		all[t->gap_count].after = arena_dup(s->arena, after);
	if (!all[t->gap_count].before.ptr || (after.ptr && !all[t->gap_count].after.ptr))
		return STATUS_NOMEM;
	t->gap_count++;
	return STATUS_OK;
}

static enum status
survey_add_data(struct survey *s, uint32_t bytes, uint64_t count, uint64_t gap_begin)
{
	struct raw_table *t = s->table;
	struct raw_block *all;

	TRY(survey_add_gap(s, gap_begin, s->at, buf_str(&s->first)));
	all = arena_grow(s->arena, t->blocks, t->block_count, &t->block_cap, sizeof(*all));
	if (!all)
		return STATUS_NOMEM;
	t->blocks = all;
	all[t->block_count++] = (struct raw_block){ .at = s->at, .bytes = bytes };
	t->entries += count;
	buf_set_buf(&s->last, &s->newer);
	return buf_status(&s->last);
}

static enum status
survey_add_ranges(struct survey *s, struct str from)
{
	struct str key, value;
	struct raw_entry entry;
	uint32_t bytes;

	if (!raw_block_find(&s->finder, from, &bytes))
		return STATUS_OK;
	while (raw_block_next(&s->finder.walk, &key, &value))
		if (raw_entry_parse(key, value, &entry))
			TRY(survey_add_range(s, &entry));
	return STATUS_OK;
}

static enum status
survey_walk(struct survey *s, struct str file)
{
	uint64_t gap_begin = 0; /* where the last block with data has ended */

	while (s->at < file.len) {
		struct str from = str_skip(file, (size_t)s->at);
		enum block_kind kind;
		uint64_t count;
		uint32_t bytes;

		if (!raw_block_find(&s->finder, from, &bytes)) {
			s->at++;
			continue;
		}
		TRY(survey_judge(s, &kind, &count));
		if (kind == BLOCK_DATA) {
			TRY(survey_add_data(s, bytes, count, gap_begin));
			gap_begin = s->at + bytes + RAW_TRAILER_BYTES;
		} else if (kind == BLOCK_RANGES) {
			TRY(survey_add_ranges(s, from));
		}
		s->at += bytes + RAW_TRAILER_BYTES;
	}
	/* Behind the data there is much that is none. */
	if (s->table->told && s->table->told_bytes >= gap_begin)
		return survey_add_gap(s, gap_begin, s->table->told_bytes, (struct str){ NULL, 0 });
	if (!s->table->told)
		return survey_add_gap(s, gap_begin, file.len, (struct str){ NULL, 0 });
	return STATUS_OK;
}

static enum status
survey_file(struct survey *s, int dir, uint8_t *bytes, size_t len, struct err *err)
{
	TRY(raw_read(dir, s->table->name, 0, bytes, &len, err));
	TRY(raw_finder_init(&s->finder));
	return survey_walk(s, str_of(bytes, len));
}

enum status
raw_table_survey(int dir, const char *name, struct arena *arena, struct raw_table *ret,
		 struct err *err)
{
	struct survey s = { .table = ret,
			    .arena = arena,
			    .last = BUF_INIT(RAW_BLOCK_BYTES),
			    .first = BUF_INIT(RAW_BLOCK_BYTES),
			    .newer = BUF_INIT(RAW_BLOCK_BYTES) };
	enum status status;
	uint64_t size;
	uint8_t *bytes;

	*ret = (struct raw_table){ .name = name };
	TRY(raw_size(dir, name, &size, err));
	if (size > RAW_TABLE_BYTES)
		return err_set(err, STATUS_CORRUPT, "%s has more than %d bytes", name,
			       RAW_TABLE_BYTES);
	bytes = mem_alloc((size_t)size + 1);
	status = bytes ? survey_file(&s, dir, bytes, (size_t)size, err) : STATUS_NOMEM;
	raw_finder_fini(&s.finder);
	buf_release(&s.last);
	buf_release(&s.first);
	buf_release(&s.newer);
	mem_free(bytes);
	return status;
}
