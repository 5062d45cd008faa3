/* SPDX-License-Identifier: MIT
 *
 * module.c: the extension module codetimer._codetimer: its table of functions, its state, its slots.
 *
 * Multi-phase initialisation and heap types: the module can be loaded by every interpreter of a process, also by those
 * with a GIL of their own, and none sees another's objects.
 */
#include "counting.h"
#include "live.h"
#include "measured.h"
#include "monitoring.h"
#include "program.h"
#include "underway.h"

PyDoc_STRVAR(time_doc,
             "time($module, /, name, n=None, fn=..., *, file=None, budget=None, gc_time=False, memory=False, "
             "verbose=False)\n--\n\n"
             "Call fn() exactly n times, or as often as fits, print a report, and return the Result.\n\n"
             "name: str, the title of the report; empty: nothing is printed.\n"
             "n: int, 0 to 2**63 - 1 (anything with __index__; no bool, float or str); None: as many calls as fit\n"
             "    into the budget, after some to warm up, which are not in the result.\n"
             "fn: a callable without arguments; what it returns is dropped. Async functions are refused; of a\n"
             "    generator function only the creation of its generators is timed, and a note says so.\n"
             "file: an object with write(str); None: sys.stdout as it is when the run has ended.\n"
             "budget: seconds for n=None, above 0; None: 0.2. A first call that takes longer is the result.\n"
             "gc_time: also measure the pauses of the collector, by an entry in gc.callbacks that is there only\n"
             "    during the run. Each collection of this interpreter, also of other threads, costs 0.3 us more.\n"
             "memory: count in a pass of its own, after the run, what up to 100 further calls ask of Python's\n"
             "    allocators; where that is not possible (while tracemalloc traces) the result says why.\n"
             "verbose: print the spread, what the system did, and the cost of an empty call as well.\n\n"
             "A full garbage collection precedes the run; during it the collector is left as it is and its\n"
             "collections are counted. Times are in nanoseconds.\n\n"
             "An exception that fn raises, or Ctrl-C, ends the run: the partial report is printed, last_result()\n"
             "holds the partial result, and the exception goes on unchanged.\n"
             "Raises TypeError or ValueError for wrong arguments, before anything runs, and whatever writing the\n"
             "report raises, after last_result() has been set.\n"
             "Any thread may time; other threads go on running meanwhile, and fn may call time itself.");

PyDoc_STRVAR(initialize_doc,
             "initialize($module, /, priority='high', cpu=None)\n--\n\n"
             "Prepare the calling thread for measuring and say what was obtained, as an Environment.\n\n"
             "priority: 'high', 'highest', 'realtime', or None to leave it. A refusal by the system is not an error\n"
             "    but a fact in the Environment; a priority that is already higher is left.\n"
             "cpu: int, the CPU to pin this thread to; None: no pin.\n\n"
             "Raises TypeError or ValueError for wrong arguments. Use it as a context manager, or call restore(), to\n"
             "put back what was found; only the thread that called initialize can do that.");

PyDoc_STRVAR(last_result_doc, "last_result($module, /)\n--\n\n"
                              "The Result of the last run that ended in this interpreter, on whatever thread, also of\n"
                              "one that an exception ended early. None before the first.");

PyDoc_STRVAR(clock_info_doc, "clock_info($module, /)\n--\n\n"
                             "Describe the clock behind time and now_ns, as a ClockInfo.\n\n"
                             "Resolution and cost are measured anew at each call, which takes about 0.1 ms.");

PyDoc_STRVAR(thread_cycles_doc, "thread_cycles($module, /)\n--\n\n"
                                "CPU cycles charged to the calling thread so far, as a ThreadCycles.\n\n"
                                "Only differences within one thread mean something. Costs a system call (about 1 us).");

PyDoc_STRVAR(poll_doc, "poll($module, /)\n--\n\n"
                       "Do the housekeeping that is due: heartbeat, members lists changed from outside.\n\n"
                       "Measured calls do it by themselves, once a second; this is for a program in which none ends.\n"
                       "Returns how often the members list has changed, by whomever. From any thread.");
PyDoc_STRVAR(now_ns_doc, "now_ns($module, /)\n--\n\n"
                         "Monotonic nanoseconds since an arbitrary moment, as an int. Never steps back within a\n"
                         "process, on any thread.");

PyDoc_STRVAR(report_doc, "report($module, /, file=None)\n--\n\n"
                         "Print the table of all counters with calls, longest total first.\n\n"
                         "file: an object with write(str); None: sys.stdout. Averages, percentiles and extremes are\n"
                         "over all calls since the counter was made or reset. Disabled counters are left out.");

PyDoc_STRVAR(trace_increments_doc,
             "trace_increments($module, on, /)\n--\n\n"
             "Whether each finished call is told to the logger 'codetimer' at level DEBUG, as\n"
             "'counter KEY incremented by N ns' (off at first). Returns what it was before.\n\n"
             "It holds for all counters of this interpreter. A call then costs some microseconds more, which are not\n"
             "counted, also where the level of the logger lets nothing through.");

PyDoc_STRVAR(module_doc,
             "How long code takes, how many CPU cycles it costs, and what the garbage collector did meanwhile.");

PyDoc_STRVAR(measured_doc,
             "measured($module, fn=None, /, *, name=None, category=None, help=None)\n--\n\n"
             "Count every call of fn, and how long it takes, for ever after: see counters and report().\n\n"
             "fn: a function or other callable; a staticmethod, classmethod, property, cached_property, partial and\n"
             "    the like, in either order of decorators; or a class, whose own methods are then measured in place.\n"
             "    Left out: what is returned is a decorator.\n"
             "name: str, the member; None: its module and qualified name.\n"
             "category: str, the group; None: the part of the member before its first dot.\n"
             "help: str, a sentence for readers.\n\n"
             "Returns what stands in place of fn and behaves as fn does; the same object if fn is measured already\n"
             "(another name or category is then not taken, which is logged), or if there is no room or memory for\n"
             "another counter (which is logged once); the same class for a class. Of the methods that Python asks\n"
             "of a type alone, a measured object has, where its own has them: comparison, hash, bool, len,\n"
             "subscripts, in, iter and with; not arithmetic, next, await, async with.\n"
             "A coroutine, generator or async generator counts when it ends; what never starts does not count. It has\n"
             "two durations: elapsed, from its first step to its end, and active, while it ran (active_ns). Closed,\n"
             "cancelled or dropped half way it counts as cancelled. While the counter is disabled the bare one is\n"
             "returned, and a call under way when it is enabled is not counted.\n"
             "Raises TypeError for what is not callable and for an immutable type; ValueError for a name that cannot\n"
             "be.");

PyDoc_STRVAR(processes_doc,
             "processes($module, /, directory=None)\n--\n\n"
             "The processes that publish counters, as a list of Process: one for each segment, also for those that\n"
             "processes left behind when they ended, and for files that cannot be read, with the reason.\n\n"
             "directory: where to look (a path); None: where the processes of this user publish.\n"
             "Raises OSError where the directory cannot be read; that it is not there yet is no error for None.");

PyDoc_STRVAR(attach_doc,
             "attach($module, /, pid, *, directory=None)\n--\n\n"
             "The counters of a process, as a View. The process is not stopped and notices nothing.\n\n"
             "pid: int, or a Process. Of several processes that had this pid the living one is meant, else the last.\n"
             "directory: as for processes().\n\n"
             "Raises ProcessLookupError where it publishes no counters, PermissionError where they are another\n"
             "user's, ValueError where they cannot be read, or where two processes with this pid are alive.");

PyDoc_STRVAR(reap_doc, "reap($module, path, /)\n--\n\n"
                       "Delete the segment of a dead process.\n\n"
                       "path: its Process.path. Raises PermissionError where the process lives or the file is not\n"
                       "yours, FileNotFoundError where there is none, ValueError where it is no segment.");

PyDoc_STRVAR(segment_info_doc, "segment_info($module, /)\n--\n\n"
                               "Whether this process publishes its counters, where, and if not why, as a SegmentInfo.");

PyDoc_STRVAR(configure_doc,
             "configure($module, /, members=None, file=None, provider=None)\n--\n\n"
             "Say which members are measured, and return the Settings in force.\n\n"
             "members: str, a members list as Members takes it; it holds at once, for the counters that are there\n"
             "    and those to come. None leaves it as it is; '*' measures all. A pattern that is wrong is skipped,\n"
             "    with a line in the log and in matches.\n"
             "file: a path; from now on the list is followed in this file: an edit takes effect within a second. It\n"
             "    need not be there yet; what cannot be used changes nothing, is logged once, and is in problem.\n"
             "    None leaves it; an empty str ends it, as settings.file = None does.\n"
             "provider: an object with a method members(), which returns a members list (str), or None for no news;\n"
             "    it is asked four times a second, or, if it has a method subscribe(changed), whenever it has called\n"
             "    changed(). None leaves it; settings.provider = None ends it.\n\n"
             "Whoever writes the list last wins; a file or a provider writes it only when what it says changes. To\n"
             "follow either takes a daemon thread, named codetimer; a provider is asked in another one.\n"
             "Raises TypeError or ValueError for wrong arguments, before anything is done.");

PyDoc_STRVAR(monitoring_start_doc,
             "_monitoring_start($module, /, members, tool_name='codetimer')\n--\n\n"
             "Measure the functions that a members list selects, by sys.monitoring (3.12 and later; before:\n"
             "NotImplementedError). Again: select others instead.\n\n"
             "members: str, a members list; None: follow the process's list, whatever it becomes; or a tuple of\n"
             "    these: what any of them selects.\n"
             "Raises RuntimeError where sys.monitoring has no free tool id.");

PyDoc_STRVAR(monitoring_update_doc, "_monitoring_update($module, /)\n--\n\n"
                                    "Follow a members list of the process that has changed. From any thread.");

PyDoc_STRVAR(monitoring_stop_doc, "_monitoring_stop($module, /)\n--\n\n"
                                  "Measure nothing by sys.monitoring any more, and give the tool id back.");

PyDoc_STRVAR(monitoring_info_doc,
             "_monitoring_info($module, /)\n--\n\n"
             "{'reached': list of members selected, as far as they have been seen, 'tool': id or None, 'members':\n"
             "what was given, 'seen': code objects, 'measured': of these, 'under_way': calls}");

static PyObject *get_last_result(PyObject *module, PyObject *ignored) {
    (void)ignored;
    PyObject *last = ctpy_get_state(module)->last_result;
    return Py_NewRef(last != NULL ? last : Py_None);
}

static PyObject *get_clock_info(PyObject *module, PyObject *ignored) {
    (void)ignored;
    ct_clock clock;
    ct_clock_info(&clock);
    return ctpy_clock_new(ctpy_get_state(module), &clock);
}

static PyObject *get_thread_cycles(PyObject *module, PyObject *ignored) {
    (void)ignored;
    ct_cycles cycles;
    (void)ct_thread_cycles(&cycles); /* a refusal is in the struct too, with its reason */
    return ctpy_cycles_new(ctpy_get_state(module), &cycles);
}

static PyObject *poll_housekeeping(PyObject *module, PyObject *ignored) {
    (void)module, (void)ignored;
    uint64_t changes;
    Py_BEGIN_ALLOW_THREADS changes = ct_poll();
    Py_END_ALLOW_THREADS return PyLong_FromUnsignedLongLong(changes);
}

static PyObject *get_now_ns(PyObject *module, PyObject *ignored) {
    (void)module, (void)ignored;
    return PyLong_FromUnsignedLongLong(ct_now_ns());
}

static PyMethodDef functions[] = {
    {"measured", CTPY_WITH_KEYWORDS(ctpy_measured), METH_VARARGS | METH_KEYWORDS, measured_doc},
    {"_measured_again", ctpy_measured_again, METH_VARARGS, NULL},
    {"_standin_wrapped", ctpy_standin_wrapped, METH_O, NULL},
    {"_standin_note", ctpy_standin_note, METH_VARARGS, NULL},
    {"_standin_pass", ctpy_standin_pass, METH_VARARGS, NULL},
    {"_member", ctpy_member, METH_O, NULL},
    {"_and_then", ctpy_and_then, METH_VARARGS, NULL},
    {"time", CTPY_WITH_KEYWORDS(ctpy_time), METH_VARARGS | METH_KEYWORDS, time_doc},
    {"compare", CTPY_WITH_KEYWORDS(ctpy_compare), METH_VARARGS | METH_KEYWORDS, ctpy_compare_doc},
    {"initialize", CTPY_WITH_KEYWORDS(ctpy_initialize), METH_VARARGS | METH_KEYWORDS, initialize_doc},
    {"last_result", get_last_result, METH_NOARGS, last_result_doc},
    {"last_comparison", ctpy_last_comparison, METH_NOARGS, ctpy_last_comparison_doc},
    {"clock_info", get_clock_info, METH_NOARGS, clock_info_doc},
    {"thread_cycles", get_thread_cycles, METH_NOARGS, thread_cycles_doc},
    {"now_ns", get_now_ns, METH_NOARGS, now_ns_doc},
    {"poll", poll_housekeeping, METH_NOARGS, poll_doc},
    {"report", CTPY_WITH_KEYWORDS(ctpy_report), METH_VARARGS | METH_KEYWORDS, report_doc},
    {"trace_increments", ctpy_trace_increments, METH_O, trace_increments_doc},
    {"processes", CTPY_WITH_KEYWORDS(ctpy_processes), METH_VARARGS | METH_KEYWORDS, processes_doc},
    {"attach", CTPY_WITH_KEYWORDS(ctpy_attach), METH_VARARGS | METH_KEYWORDS, attach_doc},
    {"reap", ctpy_reap, METH_O, reap_doc},
    {"segment_info", ctpy_segment_info, METH_NOARGS, segment_info_doc},
    {"configure", CTPY_WITH_KEYWORDS(ctpy_configure), METH_VARARGS | METH_KEYWORDS, configure_doc},
    {"_follow", ctpy_follow, METH_NOARGS, NULL},
    {"_tell_unmatched", ctpy_tell_unmatched, METH_NOARGS, NULL},
    {"_provide", ctpy_provide, METH_O, NULL},
    {"_is_main", ctpy_is_main, METH_NOARGS, NULL},
    {"_soon", ctpy_soon, METH_O, NULL},
    {"_monitoring_start", CTPY_WITH_KEYWORDS(ctpy_monitoring_start), METH_VARARGS | METH_KEYWORDS,
     monitoring_start_doc},
    {"_monitoring_update", ctpy_monitoring_update, METH_NOARGS, monitoring_update_doc},
    {"_monitoring_stop", ctpy_monitoring_stop, METH_NOARGS, monitoring_stop_doc},
    {"_monitoring_info", ctpy_monitoring_info, METH_NOARGS, monitoring_info_doc},
    {"_run_file", ctpy_run_file, METH_O, NULL},
    {"_run_stdin", ctpy_run_stdin, METH_NOARGS, NULL},
    {"_run_code", ctpy_run_code, METH_VARARGS, NULL},
    {"_run_call", ctpy_run_call, METH_VARARGS, NULL},
    {"_and_change", ctpy_and_change, METH_VARARGS, NULL},
    {"_untraced", ctpy_untraced, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static int add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **type) {
    *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *type == NULL ? -1 : PyModule_AddType(module, *type);
}

static int add_live_types(PyObject *module, ctpy_state *state) {
    if (ctpy_process_add_types(module, state) < 0) return -1;
    if (ctpy_members_add_types(module, state) < 0) return -1;
    if (add_type(module, &ctpy_view_spec, &state->view_type) < 0) return -1;
    if (add_type(module, &ctpy_members_spec, &state->members_type) < 0) return -1;
    return add_type(module, &ctpy_settings_spec, &state->settings_type);
}

static int add_measured_types(PyObject *module, ctpy_state *state) {
    PyType_Spec *const specs[CTPY_MEASURED_TYPES] = {&ctpy_measured_function_spec, &ctpy_measured_descriptor_spec,
                                                     &ctpy_measured_object_spec, &ctpy_measured_attribute_spec};
    for (size_t i = 0; i < CTPY_MEASURED_TYPES; i++)
        if (add_type(module, specs[i], &state->measured_types[i]) < 0) return -1;
    return 0;
}

static int keep_gc_functions(ctpy_state *state) {
    PyObject *gc = PyImport_ImportModule("gc");
    if (gc == NULL) return -1;
    state->gc_collect = PyObject_GetAttrString(gc, "collect");
    state->gc_get_stats = PyObject_GetAttrString(gc, "get_stats");
    state->gc_get_threshold = PyObject_GetAttrString(gc, "get_threshold");
    state->gc_callbacks = PyObject_GetAttrString(gc, "callbacks");
    Py_DECREF(gc);
    if (state->gc_callbacks != NULL && !PyList_Check(state->gc_callbacks))
        PyErr_SetString(PyExc_ImportError, "codetimer: gc.callbacks is not the list that it should be");
    return PyErr_Occurred() ? -1 : 0;
}

static int exec_module(PyObject *module) {
    ctpy_state *state = ctpy_get_state(module);
    if (keep_gc_functions(state) < 0 || ctpy_block_open(state) < 0) return -1;
    if (add_type(module, &ctpy_result_spec, &state->result_type) < 0) return -1;
    if (add_type(module, &ctpy_environment_spec, &state->environment_type) < 0) return -1;
    if (add_type(module, &ctpy_comparison_spec, &state->comparison_type) < 0) return -1;
    if (add_type(module, &ctpy_statement_spec, &state->statement_type) < 0 || ctpy_files_add(module) < 0) return -1;
    if (ctpy_info_add_types(module, state) < 0 || ctpy_facts_add_types(module, state) < 0) return -1;
    if (add_type(module, &ctpy_counter_spec, &state->counter_type) < 0) return -1;
    if (add_type(module, &ctpy_sample_spec, &state->sample_type) < 0) return -1;
    if (add_type(module, &ctpy_counters_spec, &state->counters_type) < 0) return -1;
    if (add_type(module, &ctpy_timer_spec, &state->timer_type) < 0) return -1;
    if (ctpy_counters_add(module, state) < 0) return -1;
    if (add_live_types(module, state) < 0) return -1;
    if (add_measured_types(module, state) < 0) return -1;
    if (ctpy_underway_add_types(module, state) < 0) return -1;
    if (ctpy_monitoring_open(module, state) < 0) return -1;
    return PyModule_AddStringConstant(module, "__version__", ct_version());
}

static int traverse_module(PyObject *module, visitproc visit, void *arg) {
    ctpy_state *state = ctpy_get_state(module);
    Py_VISIT(state->result_type);
    Py_VISIT(state->environment_type);
    Py_VISIT(state->clock_type);
    Py_VISIT(state->cycles_type);
    Py_VISIT(state->priority_type);
    Py_VISIT(state->gc_collect);
    Py_VISIT(state->gc_get_stats);
    Py_VISIT(state->gc_get_threshold);
    Py_VISIT(state->safe_point);
    for (size_t i = 0; i < CTPY_BLOCK_SIZES; i++) Py_VISIT(state->block_codes[i]);
    Py_VISIT(state->gc_callbacks);
    Py_VISIT(state->last_result);
    Py_VISIT(state->last_comparison);
    Py_VISIT(state->comparison_type);
    Py_VISIT(state->statement_type);
    Py_VISIT(state->usage_type);
    Py_VISIT(state->gc_time_type);
    Py_VISIT(state->memory_type);
    Py_VISIT(state->overhead_type);
    Py_VISIT(state->ratio_type);
    Py_VISIT(state->counter_type);
    Py_VISIT(state->sample_type);
    Py_VISIT(state->counters_type);
    Py_VISIT(state->timer_type);
    Py_VISIT(state->process_type);
    Py_VISIT(state->info_type);
    Py_VISIT(state->segment_type);
    Py_VISIT(state->view_type);
    Py_VISIT(state->members_type);
    Py_VISIT(state->pattern_type);
    Py_VISIT(state->settings_type);
    Py_VISIT(state->logger);
    for (size_t i = 0; i < CTPY_MEASURED_TYPES; i++) Py_VISIT(state->measured_types[i]);
    Py_VISIT(state->special_types);
    for (size_t i = 0; i < CTPY_UNDERWAY_TYPES; i++) Py_VISIT(state->underway_types[i]);
    return ctpy_monitoring_visit(state, visit, arg);
}

static int clear_module(PyObject *module) {
    ctpy_state *state = ctpy_get_state(module);
    Py_CLEAR(state->result_type);
    Py_CLEAR(state->environment_type);
    Py_CLEAR(state->clock_type);
    Py_CLEAR(state->cycles_type);
    Py_CLEAR(state->priority_type);
    Py_CLEAR(state->gc_collect);
    Py_CLEAR(state->gc_get_stats);
    Py_CLEAR(state->gc_get_threshold);
    Py_CLEAR(state->safe_point);
    for (size_t i = 0; i < CTPY_BLOCK_SIZES; i++) Py_CLEAR(state->block_codes[i]);
    Py_CLEAR(state->gc_callbacks);
    Py_CLEAR(state->last_result);
    Py_CLEAR(state->last_comparison);
    Py_CLEAR(state->comparison_type);
    Py_CLEAR(state->statement_type);
    Py_CLEAR(state->usage_type);
    Py_CLEAR(state->gc_time_type);
    Py_CLEAR(state->memory_type);
    Py_CLEAR(state->overhead_type);
    Py_CLEAR(state->ratio_type);
    Py_CLEAR(state->counter_type);
    Py_CLEAR(state->sample_type);
    Py_CLEAR(state->counters_type);
    Py_CLEAR(state->timer_type);
    Py_CLEAR(state->process_type);
    Py_CLEAR(state->info_type);
    Py_CLEAR(state->segment_type);
    Py_CLEAR(state->view_type);
    Py_CLEAR(state->members_type);
    Py_CLEAR(state->pattern_type);
    Py_CLEAR(state->settings_type);
    Py_CLEAR(state->logger);
    for (size_t i = 0; i < CTPY_MEASURED_TYPES; i++) Py_CLEAR(state->measured_types[i]);
    Py_CLEAR(state->special_types);
    for (size_t i = 0; i < CTPY_UNDERWAY_TYPES; i++) Py_CLEAR(state->underway_types[i]);
    return 0;
}

static void free_module(void *module) {
    ctpy_monitoring_close(ctpy_get_state((PyObject *)module));
    (void)clear_module((PyObject *)module);
    ct_writer_close(ctpy_get_state((PyObject *)module)->writer);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, CTPY_SLOT(exec_module)},
#if PY_VERSION_HEX >= 0x030c0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,         .m_name = "_codetimer",  .m_doc = module_doc,
    .m_size = sizeof(ctpy_state),  .m_methods = functions,  .m_slots = slots,
    .m_traverse = traverse_module, .m_clear = clear_module, .m_free = free_module,
};

PyMODINIT_FUNC PyInit__codetimer(void);
PyMODINIT_FUNC PyInit__codetimer(void) { return PyModuleDef_Init(&definition); }
