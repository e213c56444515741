#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FLUSH_BYTES = 256 * 1024,
	BUFFER_BYTES = 64 * 1024 * 1024, /* the longest piece */
};

enum status
output_open(struct output *out, const char *path, struct err *err)
{
	*out = (struct output){ .fd = STDOUT_FILENO, .buf = BUF_INIT(BUFFER_BYTES) };
	if (!path || strcmp(path, "-") == 0)
		return STATUS_OK;
	out->path = path;
	out->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out->fd < 0)
		return err_set(err, STATUS_IO, "cannot create %s: %s", path, strerror(errno));
	return STATUS_OK;
}

struct buf *
output_buf(struct output *out)
{
	return &out->buf;
}

static enum status
output_fail(struct output *out, struct err *err)
{
	if (errno == EPIPE && !out->path) {
		out->reader_left = true;
		return STATUS_CANCELLED;
	}
	return err_set(err, STATUS_IO, "cannot write to %s: %s",
		       out->path ? out->path : "standard output", strerror(errno));
}

static enum status
output_write(struct output *out, struct err *err)
{
	size_t done = 0;

	if (buf_status(&out->buf) != STATUS_OK)
		return err_set(err, buf_status(&out->buf), "out of memory for one document");
	while (done < out->buf.len) {
		ssize_t n = write(out->fd, out->buf.ptr + done, out->buf.len - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			return output_fail(out, err);
	}
	out->flushed += out->buf.len;
	buf_clear(&out->buf);
	return STATUS_OK;
}

uint64_t
output_position(const struct output *out)
{
	return out->flushed + out->buf.len;
}

enum status
output_ready(struct output *out, struct err *err)
{
	if (out->buf.len < FLUSH_BYTES && buf_status(&out->buf) == STATUS_OK)
		return STATUS_OK;
	return output_write(out, err);
}

enum status
output_close(struct output *out, struct err *err)
{
	enum status status = output_write(out, err);
	struct stat st;

	if (status == STATUS_OK && fstat(out->fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    fsync(out->fd) != 0)
		status = output_fail(out, err);
	buf_release(&out->buf);
	if (out->path && close(out->fd) != 0 && status == STATUS_OK)
		status = output_fail(out, err);
	return status;
}

void
output_abandon(struct output *out)
{
	buf_release(&out->buf);
	if (out->path && out->fd >= 0)
		close(out->fd);
}
