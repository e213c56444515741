/*
 * A format on the first line, bytes behind it: what struct.unpack reads is packed by the same
 * format, and read again as the same values.
 */
#include "script_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char text[] =
		"local line = D:find('\\n', 1, true)\n"
		"if not line then return end\n"
		"local format, bytes = D:sub(1, line - 1), D:sub(line + 1)\n"
		"pcall(struct.size, format)\n"
		"local values = {pcall(struct.unpack, format, bytes)}\n"
		"local count = #values - 2\n"
		"if not values[1] then return end\n"
		"local ok, packed = pcall(struct.pack, format, unpack(values, 2, count + 1))\n"
		"if not ok then return end\n"
		"local again = {struct.unpack(format, packed)}\n"
		"assert(#again == count + 1)\n"
		"for i = 1, count do\n"
		"  local a, b = values[i + 1], again[i]\n"
		"  local exact = type(a) == 'string' or math.abs(a) < 2^53\n"
		"  assert(not exact or a == b or a ~= a, format)\n"
		"end\n";

	(void)script_run_with(text, data, size);
	return 0;
}
