"""The smallest business: one step that calls one service."""
