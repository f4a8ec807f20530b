"""Tests of the limit of one thread for matrix products."""

from contextlib import ExitStack

from threadpoolctl import threadpool_info, threadpool_limits

from utils.processes import one_blas_thread


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_the_last_of_overlapping_blocks_restores_the_number_of_threads():
    """As in two threads: the block that began first ends first."""
    with threadpool_limits(limits=2, user_api="blas"):
        first, second = ExitStack(), ExitStack()
        first.enter_context(one_blas_thread())
        second.enter_context(one_blas_thread())
        first.close()
        assert blas_threads() == {1}
        second.close()
        assert blas_threads() == {2}
