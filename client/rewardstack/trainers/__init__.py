"""What each trainer takes by a line of its configuration: a file a trainer, whose docstring says it.

Nothing enters that scores: a file here hands over what its trainer has, and gives back what its trainer takes.
"""
