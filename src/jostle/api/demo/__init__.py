"""The demo: the whole loop on generated films, or every corruption on a video of the user's."""
