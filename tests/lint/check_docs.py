# SPDX-License-Identifier: MIT
"""Guards the manuals: what codetimer.h declares is described for Python and Lua too, or is listed here as C only."""

from __future__ import annotations

import re

import tree

# The bindings make these visible in another way, or not at all.
C_ONLY = {
    "ct_status_name", "ct_status_text", "ct_version",  # exceptions; nil, message, code; __version__
    "ct_cycles_kind_name",  # cycles_kind is that text
    "ct_priority_raise", "ct_priority_restore", "ct_priority_free",  # initialize and its environment
    "ct_environment_restore", "ct_environment_free", "ct_environment_format",  # methods
    "ct_time_begin", "ct_time_next", "ct_time_done", "ct_time_due", "ct_time_cut",  # inside time
    "ct_time_note", "ct_time_end", "ct_time_progress", "ct_time_per_call_ns",
    "ct_run_free", "ct_result_free",  # the host's collector
    "ct_runs_format", "ct_progress_format", "ct_unit",  # codetimer time
    "ct_report_format", "ct_report_color", "ct_report_ascii", "ct_is_terminal",  # str(result), tostring(result)
    "ct_enter", "ct_leave", "ct_leave_active", "ct_abandon", "ct_report_counters",  # inside measured; report
    "ct_tend",  # poll
}  # fmt: skip
# Of these objects the bindings make types with methods, whose names they choose.
OBJECTS_C_ONLY = (
    "ct_counter_", "ct_active_", "ct_counters_", "ct_writer_", "ct_sample_",  # Counter, counters, timer, Sample
    "ct_members_", "ct_segment_", "ct_listing_", "ct_view_",  # Members, configure, reap, processes, View
    "ct_config_",  # configure
    "ct_result_", "ct_compare_", "ct_comparison_", "ct_ratio_", "ct_export_",  # Result, compare, Comparison, to_json
)  # fmt: skip
FIELDS_C_ONLY = {
    "name_length", "gc_generations", "notes_count", "batches",  # lengths
    "overheads_count",
    "per_call_known", "interval_known", "net_known", "gc_time_known",  # None, nil
    "clock",
}  # fmt: skip

header = "\n".join(tree.text(path) for path in tree.files(".h", under="core/codetimer"))
functions = set(re.findall(r"^CT_API [^;(]*?\b(ct_\w+)\(", header, re.MULTILINE))
struct = re.search(r"typedef struct ct_result \{(.*?)\} ct_result;", header, re.DOTALL)
assert functions and struct, "core/codetimer.h is not written as expected"
fields = set(re.findall(r"(\w+);", re.sub(r"/\*.*?\*/", "", struct[1], flags=re.DOTALL)))

python = "\n".join(tree.text(path) for path in tree.files(".pyi", under="bindings-python/codetimer/"))
lua = "\n".join(tree.text(path) for path in tree.files(".lua", under="bindings-lua/library/"))

for name in sorted(C_ONLY - functions) + sorted(FIELDS_C_ONLY - fields):
    tree.found("tests/lint/check_docs.py", 0, f"{name} is listed here, but codetimer.h does not have it")
for name in sorted(functions - C_ONLY):
    if name.startswith(OBJECTS_C_ONLY):
        continue
    plain = name.removeprefix("ct_")
    if not re.search(rf"^def {plain}\(", python, re.MULTILINE):
        tree.found("bindings-python/codetimer", 0, f"{plain}() is in codetimer.h, but in no .pyi file")
    if not re.search(rf"^function [\w.]+\.{plain}\(", lua, re.MULTILINE):
        tree.found("bindings-lua/library/codetimer.lua", 0, f"{plain}() is in codetimer.h, but not annotated")
for name in sorted(fields - FIELDS_C_ONLY):
    if not re.search(rf"\b{name}\b", python):
        tree.found("bindings-python/codetimer", 0, f"ct_result.{name} is in codetimer.h, but in no .pyi file")
    if not re.search(rf"^---@field {name}\b", lua, re.MULTILINE):
        tree.found("bindings-lua/library/codetimer.lua", 0, f"ct_result.{name} is in codetimer.h, but not annotated")
tree.finish()
