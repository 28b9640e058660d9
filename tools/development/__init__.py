"""Commands for developers of this app: the embedded stack, Core Tools, and checks of its declarations."""
