#include "cli/finding.h"

#include <stdio.h>

#include "cli/inspect_draw.h"
#include "kv/tuple.h"

enum {
	DRAWN_BYTES = 16 * KV_LIMIT_KEY_BYTES,
};

void
finding_print(const struct rev_finding *finding)
{
	AUTO(buf_release) struct buf line = BUF_INIT(DRAWN_BYTES);
	struct inspect_place place;

	buf_printf(&line, "%s: ", rev_finding_name(finding->kind));
	if (finding->database.ptr)
		buf_printf(&line, "database \"%.*s\", ", STR_ARG(finding->database));
	if (inspect_place(finding->key, &place)) {
		inspect_draw_subspace(place, &line);
		buf_append_cstr(&line, ", ");
	}
	tuple_draw(finding->key, &line);
	if (buf_status(&line) == STATUS_OK)
		printf("%.*s: %s\n", (int)line.len, line.ptr, finding->text);
	else
		printf("%s: %s\n", rev_finding_name(finding->kind), finding->text);
}
