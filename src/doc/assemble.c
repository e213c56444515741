#include "doc/doc.h"
#include "doc/doc_int.h"

/*
 * JSON text out of leaves: the receiver of the reader's events that writes it. A comma comes before
 * a name or an element unless a bracket or a name does.
 */

static void
assemble_comma(struct doc_assembler *a)
{
	if (a->comma)
		buf_append_byte(a->out, ',');
}

static enum status
assemble_begin(void *to, enum doc_container container)
{
	struct doc_assembler *a = to;

	/* The caller has written the outermost brace, and perhaps members. */
	if (a->brace_is_written) {
		a->brace_is_written = false;
		return STATUS_OK;
	}
	assemble_comma(a);
	buf_append_byte(a->out, container == DOC_OBJECT ? '{' : '[');
	a->comma = false;
	return buf_status(a->out);
}

static enum status
assemble_key(void *to, struct str name)
{
	struct doc_assembler *a = to;

	assemble_comma(a);
	json_write_str(a->out, name);
	buf_append_byte(a->out, ':');
	a->comma = false;
	return STATUS_OK;
}

static enum status
assemble_scalar(void *to, const struct doc_scalar *s)
{
	struct doc_assembler *a = to;

	assemble_comma(a);
	a->comma = true;
	return json_write_scalar(a->out, s);
}

static enum status
assemble_piece(void *to, const struct doc_scalar *piece, bool first)
{
	struct doc_assembler *a = to;

	if (piece->kind != DOC_TEXT)
		return STATUS_CORRUPT;
	if (first) {
		assemble_comma(a);
		buf_append_byte(a->out, '"');
	}
	json_write_chars(a->out, piece->text);
	return buf_status(a->out);
}

static enum status
assemble_pieces_end(void *to, enum doc_kind kind)
{
	struct doc_assembler *a = to;

	(void)kind;
	buf_append_byte(a->out, '"');
	a->comma = true;
	return buf_status(a->out);
}

static enum status
assemble_container_end(void *to, enum doc_container container)
{
	struct doc_assembler *a = to;

	buf_append_byte(a->out, container == DOC_OBJECT ? '}' : ']');
	a->comma = true;
	return buf_status(a->out);
}

static const struct doc_events assemble_events = {
	.begin = assemble_begin,
	.key = assemble_key,
	.scalar = assemble_scalar,
	.piece = assemble_piece,
	.pieces_end = assemble_pieces_end,
	.end = assemble_container_end,
};

static void
assemble_init(struct doc_assembler *a, struct buf *out, enum doc_reading reading, bool has_members)
{
	a->out = out;
	a->brace_is_written = reading == DOC_READ_DOCUMENT;
	a->comma = has_members;
	doc_reader_init(&a->reader, reading, &assemble_events, a);
}

void
doc_assemble_init(struct doc_assembler *a, struct buf *out)
{
	assemble_init(a, out, DOC_READ_VALUE, false);
}

void
doc_assemble_init_object(struct doc_assembler *a, struct buf *out, bool has_members)
{
	assemble_init(a, out, DOC_READ_DOCUMENT, has_members);
}

enum status
doc_assemble_leaf(struct doc_assembler *a, struct str path, struct str value)
{
	TRY(doc_reader_leaf(&a->reader, path, value));
	return buf_status(a->out);
}

enum status
doc_assemble_end(struct doc_assembler *a)
{
	TRY(doc_reader_end(&a->reader));
	return buf_status(a->out);
}

void
doc_assemble_release(struct doc_assembler *a)
{
	doc_reader_release(&a->reader);
}
