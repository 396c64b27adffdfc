"""Prometheus metrics: counters of the server and its workers, summed over processes, and collectors.

Collectors query the result cache and the isolated processes for each scrape.
"""
