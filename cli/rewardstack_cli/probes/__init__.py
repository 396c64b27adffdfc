"""Probes of `rewardstack check`: one module for each kind of service, with remedies for its failures."""
