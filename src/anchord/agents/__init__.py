"""anchord for agents: the Model Context Protocol's tools and resources, and answers that cost few tokens."""
