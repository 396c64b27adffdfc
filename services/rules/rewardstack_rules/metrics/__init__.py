"""Prometheus metrics of the server and its workers.

Counters are summed over processes. Collectors query the result cache and the isolated processes for each scrape.
"""
