"""The customers' API: places orders of any business, shows their progress, and cancels them."""
