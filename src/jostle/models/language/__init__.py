"""Video-language models: questions with options and sentences to find, asked of networks, servers and functions."""
