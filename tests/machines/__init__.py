"""`make machines`: README's two commands are typed on bare machines and on spoilt ones, each a container of its own."""
