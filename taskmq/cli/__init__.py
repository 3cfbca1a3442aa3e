"""The command line: `taskmq`. One file per family of commands, loaded when the command is used.

`views/` turns values into text and JSON without any I/O, `session` opens what `-A` and `-b` name,
`output` writes. A command joins the three.
"""
