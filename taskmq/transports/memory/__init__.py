"""The transport that keeps its messages in the process."""

from taskmq.transports.memory.transport import MemoryTransport

__all__ = ["MemoryTransport"]
