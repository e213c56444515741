/*
 * A pattern on the first line, a text behind it: find, match, gmatch and gsub answer what Lua's own
 * functions do, or raise the same error. Those are asked second, since they count no steps.
 */
#include "script_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char text[] =
		"local line = D:find('\\n', 1, true)\n"
		"if not line or line > 1000 then return end\n"
		"local pattern, subject = D:sub(1, line - 1), D:sub(line + 1)\n"
		"local function same(name, ...)\n"
		"  local a, b = {pcall(string[name], ...)}, {pcall(plain[name], ...)}\n"
		"  assert(#a == #b, name)\n"
		"  for i = 1, #a do assert(a[i] == b[i], name) end\n"
		"end\n"
		"local function all(library)\n"
		"  local found = {}\n"
		"  for a, b in library.gmatch(subject, pattern) do\n"
		"    found[#found + 1] = tostring(a) .. tostring(b)\n"
		"  end\n"
		"  return found\n"
		"end\n"
		"same('find', subject, pattern)\n"
		"same('find', subject, pattern, -3)\n"
		"same('find', subject, pattern, 2, true)\n"
		"same('match', subject, pattern, 2)\n"
		"same('gsub', subject, pattern, '<%1>')\n"
		"same('gsub', subject, pattern, function(a) return a ~= 'a' and a end, 3)\n"
		"local a, b = {pcall(all, string)}, {pcall(all, plain)}\n"
		"assert(a[1] == b[1])\n"
		"if not a[1] then return end\n"
		"assert(table.concat(a[2], '|') == table.concat(b[2], '|'))\n";

	(void)script_run_with(text, data, size);
	return 0;
}
