"""`make machines`: type README's two commands on clean and on broken machines, each a container of its own."""
