"""Video-language models: questions and sentences for networks, servers and functions."""
