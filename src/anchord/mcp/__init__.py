"""anchord for agents: tools and resources of the Model Context Protocol, with short answers."""
