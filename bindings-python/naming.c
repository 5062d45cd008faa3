/* SPDX-License-Identifier: MIT
 *
 * naming.c: which member a callable is: module.qualname.
 *
 * Objects answer for themselves where they can; a callable object without a name is the __call__ of its type, a method
 * of a built-in type is named after the type. __main__ is named after what it was started from, so that the same
 * function has the same name however the program runs.
 */
#include "measured.h"

PyObject *ctpy_get_str(PyObject *object, const char *name) {
    PyObject *value = PyObject_GetAttrString(object, name);
    if (value != NULL && !PyUnicode_Check(value)) Py_CLEAR(value);
    (void)ctpy_forgive();
    return value;
}

static int is_main(PyObject *module) {
    return PyUnicode_CompareWithASCIIString(module, "__main__") == 0 ||
           PyUnicode_CompareWithASCIIString(module, "__mp_main__") == 0;
}

/* Steals "module"; NULL stays NULL. */
static PyObject *resolve_main(PyObject *module) {
    if (module == NULL || !is_main(module)) return module;
    Py_DECREF(module);
    return ctpy_script_name("__main__");
}

/* "object.attribute.__module__", or that of the type of object.attribute. */
static PyObject *module_by(PyObject *object, const char *attribute) {
    PyObject *other = PyObject_GetAttrString(object, attribute);
    if (other == NULL) (void)ctpy_forgive();
    if (other == NULL) return NULL;
    PyObject *module = ctpy_get_str(PyType_Check(other) ? other : (PyObject *)Py_TYPE(other), "__module__");
    Py_DECREF(other);
    return module;
}

/* A method of a built-in type has no module of its own: [].append, str.upper. */
static PyObject *find_module(PyObject *object) {
    PyObject *module = ctpy_get_str(object, "__module__");
    if (module == NULL && !PyErr_Occurred()) module = module_by(object, "__objclass__");
    if (module == NULL && !PyErr_Occurred()) module = module_by(object, "__self__");
    return resolve_main(module);
}

/* Steals both; "module" may be NULL. */
static PyObject *join(PyObject *module, PyObject *qualname, const char *rest) {
    PyObject *member = NULL;
    if (qualname != NULL && module != NULL) member = PyUnicode_FromFormat("%U.%U%s", module, qualname, rest);
    if (qualname != NULL && module == NULL && !PyErr_Occurred()) member = PyUnicode_FromFormat("%U%s", qualname, rest);
    Py_XDECREF(module);
    Py_XDECREF(qualname);
    return member;
}

PyObject *ctpy_class_qualname(PyTypeObject *type) {
    if (PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return Py_NewRef(((PyHeapTypeObject *)type)->ht_qualname);
    const char *dot = strrchr(type->tp_name, '.');
    return PyUnicode_FromString(dot != NULL ? dot + 1 : type->tp_name);
}

/* As type finds it: a __getattribute__ of the metaclass is not asked. */
PyObject *ctpy_class_module(PyTypeObject *type) {
    PyObject *name = PyUnicode_FromString("__module__");
    PyObject *module = name != NULL ? PyType_Type.tp_getattro((PyObject *)type, name) : NULL;
    if (module != NULL && !PyUnicode_Check(module)) Py_CLEAR(module);
    Py_XDECREF(name);
    (void)ctpy_forgive();
    return module;
}

PyObject *ctpy_name_class(PyObject *module, PyObject *qualname) {
    module = resolve_main(Py_XNewRef(module));
    return PyErr_Occurred() ? NULL : join(module, Py_NewRef(qualname), "");
}

/* The __call__ of an object's type. */
static PyObject *name_type(PyTypeObject *type) {
    PyObject *module = resolve_main(ctpy_class_module(type));
    return join(module, PyErr_Occurred() ? NULL : ctpy_class_qualname(type), ".__call__");
}

/* "text" and the part, for what the user named. */
static PyObject *add_part(PyObject *text, const char *part) { return PyUnicode_FromFormat("%U%s", text, part); }

PyObject *ctpy_name_member(PyObject *object, const ctpy_labels *labels) {
    if (labels->name != NULL) return add_part(labels->name, labels->part);
    if (labels->otherwise != NULL) return add_part(labels->otherwise, labels->part);
    PyObject *qualname = ctpy_get_str(object, "__qualname__");
    if (qualname == NULL && !PyErr_Occurred()) qualname = ctpy_get_str(object, "__name__");
    if (qualname != NULL) return join(find_module(object), qualname, labels->part);
    return PyErr_Occurred() ? NULL : name_type(Py_TYPE(object));
}
