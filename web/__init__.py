"""The operators' console and the page of the business, as static files without a build step."""
