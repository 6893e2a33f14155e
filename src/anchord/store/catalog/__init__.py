"""`state.sqlite`: what is known of each file."""
