"""The pages: the operators' console and that of the business, as static files without a build step."""
