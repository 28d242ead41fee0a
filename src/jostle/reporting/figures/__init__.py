"""Contact sheets: pictures of what corruptions look like."""
