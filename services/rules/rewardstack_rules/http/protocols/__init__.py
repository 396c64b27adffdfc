"""What callers may send, and what they get: one module a protocol."""
