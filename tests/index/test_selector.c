/* What matches, what does not, and what is no selector. */
#include "common.h"

#include "base/arena_apart.h"
#include "base/metric.h"

static struct selector *
compile(const char *text)
{
	struct selector *s;
	struct err err = { 0 };

	if (selector_compile(str_from_cstr(text), &work, &s, NULL, &err) != STATUS_OK)
		fail_msg("%s: %s", text, err.text);
	return s;
}

static bool
matches(const char *selector, const char *json)
{
	struct arena_mark mark = arena_mark(arena);
	struct selector *s = compile(selector);
	struct selector_special specials[2];
	struct selector_doc doc;
	bool ret;

	doc_of(json, specials, &doc);
	assert_int_equal(selector_match(s, &doc, &work, &ret), STATUS_OK);
	arena_reset(arena, mark);
	return ret;
}

enum {
	SMALL_BYTES = 4096, /* up to here each of them is tried */
};

struct match_case {
	const char *selector;
	const char *doc;
	bool matches;
};

/* Compiles and runs it in a few bytes: where they are not enough, it says so. */
static bool
is_enough(const struct match_case *c, const struct selector_doc *doc, size_t bytes)
{
	struct arena *small = arena_new(bytes);
	struct index_work w = { .arena = small };
	struct err err = { 0 };
	struct selector *s;
	bool full, found;
	enum status status = selector_compile(str_from_cstr(c->selector), &w, &s, NULL, &err);

	if (status == STATUS_OK)
		status = selector_match(s, doc, &w, &found);
	full = arena_is_full(small);
	arena_free(small);
	if (full ? status != STATUS_LIMIT : status != STATUS_OK || found != c->matches)
		fail_msg("%s against %s with %zu bytes: %s", c->selector, c->doc, bytes,
			 status_name(status));
	return !full;
}

static void
check_memory(const struct match_case *c)
{
	struct arena_mark mark = arena_mark(arena);
	struct selector_special specials[2];
	struct selector_doc doc;
	size_t bytes = 0;

	doc_of(c->doc, specials, &doc);
	while (!is_enough(c, &doc, bytes))
		bytes += bytes < SMALL_BYTES ? ROOM_STEP : bytes / 32;
	arena_reset(arena, mark);
}

static void
check(const struct match_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (matches(cases[i].selector, cases[i].doc) != cases[i].matches)
			fail_msg("%s against %s", cases[i].selector, cases[i].doc);
		check_memory(&cases[i]);
	}
}

static void
fields_are_found_by_their_paths(void **state)
{
	static const struct match_case cases[] = {
		{ "{}", "{}", true },
		{ "{}", "{\"a\":1}", true },
		{ "{\"a\":1}", "{\"a\":1,\"b\":2}", true },
		{ "{\"a\":1}", "{\"a\":2}", false },
		{ "{\"a\":1}", "{}", false },
		{ "{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":2}", true },
		{ "{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":3}", false },
		{ "{\"a.b\":1}", "{\"a\":{\"b\":1}}", true },
		{ "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1,\"c\":2}}", true },
		{ "{\"a\":{\"b\":{\"$gt\":0}}}", "{\"a\":{\"b\":1}}", true },
		{ "{\"a\":{\"b\":1}}", "{\"a.b\":1}", false },
		{ "{\"a\\\\.b\":1}", "{\"a.b\":1}", true },
		{ "{\"a\\\\.b\":1}", "{\"a\":{\"b\":1}}", false },
		{ "{\"a\\\\.b.c\":1}", "{\"a.b\":{\"c\":1}}", true },
		{ "{\"\\\\$x\":1}", "{\"$x\":1}", true },
		{ "{\"a.1\":\"y\"}", "{\"a\":[\"x\",\"y\"]}", true },
		{ "{\"a.2\":\"y\"}", "{\"a\":[\"x\",\"y\"]}", false },
		{ "{\"a.-1\":\"y\"}", "{\"a\":[\"x\",\"y\"]}", false },
		{ "{\"a.b\":\"y\"}", "{\"a\":[\"x\",\"y\"]}", false },
		{ "{\"a.1\":\"y\"}", "{\"a\":{\"1\":\"y\"}}", true },
		{ "{\"a.0.b\":5}", "{\"a\":[{\"b\":5}]}", true },
		{ "{\"a\\u0000\":1}", "{\"a\":2,\"a\\u0000\":1}", true },
		{ "{\"a\":1}", "{\"a\\u0000\":1}", false },
		{ "{\"a\":1}", "{\"a\\u0000\":2,\"a\":1,\"ab\":3}", true },
		{ "{\"_id\":\"Doc\"}", "{}", true },
		{ "{\"_rev\":{\"$beginsWith\":\"1-\"}}", "{}", true },
		{ "{\"_deleted\":true}", "{}", false },
		{ "{\"_deleted\":{\"$exists\":false}}", "{}", true },
		/* Of a name that comes twice the last counts. */
		{ "{\"a\":1,\"a\":2}", "{\"a\":2}", true },
		{ "{\"a\":[]}", "{\"a\":[]}", true },
		{ "{\"a\":[]}", "{\"a\":{}}", false },
		{ "{\"a\":{}}", "{\"a\":{}}", true },
		{ "{\"a\":{}}", "{\"a\":{\"b\":1}}", false },
		{ "{\"a\":[1,{\"b\":2}]}", "{\"a\":[1,{\"b\":2.0}]}", true },
		{ "{\"a\":{\"$eq\":{\"y\":1,\"x\":2}}}", "{\"a\":{\"x\":2,\"y\":1}}", true },
		{ "{\"a\":null}", "{\"a\":null}", true },
		{ "{\"a\":null}", "{}", false },
	};

	(void)state;
	check(cases, COUNT(cases));
}

static void
comparisons_follow_collation(void **state)
{
	static const struct match_case cases[] = {
		{ "{\"a\":{\"$lt\":5}}", "{\"a\":4.9}", true },
		{ "{\"a\":{\"$lt\":5}}", "{\"a\":5}", false },
		{ "{\"a\":{\"$lte\":5}}", "{\"a\":5.0}", true },
		{ "{\"a\":{\"$gt\":5}}", "{\"a\":\"0\"}", true },
		{ "{\"a\":{\"$gt\":5}}", "{\"a\":null}", false },
		{ "{\"a\":{\"$lt\":5}}", "{\"a\":true}", true },
		{ "{\"a\":{\"$gte\":\"b\"}}", "{\"a\":\"B\"}", true },
		{ "{\"a\":{\"$gte\":\"B\"}}", "{\"a\":\"b\"}", false },
		{ "{\"a\":{\"$gt\":null}}", "{\"a\":false}", true },
		{ "{\"a\":{\"$gt\":null}}", "{}", false },
		{ "{\"a\":{\"$gte\":{}}}", "{\"a\":[1,2]}", false },
		{ "{\"a\":{\"$lt\":[1,3]}}", "{\"a\":[1,2,9]}", true },
		{ "{\"a\":{\"$ne\":1}}", "{\"a\":2}", true },
		{ "{\"a\":{\"$ne\":1}}", "{\"a\":1.0}", false },
		{ "{\"a\":{\"$ne\":1}}", "{}", false },
		{ "{\"a\":{\"$gt\":1,\"$lt\":3}}", "{\"a\":2}", true },
		{ "{\"a\":{\"$gt\":1,\"$lt\":3}}", "{\"a\":3}", false },
		{ "{\"a\":{\"$gt\":1,\"b\":3}}", "{\"a\":{\"b\":3}}", true },
		/* Ids compare byte by byte, other fields as people would have them. */
		{ "{\"_id\":{\"$lt\":\"a\"}}", "{}", true },
		{ "{\"a\":{\"$lt\":\"a\"}}", "{\"a\":\"Doc\"}", false },
		{ "{\"a._id\":{\"$lt\":\"a\"}}", "{\"a\":{\"_id\":\"Doc\"}}", false },
		{ "{\"_id\":{\"$gt\":null}}", "{}", true },
		{ "{\"_id\":{\"$gt\":{}}}", "{}", true },
		{ "{\"_id\":{\"$in\":[1,\"Doc\"]}}", "{}", true },
		{ "{\"_id\":{\"$nin\":[1,\"doc\"]}}", "{}", true },
	};

	(void)state;
	check(cases, COUNT(cases));
}

static void
kinds_of_values_are_told_apart(void **state)
{
	static const struct match_case cases[] = {
		{ "{\"a\":{\"$exists\":true}}", "{\"a\":null}", true },
		{ "{\"a\":{\"$exists\":true}}", "{}", false },
		{ "{\"a\":{\"$exists\":false}}", "{}", true },
		{ "{\"a\":{\"$exists\":false}}", "{\"a\":1}", false },
		{ "{\"a.b\":{\"$exists\":false}}", "{\"a\":{}}", true },
		{ "{\"a.b\":{\"$exists\":false}}", "{}", true },
		/* There can be no b in a number: neither here nor there. */
		{ "{\"a.b\":{\"$exists\":false}}", "{\"a\":1}", false },
		{ "{\"a.b\":{\"$exists\":false}}", "{\"a\":[]}", false },
		{ "{\"a\":{\"$type\":\"null\"}}", "{\"a\":null}", true },
		{ "{\"a\":{\"$type\":\"boolean\"}}", "{\"a\":false}", true },
		{ "{\"a\":{\"$type\":\"number\"}}", "{\"a\":1e400}", true },
		{ "{\"a\":{\"$type\":\"string\"}}", "{\"a\":\"\"}", true },
		{ "{\"a\":{\"$type\":\"array\"}}", "{\"a\":[]}", true },
		{ "{\"a\":{\"$type\":\"array\"}}", "{\"a\":[[1]]}", true },
		{ "{\"a\":{\"$type\":\"object\"}}", "{\"a\":{}}", true },
		{ "{\"a\":{\"$type\":\"object\"}}", "{\"a\":[]}", false },
		{ "{\"a\":{\"$type\":\"thing\"}}", "{\"a\":[]}", false },
		{ "{\"a\":{\"$mod\":[3,1]}}", "{\"a\":7}", true },
		{ "{\"a\":{\"$mod\":[3,1]}}", "{\"a\":7.0}", false },
		{ "{\"a\":{\"$mod\":[3,-1]}}", "{\"a\":-7}", true },
		{ "{\"a\":{\"$mod\":[-3,1]}}", "{\"a\":7}", true },
		{ "{\"a\":{\"$mod\":[10,6]}}", "{\"a\":18446744073709551616}", true },
		{ "{\"a\":{\"$mod\":[10,-6]}}", "{\"a\":-18446744073709551616}", true },
		{ "{\"a\":{\"$mod\":[10,0]}}", "{\"a\":\"10\"}", false },
		{ "{\"a\":{\"$mod\":[10,0]}}", "{\"a\":20}", true },
		{ "{\"a\":{\"$mod\":[10,0]}}", "{\"a\":20.0}", false },
		{ "{\"a\":{\"$mod\":[10,0]}}", "{\"a\":20.5}", false },
		{ "{\"a\":{\"$size\":2}}", "{\"a\":[1,[2,3]]}", true },
		{ "{\"a\":{\"$size\":0}}", "{\"a\":[]}", true },
		{ "{\"a\":{\"$size\":0}}", "{\"a\":{}}", false },
		{ "{\"a\":{\"$size\":-0}}", "{\"a\":[]}", true },
		{ "{\"a\":{\"$size\":18446744073709551616}}", "{\"a\":[]}", false },
		{ "{\"a\":{\"$size\":1}}", "{\"a\":\"x\"}", false },
	};

	(void)state;
	check(cases, COUNT(cases));
}

static void
strings_are_looked_into(void **state)
{
	static const struct match_case cases[] = {
		{ "{\"a\":{\"$regex\":\"^b+$\"}}", "{\"a\":\"bbb\"}", true },
		{ "{\"a\":{\"$regex\":\"b\"}}", "{\"a\":\"abc\"}", true },
		{ "{\"a\":{\"$regex\":\"(?i)B\"}}", "{\"a\":\"abc\"}", true },
		{ "{\"a\":{\"$regex\":\"b\"}}", "{\"a\":[\"b\"]}", false },
		{ "{\"a\":{\"$regex\":\"1\"}}", "{\"a\":1}", false },
		{ "{\"a\":{\"$regex\":\"x\\u0000\"}}", "{\"a\":\"x\\u0000y\"}", true },
		/* Bytes, as in Erlang without options. */
		{ "{\"a\":{\"$regex\":\"^..$\"}}", "{\"a\":\"\\u00e9\"}", true },
		{ "{\"a\":{\"$beginsWith\":\"ab\"}}", "{\"a\":\"abc\"}", true },
		{ "{\"a\":{\"$beginsWith\":\"\"}}", "{\"a\":\"abc\"}", true },
		{ "{\"a\":{\"$beginsWith\":\"AB\"}}", "{\"a\":\"abc\"}", false },
		{ "{\"a\":{\"$beginsWith\":\"abc\"}}", "{\"a\":\"ab\"}", false },
		{ "{\"a\":{\"$beginsWith\":\"a\"}}", "{\"a\":[\"a\"]}", false },
	};

	(void)state;
	check(cases, COUNT(cases));
}

static void
lists_and_arrays(void **state)
{
	static const struct match_case cases[] = {
		{ "{\"a\":{\"$in\":[1,\"x\"]}}", "{\"a\":\"x\"}", true },
		{ "{\"a\":{\"$in\":[1,\"x\"]}}", "{\"a\":1.0}", true },
		{ "{\"a\":{\"$in\":[1,\"x\"]}}", "{\"a\":2}", false },
		{ "{\"a\":{\"$in\":[]}}", "{\"a\":2}", false },
		{ "{\"a\":{\"$in\":[2]}}", "{\"a\":[1,2]}", true },
		/* An array's elements are looked for, not the array. */
		{ "{\"a\":{\"$in\":[[1,2]]}}", "{\"a\":[1,2]}", false },
		{ "{\"a\":{\"$in\":[[1,2]]}}", "{\"a\":[[1,2]]}", true },
		{ "{\"a\":{\"$in\":[{}]}}", "{\"a\":{}}", true },
		{ "{\"a\":{\"$nin\":[1]}}", "{\"a\":2}", true },
		{ "{\"a\":{\"$nin\":[1]}}", "{\"a\":[2,1]}", false },
		{ "{\"a\":{\"$nin\":[1]}}", "{\"a\":[]}", true },
		{ "{\"a\":{\"$nin\":[]}}", "{\"a\":1}", true },
		{ "{\"a\":{\"$nin\":[1]}}", "{}", false },
		{ "{\"a\":{\"$all\":[1,2]}}", "{\"a\":[3,2,1]}", true },
		{ "{\"a\":{\"$all\":[1,4]}}", "{\"a\":[3,2,1]}", false },
		{ "{\"a\":{\"$all\":[1]}}", "{\"a\":[1.0]}", false },
		{ "{\"a\":{\"$all\":[]}}", "{\"a\":[1]}", false },
		{ "{\"a\":{\"$all\":[[1,2]]}}", "{\"a\":[1,2]}", true },
		{ "{\"a\":{\"$all\":[[1,2]]}}", "{\"a\":[[1,2],3]}", true },
		{ "{\"a\":{\"$all\":[\"x\"]}}", "{\"a\":\"x\"}", false },
		{ "{\"a\":{\"$elemMatch\":{\"$gte\":80,\"$lt\":85}}}", "{\"a\":[90,82]}", true },
		{ "{\"a\":{\"$elemMatch\":{\"$gte\":80,\"$lt\":85}}}", "{\"a\":[90,79]}", false },
		{ "{\"a\":{\"$elemMatch\":{\"b\":1,\"c.d\":2}}}",
		  "{\"a\":[{\"b\":1},{\"b\":1,\"c\":{\"d\":2}}]}", true },
		{ "{\"a\":{\"$elemMatch\":{\"b\":1}}}", "{\"a\":{\"b\":1}}", false },
		{ "{\"a\":{\"$elemMatch\":{\"b\":1}}}", "{\"a\":[]}", false },
		{ "{\"a.b\":{\"$elemMatch\":{\"$elemMatch\":{\"$eq\":3}}}}",
		  "{\"a\":{\"b\":[[1],[2,3]]}}", true },
		{ "{\"a\":{\"$allMatch\":{\"$gt\":1}}}", "{\"a\":[2,3]}", true },
		{ "{\"a\":{\"$allMatch\":{\"$gt\":1}}}", "{\"a\":[2,1]}", false },
		{ "{\"a\":{\"$allMatch\":{\"$gt\":1}}}", "{\"a\":[]}", false },
		{ "{\"a\":{\"$keyMapMatch\":{\"$eq\":\"k\"}}}", "{\"a\":{\"j\":1,\"k\":{}}}",
		  true },
		{ "{\"a\":{\"$keyMapMatch\":{\"$beginsWith\":\"k\"}}}", "{\"a\":{\"j\":1}}",
		  false },
		{ "{\"a\":{\"$keyMapMatch\":{\"$regex\":\"\"}}}", "{\"a\":{}}", false },
		{ "{\"a\":{\"$keyMapMatch\":{\"$regex\":\"\"}}}", "{\"a\":[1]}", false },
	};

	(void)state;
	check(cases, COUNT(cases));
}

static void
combinations_and_their_negations(void **state)
{
	static const struct match_case cases[] = {
		{ "{\"$and\":[{\"a\":1},{\"b\":2}]}", "{\"a\":1,\"b\":2}", true },
		{ "{\"$and\":[{\"a\":1},{\"b\":2}]}", "{\"a\":1}", false },
		{ "{\"$and\":[]}", "{}", true },
		{ "{\"$or\":[{\"a\":1},{\"b\":2}]}", "{\"b\":2}", true },
		{ "{\"$or\":[{\"a\":1},{\"b\":2}]}", "{\"b\":1}", false },
		{ "{\"$or\":[]}", "{}", true },
		/* Several values of one field: it is compared as it is, also if it is an array. */
		{ "{\"$or\":[{\"a\":1},{\"b\":2},{\"a\":\"x\"}]}", "{\"a\":\"x\"}", true },
		{ "{\"$or\":[{\"a\":1},{\"a\":2}]}", "{\"a\":[1]}", false },
		/* What is asked of one field is not asked of another one behind it. */
		{ "{\"$or\":[{\"a\":1},{\"a\":2},{\"b\":3}]}", "{\"a\":3}", false },
		{ "{\"$or\":[{\"a\":1},{\"a\":2},{\"b\":3}]}", "{\"b\":3}", true },
		{ "{\"$or\":[{\"a\":1},{\"a\":2},{\"b\":3},{\"b\":4}]}", "{\"a\":3}", false },
		{ "{\"$or\":[{\"a\":1},{\"a\":2},{\"b\":3},{\"b\":4}]}", "{\"b\":4}", true },
		{ "{\"$and\":[{\"a\":{\"$ne\":1}},{\"a\":{\"$ne\":2}},{\"b\":{\"$ne\":3}}]}",
		  "{\"a\":3,\"b\":1}", true },
		{ "{\"$or\":[{\"a\":[1]},{\"a\":2}]}", "{\"a\":[1]}", true },
		{ "{\"$or\":[{\"_id\":\"x\"},{\"_id\":\"Doc\"}]}", "{}", true },
		{ "{\"$or\":[{\"_id\":\"x\"},{\"_id\":\"doc\"}]}", "{}", false },
		{ "{\"$nor\":[{\"a\":1},{\"a\":2}]}", "{\"a\":3}", true },
		{ "{\"$nor\":[{\"a\":1},{\"a\":2}]}", "{\"a\":2}", false },
		{ "{\"$nor\":[{\"a\":1},{\"a\":2}]}", "{}", false },
		{ "{\"$and\":[{\"a\":{\"$ne\":1}},{\"a\":{\"$ne\":2}}]}", "{\"a\":[1]}", true },
		{ "{\"$nor\":[{\"a\":1},{\"b\":2}]}", "{\"a\":2,\"b\":1}", true },
		{ "{\"$nor\":[{\"a\":1},{\"b\":2}]}", "{\"a\":2,\"b\":2}", false },
		/* A negated condition on a field wants the field to be there. */
		{ "{\"$nor\":[{\"a\":1},{\"b\":2}]}", "{\"a\":2}", false },
		{ "{\"$not\":{\"a\":1}}", "{\"a\":2}", true },
		{ "{\"$not\":{\"a\":1}}", "{}", false },
		{ "{\"a\":{\"$not\":{\"$gt\":1}}}", "{\"a\":1}", true },
		{ "{\"a\":{\"$not\":{\"$gt\":1}}}", "{\"a\":2}", false },
		{ "{\"a\":{\"$not\":{\"$gt\":1}}}", "{}", false },
		{ "{\"a\":{\"$not\":{\"$regex\":\"x\"}}}", "{\"a\":\"y\"}", true },
		{ "{\"a\":{\"$not\":{\"$regex\":\"x\"}}}", "{}", false },
		{ "{\"$not\":{\"a\":{\"$exists\":true}}}", "{}", true },
		{ "{\"$not\":{\"a\":{\"$exists\":false}}}", "{\"a\":0}", true },
		{ "{\"$not\":{\"a\":1,\"b\":2}}", "{\"a\":1,\"b\":3}", true },
		{ "{\"$not\":{\"$or\":[{\"a\":1},{\"b\":2}]}}", "{\"a\":2,\"b\":3}", true },
		{ "{\"$not\":{\"$and\":[]}}", "{}", true },
		{ "{\"$not\":{\"$not\":{\"a\":1}}}", "{\"a\":1}", true },
		{ "{\"$not\":{\"$nor\":[{\"a\":1}]}}", "{\"a\":1}", true },
		{ "{\"$not\":{\"a\":{\"$in\":[1]}}}", "{\"a\":[1]}", false },
		{ "{\"$not\":{\"a\":{\"$elemMatch\":{\"$eq\":1}}}}", "{\"a\":[2]}", true },
		{ "{\"$not\":{\"a\":{\"$elemMatch\":{\"$eq\":1}}}}", "{\"a\":[2,1]}", false },
		{ "{\"a\":{\"$or\":[{\"$lt\":1},{\"$gt\":5}]}}", "{\"a\":6}", true },
		{ "{\"a\":{\"$or\":[{\"b\":1},{\"c\":2}]}}", "{\"a\":{\"c\":2}}", true },
		/* Inside of an array it is the plain opposite. */
		{ "{\"a\":{\"$elemMatch\":{\"$not\":{\"b\":1}}}}", "{\"a\":[{}]}", true },
		{ "{\"a\":{\"$elemMatch\":{\"$not\":{\"b\":1}}}}", "{\"a\":[{\"b\":1}]}", false },
		{ "{\"a\":{\"$elemMatch\":{\"$nor\":[{\"b\":1},{\"b\":2}]}}}", "{\"a\":[{}]}",
		  true },
		{ "{\"a\":{\"$elemMatch\":{\"$nor\":[{\"b\":1},{\"b\":2}]}}}",
		  "{\"a\":[{\"b\":2}]}", false },
		{ "{\"a\":{\"$elemMatch\":{\"$nor\":[]}}}", "{\"a\":[1]}", true },
		/* Without a field it is about the document. */
		{ "{\"$and\":[{\"$type\":\"object\"}]}", "{}", true },
		{ "{\"$and\":[{\"$keyMapMatch\":{\"$eq\":\"k\"}}]}", "{\"k\":1}", true },
		{ "{\"$and\":[{}]}", "{}", true },
		{ "{\"$and\":[{}]}", "{\"a\":1}", false },
	};

	(void)state;
	check(cases, COUNT(cases));
}

static void
what_is_no_selector_is_refused_with_a_reason(void **state)
{
	static const struct {
		const char *text;
		const char *name;
		const char *reason;
	} cases[] = {
		{ "[]", "invalid_selector_json", "Selector must be a JSON object, not: []" },
		{ "{\"$and\":1}", "bad_arg", "Bad argument for operator $and: 1" },
		{ "{\"$or\":{\"a\":1}}", "bad_arg", "Bad argument for operator $or: {\"a\":1}" },
		{ "{\"$nor\":\"x\"}", "bad_arg", "Bad argument for operator $nor: \"x\"" },
		{ "{\"$not\":[1]}", "bad_arg", "Bad argument for operator $not: [1]" },
		{ "{\"a\":{\"$not\":1}}", "bad_arg", "Bad argument for operator $not: 1" },
		{ "{\"a\":{\"$in\":1}}", "bad_arg", "Bad argument for operator $in: 1" },
		{ "{\"a\":{\"$nin\":{}}}", "bad_arg", "Bad argument for operator $nin: {}" },
		{ "{\"a\":{\"$all\":1}}", "bad_arg", "Bad argument for operator $all: 1" },
		{ "{\"a\":{\"$exists\":1}}", "bad_arg", "Bad argument for operator $exists: 1" },
		{ "{\"a\":{\"$type\":1}}", "bad_arg", "Bad argument for operator $type: 1" },
		{ "{\"a\":{\"$size\":-1}}", "bad_arg", "Bad argument for operator $size: -1" },
		{ "{\"a\":{\"$size\":1.0}}", "bad_arg", "Bad argument for operator $size: 1.0" },
		{ "{\"a\":{\"$mod\":[1]}}", "bad_arg", "Bad argument for operator $mod: [1]" },
		{ "{\"a\":{\"$mod\":[1,2,3]}}", "bad_arg",
		  "Bad argument for operator $mod: [1,2,3]" },
		{ "{\"a\":{\"$mod\":[2.0,1]}}", "bad_arg",
		  "Bad argument for operator $mod: [2.0,1]" },
		{ "{\"a\":{\"$mod\":[0,1]}}", "bad_arg", "Bad argument for operator $mod: [0,1]" },
		{ "{\"a\":{\"$regex\":\"(\"}}", "bad_arg",
		  "Bad argument for operator $regex: \"(\"" },
		{ "{\"a\":{\"$regex\":1}}", "invalid_operator", "Invalid operator: $regex" },
		{ "{\"a\":{\"$beginsWith\":1}}", "invalid_operator",
		  "Invalid operator: $beginsWith" },
		{ "{\"a\":{\"$elemMatch\":1}}", "bad_arg",
		  "Bad argument for operator $elemMatch: 1" },
		{ "{\"a\":{\"$allMatch\":[]}}", "bad_arg",
		  "Bad argument for operator $allMatch: []" },
		{ "{\"a\":{\"$keyMapMatch\":\"k\"}}", "bad_arg",
		  "Bad argument for operator $keyMapMatch: \"k\"" },
		{ "{\"a\":{\"$foo\":1}}", "invalid_operator", "Invalid operator: $foo" },
		{ "{\"$foo\":1}", "invalid_operator", "Invalid operator: $foo" },
		{ "{\"$where\":1}", "not_supported", "Unsupported operator: $where" },
		{ "{\"$text\":\"x\"}", "not_supported",
		  "Unsupported operator: $text. There is no full-text search here: "
		  "$regex and $beginsWith look into strings." },
		{ "{\"a..b\":1}", "invalid_field_name", "Invalid field name: a..b" },
		{ "{\".a\":1}", "invalid_field_name", "Invalid field name: .a" },
		{ "{\"a.\":1}", "invalid_field_name", "Invalid field name: a." },
		{ "{\"\":1}", "invalid_field_name", "Invalid field name: " },
		{ "{\"$gt\":1}", "invalid_selector",
		  "One or more conditions is missing a field name." },
		{ "{\"$not\":{}}", "invalid_selector",
		  "One or more conditions is missing a field name." },
		{ "{\"$elemMatch\":{\"a\":1}}", "invalid_selector",
		  "One or more conditions is missing a field name." },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		enum selector_error error = SELECTOR_ERROR_NONE;
		struct err err = { 0 };
		struct selector *s;

		if (selector_compile(str_from_cstr(cases[i].text), &work, &s, &error, &err) !=
		    STATUS_INVALID)
			fail_msg("%s is taken", cases[i].text);
		assert_string_equal(selector_error_name(error), cases[i].name);
		assert_string_equal(err.text, cases[i].reason);
	}
}

static void
the_longest_pattern_matches(void **state)
{
	char letters[SELECTOR_REGEX_BYTES + 1], selector[SELECTOR_REGEX_BYTES + 32];
	char doc[sizeof(selector)];

	(void)state;
	memset(letters, 'x', sizeof(letters) - 1);
	letters[sizeof(letters) - 1] = 0;
	snprintf(selector, sizeof(selector), "{\"a\":{\"$regex\":\"%s\"}}", letters);
	snprintf(doc, sizeof(doc), "{\"a\":\"%s\"}", letters);
	assert_true(matches(selector, doc));
	snprintf(doc, sizeof(doc), "{\"a\":\"%s\"}", letters + 1);
	assert_false(matches(selector, doc));
}

static void
broken_text_and_limits_are_refused(void **state)
{
	struct selector *s;
	struct err err;
	struct buf text = BUF_INIT(4 << 20);

	(void)state;
	assert_int_equal(selector_compile(STR("{"), &work, &s, NULL, &err), STATUS_JSON_SYNTAX);
	assert_int_equal(selector_compile(STR("{} 1"), &work, &s, NULL, &err), STATUS_JSON_SYNTAX);
	for (int i = 0; i < SELECTOR_DEPTH; i++)
		buf_append_cstr(&text, "{\"$not\":");
	buf_append_cstr(&text, "{\"a\":1}");
	for (int i = 0; i < SELECTOR_DEPTH; i++)
		buf_append_byte(&text, '}');
	assert_int_equal(selector_compile(buf_str(&text), &work, &s, NULL, &err), STATUS_LIMIT);
	assert_non_null(strstr(err.text, "levels deep"));
	buf_clear(&text);
	buf_append_cstr(&text, "{\"a");
	for (int i = 0; i < SELECTOR_PATH_NAMES; i++)
		buf_append_cstr(&text, ".a");
	buf_append_cstr(&text, "\":1}");
	assert_int_equal(selector_compile(buf_str(&text), &work, &s, NULL, &err), STATUS_LIMIT);
	/* What stands around the $or is one, and so is the $or. */
	for (int more = 0; more < 2; more++) {
		buf_clear(&text);
		buf_append_cstr(&text, "{\"$or\":[1");
		for (int i = 3; i < SELECTOR_CONDITIONS + more; i++)
			buf_append_cstr(&text, ",1");
		buf_append_cstr(&text, "]}");
		assert_int_equal(selector_compile(buf_str(&text), &work, &s, NULL, &err),
				 more ? STATUS_LIMIT : STATUS_OK);
	}
	assert_non_null(strstr(err.text, "conditions"));
	for (int more = 0; more < 2; more++) {
		buf_clear(&text);
		buf_append_cstr(&text, "{\"a\":{\"$regex\":\"[");
		for (int i = 2; i < SELECTOR_REGEX_BYTES + more; i++)
			buf_append_byte(&text, 'x');
		buf_append_byte(&text, ']');
		buf_append_cstr(&text, "\"}}");
		assert_int_equal(selector_compile(buf_str(&text), &work, &s, NULL, &err),
				 more ? STATUS_INVALID : STATUS_OK);
	}
	buf_clear(&text);
	buf_append_cstr(&text, "{}");
	while (text.len < SELECTOR_TEXT_BYTES)
		buf_append_byte(&text, ' ');
	assert_int_equal(selector_compile(buf_str(&text), &work, &s, NULL, &err), STATUS_OK);
	buf_append_byte(&text, ' ');
	assert_int_equal(selector_compile(buf_str(&text), &work, &s, NULL, &err), STATUS_LIMIT);
	buf_release(&text);
}

static int64_t
regex_limits(void)
{
	const struct metric *m = metric_find("frond_regex_limits_total");
	int64_t ret;

	assert_non_null(m);
	assert_true(metric_value(m, 0, &ret));
	return ret;
}

/* It gives up, which is counted, and the string does not match. */
static void
an_expensive_expression_is_bounded(void **state)
{
	int64_t before = regex_limits();
	char doc[512];
	char as[400];

	(void)state;
	memset(as, 'a', sizeof(as) - 1);
	as[sizeof(as) - 1] = '\0';
	(void)snprintf(doc, sizeof(doc), "{\"a\":\"%s!\"}", as);
	assert_false(matches("{\"a\":{\"$regex\":\"^(a+)+$\"}}", doc));
	assert_int_equal(regex_limits(), before + 1);
	assert_false(matches("{\"a\":{\"$regex\":\"^a+$\"}}", doc));
	assert_true(matches("{\"a\":{\"$regex\":\"^a+!$\"}}", doc));
	assert_int_equal(regex_limits(), before + 1);
	assert_false(matches("{\"a\":{\"$regex\":\"(?:(?:a|a)*)*b\"}}", doc));
}

/* ---- Properties ---- */

static struct rand_seq sequence = { 3 };

static const char *const conditions[] = {
	"{\"$eq\":1}",
	"{\"$ne\":1}",
	"{\"$lt\":\"b\"}",
	"{\"$gte\":[1]}",
	"{\"$in\":[1,2]}",
	"{\"$nin\":[\"a\"]}",
	"{\"$exists\":true}",
	"{\"$exists\":false}",
	"{\"$type\":\"string\"}",
	"{\"$size\":1}",
	"{\"$mod\":[2,1]}",
	"{\"$regex\":\"a\"}",
	"{\"$beginsWith\":\"a\"}",
	"{\"$all\":[1]}",
	"{\"$elemMatch\":{\"$gt\":0}}",
	"{\"$allMatch\":{\"$gt\":0}}",
	"{\"$keyMapMatch\":{\"$eq\":\"b\"}}",
	"1",
	"\"a\"",
	"{\"b\":1}",
};

static const char *const values[] = { "null",      "true",         "1",      "2",
				      "3.5",       "\"a\"",        "\"ab\"", "[]",
				      "[1]",       "[1,\"a\"]",    "[[1]]",  "{}",
				      "{\"b\":1}", "{\"b\":\"a\"}" };

#define print(...) arena_printf(arena, __VA_ARGS__).ptr

/* Of a field that is there, a condition and its negation are true of one document or the other. */
static void
a_negation_is_the_opposite_where_there_is_a_field(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(conditions); i++) {
		const char *s = print("{\"a\":%s}", conditions[i]);
		const char *not = print("{\"$not\":%s}", s);
		const char *nor = print("{\"$nor\":[%s]}", s);
		const char *twice = print("{\"$not\":%s}", not );

		for (size_t j = 0; j < COUNT(values); j++) {
			const char *doc = print("{\"a\":%s}", values[j]);
			bool is = matches(s, doc);

			/* In a value without members there is neither a b nor none. */
			if (strcmp(conditions[i], "{\"b\":1}") != 0 &&
			    (matches(not, doc) == is || matches(nor, doc) == is))
				fail_msg("%s against %s", not, doc);
			if (matches(twice, doc) != is)
				fail_msg("%s against %s", twice, doc);
		}
		/* Of one that is not, neither is, but where that is what is wanted. */
		if (!strstr(conditions[i], "$exists"))
			assert_false(matches(s, "{}") || matches(not, "{}"));
	}
}

static void
combinations_mean_what_their_parts_do(void **state)
{
	(void)state;
	for (size_t n = 0; n < 3000; n++) {
		const char *x = print("{\"a\":%s}",
				      conditions[rand_seq_below(&sequence, COUNT(conditions))]);
		const char *y = print("{\"c\":%s}",
				      conditions[rand_seq_below(&sequence, COUNT(conditions))]);
		const char *doc = print("{\"a\":%s,\"c\":%s}",
					values[rand_seq_below(&sequence, COUNT(values))],
					values[rand_seq_below(&sequence, COUNT(values))]);
		bool mx = matches(x, doc);
		bool my = matches(y, doc);

		assert_int_equal(matches(print("{\"$and\":[%s,%s]}", x, y), doc), mx && my);
		assert_int_equal(matches(print("{\"$or\":[%s,%s]}", x, y), doc), mx || my);
		assert_int_equal(matches(print("{\"$not\":{\"$or\":[%s,%s]}}", x, y), doc),
				 matches(print("{\"$nor\":[%s,%s]}", x, y), doc));
	}
}

/* ---- Memory ---- */

#define EVERYTHING                                                                                 \
	"{\"$or\":[{\"a\":{\"$regex\":\"(x|y)+\"}},{\"b.c\":{\"$elemMatch\":{\"$not\":{\"d\":1}}}" \
	"},"                                                                                       \
	"{\"e\":{\"$in\":[1,\"\\u0000\"]}},{\"f\":{\"$beginsWith\":\"q\"}}]}"

/* Of a document only these members decide, and of some it is looked at as a whole. */
static void
the_members_that_decide_are_known(void **state)
{
	static const struct {
		const char *selector, *members;
		bool whole;
	} cases[] = {
		{ "{}", "", false },
		{ "{\"a\":1}", "a", false },
		{ "{\"b\":1,\"a\":{\"$gt\":1}}", "a|b", false },
		{ "{\"b.c\":1,\"b.d\":2,\"b\":{\"$exists\":true}}", "b", false },
		{ "{\"$or\":[{\"c\":1},{\"a\":{\"$not\":{\"$eq\":1}}}],\"c\":2}", "a|c", false },
		{ "{\"a\":{\"b\":{\"c\":1}}}", "a", false },
		{ "{\"$and\":[{\"_id\":\"x\"},{\"$nor\":[{\"z\":1}]}]}", "_id|z", false },
		{ "{\"a\":{\"$elemMatch\":{\"$gt\":1}}}", "a", false },
		{ "{\"$or\":[{\"$gt\":1},{\"b\":1}]}", "b", true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct selector *s = compile(cases[i].selector);
		AUTO(buf_release) struct buf text = BUF_INIT(256);
		struct str *names;
		size_t count;
		bool whole;

		assert_int_equal(selector_members(s, arena, &names, &count, &whole), STATUS_OK);
		for (size_t k = 0; k < count; k++) {
			buf_append_cstr(&text, k ? "|" : "");
			buf_append_str(&text, names[k]);
		}
		if (!str_eq(buf_str(&text), str_from_cstr(cases[i].members)) ||
		    whole != cases[i].whole)
			fail_msg("%s: %.*s, %d", cases[i].selector, STR_ARG(buf_str(&text)), whole);
	}
}

/* Each allocation fails once, and those behind it do not, or those do as well. */
static void
every_allocation_may_fail(void **state)
{
	static uint64_t (*const failing[])(uint64_t nth) = { mem_fail_only, mem_fail_after };
	struct selector_special specials[2];
	struct selector_doc doc;

	(void)state;
	doc_of("{\"a\":\"zzzz\",\"b\":{\"c\":[{\"d\":1}]},\"e\":\"\\u0000\\u0000\"}", specials,
	       &doc);
	assert_true(matches("{\"a\":\"zzzz\"}", "{\"a\":\"zzzz\"}")); /* ICU is loaded now */
	for (size_t i = 0; i < COUNT(failing); i++) {
		bool failed = true;

		for (uint64_t nth = 1; failed; nth++) {
			struct arena *small = arena_new(1 << 20);
			struct index_work in_small = { .arena = small };
			struct selector *s;
			enum status status;
			bool ret = false;

			assert_non_null(small);
			arena_set_apart(true);
			(void)failing[i](nth);
			status = selector_compile(STR(EVERYTHING), &in_small, &s, NULL, NULL);
			if (status == STATUS_OK)
				status = selector_match(s, &doc, &in_small, &ret);
			failed = mem_fail_after(0) >= nth;
			arena_set_apart(false);
			if (status == STATUS_OK)
				assert_true(ret);
			else
				assert_true(failed &&
					    (status == STATUS_NOMEM || status == STATUS_LIMIT));
			arena_free(small);
		}
	}
}

static void
a_full_arena_is_told(void **state)
{
	bool passed = false;

	(void)state;
	for (size_t bytes = 64; !passed; bytes += 256) {
		struct arena *small = arena_new(bytes);
		struct index_work in_small = { .arena = small };
		struct selector *s;
		enum status status;

		assert_non_null(small);
		status = selector_compile(STR(EVERYTHING), &in_small, &s, NULL, NULL);
		passed = status == STATUS_OK;
		assert_true(passed || status == STATUS_LIMIT || status == STATUS_NOMEM);
		arena_free(small);
		assert_true(bytes < 1 << 20);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fields_are_found_by_their_paths, setup, teardown),
		cmocka_unit_test_setup_teardown(comparisons_follow_collation, setup, teardown),
		cmocka_unit_test_setup_teardown(kinds_of_values_are_told_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(strings_are_looked_into, setup, teardown),
		cmocka_unit_test_setup_teardown(lists_and_arrays, setup, teardown),
		cmocka_unit_test_setup_teardown(combinations_and_their_negations, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_selector_is_refused_with_a_reason, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_longest_pattern_matches, setup, teardown),
		cmocka_unit_test_setup_teardown(broken_text_and_limits_are_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_expensive_expression_is_bounded, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_negation_is_the_opposite_where_there_is_a_field,
						setup, teardown),
		cmocka_unit_test_setup_teardown(combinations_mean_what_their_parts_do, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_members_that_decide_are_known, setup, teardown),
		cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_arena_is_told, setup, teardown),
	};

	return cmocka_run_group_tests_name("selectors", tests, NULL, NULL);
}
