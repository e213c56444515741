#include "door/couch/look/look.h"

#include "door/couch/admin/access.h"
#include "door/couch/admin/endpoints.h"
#include "door/couch/look/endpoints.h"
#include "door/couch/wire/reply.h"

static const struct {
	const char *name;
	couch_handler *get;
	couch_handler *post;
} looks[] = {
	{ "operations", look_operations, look_end_operation },
	{ "slow", look_slow, NULL },
	{ "databases", look_databases, NULL },
	{ "leaves", look_leaves, NULL },
};

enum status
couch_look(struct couch_req *r)
{
	struct str name = r->parts_count == 2 ? r->parts[1] : STR("");

	if (r->method == COUCH_GET && look_has_file(name))
		return look_file(r, name);
	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		if (!str_eq(name, str_from_cstr(looks[i].name)))
			continue;
		TRY(couch_require_admin(r));
		if (r->method == COUCH_GET)
			return looks[i].get(r);
		if (!looks[i].post)
			return couch_method_refused(r, "GET");
		TRY(couch_require_json(r));
		return looks[i].post(r);
	}
	return couch_ops(r);
}
