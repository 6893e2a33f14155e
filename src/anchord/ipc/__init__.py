"""The local socket (JSON-RPC 2.0, one JSON object per line, AF_UNIX) and the pipes of workers."""
