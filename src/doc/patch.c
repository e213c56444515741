#include "doc/patch.h"

#include "base/quote.h"
#include "doc/patch_int.h"
#include "loop/step.h"

enum op_kind {
	OP_ADD,
	OP_REMOVE,
	OP_REPLACE,
	OP_MOVE,
	OP_COPY,
	OP_TEST,
	OP_COUNT,
};

static const struct {
	const char *name;
	bool has_value;
	bool has_from;
} ops[OP_COUNT] = {
	[OP_ADD] = { "add", true, false },         [OP_REMOVE] = { "remove", false, false },
	[OP_REPLACE] = { "replace", true, false }, [OP_MOVE] = { "move", false, true },
	[OP_COPY] = { "copy", false, true },       [OP_TEST] = { "test", true, false },
};

struct doc_patch_op {
	enum op_kind kind;
	struct str path_text;
	struct str from_text;
	struct doc_pointer path;
	struct doc_pointer from;
	struct patch_node value;
};

enum {
	/*
	 * In a patch the path of a value begins with the operation's position and the name of the
	 * operation's member, so it is longer than in the document.
	 */
	PATCH_PATH_BYTES = KV_LIMIT_KEY_BYTES + 32,
	SHOWN_BYTES = 200, /* of a pointer, in an explanation */
	OP_STEPS = 8,      /* of reading or applying an operation */
};

/* ---- Reading a JSON Patch, which is taken apart into leaves like a document ---- */

struct patch_reader {
	struct patch_tree tree;
	size_t number; /* of the operation, from 0 */
};

static enum status
patch_refuse_op(struct patch_reader *r, const char *what)
{
	return err_set(r->tree.err, STATUS_INVALID, "operation %zu of the patch %s", r->number,
		       what);
}

/* A member that is a string; `missing` says what is wrong without it. */
static enum status
op_read_string(struct patch_reader *r, const struct patch_node *object, struct str encoded_name,
	       const char *missing, struct str *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT(KV_LIMIT_VALUE_BYTES);
	const struct patch_node *node;
	struct tuple_reader reader;
	struct tuple_elem e;
	size_t at;

	if (!patch_find(object, encoded_name, &at))
		return patch_refuse_op(r, missing);
	node = &object->children[at].node;
	reader = tuple_reader(node->leaves[0].value);
	TRY(tuple_next_elem(&reader, &e));
	/* A text that lies in pieces is longer than any pointer may be. */
	if (node->leaves[0].key.len != node->skip || e.kind != TUPLE_STRING)
		return patch_refuse_op(r, missing);
	tuple_unescape(&e, &text);
	TRY(buf_status(&text));
	*ret = buf_dup(&text, r->tree.arena);
	return ret->ptr ? STATUS_OK : patch_fail_memory(&r->tree);
}

static enum status
op_read_pointer(struct patch_reader *r, struct str text, struct doc_pointer *ret)
{
	struct err why = { 0 };
	enum status status = doc_pointer_parse(text, r->tree.arena, ret, &why);

	if (status != STATUS_OK)
		return err_set(r->tree.err, status, "operation %zu of the patch: %s", r->number,
			       why.text);
	if (ret->count && ret->tokens[0].len && ret->tokens[0].ptr[0] == '_')
		return err_set(
			r->tree.err, STATUS_INVALID,
			"operation %zu of the patch: members such as %.*s, whose names "
			"start with an underscore, cannot be patched",
			r->number,
			(int)(ret->tokens[0].len < SHOWN_BYTES ? ret->tokens[0].len : SHOWN_BYTES),
			ret->tokens[0].ptr);
	return STATUS_OK;
}

static bool
op_pointer_is_above(const struct doc_pointer *above, const struct doc_pointer *p)
{
	if (above->count >= p->count)
		return false;
	for (size_t i = 0; i < above->count; i++)
		if (!str_eq(above->tokens[i], p->tokens[i]))
			return false;
	return true;
}

static enum status
op_read_kind(struct patch_reader *r, const struct patch_node *object, enum op_kind *ret)
{
	struct str name;

	TRY(op_read_string(r, object, STR("\x02op\0"), "has no \"op\"", &name));
	for (int i = 0; i < OP_COUNT; i++) {
		if (str_eq(name, str_from_cstr(ops[i].name))) {
			*ret = (enum op_kind)i;
			return STATUS_OK;
		}
	}
	return patch_refuse_op(
		r, "has an \"op\" that is none of add, remove, replace, move, copy, test");
}

static enum status
op_read(struct patch_reader *r, struct patch_node *object, struct doc_patch_op *ret)
{
	enum patch_type type;
	size_t at;

	TRY(patch_type(object, &type));
	if (type != PATCH_TYPE_OBJECT)
		return patch_refuse_op(r, "is not an object");
	TRY(patch_open(&r->tree, object));
	*ret = (struct doc_patch_op){ .kind = OP_COUNT };
	TRY(op_read_kind(r, object, &ret->kind));
	TRY(op_read_string(r, object, STR("\x02path\0"), "has no \"path\"", &ret->path_text));
	TRY(op_read_pointer(r, ret->path_text, &ret->path));
	if (ops[ret->kind].has_from) {
		TRY(op_read_string(r, object,
				   STR("\x02"
				       "from\0"),
				   "has no \"from\"", &ret->from_text));
		TRY(op_read_pointer(r, ret->from_text, &ret->from));
	}
	if (ops[ret->kind].has_value) {
		if (!patch_find(object, STR("\x02value\0"), &at))
			return patch_refuse_op(r, "has no \"value\"");
		ret->value = object->children[at].node;
	}
	if (ret->kind == OP_REMOVE && !ret->path.count)
		return patch_refuse_op(r, "would remove the whole document");
	if (ret->kind == OP_MOVE && op_pointer_is_above(&ret->from, &ret->path))
		return patch_refuse_op(r, "moves a value into itself");
	return STATUS_OK;
}

static enum status
patch_read_ops(struct patch_reader *r, struct doc_patch *ret)
{
	struct patch_node list = r->tree.root;

	TRY(patch_open(&r->tree, &list));
	if (list.count > DOC_PATCH_OPS)
		return err_set(r->tree.err, STATUS_DOC_TOO_LARGE,
			       "the patch has more than %d operations", DOC_PATCH_OPS);
	ret->ops = arena_alloc(r->tree.arena, list.count * sizeof(*ret->ops));
	if (!ret->ops)
		return patch_fail_memory(&r->tree);
	for (; r->number < list.count; r->number++) {
		TRY(step_count(OP_STEPS));
		TRY(op_read(r, &list.children[r->number].node, &ret->ops[r->number]));
	}
	ret->count = list.count;
	return STATUS_OK;
}

enum status
doc_patch_read(enum doc_patch_kind kind, struct str text, struct arena *arena,
	       struct doc_patch *ret, struct err *err)
{
	const struct doc_limits limits = { .doc_bytes = DOC_PATCH_BYTES,
					   .path_bytes = PATCH_PATH_BYTES };
	struct doc_patch patch = { .kind = kind };
	struct patch_reader r = { .number = 0 };
	struct doc list;
	enum status status;

	if (text.len > DOC_PATCH_BYTES)
		return err_set(err, STATUS_DOC_TOO_LARGE, "the patch is larger than %d bytes",
			       DOC_PATCH_BYTES);
	if (kind == DOC_PATCH_MERGE) {
		TRY(doc_explode_text(text, arena, &limits, 0, &patch.merge, err));
		if (patch.merge.specials_count)
			return err_set(err, STATUS_INVALID,
				       "members such as %s, whose names start with an "
				       "underscore, cannot be patched",
				       QUOTE_SHOW(patch.merge.specials[0].name));
		*ret = patch;
		return STATUS_OK;
	}
	TRY(doc_explode_array_text(text, arena, &limits, &list, err));
	patch_tree_init(&r.tree, arena, err);
	r.tree.root = patch_run(list.leaves, list.count);
	status = patch_read_ops(&r, &patch);
	buf_release(&r.tree.path);
	if (status == STATUS_OK)
		*ret = patch;
	return status;
}

/* ---- Applying ---- */

struct patch_run_state {
	struct patch_tree tree;
	const struct doc_patch_op *op;
	size_t number;
};

static enum status
op_fail_at(struct patch_run_state *a, struct str pointer, const char *why)
{
	return err_set(a->tree.err, STATUS_PATCH_FAILED, "operation %zu (%s): %s \"%.*s\"%s",
		       a->number, ops[a->op->kind].name, why,
		       (int)(pointer.len < SHOWN_BYTES ? pointer.len : SHOWN_BYTES),
		       pointer.ptr ? pointer.ptr : "", pointer.len < SHOWN_BYTES ? "" : "...");
}

/* Finds out whether the open container has a child for `token`, and where it is or belongs. */
static enum status
op_find_child(struct patch_run_state *a, const struct patch_node *container, struct str token,
	      bool *ret_found, size_t *ret_at)
{
	uint64_t position;
	enum status status;

	if (container->kind == PATCH_ARRAY) {
		bool is_position = doc_pointer_position(token, &position);

		*ret_found = is_position && position < container->count;
		*ret_at = is_position && position <= container->count ? (size_t)position : SIZE_MAX;
		return STATUS_OK;
	}
	buf_clear(&a->tree.path);
	tuple_put_str(&a->tree.path, token);
	status = buf_status(&a->tree.path);
	/* Such a name fits into no key, so no document has it. */
	if (status == STATUS_LIMIT)
		return err_set(a->tree.err, STATUS_PATH_TOO_LONG,
			       "operation %zu (%s): a member's name is longer than %d bytes",
			       a->number, ops[a->op->kind].name, KV_LIMIT_KEY_BYTES);
	TRY(status);
	*ret_found = patch_find(container, buf_str(&a->tree.path), ret_at);
	return STATUS_OK;
}

/*
 * Finds the value that the first `count` tokens lead to, and opens it if `enter` is set.
 * STATUS_NOT_FOUND.
 */
static enum status
op_walk_to(struct patch_run_state *a, const struct doc_pointer *p, size_t count, bool enter,
	   struct patch_node **ret)
{
	struct patch_node *node = &a->tree.root;
	enum patch_type type;
	bool found;
	size_t at;

	for (size_t i = 0;; i++) {
		if (i == count && !enter)
			break;
		TRY(patch_type(node, &type));
		if (type == PATCH_TYPE_SCALAR)
			return STATUS_NOT_FOUND;
		TRY(patch_open(&a->tree, node));
		if (i == count)
			break;
		TRY(op_find_child(a, node, p->tokens[i], &found, &at));
		if (!found)
			return STATUS_NOT_FOUND;
		node = &node->children[at].node;
	}
	*ret = node;
	return STATUS_OK;
}

static enum status
op_find_value(struct patch_run_state *a, const struct doc_pointer *p, struct str text,
	      struct patch_node **ret)
{
	enum status status = op_walk_to(a, p, p->count, false, ret);

	if (status == STATUS_NOT_FOUND)
		return op_fail_at(a, text, "there is nothing at");
	return status;
}

static enum status
op_add(struct patch_run_state *a, struct patch_node value)
{
	const struct doc_pointer *p = &a->op->path;
	struct str token, name = { NULL, 0 };
	struct patch_node *container;
	enum status status;
	bool found;
	size_t at;

	if (!p->count) {
		a->tree.root = value;
		return STATUS_OK;
	}
	status = op_walk_to(a, p, p->count - 1, true, &container);
	if (status == STATUS_NOT_FOUND)
		return op_fail_at(a, a->op->path_text, "there is nothing that could hold");
	TRY(status);
	token = p->tokens[p->count - 1];
	if (container->kind == PATCH_ARRAY && str_eq(token, STR("-"))) {
		at = container->count;
	} else {
		TRY(op_find_child(a, container, token, &found, &at));
		if (at == SIZE_MAX)
			return op_fail_at(a, a->op->path_text, "the array has no position for");
		if (container->kind == PATCH_OBJECT) {
			if (found) {
				container->children[at].node = value;
				return STATUS_OK;
			}
			name = buf_dup(&a->tree.path, a->tree.arena);
			if (!name.ptr)
				return patch_fail_memory(&a->tree);
		}
	}
	return patch_insert(&a->tree, container, at, name, value);
}

/* `p` is not the whole document. */
static enum status
op_take_out(struct patch_run_state *a, const struct doc_pointer *p, struct str text)
{
	struct patch_node *container;
	enum status status;
	bool found = false;
	size_t at;

	status = op_walk_to(a, p, p->count - 1, true, &container);
	if (status == STATUS_OK)
		status = op_find_child(a, container, p->tokens[p->count - 1], &found, &at);
	if (status == STATUS_NOT_FOUND || (status == STATUS_OK && !found))
		return op_fail_at(a, text, "there is nothing at");
	TRY(status);
	return patch_remove(&a->tree, container, at);
}

/* Copies the value at `from`; for a move, takes it out there. */
static enum status
op_take_source(struct patch_run_state *a, bool move, struct patch_node *ret)
{
	struct patch_node *node;

	TRY(op_find_value(a, &a->op->from, a->op->from_text, &node));
	TRY(patch_flatten(&a->tree, node, ret));
	/* The whole document can only be moved to its own place, so nothing is taken out. */
	if (!move || !a->op->from.count)
		return STATUS_OK;
	return op_take_out(a, &a->op->from, a->op->from_text);
}

static enum status
op_test(struct patch_run_state *a)
{
	struct patch_node *node;
	struct patch_node run;
	bool equal;

	TRY(op_find_value(a, &a->op->path, a->op->path_text, &node));
	TRY(patch_flatten(&a->tree, node, &run));
	TRY(patch_equal(&a->tree, &run, &a->op->value, &equal));
	return equal ? STATUS_OK : op_fail_at(a, a->op->path_text, "another value is at");
}

static enum status
op_apply(struct patch_run_state *a)
{
	const struct doc_patch_op *op = a->op;
	struct patch_node value;
	struct patch_node *node;

	TRY(step_count(OP_STEPS));
	/* Each operation counts, even if it looks at no leaf. */
	TRY(patch_work(&a->tree, 1 + op->path.count + op->from.count));
	switch (op->kind) {
	case OP_ADD:
		return op_add(a, op->value);
	case OP_REMOVE:
		return op_take_out(a, &op->path, op->path_text);
	case OP_REPLACE:
		TRY(op_find_value(a, &op->path, op->path_text, &node));
		*node = op->value;
		return STATUS_OK;
	case OP_MOVE:
	case OP_COPY:
		TRY(op_take_source(a, op->kind == OP_MOVE, &value));
		return op_add(a, value);
	case OP_TEST:
		return op_test(a);
	case OP_COUNT:
		break;
	}
	return STATUS_INVALID;
}

static enum status
patch_apply_ops(struct patch_run_state *a, const struct doc_patch *patch)
{
	if (patch->kind == DOC_PATCH_MERGE)
		return patch_merge(&a->tree, &a->tree.root,
				   patch_run(patch->merge.leaves, patch->merge.count));
	for (a->number = 0; a->number < patch->count; a->number++) {
		a->op = &patch->ops[a->number];
		TRY(op_apply(a));
	}
	return STATUS_OK;
}

/* ---- The result ---- */

static enum status
patch_write_text(const struct patch_node *run, struct buf *text)
{
	struct doc_assembler assembler;
	enum status status = STATUS_OK;

	doc_assemble_init(&assembler, text);
	for (size_t i = 0; i < run->count && status == STATUS_OK; i++)
		status = doc_assemble_leaf(&assembler, str_skip(run->leaves[i].key, run->skip),
					   run->leaves[i].value);
	if (status == STATUS_OK)
		status = doc_assemble_end(&assembler);
	doc_assemble_release(&assembler);
	return status;
}

/*
 * Makes the document of the result's JSON text, like one that a client sends, so that every rule
 * for documents holds.
 */
static enum status
patch_make_document(struct patch_run_state *a, const struct doc_limits *limits, size_t prefix_bytes,
		    struct doc *ret)
{
	AUTO(buf_release) struct buf text = BUF_INIT(limits->doc_bytes);
	struct patch_tree *t = &a->tree;
	struct patch_node run;
	enum patch_type type;
	enum status status;
	struct doc doc;

	TRY(patch_type(&t->root, &type));
	if (type != PATCH_TYPE_OBJECT)
		return err_set(t->err, STATUS_INVALID,
			       "the patch makes something else than an object of the document");
	TRY(patch_flatten(t, &t->root, &run));
	status = patch_write_text(&run, &text);
	if (status == STATUS_LIMIT)
		return err_set(t->err, STATUS_DOC_TOO_LARGE,
			       "the patched document is larger than %zu bytes", limits->doc_bytes);
	if (status == STATUS_CORRUPT)
		return err_set(t->err, status, "the stored leaves do not make a JSON value");
	TRY(status);
	TRY(doc_explode_text(buf_str(&text), t->arena, limits, prefix_bytes, &doc, t->err));
	if (doc.specials_count)
		return err_set(t->err, STATUS_INVALID,
			       "the patch makes a member %s: names that start with an underscore "
			       "are not a document's own",
			       QUOTE_SHOW(doc.specials[0].name));
	doc.specials = NULL; /* they would point into the text, which is released */
	*ret = doc;
	return STATUS_OK;
}

enum status
doc_patch_apply(const struct doc_patch *patch, const struct kv_pair *leaves, size_t count,
		const struct doc_limits *limits, size_t prefix_bytes, struct arena *arena,
		struct doc *ret, struct err *err)
{
	struct patch_run_state a = { .number = 0 };
	enum status status;

	patch_tree_init(&a.tree, arena, err);
	a.tree.root = patch_run(leaves, count);
	status = patch_apply_ops(&a, patch);
	if (status == STATUS_OK)
		status = patch_make_document(&a, limits, prefix_bytes, ret);
	else if (status == STATUS_CORRUPT)
		err_set(err, status, "the stored leaves do not make a JSON value");
	buf_release(&a.tree.path);
	return status;
}
