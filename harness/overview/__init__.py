"""Many results folders -> one page: a table of every run, which sorts and filters."""

from harness.overview.listing import Entry as Entry
from harness.overview.listing import Listing as Listing
from harness.overview.listing import holds_results as holds_results
from harness.overview.listing import listing as listing
from harness.overview.page import write_index as write_index
