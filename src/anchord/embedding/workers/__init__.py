"""The processes that embed, and the programs that run in them."""
