"""Serves transcripts, conversions and live results to many clients over HTTP and WebSocket.

Read ``settings`` (what can be configured), ``app`` (the parts of the service joined), ``errors`` (what a
client gets if something is wrong) and ``authentication`` (who may ask). The folders below do the recognition.
"""
