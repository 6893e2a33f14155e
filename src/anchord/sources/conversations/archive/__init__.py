"""`conversations.sqlite`: exchanges, stored apart from the transcript files that contain them."""
