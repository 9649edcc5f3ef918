"""Plans over HTTP, for programs in any language, and a page for people."""
