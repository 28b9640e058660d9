"""The pages of the app, as static files without a build step, and their shared parts."""
