"""The API server: objects, versions, watches. It knows nothing of machines; those come in through its door like anyone."""
