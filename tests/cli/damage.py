"""Changes a store behind frond's back, for tests of what finds that."""

import ctypes
import ctypes.util


def damage(path, key, value):
    """Sets a key of a store behind frond's back; None clears it."""
    library = ctypes.CDLL(ctypes.util.find_library("rocksdb"))
    for name in ("options_create", "open", "writeoptions_create"):
        getattr(library, f"rocksdb_{name}").restype = ctypes.c_void_p
    error = ctypes.c_char_p()
    options = library.rocksdb_options_create()
    db = library.rocksdb_open(ctypes.c_void_p(options), str(path).encode(), ctypes.byref(error))
    assert not error.value, error.value
    write = library.rocksdb_writeoptions_create()
    size = ctypes.c_size_t
    if value is None:
        library.rocksdb_delete(ctypes.c_void_p(db), ctypes.c_void_p(write), key, size(len(key)),
                               ctypes.byref(error))
    else:
        library.rocksdb_put(ctypes.c_void_p(db), ctypes.c_void_p(write), key, size(len(key)),
                            value, size(len(value)), ctypes.byref(error))
    assert not error.value, error.value
    library.rocksdb_close(ctypes.c_void_p(db))
    library.rocksdb_writeoptions_destroy(ctypes.c_void_p(write))
    library.rocksdb_options_destroy(ctypes.c_void_p(options))
