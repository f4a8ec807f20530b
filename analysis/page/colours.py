"""The colours of all charts that the pages and pictures share, as CSS hexadecimal codes."""

INK, FAINT, GRID = "#3f3f46", "#71717a", "#e4e4e7"
TRAIN, DEV, BEST = "#a1a1aa", "#0f766e", "#c2410c"
