"""What the server and its workers count, how processes count together, and the collectors of counts kept elsewhere.

Nothing enters that is counted: other rooms call this one.
"""
