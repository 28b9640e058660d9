"""The test kit for authors of a business; it is not deployed."""
