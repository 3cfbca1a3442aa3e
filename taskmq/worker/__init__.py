"""The worker: one coordinator loop over one pool and one transport. `worker` is the door."""
