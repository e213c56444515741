/*
 * GET /_utils/…: the files of a directory, for Fauxton, CouchDB's pages for a browser. An operator
 * installs them; without the directory, a page tells how.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "door/couch/admin/endpoints.h"
#include "door/couch/wire/error.h"
#include "door/couch/wire/reply.h"
#include "door/couch/wire/request.h"
#include "loop/wait.h"

enum {
	UTILS_FILE_BYTES = 16 * 1024 * 1024,
	UTILS_TAG_BYTES = 64,
};

/* The policy that CouchDB sends: nothing from other origins, and no inline scripts. */
#define UTILS_POLICY                                                                               \
	"child-src 'self' data: blob:; default-src 'self'; img-src 'self' data:; font-src "        \
	"'self'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline';"

static const char absent[] =
	"<!doctype html>\n"
	"<title>frond</title>\n"
	"<h1>Fauxton is not installed</h1>\n"
	"<p>The server runs without it. In frond's sources, <code>make fauxton</code> fetches it;\n"
	"<code>make run</code> and <code>make install</code> take it along. Or name a directory\n"
	"that holds a built Fauxton: <code>frond serve --utils DIR</code>.</p>\n";

struct file {
	const char *dir;
	const struct str *parts; /* of the path below it */
	size_t parts_count;
	struct buf *ret; /* the content */
	char tag[UTILS_TAG_BYTES];
	enum status status;
};

static const char *
utils_type_of(struct str name)
{
	static const struct {
		const char *suffix;
		const char *type;
	} types[] = {
		{ ".html", "text/html; charset=utf-8" },
		{ ".js", "text/javascript; charset=utf-8" },
		{ ".css", "text/css; charset=utf-8" },
		{ ".json", "application/json" },
		{ ".map", "application/json" },
		{ ".txt", "text/plain; charset=utf-8" },
		{ ".svg", "image/svg+xml" },
		{ ".png", "image/png" },
		{ ".gif", "image/gif" },
		{ ".jpg", "image/jpeg" },
		{ ".ico", "image/x-icon" },
		{ ".woff", "font/woff" },
		{ ".woff2", "font/woff2" },
		{ ".ttf", "font/ttf" },
		{ ".eot", "application/vnd.ms-fontobject" },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct str suffix = str_from_cstr(types[i].suffix);

		if (name.len >= suffix.len &&
		    str_eq_nocase(str_skip(name, name.len - suffix.len), suffix))
			return types[i].type;
	}
	return "application/octet-stream";
}

/*
 * True for the name of one entry of a directory. The name has been unescaped and may have a slash.
 */
static bool
utils_is_entry(struct str name)
{
	return name.len > 0 && name.ptr[0] != '.' && !memchr(name.ptr, '/', name.len) &&
	       !memchr(name.ptr, '\0', name.len);
}

/*
 * Opens the file one directory at a time, without following links, so that nothing outside the
 * directory can be reached.
 */
static int
utils_open_below(const struct file *f)
{
	int fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; i < f->parts_count && fd >= 0; i++) {
		char name[NAME_MAX + 1];
		int next = -1;

		if (utils_is_entry(f->parts[i]) && f->parts[i].len < sizeof(name)) {
			memcpy(name, f->parts[i].ptr, f->parts[i].len);
			name[f->parts[i].len] = '\0';
			next = openat(fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
		}
		close(fd);
		fd = next;
	}
	return fd;
}

static enum status
utils_read_open(struct file *f, int fd)
{
	struct stat st;
	ssize_t n = 1;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return STATUS_NOT_FOUND;
	(void)snprintf(f->tag, sizeof(f->tag), "%llx-%llx%08lx", (unsigned long long)st.st_size,
		       (unsigned long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	buf_reserve(f->ret, (size_t)st.st_size + 1);
	while (n > 0 && buf_status(f->ret) == STATUS_OK) {
		n = read(fd, f->ret->ptr + f->ret->len, f->ret->cap - f->ret->len);
		if (n < 0)
			return STATUS_IO;
		f->ret->len += (size_t)n;
		buf_reserve(f->ret, 1);
	}
	return buf_status(f->ret);
}

static void
utils_read_file(void *arg)
{
	struct file *f = arg;
	int fd = utils_open_below(f);

	f->status = STATUS_NOT_FOUND;
	if (fd < 0)
		return;
	f->status = utils_read_open(f, fd);
	close(fd);
}

static enum status
utils_reply_absent(struct couch_req *r)
{
	http_set_header(r->x, STR("Content-Type"), STR("text/html; charset=utf-8"));
	http_set_header(r->x, STR("Cache-Control"), STR("no-store"));
	http_set_status(r->x, 404);
	return http_send(r->x, str_from_cstr(absent));
}

static enum status
utils_reply_file(struct couch_req *r, const struct file *f)
{
	struct str name = f->parts[f->parts_count - 1];
	const char *type = utils_type_of(name);
	bool sent;

	http_set_header(r->x, STR("Content-Type"), str_from_cstr(type));
	http_set_header(r->x, STR("Cache-Control"), STR("private, must-revalidate"));
	http_set_header(r->x, STR("Content-Security-Policy"), STR(UTILS_POLICY));
	http_set_header(r->x, STR("X-Content-Type-Options"), STR("nosniff"));
	TRY(couch_reply_etag(r, str_from_cstr(f->tag), &sent));
	if (sent)
		return STATUS_OK;
	if (strncmp(type, "text/", 5) == 0)
		http_allow_gzip(r->x, (int)r->settings->answer_gzip_level);
	http_set_status(r->x, 200);
	return http_send(r->x, buf_str(f->ret));
}

enum status
couch_root_utils(struct couch_req *r)
{
	static const struct str index = { "index.html", sizeof("index.html") - 1 };
	struct buf AUTO(buf_release) content = couch_buf(r, UTILS_FILE_BYTES);
	struct file f = {
		.dir = r->couch->config.utils_dir,
		.parts = r->parts + 1,
		.parts_count = r->parts_count - 1,
		.ret = &content,
	};

	if (!f.dir)
		return utils_reply_absent(r);
	if (str_eq(http_path(r->x), STR("/_utils"))) {
		http_set_header(r->x, STR("Location"), STR("/_utils/"));
		http_set_status(r->x, 301);
		return http_send(r->x, STR(""));
	}
	if (f.parts_count == 0) {
		f.parts = &index;
		f.parts_count = 1;
	}
	wait_offload(utils_read_file, &f);
	if (f.status == STATUS_NOT_FOUND && r->parts_count == 1)
		return utils_reply_absent(r);
	if (f.status == STATUS_NOT_FOUND)
		return couch_fail_set(&r->fail, COUCH_ERROR_NOT_FOUND, "missing");
	TRY(f.status);
	return utils_reply_file(r, &f);
}
