"""What a subscriber's side keeps of the rows of its condition, one module for each way of keeping."""
