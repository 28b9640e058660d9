"""Shop: the web front end's API: products, placing an order, following it."""
