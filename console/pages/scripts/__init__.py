"""The pages of startup scripts: the editor, its history, and what its buttons do."""
