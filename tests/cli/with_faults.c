/*
 * frond with the faulty engine, for tests of the whole program: the same main(), and one engine
 * more. It is not installed.
 */
#include "kv/faulty/faulty.h"

/* Before main(), as kv_faulty_register() asks for. */
static void __attribute__((constructor)) register_faulty_engine(void)
{
	kv_faulty_register();
}
