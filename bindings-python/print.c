/* SPDX-License-Identifier: MIT
 *
 * print.c: the core's report as a str, and its way onto a Python stream.
 *
 * The stream decides: whether it is a terminal (colour), and what its encoding can hold (signs, and the characters of
 * the name). It gets one write(), so that reports of several threads do not mix, and no flush, as with print().
 */
#include "common.h"

/* micro, plus-minus, dash: the only signs beyond ASCII that the core writes by itself. */
static const char signs[] = "\xc2\xb5\xc2\xb1\xe2\x80\x94";

PyObject *ctpy_text(const char *text) {
    if (text == NULL) return Py_NewRef(Py_None);
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

PyObject *ctpy_put_text(ctpy_put put, const void *what, const void *options) {
    size_t length = put(what, options, NULL, 0);
    char *buffer = PyMem_Malloc(length + 1);
    if (buffer == NULL) return PyErr_NoMemory();
    (void)put(what, options, buffer, length + 1);
    PyObject *text = PyUnicode_DecodeUTF8(buffer, (Py_ssize_t)length, "replace");
    PyMem_Free(buffer);
    return text;
}

PyObject *ctpy_json(ctpy_put put, const void *what) {
    char host[64];
    const char *version = Py_GetVersion(); /* "3.12.1 (main, ..." */
    const size_t length = strcspn(version, " ");
    (void)PyOS_snprintf(host, sizeof host, "Python %.*s", (int)(length < 40 ? length : 40), version);
    const ct_export_options options = {.size = sizeof options, .host = host};
    return ctpy_put_text(put, what, &options);
}

static size_t put_result(const void *result, const void *options, char *buffer, size_t size) {
    return ct_report_format(result, options, buffer, size);
}

PyObject *ctpy_format(const ct_result *result, const ct_report_options *options) {
    return ctpy_put_text(put_result, result, options);
}

/* An attribute that a stream may lack or fail to give: NULL without an exception then. */
static PyObject *get_optional(PyObject *stream, const char *name) {
    PyObject *value = PyObject_GetAttrString(stream, name);
    if (value == NULL && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
    return value;
}

/* 1, 0, or -1 with an exception such as KeyboardInterrupt. A closed stream refuses here already; write() will say so.
 */
static int is_terminal(PyObject *stream) {
    PyObject *method = get_optional(stream, "isatty");
    if (method == NULL) return PyErr_Occurred() ? -1 : 0;
    PyObject *answer = PyObject_CallNoArgs(method);
    Py_DECREF(method);
    int is = answer != NULL ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (is >= 0 || !PyErr_ExceptionMatches(PyExc_Exception)) return is;
    PyErr_Clear();
    return 0;
}

/* 1 if "encoding" can hold "text", 0 if not (or if it is unknown), -1 with another exception. */
static int can_encode(PyObject *text, const char *encoding) {
    PyObject *encoded = PyUnicode_AsEncodedString(text, encoding, "strict");
    Py_XDECREF(encoded);
    if (encoded != NULL) return 1;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;
    PyErr_Clear();
    return 0;
}

static int can_encode_signs(const char *encoding) {
    PyObject *text = PyUnicode_FromString(signs);
    int can = text != NULL ? can_encode(text, encoding) : -1;
    Py_XDECREF(text);
    return can;
}

/* "text" with what "encoding" cannot hold written as \u1234; steals "text". Where that fails too (an encoding that
 * nobody knows), the text as it is: the stream will say what it thinks of it. */
static PyObject *escape_for(PyObject *text, const char *encoding) {
    int can = can_encode(text, encoding);
    if (can > 0) return text;
    PyObject *encoded = can == 0 ? PyUnicode_AsEncodedString(text, encoding, "backslashreplace") : NULL;
    PyObject *escaped = encoded != NULL ? PyUnicode_FromEncodedObject(encoded, encoding, "strict") : NULL;
    Py_XDECREF(encoded);
    if (escaped == NULL && PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
        return text;
    }
    Py_DECREF(text);
    return escaped;
}

/* The report as "stream" can take it. "encoding" is NULL where the stream has none: it takes any str. */
static PyObject *format_for(ctpy_formatter format, const void *what, PyObject *stream, const char *encoding) {
    int terminal = is_terminal(stream);
    int holds_signs = encoding != NULL && terminal >= 0 ? can_encode_signs(encoding) : 1;
    if (terminal < 0 || holds_signs < 0) return NULL;
    const ct_report_options options = {
        .size = sizeof options, .color = ct_report_color(terminal), .ascii = !holds_signs};
    PyObject *text = format(what, &options);
    return text != NULL && encoding != NULL ? escape_for(text, encoding) : text;
}

static int write_to(PyObject *stream, ctpy_formatter format, const void *what) {
    PyObject *encoding = get_optional(stream, "encoding");
    if (encoding == NULL && PyErr_Occurred()) return -1;
    const char *name = encoding != NULL && PyUnicode_Check(encoding) ? PyUnicode_AsUTF8(encoding) : NULL;
    if (name == NULL) PyErr_Clear();
    PyObject *text = format_for(format, what, stream, name);
    Py_XDECREF(encoding);
    PyObject *method = text != NULL ? PyObject_GetAttrString(stream, "write") : NULL;
    PyObject *written = method != NULL ? PyObject_CallOneArg(method, text) : NULL;
    Py_XDECREF(method);
    Py_XDECREF(text);
    Py_XDECREF(written);
    return written != NULL ? 0 : -1;
}

int ctpy_write(PyObject *file, ctpy_formatter format, const void *what) {
    PyObject *stream = file != NULL ? file : PySys_GetObject("stdout");
    if (stream == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "lost sys.stdout: the report cannot be printed; give a file=");
        return -1;
    }
    if (stream == Py_None) return 0;
    Py_INCREF(stream); /* writing may replace sys.stdout */
    int status = write_to(stream, format, what);
    Py_DECREF(stream);
    return status;
}

static PyObject *format_result(const void *result, const ct_report_options *options) {
    return ctpy_format(result, options);
}

static PyObject *format_verbose(const void *result, const ct_report_options *options) {
    ct_report_options verbose = *options;
    verbose.verbose = 1;
    return ctpy_format(result, &verbose);
}

int ctpy_print(const ct_result *result, PyObject *file, int verbose) {
    return result->name_length == 0 ? 0 : ctpy_write(file, verbose ? format_verbose : format_result, result);
}
