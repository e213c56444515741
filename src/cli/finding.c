#include "cli/finding.h"

#include <stdio.h>

#include "catalog/draw.h"
#include "cli/cli.h"
#include "kv/tuple.h"

enum {
	DRAWN_BYTES = 16 * KV_LIMIT_KEY_BYTES,
};

void
finding_print(const struct catalog_finding *finding)
{
	AUTO(buf_release) struct buf line = BUF_INIT(DRAWN_BYTES);
	/* Keys of no database are most likely what is left of a revisioned one. */
	const struct catalog_kind *kind = finding->of ? finding->of
						      : catalog_kind_find(CATALOG_KIND_REVISIONED);
	struct catalog_place place;

	buf_printf(&line, "%s: ", finding->kind);
	if (finding->database.ptr)
		buf_printf(&line, "database \"%s%.*s\"%s", catalog_space_prefix(kind->space),
			   STR_ARG(finding->database), finding->key.len ? ", " : "");
	if (finding->key.len && catalog_place_of(finding->key, &place)) {
		catalog_draw_space(kind, place, &line);
		buf_append_cstr(&line, ", ");
	}
	if (finding->key.len)
		tuple_draw(finding->key, &line);
	if (buf_status(&line) == STATUS_OK)
		printf("%.*s: %s\n", (int)line.len, line.ptr, finding->text);
	else
		printf("%s: %s\n", finding->kind, finding->text);
}
