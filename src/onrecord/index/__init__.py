"""Search indexes: caches derived from the record, caught up or rebuilt at any time."""
