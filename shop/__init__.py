"""Shop: the business of this deployment, and the API by which customers place and follow orders."""
