"""What goes over the socket: the parameters and the answer of each method, as types.

The daemon, its clients, the commands and the MCP server use the same types. The names of fields are
the JSON keys, and a fixed interface.
"""
