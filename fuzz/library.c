/*
 * Any bytes as the first line of a library of functions, and what is behind it as the name, the
 * flags and the description that it registers a function with. What is taken is sound.
 */
#include <stdlib.h>

#include "base/budget.h"
#include "base/buf.h"
#include "door/redis/script/library.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	ARENA_BYTES = 16 * 1024 * 1024,
	CODE_BYTES = 1024 * 1024,
};

/* As a string of Lua's, in decimal escapes, so that no byte ends it. */
static void
put_lua(struct buf *code, struct str s)
{
	buf_append_byte(code, '"');
	for (size_t i = 0; i < s.len; i++)
		buf_printf(code, "\\%03u", (unsigned)(uint8_t)s.ptr[i]);
	buf_append_byte(code, '"');
}

/* The characters that names may have. */
static void
check_name(struct str name)
{
	if (!name.len || name.len > LIBRARY_NAME_BYTES)
		abort();
	for (size_t i = 0; i < name.len; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_",
			    name.ptr[i]) ||
		    !name.ptr[i])
			abort();
}

static void
check(const struct library *lib)
{
	check_name(lib->name);
	if (!lib->count || lib->count > LIBRARY_FUNCTIONS)
		abort();
	for (size_t i = 0; i < lib->count; i++) {
		check_name(lib->functions[i].name);
		if (lib->functions[i].description.len > LIBRARY_DESCRIPTION_BYTES ||
		    lib->functions[i].flags >> 5)
			abort();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct budget_part part = { .budget = NULL }; /* the memory is of no budget */
	AUTO(buf_release) struct buf code = BUF_INIT(CODE_BYTES);
	struct str rest = str_of(data, size), name, flag;
	struct arena *arena = arena_new(ARENA_BYTES);
	struct library lib;
	struct err err = { 0 };

	if (!arena)
		abort();
	buf_append_str(&code, str_cut(&rest, '\n'));
	name = str_cut(&rest, '\n');
	flag = str_cut(&rest, '\n');
	buf_append_cstr(&code, "\nlocal function f() end\nredis.register_function(");
	put_lua(&code, name);
	buf_append_cstr(&code, ", f)\npcall(redis.register_function, {function_name=");
	put_lua(&code, rest);
	buf_append_cstr(&code, ", callback=f, flags={");
	put_lua(&code, flag);
	buf_append_cstr(&code, "}, description=");
	put_lua(&code, rest);
	buf_append_cstr(&code, "})\n");
	if (buf_status(&code) == STATUS_OK &&
	    library_learn(buf_str(&code), &part, arena, &lib, &err) == STATUS_OK)
		check(&lib);
	arena_free(arena);
	return 0;
}
