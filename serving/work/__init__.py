"""Recognises uploads and converts texts in processes that may die without harm to the service.

Read ``fair_queue`` (which piece of which request is next), ``child`` (a process with a pipe), ``uploads`` (a
file to pieces, in a process for each upload), ``models`` (what a worker computes),
``conversion_tasks`` (pinyin to tasks) and ``engine`` (the processes that hold the models, and all of them
joined).
"""
