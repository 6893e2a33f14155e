"""How well a folder's sections are found again, and what an edit of it costs, under each way of chunking and searching."""
