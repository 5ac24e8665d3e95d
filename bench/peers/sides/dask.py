import sys

# This script has the library's name.
sys.path.append(sys.path.pop(0))
from distributed import Client, LocalCluster
from side import serve


def value():
    return 42


def following(item):
    return item + 1


def all_following(items):
    return [item + 1 for item in items]


def main():
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster, Client(cluster) as client:

        def one(count):
            for _ in range(count):
                assert client.submit(value, pure=False).result() == 42

        def each(count):
            assert client.gather(client.map(following, range(count), pure=False))[-1] == count

        def chunks(count):
            size = -(-count // 64)
            parts = [range(start, min(count, start + size)) for start in range(0, count, size)]
            assert sum(map(len, client.gather(client.map(all_following, parts, pure=False)))) == count

        each(100)
        serve({"one": one, "map": each, "chunks": chunks})


if __name__ == "__main__":
    main()
