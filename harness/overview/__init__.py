"""Many results folders -> one page: every experiment and date, the same retriever over time, any two side by side."""

from __future__ import annotations

from harness.overview.listing import Entry, Listing, Unread, holds_results, listing
from harness.overview.page import write_index

__all__ = ["Entry", "Listing", "Unread", "holds_results", "listing", "write_index"]
