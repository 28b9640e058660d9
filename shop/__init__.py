"""The shop: the business of this deployment, and its customers' API."""
