"""Counters of the server and its workers, aggregation over processes, and collectors of external counts.

Other packages call this one; it does not import what it counts.
"""
