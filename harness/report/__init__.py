"""The report of a results folder: one page, Markdown, LaTeX, figures."""
