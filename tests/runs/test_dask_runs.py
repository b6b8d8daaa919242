"""A cluster of dask.distributed as executor (extra "dask"): the same bits as in this process."""

from __future__ import annotations

import pytest
from sample_tasks import spectra

from freeattn.errors import TaskError
from freeattn.runs import Store, Task, run

distributed = pytest.importorskip("distributed", reason='needs the extra "dask"')

import sample_tasks  # noqa: E402


@pytest.mark.slow
def test_a_cluster_gives_the_same_bits_and_names_failures(tmp_path):
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        executor = client.get_executor()
        found = run(spectra(8), executor=executor, store=tmp_path / "s.db")
        failing = [Task({"number": i}, sample_tasks.fails_on, (i, 2)) for i in range(4)]
        with pytest.raises(TaskError, match="no 2"):
            run(failing, executor=executor)
    assert len(Store(tmp_path / "s.db")) == 8
    for one, two in zip(found, run(spectra(8), workers=1), strict=True):
        assert one["values"].tobytes() == two["values"].tobytes()
