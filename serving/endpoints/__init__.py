"""The HTTP and WebSocket paths of the service.

Read ``transcriptions`` (audio to text in the form of OpenAI's interface, or to phrases) with ``responses``
(its formats), then ``conversion`` (pinyin to hanzi), ``stream`` (live recognition), ``status`` (health,
models, figures) and ``documentation``.
"""
