"""Generate hostile requests of all known kinds, and check the replies to them."""
