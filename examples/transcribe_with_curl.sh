#!/bin/sh
# What a service can do, asked with curl: sh examples/transcribe_with_curl.sh RECORDING [URL]
# A token, if the service needs one, is in the environment variable SPEECH_TOKEN.
set -eu
recording=${1:?"usage: sh examples/transcribe_with_curl.sh RECORDING [URL]"}
[ -r "$recording" ] || { echo "error: can't read $recording" >&2; exit 2; }
file="file=@\"$recording\""  # in quotes: the name may have a comma or a semicolon
url=${2:-http://127.0.0.1:8000}
ask() { curl --silent --show-error --fail-with-body -H "Authorization: Bearer ${SPEECH_TOKEN:-}" "$@"; echo; }

ask "$url/healthz"
ask "$url/v1/models"

# The text; as subtitles; with the times, the pinyin and the confidence of each character.
ask "$url/v1/audio/transcriptions" -F "$file"
ask "$url/v1/audio/transcriptions" -F "$file" -F response_format=srt
ask "$url/v1/audio/transcriptions" -F "$file" -F response_format=verbose_json \
  -F 'timestamp_granularities[]=word'

# Words to prefer, one a line; numbers as digits; the text segment by segment, as server-sent events.
ask "$url/v1/audio/transcriptions" -F "$file" -F prompt='重庆路 chong2 qing4 lu4'
ask "$url/v1/audio/transcriptions" -F "$file" -F digits=true
ask --no-buffer "$url/v1/audio/transcriptions" -F "$file" -F stream=true

# Only phrases of a list, with slots; pinyin to hanzi, with reasons.
ask "$url/v1/phrases" -F "$file" -F 'phrases=如果[无法|可以]<做什么>
<做什么> = 控制 | 停止'
ask "$url/v1/convert" -H 'Content-Type: application/json' -d '{"text": "jin1 tian1 tian1 qi4 hen3 hao3", "n_best": 3}'
