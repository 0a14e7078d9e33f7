"""The harness asks retrievers, judges their rankings, and reports."""
