"""Systems beside ours: rankings that somebody saved, a function of the user's, a search endpoint."""
