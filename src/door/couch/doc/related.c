/* A document and the attachments that it shows as one multipart/related body. */
#include "door/couch/doc/att_out.h"
#include "door/couch/doc/doc_opts.h"
#include "door/couch/doc/doc_out.h"
#include "door/couch/doc/related.h"
#include "door/couch/wire/holes.h"
#include "http/field.h"

enum status
couch_related_write(const struct couch_doc_out *d, struct str boundary, struct buf *out)
{
	const struct couch_att_choice choice = couch_att_choose(d->opts, d->branch);

	buf_append_cstr(out, "--");
	buf_append_str(out, boundary);
	buf_append_cstr(out, "\r\nContent-Type: application/json\r\n\r\n");
	TRY(couch_doc_write(d, out));
	buf_append_cstr(out, "\r\n--");
	buf_append_str(out, boundary);
	for (size_t i = 0; i < d->doc->atts_count; i++) {
		const struct rev_att *att = &d->doc->atts[i];

		if (!couch_att_whole(&choice, att))
			continue;
		buf_append_cstr(out, "\r\nContent-Disposition: attachment; filename=");
		http_quote(att->name, out);
		buf_append_cstr(out, "\r\nContent-Type: ");
		buf_append_str(out, att->type);
		buf_append_cstr(out, "\r\nContent-Length: ");
		buf_append_u64(out, att->encoded_length);
		if (att->encoding == REV_ATT_GZIP)
			buf_append_cstr(out, "\r\nContent-Encoding: gzip");
		buf_append_cstr(out, "\r\n\r\n");
		couch_holes_add(d->opts->holes, COUCH_HOLE_STORED, att, out->len);
		buf_append_cstr(out, "\r\n--");
		buf_append_str(out, boundary);
	}
	buf_append_cstr(out, "--");
	TRY(buf_status(&d->opts->holes->list));
	return buf_status(out);
}
