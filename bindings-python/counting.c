/* SPDX-License-Identifier: MIT
 *
 * counting.c: the interpreter's writer, and the opening of counters with names as Python has them.
 *
 * Names are checked here, so that a wrong one is told in Python's words; what the core refuses for want of room is told
 * once and is no error: the measured program goes on unmeasured.
 */
#include "counting.h"
#include "live.h"

/* As the core has it. */
#define NAME_MOST 65535

/* ---- the writer ---- */

/* Of two modules as __main__, one is enough: in a spawned child of multiprocessing it is __mp_main__ that has the
 * names.
 */
static PyObject *get_module(const char *name) {
    PyObject *text = PyUnicode_FromString(name);
    PyObject *module = text != NULL ? PyImport_GetModule(text) : NULL;
    Py_XDECREF(text);
    return module;
}

/* The str "object.name"; NULL for anything else, also where "object" is NULL, and with what ctpy_forgive leaves. */
static PyObject *get_text(PyObject *object, const char *name) {
    PyObject *text = object != NULL ? PyObject_GetAttrString(object, name) : NULL;
    if (text != NULL && !PyUnicode_Check(text)) Py_CLEAR(text);
    (void)ctpy_forgive();
    return text;
}

/* "text" up to "end"; NULL if that is nothing. Steals "text". */
static PyObject *cut(PyObject *text, Py_ssize_t start, Py_ssize_t end) {
    PyObject *part = start < end ? PyUnicode_Substring(text, start, end) : NULL;
    Py_DECREF(text);
    return part;
}

static PyObject *name_of_spec(PyObject *module) {
    static const char tail[] = ".__main__";
    PyObject *spec = PyObject_GetAttrString(module, "__spec__");
    PyObject *name = get_text(spec, "name");
    PyObject *ending = name != NULL ? PyUnicode_FromString(tail) : NULL;
    Py_XDECREF(spec);
    if (ending == NULL) Py_CLEAR(name);
    if (name == NULL) return NULL;
    Py_ssize_t length = PyUnicode_GET_LENGTH(name);
    if (PyUnicode_Tailmatch(name, ending, 0, length, 1) == 1) length -= (Py_ssize_t)sizeof tail - 1;
    Py_DECREF(ending);
    return cut(name, 0, length);
}

/* Where a script is: its __file__, which the interpreter takes away as soon as the script has ended, or what its loader
 * knows; atexit functions and threads still run then. */
static PyObject *find_file(PyObject *module) {
    PyObject *file = get_text(module, "__file__");
    if (file != NULL || PyErr_Occurred()) return file;
    PyObject *loader = PyObject_GetAttrString(module, "__loader__");
    if (loader == NULL) (void)ctpy_forgive();
    file = loader != NULL ? get_text(loader, "path") : NULL;
    Py_XDECREF(loader);
    return file;
}

/* What is between the last separator and the last dot; a dot in front is part of the name. */
static PyObject *stem_of_file(PyObject *module) {
    PyObject *file = find_file(module);
    if (file == NULL) return NULL;
    Py_ssize_t start = 0, length = PyUnicode_GET_LENGTH(file), end = length;
    for (Py_ssize_t i = 0; i < length; i++) {
        Py_UCS4 character = PyUnicode_READ_CHAR(file, i);
        if (character == '/' || character == '\\') start = i + 1;
    }
    for (Py_ssize_t i = start + 1; i < length; i++)
        if (PyUnicode_READ_CHAR(file, i) == '.') end = i;
    return cut(file, start, end);
}

PyObject *ctpy_script_name(const char *otherwise) {
    static const char *const modules[] = {"__main__", "__mp_main__"};
    PyObject *name = NULL;
    for (size_t i = 0; i < sizeof modules / sizeof *modules && name == NULL && !PyErr_Occurred(); i++) {
        PyObject *module = get_module(modules[i]);
        if (module == NULL) continue;
        name = name_of_spec(module);
        if (name == NULL && !PyErr_Occurred()) name = stem_of_file(module);
        Py_DECREF(module);
    }
    return name != NULL || PyErr_Occurred() ? name : PyUnicode_FromString(otherwise);
}

/* What other processes see of this one. */
static int describe_process(void) {
    char host[16];
    snprintf(host, sizeof host, "Python %d.%d", PY_MAJOR_VERSION, PY_MINOR_VERSION);
    PyObject *name = ctpy_script_name("python");
    PyObject *bytes = name != NULL ? PyUnicode_AsEncodedString(name, "utf-8", "backslashreplace") : NULL;
    Py_XDECREF(name);
    if (bytes == NULL) return -1;
    ct_segment_describe(PyBytes_AS_STRING(bytes), host);
    Py_DECREF(bytes);
    return 0;
}

static int open_writer(ctpy_state *state) {
    if (describe_process() < 0) return -1;
    PyObject *name = ctpy_script_name("main");
    PyObject *bytes = name != NULL ? PyUnicode_AsEncodedString(name, "utf-8", "backslashreplace") : NULL;
    Py_XDECREF(name);
    if (bytes == NULL) return -1;
    ct_writer *writer = NULL;
    int status = ct_writer_open(PyBytes_AS_STRING(bytes), &writer);
    if (status == CT_EINVAL) status = ct_writer_open(NULL, &writer); /* a __spec__ may be named as it likes */
    Py_DECREF(bytes);
    if (status != CT_OK) {
        PyErr_NoMemory();
        return -1;
    }
    if (state->writer == NULL) {
        state->writer = writer;
        ctpy_follow_environment();
    } else {
        ct_writer_close(writer); /* another thread was faster */
    }
    return 0;
}

ct_writer *ctpy_get_writer(ctpy_state *state) {
    if (state->writer == NULL && open_writer(state) < 0) return NULL;
    return state->writer;
}

/* ---- names ---- */

/* "text" as UTF-8, lone surrogates as \udc80. *bytes is NULL for an optional text that is not there. */
static int encode(PyObject *text, const char *wrong_type, const char *wrong_value, int optional, PyObject **bytes) {
    *bytes = NULL;
    if (optional && (text == NULL || text == Py_None)) return 0;
    if (!PyUnicode_Check(text)) return ctpy_refuse(PyExc_TypeError, wrong_type, text);
    PyObject *encoded = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    if (encoded == NULL) return -1;
    Py_ssize_t length = PyBytes_GET_SIZE(encoded);
    if (length == 0 || length > NAME_MOST || strlen(PyBytes_AS_STRING(encoded)) != (size_t)length) {
        Py_DECREF(encoded);
        return ctpy_refuse(PyExc_ValueError, wrong_value, text);
    }
    *bytes = encoded;
    return 0;
}

typedef struct names {
    PyObject *category, *member, *help; /* bytes, owned; NULL: not given */
} names;

static void drop_names(names *given) {
    Py_XDECREF(given->category);
    Py_XDECREF(given->member);
    Py_XDECREF(given->help);
}

static int has_slash(PyObject *bytes) { return bytes != NULL && strchr(PyBytes_AS_STRING(bytes), '/') != NULL; }

static int encode_names(PyObject *category, PyObject *member, PyObject *help, names *given) {
    static const char wrong_category[] = "category must have 1 to 65,535 bytes in UTF-8, and no '/' or NUL in it";
    *given = (names){0};
    int wrong = encode(member, "name must be a str", "name must have 1 to 65,535 bytes in UTF-8, and no NUL in it", 0,
                       &given->member) < 0 ||
                encode(category, "category must be a str or None", wrong_category, 1, &given->category) < 0 ||
                encode(help, "help must be a str or None",
                       "help must have 1 to 65,535 bytes in UTF-8 and no NUL in it, or be None", 1, &given->help) < 0 ||
                (has_slash(given->category) && ctpy_refuse(PyExc_ValueError, wrong_category, category) < 0);
    if (wrong) drop_names(given);
    return wrong ? -1 : 0;
}

/* ---- counters ---- */

static const char *text_of(PyObject *bytes) { return bytes != NULL ? PyBytes_AS_STRING(bytes) : NULL; }

PyObject *ctpy_counter_key(const ct_counter *counter) {
    size_t length = ct_counter_key(counter, NULL, 0);
    char *buffer = PyMem_Malloc(length + 1);
    if (buffer == NULL) return PyErr_NoMemory();
    (void)ct_counter_key(counter, buffer, length + 1);
    PyObject *key = PyUnicode_DecodeUTF8(buffer, (Py_ssize_t)length, "replace");
    PyMem_Free(buffer);
    return key;
}

/* What was once owed to the log is told as soon as there is memory for it. */
static void tell_owed(ctpy_state *state, PyObject *member) {
    if (state->told_refusal >= 0) return;
    state->told_refusal = 1;
    ctpy_trace(state, CTPY_WARNING,
               "not measured: functions before %s, which run unmeasured, as there was no memory. This is said once",
               member);
}

int ctpy_go_unmeasured(ctpy_state *state, PyObject *what) {
    if (!PyErr_ExceptionMatches(PyExc_MemoryError)) return -1;
    PyErr_Clear();
    if (state->told_refusal > 0) return 0;
    state->told_refusal = 1; /* before, as a handler may measure too */
    if (!ctpy_trace(state, CTPY_WARNING,
                    "not measured: %s, which runs unmeasured, as there is no memory. This is said once", what))
        state->told_refusal = -1;
    return 0;
}

static void tell_refusal(ctpy_state *state, int status) {
    if (state->told_refusal > 0) return;
    state->told_refusal = 1;
    ct_counters counters;
    ct_counters_info(&counters);
    PyObject *key = ctpy_text(counters.last_refused);
    if (key == NULL) PyErr_Clear();
    if (key == NULL) return;
    ctpy_trace(
        state, CTPY_WARNING,
        status == CT_EFULL
            ? "counter refused: %s; what it would measure runs unmeasured, as there is no room for more counters: "
              "raise CODETIMER_MAX_COUNTERS, or remove some. This is said once; codetimer.counters.refused counts on"
            : "counter refused: %s; what it would measure runs unmeasured, as there is no memory. This is said "
              "once; codetimer.counters.refused counts on",
        key);
    Py_DECREF(key);
}

static void tell_opened(ctpy_state *state, int status, const ct_counter *counter) {
    PyObject *key = ctpy_counter_key(counter);
    if (key == NULL) PyErr_Clear();
    if (key == NULL) return;
    if (status == CT_OK) ctpy_trace(state, CTPY_INFO, "counter created: %s", key);
    if (status == CT_EXISTS) ctpy_trace(state, CTPY_DEBUG, "counter already there: %s", key);
    Py_DECREF(key);
}

void ctpy_tell_counter(ctpy_state *state, int status, const ct_counter *counter) {
    if (status < 0)
        tell_refusal(state, status);
    else
        tell_opened(state, status, counter);
}

int ctpy_open_untold(ctpy_state *state, PyObject *member, ct_counter **counter) {
    names given;
    *counter = NULL;
    if (encode_names(NULL, member, NULL, &given) < 0) return CT_EINVAL;
    ct_writer *writer = ctpy_get_writer(state);
    int status = writer != NULL ? ct_counter_open(writer, NULL, text_of(given.member), NULL, counter) : CT_ENOMEM;
    drop_names(&given);
    return status;
}

int ctpy_open_counter(ctpy_state *state, PyObject *category, PyObject *member, PyObject *help, ct_counter **counter) {
    names given;
    *counter = NULL;
    if (encode_names(category, member, help, &given) < 0) return ctpy_go_unmeasured(state, member) < 0 ? -1 : 1;
    ct_writer *writer = ctpy_get_writer(state);
    int status = CT_ENOMEM;
    if (writer != NULL)
        status = ct_counter_open(writer, text_of(given.category), text_of(given.member), text_of(given.help), counter);
    drop_names(&given);
    if (writer == NULL) return ctpy_go_unmeasured(state, member) < 0 ? -1 : 1;
    if (status == CT_EINVAL)
        return ctpy_refuse(PyExc_ValueError,
                           "a name whose part before its first '.' has a '/' in it needs a category=", member);
    ctpy_tell_counter(state, status, *counter);
    if (status >= 0) tell_owed(state, member);
    return status < 0;
}

void ctpy_close_counter(ct_counter *counter) { ct_counter_close(counter); }

/* ---- outcomes ---- */

/* Groups in groups that are looked into. */
enum { GROUP_DEPTH = 8 };

/* Whether it is an exception of a module, which it cannot be if nobody has imported that. */
static int is_one_of(PyObject *raised, const char *module_name, const char *name) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *module = get_module(module_name);
    PyObject *kind = module != NULL ? PyObject_GetAttrString(module, name) : NULL;
    int is = kind != NULL && PyErr_GivenExceptionMatches(raised, kind);
    Py_XDECREF(kind);
    Py_XDECREF(module);
    PyErr_Restore(type, value, traceback); /* also drops what the search may have raised */
    return is;
}

/* A group, which nurseries raise, is cancelled where all that is in it was. */
static int is_cancelled(PyObject *raised, int depth);

static int is_cancelled_group(PyObject *raised, int depth) {
#if PY_VERSION_HEX >= 0x030b0000
    if (depth == 0 || !PyExceptionInstance_Check(raised)) return 0;
    if (!PyErr_GivenExceptionMatches(raised, PyExc_BaseExceptionGroup)) return 0;
    PyObject *parts = ((PyBaseExceptionGroupObject *)raised)->excs;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts); i++)
        if (!is_cancelled(PyTuple_GET_ITEM(parts, i), depth - 1)) return 0;
    return 1;
#else
    (void)raised, (void)depth;
    return 0;
#endif
}

static int is_cancelled(PyObject *raised, int depth) {
    if (PyErr_GivenExceptionMatches(raised, PyExc_Exception)) return 0;
    return PyErr_GivenExceptionMatches(raised, PyExc_GeneratorExit) ||
           is_one_of(raised, "asyncio.exceptions", "CancelledError") || is_one_of(raised, "trio", "Cancelled") ||
           is_cancelled_group(raised, depth);
}

int ctpy_judge(PyObject *raised) { return is_cancelled(raised, GROUP_DEPTH) ? CT_CANCELLED : CT_FAILED; }

int ctpy_judge_raised(void) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    const int outcome = type == NULL ? CT_FAILED : ctpy_judge(value != NULL ? value : type);
    PyErr_Restore(type, value, traceback);
    return outcome;
}
