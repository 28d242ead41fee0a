"""What jostle does, shown at once: on films of its own, or on a video of the user's."""
