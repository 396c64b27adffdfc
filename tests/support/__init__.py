"""Fake servers, fixtures and helpers that several folders of tests share."""
