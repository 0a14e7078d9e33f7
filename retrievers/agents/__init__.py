"""Chat models with tools, or tools of MCP servers, as retrievers."""
