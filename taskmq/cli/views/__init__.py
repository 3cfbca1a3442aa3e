"""What the reading commands show, as functions of the seam's values. Pure, tested without a store.

Each view gives both faces of one answer: lines for people and a value for `--json`, so that they
cannot say different things.
"""
