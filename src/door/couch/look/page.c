/* The files of the page at /_frond/, which the program has in it. They have no secrets. */
#include "door/couch/look/look.h"
#include "door/couch/look/page_css.h"
#include "door/couch/look/page_html.h"
#include "door/couch/look/page_js.h"
#include "door/couch/wire/reply.h"

/* Nothing from elsewhere, nothing in lines of the page, and nobody shows it in a frame. */
#define PAGE_POLICY                                                                                \
	"default-src 'none'; connect-src 'self'; script-src 'self'; style-src 'self'; "            \
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

static const struct file {
	const char *name;
	const char *type;
	const char *text;
	size_t bytes;
} files[] = {
	{ "", "text/html; charset=utf-8", page_html_text, sizeof(page_html_text) - 1 },
	{ "page.css", "text/css; charset=utf-8", page_css_text, sizeof(page_css_text) - 1 },
	{ "page.js", "text/javascript; charset=utf-8", page_js_text, sizeof(page_js_text) - 1 },
};

static const struct file *
find_file(struct str name)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (str_eq(name, str_from_cstr(files[i].name)))
			return &files[i];
	return NULL;
}

bool
look_has_file(struct str name)
{
	return find_file(name);
}

enum status
look_file(struct couch_req *r, struct str name)
{
	const struct file *f = find_file(name);

	/* Names in the page are relative to its folder. */
	if (str_eq(http_path(r->x), STR("/_frond"))) {
		http_set_header(r->x, STR("Location"), STR("/_frond/"));
		http_set_status(r->x, 301);
		return http_send(r->x, STR(""));
	}
	http_set_header(r->x, STR("Content-Type"), str_from_cstr(f->type));
	http_set_header(r->x, STR("Cache-Control"), STR("no-cache"));
	http_set_header(r->x, STR("Content-Security-Policy"), STR(PAGE_POLICY));
	http_set_header(r->x, STR("X-Content-Type-Options"), STR("nosniff"));
	http_set_status(r->x, 200);
	return http_send(r->x, str_of(f->text, f->bytes));
}
