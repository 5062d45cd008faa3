/* SPDX-License-Identifier: MIT
 *
 * allocations.c: hooks that pass on every request to the allocator that was there before, and count those of one
 * thread.
 *
 * The hooks add no header to the blocks, so they may come and go at any time (PyMem_SetAllocator: after the start of
 * Python only such hooks are allowed). They sit on the domains MEM and OBJ, which are used with the GIL held; RAW is
 * used without it and cannot be swapped safely. Counting and timing are never mixed: this is a pass of its own.
 *
 * There is one set of allocators in a process and so one pass at a time; this is the one global of the binding.
 * Invariant: the hooks are in place exactly while a pass runs, unless fn has put another hook above them that stays.
 * Ours is then only passed through, and taken out by the next pass that finds it on top. It keeps no block.
 */
#include "allocations.h"

#include "blocks.h"

#if defined(__GNUC__)
#define THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))
#else
#define THREAD_LOCAL _Thread_local
#endif

enum { DOMAINS = 2 };

static const PyMemAllocatorDomain domains[DOMAINS] = {PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ};

static struct pass {
    PyMemAllocatorEx before[DOMAINS];
    int hooked[DOMAINS];
    int runs;
    ct_memory counted;
    int64_t in_use, peak;
    ctpy_blocks blocks;
} pass;

static THREAD_LOCAL int counts; /* what this thread asks for is counted */

/* ---- the hooks ---- */

static void count_block(void *block, size_t size) {
    if (block == NULL) return;
    pass.counted.allocations++;
    pass.counted.allocated_bytes += size;
    pass.in_use += (int64_t)size - (int64_t)ctpy_blocks_put(&pass.blocks, block, size);
    if (pass.in_use > pass.peak) pass.peak = pass.in_use;
}

static void *hook_malloc(void *context, size_t size) {
    const PyMemAllocatorEx *before = context;
    void *block = before->malloc(before->ctx, size);
    if (counts) count_block(block, size);
    return block;
}

static void *hook_calloc(void *context, size_t count, size_t size) {
    const PyMemAllocatorEx *before = context;
    void *block = before->calloc(before->ctx, count, size);
    if (counts) count_block(block, count * size); /* CPython has refused what overflows */
    return block;
}

/* Of a block that is older than the pass nobody knows by how much it grew. */
static void count_change(int known, size_t old_size, void *block, size_t size) {
    pass.counted.reallocations++;
    (void)ctpy_blocks_put(&pass.blocks, block, size);
    if (!known) old_size = size;
    if (size > old_size) pass.counted.allocated_bytes += size - old_size;
    pass.in_use += (int64_t)size - (int64_t)old_size;
    if (pass.in_use > pass.peak) pass.peak = pass.in_use;
}

static void *hook_realloc(void *context, void *old, size_t size) {
    const PyMemAllocatorEx *before = context;
    size_t old_size = 0;
    int known = counts && old != NULL && ctpy_blocks_take(&pass.blocks, old, &old_size);
    void *block = before->realloc(before->ctx, old, size);
    if (!counts) return block;
    if (old == NULL) count_block(block, size);
    if (old != NULL && block != NULL) count_change(known, old_size, block, size);
    if (old != NULL && block == NULL && known) (void)ctpy_blocks_put(&pass.blocks, old, old_size);
    return block;
}

static void hook_free(void *context, void *block) {
    const PyMemAllocatorEx *before = context;
    size_t size;
    if (counts && block != NULL) {
        pass.counted.frees++;
        if (ctpy_blocks_take(&pass.blocks, block, &size)) pass.in_use -= (int64_t)size;
    }
    before->free(before->ctx, block);
}

/* ---- in and out ---- */

static int is_on_top(int i) {
    PyMemAllocatorEx now;
    PyMem_GetAllocator(domains[i], &now);
    return now.ctx == &pass.before[i] && now.malloc == hook_malloc;
}

static void hook(void) {
    for (int i = 0; i < DOMAINS; i++) {
        if (pass.hooked[i]) continue; /* left in by an earlier pass */
        PyMem_GetAllocator(domains[i], &pass.before[i]);
        PyMemAllocatorEx ours = {&pass.before[i], hook_malloc, hook_calloc, hook_realloc, hook_free};
        PyMem_SetAllocator(domains[i], &ours);
        pass.hooked[i] = 1;
    }
}

static void unhook(void) {
    for (int i = 0; i < DOMAINS; i++) {
        if (!pass.hooked[i] || !is_on_top(i)) continue;
        PyMem_SetAllocator(domains[i], &pass.before[i]);
        pass.hooked[i] = 0;
    }
}

/* ---- whether it is possible ---- */

static int is_tracing(void) {
    PyObject *name = PyUnicode_FromString("tracemalloc");
    PyObject *module = name != NULL ? PyImport_GetModule(name) : NULL;
    PyObject *tracing = module != NULL ? PyObject_CallMethod(module, "is_tracing", NULL) : NULL;
    int is = tracing != NULL && PyObject_IsTrue(tracing) == 1;
    Py_XDECREF(tracing);
    Py_XDECREF(module);
    Py_XDECREF(name);
    PyErr_Clear();
    return is;
}

static const char *why_not(void) {
#ifdef Py_GIL_DISABLED
    return "not on a free-threaded Python: allocators are used by all threads at once there";
#endif
    if (pass.runs) return "another memory pass is running";
    if (is_tracing()) return "tracemalloc is tracing, and hooks the allocators itself: stop it first";
    if (PyInterpreterState_Next(PyInterpreterState_Head()) != NULL)
        return "there are several interpreters in this process, and allocators belong to all of them";
    if (!ctpy_blocks_open(&pass.blocks)) return "there is no memory for it";
    return NULL;
}

/* ---- the pass ---- */

static int call_once(PyObject *fn, int counted) {
    counts = counted;
    PyObject *result = PyObject_CallNoArgs(fn);
    Py_XDECREF(result);
    counts = 0; /* handlers of signals are not part of the call */
    return result != NULL && PyErr_CheckSignals() == 0 ? 0 : -1;
}

/* What a call asked for that was not completed does not count. The first is not counted where there are several: it
 * makes what the interpreter keeps for the others (frames, caches). */
static int call_counted(PyObject *fn, uint64_t calls, uint64_t *made) {
    *made = 0;
    if (calls > 1 && call_once(fn, 0) < 0) return -1;
    for (; *made < calls; ++*made) {
        const ct_memory before = pass.counted;
        const int64_t peak_before = pass.peak;
        if (call_once(fn, 1) == 0) continue;
        pass.counted = before;
        pass.peak = peak_before;
        return -1;
    }
    return 0;
}

int ctpy_count_allocations(PyObject *fn, uint64_t calls, ct_memory *counted) {
    uint64_t made;
    *counted = (ct_memory){.reason = calls == 0 ? "there was no call" : why_not()};
    if (counted->reason != NULL) return 0;
    pass.counted = *counted;
    pass.in_use = pass.peak = 0;
    pass.runs = 1;
    hook();
    int status = call_counted(fn, calls, &made);
    unhook();
    pass.runs = 0;
    ctpy_blocks_close(&pass.blocks);
    *counted = pass.counted;
    counted->calls = made;
    counted->peak_bytes = (uint64_t)pass.peak;
    if (made == 0) counted->reason = "the first call of the memory pass did not return";
    return status;
}
