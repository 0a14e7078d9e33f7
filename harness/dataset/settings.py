"""Settings of a data set that several remedies name."""

from retrievers.remedy import Option, Setting, compose_remedy

NO_HEADER = compose_remedy(Setting("header", False), Option("--no-header"))
NO_ROWS_REMEDY = compose_remedy(
    "write rows below it; or say ", NO_HEADER, " if it is one"
)
PAGES = compose_remedy(Setting("pages", True), Option("--pages"))
LEAVE_PAGES_OUT = compose_remedy(
    "leave ", Setting("pages", True), " out", Option("--pages")
)
NAMED_DOCUMENTS = compose_remedy(Setting("documents", "…"), Option("--documents"))
NAMED_QUERIES = compose_remedy("name a file: ", Setting("queries", "…"))
