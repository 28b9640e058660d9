"""The pages: shop and operators' console, as static files without a build step."""
