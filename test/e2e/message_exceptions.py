"""Texts that need no entry in troubleshooting.md, each with its reason.

A new text needs an entry. Only if it is no message, it may have an exception here:
as narrow as possible, and with the reason.
"""

# The contexts of texts that no user sees.
NOT_SHOWN = {
    "_Static_assert": "for those who build",
    "__asm__": "assembly",
    "volatile": "assembly",
}

# Functions that print parts of reports, pages and live views, or what a script does. Of
# their texts, and of those of the viewer page, only what says that something is missing
# or wrong counts.
PARTS = {
    "ljp_print_format", "ljp_print_str", "ljp_heap_format", "ljp_heap_table",
    "ljp_heap_sites_table", "ljp_heap_gatherer_line", "ljp_top_line", "ljp_page_fact",
    "text_head", "text_stores", "screen_text", "say",
}
PARTS_FILES = r"^tools/viewer/.*\.js$"
WRONG = (r"(?i)\b(no|not|nothing|cannot|missing|damaged|invalid|fewer|unknown|malformed|"
         r"incomplete|twice|changing|out of memory|session was ended)\b")

# Lists of ours that are no messages.
LISTS = {
    "LJP_ADVISE_LIST": "findings have a page of their own: doc/guide/advice.md",
    "LJP_COMMAND_LIST": "the help of commands",
    "LJP_EXPORT_LIST": "the help of export",
    "LJP_TOP_VIEW_LIST": "the help of top",
    "LJP_SETTING_VALUES": "what options take: the message is \"... but must be ...\"",
    "LJP_UNIT_KIND_LIST": "what a budget takes",
    "LJP_UNWIND_LIST": "for tests and benchmarks; users see LJP_CUT_LIST",
    "LJP_EPOCH_WHY_LIST": "what dump prints of an epoch",
    "LJP_INTERVAL_WHY_LIST": "what dump prints of an interval",
    "LJP_LJS_LIST": "names of frames",
    "LJP_DIFF_BY_LIST": "heads of columns",
    "LJP_FIGURE_LIST": "names of figures",
    "LJP_GC_PHASE_LIST": "names of phases",
    "LJP_JIT_LIST": "names of states",
    "LJP_VMSTATE_LIST": "names of states",
    "LJP_MEASURE_LIST": "names of measures",
    "LJP_MEM_TYPE_LIST": "names of types",
    "LJP_PAGE_KIND_LIST": "names of frames",
    "LJP_PAGE_VIEW_LIST": "names of tabs",
    "LJP_HEAPSNAPSHOT_NODES": "names that the format has",
    "LJP_HEAP_CTYPE_LIST": "names of types",
    "LJP_HEAP_FLAG_LIST": "properties of objects",
    "LJP_HEAP_HOW_LIST": "names of references",
    "LJP_HEAP_ROOT_LIST": "names of roots",
    "LJP_HEAP_TAKEN_LIST": "how dump says that a snapshot was taken",
}

# Files, texts, reason. Line ends and blanks around a text do not count.
EXCEPTIONS = [
    # Other kinds of texts.
    (r"\.c$", r"^Usage: |^usage: |^This ljprof was built without", "the help of a command"),
    (r"^(profilers/(api|memory)|src/luajit/heap|tools/(export/export|main)\.c)",
     r"\\n.*\\n|\.cfi|^movq|^return function", "several lines: help, assembly, Lua"),
    (r"^tools/(export|page|expect)/.*\.c$", r"^</?\w|^# |^desc: Notice|^--view cpu",
     "what a format or a table of options has"),
    (r"^tools/lua/", r"^(command -v|2>&1|%s export --to|use %-|%s holds %s|memprof event|"
     r"sysprof event|note: left out|the key is nil|started at|HEAP SUM)",
     "commands, lines of a report, an assertion"),
    # What begins each message of a script; the rest has the entry.
    (r"^(run|cmake/|test/engines/)", r"^((ljprof|run): error: %s|run: %s \(see ./run help\))$",
     "the beginning of messages"),
    (r"^tools/push/command.c", r"^ljprof push: %s$", "the beginning of a message"),
    # What is put into a message that has the entry.
    (r"^cmake/apply-patch.awk", r"outside of functions", "part of a message"),
    (r"^parsers/", r"^(at least|ies were|and %d more|debuginfod's file|the events|"
     r"(the )?symbol table|memory events|%s '%\.\*s' \(number %llu, OS number %llu\))$",
     "part of a message"),
    (r"^(profilers|src)/", r"^(the string '%\.60s'|the (second )?argument|the jitdump|"
     r"a symbolic link|a regular file|every event|unknown (error|status))$",
     "part of a message"),
    (r"^tools/(expect|export)/", r"^(, or (objects|samples)|memory events|"
     r"cpu, wall, gc-cost,.*)$", "part of a message"),
    (r"^tools/heap/", r"^(were sampled and|at least|, or have other labels)$",
     "part of a message"),
    (r"^tools/join/", r"^(, from the package %s|(no )?build ID|another user|try sudo,|"
     r"join it from there,|if it does not,|/dev/null: %s|are complete|"
     r"the program behind %s)$", "part of a message"),
    (r"^tools/page/", r"^(standard input|the input|of a thread)$", "part of a message"),
    (r"^tools/push/", r"^(is empty|plain ASCII text|its (lock|journal))$",
     "part of a message"),
    (r"^tools/record/", r"^(child process|more program|%s%zu segments of|the first and|"
     r"link it with our|' in its place)$", "part of a message"),
    (r"^tools/shared/command.c", r"^standard input$", "part of a message"),
    (r"^src/base/signals.h|^profilers/api/\w*(_lua|options)\.[ch]|"
     r"^tools/(gather/command|report/report)\.c",
     r"^(a (whole )?number of|a level of|a name of|a time of|the (mean )?number of|"
     r"the number or|the name of a file:|percent of|milliseconds,|true(,| or) |\\\"|"
     r"every = false)", "what an option takes: the message is \"... but must be ...\""),
    # Names.
    (r"^parsers/profile/(frame_name|intern|labels|tarantool|tarantool_symbols)\.c|"
     r"^parsers/stream/frame_text.c|/(ljm_symbols|ljm_events|heap_names|collapsed)\.c|"
     r"^tools/inspect/dump_item.c|/(locals|prototypes|group_names)\.c|^tools/report/jit",
     r"^[\[(].*[\])]|^(no stack|beyond the limit|before the session|not recorded|"
     r"garbage collector|outside Lua|unknown \(lost in a gap\)|too deep|"
     r"string \(unreadable\)|Tarantool's (mem|sys)prof|\(function of)",
     "names of frames and groups"),
    (r"^parsers/profile/plain_names.c|^tools/advise/(names|rules_jit)\.c",
     r"\((resume|iterator|C|C, all in one|Lua|preload)\)$", "names of builtins"),
    (r"", r"^[\[(]?(main chunk|garbage collector|the VM( itself)?|smaller ones|deeper ones|"
     r"light userdata|hash part|array part|waits for its finalizer|not begun)[\])]?$",
     "names of frames and objects"),
    (r"^profilers/session/output.h", r"^VM closed$", "what dump prints of a session's end"),
    (r"^src/luajit/traces/table.c", r"recursion$", "names of links of traces"),
    (r"^profilers/unwind/unwind.c", r"^unknown result", "for tests and benchmarks"),
    # Parts of reports and views.
    (r"^tools/advise/(reasons|rules_\w+|findings|sarif|text)\.c",
     r"^(?!Fewer than|The heap grows|The file has no)",
     "findings have a page of their own: doc/guide/advice.md"),
    (r"^tools/exporter/text.c", r"", "what Prometheus shows of a figure"),
    (r"^tools/shared/gc_phases.c|^tools/report/(summary|call_tree|places)\.c|"
     r"^tools/page/diff_(text|html)\.c", r"", "lines of a report"),
    (r"^tools/report/jit_text.c", r"^blacklisted:", "a head of a table"),
    (r"^tools/page/diff_(data|units)\.c", r"^(the files have no times|both programs ran|"
     r"one session is only|the sessions are|one file has no times|not recorded (be|af))",
     "how two files are compared: a head"),
    (r"^tools/page/(heap|load)\.c", r"^(, which are not shown|recorded by %s|"
     r"CPU time not sampled)$", "the facts of a page"),
    (r"^tools/heap/", r"^(%d coroutines on|Born in between|exact, by|likely, by|Snapshot %d|"
     r"%d objects, %s; %d of|%d further ways|%d objects match|If nothing held|"
     r"object of an unknown|, not alone|strings whose contents)", "lines of a report"),
    (r"^tools/inspect/check(_heap)?\.c", r"^(still recording|closed by the|timer expiries|"
     r"unknown tag|%d malformed|(, )?%d block%s|, its end is missing)", "lines of a report"),
    (r"^tools/(join/status|record/next|stacks/text)\.c",
     r"^(no session|ljprof (gather|report) %s|not started|waiting, cannot be interrupted|"
     r"stopped by a tracer|in an unknown state)$", "what the command was asked for"),
    (r"^tools/shared/progress.c", r"^\\r%d of", "how much of a file has been read"),
    (r"^tools/top/screen.c", r"^(?!the process).*  |:$|^(any key|\[%s\])",
     "keys and prompts"),
    (r"^tools/viewer/", r"^(, does not apply|no thread recorded|no state|no VM|the stack was cut)",
     "names in the page"),
]
