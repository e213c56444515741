/*
 * Any bytes to cmsgpack.unpack. What is packed of it has no more tables in each other than pack()
 * takes; so from there on packing and unpacking change nothing.
 */
#include "script_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char text[] =
		"local function check(ok, ...)\n"
		"  for i = 1, ok and select('#', ...) or 0 do\n"
		"    local good, value = pcall(cmsgpack.unpack, cmsgpack.pack((select(i, ...))))\n"
		"    if good then\n"
		"      local first = cmsgpack.pack(value)\n"
		"      assert(#cmsgpack.pack(cmsgpack.unpack(first)) == #first, first)\n"
		"    end\n"
		"  end\n"
		"end\n"
		"check(pcall(cmsgpack.unpack, D))\n"
		"local ok, offset = pcall(cmsgpack.unpack_one, D)\n"
		"assert(not ok or offset == -1 or offset <= #D)\n"
		"pcall(cmsgpack.unpack_limit, D, 2, #D / 2)\n";

	(void)script_run_with(text, data, size);
	return 0;
}
