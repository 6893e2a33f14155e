"""What programs import besides `anchord` itself: chunking, and the index in other libraries."""
