#include "kv/embedded/fill.h"

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kv/embedded/directory.h"

enum {
	PAGES = (FILL_BYTES + FILL_BATCH_BYTES) / FILL_PAGE_BYTES + 4, /* at a time */
};

void
fill_init(struct fill *f)
{
	fill_reset(f);
	fill_make(f->page);
}

void
fill_reset(struct fill *f)
{
	f->number = f->at = f->end = f->entries = 0;
}

/* Where a record of so many bytes ends that begins there, with the headers of all its parts. */
static uint64_t
behind_record(uint64_t at, uint64_t bytes)
{
	do {
		uint64_t left = LOG_BLOCK_BYTES - at % LOG_BLOCK_BYTES;
		uint64_t part;

		if (left < LOG_HEADER_BYTES) {
			at += left;
			left = LOG_BLOCK_BYTES;
		}
		part = left - LOG_HEADER_BYTES < bytes ? left - LOG_HEADER_BYTES : bytes;
		at += LOG_HEADER_BYTES + part;
		bytes -= part;
	} while (bytes);
	return at;
}

bool
fill_is_short(struct fill *f, size_t batch_bytes)
{
	uint64_t next = behind_record(f->at, batch_bytes);

	if (next > f->end && batch_bytes <= FILL_BATCH_BYTES)
		return true;
	f->at = next;
	return false;
}

/* Appends filling from the file's end on, up to `end`. */
static bool
fill_write(const struct fill *f, int fd, uint64_t from, uint64_t end)
{
	struct iovec parts[PAGES];
	uint64_t bytes = end - from;
	int count = 0;

	while (from < end && count < PAGES) {
		uint64_t skip = from % FILL_PAGE_BYTES;
		uint64_t n = FILL_PAGE_BYTES - skip;

		parts[count++] = (struct iovec){ (void *)(uintptr_t)(f->page + skip), n };
		from += n;
	}
	return from == end && writev(fd, parts, count) == (ssize_t)bytes;
}

/* Fills the log that is open, and counts the batch as written. */
static bool
fill_append_to(struct fill *f, int fd, size_t batch_bytes)
{
	struct stat st;
	uint64_t size, from;

	if (fstat(fd, &st) != 0)
		return false;
	size = (uint64_t)st.st_size;
	/* It is closed, and cut: another log has taken its place. */
	if (size < f->end)
		return false;
	/* The log is new, or a large batch has made it longer. */
	if (size > f->end)
		f->at = size;
	f->at = behind_record(f->at, batch_bytes);
	from = f->at > size ? f->at : size;
	f->end = (from + FILL_BYTES) / FILL_PAGE_BYTES * FILL_PAGE_BYTES;
	return fill_write(f, fd, size, f->end);
}

void
fill_append(struct fill *f, const char *path, uint64_t entries, size_t batch_bytes)
{
	bool done;
	int fd;

	if (entries < f->entries)
		fill_reset(f);
	f->entries = entries;
	fd = emb_logs_open_to_append(path, &f->number);
	done = fd >= 0 && fill_append_to(f, fd, batch_bytes);
	if (fd >= 0)
		close(fd);
	if (done)
		return;
	fill_reset(f);
	f->end = FILL_RETRY_BYTES;
}
