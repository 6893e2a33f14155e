"""The local socket: JSON-RPC 2.0, one JSON object a line, over AF_UNIX. Requests and answers are values of `protocol`."""
