"""A configuration module, as projects have one."""

task_default_queue = "sample"
