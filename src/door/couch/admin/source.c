#include "door/couch/admin/source.h"

#include "door/couch/wire/stream.h"
#include "model/revisioned/read.h"

enum status
couch_source_text(const struct index_source *source, struct arena *arena, struct str *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT_OF(COUCH_ROW_BYTES, arena_part(arena));
	struct rev_doc doc = { .packed = source->body, .count = source->count };

	doc.leaves = arena_alloc(arena, (doc.count + 1) * sizeof(*doc.leaves));
	if (!doc.leaves)
		return STATUS_LIMIT;
	for (size_t i = 0; i < doc.count; i++)
		doc.leaves[i] = source->leaves[i];
	buf_append_byte(&text, '{');
	TRY(rev_body_write(&doc, false, &text));
	return buf_copy(&text, arena, ret);
}
