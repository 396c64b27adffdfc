"""Settings for the API server in `shared/tools/helm/helm.py`; its Python imports this module when it starts.

Helm opens 17 connections at once, and the server's queue holds five: the kernel then drops connections. And headers and
body are two packets, so that each of the 80 requests of a rendering waits 40 ms for an acknowledgment.
"""

import socketserver

socketserver.TCPServer.request_queue_size = 128
socketserver.StreamRequestHandler.disable_nagle_algorithm = True
