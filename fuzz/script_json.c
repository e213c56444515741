/* Any bytes to cjson.decode: what it takes is encoded, and that is decoded and encoded as long. */
#include "script_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char text[] = "local ok, value = pcall(cjson.decode, D)\n"
				   "if not ok then return end\n"
				   "local encoded, first = pcall(cjson.encode, value)\n"
				   "if not encoded then return end\n"
				   "local second = cjson.encode(cjson.decode(first))\n"
				   "assert(#second == #first, first)\n";

	(void)script_run_with(text, data, size);
	return 0;
}
