"""What a web server is given: the application, once all of it is loaded and its tables stand.

Apart from `asgi`, because this waits as it is imported: a server that listens already would have to answer.
"""

from console import tables
from console.asgi import application

__all__ = ["application"]

tables.wait()
